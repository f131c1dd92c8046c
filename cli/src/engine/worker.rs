//! The worker of a local run, in the process of its coordinator.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use coordinator::Coordinator;
use coordinator::configuration::Connector;
use domain::exchange::WorkExchange;
use domain::{FailureCause, WorkerId};
use service_kit::shutdown::{self, Stop, StopSender};
use tokio::task::JoinHandle;
use vllm_sim::SimHandle;
use worker::evaluate::sandbox::host::SandboxHost;
use worker::{
    Connect, Draining, EVALUATOR_COMMAND, Endpoints, EvaluationMode, Worker, WorkerConfig, WorkerError,
    WorkerReport,
};

use crate::engine::notify::Notify;
use crate::kit::output::{note, say};

/// Time for dialogues to finish when the worker stops by itself: the maximum duration of a dialogue.
const GRACE: Duration = Duration::from_secs(2 * 3600);

/// The same after the first interrupt. A user who does not want to wait interrupts again.
const INTERRUPTED_GRACE: Duration = Duration::from_secs(60);

/// Options of a run besides its configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Dialogues in flight per model, instead of adapting.
    pub concurrency: Option<u32>,
    /// Judge in this process instead of sandboxed ones.
    pub no_sandbox: bool,
    /// Evaluation processes or threads.
    pub evaluators: NonZeroUsize,
    /// Retry failed dialogues with one of these causes, or all if the list is empty; `None`: no retry.
    pub retry: Option<Vec<FailureCause>>,
    /// Password of encrypted recordings of replayed models.
    pub password: Option<String>,
    /// Whom to tell what becomes of the run, and how soon.
    pub notify: Notify,
    /// Whether a run from elsewhere may contact and read what its manifest names.
    pub trusts_endpoints: bool,
}

/// The configuration of the worker in this process.
pub fn local_worker(
    data_dir: &Path,
    simulator: Option<&SimHandle>,
    connect: Arc<dyn Connect>,
    options: &Options,
) -> anyhow::Result<WorkerConfig> {
    let evaluation = if options.no_sandbox {
        EvaluationMode::InProcess
    } else {
        EvaluationMode::Sandbox {
            program: std::env::current_exe().context("cannot find this program's own file")?,
            arguments: vec![EVALUATOR_COMMAND.to_owned()],
        }
    };
    Ok(WorkerConfig {
        endpoints: Endpoints::Listed(simulator.map(SimHandle::base_url).into_iter().collect()),
        // Simulated models are served at the simulator's address, like those of any server.
        connectors: Connector::ALL.into_iter().filter(|found| *found != Connector::Simulated).collect(),
        concurrency: options.concurrency,
        evaluators: options.evaluators,
        pack_dir: Some(data_dir.join("packs")),
        grace: GRACE,
        on_drain: tell_draining,
        connect,
        ..WorkerConfig::new(WorkerId::new("local"), evaluation)
    })
}

/// Says what the sandbox lacks on this machine, if anything.
pub fn tell_lack(host: &SandboxHost) {
    if let Some(lack) = host.lacks() {
        note!("{lack}");
    }
}

/// Says what becomes of the dialogues in flight.
fn tell_draining(Draining { given_up, in_flight }: Draining) {
    let calls = |count: usize| if count == 1 { "1 call".to_owned() } else { format!("{count} calls") };
    if given_up > 0 {
        say(&format!("gave up {} that no server has accepted", calls(given_up)));
    }
    if in_flight > 0 {
        say(&format!("waiting for the answers to {}", calls(in_flight)));
    }
}

/// A worker of this process.
pub struct LocalWorker {
    /// Stops it, as interrupts of the user do.
    pub stopper: StopSender,
    pub task: JoinHandle<Result<WorkerReport, WorkerError>>,
}

/// Starts the worker of this process.
pub fn start_worker(coordinator: &Arc<Coordinator>, worker: WorkerConfig) -> anyhow::Result<LocalWorker> {
    let (stopper, stop) = shutdown::channel();
    let by_time = stopper.clone();
    shutdown::on_signals(stopper.clone(), move |wanted, _| match wanted {
        Stop::Drain => {
            let seconds = INTERRUPTED_GRACE.as_secs();
            say(&format!(
                "interrupted: ends in {seconds} s at most; interrupt again to drop the dialogues in flight"
            ));
            let by_time = by_time.clone();
            tokio::spawn(async move {
                tokio::time::sleep(INTERRUPTED_GRACE).await;
                say(&format!("{seconds} s are over: dropping the dialogues in flight"));
                by_time.at_least(Stop::Abort);
            });
        }
        _ => say("dropping the dialogues in flight"),
    })?;
    let exchange: Arc<dyn WorkExchange> = coordinator.unnamed();
    let task = tokio::spawn(Worker::run(worker, Arc::new(move || Arc::clone(&exchange)), stop));
    Ok(LocalWorker { stopper, task })
}

/// Why records cannot be stored. A run on one machine then ends instead of waiting, because its user can repair that.
pub fn stuck(coordinator: &Coordinator, stopper: &StopSender) -> Option<String> {
    let trouble = coordinator.sink_trouble()?;
    stopper.at_least(Stop::Abort);
    Some(trouble)
}
