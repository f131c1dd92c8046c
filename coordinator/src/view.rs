//! Runs and workers as people see them.

use std::sync::Arc;
use std::time::Duration;

use domain::control::{ModelView, RunPhase, RunView, WorkerView};
use domain::exchange::WorkerStatus;
use domain::{ErrorCode, RunId, ServiceError};
use futures::FutureExt;
use jiff::Timestamp;
use queue::{ModelCounts, WorkerEntry};
use results::RunManifest;

use crate::aggregate::Aggregate;
use crate::core::Core;
use crate::errors::Result;
use crate::matching::says_it_can;
use crate::run::Run;
use crate::storage::RunStateFile;

/// How much of a run is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Detail {
    /// Counts.
    Brief,
    /// Counts and scores.
    Full,
}

impl Core {
    /// A run as people see it. What the queue would say is left out where it cannot be reached.
    pub(crate) async fn view(&self, run: &Arc<Run>, detail: Detail) -> RunView {
        let counts = self.counts_of(run).await.unwrap_or_default();
        let workers = self.queue.workers().await.unwrap_or_default();
        let served: Vec<Vec<String>> = workers.iter().map(|entry| status(entry).serves).collect();
        let models: Vec<ModelView> = model_views(run, &counts, &served);
        let (scored, failed, failures) =
            run.table(|table| (table.scored(), table.failed(), table.failures()));
        let planned = run.manifest.planned_dialogues;
        let rate = run.rate(self.now());
        let left = planned.saturating_sub(scored + failed);
        let phase = self.phase_of(run);
        RunView {
            run: run.id().clone(),
            name: name_of(&run.manifest),
            phase,
            created_at: run.manifest.created_at,
            generation: run.at().map_or(0, |at| at.generation),
            planned,
            scored,
            failed,
            failures,
            rate,
            eta_s: (phase == RunPhase::Active && rate > 0.0).then(|| left as f64 / rate),
            trouble: if phase.is_over() { None } else { self.trouble_of(run, &models, &served) },
            models,
            cells: match detail {
                Detail::Brief => Vec::new(),
                Detail::Full => run.table(|table| table.cells(&run.plan, &run.layout)),
            },
        }
    }

    /// Every run; those that are over and not loaded as their last state says.
    pub(crate) async fn views(&self) -> Result<Vec<RunView>> {
        let mut views = Vec::new();
        for (id, manifest) in self.storage.found().await? {
            if let Some(run) = self.runs.get(&id) {
                views.push(self.view(&run, Detail::Brief).await);
                continue;
            }
            let over = match self.storage.state(&id).await {
                Ok(state) => state.filter(|state| state.phase.is_over()),
                // Who loads it finds out as well.
                Err(_) => None,
            };
            views.push(match (manifest, over) {
                (Ok(manifest), Some(state)) => view_of_file(&manifest, &state),
                // One run that cannot be read hides no other one.
                (manifest, _) => match self.known(&id).await {
                    Ok(run) => self.view(&run, Detail::Brief).await,
                    Err(error) => broken_view(&id, manifest.ok(), error.message),
                },
            });
        }
        Ok(views)
    }

    /// A run that is there and cannot be loaded, with the reason.
    ///
    /// # Errors
    /// It is not there, or whether it is cannot be told now.
    pub(crate) async fn view_of_broken(&self, id: &RunId, error: ServiceError) -> Result<RunView> {
        if error.code == ErrorCode::NotFound || error.code.is_transient() {
            return Err(error);
        }
        match self.storage.manifest(id).await {
            // No name of a run.
            Err(invalid) if invalid.code == ErrorCode::Invalid => Err(invalid),
            manifest => Ok(broken_view(id, manifest.ok().flatten(), error.message)),
        }
    }

    /// The workers, by name.
    pub(crate) async fn worker_views(&self) -> Result<Vec<WorkerView>> {
        let workers = self.note_queue(self.queue.workers().await)?;
        // The store's clock is not ours; the youngest heartbeat is taken for the present.
        let now_ms = workers.iter().map(|entry| entry.seen_ms).max().unwrap_or_default();
        let now_ms = now_ms.max(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default());
        Ok(workers
            .into_iter()
            .map(|entry| WorkerView {
                status: status(&entry),
                worker: entry.worker,
                seen_ms_ago: now_ms.saturating_sub(entry.seen_ms),
                draining: entry.draining,
            })
            .collect())
    }

    /// Where a run stands: what is active and not wholly queued is still being prepared.
    fn phase_of(&self, run: &Run) -> RunPhase {
        match run.phase() {
            RunPhase::Active if run.is_attended() && !run.is_filled() => RunPhase::Preparing,
            phase => phase,
        }
    }

