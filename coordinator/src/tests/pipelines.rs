//! Judged benchmarks with played workers: coordinators that end at every step of a stage boundary, queues that are lost,
//! judges that say nothing.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use benchmarks::testing::FIXTURE;
use benchmarks::{RunName, kinds};
use domain::caller::{Caller, CallerRole};
use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, ExportItem, RowKind, RunLine, RunPhase, Submission,
};
use domain::exchange::{Delivery, LeaseId, Receipt, Serves, WorkExchange};
use domain::{DialogueKey, FailureCause, RunId};
use futures::StreamExt;
use serde_json::{Value, json};

use super::ground::{Ground, Started};
use super::worker::{Worker, keys};
use crate::BenchmarkCopy;

/// Rounds of tending and working after which a pipeline must be finished.
pub(super) const ROUNDS_MAX: usize = 20;

pub(super) fn submission(models: &[&str]) -> Submission {
    let model = |label: &&str| json!({"label": label, "connector": "openai-compatible"});
    let judge = |label: &str| json!({"label": label, "connector": "openai-compatible"});
    let configuration = json!({
        "name": "judged",
        "pipeline": "judged-facts",
        "iterations": 4,
        "tasks": ["FactExtractStatic"],
        "models": models.iter().map(model).collect::<Vec<_>>(),
        "judges": {"grader": judge("grader"), "reviewer": judge("reviewer")},
    });
    Submission { configuration, pack: None }
}

/// What a judge says of a question: always the same, whoever asks and whenever.
fn grade(uid: &str) -> f64 {
    match uid.bytes().map(u32::from).sum::<u32>() % 3 {
        0 => 0.0,
        1 => 0.5,
        _ => 1.0,
    }
}

fn delivery(lease: &LeaseId, key: &DialogueKey, answer: &str, outcome: &Value) -> Delivery {
    let at = "2025-01-01T00:00:00Z";
    let record = serde_json::from_value(json!({
        "key": key,
        "attempt": {
            "id": domain::RecordId::random(),
            "generation": lease.generation,
            "number": lease.attempt,
            "worker": "played",
        },
        "started_at": at,
        "ended_at": at,
        "rounds": [{
            "prompt": {"kind": "first", "text": "a question"},
            "prompted_at": at,
            "answer": {"text": answer},
            "answered_at": at,
        }],
        "outcome": outcome,
        "provenance": {
            "kgfleet": "0", "sampling": {}, "seed": 1,
            "task": {"class": "c", "version": "1", "case": "c", "pack": "p", "pack_hash": "h", "scorer": "s"},
            "model": {"connector": "played", "requested": "m"},
        },
    }));
    Delivery::of(lease.run.clone(), &record.unwrap()).unwrap()
}

/// What became of the questions: how often each was asked, and what was said.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub judged: BTreeMap<String, (usize, f64)>,
    /// Dialogues of models under test that were answered.
    pub answered: Vec<DialogueKey>,
    /// Judges that say nothing that counts, and how often they did.
    mute: Option<u32>,
}

/// Answers everything that is handed out.
pub(super) async fn work_off(coordinator: &Started, asked: &mut Asked) {
    let mut worker = Worker::new("w");
    worker.serves = ["m", "n", "grader", "reviewer"].map(|label| Serves::Model(label.to_owned())).to_vec();
    loop {
        worker.exchange(coordinator, 50).await;
        if worker.held.is_empty() {
            return;
        }
        for grant in std::mem::take(&mut worker.held) {
            let run = coordinator.parts().loaded.known(&grant.lease.run).await.unwrap();
            let mut records = Vec::new();
            for key in keys(&grant) {
                let name = RunName::read(run.id()).unwrap();
                let said = if name.stage == "ask" {
                    asked.answered.push(key.clone());
                    let answer = format!("answer {} of {}", key.iteration % 3, key.model);
                    let scores = json!({"state": "scored", "scores": {"norm_f-measure": 0.5}, "infos": {}});
                    delivery(&grant.lease, &key, &answer, &scores)
                } else {
                    let uid = run.tasks[0].cases[key.iteration as usize].clone();
                    match &mut asked.mute {
                        Some(times) => {
                            *times += 1;
                            let cause = FailureCause::JudgeUnparseable;
                            let outcome =
                                json!({"state": "unscored", "cause": cause, "infos": {}, "message": "?"});
                            delivery(&grant.lease, &key, "hm", &outcome)
                        }
                        None => {
                            let said = asked.judged.entry(uid.clone()).or_insert((0, grade(&uid)));
                            said.0 += 1;
                            let outcome =
                                json!({"state": "scored", "scores": {"grade": grade(&uid)}, "infos": {}});
                            delivery(&grant.lease, &key, "hm", &outcome)
                        }
                    }
                };
                records.push(said);
            }
            let receipts = coordinator.deliver(records).await.unwrap();
            assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored), "{receipts:?}");
            worker.finished.push(grant.lease);
        }
    }
}

