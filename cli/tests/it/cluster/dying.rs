//! Each part killed once in the middle of a run: the run completes by itself.

use domain::RecordId;
use rustix::process::Signal;

use super::{IN_FLIGHT, in_the_middle, winners};
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];
const ITERATIONS: u32 = 40;
const DIALOGUES: usize = 80;

/// Answers before the server waits.
const ANSWERED: usize = 20;

#[test]
fn a_worker_that_is_killed_is_replaced_by_the_others() {
    let Some(cluster) = Cluster::start() else { return };
    let (server, coordinator, run, first) = in_the_middle(&cluster, &TASKS, ITERATIONS, ANSWERED);
    let _second = cluster.worker("second", &coordinator, &server);
    first.signal(Signal::KILL);
    first.finish();
    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    let winners = winners(&cluster, DIALOGUES);
    assert!(winners.values().any(|entry| entry.record.attempt.worker.as_str() == "second"));
    assert!(winners.values().any(|entry| entry.record.attempt.number > 1), "its units were leased again");
}

#[test]
fn a_coordinator_that_is_killed_and_started_again_goes_on() {
    let Some(cluster) = Cluster::start() else { return };
    let (server, coordinator, run, _worker) = in_the_middle(&cluster, &TASKS, ITERATIONS, ANSWERED);
    let port = coordinator.port;
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    // Dialogues end while nobody is there to take their records.
    server.gate().open();
    let coordinator = cluster.coordinator_at(port);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    winners(&cluster, DIALOGUES);
}

#[test]
fn a_redis_that_restarts_without_its_data_is_filled_again() {
    let Some(mut cluster) = Cluster::start() else { return };
    let (server, coordinator, run, _worker) = in_the_middle(&cluster, &TASKS, ITERATIONS, ANSWERED);
    let before: Vec<(RecordId, u64)> = cluster
        .data
        .run()
        .entries()
        .into_iter()
        .map(|entry| (entry.record.attempt.id, entry.record.attempt.generation))
        .collect();
    cluster.redis.say::<()>("FLUSHALL");
    cluster.redis.restart();
    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    let winners = winners(&cluster, DIALOGUES);
    for (id, _) in &before {
        assert!(winners.values().any(|entry| entry.record.attempt.id == *id), "what was durable counts");
    }
    let oldest = before.iter().map(|(_, generation)| *generation).min();
    assert!(
        winners.values().any(|entry| Some(entry.record.attempt.generation) > oldest),
        "the queue was built again under a higher generation"
    );
}

#[test]
fn two_coordinators_and_a_rolling_restart_are_invisible_to_a_run() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(ANSWERED);
    let (one, two) = (cluster.coordinator(), cluster.coordinator());
    let run = cluster.submit(&one, &TASKS, ITERATIONS);
    let _first = cluster.worker("first", &one, &server);
    let _second = cluster.worker("second", &two, &server);
    // The second one may have come when nothing is answered any more: then its first question is alone.
    server.gate().until_held(IN_FLIGHT + 1);
    // One after the other, as an update does.
    let replaced = |old: Coordinator| {
        let port = old.port;
        old.process.signal(Signal::TERM);
        old.process.finish().expect(0);
        cluster.coordinator_at(port)
    };
    let one = replaced(one);
    server.gate().open();
    let two = replaced(two);
    let (view, finished) = cluster.watch(&two, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    let (seen_by_one, seen_by_two) = (cluster.status(&one, &run), cluster.status(&two, &run));
    assert_eq!(seen_by_one.cells, seen_by_two.cells, "both tell the same");
    winners(&cluster, DIALOGUES);
    for worker in ["first", "second"] {
        assert!(
            cluster.data.run().entries().iter().any(|entry| entry.record.attempt.worker.as_str() == worker),
            "{worker} worked"
        );
    }
}
