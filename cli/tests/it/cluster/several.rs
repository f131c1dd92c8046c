//! A worker that knows several coordinators works as long as one of them lives.

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];

#[test]
fn a_worker_moves_on_when_its_coordinator_dies() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(10);
    let (first, second) = (cluster.coordinator(), cluster.coordinator());
    let both = [first.url(), second.url()].join(",");
    let run = cluster.submit(&second, &TASKS, 40);
    // The option may also be repeated: the harness gives it once, this adds the list of both.
    let worker = cluster.worker_with(
        "worker",
        first.port,
        &server.url(),
        &["--concurrency", "4", "--coordinator", &both],
    );
    server.gate().until_held(4);
    let port = first.port;
    drop(first);
    server.gate().open();
    server.gate().close_after(20);
    server.gate().until_held(4);
    // Whichever it began with: in the end it has left both once.
    let first = cluster.coordinator_at(port);
    drop(second);
    server.gate().open();
    let (view, finished) = cluster.watch(&first, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (80, 0));
    winners(&cluster, 80);
    drop(worker);
}