/// Works and tends until a pipeline is finished; what it is then.
pub(super) async fn finish(coordinator: &Started, name: &RunId, asked: &mut Asked) -> BenchmarkView {
    for _ in 0..ROUNDS_MAX {
        work_off(coordinator, asked).await;
        coordinator.tend().await.unwrap();
        let view = coordinator.view(name).await.unwrap();
        if view.phase == RunPhase::Finished {
            return view;
        }
    }
    panic!("not finished: {:?}", coordinator.view(name).await);
}

/// Polls a future so often and drops it then: what a process does that is killed. Whether it was done.
pub async fn killed_after(polls: usize, future: impl Future) -> bool {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// What is the same whatever happened on the way.
pub(super) fn outcome(view: &BenchmarkView) -> Vec<(String, String, u64, Option<f64>)> {
    let cell = |cell: &domain::control::CellView| {
        (cell.task.to_string(), cell.model.to_string(), cell.scored, cell.mean)
    };
    view.cells.iter().map(cell).collect()
}

#[tokio::test]
async fn a_kind_of_a_test_is_judged_viewed_and_read_by_its_line_in_the_list_of_kinds_alone() {
    kinds::add_for_test(&FIXTURE);
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let mut submission = submission(&["m", "n"]);
    submission.configuration["pipeline"] = json!(FIXTURE.name);
    submission.configuration["judges"] =
        json!({"taste": {"label": "grader", "connector": "openai-compatible"}});
    let name = coordinator.submit(submission).await.unwrap().run;
    let view = finish(&coordinator, &name, &mut Asked::default()).await;
    let rows: Vec<_> = view.rows.iter().map(|row| (row.name.as_str(), row.kind)).collect();
    let expected = [("ask", RowKind::Stage), ("liking", RowKind::Stage), ("= liked", RowKind::Result)];
    assert_eq!(rows, expected);
    let reading = coordinator.read_judged(&name).await.unwrap().unwrap();
    assert_eq!(reading.facts.kind, FIXTURE.name);
    for model in &reading.facts.models {
        let model = coordinator.read_about(&reading, model).await.unwrap();
        let judged = model.judged(&reading.facts).unwrap();
        assert_eq!(judged.len(), 4);
        assert!(judged.iter().all(|judged| judged.number("liked").is_some()), "{judged:?}");
    }
}

#[tokio::test]
async fn a_coordinator_that_is_killed_at_any_step_of_a_boundary_changes_no_verdict() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m", "n"])).await.unwrap().run;
    let mut undisturbed = Asked::default();
    let expected = outcome(&finish(&coordinator, &name, &mut undisturbed).await);
    assert!(expected.iter().any(|(task, .., scored, _)| task == "review" && *scored > 0), "{expected:?}");
    assert!(undisturbed.judged.values().all(|(times, _)| *times == 1), "{undisturbed:?}");

    // Every second poll: a step that blocks takes two.
    for polls in (1..).step_by(2) {
        let mut ground = Ground::new();
        let name = ground.coordinator().submit(submission(&["m", "n"])).await.unwrap().run;
        let mut asked = Asked::default();
        let mut whole = true;
        let view = 'finished: {
            for _ in 0..ROUNDS_MAX {
                let coordinator = ground.coordinator();
                coordinator.tend().await.unwrap();
                work_off(&coordinator, &mut asked).await;
                coordinator.tend().await.unwrap();
                drop(coordinator);
                // Another one comes upon what the dialogues came to, is killed, and takes the queue with it.
                let killed = ground.coordinator();
                whole &= killed_after(polls, killed.parts().benchmarks.tend_judged(&name)).await;
                drop(killed);
                ground.lose_queue();
                let coordinator = ground.coordinator();
                let view = coordinator.view(&name).await.unwrap();
                if view.phase == RunPhase::Finished {
                    break 'finished view;
                }
            }
            panic!("killed after {polls} polls it is not finished");
        };
        assert_eq!(outcome(&view), expected, "killed after {polls} polls");
        assert_eq!(asked.judged, undisturbed.judged, "killed after {polls} polls");
        if whole {
            return; // Nothing is killed any more.
        }
    }
}

