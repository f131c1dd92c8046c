//! The view of a run.

use std::sync::Arc;

use benchmarks::names::benchmark_of;
use domain::comparison::{self, Condition, Conditions};
use domain::control::{
    BenchmarkView, CellView, HeadlineView, ModelView, Pace, RefusalView, RowView, RunPhase,
};
use domain::text::listed;
use domain::{Mean, ModelSpec, Oddity, RunId, TaskLabel};
use jiff::Timestamp;
use queue::ModelCounts;
use results::RunManifest;

use crate::errors::Result;
use crate::fleet::matching::Unserved;
use crate::fleet::workers::RegisteredWorkers;
use crate::plan::{PlannedModel, PlannedTask};
use crate::records::run::Run;
use crate::records::usage::UsageTable;
use crate::views::{Views, progress};

/// A view with all that servers said. Callers get it as they [may see it](crate::access).
pub(crate) struct Unredacted {
    pub view: BenchmarkView,
    /// Whether that is for operators only, because servers may repeat protected exercises.
    pub protected: bool,
}

impl Unredacted {
    /// A view in which no server's words stand.
    pub(crate) fn without_words(view: BenchmarkView) -> Self {
        Self { view, protected: false }
    }
}

/// What is said of a run or benchmark that was written down, and nothing else: its coordinator died over the submission.
pub(crate) fn never_begun(name: &RunId) -> String {
    format!(
        "it was created and never begun, because its submission was cut short: `kgfleet resume {name}` begins it, and so does \
         submitting it again"
    )
}

/// The rows of a run: its tasks.
fn rows(run: &Run) -> Vec<RowView> {
    let row = |task: &PlannedTask| RowView { name: task.label.clone(), ..RowView::default() };
    run.plan.tasks.iter().map(row).collect()
}

/// The detail of a view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Detail {
    /// Counts.
    Brief,
    /// Counts and scores.
    Full,
}

impl Views {
    /// The full view of a run.
    pub(crate) async fn run_now(&self, run: &Arc<Run>) -> Unredacted {
        let workers = self.fleet.workers().await.unwrap_or_default();
        let view = self.of_run(run, &workers, Detail::Full).await;
        Unredacted { view, protected: run.manifest.protected }
    }

