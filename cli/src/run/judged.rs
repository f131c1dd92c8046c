//! Judged benchmarks on this machine: a pipeline of runs, with a coordinator and a worker in one process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use coordinator::configuration::Benchmark;
use coordinator::{Coordinator, CoordinatorConfig};
use domain::control::{Control, RunCommand, RunPhase, RunView};
use domain::text::with_causes;
use domain::{Ask, Connector, ErrorCode, ModelSpec, RunId};
use models::install_crypto;
use results::RunDir;
use service_kit::shutdown::Stop;
use stages::RunName;
use stages::names::ASK;
use worker::Connect;

use super::answer_key::PackKey;
use super::connect::{self, LocalConnect};
use super::judge_key::WithJudges;
use super::material;
use super::preflight::{self, LongestPrompt};
use super::progress::Progress;
use super::session::{self, Options};
use crate::commands::fleet::{block_on, explained, submit};
use crate::exit_code::{ExitCode, usage};
use crate::output::say;

/// Interval between two checks of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Interval between two attempts to reach an unreachable model. After as long without progress, the judges' servers are
/// checked.
const TRY_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// Selects a pipeline.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The pipeline of this configuration.
    Configured(Benchmark),
    /// The pipeline of this name.
    Named(RunId),
    /// The pipeline of this name, extended by the additional models of this configuration.
    Extended(RunId, Benchmark),
}

/// The result of a pipeline.
pub struct Outcome {
    /// Its current state.
    pub view: RunView,
    /// Its kind.
    pub kind: String,
    /// The models that could not be asked, with stage and reason.
    pub blocked: Vec<String>,
}

impl Outcome {
    /// The exit code of the command.
    pub fn exit_code(&self) -> ExitCode {
        match (self.view.phase, self.view.failed) {
            (RunPhase::Finished, 0) => ExitCode::Success,
            (RunPhase::Finished, _) => ExitCode::Unsatisfied,
            _ if self.blocked.is_empty() => ExitCode::Interrupted,
            _ => ExitCode::Infrastructure,
        }
    }
}

/// The configuration of a pipeline on this machine; `None` if there is no pipeline of this name.
pub async fn find(name: &RunId, data_dir: &std::path::Path) -> anyhow::Result<Option<Benchmark>> {
    beside(data_dir)?.pipeline(name).await.map_err(explained)
}

/// The pipelines of this machine, briefly.
pub fn all(data_dir: &std::path::Path) -> anyhow::Result<Vec<RunView>> {
    block_on(async { beside(data_dir)?.pipelines().await.map_err(explained) })
}

/// Those of these runs that belong to a pipeline; none where it is none.
pub fn runs_of(pipeline: &str, runs: impl IntoIterator<Item = RunId>) -> Vec<RunId> {
    runs.into_iter().filter(|run| is_run_of(run, pipeline)).collect()
}

/// Whether a run is that of one of a pipeline's stages.
pub fn is_run_of(run: &RunId, pipeline: &str) -> bool {
    RunName::read(run).is_some_and(|name| name.pipeline == pipeline)
}

/// The runs of a pipeline of this machine; none where it is none.
pub fn runs_in(pipeline: &RunId, data_dir: &std::path::Path) -> anyhow::Result<Vec<RunId>> {
    let found = RunDir::list(data_dir)?;
    Ok(runs_of(pipeline.as_str(), found.iter().map(|found| found.dir.run())))
}

/// Removes a pipeline of this machine with its runs; `None` where the name is none of a pipeline.
///
/// # Errors
/// A process writes one of its runs; another pipeline takes its answers from it.
pub fn remove(name: &RunId, data_dir: &std::path::Path) -> anyhow::Result<Option<RunId>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let coordinator = beside(data_dir)?;
        if coordinator.pipeline(name).await.map_err(explained)?.is_none() {
            return Ok(None);
        }
        coordinator.remove(name, true).await.map_err(explained)?;
        Ok(Some(name.clone()))
    })
}

