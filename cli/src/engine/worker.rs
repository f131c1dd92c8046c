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
use crate::kit::arguments::{Concurrency, concurrency};
use crate::kit::output::{note, say};

/// Time for dialogues to finish when the worker stops by itself: the maximum duration of a dialogue.
const GRACE: Duration = Duration::from_secs(2 * 3600);

/// The same after the first interrupt. A user who does not want to wait interrupts again.
const INTERRUPTED_GRACE: Duration = Duration::from_secs(60);

/// How a benchmark is worked off on this machine.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Dialogues in flight per model: a number, or `auto` to adapt to the server.
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = concurrency)]
    concurrency: Concurrency,
    /// Number of evaluation processes. Default: one per CPU.
    #[arg(long, value_name = "N")]
    evaluators: Option<NonZeroUsize>,
    /// Judge answers in this process: faster, but without protection from hostile answers.
    #[arg(long)]
    pub no_sandbox: bool,
    /// Password of encrypted recordings, for replayed models, and of the result-json archive of a run on protected
    /// exercises.
    #[arg(long, value_name = "P", env = "KGFLEET_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Go on with a run from elsewhere: contact the addresses and read the keys that its manifest names. It is yours from then
    /// on. Without this, they are only listed.
    #[arg(long)]
    pub trust_endpoints: bool,
    #[command(flatten)]
    pub notify: Notify,
    /// Ask failed dialogues with one of these causes again, or all if the list is empty; `None`: none.
    #[arg(skip)]
    pub retry: Option<Vec<FailureCause>>,
}

/// So many threads, or one per CPU.
pub fn threads(wanted: Option<NonZeroUsize>) -> NonZeroUsize {
    wanted.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
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
        concurrency: options.concurrency.0,
        evaluators: threads(options.evaluators),
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
