//! Benchmarks that may use so much and no more: where they stop, who counts what they have used, and how they go on.

use std::collections::BTreeSet;

use domain::control::{BenchmarkView, Control, RunPhase, Submission};
use domain::exchange::{Delivery, LeaseId, Outlook, Receipt, Serves, WorkExchange};
use domain::{DialogueKey, ErrorCode, RunId};
use harness::played_worker::record;
use serde_json::{Value, json};

use super::ground::*;
use super::pipelines;
use super::worker::*;
use crate::{CoordinatorOptions, Scope};

/// Tokens of a dialogue, unless a test says otherwise: half of them for the prompt.
const TOKENS: u64 = 10;

/// Dialogues that a worker with room for one of each model of [`submission`] is handed at once, at most.
const AT_ONCE: u64 = 2 * 10;

/// A submission with this cap.
fn capped(submission: Submission, cap: Value) -> Submission {
    let mut capped = submission;
    capped.configuration["cap"] = cap;
    capped
}

/// A record of a dialogue that used so many tokens, and came to this.
fn paid(lease: &LeaseId, key: &DialogueKey, tokens: u64, outcome: &Value) -> Delivery {
    let usage = json!({"prompt_tokens": tokens / 2, "completion_tokens": tokens - tokens / 2});
    let rounds = json!([{
        "prompt": {"kind": "first", "text": "a question"},
        "prompted_at": "2025-01-01T00:00:00Z",
        "answer": {"text": format!("answer {} of {}", key.iteration % 3, key.model), "usage": usage},
        "answered_at": "2025-01-01T00:00:01Z",
    }]);
    Delivery::of(lease.run.clone(), &record(lease, key, outcome, &rounds)).unwrap()
}

/// Scores of every class that these tests ask.
fn scores() -> Value {
    json!({"state": "scored", "scores": {"f1": 1.0, "norm_f-measure": 0.5, "grade": 1.0}, "infos": {}})
}

/// Answers what is handed out, a unit of each model at a time, until nothing is; what was asked.
async fn answer(coordinator: &Started, worker: &mut Worker) -> Vec<DialogueKey> {
    let mut asked = Vec::new();
    loop {
        worker.exchange(coordinator, 1).await;
        if worker.held.is_empty() {
            return asked;
        }
        for grant in std::mem::take(&mut worker.held) {
            let keys = keys(&grant);
            let records = keys.iter().map(|key| paid(&grant.lease, key, TOKENS, &scores())).collect();
            let receipts = coordinator.deliver(records).await.unwrap();
            assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored), "{receipts:?}");
            asked.extend(keys);
            worker.finished.push(grant.lease);
        }
    }
}

/// Why the models of a benchmark are blocked: all of them for the same reason.
fn why_blocked(view: &BenchmarkView) -> &str {
    let reasons = view.blocked();
    assert_eq!(reasons.len(), 1, "{view:?}");
    assert_eq!(reasons[0].1.len(), view.models.len(), "{view:?}");
    reasons[0].0
}

/// What a coordinator has counted of a run, in tokens.
async fn counted(coordinator: &Started, run: &RunId) -> u64 {
    let run = coordinator.parts().loaded.known(run).await.unwrap();
    run.spent()
}

#[tokio::test]
async fn a_run_stops_at_its_cap_and_goes_on_under_a_higher_one() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(capped(submission(20), json!({"tokens": 200}))).await.unwrap().run;
    let mut worker = Worker::new("w");
    let mut asked = answer(&coordinator, &mut worker).await;
    let (used, left) = (asked.len() as u64 * TOKENS, 80 - asked.len() as u64);
    assert!((200..200 + AT_ONCE * TOKENS).contains(&used), "what was handed out at once: {used}");
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    let why = why_blocked(&view);
    assert!(why.starts_with(&format!("capped: {used} of 200 tokens used; raise `cap.tokens`")), "{why}");
    assert!(why.contains(&format!("kgfleet submit CONFIG --extend {run}")), "{why}");
    assert_eq!((view.phase, view.eta_s, view.planned - view.done()), (RunPhase::Active, None, left));

    // Whoever starts servers, or waits beside one, learns that nothing is handed out.
    let told = Worker::until("asks", &["org/a"]).exchange(&coordinator, 1).await;
    assert_eq!((told.outlook, told.grants.len()), (Some(Outlook::Held), 0));
    assert_eq!(coordinator.needs(&["org/a".to_owned()]).await.unwrap()[0].dialogues, 0);

    // One that starts counts the records again.
    drop(coordinator);
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert!(answer(&coordinator, &mut worker).await.is_empty());
    assert_eq!(why_blocked(&coordinator.view(&run).await.unwrap()), why);
    // Who extends it and says nothing of a cap keeps it.
    coordinator.extend(&run, submission(20)).await.unwrap();
    assert!(answer(&coordinator, &mut worker).await.is_empty());

    let raised = capped(submission(20), json!({"tokens": 100_000}));
    let extended = coordinator.extend(&run, raised).await.unwrap();
    assert!(extended.notes.iter().any(|note| note == "  + cap.tokens = 100000"), "{:?}", extended.notes);
    asked.extend(answer(&coordinator, &mut worker).await);
    assert_eq!(
        (asked.len(), asked.iter().collect::<BTreeSet<_>>().len()),
        (80, 80),
        "nothing is asked twice"
    );
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
}

