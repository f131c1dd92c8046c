//! Displays a pipeline: models under test as columns, stages as rows of progress, then the results.

use domain::control::{BenchmarkView, CellView, ModelView, RESULT_PREFIX, RunPhase};
use domain::{ModelSpec, RunId};
use stages::names;

use crate::benchmarks::documents::Pipeline;
use crate::benchmarks::progress::{StageRunStates, is_finished};
use crate::benchmarks::summary::ModelSummary;
use crate::errors::Result;
use crate::fleet::workers::RegisteredWorkers;
use crate::views::Views;
use crate::views::run::{Detail, Unredacted};

impl Views {
    pub(crate) async fn judged_now(&self, name: &RunId) -> Result<Unredacted> {
        let pipeline = self.benchmarks.expect_pipeline(name).await?;
        let state = self.benchmarks.pipeline_state(name).await?;
        let chain = self.benchmarks.pipeline_chain(&pipeline).await?;
        let mut view = self.empty_view(&pipeline, state.phase);
        view.history = self.benchmarks.pipeline_history(name).await?;
        let workers = self.fleet.workers().await.unwrap_or_default();
        let (mut columns, mut protected): (Vec<Vec<CellView>>, bool) = (Vec::new(), false);
        for model in &pipeline.configuration.models {
            let runs = self.benchmarks.find_stages(&chain, model).await?;
            let finished = || runs.iter().flatten().all(|(_, state)| is_finished(state.as_ref()));
            let known = self.benchmarks.attended.known(name, &names::slug(&model.label));
            let kept = || state.summaries.iter().find(|kept| kept.is_of(&model.label, &runs)).cloned();
            let known = match known.as_ref().map(ModelSummary::of).or_else(kept) {
                // Something happened to its runs by their own names.
                None if state.phase.is_over() && finished() => Some(ModelSummary::of(
                    &self.benchmarks.read_model(&chain, model, runs.clone()).await?.state,
                )),
                known => known,
            };
            for (run, _) in runs.iter().flatten() {
                // Those that are not loaded are over, and only counted.
                protected |= self.loaded.get(run).is_some_and(|run| run.manifest.protected);
            }
            let is_first = columns.is_empty();
            let (shown, cells) =
                self.model_column(&pipeline, model, (&runs, is_first), known, &workers, &mut view).await?;
            view.models.push(shown);
            columns.push(cells);
        }
        // Row by row, in the order of tables.
        let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
        for row in 0..rows {
            view.cells.extend(columns.iter().filter_map(|column| column.get(row).cloned()));
        }
        let sum = |of: fn(&ModelView) -> u64| view.models.iter().map(of).sum();
        (view.planned, view.scored, view.failed) =
            (sum(|model| model.planned), sum(|model| model.scored), sum(|model| model.failed));
        Ok(Unredacted { view, protected })
    }

    /// Brief views of all judged benchmarks.
    pub(crate) async fn judged(&self) -> Result<Vec<BenchmarkView>> {
        let mut views = Vec::new();
        for name in self.store.pipelines().await? {
            let pipeline = match self.benchmarks.find_pipeline(&name).await {
                // One that cannot be read hides no other.
                Err(error) if !error.code.is_transient() => {
                    tracing::warn!(pipeline = %name, %error, "left out of the list");
                    continue;
                }
                found => found?,
            };
            let Some(pipeline) = pipeline else { continue };
            let state = self.benchmarks.pipeline_state(&name).await?;
            let [planned, scored, failed] = state.counts;
            views.push(BenchmarkView { planned, scored, failed, ..self.empty_view(&pipeline, state.phase) });
        }
        Ok(views)
    }

    fn empty_view(&self, pipeline: &Pipeline, phase: RunPhase) -> BenchmarkView {
        BenchmarkView {
            run: pipeline.name.clone(),
            name: pipeline.configuration.name.clone(),
            phase,
            created_at: pipeline.manifest.created_at,
            generation: u64::from(pipeline.manifest.revision),
            trouble: if phase.is_over() { None } else { self.health.trouble() },
            ..BenchmarkView::default()
        }
    }