#[tokio::test]
async fn what_a_judge_leaves_open_is_not_scored_until_a_retry_and_no_zero() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m"])).await.unwrap().run;
    let mut asked = Asked { mute: Some(0), ..Asked::default() };
    let view = finish(&coordinator, &name, &mut asked).await;
    assert_eq!(asked.mute, Some(3), "answers that are alike are one question");
    assert_eq!((view.planned, view.scored, view.failed), (4, 0, 4));
    assert_eq!(view.models[0].mean.value, None, "not scored is not zero");
    assert_eq!(view.failures, [(FailureCause::JudgeUnparseable, 3)]);
    assert!(
        view.notes.iter().any(|note| note.contains("stage grade, judge-unparseable")),
        "{:?}",
        view.notes
    );

    asked.mute = None;
    assert_eq!(coordinator.retry(&name, &[]).await.unwrap(), 3);
    let view = finish(&coordinator, &name, &mut asked).await;
    assert_eq!((view.planned, view.scored, view.failed), (4, 4, 0));
    let mut direct = Asked::default();
    let other = Ground::new();
    let coordinator = other.coordinator();
    let name = coordinator.submit(submission(&["m"])).await.unwrap().run;
    let expected = finish(&coordinator, &name, &mut direct).await;
    assert_eq!(outcome(&view), outcome(&expected));
}