/// A coordinator that looks at what there is, and does nothing by itself.
pub fn beside(data_dir: &std::path::Path) -> anyhow::Result<Arc<Coordinator>> {
    let config = CoordinatorConfig { tends: false, ..CoordinatorConfig::local() };
    session::coordinator(config, data_dir)
}

/// Runs a pipeline until it is finished, the user stops it, or no model can be reached and `waits` is false.
pub async fn run(
    wanted: Wanted,
    data_dir: PathBuf,
    options: &Options,
    waits: bool,
) -> anyhow::Result<Outcome> {
    install_crypto();
    let benchmark = match &wanted {
        Wanted::Configured(benchmark) | Wanted::Extended(_, benchmark) => benchmark.clone(),
        Wanted::Named(name) => {
            find(name, &data_dir).await?.ok_or_else(|| anyhow!("there is no pipeline {name}"))?
        }
    };
    let (pack, plan) = session::plan(&benchmark)?;
    let tasks = material::build(&pack, &plan)?;
    let connect: Arc<dyn Connect> = Arc::new(LocalConnect::new(options.password.clone()));
    if matches!(wanted, Wanted::Configured(_)) && benchmark.reuse.is_none() {
        // Check judges only when they are needed: one GPU cannot serve all models at once.
        let longest = LongestPrompt::of(&plan, &tasks, benchmark.seed);
        preflight::models(&benchmark.models, &*connect, &longest).await?;
    }
    let coordinator = session::coordinator(CoordinatorConfig::local(), &data_dir)?;
    let submission = session::submission(&benchmark)?;
    let begun = match wanted {
        Wanted::Configured(_) => coordinator.submit(submission).await,
        Wanted::Named(name) => coordinator.command(&name, RunCommand::Resume).await,
        Wanted::Extended(name, _) => {
            coordinator.extend(&name, submission).await.inspect(submit::tell_changes)
        }
    };
    let begun = begun.map_err(explained)?;
    let name = begun.run.clone();
    if let Some(causes) = &options.retry {
        coordinator.retry(&name, causes).await?;
    }
    eprintln!("pipeline {name}");
    let mut key = PackKey::default();
    let iterations = plan.most_iterations();
    for (task, planned) in tasks.iter().zip(&plan.tasks) {
        key.learn(task, &planned.label, benchmark.seed, iterations);
    }
    let simulator = connect::simulator(&benchmark, Arc::new(WithJudges(key))).await?;
    let reach = Arc::clone(&connect);
    let worker = session::local_worker(&data_dir, simulator.as_ref(), connect, options)?;
    let asks = connect::asks(&benchmark).skip(benchmark.models.len());
    let judges = Judges { specs: asks.map(|(spec, ask)| (spec.clone(), ask)).collect(), connect: reach };
    let outcome = hold(&coordinator, &name, worker, &judges, waits).await;
    if let Some(simulator) = simulator {
        simulator.shutdown().await;
    }
    coordinator.close_logs().await;
    let (view, blocked) = outcome?;
    Ok(Outcome { view, kind: benchmark.pipeline.unwrap_or_default(), blocked })
}

/// The judges of a pipeline, and how their servers are reached.
struct Judges {
    specs: Vec<(ModelSpec, Ask)>,
    connect: Arc<dyn Connect>,
}

impl Judges {
    /// The judges that their servers do not serve now, each with the reason.
    async fn out_of_reach(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (spec, ask) in self.specs.iter().filter(|(spec, _)| spec.connector != Connector::Simulated) {
            let checked = match self.connect.connect(*ask, spec, None) {
                Ok(connected) => connected.check(spec).await.map(drop),
                Err(error) => Err(error),
            };
            found.extend(checked.err().map(|error| format!("a judge: {}", with_causes(&error))));
        }
        found
    }
}