    /// One model under test: the progress of its stages, and its results.
    async fn model_column(
        &self,
        pipeline: &Pipeline,
        model: &ModelSpec,
        (runs, is_first): (&[StageRunStates], bool),
        known: Option<ModelSummary>,
        workers: &RegisteredWorkers,
        view: &mut BenchmarkView,
    ) -> Result<(ModelView, Vec<CellView>)> {
        let mut shown = ModelView { model: model.label.clone(), ..ModelView::default() };
        let mut cells = Vec::new();
        let judging = pipeline.kind.stages.iter().map(|stage| (stage.name, stage.is_shared()));
        for ((stage, shared), found) in std::iter::once((names::ASK, false)).chain(judging).zip(runs) {
            // What models share stands in every column, and is counted with the first one.
            let counts = is_first || !shared;
            let (task, label) = (stage.into(), model.label.clone());
            let mut cell = CellView { task, model: label, ..CellView::default() };
            for (run, state) in found {
                let (run_view, over) = match state {
                    Some(state) if state.phase.is_over() => (None, Some(state)),
                    _ => {
                        let run = self.loaded.known(run).await?;
                        (Some(self.of_run(&run, workers, Detail::Brief).await), None)
                    }
                };
                if let Some(state) = over {
                    let failed: u64 = state.failures.iter().map(|(_, count)| count).sum();
                    cell.scored += state.scored;
                    cell.failed += failed;
                    cell.planned += state.scored + failed;
                    add_failures(view, if counts { &state.failures } else { &[] });
                }
                if let Some(of_run) = run_view {
                    cell.scored += of_run.scored;
                    cell.failed += of_run.failed;
                    cell.planned += of_run.planned;
                    if !counts {
                        continue;
                    }
                    add_failures(view, &of_run.failures);
                    view.rate += of_run.rate;
                    view.tokens_per_second += of_run.tokens_per_second;
                    for judge in &of_run.models {
                        shown.units_pending += judge.units_pending;
                        shown.units_leased += judge.units_leased;
                        shown.units_dead += judge.units_dead;
                        shown.workers = shown.workers.max(judge.workers);
                        let why = judge
                            .blocked
                            .as_ref()
                            .map(|why| format!("stage {stage}: {}: {why}", judge.model));
                        shown.blocked = shown.blocked.or(why);
                    }
                }
            }
            // A stage only counts replies; the results are below.
            cell.missing = cell.scored;
            if stage == names::ASK {
                shown.planned = cell.planned;
            }
            cells.push(cell);
        }
        if let Some(known) = known {
            (shown.planned, shown.scored) = (known.planned, known.scored);
            shown.failed = known.planned.saturating_sub(known.scored + known.waiting);
            shown.mean = known.metrics.first().map(|(_, mean)| *mean).unwrap_or_default();
            for (stage, cause, dialogues) in &known.not_judged {
                view.notes.push(format!(
                    "{}: {dialogues} dialogues are not scored: stage {stage}, {cause}",
                    model.label
                ));
            }
            for (name, mean) in known.metrics {
                cells.push(CellView {
                    task: format!("{RESULT_PREFIX}{name}").as_str().into(),
                    model: model.label.clone(),
                    scored: mean.covered,
                    planned: mean.planned,
                    mean: mean.value,
                    ..CellView::default()
                });
            }
        }
        Ok((shown, cells))
    }
}

fn add_failures(view: &mut BenchmarkView, failures: &[(domain::FailureCause, u64)]) {
    for (cause, count) in failures {
        match view.failures.iter_mut().find(|(known, _)| known == cause) {
            Some((_, sum)) => *sum += count,
            None => view.failures.push((*cause, *count)),
        }
    }
}
