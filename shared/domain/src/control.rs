//! The interface of a coordinator for people and tools.
//!
//! A call is added here, in `proto/src/server/api` (a row of the routes and its handler), in `proto/src/client/api.rs` and in
//! `coordinator/src/access/`.

use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ServiceError;
use crate::exchange::{Calls, Outlook, Reply, WorkerStatus};
use crate::ids::{DialogueKey, ModelLabel, RunId, TaskLabel, WorkerId};
use crate::mean::Mean;
use crate::oddity::Oddity;
use crate::outcome::FailureCause;
use crate::pools::{PoolState, PoolStates, ServerUsage};
use crate::usage::ModelUsage;

/// A stream of items, until the other side has no more.
pub type Feed<'a, T> = Pin<Box<dyn futures_core::Stream<Item = Result<T, ServiceError>> + Send + 'a>>;

/// A coordinator as the command line sees it.
#[async_trait::async_trait]
pub trait Control: Send + Sync + 'static {
    /// Plans a benchmark and queues it. Repetition: joins an unfinished one of the same configuration.
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView>;

    /// Adds models, tasks or iterations to a benchmark and continues it under the extended plan. The notes of the answer
    /// begin with what was added. Repetition: adds nothing and continues it.
    async fn extend(&self, name: &RunId, submission: Submission) -> Reply<BenchmarkView>;

    /// All benchmarks, briefly, the oldest first. The runs of a judged one are not listed beside it.
    async fn list(&self) -> Reply<Vec<BenchmarkView>>;

    /// A benchmark, or one run of a judged one.
    async fn view(&self, name: &RunId) -> Reply<BenchmarkView>;

    /// Yields a benchmark about once a second, until it ends or the listener leaves.
    fn watch<'a>(&'a self, name: &'a RunId) -> Feed<'a, BenchmarkView>;

    /// Pauses, resumes or cancels a benchmark, and returns it. Repetition: the same.
    async fn command(&self, name: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView>;

    /// Queues failed dialogues with one of these causes again (all if none is given); returns how many.
    async fn retry(&self, name: &RunId, causes: &[FailureCause]) -> Reply<u64>;

    /// Removes a benchmark that is over, with its records; with `force`, an active one is cancelled first. Late records of
    /// a removed run are refused for good. Repetition: harmless.
    async fn remove(&self, name: &RunId, force: bool) -> Reply<()>;

    /// Yields, for each run, its manifest and then the winner of every dialogue that has one. Of a judged benchmark, its
    /// documents come first.
    fn records<'a>(&'a self, name: &'a RunId) -> Feed<'a, ExportItem>;

    /// The workers, by name.
    async fn workers(&self) -> Reply<Vec<WorkerView>>;

    /// Asks a worker to finish what it holds and end.
    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()>;

    /// The dead letters of a benchmark's runs, then their suspects; or those of one number.
    async fn dead_letters(&self, name: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>>;

    /// Gives dead letters another chance (all if none is given); returns how many. Of a judged benchmark: all, because units
    /// are numbered run by run.
    async fn requeue(&self, name: &RunId, units: &[u64]) -> Reply<u64>;

    /// Whether the coordinator and its dependencies are ready for a long run: warnings, worst first.
    async fn check(&self) -> Reply<Vec<String>>;

    /// What these models have left, by the names that their servers give them; with none given, every model that an
    /// unfinished run or judged benchmark names.
    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>>;

    /// Takes what a conductor tells of the pools of its release, which is shown for a minute. Repetition: the newest counts.
    async fn note_pools(&self, states: PoolStates) -> Reply<()>;

    /// Keeps what servers of pools left that have ended, beside the records. Repetition: the first counts, for each server.
    async fn note_server_usage(&self, ended: Vec<ServerUsage>) -> Reply<()>;

    /// What servers of pools have left, in the order of their ends.
    async fn server_usage(&self) -> Reply<Vec<ServerUsage>>;
}

/// What a model has left, over all runs and judged benchmarks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelNeed {
    /// The name that its servers give it.
    pub model: String,
    /// As a worker that holds nothing is told.
    pub outlook: Outlook,
    /// Dialogues of active runs without a record, and those to be asked again.
    pub dialogues: u64,
    /// Dialogues per second over the last minute, of all its servers together.
    pub rate: f64,
    /// Registered workers that serve it.
    pub workers: u64,
}

