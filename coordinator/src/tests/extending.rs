//! Runs of a fleet that get more to ask while they go on, and afterwards.

use std::collections::BTreeSet;
use std::pin::pin;

use domain::control::{Control, RunPhase, Submission};
use domain::exchange::{Receipt, WorkExchange};
use domain::{DialogueKey, ErrorCode, FailureCause, RunId};
use serde_json::json;

use super::ground::*;
use super::pipelines::killed_after;
use super::worker::*;

/// The submission of these tests with a task in front of the others, another model and more iterations.
pub(super) fn more() -> Submission {
    let mut more = submission(6);
    more.configuration["tasks"] =
        json!(["RdfFriendCount-xml-1", "RdfFriendCount-turtle-1", "RdfFriendCount-nt-1"]);
    let another = json!({"label": "c", "connector": "openai-compatible", "model": "org/a", "iterations": 2});
    more.configuration["models"].as_array_mut().unwrap().push(another);
    more
}

/// Rounds of working and tending after which a run must be finished.
const ROUNDS_MAX: usize = 6;

/// Dialogues of [`more`].
pub(super) const MORE: usize = 2 * 3 * 6 + 3 * 2;

pub(super) async fn finish(coordinator: &Started, run: &RunId, worker: &mut Worker) -> Vec<DialogueKey> {
    let mut asked = Vec::new();
    for _ in 0..ROUNDS_MAX {
        worker.work_off(coordinator, &mut asked).await;
        coordinator.tend().await.unwrap();
        let view = coordinator.view(run).await.unwrap();
        if view.phase == RunPhase::Finished {
            assert_eq!(view.planned, view.scored);
            return asked;
        }
    }
    panic!("not finished: {:?}", coordinator.view(run).await);
}

#[tokio::test]
async fn a_run_of_two_coordinators_is_extended_under_way_and_nothing_is_asked_twice() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let run = one.submit(submission(4)).await.unwrap().run;
    two.tend().await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&two, 5).await;
    let grant = worker.held.remove(0);
    let mut answered: BTreeSet<DialogueKey> = keys(&grant).into_iter().collect();
    two.deliver(answered.iter().map(|key| scored(&grant.lease, key)).collect()).await.unwrap();
    worker.finished.push(grant.lease);
    let before = two.view(&run).await.unwrap();

    let extended = one.extend(&run, more()).await.unwrap();
    assert_eq!((extended.planned, extended.phase), (MORE as u64, RunPhase::Active));
    assert!(extended.generation > before.generation, "{} {}", extended.generation, before.generation);
    for line in ["  - iterations = 4", "  + iterations = 6", "  + tasks.2 = \"RdfFriendCount-nt-1\""] {
        assert!(extended.notes.iter().any(|note| note == line), "{line}: {:?}", extended.notes);
    }
    assert!(ground.data.path().join(format!("runs/{run}/manifest-2.json")).is_file());

    // The other coordinator has not heard of it. An answer of before is taken, its leases are not.
    let held = worker.held[0].clone();
    let late = scored(&held.lease, &keys(&held)[0]);
    answered.insert(late.key.clone());
    let receipts = two.deliver(vec![late.clone()]).await;
    assert!(
        receipts.as_ref().is_err_and(|error| error.code.is_transient())
            || receipts == Ok(vec![Receipt::Stored])
    );
    two.tend().await.unwrap();
    assert_eq!(two.deliver(vec![late]).await.unwrap(), [Receipt::Stored], "a worker repeats it");
    let lost = worker.held.len();
    let orders = worker.exchange(&two, 0).await;
    assert_eq!(orders.lost.len(), lost, "its dialogues are asked by new leases");
    assert_eq!(two.run_material(&run).await.unwrap().tasks.len(), 3);

    let asked = finish(&two, &run, &mut worker).await;
    assert!(asked.iter().all(|key| !answered.contains(key)), "nothing recorded is asked again");
    assert_eq!(asked.len() + answered.len(), MORE);
    one.tend().await.unwrap();
    let (first, second) = (one.view(&run).await.unwrap(), two.view(&run).await.unwrap());
    assert_eq!((first.phase, first.scored, &first.cells), (RunPhase::Finished, MORE as u64, &second.cells));
    assert_eq!(winners(&one, &run).await.len(), MORE);
    assert_eq!(first, recomputed(&one, &first).await);
}

