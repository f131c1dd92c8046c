//! Mistakes of people: runs removed while they are written.

use rustix::process::Signal;

use super::in_the_middle;
use crate::harness::{Cluster, NT_TASK};

const TASKS: [&str; 1] = [NT_TASK];
const ITERATIONS: u32 = 20;

/// Answers before the server waits.
const ANSWERED: usize = 6;

#[test]
fn a_run_that_a_fleet_writes_is_not_removed_or_written_beside_it_and_is_removed_through_it() {
    let Some(cluster) = Cluster::start() else { return };
    let (server, coordinator, run, worker) = in_the_middle(&cluster, &TASKS, ITERATIONS, ANSWERED);
    for (verb, code) in [("rm", 2), ("resume", 3), ("retry", 3)] {
        cluster.data.kgfleet(&[verb, &run]).expect(code).says(&["a coordinator", "--fleet URL"]);
    }
    // Nor while no coordinator is there: the workers still hold some of it.
    let port = coordinator.port;
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    cluster.data.kgfleet(&["rm", &run]).expect(2).says(&[
        "active in a fleet",
        "cancel it there first",
        "--force",
    ]);
    let coordinator = cluster.coordinator_at(port);
    cluster.kgfleet(&coordinator, &["rm", &run]).expect(2).says(&["cancel it first"]);
    cluster.kgfleet(&coordinator, &["rm", &run, "--force"]).expect(0);
    assert!(cluster.data.runs().is_empty());
    server.gate().open();
    let dir = cluster.work_dir("first");
    let spools = ["fleet", "workers", "spool", "list", "--work-dir", dir.to_str().unwrap()];
    cluster.data.kgfleet(&spools).expect(0);
    // Late records are dropped, not kept for ever.
    worker.signal(Signal::TERM);
    worker.finish().expect(0).says(&["0 undelivered records"]);
    cluster.kgfleet(&coordinator, &["status", &run]).expect(2);
}
