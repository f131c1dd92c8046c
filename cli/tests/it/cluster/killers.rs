//! A unit that kills every worker that works on it.

use domain::control::RunPhase;
use rustix::process::Signal;

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK, wait_until};

/// One unit of each task.
const ITERATIONS: u32 = 4;

/// Strikes of the default settings, the death that made the unit a suspect, and the first one, which is free.
const DEATHS: usize = 5;

#[test]
fn a_unit_that_kills_its_workers_is_set_aside_and_the_others_finish() {
    let Some(cluster) = Cluster::start() else { return };
    // Questions of the one unit are never answered: whoever asks them is killed.
    let server = Server::stuck_for_ever_at(TURTLE_PROMPT);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &[NT_TASK, TURTLE_TASK], ITERATIONS);
    for death in 0..DEATHS {
        let before = server.faults();
        let worker = cluster.worker("victim", &coordinator, &server);
        wait_until(&format!("the deadly question is asked after {death} deaths"), || {
            server.faults() > before
        });
        worker.signal(Signal::KILL);
        worker.finish();
    }
    let _worker = cluster.worker("victim", &coordinator, &server);
    let (view, _) = cluster.watch(&coordinator, &run);
    let expected = (RunPhase::Finished, u64::from(ITERATIONS), u64::from(ITERATIONS));
    assert_eq!((view.phase, view.scored, view.failed), expected);
    let winners = winners(&cluster, 2 * ITERATIONS as usize);
    for (key, entry) in &winners {
        assert_eq!(entry.record.outcome.is_scored(), key.task.as_str() == NT_TASK, "{key}");
    }
    cluster.kgfleet(&coordinator, &["dlq", "ls", &run]).expect(0).prints(&["victim"]);
}

#[test]
fn a_worker_that_another_one_has_replaced_ends_and_says_why() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(4);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &[NT_TASK], 40);
    let first = cluster.worker("twin", &coordinator, &server);
    server.gate().until_held(4);
    first.signal(Signal::STOP);
    // Redis forgets who has the name, and somebody else takes it.
    cluster.redis.say::<()>("FLUSHALL");
    let mut second = cluster.twin("twin", &coordinator, &server);
    second.until_it_says("registered");
    first.signal(Signal::CONT);
    server.gate().open();
    first.finish().expect(2).says(&["twin", "name in use by instance"]);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (40, 0));
    winners(&cluster, 40);
}