#[tokio::test]
async fn every_record_was_paid_for_once_whoever_counts() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let run = one.submit(capped(submission(2), json!({"tokens": 1_000_000}))).await.unwrap().run;
    two.tend().await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&one, 1).await;
    let grant = worker.held[0].clone();
    let key = keys(&grant).remove(0);
    let failure = json!({"state": "failed", "cause": "timeout", "message": "late"});
    let records = [paid(&grant.lease, &key, 500, &failure), paid(&grant.lease, &key, 700, &scores())];
    // The worker hears nothing of the first one, and delivers them again.
    for coordinator in [&one, &two] {
        assert_eq!(coordinator.deliver(records.to_vec()).await.unwrap(), [Receipt::Stored, Receipt::Stored]);
    }
    for coordinator in [&one, &two, &ground.coordinator()] {
        coordinator.tend().await.unwrap();
        assert_eq!(counted(coordinator, &run).await, 1_200, "the failed dialogue, too");
    }
}

#[tokio::test]
async fn a_submission_changes_the_cap_on_one_machine_and_in_a_fleet_only_by_name() {
    let low = || capped(submission(2), json!({"tokens": 100}));
    let high = || capped(submission(2), json!({"tokens": 200}));
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(low()).await.unwrap().run;
    assert_eq!(coordinator.submit(low()).await.unwrap().run, run);
    assert_eq!(coordinator.submit(submission(2)).await.unwrap().run, run, "it says nothing of a cap");
    let refused = coordinator.submit(high()).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Invalid, "{refused}");
    assert!(refused.message.contains(&format!("--extend {run}")), "{refused}");

    let mut ground = Ground::new();
    let at_home = |mut submission: Submission| {
        submission.configuration["models"][0]["endpoint"] = json!("http://127.0.0.1:1/v1");
        submission
    };
    let local = || CoordinatorOptions { scope: Scope::Local, ..config() };
    let run = ground.coordinator_with(local()).submit(at_home(low())).await.unwrap().run;
    ground.lose_queue();
    let coordinator = ground.coordinator_with(local());
    let proposal = coordinator.propose(at_home(high())).await.unwrap();
    assert_eq!(proposal.changes(), ["  - cap.tokens = 100", "  + cap.tokens = 200"]);
    assert_eq!(coordinator.begin(&proposal).await.unwrap().run, run);
    assert!(ground.data.path().join(format!("runs/{run}/manifest-2.json")).is_file());
}

/// Answers and tends until nothing happens any more; what was asked.
async fn settle(coordinator: &Started) -> Vec<DialogueKey> {
    let mut worker = Worker::new("w");
    worker.serves = ["m", "grader", "reviewer"].map(|label| Serves::Model(label.to_owned())).to_vec();
    let mut asked = Vec::new();
    for _ in 0..pipelines::ROUNDS_MAX {
        coordinator.tend().await.unwrap();
        asked.extend(answer(coordinator, &mut worker).await);
    }
    asked
}

#[tokio::test]
async fn the_stages_of_a_judged_benchmark_share_its_cap() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let with_cap = |tokens: u64| capped(pipelines::submission(&["m"]), json!({"tokens": tokens}));
    // Four answers, of which two are alike, and one of three questions to the grader.
    let name = coordinator.submit(with_cap(5 * TOKENS)).await.unwrap().run;
    let mut asked = settle(&coordinator).await;
    assert_eq!(asked.len(), 5, "{asked:?}");
    let told = "capped: 50 of 50 tokens used; raise `cap.tokens`";
    let view = coordinator.view(&name).await.unwrap();
    assert!(why_blocked(&view).starts_with(told), "{view:?}");
    let refused = coordinator.submit(with_cap(1_000)).await.unwrap_err();
    assert!(refused.message.contains(&format!("--extend {name}")), "{refused}");

    // One that starts reads the run that asked, although that is over.
    let other = ground.coordinator();
    assert!(settle(&other).await.is_empty());
    assert!(why_blocked(&other.view(&name).await.unwrap()).starts_with(told));

    let extended = other.extend(&name, with_cap(1_000)).await.unwrap();
    assert_eq!((extended.run.clone(), extended.generation), (name.clone(), 2));
    asked.extend(settle(&other).await);
    assert_eq!((asked.len(), asked.iter().collect::<BTreeSet<_>>().len()), (7, 7), "nothing is asked twice");
    let view = other.view(&name).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 4), "{view:?}");
}
