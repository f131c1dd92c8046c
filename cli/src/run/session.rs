//! A run from its configuration to its table: find or make the run's folder, connect, hold the dialogues, export.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, bail};
use coordinator::configuration::{Benchmark, Connector, ModelSpec};
use coordinator::plan::{Plan, Unit};
use domain::{FailureCause, RunId};
use jiff::Timestamp;
use models::{HttpClient, RetryPolicy, install_crypto};
use packs::Pack;
use results::log::{CommitPolicy, CommitQueue, LogItem, LogOptions, LogReader, LogWriter, WinnerIndex};
use results::manifest::{MANIFEST_VERSION, PackUse, hash};
use results::run_dir::RunLock;
use results::{RunDir, RunManifest};
use tasks::EvaluationLimits;
use worker::{
    Deadlines, DialogueContext, Evaluator, InProcess, LimiterBounds, PackProvenance, Sandbox, SandboxConfig,
    SandboxLimits, TaskList,
};

use super::answer_key::PackKey;
use super::dispatch::{self, Committer, Lane};
use super::progress::Progress;
use super::stop::{self, Stop};
use super::summary::{Digest, Summary};
use super::{connect, material, protection};
use crate::exit_code::{Exit, ExitCode};

/// What a user decides beside the configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where runs are kept.
    pub data_dir: PathBuf,
    /// Dialogues in flight per model, instead of adapting.
    pub concurrency: Option<u32>,
    /// Judge in this process instead of sandboxed ones.
    pub no_sandbox: bool,
    /// Evaluation processes or threads.
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

/// What a finished session tells.
pub struct Report {
    /// The run's folder.
    pub dir: RunDir,
    /// The run.
    pub manifest: RunManifest,
    /// What was planned.
    pub plan: Plan,
    /// Its tasks.
    pub tasks: TaskList,
    /// Scores and failures.
    pub summary: Summary,
    /// Whether everything planned has a record.
    pub complete: bool,
    /// Wall time of this process's part in seconds, and its dialogues per second.
    pub seconds: f64,
    /// Dialogues per second of this process.
    pub rate: f64,
}

impl Report {
    /// The exit code that the report leads to.
    pub fn exit_code(&self) -> ExitCode {
        match (self.complete, self.summary.failed()) {
            (false, _) => ExitCode::Interrupted,
            (true, 0) => ExitCode::Success,
            (true, _) => ExitCode::Unsatisfied,
        }
    }
}

