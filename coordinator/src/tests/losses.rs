//! Logs that lack what the queue remembers: a flipped bit, or a folder of before.

use std::fs;
use std::path::{Path, PathBuf};

use domain::RunId;
use domain::control::{BenchmarkCommand, Control, RunPhase};
use domain::exchange::WorkExchange;
use harness::RedisServer;
use queue::testing::Bench;

use super::ground::*;
use super::worker::*;
use crate::Adopt;

const ITERATIONS: u32 = 6;

/// Every dialogue of the run.
const PLANNED: u64 = 4 * ITERATIONS as u64;

/// Rounds after which a run that ends has ended.
const ROUNDS: usize = 6;

/// The segments of a run's log.
fn segments(data: &Path, run: &RunId) -> Vec<PathBuf> {
    let log = data.join("runs").join(run.as_str()).join("log");
    let paths = fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "kglog")).collect()
}

/// Flips one bit in the middle of what the log of a run holds.
fn flip_a_bit(data: &Path, run: &RunId) {
    let longest = segments(data, run).into_iter().max_by_key(|path| fs::metadata(path).unwrap().len());
    let path = longest.unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
}

/// Copies a folder of records, without the notes of how far logs are on disk.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false if path.extension().is_some_and(|extension| extension == "synced") => {}
            false => drop(fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

/// Lets a worker answer a part of what there is to do, unit by unit.
async fn answer_some(coordinator: &Started) {
    let mut worker = Worker::new("first");
    worker.exchange(coordinator, ITERATIONS).await;
    for grant in std::mem::take(&mut worker.held) {
        for key in keys(&grant) {
            coordinator.deliver(vec![scored(&grant.lease, &key)]).await.unwrap();
        }
        worker.finished.push(grant.lease);
    }
    worker.exchange(coordinator, 0).await;
}

/// Lets a worker do what there is to do until the run is over.
async fn finish(coordinator: &Started, run: &RunId) -> u64 {
    let mut asked = Vec::new();
    for _ in 0..ROUNDS {
        coordinator.tend().await.unwrap();
        Worker::new("w").work_off(coordinator, &mut asked).await;
    }
    coordinator.tend().await.unwrap();
    let view = coordinator.view(run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, PLANNED), "{:?}", view.trouble);
    assert_eq!(view.trouble, None);
    asked.len() as u64
}

/// A ground of each kind of queue; the Redis lives as long as the ground does.
fn grounds() -> Vec<(Ground, Option<RedisServer>)> {
    let mut grounds = vec![(Ground::new(), None)];
    if let Some(server) = RedisServer::start() {
        let queue = Bench::kept_in(&server.url(), "one", Box::new(())).store;
        grounds.push((Ground { queue, ..Ground::new() }, Some(server)));
    }
    grounds
}

async fn submitted(coordinator: &Started) -> RunId {
    coordinator.submit(submission(ITERATIONS)).await.unwrap().run
}

#[tokio::test]
async fn what_a_flipped_bit_took_from_a_run_under_way_is_asked_again() {
    for (ground, _server) in grounds() {
        let coordinator = ground.coordinator();
        let run = submitted(&coordinator).await;
        answer_some(&coordinator).await;
        let answered = coordinator.view(&run).await.unwrap().scored;
        assert!(answered > 0 && answered < PLANNED);
        coordinator.close_logs().await;
        drop(coordinator);
        flip_a_bit(ground.data.path(), &run);

        let coordinator = ground.coordinator();
        coordinator.tend().await.unwrap();
        let before = coordinator.view(&run).await.unwrap();
        assert!(before.scored < answered);
        assert!(before.trouble.is_some_and(|trouble| trouble.contains("damaged in 1 places")));
        assert_eq!(finish(&coordinator, &run).await, PLANNED - before.scored);
        let history = coordinator.view(&run).await.unwrap().history;
        let told = history.iter().filter(|entry| entry.what.contains("are lost; they are asked again"));
        assert_eq!(told.count(), 1, "{history:?}");
    }
}

