//! Pipelines that get more tasks and iterations: while they go on, afterwards, and with a coordinator that dies over it.

use domain::RunId;
use domain::caller::{Caller, CallerRole};
use domain::control::{BenchmarkView, Control, RunPhase, Submission};
use serde_json::json;

use super::ground::{Ground, Started};
use super::pipelines::{Asked, ROUNDS_MAX, finish, killed_after, outcome, submission, work_off};

/// Another task, more iterations, and fewer of them for one of the tasks.
pub(super) fn more() -> Submission {
    let mut more = submission(&["m", "n"]);
    more.configuration["iterations"] = json!(7);
    more.configuration["tasks"] = json!(["RdfFriendCount-nt-1", "FactExtractStatic"]);
    more.configuration["task_iterations"] = json!({"RdfFriendCount-nt-1": 2});
    more
}

/// Dialogues of [`more`].
pub(super) const MORE: u64 = 2 * (7 + 2);

/// What comes out of [`more`] for who begins with it, and what is asked for that.
async fn directly() -> (Vec<(String, String, u64, Option<f64>)>, Asked) {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(more()).await.unwrap().run;
    let mut asked = Asked::default();
    let view = finish(&coordinator, &name, &mut asked).await;
    assert_eq!((view.planned, view.scored), (MORE, MORE));
    (outcome(&view), asked)
}

/// Results of dialogues; how many questions a stage has depends on what was asked before.
fn results(outcome: &[(String, String, u64, Option<f64>)]) -> Vec<&(String, String, u64, Option<f64>)> {
    outcome.iter().filter(|(task, ..)| task == "ask" || task.starts_with('=')).collect()
}

pub(super) fn each_once(asked: &Asked) {
    assert!(asked.judged.values().all(|(times, _)| *times == 1), "{:?}", asked.judged);
    let mut answered = asked.answered.clone();
    answered.sort();
    answered.dedup();
    assert_eq!(answered.len(), asked.answered.len(), "no model is asked twice");
}

async fn finished(coordinator: &Started, name: &RunId) -> bool {
    coordinator.view(name).await.unwrap().phase == RunPhase::Finished
}

#[tokio::test]
async fn a_finished_pipeline_goes_on_with_what_is_new_at_every_coordinator() {
    let (expected, of_all) = directly().await;
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let name = one.submit(submission(&["m", "n"])).await.unwrap().run;
    let mut asked = Asked::default();
    finish(&one, &name, &mut asked).await;
    two.tend().await.unwrap();
    assert!(finished(&two, &name).await);

    let extended = two.extend(&name, more()).await.unwrap();
    for line in ["  - iterations = 4", "  + iterations = 7", "  + tasks.1 = \"FactExtractStatic\""] {
        assert!(extended.notes.iter().any(|note| note == line), "{line}: {:?}", extended.notes);
    }
    assert_eq!(extended.phase, RunPhase::Active);
    one.tend().await.unwrap();
    let view = finish(&one, &name, &mut asked).await;
    assert_eq!((view.planned, view.scored, view.generation), (MORE, MORE, 2));
    assert_eq!(results(&outcome(&view)), results(&expected));
    assert_eq!(asked.judged, of_all.judged);
    each_once(&asked);
    two.tend().await.unwrap();
    assert_eq!(outcome(&two.view(&name).await.unwrap()), outcome(&view));
    // The same again changes nothing, and one that takes away is refused.
    two.extend(&name, more()).await.unwrap();
    one.tend().await.unwrap();
    assert_eq!(outcome(&finish(&one, &name, &mut asked).await), outcome(&view));
    each_once(&asked);
    let refused = one.extend(&name, submission(&["m", "n"])).await.unwrap_err().to_string();
    assert!(refused.contains("--extend only adds") && refused.contains("RdfFriendCount-nt-1"), "{refused}");
    let mut other_judge = more();
    other_judge.configuration["judges"]["grader"]["model"] = json!("n");
    let refused = one.extend(&name, other_judge).await.unwrap_err().to_string();
    assert!(refused.contains("kgfleet rejudge") && refused.contains("judges.grader.model"), "{refused}");
}

