//! A run from its configuration to its end: a coordinator and a worker in one process.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use coordinator::configuration::{Benchmark, Connector};
use coordinator::manifest::Planned;
use coordinator::plan::{Plan, outlines};
use coordinator::{Coordinator, CoordinatorConfig, Proposal};
use domain::control::{Control, RunPhase, RunView, Submission};
use domain::exchange::WorkExchange;
use domain::{FailureCause, ModelLabel, RunId, WorkerId};
use models::install_crypto;
use packs::Pack;
use results::log::{Damage, WinnerIndex};
use results::{RunDir, RunManifest};
use service_kit::shutdown::{self, Stop, StopSender};
use vllm_sim::SimHandle;
use worker::{Connect, EVALUATOR_COMMAND, Endpoints, EvaluationMode, TaskList, Worker, WorkerConfig};

use super::answer_key::PackKey;
use super::connect::{self, LocalConnect};
use super::preflight::{self, Level, LongestPrompt};
use super::progress::Progress;
use super::report::Report;
use super::{material, protection};
use crate::commands::fleet::explained;
use crate::exit_code::Exit;
use crate::output::say;

/// Between two looks at how far a run is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Dialogues that room is made for before their records are read.
const RESERVED_MAX: usize = 5_000_000;

/// How long dialogues may go on after the first interrupt: as long as a dialogue may take at all. Whoever does not want
/// to wait interrupts again.
const GRACE: Duration = Duration::from_secs(2 * 3600);

/// What a user decides beside the configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Dialogues in flight per model, instead of adapting.
    pub concurrency: Option<u32>,
    /// Judge in this process instead of sandboxed ones.
    pub no_sandbox: bool,
    /// Evaluation processes or threads.
    pub evaluators: NonZeroUsize,
    /// Failed dialogues with one of these causes are asked again, all of them where none is named; `None`: nothing is.
    pub retry: Option<Vec<FailureCause>>,
    /// Password of encrypted recordings, for replayed models.
    pub password: Option<String>,
}

/// Which run is meant.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The unfinished run of this configuration, or a new one.
    Configured(Benchmark),
    /// The run of this name.
    Named(RunId),
    /// The run of this name with another configuration: an equal one or, with `extend`, one that adds to it.
    Changed {
        /// The run.
        run: RunId,
        /// The configuration.
        benchmark: Benchmark,
        /// Whether it may add models, tasks and iterations.
        extend: bool,
    },
}

/// A run that can be begun or gone on with, and the coordinator of this process.
pub struct Session {
    coordinator: Arc<Coordinator>,
    proposal: Proposal,
    data_dir: PathBuf,
}

/// Plans a configuration.
pub fn plan(benchmark: &Benchmark) -> anyhow::Result<(Arc<Pack>, Plan)> {
    let pack = material::open_pack(&benchmark.pack)?;
    let plan = Plan::new(benchmark, &outlines(&pack)).map_err(Exit::usage)?;
    Ok((pack, plan))
}

/// The plan of a run, from its manifest and its pack.
pub fn plan_of(run: &RunManifest) -> anyhow::Result<Plan> {
    let benchmark: Benchmark = serde_json::from_value(run.configuration.clone())?;
    Ok(plan(&benchmark)?.1)
}

/// A run of this machine by its name.
pub fn open(run: &RunId, data_dir: &Path) -> anyhow::Result<(RunDir, RunManifest)> {
    RunDir::open(data_dir, run).map_err(|error| {
        let error = anyhow!(error);
        let missing = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
        if error.chain().filter_map(|cause| cause.downcast_ref()).any(missing) {
            return anyhow!(
                "there is no run {run} in {}; `kgfleet runs` lists those that are there, --data-dir names another folder",
                data_dir.display()
            );
        }
        error
    })
}

/// A configuration as any coordinator gets it; one of this process reads the pack itself.
fn submission(benchmark: &Benchmark) -> anyhow::Result<Submission> {
    Ok(Submission { configuration: serde_json::to_value(benchmark)?, pack: None })
}