/// Plans a configuration.
pub fn plan(benchmark: &Benchmark) -> anyhow::Result<(Arc<Pack>, Plan)> {
    let pack = material::open_pack(&benchmark.pack)?;
    let plan = Plan::new(benchmark, &material::outlines(&pack)).map_err(Exit::usage)?;
    Ok((pack, plan))
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
            if same && recorded(&found.dir, &old)?.0.len() < usize::try_from(old.planned_dialogues)? {
                return Ok(Self { dir: Some(found.dir), manifest: old, benchmark, pack, plan });
            }
        }
        Ok(Self { dir: None, manifest, benchmark, pack, plan })
    }

    /// A run by its name, as it was configured.
    pub fn resume(run: &RunId, data_dir: &Path) -> anyhow::Result<Self> {
        let (dir, manifest) = RunDir::open(data_dir, run)?;
        let benchmark: Benchmark = serde_json::from_value(manifest.configuration.clone())
            .with_context(|| format!("the configuration in {}", dir.manifest_path().display()))?;
        let (pack, plan) = plan(&benchmark)?;
        let ours = plan.hash(benchmark.seed, pack.hash().as_str());
        if ours != manifest.plan_hash {
            bail!(Exit::usage(anyhow::anyhow!(
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
            bail!(Exit::usage(anyhow::anyhow!(
                "the configuration differs from the one of run {run}:\n{}\npass --extend to add models, tasks or \
                 iterations, or start a new run",
                changes.join("\n")
            )));
        }
        if let Some(lost) = session.plan.keys().find(|key| !plan.contains(key)) {
            bail!(Exit::usage(anyhow::anyhow!(
                "--extend only adds: dialogue {lost} of run {run} is missing from the new configuration"
            )));
        }
        if benchmark.seed != session.benchmark.seed || pack.hash() != session.pack.hash() {
            bail!(Exit::usage(anyhow::anyhow!("--extend keeps seed and pack: the questions would differ")));
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
        let tasks = material::build(&self.pack, &self.plan)?;
        let lock = self.dir.as_ref().map(RunDir::lock).transpose()?;
        let (index, next_ticket) = match &self.dir {
            Some(dir) => recorded(dir, &self.manifest)?,
            None => (WinnerIndex::default(), 1),
        };
        let mut summary = Summary::default();
        let retried = self.digest(&index, &tasks, &options.retry, &mut summary)?;
        let done = summary.scored() + summary.failed();
        let total = self.plan.dialogues();

        let mut units: Vec<Vec<Unit>> = vec![Vec::new(); self.plan.models.len()];
        for unit in self.plan.units(|model, task, iteration| {
            let key = self.key(model, task, iteration);
            index.get(&key).is_some() && !retried.contains(&key)
        }) {
            units[unit.model].push(unit);
        }
        let pending = |model: usize| !units[model].is_empty();
        let simulator = match self.answer_key(&tasks, pending) {
            Some(key) => connect::simulator(&self.benchmark, Arc::new(key)).await?,
            None => None,
        };
        let evaluator = self.evaluator(&tasks, options)?;
        let http = HttpClient::new();
        let mut lanes = Vec::new();
        for (spec, units) in self.benchmark.models.iter().zip(units) {
            if units.is_empty() {
                continue;
            }
            let connector = connect::connect(spec, &http, simulator.as_ref(), options.password.as_deref())?;
            connector.check(spec).await?;
            lanes.push(Lane {
                context: Arc::new(self.context(connector, &evaluator, &tasks, spec)),
                bounds: bounds(spec, options),
                units,
            });
        }
        let cipher = protection::writing_cipher(&self.manifest)?;
        let (dir, _lock) = self.begin(lock, &options.data_dir)?;
        let (writer, recovery) = LogWriter::open(&dir.log(), LogOptions { cipher, ..LogOptions::default() })?;
        if recovery.torn_bytes > 0 {
            eprintln!("cut {} bytes that a killed run had not finished writing", recovery.torn_bytes);
        }
        let (stopper, stop) = stop::channel();
        stop::on_signals(stopper.clone())?;
        let (log, log_thread) = CommitQueue::start(writer, CommitPolicy::DISK)?;
        let committer = Committer { log, ticket: Arc::new(AtomicU64::new(next_ticket)) };
        let mut progress = Progress::new(total, done);
        let outcome = dispatch::run(
            Arc::new(self.plan.clone()),
            lanes,
            committer,
            stop.clone(),
            stopper,
            |digest: Digest| {
                progress.dialogue(digest.outcome.is_ok());
                summary.add(&digest);
            },
        )
        .await;
        let (elapsed, rate) = progress.finish();
        tokio::task::spawn_blocking(move || log_thread.join()).await?;
        if let Some(simulator) = simulator {
            simulator.shutdown().await;
        }
        let run = self.run_id();
        outcome.with_context(|| {
            format!(
                "run {run} stopped: records cannot be stored; what was stored is safe. Free space or mend the disk, \
                 then `kgfleet resume {run}`"
            )
        })?;
        let complete = summary.scored() + summary.failed() == total && *stop.borrow() < Stop::Abort;
        Ok(Report {
            complete,
            seconds: elapsed.as_secs_f64(),
            rate,
            dir,
            manifest: self.manifest,
            plan: self.plan,
            tasks,
            summary,
        })
    }

    /// The run's folder, made where it is new, and the right to write it.
    fn begin(&self, lock: Option<RunLock>, data_dir: &Path) -> anyhow::Result<(RunDir, RunLock)> {
        let run = self.run_id();
        if let (Some(dir), Some(lock)) = (&self.dir, lock) {
            eprintln!("going on with run {run}");
            return Ok((dir.clone(), lock));
        }
        let dir = RunDir::create(data_dir, &self.manifest)
            .with_context(|| format!("cannot start a run in {}", data_dir.display()))?;
        eprintln!("starting run {run}");
        let lock = dir.lock()?;
        Ok((dir, lock))
    }

    fn key(&self, model: usize, task: usize, iteration: u32) -> domain::DialogueKey {
        domain::DialogueKey {
            model: self.plan.models[model].label.clone(),
            task: self.plan.tasks[task].label.clone(),
            iteration,
        }
    }

    /// Adds what is recorded to the summary; the keys of failed dialogues that are to be asked again.
    fn digest(
        &self,
        index: &WinnerIndex,
        tasks: &TaskList,
        retry: &[FailureCause],
        summary: &mut Summary,
    ) -> anyhow::Result<std::collections::HashSet<domain::DialogueKey>> {
        let mut retried = std::collections::HashSet::new();
        let Some(dir) = &self.dir else { return Ok(retried) };
        let cipher = protection::cipher(&self.manifest)?;
        for entry in index.records(&dir.log(), cipher.as_ref())? {
            let record = entry?.record;
            let Some(task) = self.plan.tasks.iter().position(|task| task.label == record.key.task) else {
                continue; // Of a task that is no longer planned.
            };
            if !self.plan.contains(&record.key) {
                continue;
            }
            let digest = Digest::of(&record, tasks[task].class);
            match digest.outcome {
                Err(cause) if retry.contains(&cause) => {
                    retried.insert(record.key);
                }
                _ => summary.add(&digest),
            }
        }
        Ok(retried)
    }

    /// What simulated models know; nothing where none of them has work.
    fn answer_key(&self, tasks: &TaskList, pending: impl Fn(usize) -> bool) -> Option<PackKey> {
        let simulated = self.benchmark.models.iter().zip(&self.plan.models).enumerate();
        let iterations = simulated
            .filter(|(model, (spec, _))| spec.connector == Connector::Simulated && pending(*model))
            .map(|(_, (_, planned))| planned.iterations)
            .max()?;
        let mut key = PackKey::default();
        for (task, planned) in tasks.iter().zip(&self.plan.tasks) {
            key.learn(task, &planned.label, self.benchmark.seed, iterations);
        }
        Some(key)
    }

    fn limits(&self) -> EvaluationLimits {
        self.pack.header().limits
    }

    fn evaluator(&self, tasks: &TaskList, options: &Options) -> anyhow::Result<Arc<dyn Evaluator>> {
        let limits = self.limits();
        if options.no_sandbox {
            let effort = tasks::Effort::full(limits);
            return Ok(Arc::new(InProcess::start(tasks, effort, options.evaluators)?));
        }
        let compat = limits == EvaluationLimits::compat();
        Ok(Arc::new(Sandbox::start(SandboxConfig {
            program: std::env::current_exe().context("cannot find this program's own file")?,
            arguments: vec![super::EVALUATOR_COMMAND.to_owned()],
            tasks: serde_json::to_value(material::request(&self.benchmark, &self.pack, &self.plan))?,
            children: options.evaluators,
            evaluation: limits,
            limits: if compat { SandboxLimits::compat() } else { SandboxLimits::default() },
        })?))
    }

    fn context(
        &self,
        connector: connect::Connected,
        evaluator: &Arc<dyn Evaluator>,
        tasks: &TaskList,
        spec: &ModelSpec,
    ) -> DialogueContext {
        let limits = serde_json::to_value(self.limits()).unwrap_or_default();
        DialogueContext {
            model: connector.model,
            script: connector.script,
            evaluator: Arc::clone(evaluator),
            tasks: Arc::clone(tasks),
            pack: PackProvenance {
                name: self.pack.header().name.clone(),
                hash: self.pack.hash().as_str().to_owned(),
                scorer: format!("{} {limits}", env!("CARGO_PKG_VERSION")),
            },
            sampling: spec.sampling.clone(),
            retry: RetryPolicy::default(),
            deadlines: Deadlines::default(),
            run_seed: self.benchmark.seed,
            now: Timestamp::now,
        }
    }
}

fn bounds(spec: &ModelSpec, options: &Options) -> LimiterBounds {
    match (options.concurrency.or(spec.concurrency), spec.connector) {
        (Some(fixed), _) => LimiterBounds::fixed(fixed),
        (None, Connector::OpenaiCompatible) => LimiterBounds::own_server(),
        (None, Connector::Simulated | Connector::Replay) => LimiterBounds::fixed(64),
        (None, Connector::Anthropic | Connector::Gemini) => LimiterBounds::provider(),
    }
}

/// The winners of a run's log, and the first ticket that is free.
pub fn recorded(dir: &RunDir, run: &RunManifest) -> anyhow::Result<(WinnerIndex, u64)> {
    let mut index = WinnerIndex::default();
    let mut next_ticket = 1;
    let cipher = protection::cipher(run)?;
    for item in LogReader::open(&dir.log(), cipher.as_ref())? {
        match item? {
            LogItem::Entry { location, entry } => {
                next_ticket = next_ticket.max(entry.ticket + 1);
                index.add(entry.ticket, &entry.record, location);
            }
            LogItem::Damage(damage) if damage.is_loss() => {
                eprintln!("the record log is damaged: {damage}; the dialogues in that place are asked again");
            }
            LogItem::Damage(_) => {}
        }
    }
    Ok((index, next_ticket))
}

fn new_manifest(benchmark: &Benchmark, pack: &Pack, plan: &Plan) -> anyhow::Result<RunManifest> {
    let configuration = serde_json::to_value(benchmark)?;
    let now = Timestamp::now();
    // Names begin with their time, so that lists are in order of time; the rest tells runs of one second apart.
    let random = domain::RecordId::random();
    let tail = random.as_str().rsplit('-').next().and_then(|part| part.get(..6)).unwrap_or("000000");
    Ok(RunManifest {
        version: MANIFEST_VERSION,
        run: RunId::new(format!("{}-{tail}", now.strftime("%Y%m%d-%H%M%S"))),
        created_at: now,
        kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
        configuration_hash: hash(&configuration),
        configuration,
        plan_hash: plan.hash(benchmark.seed, pack.hash().as_str()),
        seed: benchmark.seed,
        packs: vec![PackUse { name: pack.header().name.clone(), hash: pack.hash().as_str().to_owned() }],
        planned_dialogues: plan.dialogues(),
        protected: pack.header().protected,
        log_key: protection::new_log_key(pack.header().protected)?,
        other: serde_json::Map::new(),
    })
}
