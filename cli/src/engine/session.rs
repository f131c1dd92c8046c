//! Carries out a benchmark on this machine, from its configuration to its end, with a coordinator and a worker in one
//! process. Nothing is asked and nothing is written before [`Session::run`].

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use coordinator::access::Access;
use coordinator::configuration::{Configuration, Connector};
use coordinator::plan::Plan;
use coordinator::{Coordinator, CoordinatorOptions, Proposal};
use domain::control::{BenchmarkCommand, BenchmarkView, Control, RunPhase};
use domain::{ModelLabel, RunId};
use models::install_crypto;
use results::RunManifest;
use vllm_sim::SimHandle;
use worker::evaluate::sandbox::host::SandboxHost;
use worker::{Connect, TaskList};

use crate::engine::answer_key::PackKey;
use crate::engine::connect::{self, LocalConnect};
use crate::engine::ending::LocalEnding;
use crate::engine::judge_key::WithJudges;
use crate::engine::preflight::{self, Level, LongestPrompt};
use crate::engine::progress::ProgressLine;
use crate::engine::submit;
use crate::engine::wait::{Judges, wait};
use crate::engine::worker::{Options, local_worker, tell_lack};
use crate::kit::exit_code::{explained, usage};
use crate::kit::output::note;
use crate::place::targets::Targets;
use crate::place::{disk, folders, local, packs as material, trust};

/// Selects a benchmark.
#[derive(Clone, Debug)]
pub enum WantedBenchmark {
    /// The unfinished one of this configuration, or a new one.
    Configured(Configuration),
    /// The one of this name, as it is configured.
    Named(RunId),
    /// The one of this name with another configuration: an equal one or, with `extend`, one that adds to it.
    Changed {
        name: RunId,
        configuration: Configuration,
        /// Whether it may add models, tasks and iterations.
        extend: bool,
    },
}

/// How a benchmark is begun.
enum Begin {
    /// A run: proposed, so that everything about it is checked before it is written.
    Run(Box<Proposal>),
    /// A judged benchmark.
    Judged(Box<WantedBenchmark>),
}

/// A benchmark that can be started or continued, and the coordinator of this process.
pub struct Session {
    coordinator: Arc<Coordinator>,
    access: Arc<Access>,
    configuration: Configuration,
    plan: Plan,
    tasks: TaskList,
    begin: Begin,
    data_dir: PathBuf,
    /// What the user agreed that it contacts and reads.
    agreed: Targets,
    /// Whether the user agrees to whatever a benchmark from elsewhere names.
    trusts: bool,
}

impl Session {
    /// Asks the coordinator of this process for a benchmark; a new one is not written yet. One that is named by its name must
    /// be the user's own, or become it by `trusts`; a configuration in the user's hand is the user's word.
    ///
    /// # Errors
    /// There is none of this name, it is foreign, or its configuration differs in what may not change.
    pub async fn open(wanted: WantedBenchmark, data_dir: PathBuf, trusts: bool) -> anyhow::Result<Self> {
        let judged = match &wanted {
            WantedBenchmark::Named(name) => local::find(name, &data_dir).await?,
            WantedBenchmark::Configured(configuration) | WantedBenchmark::Changed { configuration, .. } => {
                Some(configuration.clone()).filter(|configuration| configuration.pipeline.is_some())
            }
        };
        if let Some(configuration) = judged {
            return Self::open_judged(wanted, configuration, data_dir, trusts).await;
        }
        let coordinator = local::coordinator(CoordinatorOptions::local(), &data_dir)?;
        let access = coordinator.unnamed();
        let (agreed, proposal) = match &wanted {
            WantedBenchmark::Configured(configuration) => {
                (Targets::of(configuration), access.propose(local::submission(configuration)?).await)
            }
            WantedBenchmark::Named(run) => {
                (trust::expect_own_run(run, &data_dir, trusts).await?, access.propose_existing(run).await)
            }
            WantedBenchmark::Changed { name, configuration, extend } => (
                trust::expect_own_run(name, &data_dir, trusts).await?.and(Targets::of(configuration)),
                access.propose_change(name, local::submission(configuration)?, *extend).await,
            ),
        };
        let proposal = proposal.map_err(explained)?;
        proposal.changes().iter().for_each(|line| note!("{line}"));
        for warning in proposal.warnings() {
            eprintln!("warning: {warning}");
        }
        let planned = proposal.planned();
        let tasks = material::build(&planned.pack, &planned.plan)?;
        let (configuration, plan) = (planned.configuration.clone(), planned.plan.clone());
        let begin = Begin::Run(Box::new(proposal));
        Ok(Self { coordinator, access, configuration, plan, tasks, begin, data_dir, agreed, trusts })
    }