    async fn counts_of(&self, run: &Arc<Run>) -> Result<Vec<ModelCounts>> {
        if run.is_attended() && !run.phase().is_over() {
            let snapshot = self.backlog().await?;
            let of_run = snapshot.runs.iter().find(|of_run| of_run.run.id() == run.id());
            let counts = of_run.iter().flat_map(|of_run| &of_run.models);
            return Ok(counts.filter_map(|model| model.counts.clone()).collect());
        }
        match run.at() {
            Some(at) => self.note_queue(self.queue.counts(&at).boxed().await),
            None => Ok(Vec::new()),
        }
    }

    /// What keeps a run from going on: what concerns all runs first.
    fn trouble_of(&self, run: &Run, models: &[ModelView], served: &[Vec<String>]) -> Option<String> {
        let parked = || {
            let parked = models.iter().find_map(|model| Some((model, model.parked.as_ref()?)));
            parked.map(|(model, reason)| format!("model `{}` is parked: {reason}", model.model))
        };
        let orphaned = || {
            let orphan = models.iter().find(|model| model.workers == 0 && model.units_pending > 0)?;
            let mut names: Vec<&str> = served.iter().flatten().map(String::as_str).collect();
            names.sort_unstable();
            names.dedup();
            let served = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            Some(format!("no worker serves model `{}`; workers serve: {served}", orphan.model))
        };
        self.health
            .trouble()
            .or_else(|| run.trouble())
            .or_else(parked)
            .or_else(|| self.is_shared().then(orphaned).flatten())
    }
}

fn model_views(run: &Run, counts: &[ModelCounts], served: &[Vec<String>]) -> Vec<ModelView> {
    let tallies = run.table(|table| tallies(run, table));
    run.models
        .iter()
        .zip(tallies)
        .map(|(spec, (planned, scored, failed))| {
            let counts = counts.iter().find(|counts| counts.model == spec.label);
            let count = |of: fn(&ModelCounts) -> u64| counts.map_or(0, of);
            ModelView {
                model: spec.label.clone(),
                planned,
                scored,
                failed,
                units_pending: count(|counts| counts.pending),
                units_leased: count(|counts| counts.leased),
                units_dead: count(|counts| counts.dead),
                units_suspect: count(|counts| counts.suspects_pending + counts.suspects_leased),
                workers: served.iter().filter(|serves| says_it_can(serves, spec)).count() as u64,
                parked: counts.and_then(|counts| counts.parked.as_ref()).map(|parked| parked.reason.clone()),
            }
        })
        .collect()
}

/// Planned, scored and failed dialogues by model.
fn tallies(run: &Run, table: &Aggregate) -> Vec<(u64, u64, u64)> {
    let cells = table.cells(&run.plan, &run.layout);
    run.plan
        .models
        .iter()
        .map(|model| {
            let planned = u64::from(model.iterations) * run.plan.tasks.len() as u64;
            let of_model = cells.iter().filter(|cell| cell.model == model.label);
            let sum = |(scored, failed), cell: &domain::control::CellView| {
                (scored + cell.scored, failed + cell.failed)
            };
            let (scored, failed) = of_model.fold((0, 0), sum);
            (planned, scored, failed)
        })
        .collect()
}

/// What a worker last said of itself.
pub(crate) fn status(entry: &WorkerEntry) -> WorkerStatus {
    serde_json::from_slice(&entry.info).unwrap_or_default()
}

fn name_of(manifest: &RunManifest) -> String {
    manifest.configuration.get("name").and_then(|name| name.as_str()).unwrap_or_default().to_owned()
}

fn view_of_file(manifest: &RunManifest, state: &RunStateFile) -> RunView {
    RunView {
        run: manifest.run.clone(),
        name: name_of(manifest),
        phase: state.phase,
        created_at: manifest.created_at,
        generation: 0,
        planned: manifest.planned_dialogues,
        scored: state.scored,
        failed: state.failures.iter().map(|(_, count)| count).sum(),
        failures: state.failures.clone(),
        rate: 0.0,
        eta_s: None,
        trouble: None,
        models: Vec::new(),
        cells: Vec::new(),
    }
}

/// A run of which no more is known than its manifest, if that.
fn broken_view(run: &RunId, manifest: Option<RunManifest>, trouble: String) -> RunView {
    let state = RunStateFile { phase: RunPhase::Paused, ..RunStateFile::default() };
    let view = match manifest {
        Some(manifest) => view_of_file(&manifest, &state),
        None => RunView {
            run: run.clone(),
            name: String::new(),
            phase: state.phase,
            created_at: Timestamp::UNIX_EPOCH,
            generation: 0,
            planned: 0,
            scored: 0,
            failed: 0,
            failures: Vec::new(),
            rate: 0.0,
            eta_s: None,
            trouble: None,
            models: Vec::new(),
            cells: Vec::new(),
        },
    };
    RunView { trouble: Some(trouble), ..view }
}

/// Time between two views of a run that somebody watches.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(1);