    /// The view of a run. If the queue cannot be reached, its part is left out.
    pub(crate) async fn of_run(
        &self,
        run: &Arc<Run>,
        workers: &RegisteredWorkers,
        detail: Detail,
    ) -> BenchmarkView {
        let counts = self.counts_of(run).await.unwrap_or_default();
        let phase = self.phase_of(run);
        let full = detail == Detail::Full;
        let mut cells = run.table(|table| table.cells(&run.plan, &run.layout));
        if full {
            count_odd(run, &mut cells);
        }
        let models = self.model_views(run, &cells, &counts, workers);
        let Pace { rate, tokens_per_second, eta_s } = progress::of_run(&models);
        let (scored, failed, failures) =
            run.table(|table| (table.scored(), table.failed(), table.failures()));
        let created_at = run.manifest.created_at;
        let until = match run.usage(UsageTable::latest).filter(|_| phase.is_over()) {
            // The minute of the last record is the last of the curve.
            Some(latest) => latest,
            None => Timestamp::now(),
        };
        let notes = if full { notes(run, &cells) } else { Vec::new() };
        BenchmarkView {
            run: run.id().clone(),
            name: name_of(&run.manifest),
            phase,
            condition: None,
            created_at,
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
                false => {
                    let known = self.health.trouble().or_else(|| run.trouble());
                    // A run that nobody works at asks nothing again, whatever it has lost.
                    known.or_else(|| self.why_not_begun(run)).or_else(|| run.loss())
                }
            },
            models,
            headline: HeadlineView::default(),
            rows: if full { rows(run) } else { Vec::new() },
            cells: if full { cells } else { Vec::new() },
            runs: Vec::new(),
            refusals: if full { refusals(run) } else { Vec::new() },
            notes,
            elapsed_s: elapsed(created_at, until),
            per_minute: if full {
                run.usage(|usage| usage.per_minute(created_at, until))
            } else {
                Vec::new()
            },
            unacknowledged: workers.unacknowledged(),
            priority: run.priority().get(),
            submitter: self.fleet.shares.submitter_of(&benchmark_of(run.id())),
            pools: if full && !phase.is_over() { workers.pools.of_models(&run.models) } else { Vec::new() },
        }
    }

    /// Why nobody works at a run that no coordinator attends, if that is known.
    fn why_not_begun(&self, run: &Run) -> Option<String> {
        let is_begun = run.is_attended() || !self.store.is_shared() || run.known_state().is_some();
        (!is_begun).then(|| never_begun(run.id()))
    }

    /// The models of a run with their counts in the queue and their progress. The cells are those of its table.
    pub(crate) fn model_views(
        &self,
        run: &Run,
        cells: &[CellView],
        counts: &[ModelCounts],
        workers: &RegisteredWorkers,
    ) -> Vec<ModelView> {
        let (now, active) = (self.clock.now(), self.phase_of(run) == RunPhase::Active);
        // Who does not hand out its work does not count what it has used, either.
        let capped = (active && run.is_attended()).then(|| self.benchmarks.caps.told_of(run)).flatten();
        let view = |(place, (spec, planned)): (usize, (&ModelSpec, &PlannedModel))| {
            let counts = counts.iter().find(|counts| counts.model == spec.label);
            let count = |of: fn(&ModelCounts) -> u64| counts.map_or(0, of);
            // Cells stand in the order of the plan, task by task.
            let of_model = || cells.iter().skip(place).step_by(run.models.len());
            let sum = |of: fn(&CellView) -> u64| of_model().map(of).sum::<u64>();
            let parked = counts.and_then(|counts| counts.parked.as_ref()).map(|parked| parked.reason.clone());
            // Workers park what their own servers refuse for themselves alone.
            let not_asked = workers.why_not_asked(run.id(), spec);
            let parked = parked.or_else(|| Some(not_asked.filter(|known| !known.waits)?.reason.clone()));
            // Where a run has a process of its own, that says what it waits for.
            let waiting = not_asked.filter(|known| known.waits && self.store.is_shared());
            let limit = workers.limit(spec);
            let mut view = ModelView {
                model: spec.label.clone(),
                planned: planned.dialogues(run.plan.tasks.len()),
                scored: sum(|cell| cell.scored),
                failed: sum(|cell| cell.failed),
                units_pending: count(|counts| counts.pending),
                units_leased: count(|counts| counts.leased),
                units_dead: count(|counts| counts.dead),
                units_suspect: count(|counts| counts.suspects_pending + counts.suspects_leased),
                workers: workers.able(spec),
                parked,
                pace: Pace::default(),
                blocked: None,
                loading: false,
                mean: Mean::of(of_model().map(|cell| cell.mean)),
                billed_as: spec.billed_as(),
                usage: run.usage(|usage| usage.of_model(place)),
                limit: limit.dialogues,
                limit_reasons: limit.reasons.into_iter().collect(),
                calls: workers.calls(run.id(), &spec.label),
            };
            if let Some(why) = capped.as_ref().filter(|_| view.remaining() + view.units_pending > 0) {
                view.blocked = Some(why.clone());
            } else if active && view.remaining() > 0 {
                let waits = view.parked.is_none() && self.store.is_shared() && view.units_pending > 0;
                // Where the queue cannot be used, no worker can say that it is there.
                let waits = waits && self.health.queue_trouble().is_none();
                let nobody = waits.then(|| workers.why_nobody(spec)).flatten();
                view.loading = nobody.as_ref().is_some_and(Unserved::is_coming);
                let parked = view.parked.as_ref().map(|reason| format!("parked: {reason}"));
                let waiting = waiting.map(|known| format!("its first question waits: {}", known.reason));
                view.blocked = parked.or_else(|| nobody.map(|why| why.to_string())).or(waiting);
            }
            let speed = run.speed(place, view.units_leased > 0, now);
            view.pace = progress::pace(
                speed,
                view.remaining(),
                active && view.blocked.is_none() && !view.calls.all_fail(),
            );
            view
        };
        run.models.iter().zip(&run.plan.models).enumerate().map(view).collect()
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
            let snapshot = self.fleet.backlog().await?;
            let of_run = snapshot.runs.iter().find(|of_run| of_run.run.id() == run.id());
            let counts = of_run.iter().flat_map(|of_run| &of_run.models);
            return Ok(counts.filter_map(|model| model.counts.clone()).collect());
        }
        match run.at() {
            Some(at) => self.health.note_queue(self.queue.raw().counts(&at).await),
            None => Ok(Vec::new()),
        }
    }
}