    async fn open_judged(
        wanted: WantedBenchmark,
        configuration: Configuration,
        data_dir: PathBuf,
        trusts: bool,
    ) -> anyhow::Result<Self> {
        match &wanted {
            WantedBenchmark::Changed { extend: false, .. } => {
                return Err(usage!(
                    "a judged benchmark goes on with `kgfleet resume`; with --extend it gets more models"
                ));
            }
            WantedBenchmark::Named(name) | WantedBenchmark::Changed { name, .. } => {
                trust::expect_own_judged(name, &data_dir, trusts).await?;
            }
            WantedBenchmark::Configured(_) => {}
        }
        let (pack, plan) = folders::plan(&configuration)?;
        let tasks = material::build(&pack, &plan)?;
        let agreed = Targets::of(&configuration);
        let coordinator = local::coordinator(CoordinatorOptions::local(), &data_dir)?;
        let (access, begin) = (coordinator.unnamed(), Begin::Judged(Box::new(wanted)));
        Ok(Self { coordinator, access, configuration, plan, tasks, begin, data_dir, agreed, trusts })
    }

    /// The manifest of a run, which for a new one is not written yet; `None` for a judged benchmark, whose runs follow.
    pub fn manifest(&self) -> Option<&RunManifest> {
        match &self.begin {
            Begin::Run(proposal) => Some(proposal.manifest()),
            Begin::Judged(_) => None,
        }
    }

    /// What it would do, in lines for people.
    pub fn outline(&self) -> String {
        let what = match &self.begin {
            Begin::Run(proposal) if proposal.is_new() => "start a run".to_owned(),
            Begin::Run(proposal) => format!("go on with run {}", proposal.manifest().run),
            Begin::Judged(wanted) => match &**wanted {
                WantedBenchmark::Configured(_) => "run a judged benchmark, or go on with it".to_owned(),
                WantedBenchmark::Named(name) | WantedBenchmark::Changed { name, .. } => {
                    format!("go on with benchmark {name}")
                }
            },
        };
        let (models, tasks) = (self.plan.models.len(), self.plan.tasks.len());
        let size = format!("{} dialogues; models: {models}, tasks: {tasks}", self.plan.dialogues());
        let targets =
            if self.agreed.is_empty() { String::new() } else { format!("\nIt would{}", self.agreed) };
        format!("kgfleet would {what} in {}: {size}{targets}", self.data_dir.display())
    }

    /// Executes all pending dialogues, until the benchmark is over or the user stops it, or until nothing can be asked: then a
    /// judged one waits, if `waits` says so.
    ///
    /// # Errors
    /// A check before the beginning failed; it is written by another process; records cannot be stored.
    pub async fn run(mut self, options: &Options, waits: bool) -> anyhow::Result<LocalEnding> {
        install_crypto();
        // From then on it is the user's own.
        let begun = match &self.begin {
            Begin::Run(proposal) => self.start_run(proposal, options).await?,
            Begin::Judged(wanted) => {
                let wanted = WantedBenchmark::clone(wanted);
                self.start_judged(wanted, options).await?
            }
        };
        let name = begun.run.clone();
        let mut progress = ProgressLine::new(&begun, &self.data_dir, &options.notify);
        let connect = self.connect(options);
        let judges = Judges::of(&self.configuration, &connect);
        let mut blocked = Vec::new();
        if begun.phase != RunPhase::Finished {
            if !options.no_sandbox {
                tell_lack(&SandboxHost::here());
            }
            let simulator = self.simulator(&begun).await?;
            let worker = local_worker(&self.data_dir, simulator.as_ref(), connect, options)?;
            let waited = wait(&self.coordinator, &name, worker, &mut progress, &judges, waits).await;
            if let Some(simulator) = simulator {
                simulator.shutdown().await;
            }
            blocked = waited?;
        }
        let view = self.access.view(&name).await?;
        let is_capped = !blocked.is_empty() && self.access.capped(&view).is_some();
        self.coordinator.close_logs().await;
        let (elapsed, added) = progress.finish(&view).await;
        let Self { configuration, plan, tasks, .. } = self;
        let seconds = elapsed.as_secs_f64();
        Ok(LocalEnding { view, blocked, is_capped, seconds, added, configuration, plan, tasks })
    }

    async fn start_run(&self, proposal: &Proposal, options: &Options) -> anyhow::Result<BenchmarkView> {
        let (access, run, connect) = (&self.access, &proposal.manifest().run, self.connect(options));
        let begin = async || {
            trust::note_own(run, &Targets::of(&self.configuration));
            access.begin(proposal).await
        };
        // A new run gets its folder after its servers were checked; an existing one reports its pending dialogues.
        if proposal.is_new() {
            self.preflight(&*connect, |_| true, None).await?;
            let begun = begin().await;
            let begun =
                begun.with_context(|| format!("cannot start a run in {}", self.data_dir.display()))?;
            note!("starting run {run}");
            return Ok(begun);
        }
        begin().await?;
        if let Some(causes) = &options.retry {
            access.retry(run, causes).await?;
        }
        let begun = access.view(run).await?;
        let pending = |label: &ModelLabel| {
            let model = begun.models.iter().find(|model| model.model == *label);
            model.is_some_and(|model| model.units_pending > 0)
        };
        self.preflight(&*connect, pending, Some(&begun)).await?;
        note!("continuing run {run}");
        Ok(begun)
    }

