//! Mistakes of people: runs removed while they are written, workers that do not
//! come back.

use rustix::process::Signal;

use super::{IN_FLIGHT, in_the_middle, winners};
use crate::harness::{Cluster, NT_TASK, Running, Server};

const TASKS: [&str; 1] = [NT_TASK];
const ITERATIONS: u32 = 20;

/// Answers before the server waits.
const ANSWERED: usize = 6;

/// A run in the middle, whose coordinator was killed: the records of what was in flight lie in the spool of its worker,
/// which was killed too.
fn undelivered(cluster: &Cluster, server: &Server) -> (u16, String) {
    server.gate().close_after(ANSWERED);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, ITERATIONS);
    let worker = cluster.worker("first", &coordinator, server);
    server.gate().until_held(IN_FLIGHT);
    let port = coordinator.port;
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    server.gate().open();
    // Those that were acknowledged are counted as well, and sent again.
    until_spooled(cluster, &run, (ANSWERED + IN_FLIGHT) as u64);
    worker.signal(Signal::KILL);
    worker.finish();
    (port, run)
}

/// What `kgfleet fleet workers spool list` tells of a run: records in spools.
fn spooled(cluster: &Cluster, run: &str) -> u64 {
    let dir = cluster.work_dir("first");
    let listed = cluster
        .data
        .kgfleet(&["fleet", "workers", "spool", "list", "--json", "--work-dir", dir.to_str().unwrap()])
        .expect(0);
    let of_run = |line: serde_json::Value| (line["run"] == run).then(|| line["records"].as_u64().unwrap());
    listed.stdout.lines().filter_map(|line| of_run(serde_json::from_str(line).unwrap())).sum()
}

fn until_spooled(cluster: &Cluster, run: &str, records: u64) {
    while spooled(cluster, run) < records {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn worker_of(cluster: &Cluster, name: &str, port: u16, server: &Server) -> Running {
    // In the working folder of the first one.
    let work_dir = cluster.work_dir("first");
    let url = format!("http://127.0.0.1:{port}");
    let arguments = [
        "worker",
        "--fleet",
        &url,
        "--name",
        name,
        "--endpoint",
        &server.url(),
        "--evaluators",
        "1",
        "--concurrency",
        "4",
        "--work-dir",
        work_dir.to_str().unwrap(),
    ];
    cluster.data.start(&arguments)
}

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
    // Late records are dropped, not kept for ever.
    worker.signal(Signal::TERM);
    worker.finish().expect(0).says(&["0 undelivered records"]);
    cluster.kgfleet(&coordinator, &["status", &run]).expect(2);
}

#[test]
fn the_records_of_a_worker_that_does_not_come_back_are_delivered_by_another() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let (port, run) = undelivered(&cluster, &server);
    // It can begin nothing: what it delivers is what the first one left.
    server.gate().close();
    let coordinator = cluster.coordinator_at(port);
    let mut second = worker_of(&cluster, "second", port, &server);
    second.until_it_says("took over the records of a worker that is gone");
    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (ITERATIONS.into(), 0));
    let winners = winners(&cluster, ITERATIONS as usize);
    let of_first = winners.values().filter(|entry| entry.attempt.worker.as_str() == "first").count();
    assert!(of_first >= ANSWERED + IN_FLIGHT, "{of_first} records of the first worker count");
    second.signal(Signal::TERM);
    second.finish().expect(0);
}
