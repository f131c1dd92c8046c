//! `make cluster`, where its own ports are taken.

use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Cluster, Running, process, wait_until};

/// Where the demo's coordinator listens if nobody else does.
const OWN_PORT: u16 = 7700;

/// The script, with all that it has started.
struct Demo(Option<Running>);

impl Drop for Demo {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.signal_group(Signal::KILL);
        }
    }
}

#[test]
fn the_demo_cluster_starts_beside_whoever_has_its_ports() {
    // It needs a Redis, too.
    let Some(cluster) = Cluster::start() else { return };
    let data = &cluster.data;
    // Whoever has it already keeps it.
    let _taken = TcpListener::bind(("127.0.0.1", OWN_PORT));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/local/cluster");
    let mut command = Command::new("sh");
    process::shield(&mut command);
    command.args(["-c", "exec \"$0\" \"$@\" >&2"]).arg(script).arg(env!("CARGO_BIN_EXE_kgfleet"));
    command.env("KGFLEET_CLUSTER_HOME", data.path().join("demo")).process_group(0);
    let mut demo = Demo(Some(Running::start(&mut command)));
    let running = demo.0.as_mut().unwrap();
    running.until_it_says(&format!("port {OWN_PORT} is taken; the coordinator takes "));
    let submit = running.until_it_says("kgfleet submit quick --fleet http://127.0.0.1:");
    let coordinator = submit.split_whitespace().last().unwrap();
    wait_until("both workers are there", || {
        let workers = data.kgfleet(&["fleet", "workers", "--fleet", coordinator]).stdout;
        workers.contains("worker-1") && workers.contains("worker-2")
    });
    running.signal(Signal::TERM);
    demo.0.take().unwrap().finish().expect(0);
    let address = coordinator.strip_prefix("http://").unwrap();
    assert!(TcpStream::connect(address).is_err(), "{address} is free again");
}
