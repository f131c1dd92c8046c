//! Judged benchmarks on this machine: a pipeline of runs, with a coordinator and a worker in one process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use coordinator::configuration::Configuration;
use coordinator::{Coordinator, CoordinatorOptions};
use domain::control::{BenchmarkCommand, BenchmarkView, Control, RunPhase};
use domain::text::with_causes;
use domain::{Ask, Connector, ErrorCode, ModelSpec, RunId};
use models::install_crypto;
use service_kit::shutdown::Stop;
use stages::names::ASK;
use worker::Connect;

use crate::engine::answer_key::PackKey;
use crate::engine::connect::{self, LocalConnect};
use crate::engine::judge_key::WithJudges;
use crate::engine::preflight::{self, LongestPrompt};
use crate::engine::progress::ProgressLine;
use crate::engine::submit;
use crate::engine::worker::{Options, local_worker, start_worker, stuck};
use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::say;
use crate::place::targets::Targets;
use crate::place::{folders, local, packs as material, trust};

/// Interval between two checks of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Interval between two attempts to reach an unreachable model. After as long without progress, the judges' servers are
/// checked.
const TRY_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// Selects a pipeline.
#[derive(Clone, Debug)]
pub enum WantedPipeline {
    /// The pipeline of this configuration.
    Configured(Configuration),
    /// The pipeline of this name.
    Named(RunId),
    /// The pipeline of this name, extended by the additional models of this configuration.
    Extended(RunId, Configuration),
}

/// The result of a pipeline.
pub struct JudgedEnding {
    /// Its current state.
    pub view: BenchmarkView,
    pub kind: String,
    /// The models that could not be asked, with stage and reason.
    pub blocked: Vec<String>,
}

impl JudgedEnding {
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

/// Runs a pipeline until it is finished, the user stops it, or no model can be reached and `waits` is false.
pub async fn run(
    wanted: WantedPipeline,
    data_dir: PathBuf,
    options: &Options,
    waits: bool,
) -> anyhow::Result<JudgedEnding> {
    install_crypto();
    let trusts = options.trusts_endpoints;
    let configuration = match &wanted {
        WantedPipeline::Configured(configuration) | WantedPipeline::Extended(_, configuration) => {
            configuration.clone()
        }
        WantedPipeline::Named(name) => {
            local::find(name, &data_dir).await?.ok_or_else(|| anyhow!("there is no pipeline {name}"))?
        }
    };
    if let WantedPipeline::Named(name) | WantedPipeline::Extended(name, _) = &wanted {
        trust::expect_own_judged(name, &data_dir, trusts).await?;
    }
    let (pack, plan) = folders::plan(&configuration)?;
    let tasks = material::build(&pack, &plan)?;
    let mut agreed = Targets::of(&configuration);
    let connect_to = |agreed: Targets| LocalConnect::new(options.password.clone(), agreed);
    if matches!(wanted, WantedPipeline::Configured(_)) && configuration.reuse.is_none() {
        // Check judges only when they are needed: one GPU cannot serve all models at once.
        let longest = LongestPrompt::of(&plan, &tasks, configuration.seed);
        preflight::models(&configuration.models, &connect_to(agreed.clone()), &longest).await?;
    }
    let coordinator = local::coordinator(CoordinatorOptions::local(), &data_dir)?;
    let access = coordinator.unnamed();
    let submission = local::submission(&configuration)?;
    let begun = match wanted {
        WantedPipeline::Configured(_) => access.submit(submission).await,
        WantedPipeline::Named(name) => access.command(&name, BenchmarkCommand::Resume).await,
        WantedPipeline::Extended(name, _) => {
            access.extend(&name, submission).await.inspect(submit::tell_changes)
        }
    };
    let begun = begun.map_err(explained)?;
    let name = begun.run.clone();
    // One of this name may have been here, with more models than this configuration.
    let whole = access.pipeline(&name).await.map_err(explained)?;
    let whole = whole.map_or_else(Targets::default, |whole| Targets::of(&whole));
    if !agreed.include(&whole) {
        trust::expect_own(&name, &whole, trusts)?;
        agreed = agreed.and(whole.clone());
    }
    trust::note_own(&name, &whole);
    let connect: Arc<dyn Connect> = Arc::new(connect_to(agreed));
    if let Some(causes) = &options.retry {
        access.retry(&name, causes).await?;
    }
    eprintln!("pipeline {name}");
    let mut key = PackKey::default();
    let iterations = plan.most_iterations();
    for (task, planned) in tasks.iter().zip(&plan.tasks) {
        key.learn(task, &planned.label, configuration.seed, iterations);
    }
    let simulator = connect::simulator(&configuration, Arc::new(WithJudges(key))).await?;
    let reach = Arc::clone(&connect);
    let worker = local_worker(&data_dir, simulator.as_ref(), connect, options)?;
    let asks = connect::asks(&configuration).skip(configuration.models.len());
    let judges = Judges { specs: asks.map(|(spec, ask)| (spec.clone(), ask)).collect(), connect: reach };
    let outcome = hold(&coordinator, &name, worker, &judges, waits).await;
    if let Some(simulator) = simulator {
        simulator.shutdown().await;
    }
    coordinator.close_logs().await;
    let (view, blocked) = outcome?;
    Ok(JudgedEnding { view, kind: configuration.pipeline.unwrap_or_default(), blocked })
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
) -> anyhow::Result<(BenchmarkView, Vec<String>)> {
    let access = coordinator.unnamed();
    let mut progress = ProgressLine::new(&access.view(name).await?);
    let (stopper, mut working) = start_worker(coordinator, worker)?;
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
                let view = match access.view(name).await {
                    // A run is being reloaded.
                    Err(error) if error.code == ErrorCode::Unavailable => continue,
                    view => view?,
                };
                progress.at(&view);
                if view.phase.is_over() {
                    stopper.at_least(Stop::Drain);
                }
                if let Some(trouble) = stuck(coordinator, &stopper) {
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
                    access.command(name, BenchmarkCommand::Resume).await?;
                }
            }
        }
    };
    let view = access.view(name).await?;
    progress.finish(&view);
    let blocked = if view.phase == RunPhase::Finished { Vec::new() } else { blocked };
    Ok((view, blocked))
}

/// Why there is no progress; empty while anything progresses.
fn all_blocked(view: &BenchmarkView) -> Vec<String> {
    if view.models.iter().any(|model| model.blocked.is_none() && model.units_pending + model.units_leased > 0)
    {
        return Vec::new();
    }
    let mut blocked: Vec<String> = view.models.iter().filter_map(|model| model.blocked.clone()).collect();
    blocked.dedup();
    blocked
}

/// Whether all answers are complete, so that only judges are asked.
fn answers_are_complete(view: &BenchmarkView) -> bool {
    let mut asked = view.cells.iter().filter(|cell| cell.task.as_str() == ASK);
    asked.all(|cell| cell.planned > 0 && cell.scored + cell.failed >= cell.planned)
}

/// Prints how it ended.
pub fn tell(outcome: &JudgedEnding) {
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
pub fn again(base: &RunId, configuration: Configuration) -> anyhow::Result<Configuration> {
    if configuration.pipeline.is_none() {
        return Err(usage!("the configuration is not a judged benchmark: `pipeline` is missing"));
    }
    Ok(Configuration { reuse: Some(base.to_string()), ..configuration })
}
