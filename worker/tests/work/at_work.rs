//! Starts workers for tests.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::WorkExchange;
use domain::{Connector, Iteration, ModelSpec};
use harness::failing_coordinator::FailingCoordinator;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use worker::{
    Connect, EvaluationMode, ExchangeFactory, SpoolConfig, Stop, Worker, WorkerConfig, WorkerError,
    WorkerReport,
};

/// A model that the gate answers for.
pub fn model(label: &str) -> ModelSpec {
    serde_json::from_value(serde_json::json!({"label": label, "connector": "simulated"})).unwrap()
}

/// A coordinator with a unit of these dialogues of the model `m`.
pub fn one_model(iterations: impl IntoIterator<Item = Iteration>) -> FailingCoordinator {
    let coordinator = FailingCoordinator::new(vec![model("m")]);
    coordinator.unit("m", iterations);
    coordinator
}

/// A worker that asks through a connector of the test, so many at once.
pub fn config(connect: impl Connect, concurrency: u32) -> WorkerConfig {
    WorkerConfig {
        connectors: vec![Connector::Simulated],
        concurrency: Some(concurrency),
        evaluators: NonZeroUsize::MIN,
        connect: Arc::new(connect),
        // Long enough that no test ends by it unless it says so.
        grace: Duration::from_secs(600),
        ..WorkerConfig::new("worker".into(), EvaluationMode::InProcess)
    }
}

/// With a spool in this folder.
pub fn spooled(config: WorkerConfig, dir: &Path, bytes_max: u64) -> WorkerConfig {
    WorkerConfig { spool: Some(SpoolConfig { dir: dir.to_owned(), bytes_max }), ..config }
}

/// A worker at work.
pub struct AtWork {
    stop: watch::Sender<Stop>,
    task: JoinHandle<Result<WorkerReport, WorkerError>>,
}

impl AtWork {
    pub fn start(config: WorkerConfig, coordinator: &FailingCoordinator) -> Self {
        let (stop, stopped) = watch::channel(Stop::No);
        let coordinator = coordinator.clone();
        let connect: ExchangeFactory =
            Arc::new(move || Arc::new(coordinator.clone()) as Arc<dyn WorkExchange>);
        Self { stop, task: tokio::spawn(Worker::run(config, connect, stopped)) }
    }

    /// Tells it to end.
    pub fn stop(&self, stop: Stop) {
        self.stop.send_replace(stop);
    }

    /// Tells it to finish what has begun, and waits for its end.
    pub async fn drained(self) -> WorkerReport {
        self.stop(Stop::Drain);
        self.ended().await.unwrap()
    }

    /// Waits for its end.
    pub async fn ended(self) -> Result<WorkerReport, WorkerError> {
        let ended = tokio::time::timeout(Duration::from_secs(60), self.task).await;
        ended.expect("the worker does not end").unwrap()
    }
}
