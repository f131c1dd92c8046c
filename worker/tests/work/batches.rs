//! Dialogues that wait for batches at a provider, when their worker ends and when their run does.

use std::path::Path;
use std::time::Duration;

use domain::{Connector, ModelSpec};
use harness::batch_provider::{BatchProvider, ProvidedBatch, ProvidedStage};
use harness::failing_coordinator::{FailingCoordinator, FailingState};
use models::{BatchRules, Batches};
use worker::{Connectors, Stop, WorkerConfig};

use crate::at_work::{AtWork, config};

const DIALOGUES: u32 = 3;

/// A worker of this machine, which remembers its batches here.
fn worker(folder: &Path) -> WorkerConfig {
    let rules = BatchRules {
        quiet: Duration::from_millis(100),
        look_first: Duration::from_millis(5),
        look_max: Duration::from_millis(20),
        ..BatchRules::default()
    };
    let batches = Batches::in_folder(folder.join("batches")).by(rules);
    let connect = Connectors::default().asking_in(batches.clone());
    WorkerConfig { connectors: vec![Connector::Anthropic], batches, ..config(connect, DIALOGUES) }
}

/// A model that this provider answers for.
fn model(folder: &Path, provider: &BatchProvider) -> ModelSpec {
    let key = folder.join("key");
    std::fs::write(&key, "sk-0123456789").unwrap();
    let spec = serde_json::json!({
        "label": "m", "connector": "anthropic", "endpoint": provider.url, "key_file": key, "mode": "batch",
    });
    serde_json::from_value(spec).unwrap()
}

/// A worker whose dialogues all wait for batches.
async fn waiting(folder: &Path, provider: &BatchProvider, coordinator: &FailingCoordinator) -> AtWork {
    coordinator.unit("m", 0..DIALOGUES);
    let worker = AtWork::start(worker(folder), coordinator);
    let all_are_asked = |batches: &[ProvidedBatch]| {
        batches.iter().map(|batch| batch.questions.len()).sum::<usize>() == DIALOGUES as usize
    };
    provider.until("all questions are in batches", all_are_asked).await;
    worker
}

fn all_are(batches: &[ProvidedBatch], stage: ProvidedStage) -> bool {
    batches.iter().all(|batch| batch.stage == stage)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_ends_leaves_its_batches_and_the_next_one_takes_their_answers() {
    let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
    let coordinator = FailingCoordinator::new(vec![model(folder.path(), &provider)]);
    let first = waiting(folder.path(), &provider, &coordinator).await;
    let asked = provider.batches();
    // Its grace would be minutes.
    first.stop(Stop::Drain);
    let report = first.ended().await.unwrap();
    assert_eq!((report.dialogues, report.tally.released), (0, u64::from(DIALOGUES)));
    assert!(all_are(&provider.batches(), ProvidedStage::UnderWay), "{:?}", provider.batches());
    assert_eq!(provider.stored().len(), asked.len());

    (0..asked.len()).for_each(|place| provider.end(place, ProvidedStage::Ended));
    let next = AtWork::start(worker(folder.path()), &coordinator);
    let state = coordinator.until("the end", FailingState::complete).await;
    assert_eq!(state.by_key().len(), DIALOGUES as usize);
    assert_eq!(provider.batches().len(), asked.len(), "nothing is asked twice");
    next.stop(Stop::Drain);
    next.ended().await.unwrap();
    assert_eq!(provider.stored().len(), asked.len(), "nor is anything deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_over_takes_its_batches_with_it() {
    let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
    let coordinator = FailingCoordinator::new(vec![model(folder.path(), &provider)]);
    let worker = waiting(folder.path(), &provider, &coordinator).await;
    coordinator.change(|state| state.over = true);
    provider.until("a cancellation", |batches| all_are(batches, ProvidedStage::Cancelled)).await;
    provider.until("the deletions", |_| provider.stored().is_empty()).await;
    worker.stop(Stop::Drain);
    assert_eq!(worker.ended().await.unwrap().dialogues, 0);
    assert_eq!(coordinator.state().stored.len(), 0);
}