/// A run that was just begun, and a bit is flipped in what its log says of that.
async fn begun_and_damaged(ground: &Ground) -> RunId {
    let coordinator = ground.coordinator();
    let run = submitted(&coordinator).await;
    coordinator.close_logs().await;
    drop(coordinator);
    flip_a_bit(ground.data.path(), &run);
    run
}

#[tokio::test]
async fn a_run_whose_log_lost_that_it_was_begun_goes_on() {
    for (ground, _server) in grounds() {
        let run = begun_and_damaged(&ground).await;
        let coordinator = ground.coordinator();
        coordinator.tend().await.unwrap();
        let view = coordinator.view(&run).await.unwrap();
        assert!(view.trouble.is_some_and(|trouble| trouble.contains("damaged in 1 places")));
        assert_eq!(finish(&coordinator, &run).await, PLANNED);
    }
}

#[tokio::test]
async fn a_run_of_which_nothing_says_that_it_was_begun_says_so_and_not_that_it_is_asked() {
    for (ground, _server) in grounds() {
        let run = begun_and_damaged(&ground).await;
        fs::remove_file(ground.data.path().join("runs").join(run.as_str()).join("state.json")).unwrap();
        let coordinator = ground.coordinator();
        coordinator.tend().await.unwrap();
        let trouble = coordinator.view(&run).await.unwrap().trouble.unwrap();
        assert!(trouble.contains("never begun"), "{trouble}");
        coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
        assert_eq!(finish(&coordinator, &run).await, PLANNED);
    }
}

#[tokio::test]
async fn a_finished_run_that_is_resumed_asks_for_what_its_log_lost() {
    for (ground, _server) in grounds() {
        let coordinator = ground.coordinator();
        let run = submitted(&coordinator).await;
        assert_eq!(finish(&coordinator, &run).await, PLANNED);
        coordinator.close_logs().await;
        drop(coordinator);
        flip_a_bit(ground.data.path(), &run);

        let coordinator = ground.coordinator();
        let view = coordinator.view(&run).await.unwrap();
        assert!(view.phase == RunPhase::Finished && view.scored < PLANNED, "{view:?}");
        assert!(view.trouble.is_some(), "what was lost is shown");
        coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
        assert_eq!(finish(&coordinator, &run).await, PLANNED - view.scored);
    }
}

#[tokio::test]
async fn a_coordinator_that_saw_a_run_finish_reads_its_log_again_when_it_is_resumed() {
    for (ground, _server) in grounds() {
        let coordinator = ground.coordinator();
        let run = submitted(&coordinator).await;
        assert_eq!(finish(&coordinator, &run).await, PLANNED);
        // Below a coordinator that lives, and has all of it in memory.
        flip_a_bit(ground.data.path(), &run);
        coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
        let left = coordinator.view(&run).await.unwrap().scored;
        assert!(left < PLANNED, "what is on the disk counts");
        assert_eq!(finish(&coordinator, &run).await, PLANNED - left);
        // Where nothing is lost, nothing is asked.
        coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
        assert_eq!(finish(&coordinator, &run).await, 0);
    }
}

#[tokio::test]
async fn a_run_goes_on_from_a_folder_of_before_though_the_queue_has_seen_more() {
    for (ground, _server) in grounds() {
        let coordinator = ground.coordinator();
        coordinator.bind(Adopt::NOTHING).await.unwrap();
        let run = submitted(&coordinator).await;
        answer_some(&coordinator).await;
        let then = coordinator.view(&run).await.unwrap().scored;
        let backup = tempfile::tempdir().unwrap();
        copy(ground.data.path(), backup.path());
        assert_eq!(finish(&coordinator, &run).await, PLANNED - then);
        coordinator.close_logs().await;
        drop(coordinator);

        for entry in fs::read_dir(ground.data.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        copy(backup.path(), ground.data.path());
        let coordinator = ground.coordinator();
        coordinator.bind(Adopt::NOTHING).await.unwrap();
        assert_eq!(finish(&coordinator, &run).await, PLANNED - then);
        let generation = coordinator.view(&run).await.unwrap().generation;
        coordinator.tend().await.unwrap();
        assert_eq!(coordinator.view(&run).await.unwrap().generation, generation, "it is built anew once");
    }
}
