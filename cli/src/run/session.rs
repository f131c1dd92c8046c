//! Executes a run from its configuration to its end, with a coordinator and a worker in one process.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use coordinator::access::Access;
use coordinator::configuration::{Configuration, Connector};
use coordinator::plan::{Plan, outlines};
use coordinator::planned::{NotAsPlanned, Planned};
use coordinator::{Coordinator, CoordinatorOptions, Proposal};
use domain::control::{BenchmarkView, Control, RunPhase, Submission};
use domain::exchange::WorkExchange;
use domain::{FailureCause, ModelLabel, RunId, WorkerId};
use models::install_crypto;
use packs::Pack;
use results::log::{Damage, WinnerIndex};
use results::{RunDir, RunManifest};
use service_kit::shutdown::{self, Stop, StopSender};
use tokio::task::JoinHandle;
use vllm_sim::SimHandle;
use worker::material::PackFolder;
use worker::{
    Connect, EVALUATOR_COMMAND, Endpoints, EvaluationMode, TaskList, Worker, WorkerConfig, WorkerError,
    WorkerReport,
};

use super::answer_key::PackKey;
use super::connect::{self, LocalConnect};
use super::preflight::{self, Level, LongestPrompt};
use super::progress::ProgressLine;
use super::summary::RunSummary;
use super::targets::Targets;
use super::trust;
use super::{material, protection};
use crate::commands::fleet::explained;
use crate::exit_code::Exit;
use crate::notify::{Notifier, Notify};
use crate::output::say;

/// Interval between two checks of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Between two looks at whether somebody is to be told something.
const NOTIFY_EVERY: Duration = Duration::from_secs(1);

/// The task that tells, and what it tells with.
type Telling = (JoinHandle<()>, Arc<tokio::sync::Mutex<Notifier>>);

/// Maximum number of dialogues for which memory is reserved before their records are read.
const RESERVED_MAX: usize = 5_000_000;

/// Time for dialogues to finish after the first interrupt: the maximum duration of a dialogue. A user who does not want to
/// wait interrupts again.
const GRACE: Duration = Duration::from_secs(2 * 3600);

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

/// Selects a run.
#[derive(Clone, Debug)]
pub enum WantedRun {
    /// The unfinished run of this configuration, or a new one.
    Configured(Configuration),
    /// The run of this name.
    Named(RunId),
    /// The run of this name with another configuration: an equal one or, with `extend`, one that adds to it.
    Changed {
        run: RunId,
        configuration: Configuration,
        /// Whether it may add models, tasks and iterations.
        extend: bool,
    },
}

/// A run that can be started or continued, and the coordinator of this process.
pub struct Session {
    coordinator: Arc<Coordinator>,
    access: Arc<Access>,
    proposal: Proposal,
    data_dir: PathBuf,
    /// What the user agreed that it contacts and reads.
    agreed: Targets,
}

/// Plans a configuration.
pub fn plan(configuration: &Configuration) -> anyhow::Result<(Arc<Pack>, Plan)> {
    let pack = material::open_pack(&configuration.pack)?;
    let plan = Plan::new(configuration, &outlines(&pack)).map_err(Exit::usage)?;
    Ok((pack, plan))
}

/// The data folder that a run lies in.
pub fn data_of(dir: &RunDir) -> &Path {
    dir.path().parent().and_then(Path::parent).unwrap_or(dir.path())
}

/// The packs that are kept beside the runs of a folder.
pub fn packs_beside(dir: &RunDir) -> PackFolder {
    PackFolder::new(data_of(dir).join("packs"))
}