/// Waits until the pipeline is finished or stopped. Returns its state, and the models that could not be asked.
async fn hold(
    coordinator: &Arc<Coordinator>,
    name: &RunId,
    worker: worker::WorkerConfig,
    judges: &Judges,
    waits: bool,
) -> anyhow::Result<(RunView, Vec<String>)> {
    let mut progress = Progress::new(&coordinator.run(name).await?);
    let (stopper, mut working) = session::start_worker(coordinator, worker)?;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let (mut told, mut tried) = (Vec::new(), Instant::now());
    let (mut replies, mut moved) = (0, Instant::now());
    let blocked = loop {
        tokio::select! {
            ended = &mut working => {
                ended??;
                break told;
            }
            _ = looks.tick() => {
                let view = match coordinator.run(name).await {
                    // A run is being reloaded.
                    Err(error) if error.code == ErrorCode::Unavailable => continue,
                    view => view?,
                };
                progress.at(&view);
                if view.phase.is_over() {
                    stopper.at_least(Stop::Drain);
                }
                if let Some(trouble) = session::stuck(coordinator, &stopper) {
                    working.await??;
                    bail!("pipeline {name} stopped: records cannot be stored ({trouble}); `kgfleet resume {name}` goes on");
                }
                let replied = view.cells.iter().map(|cell| cell.scored + cell.failed).sum::<u64>();
                if replied != replies {
                    (replies, moved) = (replied, Instant::now());
                }
                let mut blocked = all_blocked(&view);
                if blocked.is_empty()
                    && answers_are_complete(&view)
                    && moved.elapsed().min(tried.elapsed()) >= TRY_AGAIN_EVERY
                {
                    // The worker retries its calls for many minutes before it gives up.
                    tried = Instant::now();
                    blocked = judges.out_of_reach().await;
                    if !waits && !blocked.is_empty() {
                        // The dialogues in flight wait for an unreachable judge.
                        stopper.at_least(Stop::Abort);
                    }
                }
                if blocked.is_empty() {
                    continue;
                }
                if !waits {
                    told = blocked;
                    stopper.at_least(Stop::Drain);
                    continue;
                }
                if told != blocked {
                    blocked.iter().for_each(|why| say(&format!("waiting for {why}")));
                    told = blocked;
                }
                if tried.elapsed() >= TRY_AGAIN_EVERY {
                    tried = Instant::now();
                    coordinator.command(name, RunCommand::Resume).await?;
                }
            }
        }
    };
    let view = coordinator.run(name).await?;
    progress.finish(&view);
    let blocked = if view.phase == RunPhase::Finished { Vec::new() } else { blocked };
    Ok((view, blocked))
}

/// Why there is no progress; empty while anything progresses.
fn all_blocked(view: &RunView) -> Vec<String> {
    if view.models.iter().any(|model| model.blocked.is_none() && model.units_pending + model.units_leased > 0)
    {
        return Vec::new();
    }
    let mut blocked: Vec<String> = view.models.iter().filter_map(|model| model.blocked.clone()).collect();
    blocked.dedup();
    blocked
}

/// Whether all answers are complete, so that only judges are asked.
fn answers_are_complete(view: &RunView) -> bool {
    let mut asked = view.cells.iter().filter(|cell| cell.task.as_str() == ASK);
    asked.all(|cell| cell.planned > 0 && cell.scored + cell.failed >= cell.planned)
}

/// Prints how it ended.
pub fn tell(outcome: &Outcome) {
    let view = &outcome.view;
    eprintln!("pipeline {}: {} of {} dialogues judged", view.run, view.scored, view.planned);
    for why in &outcome.blocked {
        eprintln!("could not be asked: {why}");
    }
    if view.phase != RunPhase::Finished {
        eprintln!("`kgfleet resume {}` goes on", view.run);
    } else if view.failed > 0 {
        eprintln!("`kgfleet retry {}` asks again what has no verdict", view.run);
    }
}

/// The configuration for judging the same answers with other judges.
///
/// # Errors
/// The configuration is not a judged benchmark.
pub fn again(base: &RunId, benchmark: Benchmark) -> anyhow::Result<Benchmark> {
    if benchmark.pipeline.is_none() {
        return Err(usage!("the configuration is not a judged benchmark: `pipeline` is missing"));
    }
    Ok(Benchmark { reuse: Some(base.to_string()), ..benchmark })
}