/// A benchmark to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The benchmark configuration, resolved, as JSON.
    pub configuration: serde_json::Value,
    /// The sealed pack, if it is not the built-in one.
    pub pack: Option<Arc<[u8]>>,
}

/// An action on a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BenchmarkCommand {
    /// Hand out no more units; leased units continue.
    Pause,
    /// Continue. Works for a cancelled run, and for one of which only the record log is left.
    Resume,
    /// Stop; workers drop the dialogues in progress.
    Cancel,
}

named! {
    /// Where a run stands.
    #[derive(Default)]
    pub enum RunPhase {
        /// Units are being added to its queue.
        Preparing = "preparing",
        /// Units are handed out.
        #[default]
        Active = "active",
        /// Paused by hand: no units are handed out.
        Paused = "paused",
        /// Cancelled by hand.
        Cancelled = "cancelled",
        /// Every dialogue has a record.
        Finished = "finished",
    }
}

impl RunPhase {
    /// Whether the run is over: it changes only if somebody resumes or retries it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Cancelled | Self::Finished)
    }
}

/// A benchmark, or one run of a judged one, as people see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchmarkView {
    /// Its name.
    pub run: RunId,
    /// Name of its configuration.
    pub name: String,
    /// Where it stands.
    pub phase: RunPhase,
    /// What the phase does not say: of a run of one machine whether a process works at it, and of any whether it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// When it was planned.
    pub created_at: Timestamp,
    /// Generation of its queue.
    pub generation: u64,
    /// Dialogues planned.
    pub planned: u64,
    /// Dialogues whose winner has scores.
    pub scored: u64,
    /// Dialogues whose winner is a failure.
    pub failed: u64,
    /// Failed dialogues by cause.
    pub failures: Vec<(FailureCause, u64)>,
    /// Dialogues per second over the last minute, for all models together. Records from before this coordinator
    /// loaded the run do not count.
    pub rate: f64,
    /// Tokens generated per second over the same time.
    #[serde(default)]
    pub tokens_per_second: f64,
    /// Seconds until the slowest model in progress is done; `None` if no model makes progress.
    pub eta_s: Option<f64>,
    /// What keeps it from continuing, if anything does.
    pub trouble: Option<String>,
    /// Its models, in the order of the plan.
    pub models: Vec<ModelView>,
    /// What a column with one number for each model is called.
    #[serde(default)]
    pub headline: HeadlineView,
    /// The rows of its table; empty in lists.
    #[serde(default)]
    pub rows: Vec<RowView>,
    /// Row by row: the cells of all models; empty in lists.
    pub cells: Vec<CellView>,
    /// The runs of a judged benchmark, in the order of models and stages; empty in lists.
    #[serde(default)]
    pub runs: Vec<RunLine>,
    /// The most frequent failures, a readable number of them; empty in lists.
    #[serde(default)]
    pub refusals: Vec<RefusalView>,
    /// Notes on reading the scores, such as models that were not measured alike.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Who did what to it, oldest first; empty in lists.
    #[serde(default)]
    pub history: Vec<HistoryEntry>,
    /// Seconds since it was planned; of one that is over, until its last record. `None` if that is not known.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// Dialogues in each of the last whole minutes, at most [`MINUTES_MAX`], the oldest first, by when they ended; of one that
    /// is over, up to its last record. Empty in lists.
    #[serde(default)]
    pub per_minute: Vec<u64>,
    /// Records at workers of the fleet, of all runs, that no coordinator has acknowledged.
    #[serde(default)]
    pub unacknowledged: u64,
    /// Its share of the fleet beside others of its submitter; 0 if that is not known.
    #[serde(default)]
    pub priority: u32,
    /// Who submitted it, if that is known and it is not over.
    #[serde(default)]
    pub submitter: String,
    /// The pools of its models, as their conductors last told; empty in lists.
    #[serde(default)]
    pub pools: Vec<PoolState>,
}

/// What the phase of a benchmark does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// A process of this machine works at it.
    Running,
    /// It is not over, and no process of this machine works at it.
    Interrupted,
    /// It cannot be read.
    Unreadable,
}

/// Minutes that a view looks back.
pub const MINUTES_MAX: usize = 60;

/// Fewer unacknowledged records than this are what is always on its way.
const UNACKNOWLEDGED_TOLD_MIN: u64 = 1_000;

