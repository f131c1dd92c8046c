//! A run steered by hand: paused, joined, resumed, cancelled, retried.

use domain::control::RunPhase;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];

#[test]
fn a_run_is_paused_joined_cancelled_resumed_and_retried_by_cause() {
    let Some(cluster) = Cluster::start() else { return };
    // The first question of every dialogue about Turtle fails for good.
    let first = FaultWhen::NthOfConversation(1);
    let refuse = FaultRule::new(first, FaultKind::Status { code: 400, retry_after_s: None });
    let server =
        Server::with_faults(vec![FaultRule { prompt_contains: Some(TURTLE_PROMPT.to_owned()), ..refuse }]);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, 8);
    cluster.kgfleet(&coordinator, &["pause", &run]).expect(0).says(&["paused"]);
    let worker = cluster.worker("worker", &coordinator, &server);
    // The same configuration joins the run that is not finished.
    assert_eq!(cluster.submit(&coordinator, &TASKS, 8), run);
    assert_eq!(cluster.status(&coordinator, &run).phase, RunPhase::Paused);
    assert!(server.gate().take_asked().is_empty());

    server.gate().close_after(4);
    cluster.kgfleet(&coordinator, &["resume", &run]).expect(0).says(&["active"]);
    server.gate().until_held(2);
    cluster.kgfleet(&coordinator, &["cancel", &run]).expect(0).says(&["cancelled"]);
    cluster.watch(&coordinator, &run).1.expect(130);
    server.gate().open();
    cluster.kgfleet(&coordinator, &["resume", &run]).expect(0);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(1);
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 16 - view.failed));
    let failed = view.failed;
    assert!((1..=8).contains(&failed), "{view:?}");

    let retry = |cause: &str| cluster.kgfleet(&coordinator, &["retry", &run, "--cause", cause]).expect(0);
    retry("timeout").says(&["0 failed dialogues"]);
    retry("bad-request").says(&[&format!("{failed} failed dialogues")]);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (16, 0));
    winners(&cluster, 16);
    cluster.kgfleet(&coordinator, &["status"]).expect(0).prints(&[&run, "finished"]);

    // A finished run is not joined. Without a worker the newest one stays unfinished.
    drop(worker);
    let newest = cluster.submit(&coordinator, &TASKS, 8);
    assert_ne!(newest, run);
    // Names are found by their beginning, and by what is newest.
    cluster.kgfleet(&coordinator, &["status", "latest"]).expect(0).prints(&[&newest]);
    cluster.kgfleet(&coordinator, &["status", &run[..run.len() - 1]]).expect(0).prints(&[&run]);
    cluster.kgfleet(&coordinator, &["pause", &run[..4]]).expect(2).says(&["2 runs", &run, &newest]);
}
