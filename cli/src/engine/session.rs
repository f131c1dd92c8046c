//! Executes a run from its configuration to its end, with a coordinator and a worker in one process.
//!
//! `start` opens a [`Session`] and runs it. A new run gets its folder only after its servers were checked; everything
//! printed here goes to standard error. The run ends early if no model can be asked any more, or if records cannot be
//! stored; what was stored stays, and `kgfleet resume` continues.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use coordinator::access::Access;
use coordinator::configuration::{Configuration, Connector};
use coordinator::planned::Planned;
use coordinator::{Coordinator, CoordinatorOptions, Proposal};
use domain::control::{BenchmarkView, Control, RunPhase};
use domain::{ModelLabel, RunId};
use models::install_crypto;
use results::RunManifest;
use service_kit::shutdown::Stop;
use tokio::task::JoinHandle;
use vllm_sim::SimHandle;
use worker::{Connect, TaskList, WorkerConfig};

use crate::engine::answer_key::PackKey;
use crate::engine::connect::{self, LocalConnect};
use crate::engine::ending::RunSummary;
use crate::engine::notify::{Notifier, Notify};
use crate::engine::preflight::{self, Level, LongestPrompt};
use crate::engine::progress::ProgressLine;
use crate::engine::worker::{Options, local_worker, start_worker, stuck};
use crate::kit::exit_code::explained;
use crate::place::targets::Targets;
use crate::place::{folders, local, packs as material, trust};

/// Interval between two checks of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Interval between two looks at the run for notices.
const NOTIFY_EVERY: Duration = Duration::from_secs(1);

/// The task that sends notices, and its notifier.
type Telling = (JoinHandle<()>, Arc<tokio::sync::Mutex<Notifier>>);

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
    /// The addresses and files that the user agreed to.
    agreed: Targets,
}

impl Session {
    /// Asks the coordinator of this process for the run. A new run is not written yet. A run that is given by name must
    /// be the user's own, unless `trusts` makes it so; a run that is given by a configuration is the user's own.
    pub async fn open(wanted: WantedRun, data_dir: PathBuf, trusts: bool) -> anyhow::Result<Self> {
        let coordinator = local::coordinator(CoordinatorOptions::local(), &data_dir)?;
        let access = coordinator.unnamed();
        let (agreed, proposal) = match &wanted {
            WantedRun::Configured(configuration) => {
                (Targets::of(configuration), access.propose(local::submission(configuration)?).await)
            }
            WantedRun::Named(run) => {
                (trust::expect_own_run(run, &data_dir, trusts).await?, access.propose_existing(run).await)
            }
            WantedRun::Changed { run, configuration, extend } => (
                trust::expect_own_run(run, &data_dir, trusts).await?.and(Targets::of(configuration)),
                access.propose_change(run, local::submission(configuration)?, *extend).await,
            ),
        };
        let proposal = proposal.map_err(explained)?;
        proposal.changes().iter().for_each(|line| eprintln!("{line}"));
        for warning in proposal.warnings() {
            eprintln!("warning: {warning}");
        }
        Ok(Self { coordinator, access, proposal, data_dir, agreed })
    }

    /// Starts the run, and notes that it is the user's own.
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
            let begun = access.view(&run).await?;
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
        let view = access.view(&run).await?;
        if let Some((telling, notifier)) = telling {
            // What is being told is told first.
            let mut notifier = notifier.lock().await;
            telling.abort();
            notifier.look_last(&view).await;
        }
        coordinator.close_logs().await;
        let (elapsed, added) = progress.finish(&view);
        let (dir, manifest) = folders::open(&run, &self.data_dir)?;
        let plan = self.planned().plan.clone();
        Ok(RunSummary { view, parked, seconds: elapsed.as_secs_f64(), added, dir, manifest, plan, tasks })
    }

    /// Starts to send notices in the background, if there are targets.
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
                if let Ok(view) = access.view(&run).await
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
                let view = access.view(run).await?;
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

/// The models with pending work, each with the reason why it cannot be asked; empty while any of them can be asked.
fn all_parked(view: &BenchmarkView) -> Vec<(ModelLabel, String)> {
    let unfinished = view.models.iter().filter(|model| model.scored + model.failed < model.planned);
    let parked = unfinished.map(|model| Some((model.model.clone(), model.parked.clone()?)));
    parked.collect::<Option<Vec<_>>>().unwrap_or_default()
}
