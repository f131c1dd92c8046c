//! A coordinator without Redis: its queue is in memory, and built again after a restart.

use rustix::process::Signal;

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_TASK, free_port};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];
const INFRASTRUCTURE: i32 = 3;

#[test]
fn a_coordinator_without_redis_is_killed_in_the_middle_and_goes_on() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(20);
    let coordinator = cluster.lone_coordinator_at(free_port());
    let run = cluster.submit(&coordinator, &TASKS, 40);
    let _worker = cluster.worker("worker", &coordinator, &server);
    server.gate().until_held(4);
    let port = coordinator.port;
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    server.gate().open();
    let coordinator = cluster.lone_coordinator_at(port);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (80, 0));
    winners(&cluster, 80);
}

#[test]
fn two_queues_never_serve_one_folder() {
    let Some(cluster) = Cluster::start() else { return };
    let redis = cluster.redis.url();
    let start = |more: &[&str]| {
        let arguments = ["coordinator", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
        cluster.data.kgfleet(&[&arguments[..], more].concat())
    };
    let lone = cluster.lone_coordinator_at(free_port());
    start(&[]).expect(INFRASTRUCTURE).says(&["another coordinator serves"]);
    start(&["--queue", &redis]).expect(INFRASTRUCTURE).says(&["another coordinator serves", "--queue"]);
    lone.process.signal(Signal::KILL);
    lone.process.finish();
    // Those of one Redis share it.
    let _first = cluster.coordinator();
    let _second = cluster.coordinator();
    start(&[]).expect(INFRASTRUCTURE).says(&["another coordinator serves"]);
}
