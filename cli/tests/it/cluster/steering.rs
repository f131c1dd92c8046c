//! Runs steered by hand: paused, resumed, cancelled, retried, joined.

use domain::control::RunPhase;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];

#[test]
fn a_paused_run_hands_out_nothing_until_it_is_resumed() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, 10);
    cluster.kgfleet(&coordinator, &["pause", &run]).expect(0).says(&["paused"]);
    let worker = cluster.worker("worker", &coordinator, &server);
    // The same configuration joins the run that is not finished.
    assert_eq!(cluster.submit(&coordinator, &TASKS, 10), run);
    assert_eq!(cluster.status(&coordinator, &run).phase, RunPhase::Paused);
    assert!(server.gate().take_asked().is_empty());
    cluster.kgfleet(&coordinator, &["resume", &run]).expect(0).says(&["active"]);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!(view.phase, RunPhase::Finished);
    winners(&cluster, 20);
    // A finished run is not joined. Without a worker the newest one stays unfinished.
    drop(worker);
    let newest = cluster.submit(&coordinator, &TASKS, 10);
    assert_ne!(newest, run);
    // Names are found by their beginning, and by what is newest.
    cluster.kgfleet(&coordinator, &["status", "latest"]).expect(0).prints(&[&newest]);
    cluster.kgfleet(&coordinator, &["status", &run[..run.len() - 1]]).expect(0).prints(&[&run]);
    cluster.kgfleet(&coordinator, &["pause", &run[..4]]).expect(2).says(&["2 runs", &run, &newest]);
    cluster.kgfleet(&coordinator, &["pause", "latest"]).expect(0).says(&["paused", &newest]);
}

#[test]
fn a_run_is_extended_with_a_list_of_what_changes() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let (one, two) = (cluster.coordinator(), cluster.coordinator());
    let of = |iterations: u32, tasks: &[&str]| {
        let model = "[[models]]\nlabel = 'sim'\nconnector = 'openai-compatible'\n";
        format!("name = 'growing'\niterations = {iterations}\ntasks = {tasks:?}\n{model}")
    };
    let file = cluster.data.write("growing.toml", of(4, &[NT_TASK]));
    let file = file.to_str().unwrap();
    let run = cluster.kgfleet(&one, &["submit", file]).expect(0).stdout.trim().to_owned();
    let _worker = cluster.worker("worker", &one, &server);
    cluster.watch(&one, &run).1.expect(0);
    cluster.data.write("growing.toml", of(2, &[NT_TASK]));
    cluster.kgfleet(&two, &["submit", file, "--extend", "latest"]).expect(2).says(&["--extend only adds"]);
    cluster.data.write("growing.toml", of(6, &[TURTLE_TASK, NT_TASK]));
    let extended = cluster.kgfleet(&two, &["submit", file, "--extend", &run]).expect(0);
    extended.says(&["- iterations = 4", "+ iterations = 6"]).prints(&[&run]);
    let (view, finished) = cluster.watch(&one, &run);
    finished.expect(0);
    assert_eq!((view.planned, view.scored), (12, 12));
    winners(&cluster, 12);
}

#[test]
fn a_cancelled_run_stops_and_goes_on_when_it_is_resumed() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    server.gate().close_after(6);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, 20);
    let _worker = cluster.worker("worker", &coordinator, &server);
    server.gate().until_held(2);
    cluster.kgfleet(&coordinator, &["cancel", &run]).expect(0).says(&["cancelled"]);
    cluster.watch(&coordinator, &run).1.expect(130);
    server.gate().open();
    cluster.kgfleet(&coordinator, &["resume", &run]).expect(0);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (40, 0));
    winners(&cluster, 40);
}

#[test]
fn failed_dialogues_are_retried_by_cause() {
    let Some(cluster) = Cluster::start() else { return };
    let first = FaultWhen::NthOfConversation(1);
    let refuse = FaultRule::new(first, FaultKind::Status { code: 400, retry_after_s: None });
    let server =
        Server::with_faults(vec![FaultRule { prompt_contains: Some(TURTLE_PROMPT.to_owned()), ..refuse }]);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, 8);
    let _worker = cluster.worker("worker", &coordinator, &server);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(1);
    assert_eq!((view.scored, view.failed), (8, 8));
    cluster
        .kgfleet(&coordinator, &["retry", &run, "--cause", "timeout"])
        .expect(0)
        .says(&["0 failed dialogues"]);
    let retried = cluster.kgfleet(&coordinator, &["retry", &run, "--cause", "bad-request"]).expect(0);
    retried.says(&["8 failed dialogues"]);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (16, 0));
    assert_eq!(cluster.data.run().entries().len(), 24, "a scored record supersedes a failed one");
    winners(&cluster, 16);
    cluster.kgfleet(&coordinator, &["status"]).expect(0).prints(&[&run, "finished"]);
    cluster.kgfleet(&coordinator, &["dlq", "ls", &run]).expect(0);
}