impl Session {
    /// Asks a coordinator of this process what it would do. Nothing of a new run is written yet.
    pub async fn open(wanted: Wanted, data_dir: PathBuf) -> anyhow::Result<Self> {
        let sink = results::sink::folder(data_dir.clone());
        let coordinator = Coordinator::start(CoordinatorConfig::local(), queue::open("memory", None)?, sink);
        let proposal = match &wanted {
            Wanted::Configured(benchmark) => coordinator.propose(submission(benchmark)?).await,
            Wanted::Named(run) => {
                open(run, &data_dir)?;
                coordinator.propose_existing(run).await
            }
            Wanted::Changed { run, benchmark, extend } => {
                open(run, &data_dir)?;
                coordinator.propose_change(run, submission(benchmark)?, *extend).await
            }
        };
        let proposal = proposal.map_err(explained)?;
        proposal.changes().iter().for_each(|line| eprintln!("{line}"));
        for warning in proposal.warnings() {
            eprintln!("warning: {warning}");
        }
        Ok(Self { coordinator, proposal, data_dir })
    }

    /// What the run's folder says of it, or will say.
    pub fn manifest(&self) -> &RunManifest {
        self.proposal.manifest()
    }

    fn planned(&self) -> &Planned {
        self.proposal.planned()
    }

    /// Holds every pending dialogue.
    pub async fn run(self, options: &Options) -> anyhow::Result<Report> {
        install_crypto();
        let coordinator = &self.coordinator;
        let tasks = material::build(&self.planned().pack, &self.planned().plan)?;
        let run = self.manifest().run.clone();
        let connect: Arc<dyn Connect> = Arc::new(LocalConnect::new(options.password.clone()));
        // A new run gets its folder when its servers have been found to be there; one that exists says what it lacks.
        let begun = if self.proposal.is_new() {
            self.preflight(&*connect, &tasks, |_| true).await?;
            let begun = coordinator.begin(&self.proposal).await;
            let begun =
                begun.with_context(|| format!("cannot start a run in {}", self.data_dir.display()))?;
            eprintln!("starting run {run}");
            begun
        } else {
            coordinator.begin(&self.proposal).await?;
            if let Some(causes) = &options.retry {
                coordinator.retry(&run, causes).await?;
            }
            let begun = coordinator.run(&run).await?;
            let pending = |label: &ModelLabel| {
                let model = begun.models.iter().find(|model| model.model == *label);
                model.is_some_and(|model| model.units_pending > 0)
            };
            self.preflight(&*connect, &tasks, pending).await?;
            eprintln!("going on with run {run}");
            begun
        };
        let mut progress = Progress::new(&begun);
        let mut parked = Vec::new();
        if begun.phase != RunPhase::Finished {
            let simulator = self.simulator(&tasks, &begun).await?;
            let worker = local_worker(&self.data_dir, simulator.as_ref(), connect, options)?;
            let held = hold(coordinator, &run, worker, &mut progress).await;
            if let Some(simulator) = simulator {
                simulator.shutdown().await;
            }
            parked = held?;
        }
        let view = coordinator.run(&run).await?;
        coordinator.close_logs().await;
        let (elapsed, added) = progress.finish(&view);
        let (dir, manifest) = open(&run, &self.data_dir)?;
        let plan = self.planned().plan.clone();
        Ok(Report { view, parked, seconds: elapsed.as_secs_f64(), added, dir, manifest, plan, tasks })
    }

    /// Looks at what `kgfleet check` looks at, before thousands of dialogues find out one by one: stops at what would fail
    /// all dialogues of a model, and tells the rest. Models without work are not `wanted`.
    async fn preflight(
        &self,
        connect: &dyn Connect,
        tasks: &TaskList,
        wanted: impl Fn(&ModelLabel) -> bool,
    ) -> anyhow::Result<()> {
        let Planned { benchmark, plan, .. } = self.planned();
        let longest = LongestPrompt::of(plan, tasks, benchmark.seed);
        for spec in benchmark.models.iter().filter(|spec| wanted(&spec.label)) {
            let (level, message) = preflight::model(spec, connect, &longest).await?;
            if level != Level::Ok {
                eprintln!("warning: model `{}`: {message}", spec.label);
            }
        }
        // A folder that cannot be written is told by who writes to it.
        if let Ok((level, message)) = preflight::disk(&self.data_dir, plan.dialogues()).await
            && level != Level::Ok
        {
            eprintln!("warning: {message}");
        }
        Ok(())
    }

