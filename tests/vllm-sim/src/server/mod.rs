//! The HTTP layer. It uses hyper and no web framework: faults need the raw connection, and a benchmark's server must
//! cost as little as possible.

mod answer;
mod body;
mod generate;
mod model;
mod pool;
mod reply;
mod service;
mod state;
mod stream;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answers::{AnswerKey, AnswerModel, Purpose};
use crate::bounds::ConfigError;
use crate::config::SimConfig;
use crate::faults::Faults;
use crate::metrics::{EndReason, SimModelMetrics};

use model::SimModel;
use state::Server;

/// Open connections; more wait in the listener's backlog.
const CONNECTIONS_MAX: usize = 65_536;

/// Pause after a failed accept, which is nearly always a lack of file descriptors that passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that has not been started.
pub struct Simulator {
    config: SimConfig,
    key: Option<Arc<dyn AnswerKey>>,
    answers: HashMap<String, Arc<AnswerModel>>,
}

impl Simulator {
    /// Checks the configuration.
    ///
    /// # Errors
    /// The first value out of bounds.
    pub fn new(config: SimConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self { config, key: None, answers: HashMap::new() })
    }

    /// Gives the skilled models their knowledge.
    #[must_use]
    pub fn answer_key(mut self, key: Arc<dyn AnswerKey>) -> Self {
        self.key = Some(key);
        self
    }

    /// Lets a served model answer by other means than its configuration says, such as a closure.
    #[must_use]
    pub fn answer_model(mut self, model: &str, answers: Arc<AnswerModel>) -> Self {
        self.answers.insert(model.to_owned(), answers);
        self
    }

    /// Starts to serve, on tasks of the current tokio runtime, until the handle is dropped or shut down.
    ///
    /// # Errors
    /// The listener's error when its address cannot be read.
    pub fn serve(mut self, listener: TcpListener) -> std::io::Result<SimHandle> {
        let addr = listener.local_addr()?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let models = self
            .config
            .models
            .into_iter()
            .map(|model| {
                let answers = self.answers.remove(&model.name);
                let built = || model.answers.build(&model.name, self.key.as_ref());
                let purpose = answers.map_or_else(built, Purpose::Chat);
                Arc::new(SimModel::start(model, purpose, &tasks, stop.clone()))
            })
            .collect();
        let faults = Faults::new(self.config.faults);
        let server = Arc::new(Server::new(models, faults, self.config.api_key.as_deref()));
        let accepting = accept(listener, server.clone(), tasks.clone(), stop.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(accepting));
        tasks.close();
        Ok(SimHandle { addr, server, tasks, stop })
    }
}

/// A running server. Dropping it stops the server as [`SimHandle::shutdown`] does, without waiting.
pub struct SimHandle {
    addr: SocketAddr,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Counters of a server, over all its models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimStats {
    /// Requests to models that could be read, for whatever model.
    pub requests: u64,
    /// Of these, answered; streams count at their end. Each input of an embedder or classifier counts, as in vLLM.
    pub answered: u64,
    /// Given up by their client, or aborted by a fault.
    pub aborted: u64,
    /// Met by a fault of the plan.
    pub faults: u64,
    /// Prompt tokens of answered requests that the prefix cache had.
    pub cached_tokens: u64,
}

impl SimHandle {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base address for clients, such as `http://127.0.0.1:8000/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// Its counters.
    pub fn stats(&self) -> SimStats {
        let sum = |count: fn(&SimModelMetrics) -> u64| -> u64 {
            self.server.models.iter().map(|model| count(&model.metrics)).sum()
        };
        SimStats {
            requests: self.server.arrivals.load(Relaxed),
            answered: sum(|metrics| metrics.answered.load(Relaxed)),
            aborted: sum(|metrics| metrics.count_of(EndReason::Abort)),
            faults: self.server.faults_met.load(Relaxed),
            cached_tokens: sum(|metrics| metrics.prompt_tokens_cached.load(Relaxed)),
        }
    }

    /// Stops at once: connections are cut, as vLLM does on SIGTERM without a shutdown timeout. Waits until all tasks
    /// have ended.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, server: Arc<Server>, tasks: TaskTracker, stop: CancellationToken) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (server, stop) = (server.clone(), stop.clone());
        tasks.spawn(async move {
            stop.run_until_cancelled(serve_connection(socket, server)).await;
            drop(permit);
        });
    }
}

async fn serve_connection(socket: TcpStream, server: Arc<Server>) {
    // Small replies must not wait for the client's delayed acknowledgement. Without the option they are only later.
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { service::handle(&server, request).await }
    });
    // It ends with an error when the client goes away or a fault breaks the connection off; both are business as usual.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}
