//! Mistakes of people and machines: runs that cannot be loaded, are not there, or were removed.

use std::path::PathBuf;
use std::sync::Arc;

use domain::RunId;
use domain::control::{BenchmarkCommand, Control, RunPhase, Submission};
use domain::exchange::{Receipt, WorkExchange};
use queue::QueueOwner;

use super::ground::*;
use super::worker::*;
use crate::{Adopt, CoordinatorOptions};

/// A submission like [`submission`] that is another run.
fn other_submission(iterations: u32) -> Submission {
    let mut other = submission(iterations);
    other.configuration["name"] = "another".into();
    other.configuration["seed"] = 8.into();
    other
}

fn manifest_path(ground: &Ground, run: &RunId) -> PathBuf {
    ground.data.path().join("runs").join(run.as_str()).join("manifest.json")
}

/// Two runs, the first of which is held by a worker in part and cannot be loaded any more, and a coordinator that was
/// started after that.
async fn one_of_two_is_bad(
    ground: &Ground,
    damage: fn(String) -> String,
) -> (Arc<Started>, Worker, RunId, RunId) {
    let coordinator = ground.coordinator();
    let bad = coordinator.submit(submission(4)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let good = coordinator.submit(other_submission(4)).await.unwrap().run;
    drop(coordinator);
    let path = manifest_path(ground, &bad);
    let manifest = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, damage(manifest)).unwrap();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    (coordinator, worker, bad, good)
}

fn another_plan(manifest: String) -> String {
    let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    manifest["plan_hash"] = "0".repeat(64).into();
    manifest.to_string()
}

fn torn(manifest: String) -> String {
    manifest[..manifest.len() / 2].to_owned()
}

async fn a_bad_run_stops_no_other(damage: fn(String) -> String) {
    let ground = Ground::new();
    let (coordinator, mut worker, bad, good) = one_of_two_is_bad(&ground, damage).await;
    let of_bad = worker.held[0].clone();

    // It registers and reports what it holds of the bad run; it gets work of the good one.
    coordinator.register(registration(worker.id.as_str(), worker.instance.as_str(), &[])).await.unwrap();
    worker.exchange(&coordinator, 9).await;
    let of_good =
        worker.held.iter().find(|grant| grant.lease.run == good).expect("work of the good run").clone();

    // One call with records of both.
    let records = [&of_bad, &of_good].map(|grant| scored(&grant.lease, &keys(grant)[0])).to_vec();
    let receipts = coordinator.deliver(records).await.unwrap();
    assert_eq!(receipts[1], Receipt::Stored);
    assert!(matches!(&receipts[0], Receipt::Later { .. }), "{:?}", receipts[0]);

    // People see why.
    let views = coordinator.list().await.unwrap();
    let shown = views.iter().find(|view| view.run == bad).expect("it is listed");
    assert!(shown.trouble.is_some());
    assert_eq!(coordinator.view(&bad).await.unwrap().trouble, shown.trouble);

    worker.held.retain(|grant| grant.lease.run == good);
    worker.work_off(&coordinator, &mut Vec::new()).await;
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&good).await.unwrap().phase, RunPhase::Finished);
}

#[tokio::test]
async fn a_run_whose_plan_is_another_one_now_stops_no_other() {
    a_bad_run_stops_no_other(another_plan).await;
}

#[tokio::test]
async fn a_run_whose_manifest_is_damaged_stops_no_other() {
    a_bad_run_stops_no_other(torn).await;
}

#[tokio::test]
async fn a_queue_of_another_plan_gives_way_to_that_of_the_manifest() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let spec = coordinator.parts().loaded.known(&run).await.unwrap().spec(&config(), 1);
    let plan_hash = spec.plan_hash.clone();
    drop(coordinator);
    // The run was extended after the copy from which the records were restored.
    ground.queue.forget_run(&run).await.unwrap();
    ground.queue.create_run(&queue::RunSpec { plan_hash: "1".repeat(64), ..spec }).await.unwrap();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    let built = ground.queue.run(&run).await.unwrap().unwrap();
    assert!(built.at.generation > 1 && built.plan_hash == plan_hash, "{built:?}");
    let mut asked = Vec::new();
    Worker::new("w").work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 16);
}

