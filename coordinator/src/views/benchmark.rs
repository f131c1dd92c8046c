//! The view of a judged benchmark: models under test as columns, stages as rows of progress, then the results.

use benchmarks::names;
use domain::control::{
    BenchmarkView, Better, CellView, HeadlineView, ModelView, RowKind, RowView, RunLine, RunPhase,
};
use domain::{ModelLabel, ModelSpec, RunId, TaskLabel};
use jiff::Timestamp;

use crate::benchmarks::documents::{JudgedBenchmark, StatedBenchmark};
use crate::benchmarks::progress::{StageRunStates, is_finished};
use crate::benchmarks::summary::ModelSummary;
use crate::errors::Result;
use crate::fleet::workers::RegisteredWorkers;
use crate::records::events::RunStateFile;
use crate::views::Views;
use crate::views::list::{broken_view, view_of_file};
use crate::views::run::{Detail, Unredacted, never_begun, odd_answers_of};

/// Prefix of the names of results, which stand among the names of stages.
const RESULT_PREFIX: &str = "= ";

/// A judged benchmark in a list.
pub(crate) struct JudgedBrief {
    pub(crate) view: BenchmarkView,
    /// Whether its documents can be read: only then its runs are known to be its own.
    pub(crate) is_readable: bool,
}

impl Views {
    /// The full view of a judged benchmark.
    pub(crate) async fn judged_now(&self, pipeline: &JudgedBenchmark) -> Result<Unredacted> {
        let name = &pipeline.name;
        let (revision, state) = self.benchmarks.revised_judged_state(name).await?;
        let chain = self.benchmarks.chain_of(pipeline).await?;
        let mut view = self.empty_view(pipeline, revision, state.phase);
        view.history = self.benchmarks.judged_history(name).await?;
        let workers = self.fleet.workers().await.unwrap_or_default();
        view.unacknowledged = workers.unacknowledged();
        if !state.phase.is_over() {
            let since = Timestamp::now().duration_since(pipeline.manifest.created_at).as_secs_f64();
            view.elapsed_s = Some(since.max(0.0));
            let configured = &pipeline.configuration;
            view.pools = workers.pools.of_models(configured.models.iter().chain(configured.judges.values()));
        }
        view.rows = rows_of(pipeline);
        let (mut columns, mut protected): (Vec<Vec<CellView>>, bool) = (Vec::new(), false);
        for model in &pipeline.configuration.models {
            let runs = self.benchmarks.find_stages(&chain, model).await?;
            let finished = || runs.iter().flatten().all(|(_, state)| is_finished(state.as_ref()));
            let known = self.benchmarks.attended.known(name, pipeline.begun, &names::slug(&model.label));
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
                self.model_column(pipeline, model, (&runs, is_first), known, &workers, &mut view).await?;
            view.models.push(shown);
            columns.push(cells);
        }
        if state.phase == RunPhase::Active
            && let Some(why) = self.benchmarks.caps.told(name)
        {
            // It holds for all of its runs: which one would be next does not matter.
            for model in view.models.iter_mut().filter(|model| model.remaining() > 0) {
                (model.blocked, model.loading) = (Some(why.clone()), false);
            }
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

    /// Brief views of all judged benchmarks; of one that cannot be read, with the reason.
    pub(crate) async fn judged(&self) -> Result<Vec<JudgedBrief>> {
        let brief = |(name, read): (RunId, Result<StatedBenchmark>)| match read {
            Ok(StatedBenchmark { benchmark, revision, state }) => {
                let [planned, scored, failed] = state.counts;
                let view = self.empty_view(&benchmark, revision, state.phase);
                JudgedBrief { view: BenchmarkView { planned, scored, failed, ..view }, is_readable: true }
            }
            Err(error) => JudgedBrief { view: broken_view(&name, None, error.message), is_readable: false },
        };
        Ok(self.benchmarks.all_judged().await?.into_iter().map(brief).collect())
    }

    /// A view without its runs. `revision` is that of its state, from 1.
    fn empty_view(&self, pipeline: &JudgedBenchmark, revision: u32, phase: RunPhase) -> BenchmarkView {
        let is_begun = revision > 0 || self.benchmarks.attended.has(&pipeline.name);
        let unbegun = (!is_begun && self.store.is_shared()).then(|| never_begun(&pipeline.name));
        let own = self.benchmarks.attended.trouble(&pipeline.name);
        BenchmarkView {
            run: pipeline.name.clone(),
            name: pipeline.configuration.name.clone(),
            phase,
            created_at: pipeline.manifest.created_at,
            generation: u64::from(pipeline.manifest.revision),
            trouble: if phase.is_over() { None } else { self.health.trouble().or(own).or(unbegun) },
            headline: headline_of(pipeline),
            priority: pipeline.configuration.priority.unwrap_or_default().get(),
            submitter: self.fleet.shares.submitter_of(&pipeline.name),
            ..BenchmarkView::default()
        }
    }

    /// A run of a stage. One that is over need not be loaded: its state counts its dialogues.
    async fn of_stage(
        &self,
        run: &RunId,
        state: Option<&RunStateFile>,
        workers: &RegisteredWorkers,
    ) -> Result<BenchmarkView> {
        if let Some(state) = state.filter(|state| state.phase.is_over()) {
            let view = view_of_file(run, None, state);
            return Ok(BenchmarkView { planned: view.done(), ..view });
        }
        match self.loaded.known(run).await {
            Ok(run) => Ok(self.of_run(&run, workers, Detail::Brief).await),
            // The others are shown all the same.
            Err(error) => self.view_of_broken(run, error).await,
        }
    }

    /// One model under test: the progress of its stages, and its results.
    async fn model_column(
        &self,
        pipeline: &JudgedBenchmark,
        model: &ModelSpec,
        (runs, is_first): (&[StageRunStates], bool),
        known: Option<ModelSummary>,
        workers: &RegisteredWorkers,
        view: &mut BenchmarkView,
    ) -> Result<(ModelView, Vec<CellView>)> {
        let mut shown = ModelView { model: model.label.clone(), ..ModelView::default() };
        let mut cells = Vec::new();
        let judging = pipeline.judging.stages.iter().zip(pipeline.judges()?);
        let judging = judging.map(|(stage, judge)| (stage.name, stage.is_shared(), &judge.label));
        let asking = std::iter::once((names::ASK, false, &model.label));
        for ((stage, shared, asks), found) in asking.chain(judging).zip(runs) {
            // What models share stands in every column, and is counted with the first one.
            let counts = is_first || !shared;
            let (task, label) = (stage.into(), model.label.clone());
            let mut cell = CellView { task, model: label, ..CellView::default() };
            for (run, state) in found {
                let of_run = self.of_stage(run, state.as_ref(), workers).await?;
                cell.scored += of_run.scored;
                cell.failed += of_run.failed;
                cell.planned += of_run.planned;
                // Judges' answers are told by their own runs.
                if stage == names::ASK
                    && let Some(run) = self.loaded.get(run)
                {
                    view.notes.extend(odd_answers_of(&run));
                }
                let why = of_run.trouble.map(|why| format!("run {run}: {why}"));
                view.trouble = view.trouble.take().or(why);
                if !counts {
                    continue;
                }
                view.runs.push(RunLine {
                    name: run.clone(),
                    stage: stage.to_owned(),
                    model: if shared { ModelLabel::new(names::SHARED) } else { model.label.clone() },
                    asks: asks.clone(),
                    phase: of_run.phase,
                    planned: of_run.planned,
                    scored: of_run.scored,
                    failed: of_run.failed,
                });
                add_failures(view, &of_run.failures);
                view.rate += of_run.rate;
                view.tokens_per_second += of_run.tokens_per_second;
                for judge in &of_run.models {
                    shown.units_pending += judge.units_pending;
                    shown.units_leased += judge.units_leased;
                    shown.units_dead += judge.units_dead;
                    shown.workers = shown.workers.max(judge.workers);
                    shown.calls.add(&judge.calls);
                    // What judges use is not the model's own.
                    if stage == names::ASK {
                        shown.usage += &judge.usage;
                        (shown.billed_as, shown.limit) = (judge.billed_as.clone(), judge.limit);
                        shown.limit_reasons.clone_from(&judge.limit_reasons);
                    }
                    let why =
                        judge.blocked.as_ref().map(|why| format!("stage {stage}: {}: {why}", judge.model));
                    if shown.blocked.is_none() || (shown.loading && why.is_some() && !judge.loading) {
                        // What loads comes by itself: whatever else is in the way is told first.
                        (shown.blocked, shown.loading) = (why, judge.loading);
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
                    task: result_row(&name),
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

/// The first result orders the models. It is no mean of scores of dialogues.
fn headline_of(pipeline: &JudgedBenchmark) -> HeadlineView {
    let words = pipeline.judging.results.first().map_or("result", |(name, _)| name);
    HeadlineView { words: words.to_owned(), intervals: false }
}

fn rows_of(pipeline: &JudgedBenchmark) -> Vec<RowView> {
    let judging = pipeline.judging.stages.iter().map(|stage| stage.name);
    let stages = std::iter::once(names::ASK).chain(judging).map(|stage| RowView {
        name: stage.into(),
        kind: RowKind::Stage,
        better: Better::Neither,
    });
    let results = pipeline.judging.results.iter().map(|(name, better)| RowView {
        name: result_row(name),
        kind: RowKind::Result,
        better: *better,
    });
    stages.chain(results).collect()
}

fn result_row(name: &str) -> TaskLabel {
    format!("{RESULT_PREFIX}{name}").as_str().into()
}

fn add_failures(view: &mut BenchmarkView, failures: &[(domain::FailureCause, u64)]) {
    for (cause, count) in failures {
        match view.failures.iter_mut().find(|(known, _)| known == cause) {
            Some((_, sum)) => *sum += count,
            None => view.failures.push((*cause, *count)),
        }
    }
}