#[tokio::test]
async fn a_retry_that_is_killed_at_any_step_is_made_good_by_the_next_one() {
    for polls in 1.. {
        let mut ground = Ground::new();
        let coordinator = ground.coordinator();
        let name = coordinator.submit(submission(&["m"])).await.unwrap().run;
        let mut asked = Asked { mute: Some(0), ..Asked::default() };
        assert_eq!(finish(&coordinator, &name, &mut asked).await.failed, 4);
        asked.mute = None;
        let whole = killed_after(polls, coordinator.retry(&name, &[])).await;
        drop(coordinator);
        ground.lose_queue();
        // Whatever was queued is asked and answered before anybody asks for a retry again.
        let coordinator = ground.coordinator();
        for _ in 0..ROUNDS_MAX {
            coordinator.tend().await.unwrap();
            work_off(&coordinator, &mut asked).await;
        }
        coordinator.retry(&name, &[]).await.unwrap();
        let view = finish(&coordinator, &name, &mut asked).await;
        assert_eq!((view.scored, view.failed), (4, 0), "killed after {polls} polls");
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn a_pipeline_is_paused_extended_judged_again_and_removed() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m"])).await.unwrap().run;
    let mut asked = Asked::default();
    let paused = coordinator.command(&name, BenchmarkCommand::Pause).await.unwrap();
    assert_eq!(paused.phase, RunPhase::Paused);
    work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    assert!(asked.judged.is_empty() && coordinator.view(&name).await.unwrap().cells[0].scored == 0);
    coordinator.command(&name, BenchmarkCommand::Resume).await.unwrap();
    finish(&coordinator, &name, &mut asked).await;
    let before = asked.judged.clone();

    // One more model: what is judged stays, and nothing of it is asked again.
    let refused = coordinator.extend(&name, submission(&["n"])).await.unwrap_err().to_string();
    assert!(refused.contains("- models.0.label") && refused.contains("+ models.0.label"), "{refused}");
    coordinator.extend(&name, submission(&["m", "n"])).await.unwrap();
    let view = finish(&coordinator, &name, &mut asked).await;
    assert_eq!((view.models.len(), view.planned, view.generation), (2, 8, 2));
    assert!(before.iter().all(|(uid, said)| asked.judged[uid] == *said));

    // Another reviewer: the grades are taken over, and only reviews are asked for.
    let mut again = submission(&["m", "n"]);
    again.configuration["judges"]["reviewer"]["model"] = json!("other");
    again.configuration["reuse"] = json!(name.as_str());
    let mut anew = Asked::default();
    // The worker serves models by the name that is asked for.
    again.configuration["judges"]["reviewer"]["model"] = json!("m");
    let second = coordinator.submit(again).await.unwrap().run;
    assert_ne!(second, name);
    let judged_again = finish(&coordinator, &second, &mut anew).await;
    let reviews = view.cells.iter().filter(|cell| cell.task.as_str() == "review").map(|cell| cell.scored);
    assert_eq!(anew.judged.len() as u64, reviews.sum::<u64>());
    assert_eq!((judged_again.planned, judged_again.scored), (8, 8));

    let refused = coordinator.remove(&name, true).await.unwrap_err().to_string();
    assert!(refused.contains(second.as_str()), "{refused}");
    coordinator.remove(&second, false).await.unwrap();
    coordinator.remove(&name, false).await.unwrap();
    assert!(coordinator.list().await.unwrap().is_empty());
    let left: Vec<_> = std::fs::read_dir(ground.data.path().join("pipelines")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // The same configuration is the same pipeline, and everything is asked anew.
    assert_eq!(coordinator.submit(submission(&["m"])).await.unwrap().run, name);
    let mut anew = Asked::default();
    assert_eq!(finish(&coordinator, &name, &mut anew).await.scored, 4);
    assert_eq!(anew.judged.len(), before.len());
}

#[tokio::test]
async fn an_export_has_the_documents_and_then_every_run_with_its_records() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m", "n"])).await.unwrap().run;
    finish(&coordinator, &name, &mut Asked::default()).await;
    let mut again = submission(&["m", "n"]);
    again.configuration["judges"]["reviewer"]["model"] = json!("m");
    again.configuration["reuse"] = json!(name.as_str());
    let second = coordinator.submit(again).await.unwrap().run;
    finish(&coordinator, &second, &mut Asked::default()).await;
    let reader = coordinator.access(&Caller::new("r", [CallerRole::Reader], None));
    let items: Vec<_> = reader.records(&second).map(Result::unwrap).collect().await;
    let [ExportItem::Documents(json), rest @ ..] = items.as_slice() else { panic!("{items:?}") };
    let copy = BenchmarkCopy::read(json).unwrap();
    assert_eq!((copy.kind(), copy.name()), (Some("judged-facts"), Some(&second)));
    let runs: Vec<String> = copy.runs().map(ToString::to_string).collect();
    // The answers and grades are those of the first benchmark.
    let has = |beginning: String| runs.iter().any(|run| run.starts_with(&beginning));
    assert!(has(format!("{name}.ask.n.")) && has(format!("{name}.grade.m.")), "{runs:?}");
    assert!(has(format!("{second}.review.")) && !has(format!("{second}.ask.")), "{runs:?}");
    let mut exported: Vec<(String, usize)> = Vec::new();
    for item in rest {
        match item {
            ExportItem::Documents(_) => panic!("documents come once, and first"),
            ExportItem::Manifest(json) => {
                let manifest: results::RunManifest = serde_json::from_str(json).unwrap();
                exported.push((manifest.run.to_string(), 0));
            }
            ExportItem::Record { .. } => exported.last_mut().unwrap().1 += 1,
        }
    }
    assert_eq!(exported.iter().map(|(run, _)| run.clone()).collect::<Vec<_>>(), runs);
    assert!(exported.iter().all(|(_, records)| *records > 0), "{exported:?}");
    // A run of it can be had by itself, as its manifest and its records.
    let (first, records) = &exported[0];
    let run = RunId::new(first.as_str());
    let alone: Vec<_> = reader.records(&run).map(Result::unwrap).collect().await;
    assert!(matches!(alone[0], ExportItem::Manifest(_)) && alone.len() == 1 + records);
}

#[tokio::test]
async fn a_judged_benchmark_is_one_line_of_a_list_and_its_view_names_its_runs_and_rows() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m", "n"])).await.unwrap().run;
    let listed = coordinator.list().await.unwrap();
    assert_eq!(listed.iter().map(|view| &view.run).collect::<Vec<_>>(), [&name]);
    let view = finish(&coordinator, &name, &mut Asked::default()).await;
    assert_eq!(coordinator.list().await.unwrap().len(), 1);
    let rows: Vec<(&str, RowKind)> = view.rows.iter().map(|row| (row.name.as_str(), row.kind)).collect();
    let (stage, result) = (RowKind::Stage, RowKind::Result);
    let wanted =
        [("ask", stage), ("grade", stage), ("review", stage), ("= grade", result), ("= partly", result)];
    assert_eq!(rows, wanted);
    assert_eq!((view.headline.words.as_str(), view.headline.intervals), ("grade", false));
    assert!(view.cells.iter().all(|cell| rows.iter().any(|(row, _)| *row == cell.task.as_str())));
    let lines: Vec<(&str, &str)> =
        view.runs.iter().map(|line| (line.stage.as_str(), line.model.as_str())).collect();
    assert!(lines.contains(&("ask", "m")) && lines.contains(&("grade", "n")), "{lines:?}");
    let done = |line: &RunLine| line.phase == RunPhase::Finished && line.planned > 0 && line.remaining() == 0;
    assert!(view.runs.iter().all(done), "{:?}", view.runs);
    // What is asked of it concerns all its runs; units are numbered run by run.
    assert_eq!(coordinator.dead_letters(&name, None).await.unwrap(), []);
    assert_eq!(coordinator.requeue(&name, &[]).await.unwrap(), 0);
    assert!(coordinator.requeue(&name, &[0]).await.unwrap_err().message.contains("name the run"));
}

