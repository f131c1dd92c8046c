//! A worker that is drained under load ends well, and nothing waits for a lease to expire.

use rustix::process::Signal;

use super::winners;
use crate::harness::{Cluster, NT_TASK, Running, Server, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];
const ITERATIONS: u32 = 40;
const DIALOGUES: usize = 80;

/// Seconds. The run ends within the test's patience only if no unit waits for it.
const NEVER: &str = "86400";

fn drained(ask: impl FnOnce(&Cluster, &crate::harness::cluster::Coordinator, &Running)) {
    let Some(cluster) = Cluster::with_lease(NEVER) else { return };
    let server = Server::start();
    server.gate().close_after(10);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, ITERATIONS);
    let leaving = cluster.worker("leaving", &coordinator, &server);
    server.gate().until_held(4);
    ask(&cluster, &coordinator, &leaving);
    server.gate().open();
    leaving.finish().expect(0);
    let _staying = cluster.worker("staying", &coordinator, &server);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    let winners = winners(&cluster, DIALOGUES);
    assert_eq!(cluster.data.run().entries().len(), DIALOGUES, "nothing was asked twice");
    for worker in ["leaving", "staying"] {
        assert!(winners.values().any(|entry| entry.attempt.worker.as_str() == worker), "{worker} worked");
    }
}

#[test]
fn a_worker_that_is_terminated_gives_back_what_it_did_not_begin() {
    drained(|_, _, worker| worker.signal(Signal::TERM));
}

#[test]
fn a_worker_that_is_told_to_drain_does_the_same() {
    drained(|cluster, coordinator, _| {
        cluster.kgfleet(coordinator, &["fleet", "workers"]).expect(0).prints(&["leaving"]);
        cluster.kgfleet(coordinator, &["fleet", "workers", "drain", "leaving"]).expect(0);
    });
}
