//! Views of runs and workers for people.

use std::sync::Arc;
use std::time::Duration;

use domain::comparison::{self, Condition, Conditions};
use domain::control::{
    BenchmarkView, CellView, HistoryEntry, ModelView, Pace, RefusalView, RunPhase, WorkerView,
};
use domain::{ErrorCode, Mean, ModelSpec, RunId, ServiceError};
use futures::FutureExt;
use jiff::Timestamp;
use queue::ModelCounts;
use results::RunManifest;

use crate::coordinator::Coordinator;
use crate::errors::Result;
use crate::fleet::workers::RegisteredWorkers;
use crate::plan::PlannedModel;
use crate::records::run::Run;
use crate::records::store::RunStateFile;
use crate::views::progress;

/// The detail of a view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Detail {
    /// Counts.
    Brief,
    /// Counts and scores.
    Full,
}

impl Coordinator {
    /// The full view of a run.
    pub(crate) async fn view_now(&self, run: &Arc<Run>) -> BenchmarkView {
        let crew = self.crew().await.unwrap_or_default();
        self.view(run, &crew, Detail::Full).await
    }

    /// The view of a run. If the queue cannot be reached, its part is left out.
    pub(crate) async fn view(
        &self,
        run: &Arc<Run>,
        crew: &RegisteredWorkers,
        detail: Detail,
    ) -> BenchmarkView {
        let counts = self.counts_of(run).await.unwrap_or_default();
        let phase = self.phase_of(run);
        let cells = run.table(|table| table.cells(&run.plan, &run.layout));
        let models = self.model_views(run, &cells, &counts, crew);
        let Pace { rate, tokens_per_second, eta_s } = progress::of_run(&models);
        let (scored, failed, failures) =
            run.table(|table| (table.scored(), table.failed(), table.failures()));
        let full = detail == Detail::Full;
        BenchmarkView {
            run: run.id().clone(),
            name: name_of(&run.manifest),
            phase,
            created_at: run.manifest.created_at,
            generation: run.at().map_or(0, |at| at.generation),
            planned: run.manifest.planned_dialogues,
            scored,
            failed,
            failures,
            rate,
            history: if full { self.history(run).await } else { Vec::new() },
            tokens_per_second,
            eta_s,
            trouble: match phase.is_over() {
                true => run.loss(),
                false => self.health.trouble().or_else(|| run.trouble()).or_else(|| run.loss()),
            },
            models,
            cells: if full { cells } else { Vec::new() },
            refusals: if full { refusals(run) } else { Vec::new() },
            notes: if full { notes(run) } else { Vec::new() },
        }
    }

    /// Adds an entry to the history of a run or pipeline.
    pub(crate) async fn note_history(&self, run: &RunId, entry: &HistoryEntry) -> Result<()> {
        if self.is_pipeline(run).await? {
            return self.note_pipeline(run, entry).await;
        }
        self.storage.sink.append_history(run, entry).await?;
        if let Some(run) = self.runs.get(run) {
            *run.history.lock().await = None;
        }
        Ok(())
    }

    /// The history of a run or pipeline, as it is now.
    pub(crate) async fn history_now(&self, run: &RunId) -> Result<Vec<HistoryEntry>> {
        if self.is_pipeline(run).await? {
            return self.pipeline_history(run).await;
        }
        Ok(self.storage.sink.history(run).await?)
    }

    /// The history of a run, cached so that watching users do not query an object store again and again.
    async fn history(&self, run: &Run) -> Vec<HistoryEntry> {
        let mut read = run.history.lock().await;
        if let Some((at, history)) = &*read
            && !self.storage.sink.has_locks()
            && self.clock.now() < *at + self.config.tend_every
        {
            return history.clone();
        }
        let history = self.storage.sink.history(run.id()).await.unwrap_or_default();
        *read = Some((self.clock.now(), history.clone()));
        history
    }

    /// The models of a run with their counts in the queue and their progress. The cells are those of its table.
    pub(crate) fn model_views(
        &self,
        run: &Run,
        cells: &[CellView],
        counts: &[ModelCounts],
        crew: &RegisteredWorkers,
    ) -> Vec<ModelView> {
        let (now, active) = (self.clock.now(), self.phase_of(run) == RunPhase::Active);
        let view = |(place, (spec, planned)): (usize, (&ModelSpec, &PlannedModel))| {
            let counts = counts.iter().find(|counts| counts.model == spec.label);
            let count = |of: fn(&ModelCounts) -> u64| counts.map_or(0, of);
            // Cells stand in the order of the plan, task by task.
            let of_model = || cells.iter().skip(place).step_by(run.models.len());
            let sum = |of: fn(&CellView) -> u64| of_model().map(of).sum::<u64>();
            let parked = counts.and_then(|counts| counts.parked.as_ref()).map(|parked| parked.reason.clone());
            // Workers park what their own servers refuse for themselves alone.
            let parked = parked.or_else(|| crew.why_not_asked(run.id(), spec));
            let mut view = ModelView {
                model: spec.label.clone(),
                planned: planned.dialogues(run.plan.tasks.len()),
                scored: sum(|cell| cell.scored),
                failed: sum(|cell| cell.failed),
                units_pending: count(|counts| counts.pending),
                units_leased: count(|counts| counts.leased),
                units_dead: count(|counts| counts.dead),
                units_suspect: count(|counts| counts.suspects_pending + counts.suspects_leased),
                workers: crew.able(spec),
                parked,
                pace: Pace::default(),
                blocked: None,
                mean: Mean::of(of_model().map(|cell| cell.mean)),
            };
            if active && view.remaining() > 0 {
                let nobody = || {
                    let waits = self.storage.is_shared() && view.units_pending > 0;
                    waits.then(|| crew.why_nobody(spec)).flatten()
                };
                view.blocked = view.parked.as_ref().map(|reason| format!("parked: {reason}")).or_else(nobody);
            }
            let speed = run.speed(place, view.units_leased > 0, now);
            view.pace = progress::pace(speed, view.remaining(), active && view.blocked.is_none());
            view
        };
        run.models.iter().zip(&run.plan.models).enumerate().map(view).collect()
    }

