//! Failed dialogues asked again.

use domain::{FailureCause, Outcome};
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use crate::harness::{Data, NT_TASK, Server, TURTLE_PROMPT, TURTLE_TASK};

const ITERATIONS: usize = 8;

#[test]
fn failed_dialogues_are_asked_again_by_cause_and_superseded() {
    // The first request of every conversation about Turtle is refused.
    let first = FaultWhen::NthOfConversation(1);
    let refuse = FaultRule::new(first, FaultKind::Status { code: 400, retry_after_s: None });
    let server =
        Server::with_faults(vec![FaultRule { prompt_contains: Some(TURTLE_PROMPT.to_owned()), ..refuse }]);
    let data = Data::new();
    let arguments = server.run_arguments(&[NT_TASK, TURTLE_TASK], ITERATIONS as u32, 8);
    let first = data.kgfleet(&arguments).expect(1);
    let first = first.says(&["8 dialogues scored, 8 failed", "kgfleet retry"]);
    first.prints(&["not scored: 8 dialogues (bad-request)", "(8 failed)"]);
    let run = data.run();
    let before = run.records();
    for (key, entry) in &before {
        let failed = key.task.as_str() == TURTLE_TASK;
        match &entry.outcome {
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