#[tokio::test]
async fn a_pipeline_is_extended_while_models_and_judges_are_at_work() {
    let (expected, of_all) = directly().await;
    // So many rounds are done before: nothing, answers, grades, reviews.
    for rounds in 0..4 {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let name = one.submit(submission(&["m", "n"])).await.unwrap().run;
        two.tend().await.unwrap();
        let mut asked = Asked::default();
        for _ in 0..rounds {
            work_off(&two, &mut asked).await;
            two.tend().await.unwrap();
        }
        one.extend(&name, more()).await.unwrap();
        // Who has not heard of it goes on for a while.
        work_off(&two, &mut asked).await;
        for _ in 0..ROUNDS_MAX {
            let (first, second) = tokio::join!(one.tend(), two.tend());
            first.and(second).unwrap();
            work_off(&one, &mut asked).await;
            work_off(&two, &mut asked).await;
            if finished(&one, &name).await {
                break;
            }
        }
        let view = one.view(&name).await.unwrap();
        assert_eq!((view.phase, view.planned), (RunPhase::Finished, MORE), "after {rounds} rounds");
        assert_eq!(results(&outcome(&view)), results(&expected), "after {rounds} rounds");
        assert_eq!(asked.judged, of_all.judged, "after {rounds} rounds");
        each_once(&asked);
    }
}

#[tokio::test]
async fn who_extends_a_pipeline_and_dies_at_any_step_loses_nothing() {
    let (expected, of_all) = directly().await;
    for polls in (1..).step_by(7) {
        let mut ground = Ground::new();
        let one = ground.coordinator();
        let name = one.submit(submission(&["m", "n"])).await.unwrap().run;
        let mut asked = Asked::default();
        finish(&one, &name, &mut asked).await;
        drop(one);
        let killed = ground.coordinator();
        let whole = killed_after(polls, killed.extend(&name, more())).await;
        drop(killed);
        ground.lose_queue();
        // What was not written down is asked for again; what was goes on by itself.
        let coordinator = ground.coordinator();
        coordinator.tend().await.unwrap();
        coordinator.extend(&name, more()).await.unwrap();
        let view = finish(&coordinator, &name, &mut asked).await;
        assert_eq!(results(&outcome(&view)), results(&expected), "killed after {polls} polls");
        assert_eq!(asked.judged, of_all.judged, "killed after {polls} polls");
        each_once(&asked);
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn judging_again_follows_the_answers_when_both_are_extended() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m", "n"])).await.unwrap().run;
    let mut asked = Asked::default();
    finish(&coordinator, &name, &mut asked).await;
    let mut again = submission(&["m", "n"]);
    again.configuration["judges"]["reviewer"]["model"] = json!("m");
    again.configuration["reuse"] = json!(name.as_str());
    let second = coordinator.submit(again).await.unwrap().run;
    finish(&coordinator, &second, &mut Asked::default()).await;
    let mut extended = more();
    extended.configuration["judges"]["reviewer"]["model"] = json!("m");
    let refused = coordinator.extend(&second, extended.clone()).await.unwrap_err().to_string();
    assert!(refused.contains(name.as_str()) && refused.contains("+ iterations = 7"), "{refused}");
    coordinator.extend(&name, more()).await.unwrap();
    finish(&coordinator, &name, &mut asked).await;
    coordinator.extend(&second, extended).await.unwrap();
    let mut anew = Asked::default();
    let view = finish(&coordinator, &second, &mut anew).await;
    assert_eq!((view.planned, view.scored), (MORE, MORE));
    assert!(anew.answered.is_empty(), "the answers are there");
}

#[tokio::test]
async fn a_pipeline_says_who_did_what_to_it() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let alice = coordinator.access(&Caller::new("alice", [CallerRole::Operator], None));
    let submitted = alice.submit(submission(&["m"])).await.unwrap();
    let said = |view: &BenchmarkView| {
        let words = |entry: &domain::control::HistoryEntry| format!("{} {}", entry.who, entry.what);
        view.history.iter().map(words).collect::<Vec<_>>()
    };
    assert_eq!(said(&submitted), ["alice submitted"]);
    let name = submitted.run;
    finish(&coordinator, &name, &mut Asked::default()).await;
    alice.extend(&name, submission(&["m", "n"])).await.unwrap();
    alice.retry(&name, &[]).await.unwrap();
    let expected = ["alice submitted", "alice extended", "alice retried 0 dialogues"];
    assert_eq!(said(&ground.coordinator().view(&name).await.unwrap()), expected);
    coordinator.remove(&name, true).await.unwrap();
    // A pipeline of the same configuration begins anew.
    assert_eq!(said(&alice.submit(submission(&["m"])).await.unwrap()), ["alice submitted"]);
}