    /// All runs; a run that is over and not loaded is shown by its last state.
    pub(crate) async fn views(&self) -> Result<Vec<BenchmarkView>> {
        let (mut views, crew) = (Vec::new(), self.crew().await.unwrap_or_default());
        for (id, manifest) in self.storage.found().await? {
            if let Some(run) = self.runs.get(&id) {
                views.push(self.view(&run, &crew, Detail::Brief).await);
                continue;
            }
            let over = match self.storage.state(&id).await {
                Ok(state) => state.filter(|state| state.phase.is_over()),
                // Loading it will report the error.
                Err(_) => None,
            };
            views.push(match (manifest, over) {
                (Ok(manifest), Some(state)) => view_of_file(&id, Some(&manifest), &state),
                // A run that cannot be read must not hide the others.
                (manifest, _) => match self.runs.known(&id).await {
                    Ok(run) => self.view(&run, &crew, Detail::Brief).await,
                    Err(error) => broken_view(&id, manifest.ok().as_ref(), error.message),
                },
            });
        }
        Ok(views)
    }

    /// The view of an existing run that cannot be loaded, with the reason.
    ///
    /// # Errors
    /// The run does not exist, or this cannot be determined now.
    pub(crate) async fn view_of_broken(&self, id: &RunId, error: ServiceError) -> Result<BenchmarkView> {
        if error.code == ErrorCode::NotFound || error.code.is_transient() {
            return Err(error);
        }
        match self.storage.manifest(id).await {
            // Not a valid run name.
            Err(invalid) if invalid.code == ErrorCode::Invalid => Err(invalid),
            manifest => Ok(broken_view(id, manifest.ok().flatten().as_ref(), error.message)),
        }
    }

    /// The workers, by name.
    pub(crate) async fn worker_views(&self) -> Result<Vec<WorkerView>> {
        let workers = self.crew().await?.members;
        // The store's clock may differ from ours: the latest heartbeat defines the present.
        let now_ms = workers.iter().map(|member| member.seen_ms).max().unwrap_or_default();
        let now_ms = now_ms.max(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default());
        Ok(workers
            .into_iter()
            .map(|member| WorkerView {
                status: member.status,
                worker: member.worker,
                seen_ms_ago: now_ms.saturating_sub(member.seen_ms),
                draining: member.draining,
            })
            .collect())
    }

    /// The phase of a run: an active run that is not completely queued is still being prepared.
    pub(crate) fn phase_of(&self, run: &Run) -> RunPhase {
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
            Some(at) => self.health.note_queue(self.queue.counts(&at).boxed().await),
            None => Ok(Vec::new()),
        }
    }
}

/// Why dialogues of a run failed.
fn refusals(run: &Run) -> Vec<RefusalView> {
    run.remarks(|remarks| remarks.refusals(|model| run.models[model].label.clone()))
}

/// What readers need to know about the scores of a run.
fn notes(run: &Run) -> Vec<String> {
    let conditions: Vec<Conditions> = run.remarks(|remarks| {
        let of_model = |(place, spec): (usize, &ModelSpec)| {
            let mut conditions = Conditions::default().with(Condition::Sampling, spec.sampling.to_string());
            remarks.scorers(place).for_each(|scorer| conditions.add(Condition::Scorer, scorer));
            conditions
        };
        run.models.iter().enumerate().map(of_model).collect()
    });
    let columns = run.models.iter().zip(&conditions).map(|(spec, of)| (spec.label.as_str(), of));
    comparison::differences(columns).into_iter().collect()
}

fn name_of(manifest: &RunManifest) -> String {
    manifest.configuration.get("name").and_then(|name| name.as_str()).unwrap_or_default().to_owned()
}

/// The view of a run that is not loaded, from the sink.
fn view_of_file(run: &RunId, manifest: Option<&RunManifest>, state: &RunStateFile) -> BenchmarkView {
    BenchmarkView {
        run: run.clone(),
        name: manifest.map(name_of).unwrap_or_default(),
        phase: state.phase,
        created_at: manifest.map_or(Timestamp::UNIX_EPOCH, |manifest| manifest.created_at),
        planned: manifest.map_or(0, |manifest| manifest.planned_dialogues),
        scored: state.scored,
        failed: state.failures.iter().map(|(_, count)| count).sum(),
        failures: state.failures.clone(),
        ..BenchmarkView::default()
    }
}

/// The view of a run of which at most the manifest is readable.
fn broken_view(run: &RunId, manifest: Option<&RunManifest>, trouble: String) -> BenchmarkView {
    let state = RunStateFile { phase: RunPhase::Paused, ..RunStateFile::default() };
    BenchmarkView { trouble: Some(trouble), ..view_of_file(run, manifest, &state) }
}

/// Interval between two views of a watched run.
pub(crate) const WATCH_EVERY: Duration = Duration::from_secs(1);