/// Seconds from one time to another; a clock that was set back gives none.
fn elapsed(from: Timestamp, until: Timestamp) -> Option<f64> {
    Some(until.duration_since(from).as_secs_f64()).filter(|seconds| *seconds >= 0.0)
}

/// Why dialogues of a run failed.
fn refusals(run: &Run) -> Vec<RefusalView> {
    run.remarks(|remarks| remarks.refusals(|model| run.models[model].label.clone()))
}

/// Tasks that a note on answers names at most.
const TASKS_NAMED_MAX: usize = 3;

/// Adds to the cells of a run, in the order of its table, which answers are odd.
fn count_odd(run: &Run, cells: &mut [CellView]) {
    run.remarks(|remarks| {
        for (place, cell) in cells.iter_mut().enumerate() {
            let (task, model) = (place / run.models.len(), place % run.models.len());
            cell.odd = remarks.odd(run.layout.cell(model, task));
        }
    });
}

/// What is odd about the answers of a run.
pub(crate) fn odd_answers_of(run: &Run) -> Vec<String> {
    let mut cells = run.table(|table| table.cells(&run.plan, &run.layout));
    count_odd(run, &mut cells);
    odd_answers(run, &cells)
}

/// What is odd about the answers of a run with these cells: a sentence for each model and oddity, with the tasks that have most.
fn odd_answers(run: &Run, cells: &[CellView]) -> Vec<String> {
    let of = |(model, oddity): (usize, Oddity)| {
        let answered = run.usage(|usage| usage.of_model(model)).dialogues;
        let of_model = cells.iter().skip(model).step_by(run.models.len());
        let mut found: Vec<(u64, &TaskLabel)> =
            of_model.map(|cell| (cell.odd(oddity), &cell.task)).filter(|(count, _)| *count > 0).collect();
        found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let sum = found.iter().map(|(count, _)| count).sum();
        let tasks = found.iter().map(|(count, task)| format!("{task} {count}"));
        let tasks = (run.plan.tasks.len() > 1).then(|| format!(" ({})", listed(tasks, TASKS_NAMED_MAX)));
        let told = oddity.told(sum, answered);
        (sum > 0).then(|| format!("{}: {told}{}", run.models[model].label, tasks.unwrap_or_default()))
    };
    let models = 0..run.models.len();
    models.flat_map(|model| Oddity::ALL.map(|oddity| (model, oddity))).filter_map(of).collect()
}

/// What readers need to know about the scores of a run with these cells.
fn notes(run: &Run, cells: &[CellView]) -> Vec<String> {
    let conditions: Vec<Conditions> = run.remarks(|remarks| {
        let of_model = |(place, spec): (usize, &ModelSpec)| {
            let mut conditions = Conditions::default().with(Condition::Sampling, spec.sampling.to_string());
            remarks.scorers(place).for_each(|scorer| conditions.add(Condition::Scorer, scorer));
            conditions
        };
        run.models.iter().enumerate().map(of_model).collect()
    });
    let columns = run.models.iter().zip(&conditions).map(|(spec, of)| (spec.label.as_str(), of));
    let mut notes: Vec<String> = comparison::differences(columns).into_iter().collect();
    notes.extend(odd_answers(run, cells));
    notes
}

pub(crate) fn name_of(manifest: &RunManifest) -> String {
    manifest.configuration.get("name").and_then(|name| name.as_str()).unwrap_or_default().to_owned()
}