    async fn start_judged(
        &mut self,
        wanted: WantedBenchmark,
        options: &Options,
    ) -> anyhow::Result<BenchmarkView> {
        if matches!(wanted, WantedBenchmark::Configured(_)) && self.configuration.reuse.is_none() {
            // Judges are checked when they are needed: one GPU cannot serve all models at once.
            self.preflight(&*self.connect(options), |_| true, None).await?;
        }
        let access = &self.access;
        let submission = local::submission(&self.configuration)?;
        let begun = match wanted {
            WantedBenchmark::Configured(_) => access.submit(submission).await,
            WantedBenchmark::Named(name) => access.command(&name, BenchmarkCommand::Resume).await,
            WantedBenchmark::Changed { name, .. } => {
                access.extend(&name, submission).await.inspect(submit::tell_changes)
            }
        };
        let begun = begun.map_err(explained)?;
        let name = &begun.run;
        // One of this name may have been here, with more models than this configuration.
        let whole = local::find(name, &self.data_dir).await?;
        let whole = whole.ok_or_else(|| anyhow!("there is no benchmark {name}"))?;
        let whole = Targets::of(&whole);
        if !self.agreed.include(&whole) {
            trust::expect_own(name, &whole, self.trusts)?;
            self.agreed = self.agreed.clone().and(whole.clone());
        }
        trust::note_own(name, &whole);
        if let Some(causes) = &options.retry {
            access.retry(name, causes).await?;
        }
        note!("benchmark {name}");
        Ok(access.view(name).await?)
    }

    fn connect(&self, options: &Options) -> Arc<dyn Connect> {
        Arc::new(LocalConnect::new(options.password.clone(), self.agreed.clone()))
    }

    /// Runs the checks of `kgfleet plan` before thousands of dialogues fail one by one: stops at problems that would fail all
    /// dialogues of a model, and reports the rest. Models without work are not `wanted`; what has been `begun` has records.
    async fn preflight(
        &self,
        connect: &dyn Connect,
        wanted: impl Fn(&ModelLabel) -> bool,
        begun: Option<&BenchmarkView>,
    ) -> anyhow::Result<()> {
        let longest = LongestPrompt::of(&self.plan, &self.tasks, self.configuration.seed);
        let asked = self.configuration.models.iter().filter(|spec| wanted(&spec.label));
        preflight::models(asked, connect, &longest).await?;
        let unjudged = preflight::unjudged(&self.configuration, &self.tasks);
        for message in [preflight::cases(&self.plan), unjudged].into_iter().flatten() {
            eprintln!("warning: {message}");
        }
        // The process that writes to the folder will report that it cannot be written.
        let written = begun.and_then(|begun| disk::written(begun, &self.data_dir).ok()).unwrap_or_default();
        if let Ok((level, message)) = preflight::disk(&self.data_dir, written, self.plan.dialogues()).await
            && level != Level::Ok
        {
            eprintln!("warning: {message}");
        }
        Ok(())
    }

    /// A simulator for the simulated models and judges; `None` if none of them may be asked.
    async fn simulator(&self, begun: &BenchmarkView) -> anyhow::Result<Option<SimHandle>> {
        let Self { configuration, plan, tasks, .. } = self;
        let has_judges = !configuration.judges.is_empty();
        let simulated = configuration.models.iter().zip(&plan.models).filter(|(spec, _)| {
            let mut models = begun.models.iter();
            let is_pending = models.any(|model| model.model == spec.label && model.units_pending > 0);
            spec.connector == Connector::Simulated && (has_judges || is_pending)
        });
        let of_models = simulated.map(|(_, planned)| planned.most_iterations(plan.tasks.len())).max();
        // Simulated judges answer whoever was asked.
        let Some(iterations) = of_models.or(has_judges.then(|| plan.most_iterations())) else {
            return Ok(None);
        };
        let mut key = PackKey::default();
        for (task, planned) in tasks.iter().zip(&plan.tasks) {
            key.learn(task, &planned.label, configuration.seed, iterations);
        }
        match has_judges {
            true => connect::simulator(configuration, Arc::new(WithJudges(key))).await,
            false => connect::simulator(configuration, Arc::new(key)).await,
        }
    }
}