#[tokio::test]
async fn a_finished_run_goes_on_with_what_is_new() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let mut worker = Worker::new("w");
    assert_eq!(finish(&coordinator, &run, &mut worker).await.len(), 16);
    let before = winners(&coordinator, &run).await;
    coordinator.extend(&run, more()).await.unwrap();
    coordinator.tend().await.unwrap();
    let asked = finish(&coordinator, &run, &mut worker).await;
    assert_eq!(asked.len(), MORE - 16);
    let after = winners(&coordinator, &run).await;
    assert!(before.iter().all(|(key, record)| after[key] == *record), "what was recorded stays");
    // The same again changes nothing.
    let again = coordinator.extend(&run, more()).await.unwrap();
    assert_eq!((again.phase, again.planned), (RunPhase::Finished, MORE as u64));
    assert!(!ground.data.path().join(format!("runs/{run}/manifest-3.json")).exists());
}

#[tokio::test]
async fn who_extends_and_dies_at_any_step_loses_nothing() {
    for polls in (1..).step_by(2) {
        let ground = Ground::new();
        let dying = ground.coordinator();
        let run = dying.submit(submission(4)).await.unwrap().run;
        let mut worker = Worker::new("w");
        worker.exchange(&dying, 5).await;
        let whole = killed_after(polls, pin!(dying.extend(&run, more()))).await;
        drop(dying);
        let (one, two) = ground.two_users();
        // What was written down is done, whoever noticed; and who asks again gets the rest.
        let mut asked = Vec::new();
        for _ in 0..3 {
            // Between noticing and reading anew a worker is told to come again.
            let _ = two.exchange(worker.report(0)).await;
            two.tend().await.unwrap();
        }
        worker.held.clear();
        ground.expire_leases();
        two.tend().await.unwrap();
        worker.work_off(&two, &mut asked).await;
        two.tend().await.unwrap();
        one.extend(&run, more()).await.unwrap();
        two.tend().await.unwrap();
        asked.extend(finish(&one, &run, &mut worker).await);
        assert_eq!(asked.len(), MORE, "killed after {polls} polls");
        assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), MORE, "killed after {polls} polls");
        assert_eq!(winners(&two, &run).await.len(), MORE);
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn of_two_extensions_at_once_one_counts() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let run = one.submit(submission(2)).await.unwrap().run;
    two.tend().await.unwrap();
    let (first, second) = tokio::join!(one.extend(&run, submission(3)), two.extend(&run, submission(5)));
    let planned = match (&first, &second) {
        (Ok(view), Err(error)) | (Err(error), Ok(view)) => {
            assert!(error.code == ErrorCode::Conflict || error.code.is_transient(), "{error}");
            view.planned
        }
        // One after the other.
        (Ok(first), Ok(second)) => first.planned.max(second.planned),
        both => panic!("{both:?}"),
    };
    one.tend().await.unwrap();
    two.tend().await.unwrap();
    let mut worker = Worker::new("w");
    assert_eq!(finish(&one, &run, &mut worker).await.len() as u64, planned);
}

#[tokio::test]
async fn what_is_to_be_asked_again_stays_so_where_a_task_comes_before_it() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(1)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 50).await;
    let fails =
        |key: &DialogueKey| key.task.as_str() == "RdfFriendCount-turtle-1" && key.model.as_str() == "a";
    for grant in std::mem::take(&mut worker.held) {
        let records = keys(&grant).into_iter().map(|key| match fails(&key) {
            true => failed(&grant.lease, &key, FailureCause::Timeout),
            false => scored(&grant.lease, &key),
        });
        coordinator.deliver(records.collect()).await.unwrap();
        worker.finished.push(grant.lease);
    }
    worker.exchange(&coordinator, 0).await;
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.retry(&run, &[]).await.unwrap(), 1);
    coordinator.extend(&run, more()).await.unwrap();
    let asked = finish(&coordinator, &run, &mut worker).await;
    assert_eq!(asked.len(), MORE - 3);
    assert!(asked.iter().any(fails), "{asked:?}");
}

#[tokio::test]
async fn an_extension_only_adds() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let refused = |submission| {
        let (coordinator, run) = (&coordinator, &run);
        async move { coordinator.extend(run, submission).await.unwrap_err().to_string() }
    };
    assert!(refused(submission(3)).await.contains("only adds"));
    let mut other = submission(5);
    other.configuration["seed"] = json!(8);
    assert!(refused(other).await.contains("keeps seed and pack"));
    assert!(coordinator.extend(&RunId::new("none"), more()).await.is_err());
}