/// The pack and the plan of a run. A pack that is kept beside the runs, as those of judging runs are, comes first: it has no
/// other place.
///
/// # Errors
/// The pack is not there, or what its name stands for today is another one; [`NotAsPlanned`] if the manifest was altered.
pub fn plan_kept(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<(Arc<Pack>, Plan)> {
    let configuration = configuration(manifest)?;
    let packs = packs_beside(dir);
    let used = manifest.packs.first();
    let (pack, plan) = match used.and_then(|used| packs.find(&used.hash)) {
        Some((_, pack)) => {
            let plan = Plan::new(&configuration, &outlines(&pack)).map_err(Exit::usage)?;
            (pack, plan)
        }
        None => {
            plan(&configuration).with_context(|| format!("the pack of run {} is not there", manifest.run))?
        }
    };
    NotAsPlanned::check(manifest, &plan, pack.hash().as_str())?;
    if let Some(used) = used.filter(|used| used.hash != pack.hash().as_str()) {
        bail!(
            "run {} was planned from pack {} ({}), which is not there; `{}` is {} today",
            manifest.run,
            used.hash.get(..12).unwrap_or_default(),
            used.name,
            configuration.pack,
            pack.hash().short()
        );
    }
    Ok((pack, plan))
}

/// The configuration of a run.
///
/// # Errors
/// This version cannot read it.
pub fn configuration(manifest: &RunManifest) -> anyhow::Result<Configuration> {
    serde_json::from_value(manifest.configuration.clone())
        .with_context(|| format!("run {}: its configuration", manifest.run))
}

/// The same, with nothing where the plan cannot be made again.
///
/// # Errors
/// The manifest was altered.
pub fn plan_unless_altered(
    dir: &RunDir,
    manifest: &RunManifest,
) -> Result<anyhow::Result<(Arc<Pack>, Plan)>, NotAsPlanned> {
    match plan_kept(dir, manifest) {
        Err(error) => match error.downcast::<NotAsPlanned>() {
            Ok(altered) => Err(altered),
            Err(error) => Ok(Err(error)),
        },
        planned => Ok(planned),
    }
}

/// Opens a run of this machine by its name.
///
/// # Errors
/// There is none, or its manifest cannot be read or was altered.
pub fn open(run: &RunId, data_dir: &Path) -> anyhow::Result<(RunDir, RunManifest)> {
    let (dir, manifest) = explained_open(RunDir::open(data_dir, run), run, data_dir)?;
    // What cannot be planned today is read all the same.
    let _ =
        plan_unless_altered(&dir, &manifest).with_context(|| dir.manifest_path().display().to_string())?;
    Ok((dir, manifest))
}

/// The same for a run whose manifest may have been altered: to say so, or to remove it.
///
/// # Errors
/// There is none, or its manifest cannot be read.
pub fn open_altered(run: &RunId, data_dir: &Path) -> anyhow::Result<(RunDir, RunManifest)> {
    explained_open(RunDir::open_altered(data_dir, run), run, data_dir)
}

/// An error for people of opening a run.
fn explained_open<T>(
    opened: Result<T, results::run_dir::RunDirError>,
    run: &RunId,
    data_dir: &Path,
) -> anyhow::Result<T> {
    opened.map_err(|error| {
        let error = anyhow!(error);
        let missing = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
        if error.chain().filter_map(|cause| cause.downcast_ref()).any(missing) {
            return anyhow!(
                "there is no run {run} in {}; `kgfleet runs` lists the runs, --data-dir selects another folder",
                data_dir.display()
            );
        }
        error
    })
}

/// A coordinator in this process over a data folder.
pub fn coordinator(config: CoordinatorOptions, data_dir: &Path) -> anyhow::Result<Arc<Coordinator>> {
    Ok(Coordinator::start(config, queue::open("memory", None)?, results::sink::folder(data_dir)))
}

/// A submission of a configuration. It contains no pack: the coordinator of this process reads the pack itself.
pub fn submission(configuration: &Configuration) -> anyhow::Result<Submission> {
    Ok(Submission { configuration: serde_json::to_value(configuration)?, pack: None })
}

impl Session {
    /// Asks the coordinator of this process for the run. A new run is not written yet. One that is named by its name must be
    /// the user's own, or become it by `trusts`; a configuration in the user's hand is the user's word.
    pub async fn open(wanted: WantedRun, data_dir: PathBuf, trusts: bool) -> anyhow::Result<Self> {
        let coordinator = coordinator(CoordinatorOptions::local(), &data_dir)?;
        let access = coordinator.unnamed();
        let (agreed, proposal) = match &wanted {
            WantedRun::Configured(configuration) => {
                (Targets::of(configuration), access.propose(submission(configuration)?).await)
            }
            WantedRun::Named(run) => {
                (trust::expect_own_run(run, &data_dir, trusts).await?, access.propose_existing(run).await)
            }
            WantedRun::Changed { run, configuration, extend } => (
                trust::expect_own_run(run, &data_dir, trusts).await?.and(Targets::of(configuration)),
                access.propose_change(run, submission(configuration)?, *extend).await,
            ),
        };
        let proposal = proposal.map_err(explained)?;
        proposal.changes().iter().for_each(|line| eprintln!("{line}"));
        for warning in proposal.warnings() {
            eprintln!("warning: {warning}");
        }
        Ok(Self { coordinator, access, proposal, data_dir, agreed })
    }

    /// Begins the run, which is the user's own from then on.
    async fn begin(&self) -> anyhow::Result<BenchmarkView> {
        trust::note_own(&self.manifest().run, &Targets::of(&self.planned().configuration));
        Ok(self.access.begin(&self.proposal).await?)
    }

    /// The run's manifest, which for a new run is not written yet.
    pub fn manifest(&self) -> &RunManifest {
        self.proposal.manifest()
    }

    fn planned(&self) -> &Planned {
        self.proposal.planned()
    }

    /// Executes all pending dialogues.
    pub async fn run(self, options: &Options) -> anyhow::Result<RunSummary> {
        install_crypto();
        let (coordinator, access) = (&self.coordinator, &self.access);
        let tasks = material::build(&self.planned().pack, &self.planned().plan)?;
        let run = self.manifest().run.clone();
        let connect: Arc<dyn Connect> =
            Arc::new(LocalConnect::new(options.password.clone(), self.agreed.clone()));
        // A new run gets its folder after its servers were checked; an existing one reports its pending dialogues.
        let begun = if self.proposal.is_new() {
            self.preflight(&*connect, &tasks, |_| true).await?;
            let begun = self.begin().await;
            let begun =
                begun.with_context(|| format!("cannot start a run in {}", self.data_dir.display()))?;
            eprintln!("starting run {run}");
            begun
        } else {
            self.begin().await?;
            if let Some(causes) = &options.retry {
                access.retry(&run, causes).await?;
            }
            let begun = access.run(&run).await?;
            let pending = |label: &ModelLabel| {
                let model = begun.models.iter().find(|model| model.model == *label);
                model.is_some_and(|model| model.units_pending > 0)
            };
            self.preflight(&*connect, &tasks, pending).await?;
            eprintln!("continuing run {run}");
            begun
        };
        let mut progress = ProgressLine::new(&begun);
        let telling = self.telling(&run, &options.notify)?;
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
        let view = access.run(&run).await?;
        if let Some((telling, notifier)) = telling {
            // What is being told is told first.
            let mut notifier = notifier.lock().await;
            telling.abort();
            notifier.look_last(&view).await;
        }
        coordinator.close_logs().await;
        let (elapsed, added) = progress.finish(&view);
        let (dir, manifest) = open(&run, &self.data_dir)?;
        let plan = self.planned().plan.clone();
        Ok(RunSummary { view, parked, seconds: elapsed.as_secs_f64(), added, dir, manifest, plan, tasks })
    }

    /// Tells whom it concerns what becomes of the run, beside the work.
    fn telling(&self, run: &RunId, notify: &Notify) -> anyhow::Result<Option<Telling>> {
        if notify.targets.is_empty() {
            return Ok(None);
        }
        let notifier = Arc::new(tokio::sync::Mutex::new(Notifier::new(notify.clone())));
        let (access, run, notifying) = (Arc::clone(&self.access), run.clone(), Arc::clone(&notifier));
        let telling = tokio::spawn(async move {
            let mut looks = tokio::time::interval(NOTIFY_EVERY);
            looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                if let Ok(view) = access.run(&run).await
                    && !view.phase.is_over()
                {
                    notifying.lock().await.look(&view).await;
                }
            }
        });
        Ok(Some((telling, notifier)))
    }

    /// Runs the checks of `kgfleet check` before thousands of dialogues fail one by one: stops at problems that would fail all
    /// dialogues of a model, and reports the rest. Models without work are not `wanted`.
    async fn preflight(
        &self,
        connect: &dyn Connect,
        tasks: &TaskList,
        wanted: impl Fn(&ModelLabel) -> bool,
    ) -> anyhow::Result<()> {
        let Planned { configuration, plan, .. } = self.planned();
        let longest = LongestPrompt::of(plan, tasks, configuration.seed);
        let asked = configuration.models.iter().filter(|spec| wanted(&spec.label));
        preflight::models(asked, connect, &longest).await?;
        // The process that writes to the folder will report that it cannot be written.
        if let Ok((level, message)) = preflight::disk(&self.data_dir, plan.dialogues()).await
            && level != Level::Ok
        {
            eprintln!("warning: {message}");
        }
        Ok(())
    }

    /// A simulator for the simulated models; `None` if none of them has work.
    async fn simulator(&self, tasks: &TaskList, begun: &BenchmarkView) -> anyhow::Result<Option<SimHandle>> {
        let Planned { configuration, plan, .. } = self.planned();
        let simulated = configuration.models.iter().zip(&plan.models).zip(&begun.models);
        let iterations = simulated
            .filter(|((spec, _), model)| spec.connector == Connector::Simulated && model.units_pending > 0)
            .map(|((_, planned), _)| planned.most_iterations(plan.tasks.len()))
            .max();
        let Some(iterations) = iterations else { return Ok(None) };
        let mut key = PackKey::default();
        for (task, planned) in tasks.iter().zip(&plan.tasks) {
            key.learn(task, &planned.label, configuration.seed, iterations);
        }
        connect::simulator(configuration, Arc::new(key)).await
    }
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
        connect,
        ..WorkerConfig::new(WorkerId::new("local"), evaluation)
    })
}

