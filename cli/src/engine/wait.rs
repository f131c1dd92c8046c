//! Waits for a benchmark on this machine, while the worker of this process works.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use benchmarks::names::ASK;
use coordinator::Coordinator;
use coordinator::configuration::Configuration;
use domain::control::{BenchmarkCommand, BenchmarkView, Control};
use domain::text::with_causes;
use domain::{Ask, Connector, ErrorCode, ModelSpec, RunId};
use service_kit::shutdown::Stop;
use worker::{Connect, WorkerConfig};

use crate::engine::connect;
use crate::engine::progress::ProgressLine;
use crate::engine::worker::{LocalWorker, start_worker, stuck};
use crate::kit::output::say;

/// Interval between two checks of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Interval between two attempts to reach an unreachable model. After as long without progress, the judges' servers are
/// checked.
const TRY_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// The judges of a benchmark, and how their servers are reached.
pub struct Judges {
    specs: Vec<(ModelSpec, Ask)>,
    connect: Arc<dyn Connect>,
}

impl Judges {
    /// Those that a configuration names; none without judges.
    pub fn of(configuration: &Configuration, connect: &Arc<dyn Connect>) -> Self {
        let judges = connect::asks(configuration).skip(configuration.models.len());
        let specs = judges.map(|(spec, ask)| (spec.clone(), ask)).collect();
        Self { specs, connect: Arc::clone(connect) }
    }

    fn are_none(&self) -> bool {
        self.specs.is_empty()
    }

    /// The judges whose servers cannot be reached now, each with the reason.
    async fn out_of_reach(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (spec, ask) in self.specs.iter().filter(|(spec, _)| spec.connector != Connector::Simulated) {
            let checked = match self.connect.connect(*ask, spec, None) {
                Ok(connected) => connected.listed(spec).await.map(drop),
                Err(error) => Err(error),
            };
            let why = checked.err().map(|error| with_causes(&error));
            found.extend(why.map(|why| format!("a judge: {why}")));
        }
        found
    }
}

/// Runs a worker until the benchmark is over, the user stops it, its cap is reached, or nothing can be asked any more. In the last
/// case, one with judges waits if `waits` says so. Returns why nothing could be asked, if so.
///
/// # Errors
/// The worker ended with an error; records cannot be stored.
pub async fn wait(
    coordinator: &Arc<Coordinator>,
    name: &RunId,
    worker: WorkerConfig,
    progress: &mut ProgressLine,
    judges: &Judges,
    waits: bool,
) -> anyhow::Result<Vec<String>> {
    let (access, waits) = (coordinator.unnamed(), waits && !judges.are_none());
    let LocalWorker { stopper, task: mut working } = start_worker(coordinator, worker)?;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let (mut told, mut tried) = (Vec::new(), Instant::now());
    let (mut replies, mut moved) = (0, Instant::now());
    let mut capped: Option<String> = None;
    loop {
        tokio::select! {
            ended = &mut working => {
                ended??;
                if let Some(why) = capped {
                    return Ok(vec![why]);
                }
                if waits {
                    // Only the user ends it while a judge is away.
                    return Ok(Vec::new());
                }
                let in_words = |why: String| format!("could not be asked: {why}");
                return Ok(told.into_iter().map(in_words).collect());
            }
            _ = looks.tick() => {}
        }
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
            bail!(
                "{name} stopped: records cannot be stored; what was stored is safe ({trouble}). Free space or mend the \
                 disk, then `kgfleet resume {name}`"
            );
        }
        if let Some(why) = access.capped(&view) {
            if capped.is_none() {
                stopper.at_least(Stop::Drain);
                say("its cap is reached");
            }
            capped = Some(why);
        }
        if capped.is_some() {
            continue;
        }
        if judges.are_none() {
            told = all_parked(&view);
            if !told.is_empty() {
                stopper.at_least(Stop::Drain);
            }
            continue;
        }
        let replied = view.cells.iter().map(|cell| cell.scored + cell.failed).sum::<u64>();
        if replied != replies {
            (replies, moved) = (replied, Instant::now());
        }
        let mut blocked = all_blocked(&view);
        let is_idle = moved.elapsed().min(tried.elapsed()) >= TRY_AGAIN_EVERY;
        if blocked.is_empty() && answers_are_complete(&view) && is_idle {
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

/// Why no model with pending work can be asked; empty while any of them can be.
fn all_parked(view: &BenchmarkView) -> Vec<String> {
    let unfinished = view.models.iter().filter(|model| model.remaining() > 0);
    let parked = unfinished.map(|model| {
        let reason = model.parked.as_ref()?;
        Some(format!("model `{}`: {reason}", model.model))
    });
    parked.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Why there is no progress in any stage; empty while anything progresses.
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
