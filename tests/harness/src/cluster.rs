//! A cluster in one test process: coordinators and workers as tasks that speak gRPC over loopback sockets, with a
//! real Redis or a queue in memory.
//!
//! Tests on it reach inside: they take away a coordinator's socket, look at views and records, and need no binary. A cluster
//! of processes is in `cli/tests/it/harness`.
//!
//! Answers are judged in this process, because evaluation processes need the project's binary.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coordinator::access::Access;
use coordinator::{Coordinator, CoordinatorOptions};
use domain::control::{BenchmarkView, Control, Submission};
use domain::exchange::WorkExchange;
use domain::{RunId, WorkerId};
use proto::server::{BesideCalls, Security, Services};
use proto::{ApiClient, Client, ClientConfig};
use queue::QueueStore;
use results::sink;
use service_kit::shutdown::{self, Stop, StopSender, reached};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use vllm_sim::{ModelConfig, SimAnswer, SimAsk, SimConfig, SimHandle, Simulator};
use worker::{Endpoints, EvaluationMode, Worker, WorkerConfig, WorkerError, WorkerReport};

use crate::redis::RedisServer;

/// Name of the only served model.
pub const MODEL: &str = "sim";

/// How long a lease lasts. Short, because tests wait for some to expire.
const LEASE: Duration = Duration::from_secs(2);

/// How long a part may take to stop. Reached only if something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the queue is.
pub enum QueueHome {
    /// In this process; its content ends with the harness.
    Memory(Arc<dyn QueueStore>),
    /// A server started by the test.
    Redis(RedisServer),
}

/// A cluster. Everything in it stops when it is dropped.
pub struct Cluster {
    pub queue: QueueHome,
    /// The record store.
    pub folder: TempDir,
    simulator: SimHandle,
}

/// A coordinator on a socket.
pub struct Served {
    /// The coordinator itself.
    pub coordinator: Arc<Coordinator>,
    /// The coordinator's calls, without a socket.
    pub access: Arc<Access>,
    /// Where it listens.
    pub address: SocketAddr,
    stop: StopSender,
    task: JoinHandle<()>,
    /// Dropped last, because everything runs on it.
    runtime: Own,
}

/// A running worker.
pub struct Working {
    stop: StopSender,
    task: JoinHandle<Result<WorkerReport, WorkerError>>,
    runtime: Own,
}

/// The runtime of one part of the cluster. Dropping it removes the part with its sockets, as `kill -9` does.
struct Own(Option<Runtime>);

impl Own {
    fn new() -> Self {
        Self(Some(
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
        ))
    }

    fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.0.as_ref().unwrap().spawn(work)
    }

    /// Stops it, and waits until its sockets are closed.
    async fn end(mut self) {
        let runtime = self.0.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await.unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // A runtime must not be awaited within async code.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Cluster {
    /// With a queue in memory.
    pub async fn in_memory() -> Self {
        Self::with(QueueHome::Memory(queue::open("memory", None).unwrap())).await
    }

    /// With a Redis; `None`, with a message, if this machine has none.
    pub async fn on_redis() -> Option<Self> {
        Some(Self::with(QueueHome::Redis(RedisServer::start()?)).await)
    }

    async fn with(queue: QueueHome) -> Self {
        models::install_crypto();
        // Any answer will do: scoring is tested elsewhere.
        let answers = |ask: &SimAsk<'_>| {
            SimAnswer::complete(format!("http://example.org/people/person-{}", ask.seed % 7))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let simulator = Simulator::new(SimConfig::new(vec![ModelConfig::new(MODEL)]))
            .unwrap()
            .answer_model(MODEL, Arc::new(answers))
            .serve(listener)
            .unwrap();
        Self { queue, folder: tempfile::tempdir().unwrap(), simulator }
    }

    /// A connection to the queue.
    pub fn store(&self) -> Arc<dyn QueueStore> {
        match &self.queue {
            QueueHome::Memory(store) => Arc::clone(store),
            QueueHome::Redis(server) => queue::open(&server.url(), None).unwrap(),
        }
    }

    /// A coordinator on a free port.
    pub async fn coordinator(&self) -> Served {
        self.coordinator_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// A coordinator at the address of a stopped one.
    pub async fn coordinator_at(&self, address: SocketAddr) -> Served {
        let runtime = Own::new();
        let (store, sink) = (self.store(), sink::folder(self.folder.path().join("data")));
        let started = runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let config = CoordinatorOptions { lease_for: LEASE, ..CoordinatorOptions::fleet() };
            (Coordinator::start(config, store, sink), listener)
        });
        let (coordinator, listener) = started.await.unwrap();
        let access = coordinator.unnamed();
        let address = listener.local_addr().unwrap();
        let services = Services {
            exchange: access.clone() as Arc<dyn WorkExchange>,
            control: access.clone() as Arc<dyn Control>,
        };
        let (stop, stopped) = shutdown::channel();
        let task = runtime.spawn(async move {
            proto::server::serve(
                listener,
                services,
                Security::none(),
                BesideCalls::default(),
                reached(stopped, Stop::Drain),
            )
            .await;
        });
        Served { coordinator, access, address, stop, task, runtime }
    }

    /// A worker of this name, with four dialogues in flight.
    pub fn worker(&self, name: &str, coordinator: SocketAddr) -> Working {
        let config = WorkerConfig {
            endpoints: Endpoints::Listed(vec![self.simulator.base_url()]),
            concurrency: Some(4),
            spool: Some(worker::SpoolConfig { dir: self.folder.path().join("spool"), bytes_max: 1 << 20 }),
            ..WorkerConfig::new(WorkerId::new(name), EvaluationMode::InProcess)
        };
        let client = ClientConfig::new(format!("http://{coordinator}"));
        let connect = move || Arc::new(Client::connect_lazy(&client).unwrap()) as Arc<dyn WorkExchange>;
        let (stop, stopped) = shutdown::channel();
        let runtime = Own::new();
        Working { stop, task: runtime.spawn(Worker::run(config, Arc::new(connect), stopped)), runtime }
    }

    /// A submission: this many iterations of two cheap tasks.
    pub fn submission(&self, iterations: u32) -> Submission {
        let configuration = serde_json::json!({
            "name": "harness", "seed": 3, "pack": "core", "iterations": iterations,
            "tasks": ["RdfFriendCount-nt-1", "RdfFriendCount-turtle-1"],
            "models": [{ "label": MODEL, "connector": "openai-compatible", "stream": false }],
        });
        Submission { configuration, pack: None }
    }
}

impl Served {
    /// The coordinator as the command line sees it: over the wire.
    pub fn client(&self) -> ApiClient {
        ApiClient::new(&ClientConfig::new(format!("http://{}", self.address))).unwrap()
    }

    /// Stops it and waits until its address is free again.
    pub async fn end(self) -> SocketAddr {
        self.coordinator.close();
        self.stop.at_least(Stop::Drain);
        self.task.await.unwrap();
        self.runtime.end().await;
        self.address
    }

    /// Ends it abruptly, like a killed process: calls in progress are dropped.
    pub async fn kill(self) -> SocketAddr {
        self.runtime.end().await;
        self.address
    }

    /// Waits until a run is over, and returns it.
    pub async fn until_over(&self, run: &RunId) -> BenchmarkView {
        loop {
            let view = self.access.view(run).await.unwrap();
            if view.phase.is_over() {
                return view;
            }
            // The coordinator tends runs periodically; there is no event to await from outside.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a run has this many records.
    pub async fn until_recorded(&self, run: &RunId, records: u64) {
        while self.access.view(run).await.unwrap().scored < records {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Working {
    /// Drains it and returns its report.
    pub async fn drain(self) -> WorkerReport {
        self.stop.at_least(Stop::Drain);
        let report = self.task.await.unwrap().unwrap();
        self.runtime.end().await;
        report
    }

    /// Ends it abruptly, like a killed process.
    pub async fn kill(self) {
        self.runtime.end().await;
    }
}