#[tokio::test]
async fn a_new_run_of_the_same_configuration_does_not_wait_for_one_that_cannot_be_loaded() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let bad = coordinator.submit(submission(4)).await.unwrap().run;
    drop(coordinator);
    std::fs::write(ground.data.path().join("runs").join(bad.as_str()).join("manifest.json"), "{").unwrap();
    let coordinator = ground.coordinator();
    assert_ne!(coordinator.submit(submission(4)).await.unwrap().run, bad);
}

#[tokio::test]
async fn the_built_in_pack_is_kept_with_its_runs() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let hash = coordinator.parts().loaded.known(&run).await.unwrap().material.pack_hash.clone();
    assert!(ground.data.path().join("packs").join(format!("{hash}.kgpack")).is_file());
}

#[tokio::test]
async fn records_of_runs_that_are_not_here_are_to_be_kept() {
    let (right, wrong) = (Ground::new(), Ground::new());
    let coordinator = right.coordinator();
    coordinator.submit(submission(2)).await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let record = scored(&grant.lease, &keys(&grant)[0]);
    let receipts = wrong.coordinator().deliver(vec![record.clone()]).await.unwrap();
    let Receipt::Later { reason } = &receipts[0] else { panic!("{receipts:?}") };
    assert!(reason.contains(grant.lease.run.as_str()), "{reason}");
    assert_eq!(coordinator.deliver(vec![record]).await.unwrap(), [Receipt::Stored]);
}

/// A run, and a worker that holds some of it.
async fn under_way(coordinator: &Started) -> (RunId, Worker) {
    let run = coordinator.submit(submission(8)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(coordinator, 3).await;
    (run, worker)
}

/// The record of a dialogue that a worker holds.
fn record(worker: &Worker, nth: usize) -> domain::exchange::Delivery {
    let dialogues = worker.held.iter().flat_map(|grant| keys(grant).into_iter().map(move |key| (grant, key)));
    let (grant, key) = dialogues.into_iter().nth(nth).unwrap();
    scored(&grant.lease, &key)
}

#[tokio::test]
async fn nothing_is_acknowledged_into_a_folder_that_was_removed() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let (run, worker) = under_way(&coordinator).await;
    assert_eq!(coordinator.deliver(vec![record(&worker, 0)]).await.unwrap(), [Receipt::Stored]);
    std::fs::remove_dir_all(ground.data.path().join("runs").join(run.as_str())).unwrap();
    assert!(coordinator.deliver(vec![record(&worker, 1)]).await.is_err());
    let receipts = coordinator.deliver(vec![record(&worker, 1)]).await.unwrap();
    assert!(matches!(receipts[0], Receipt::Later { .. }), "{receipts:?}");
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap_err().code, domain::ErrorCode::NotFound);
}

#[tokio::test]
async fn a_run_that_is_removed_is_gone_everywhere_and_its_late_records_are_refused() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let (run, mut worker) = under_way(&one).await;
    two.tend().await.unwrap();
    assert_eq!(two.deliver(vec![record(&worker, 0)]).await.unwrap(), [Receipt::Stored]);
    let refused = one.remove(&run, false).await.unwrap_err();
    assert!(refused.message.contains("cancel it first"), "{refused}");
    one.remove(&run, true).await.unwrap();
    two.tend().await.unwrap();
    for coordinator in [&one, &two] {
        let late = coordinator.deliver(vec![record(&worker, 1)]).await.unwrap();
        assert!(matches!(&late[0], Receipt::Refused { reason } if reason.contains("removed")), "{late:?}");
        assert!(coordinator.list().await.unwrap().is_empty());
    }
    let held = worker.held.len();
    assert_eq!(worker.exchange(&two, 0).await.lost.len(), held);
    assert!(ground.queue.run(&run).await.unwrap().is_none(), "nobody builds its queue again");
    one.remove(&run, false).await.unwrap();
    assert_eq!(one.remove(&"never".into(), true).await.unwrap_err().code, domain::ErrorCode::NotFound);
}

