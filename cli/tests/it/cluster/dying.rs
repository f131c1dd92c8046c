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
    assert!(winners.values().any(|entry| entry.attempt.worker.as_str() == "second"));
    assert!(winners.values().any(|entry| entry.attempt.number > 1), "its units were leased again");
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
    let before: Vec<RecordId> =
        cluster.data.run().entries().into_iter().map(|entry| entry.attempt.id).collect();
    cluster.redis.say::<()>("FLUSHALL");
    cluster.redis.restart();
    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    let winners = winners(&cluster, DIALOGUES);
    for id in &before {
        assert!(winners.values().any(|entry| entry.attempt.id == *id), "what was durable counts");
    }
}

#[test]
fn two_coordinators_and_a_rolling_restart_are_invisible_to_a_run() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(ANSWERED);
    let (one, two) = (cluster.coordinator(), cluster.coordinator());
    let run = cluster.submit(&one, &TASKS, ITERATIONS);
    let worker = |name, coordinator: &Coordinator, other: &Coordinator| {
        cluster.worker_with(
            name,
            coordinator.port,
            &server.url(),
            &["--fleet", &other.url(), "--concurrency", "4"],
        )
    };
    let _first = worker("first", &one, &two);
    let _second = worker("second", &two, &one);
    // The second one may have come when nothing is answered any more: then its first question is alone.
    server.gate().until_held(IN_FLIGHT + 1);
    // One after the other: who leads leaves, and the other one follows at once.
    let replaced = |old: Coordinator| {
        let port = old.port;
        old.process.signal(Signal::TERM);
        old.process.finish().expect(0);
        cluster.coordinator_at(port)
    };
    let one = replaced(one);
    server.gate().open();
    let two = replaced(two);
    let either = two.url();
    cluster.kgfleet(&one, &["status", "--follow", &run, "--fleet", &either]).expect(0);
    // Whichever came first leads, and the other one says so.
    let refused = [&one, &two].map(|coordinator| cluster.kgfleet(coordinator, &["status"]));
    let refused: Vec<_> = refused.into_iter().filter(|status| status.code() == Some(3)).collect();
    let [refused] = refused.as_slice() else { panic!("one of them leads: {refused:?}") };
    assert!(refused.stderr.contains("leads this fleet"), "{refused}");
    winners(&cluster, DIALOGUES);
    for worker in ["first", "second"] {
        assert!(
            cluster.data.run().entries().iter().any(|entry| entry.attempt.worker.as_str() == worker),
            "{worker} worked"
        );
    }
}