    /// A simulator for the simulated models; nothing where none of them has work.
    async fn simulator(&self, tasks: &TaskList, begun: &RunView) -> anyhow::Result<Option<SimHandle>> {
        let Planned { benchmark, plan, .. } = self.planned();
        let simulated = benchmark.models.iter().zip(&plan.models).zip(&begun.models);
        let iterations = simulated
            .filter(|((spec, _), model)| spec.connector == Connector::Simulated && model.units_pending > 0)
            .map(|((_, planned), _)| planned.most_iterations(plan.tasks.len()))
            .max();
        let Some(iterations) = iterations else { return Ok(None) };
        let mut key = PackKey::default();
        for (task, planned) in tasks.iter().zip(&plan.tasks) {
            key.learn(task, &planned.label, benchmark.seed, iterations);
        }
        connect::simulator(benchmark, Arc::new(key)).await
    }
}

/// What the worker of this process is told.
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
        // Simulated models are served at the simulator's address, as any server's are.
        connectors: Connector::ALL.into_iter().filter(|found| *found != Connector::Simulated).collect(),
        concurrency: options.concurrency,
        evaluators: options.evaluators,
        pack_dir: Some(data_dir.join("packs")),
        grace: GRACE,
        connect,
        ..WorkerConfig::new(WorkerId::new("local"), evaluation)
    })
}

/// Lets a worker work until the run is finished, somebody says stop, or no model can be asked any more; the models that
/// could not be, with the reasons.
async fn hold(
    coordinator: &Arc<Coordinator>,
    run: &RunId,
    worker: WorkerConfig,
    progress: &mut Progress,
) -> anyhow::Result<Vec<(ModelLabel, String)>> {
    let (stopper, stop) = shutdown::channel();
    shutdown::on_signals(stopper.clone(), |wanted| match wanted {
        Stop::Drain => say("finishing the dialogues in flight; interrupt again to drop them"),
        _ => say("dropping the dialogues in flight"),
    })?;
    let exchange: Arc<dyn WorkExchange> = Arc::clone(coordinator) as Arc<dyn WorkExchange>;
    let mut working = tokio::spawn(Worker::run(worker, Arc::new(move || Arc::clone(&exchange)), stop));
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let mut parked = Vec::new();
    loop {
        tokio::select! {
            ended = &mut working => {
                ended??;
                return Ok(parked);
            }
            _ = looks.tick() => {
                let view = coordinator.run(run).await?;
                progress.at(&view);
                if view.phase == RunPhase::Finished {
                    stopper.at_least(Stop::Drain);
                }
                if let Some(trouble) = stuck(coordinator, &stopper) {
                    working.await??;
                    bail!(
                        "run {run} stopped: records cannot be stored; what was stored is safe ({trouble}). Free space \
                         or mend the disk, then `kgfleet resume {run}`"
                    );
                }
                parked = all_parked(&view);
                if !parked.is_empty() {
                    stopper.at_least(Stop::Drain);
                }
            }
        }
    }
}

/// What keeps records from being stored. On one machine somebody is there who can help: the run ends rather than waits.
fn stuck(coordinator: &Coordinator, stopper: &StopSender) -> Option<String> {
    let trouble = coordinator.sink_trouble()?;
    stopper.at_least(Stop::Abort);
    Some(trouble)
}

/// The models with work left, each with the reason why it cannot be asked; empty while any of them can.
fn all_parked(view: &RunView) -> Vec<(ModelLabel, String)> {
    let unfinished = view.models.iter().filter(|model| model.scored + model.failed < model.planned);
    let parked = unfinished.map(|model| Some((model.model.clone(), model.parked.clone()?)));
    parked.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The winners of a run's log.
pub fn recorded(dir: &RunDir, run: &RunManifest) -> anyhow::Result<WinnerIndex> {
    recorded_despite(dir, run, |damage| {
        eprintln!("the record log is damaged: {damage}; the dialogues in that place are asked again");
    })
}

/// The winners of a run's log; `lost` hears of every damage that may have cost records.
pub fn recorded_despite(
    dir: &RunDir,
    run: &RunManifest,
    mut lost: impl FnMut(&Damage),
) -> anyhow::Result<WinnerIndex> {
    // A manifest may say anything; what it says more than this is believed when the records come.
    let keys = usize::try_from(run.planned_dialogues).unwrap_or(usize::MAX).min(RESERVED_MAX);
    let cipher = protection::cipher(run)?;
    let index = WinnerIndex::build(&dir.log(), cipher.as_ref(), keys, |damage| {
        if damage.is_loss() {
            lost(&damage);
        }
    })?;
    Ok(index)
}