impl BenchmarkView {
    /// Dialogues that have a record.
    pub fn done(&self) -> u64 {
        self.scored + self.failed
    }

    /// What becomes of it, in one word.
    pub fn state(&self) -> &'static str {
        match self.condition {
            Some(Condition::Running) => "running",
            Some(Condition::Interrupted) => "interrupted",
            Some(Condition::Unreadable) => "unreadable",
            None => self.phase.as_str(),
        }
    }

    /// Whether it may change by itself: it is not over, and somebody may work at it.
    pub fn goes_on(&self) -> bool {
        let stands = matches!(self.condition, Some(Condition::Interrupted | Condition::Unreadable));
        !self.phase.is_over() && !stands
    }

    /// Whether every planned dialogue has a record; of a judged benchmark, whether every stage is done, too.
    pub fn is_complete(&self) -> bool {
        let counts = self.runs.is_empty() && self.planned > 0 && self.done() == self.planned;
        self.phase == RunPhase::Finished || counts
    }

    /// Unacknowledged records, where they are too many to be just on their way.
    pub fn held_back(&self) -> Option<u64> {
        Some(self.unacknowledged).filter(|records| *records >= UNACKNOWLEDGED_TOLD_MIN)
    }

    /// Why remaining dialogues cannot be asked, with the models affected: the most frequent reason first.
    pub fn blocked(&self) -> Vec<(&str, Vec<&ModelLabel>)> {
        let mut reasons: Vec<(&str, Vec<&ModelLabel>)> = Vec::new();
        for model in &self.models {
            let Some(reason) = model.blocked.as_deref() else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, models)) => models.push(&model.model),
                None => reasons.push((reason, vec![&model.model])),
            }
        }
        reasons.sort_by_key(|(_, models)| std::cmp::Reverse(models.len()));
        reasons
    }
}

/// An action of a caller on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    pub at: Timestamp,
    /// Name of the identity; [`Caller::ANYONE`](crate::caller::Caller::ANYONE) if none are configured.
    pub who: String,
    /// The action in words: `submitted`, `paused`, `retried 5 dialogues`.
    pub what: String,
}

/// A model of a run as people see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelView {
    pub model: ModelLabel,
    /// Dialogues planned.
    pub planned: u64,
    /// Dialogues scored.
    pub scored: u64,
    /// Dialogues failed.
    pub failed: u64,
    pub units_pending: u64,
    pub units_leased: u64,
    /// Dead letters.
    pub units_dead: u64,
    /// Suspects, pending or leased: workers died with them twice, so they run alone.
    #[serde(default)]
    pub units_suspect: u64,
    /// Registered workers that serve it.
    pub workers: u64,
    /// Why it gets no work, if it is parked.
    pub parked: Option<String>,
    #[serde(default)]
    pub pace: Pace,
    /// Why no worker can ask its remaining dialogues, if so.
    pub blocked: Option<String>,
    /// Whether nobody can ask it only because a server of it is loading, or will come when it is its turn.
    #[serde(default)]
    pub loading: bool,
    /// Mean of the means of its tasks.
    #[serde(default)]
    pub mean: Mean,
    /// How its provider may [bill](crate::ModelSpec::billed_as) it; `None` of models that nobody bills.
    #[serde(default)]
    pub billed_as: Option<String>,
    /// What its dialogues that count have used.
    #[serde(default)]
    pub usage: ModelUsage,
    /// Dialogues in flight that all workers together allow its servers now.
    #[serde(default)]
    pub limit: u64,
    /// Why it is not higher, in the words of the metric of limits, once each.
    #[serde(default)]
    pub limit_reasons: Vec<String>,
    /// What all workers together have under way of it.
    #[serde(default)]
    pub calls: Calls,
}

impl ModelView {
    /// Dialogues without a record.
    pub fn remaining(&self) -> u64 {
        self.planned.saturating_sub(self.scored + self.failed)
    }
}

/// How fast a model progresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pace {
    /// Dialogues per second over the last minute.
    pub rate: f64,
    /// Tokens generated per second over the same time.
    pub tokens_per_second: f64,
    /// Seconds until the rest is done at this rate; `None` if there is no progress.
    pub eta_s: Option<f64>,
}

/// What the one number of each model is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeadlineView {
    /// In words: `mean of tasks`, or the name of a result.
    pub words: String,
    /// Whether it is the mean of the dialogues' scores, so that an interval can be computed from them.
    pub intervals: bool,
}

