//! A coordinator without Redis: its queue is in memory, and built again after a restart.

use domain::control::RunPhase;
use rustix::process::Signal;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK, free_port};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];
const INFRASTRUCTURE: i32 = 3;

#[test]
fn a_coordinator_without_redis_is_killed_with_a_retry_pending_and_goes_on() {
    let Some(cluster) = Cluster::start() else { return };
    // The first question of every second dialogue fails for good.
    let first = FaultWhen::NthOfConversation(1);
    let refuse = FaultRule::new(first, FaultKind::Status { code: 400, retry_after_s: None });
    let server =
        Server::with_faults(vec![FaultRule { prompt_contains: Some(TURTLE_PROMPT.to_owned()), ..refuse }]);
    let coordinator = cluster.lone_coordinator_at(free_port());
    let run = cluster.submit(&coordinator, &TASKS, 8);
    let _worker = cluster.worker("worker", &coordinator, &server);
    let (view, _) = cluster.watch(&coordinator, &run);
    assert_eq!((view.scored, view.failed), (8, 8));

    // Asked again, and killed while the answers are awaited.
    server.gate().close_after(2);
    cluster.kgfleet(&coordinator, &["retry", &run]).expect(0).says(&["8 failed dialogues"]);
    server.gate().until_held(2);
    let port = coordinator.port;
    coordinator.process.signal(Signal::KILL);
    coordinator.process.finish();
    server.gate().open();
    let coordinator = cluster.lone_coordinator_at(port);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 16, 0));
    winners(&cluster, 16);
}

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
