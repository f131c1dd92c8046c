//! A run from its configuration to its table: find or make the run's folder, connect, hold the dialogues, export.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use coordinator::configuration::{Benchmark, Connector};
use coordinator::manifest::new_manifest;
use coordinator::plan::{Plan, outlines};
use coordinator::{Coordinator, CoordinatorConfig};
use domain::control::{Control, RunCommand, RunPhase, RunView};
use domain::exchange::WorkExchange;
use domain::{FailureCause, ModelLabel, RunId, WorkerId};
use models::install_crypto;
use packs::Pack;
use results::log::WinnerIndex;
use results::sink::Sink;
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
    /// Where runs are kept.
    pub data_dir: PathBuf,
    /// Dialogues in flight per model, instead of adapting.
    pub concurrency: Option<u32>,
    /// Judge in this process instead of sandboxed ones.
    pub no_sandbox: bool,
    /// EvaluationMode processes or threads.
    pub evaluators: NonZeroUsize,
    /// Failed dialogues with one of these causes are asked again.
    pub retry: Vec<FailureCause>,
    /// Password of encrypted recordings, for replayed models.
    pub password: Option<String>,
}

/// A run that can be gone on with.
pub struct Session {
    /// Its folder; a new run gets one when its servers have been found to be there.
    dir: Option<RunDir>,
    manifest: RunManifest,
    benchmark: Benchmark,
    pack: Arc<Pack>,
    plan: Plan,
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

/// The pack that a run was planned from, as it is kept beside the runs where its name means another one by now: after an
/// update of the program, or of the file.
fn pack_of(manifest: &RunManifest, benchmark: &Benchmark, data_dir: &Path) -> anyhow::Result<Arc<Pack>> {
    let pack = material::open_pack(&benchmark.pack)?;
    let planned = manifest.packs.first().map(|pack| pack.hash.as_str()).unwrap_or_default();
    let kept = data_dir.join("packs").join(format!("{planned}.kgpack"));
    match kept.to_str() {
        Some(kept) if pack.hash().as_str() != planned && Path::new(kept).is_file() => {
            material::open_pack(kept)
        }
        _ => Ok(pack),
    }
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

impl Session {
    /// The unfinished run of the same configuration, or a new run.
    pub fn start_or_resume(benchmark: Benchmark, data_dir: &Path) -> anyhow::Result<Self> {
        let (pack, plan) = plan(&benchmark)?;
        let manifest = new_manifest(&benchmark, &pack, &plan)?;
        for found in RunDir::list(data_dir)?.into_iter().rev() {
            let Ok(old) = found.manifest else { continue }; // Named by `kgfleet runs`; no reason not to run.
            let same =
                old.configuration_hash == manifest.configuration_hash && old.plan_hash == manifest.plan_hash;
            if same && recorded(&found.dir, &old)?.len() < usize::try_from(old.planned_dialogues)? {
                return Ok(Self { dir: Some(found.dir), manifest: old, benchmark, pack, plan });
            }
        }
        Ok(Self { dir: None, manifest, benchmark, pack, plan })
    }

    /// A run by its name, as it was configured.
    pub fn resume(run: &RunId, data_dir: &Path) -> anyhow::Result<Self> {
        let (dir, manifest) = open(run, data_dir)?;
        let place = dir.manifest_path().display().to_string();
        let mut benchmark: Benchmark = serde_json::from_value(manifest.configuration.clone())
            .with_context(|| format!("the configuration in {place}"))?;
        super::endpoints::normalise(&mut benchmark, &place)?;
        let pack = pack_of(&manifest, &benchmark, data_dir)?;
        let plan = Plan::new(&benchmark, &outlines(&pack)).map_err(Exit::usage)?;
        let ours = plan.hash(benchmark.seed, pack.hash().as_str());
        if ours != manifest.plan_hash {
            bail!(Exit::usage(anyhow!(
                "run {run} was planned from pack {} and cannot go on with pack {}: the questions would differ",
                manifest.packs.first().map_or("?", |pack| pack.hash.get(..12).unwrap_or("?")),
                pack.hash().short()
            )));
        }
        Ok(Self { dir: Some(dir), manifest, benchmark, pack, plan })
    }

    /// A run by its name with another configuration. Without `extend` only an equal one is taken; with it, models, tasks
    /// and iterations may be added.
    pub fn resume_with(
        run: &RunId,
        benchmark: Benchmark,
        extend: bool,
        data_dir: &Path,
    ) -> anyhow::Result<Self> {
        let mut session = Self::resume(run, data_dir)?;
        let (pack, plan) = plan(&benchmark)?;
        let changes = super::changes::between(&session.benchmark, &benchmark);
        if changes.is_empty() {
            return Ok(session);
        }
        if !extend {
            bail!(Exit::usage(anyhow!(
                "the configuration differs from the one of run {run}:\n{}\npass --extend to add models, tasks or \
                 iterations, or start a new run",
                changes.join("\n")
            )));
        }
        for change in super::changes::in_conditions(&session.benchmark, &benchmark) {
            eprintln!("warning: {change}");
        }
        if let Some(lost) = session.plan.keys().find(|key| !plan.contains(key)) {
            bail!(Exit::usage(anyhow!(
                "--extend only adds: dialogue {lost} of run {run} is missing from the new configuration"
            )));
        }
        if benchmark.seed != session.benchmark.seed || pack.hash() != session.pack.hash() {
            bail!(Exit::usage(anyhow!("--extend keeps seed and pack: the questions would differ")));
        }
        let fresh = new_manifest(&benchmark, &pack, &plan)?;
        session.manifest = RunManifest {
            configuration: fresh.configuration,
            configuration_hash: fresh.configuration_hash,
            plan_hash: fresh.plan_hash,
            planned_dialogues: fresh.planned_dialogues,
            ..session.manifest
        };
        if let Some(dir) = &session.dir {
            let _lock = dir.lock()?;
            session.manifest.write(&dir.manifest_path())?;
        }
        Ok(Self { benchmark, pack, plan, ..session })
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.manifest.run
    }

    /// What the run's folder says of it, or will say.
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// Holds every pending dialogue.
    pub async fn run(self, options: &Options) -> anyhow::Result<Report> {
        install_crypto();
        // Before anything is begun: without its key the texts of a protected run would be written in the clear.
        protection::writing_cipher(&self.manifest).map_err(Exit::usage)?;
        let tasks = material::build(&self.pack, &self.plan)?;
        let run = self.run_id().clone();
        let connect: Arc<dyn Connect> = Arc::new(LocalConnect::new(options.password.clone()));
        let coordinator = Coordinator::start(
            CoordinatorConfig::local(),
            queue::open("memory", None)?,
            Sink::folder(options.data_dir.clone()),
        );
        // A new run gets its folder when its servers have been found to be there; one that exists says what it lacks.
        let dir = match &self.dir {
            Some(dir) => {
                coordinator.command(&run, RunCommand::Resume).await?;
                if !options.retry.is_empty() {
                    coordinator.retry(&run, &options.retry).await?;
                }
                let begun = coordinator.run(&run).await?;
                let pending = |label: &ModelLabel| {
                    let model = begun.models.iter().find(|model| model.model == *label);
                    model.is_some_and(|model| model.units_pending > 0)
                };
                self.preflight(&*connect, &tasks, options, pending).await?;
                eprintln!("going on with run {run}");
                dir.clone()
            }
            None => {
                self.preflight(&*connect, &tasks, options, |_| true).await?;
                let dir = RunDir::create(&options.data_dir, &self.manifest)
                    .with_context(|| format!("cannot start a run in {}", options.data_dir.display()))?;
                coordinator.command(&run, RunCommand::Resume).await?;
                eprintln!("starting run {run}");
                dir
            }
        };
        let begun = coordinator.run(&run).await?;
        let mut progress = Progress::new(&begun);
        let mut parked = Vec::new();
        if begun.phase != RunPhase::Finished {
            let simulator = self.simulator(&tasks, &begun).await?;
            let worker = self.worker(simulator.as_ref(), connect, options)?;
            let held = hold(&coordinator, &run, worker, &mut progress).await;
            if let Some(simulator) = simulator {
                simulator.shutdown().await;
            }
            parked = held?;
        }
        let view = coordinator.run(&run).await?;
        coordinator.close_logs().await;
        let (elapsed, added) = progress.finish(&view);
        Ok(Report {
            view,
            parked,
            seconds: elapsed.as_secs_f64(),
            added,
            dir,
            manifest: self.manifest,
            plan: self.plan,
            tasks,
        })
    }

    /// Looks at what `kgfleet check` looks at, before thousands of dialogues find out one by one: stops at what would fail
    /// all dialogues of a model, and tells the rest. Models without work are not `wanted`.
    async fn preflight(
        &self,
        connect: &dyn Connect,
        tasks: &TaskList,
        options: &Options,
        wanted: impl Fn(&ModelLabel) -> bool,
    ) -> anyhow::Result<()> {
        let longest = LongestPrompt::of(&self.plan, tasks, self.benchmark.seed);
        for spec in self.benchmark.models.iter().filter(|spec| wanted(&spec.label)) {
            let (level, message) = preflight::model(spec, connect, &longest).await?;
            if level != Level::Ok {
                eprintln!("warning: model `{}`: {message}", spec.label);
            }
        }
        // A folder that cannot be written is told by who writes to it.
        if let Ok((level, message)) = preflight::disk(&options.data_dir, self.plan.dialogues()).await
            && level != Level::Ok
        {
            eprintln!("warning: {message}");
        }
        Ok(())
    }

    /// A simulator for the simulated models; nothing where none of them has work.
    async fn simulator(&self, tasks: &TaskList, begun: &RunView) -> anyhow::Result<Option<SimHandle>> {
        let simulated = self.benchmark.models.iter().zip(&self.plan.models).zip(&begun.models);
        let iterations = simulated
            .filter(|((spec, _), model)| spec.connector == Connector::Simulated && model.units_pending > 0)
            .map(|((_, planned), _)| planned.iterations)
            .max();
        let Some(iterations) = iterations else { return Ok(None) };
        let mut key = PackKey::default();
        for (task, planned) in tasks.iter().zip(&self.plan.tasks) {
            key.learn(task, &planned.label, self.benchmark.seed, iterations);
        }
        connect::simulator(&self.benchmark, Arc::new(key)).await
    }

    /// What the worker of this process is told.
    fn worker(
        &self,
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
            pack_dir: Some(options.data_dir.join("packs")),
            grace: GRACE,
            connect,
            ..WorkerConfig::new(WorkerId::new("local"), evaluation)
        })
    }
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
    // A manifest may say anything; what it says more than this is believed when the records come.
    let keys = usize::try_from(run.planned_dialogues).unwrap_or(usize::MAX).min(RESERVED_MAX);
    let cipher = protection::cipher(run)?;
    let index = WinnerIndex::build(&dir.log(), cipher.as_ref(), keys, |damage| {
        if damage.is_loss() {
            eprintln!("the record log is damaged: {damage}; the dialogues in that place are asked again");
        }
    })?;
    Ok(index)
}