#[tokio::test]
async fn what_a_finished_pipeline_came_to_is_shown_without_its_logs() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m", "n"])).await.unwrap().run;
    let mut asked = Asked { mute: Some(0), ..Asked::default() };
    let expected = finish(&coordinator, &name, &mut asked).await;
    drop(coordinator);
    for run in std::fs::read_dir(ground.data.path().join("runs")).unwrap() {
        let log = run.unwrap().path().join("log");
        std::fs::rename(&log, log.with_extension("aside")).unwrap();
    }
    let seen = ground.coordinator().view(&name).await.unwrap();
    assert_eq!((outcome(&seen), &seen.notes), (outcome(&expected), &expected.notes));
    assert_eq!((seen.planned, seen.scored, seen.failed), (8, 0, 8));
}

#[tokio::test]
async fn answers_are_judged_again_only_as_they_were_asked() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["m"])).await.unwrap().run;
    let again = |field: &str, value: Value| {
        let mut again = submission(&["m"]);
        again.configuration["reuse"] = json!(name.as_str());
        again.configuration["judges"]["reviewer"]["model"] = json!("n");
        again.configuration[field] = value;
        again
    };
    for (field, value, line) in [
        ("iterations", json!(5), "+ iterations = 5"),
        ("tasks", json!(["FactExtractStatic", "RdfFriendCount-nt-1"]), "+ tasks.1"),
        ("seed", json!(9), "+ seed = 9"),
        ("models", json!([{"label": "n", "connector": "openai-compatible"}]), "+ models.0.label = \"n\""),
    ] {
        let refused = coordinator.submit(again(field, value)).await.unwrap_err().to_string();
        assert!(refused.contains(line) && refused.contains(name.as_str()), "{field}: {refused}");
    }
    // Other judges are no other question; in a fleet the answers may still be on their way.
    let second = coordinator.submit(again("name", json!("again"))).await.unwrap().run;
    assert_ne!(second, name);
}

#[tokio::test]
async fn a_judged_benchmark_that_cannot_go_on_says_why() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["model"])).await.unwrap().run;
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&name).await.unwrap().trouble, None);
    // The first of its runs cannot be read.
    let first = ground.data.path().join("runs").join(format!("{name}.ask.model.1"));
    std::fs::write(first.join("manifest.json"), "{").unwrap();
    drop(coordinator);
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&name).await.unwrap();
    assert!(view.phase == RunPhase::Active, "{view:?}");
    assert!(view.trouble.is_some_and(|trouble| trouble.contains("manifest")));
}

#[tokio::test]
async fn a_judged_benchmark_that_was_written_and_never_begun_says_so() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let name = coordinator.submit(submission(&["model"])).await.unwrap().run;
    drop(coordinator);
    // As after a death between its document and all else.
    for file in std::fs::read_dir(ground.data.path().join("pipelines")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with(&format!("{name}.state")) {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    for run in std::fs::read_dir(ground.data.path().join("runs")).unwrap().flatten() {
        std::fs::remove_dir_all(run.path()).unwrap();
    }
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    let trouble = coordinator.view(&name).await.unwrap().trouble.expect("it says why nothing happens");
    assert!(trouble.contains("never begun") && trouble.contains("kgfleet resume"), "{trouble}");
    coordinator.command(&name, BenchmarkCommand::Resume).await.unwrap();
    assert_eq!(coordinator.view(&name).await.unwrap().trouble, None);
}