#[tokio::test]
async fn who_writes_a_run_keeps_others_from_it() {
    let ground = Ground::new();
    let fleet = ground.coordinator();
    let (run, _) = under_way(&fleet).await;
    let local = ground.coordinator_with(CoordinatorOptions { tends: false, ..CoordinatorOptions::local() });
    let state = ground.data.path().join("runs").join(run.as_str()).join("state.json");
    let before = std::fs::read(&state).unwrap();
    for refused in [
        local.command(&run, BenchmarkCommand::Resume).await.unwrap_err(),
        local.command(&run, BenchmarkCommand::Cancel).await.unwrap_err(),
        local.retry(&run, &[]).await.unwrap_err(),
    ] {
        assert!(refused.message.contains("a coordinator"), "{refused}");
    }
    assert_eq!(std::fs::read(&state).unwrap(), before, "it changed nothing");
    drop((fleet, local));
    let local = ground.coordinator_with(CoordinatorOptions { tends: false, ..CoordinatorOptions::local() });
    local.command(&run, BenchmarkCommand::Resume).await.unwrap();
    let fleet = ground.coordinator();
    let refused = fleet.remove(&run, true).await.unwrap_err();
    assert!(refused.message.contains("another process"), "{refused}");
}

#[tokio::test]
async fn a_queue_is_served_with_its_own_records_only() {
    let (ground, elsewhere) = (Ground::new(), tempfile::tempdir().unwrap());
    let data = ground.data.path().join("data");
    let coordinator = start(config(), Arc::clone(&ground.queue), &data);
    coordinator.bind(Adopt::NOTHING).await.unwrap();
    let (run, worker) = under_way(&coordinator).await;

    let other = start(config(), Arc::clone(&ground.queue), elsewhere.path());
    let refused = other.bind(Adopt::NOTHING).await.unwrap_err();
    let id = results::Sink::new(&data).identity().await.unwrap().unwrap();
    for part in [&*id, elsewhere.path().to_str().unwrap(), "--adopt-store"] {
        assert!(refused.message.contains(part), "{refused}");
    }
    assert_eq!(results::Sink::new(elsewhere.path()).identity().await.unwrap(), None, "it marks nothing");

    // The volume goes away under the coordinator, and comes back.
    let away = ground.data.path().join("away");
    std::fs::rename(&data, &away).unwrap();
    std::fs::create_dir(&data).unwrap();
    coordinator.tend().await.unwrap_err();
    assert!(coordinator.ready().unwrap_err().message.contains(&id));
    assert_eq!(
        coordinator.deliver(vec![record(&worker, 0)]).await.unwrap_err().code,
        domain::ErrorCode::Unavailable
    );
    assert_eq!(
        coordinator.exchange(worker.report(3)).await.unwrap_err().code,
        domain::ErrorCode::Unavailable
    );
    std::fs::remove_dir(&data).unwrap();
    std::fs::rename(&away, &data).unwrap();
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.deliver(vec![record(&worker, 0)]).await.unwrap(), [Receipt::Stored]);

    // A queue that has lost everything belongs to the records as before.
    let bond = ground.queue.owner().await.unwrap();
    let of_another = QueueOwner { store: "another".into(), queue: String::new(), generation: 0 };
    ground.queue.bind(bond.as_ref(), &of_another).await.unwrap();
    coordinator.tend().await.unwrap_err();
    let adopt = Adopt { store: true, queue: false };
    other.bind(adopt).await.unwrap();
    coordinator.bind(adopt).await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 1);
}