/// Runs a worker until the run is finished, the user stops it, or no model can be asked any more. Returns the models that
/// could not be asked, with the reasons.
async fn hold(
    coordinator: &Arc<Coordinator>,
    run: &RunId,
    worker: WorkerConfig,
    progress: &mut ProgressLine,
) -> anyhow::Result<Vec<(ModelLabel, String)>> {
    let access = coordinator.unnamed();
    let (stopper, mut working) = start_worker(coordinator, worker)?;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let mut parked = Vec::new();
    loop {
        tokio::select! {
            ended = &mut working => {
                ended??;
                return Ok(parked);
            }
            _ = looks.tick() => {
                let view = access.run(run).await?;
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

/// Starts the worker of this process. Interrupts of the user stop it, as does the sender.
pub(super) fn start_worker(
    coordinator: &Arc<Coordinator>,
    worker: WorkerConfig,
) -> anyhow::Result<(StopSender, JoinHandle<Result<WorkerReport, WorkerError>>)> {
    let (stopper, stop) = shutdown::channel();
    shutdown::on_signals(stopper.clone(), |wanted| match wanted {
        Stop::Drain => say("finishing the dialogues in flight; interrupt again to drop them"),
        _ => say("dropping the dialogues in flight"),
    })?;
    let exchange: Arc<dyn WorkExchange> = coordinator.unnamed();
    let working = tokio::spawn(Worker::run(worker, Arc::new(move || Arc::clone(&exchange)), stop));
    Ok((stopper, working))
}

/// Why records cannot be stored. On one machine the run then ends instead of waiting, because the user can help.
pub(super) fn stuck(coordinator: &Coordinator, stopper: &StopSender) -> Option<String> {
    let trouble = coordinator.sink_trouble()?;
    stopper.at_least(Stop::Abort);
    Some(trouble)
}

/// The models with pending work, each with the reason why it cannot be asked; empty while any of them can be asked.
fn all_parked(view: &BenchmarkView) -> Vec<(ModelLabel, String)> {
    let unfinished = view.models.iter().filter(|model| model.scored + model.failed < model.planned);
    let parked = unfinished.map(|model| Some((model.model.clone(), model.parked.clone()?)));
    parked.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The winners of a run's log.
pub fn recorded(dir: &RunDir, run: &RunManifest) -> anyhow::Result<WinnerIndex> {
    recorded_despite(dir, run, |damage| {
        eprintln!("the record log is damaged: {damage}; the dialogues in that place will be asked again");
    })
}

/// The winners of a run's log; `lost` is called for every damage that may have lost records.
pub fn recorded_despite(
    dir: &RunDir,
    run: &RunManifest,
    mut lost: impl FnMut(&Damage),
) -> anyhow::Result<WinnerIndex> {
    // The number in a manifest is not trusted: beyond this, memory grows as records are read.
    let keys = usize::try_from(run.planned_dialogues).unwrap_or(usize::MAX).min(RESERVED_MAX);
    let cipher = protection::cipher(run)?;
    let index = WinnerIndex::build(&dir.log(), cipher.as_ref(), keys, |damage| {
        if damage.is_loss() {
            lost(&damage);
        }
    })?;
    Ok(index)
}