impl Default for HeadlineView {
    fn default() -> Self {
        Self { words: "mean of tasks".to_owned(), intervals: true }
    }
}

/// A row of the table of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RowView {
    /// As in [`CellView::task`].
    pub name: TaskLabel,
    pub kind: RowKind,
    pub better: Better,
}

named! {
    /// What a row shows.
    #[derive(Default)]
    pub enum RowKind {
        /// The mean scores on a task.
        #[default]
        Task = "task",
        /// How many dialogues of a stage have a record.
        Stage = "stage",
        /// A result of a judged benchmark.
        Result = "result",
    }
}

/// A run of a judged benchmark, briefly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    pub name: RunId,
    pub stage: String,
    /// The model under test that it is about, or `all`.
    pub model: ModelLabel,
    /// The model that it asks: the one under test, or a judge.
    pub asks: ModelLabel,
    pub phase: RunPhase,
    /// Dialogues planned.
    pub planned: u64,
    /// Dialogues scored.
    pub scored: u64,
    /// Dialogues failed.
    pub failed: u64,
}

impl RunLine {
    /// Dialogues without a record.
    pub fn remaining(&self) -> u64 {
        self.planned.saturating_sub(self.scored + self.failed)
    }
}

/// One model in one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellView {
    /// The name of the row: a task, a stage, or a result after `= `.
    pub task: TaskLabel,
    pub model: ModelLabel,
    /// Dialogues scored.
    pub scored: u64,
    /// Dialogues failed.
    pub failed: u64,
    /// Dialogues planned.
    #[serde(default)]
    pub planned: u64,
    /// Mean headline score of those that have one.
    pub mean: Option<f64>,
    /// Scored dialogues without a headline score: they are missing from the mean, not zero in it.
    #[serde(default)]
    pub missing: u64,
    /// Dialogues whose answers are odd, by oddity; empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<(Oddity, u64)>,
}

impl CellView {
    /// Dialogues whose answers are odd in this way.
    pub fn odd(&self, oddity: Oddity) -> u64 {
        self.odd.iter().filter(|(of, _)| *of == oddity).map(|(_, dialogues)| dialogues).sum()
    }

    /// The mean, with how much of the plan it covers.
    pub fn covered_mean(&self) -> Mean {
        Mean { value: self.mean, covered: self.scored.saturating_sub(self.missing), planned: self.planned }
    }
}

named! {
    /// Which of two values of a row is the better one.
    #[derive(Default)]
    pub enum Better {
        #[default]
        Higher = "higher",
        Lower = "lower",
        /// It says how a model answers, not how well.
        Neither = "neither",
    }
}

/// Failed dialogues of a model with the same message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalView {
    pub model: ModelLabel,
    pub cause: FailureCause,
    /// The server's message, or our own.
    pub message: String,
    pub dialogues: u64,
}

/// One piece of an export. Of a judged benchmark, its documents come first; then, for each run, its manifest and its records
/// by model, task and iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportItem {
    /// A copy of the documents of a judged benchmark as JSON.
    Documents(Arc<str>),
    /// The manifest of a run as JSON.
    Manifest(Arc<str>),
    /// The [`Record`](crate::Record) of a dialogue that counts, as JSON.
    Record(Arc<str>),
}

/// A worker as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerView {
    pub worker: WorkerId,
    /// Its last report, which is shared: it may name dozens of models.
    pub status: Arc<WorkerStatus>,
    /// Milliseconds since then.
    pub seen_ms_ago: u64,
    /// Whether it was asked to drain.
    pub draining: bool,
}

/// A dead letter or suspect as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterView {
    /// The run that it belongs to.
    #[serde(default)]
    pub run: RunId,
    pub unit: u64,
    pub dialogues: Vec<DialogueKey>,
    /// The deaths counted against it, oldest first.
    pub strikes: Vec<StrikeView>,
    /// Whether it is still a suspect, not a dead letter.
    #[serde(default)]
    pub suspect: bool,
}

/// A worker's death counted against a unit. The first is free, the second makes the unit a suspect; each later one is a
/// strike, because the unit ran alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrikeView {
    /// The worker that died.
    pub worker: WorkerId,
    /// The attempt that ended with it.
    pub attempt: u32,
    pub cause: String,
    pub at: Timestamp,
}
