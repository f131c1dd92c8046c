//! A proxy between two processes that a test can cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes copied at once.
const PIECE: usize = 16 << 10;

/// A port of the loopback interface that leads to another one. Its threads end with the test.
pub struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    open: bool,
    /// Both ends of the connections, so that they can be cut.
    live: Vec<TcpStream>,
}

impl Proxy {
    /// A line to this port.
    pub fn to(target: u16) -> Self {
        Self::among(vec![target])
    }

    /// Lines to these ports: connections take turns at them.
    pub fn among(targets: Vec<u16>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { open: true, live: Vec::new() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let turns = targets.into_iter().cycle();
            for (near, target) in listener.incoming().flatten().zip(turns) {
                connect(&shared, near, target);
            }
        });
        Self { port, state }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends all connections, and takes no more.
    pub fn cut(&self) {
        let mut state = self.state();
        state.open = false;
        hang_up(&mut state);
    }

    /// Takes connections again.
    pub fn mend(&self) {
        self.state().open = true;
    }
}

fn hang_up(state: &mut State) {
    for end in state.live.drain(..) {
        // It may be closed already.
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn connect(shared: &Arc<Mutex<State>>, near: TcpStream, target: u16) {
    if !shared.lock().unwrap().open {
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (Ok(near_again), Ok(far_again)) = (near.try_clone(), far.try_clone()) else { return };
    {
        let mut state = shared.lock().unwrap();
        if !state.open {
            return;
        }
        state.live.retain(|end| end.peer_addr().is_ok());
        state.live.extend([near.try_clone(), far.try_clone()].into_iter().flatten());
    }
    std::thread::spawn(move || copy(near, far));
    std::thread::spawn(move || copy(far_again, near_again));
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut piece = [0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
