//! Failed dialogues asked again.

use domain::{FailureCause, Outcome};
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::{Data, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

const ITERATIONS: usize = 8;

/// A server that refuses the first request of every conversation about Turtle with this status.
fn refusing_once(code: u16) -> Server {
    let first = FaultWhen::NthOfConversation(1);
    let refuse = FaultRule::new(first, FaultKind::Status { code, retry_after_s: None });
    Server::with_faults(vec![FaultRule { prompt_contains: Some(TURTLE_PROMPT.to_owned()), ..refuse }])
}

#[test]
fn failed_dialogues_are_asked_again_by_cause_and_superseded() {
    let server = refusing_once(400);
    let data = Data::new();
    let arguments = server.run_arguments(&[NT_TASK, TURTLE_TASK], ITERATIONS as u32, 8);
    let first = data.kgfleet(&arguments).expect(1);
    let first = first.says(&["8 dialogues scored, 8 failed", "kgfleet retry"]);
    first.prints(&["not scored: 8 dialogues (bad-request)", "(8 failed)"]);
    let run = data.run();
    let before = run.records();
    for (key, entry) in &before {
        let failed = key.task.as_str() == TURTLE_TASK;
        match &entry.record.outcome {
            Outcome::Scored { .. } => assert!(!failed, "{key}"),
            Outcome::Unscored { cause, message, .. } | Outcome::Failed { cause, message } => {
                assert!(
                    failed && *cause == FailureCause::BadRequest && !message.is_empty(),
                    "{key}: {message}"
                );
            }
        }
    }
    // Failed is a record too: the run is complete, and its gaps are named.
    data.kgfleet(&["verify", run.name()]).expect(0).prints(&["16 dialogues: 8 scored, 8 failed"]);

    server.gate().take_asked();
    data.kgfleet(&["retry", run.name(), "--cause", "timeout"]).expect(1);
    assert!(server.gate().take_asked().is_empty(), "no failure has this cause");
    assert_eq!(run.entries().len(), 2 * ITERATIONS);

    data.kgfleet(&["retry", run.name(), "--cause", "bad-request"])
        .expect(0)
        .says(&["16 dialogues scored, 0 failed"]);
    assert_eq!(server.gate().take_asked().len(), ITERATIONS);
    assert_eq!(run.entries().len(), 3 * ITERATIONS);
    let verified = data.kgfleet(&["verify", run.name()]).expect(0);
    verified.prints(&["16 dialogues: 16 scored, 0 failed; 8 records superseded"]);
    let shown = format!("{}/{TURTLE_TASK}/0", crate::harness::server::MODEL);
    data.kgfleet(&["show", run.name(), &shown]).expect(0).prints(&["--- scores ---"]);
    data.kgfleet(&["export", run.name(), "--format", "result-json"]).expect(0).says(&["(16 dialogues)"]);

    // Nothing is left to ask, and a scored record is never asked again.
    data.kgfleet(&["retry", run.name()]).expect(0);
    assert!(server.gate().take_asked().is_empty());
    data.kgfleet(&["retry", run.name(), "--cause", "gremlins"]).expect(2).says(&["gremlins", "bad-request"]);
}

#[test]
fn faults_of_transport_are_repeated_and_remembered() {
    let server = refusing_once(503);
    let data = Data::new();
    let arguments = server.run_arguments(&[NT_TASK, TURTLE_TASK], ITERATIONS as u32, 8);
    data.kgfleet(&arguments).expect(0).says(&["16 dialogues scored, 0 failed"]);
    for (key, entry) in data.run().records() {
        let causes: Vec<FailureCause> =
            entry.record.rounds.iter().flat_map(|round| &round.failed_calls).map(|call| call.cause).collect();
        let expected: &[FailureCause] =
            if key.task.as_str() == TURTLE_TASK { &[FailureCause::Overloaded] } else { &[] };
        assert_eq!(causes, expected, "{key}");
    }
}
