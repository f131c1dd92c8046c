//! A cluster in one test process: coordinators and workers as tasks that speak gRPC over bound sockets of the loopback
//! interface, around a real Redis or a queue in memory.
//!
//! What needs processes to be killed is tested on the binary, in `cli/tests/it`. Here tests reach inside: they take a
//! coordinator's socket away, look at views and records, and need no binary.
//!
//! Answers are judged in this process: evaluation processes are this project's binary, which a test is not.

#![allow(clippy::unwrap_used, reason = "a harness of tests fails by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coordinator::{Coordinator, CoordinatorConfig};
use domain::control::{Control, RunView, Submission};
use domain::exchange::WorkExchange;
use domain::{RunId, WorkerId};
use proto::server::{Security, Services};
use proto::{Client, ClientConfig};
use queue::QueueStore;
use queue::testing::RedisServer;
use results::sink;
use service_kit::shutdown::{self, Stop, StopSender, reached};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use vllm_sim::{Ask, ModelConfig, SimAnswer, SimConfig, SimHandle, Simulator};
use worker::{Endpoints, EvaluationMode, Worker, WorkerConfig, WorkerError, WorkerReport};

/// The name of the one model that is served.
pub const MODEL: &str = "sim";

/// How long a lease lasts. Short, because tests wait for some to expire.
const LEASE: Duration = Duration::from_secs(2);

/// How long a part may take to end. Reached only where something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the queue lives.
pub enum QueueHome {
    /// In this process: lost with nothing but the harness.
    Memory(Arc<dyn QueueStore>),
    /// A server of the test's own.
    Redis(RedisServer),
}

/// A cluster. Everything in it ends when it is dropped.
pub struct Cluster {
    /// Where the queue lives.
    pub queue: QueueHome,
    /// The record log and whatever else is kept.
    pub folder: TempDir,
    simulator: SimHandle,
}

/// A coordinator on a socket.
pub struct Served {
    /// The coordinator itself.
    pub coordinator: Arc<Coordinator>,
    /// Where it listens.
    pub address: SocketAddr,
    stop: StopSender,
    task: JoinHandle<()>,
    /// Last: everything it does lives on it.
    runtime: Own,
}

/// A worker that works.
pub struct Working {
    stop: StopSender,
    task: JoinHandle<Result<WorkerReport, WorkerError>>,
    runtime: Own,
}

/// A runtime of one part of the cluster. Without it the part is gone with its sockets, as after `kill -9`.
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

    /// Ends it, and waits until its sockets are closed.
    async fn end(mut self) {
        let runtime = self.0.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await.unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Runtimes may not be waited for where async code runs.
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

    /// With a Redis; `None`, said aloud, where this machine has none.
    pub async fn on_redis() -> Option<Self> {
        Some(Self::with(QueueHome::Redis(RedisServer::start()?)).await)
    }

    async fn with(queue: QueueHome) -> Self {
        models::install_crypto();
        // Any answer is as good as another one: what they are worth is tested elsewhere.
        let answers =
            |ask: &Ask<'_>| SimAnswer::complete(format!("http://example.org/people/person-{}", ask.seed % 7));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let simulator = Simulator::new(SimConfig::new(vec![ModelConfig::new(MODEL)]))
            .unwrap()
            .answer_model(MODEL, Arc::new(answers))
            .serve(listener)
            .unwrap();
        Self { queue, folder: tempfile::tempdir().unwrap(), simulator }
    }

    /// A way to the queue.
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

    /// A coordinator at an address that another one has left.
    pub async fn coordinator_at(&self, address: SocketAddr) -> Served {
        let runtime = Own::new();
        let (store, sink) = (self.store(), sink::folder(self.folder.path().join("data")));
        let started = runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let config = CoordinatorConfig { lease_for: LEASE, ..CoordinatorConfig::fleet() };
            (Coordinator::start(config, store, sink), listener)
        });
        let (coordinator, listener) = started.await.unwrap();
        let address = listener.local_addr().unwrap();
        let services = Services {
            exchange: Arc::clone(&coordinator) as Arc<dyn WorkExchange>,
            control: Arc::clone(&coordinator) as Arc<dyn Control>,
        };
        let (stop, stopped) = shutdown::channel();
        let task = runtime.spawn(async move {
            proto::server::serve(listener, services, Security::none(), reached(stopped, Stop::Drain))
                .await
                .unwrap();
        });
        Served { coordinator, address, stop, task, runtime }
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

    /// What is submitted: this many iterations of two cheap tasks.
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
    pub fn client(&self) -> Client {
        Client::connect_lazy(&ClientConfig::new(format!("http://{}", self.address))).unwrap()
    }

    /// Takes it off its socket and ends it. Waits until its address is free again.
    pub async fn end(self) -> SocketAddr {
        self.coordinator.close();
        self.stop.at_least(Stop::Drain);
        self.task.await.unwrap();
        self.runtime.end().await;
        self.address
    }

    /// Ends it without a word, as a killed process ends: what was in hand is dropped.
    pub async fn kill(self) -> SocketAddr {
        self.runtime.end().await;
        self.address
    }

    /// Waits until a run is over; what it is then.
    pub async fn until_over(&self, run: &RunId) -> RunView {
        loop {
            let view = self.coordinator.run(run).await.unwrap();
            if view.phase.is_over() {
                return view;
            }
            // The coordinator looks after runs in rounds; there is no event to wait for from outside.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a run has this many records.
    pub async fn until_recorded(&self, run: &RunId, records: u64) {
        while self.coordinator.run(run).await.unwrap().scored < records {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Working {
    /// Drains it; what it did.
    pub async fn drain(self) -> WorkerReport {
        self.stop.at_least(Stop::Drain);
        let report = self.task.await.unwrap().unwrap();
        self.runtime.end().await;
        report
    }

    /// Ends it without a word, as a killed process ends.
    pub async fn kill(self) {
        self.runtime.end().await;
    }
}
