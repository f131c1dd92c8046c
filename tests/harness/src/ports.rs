//! Free ports of the loopback interface.

use std::net::TcpListener;

/// A port that was free a moment ago. A server that can tell where it listens is rather started on port 0.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
