//! What people and their tools say to a coordinator.

use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::ServiceError;
use crate::exchange::{Reply, WorkerStatus};
use crate::ids::{DialogueKey, ModelLabel, RunId, TaskLabel, WorkerId};
use crate::mean::Mean;
use crate::outcome::FailureCause;

/// Things that come one after the other until the other side has no more.
pub type Feed<'a, T> = Pin<Box<dyn futures_core::Stream<Item = Result<T, ServiceError>> + Send + 'a>>;

/// A coordinator as the command line sees it.
pub trait Control: Send + Sync + 'static {
    /// Plans a run and queues it. Repetition: an unfinished run of the same configuration is joined.
    fn submit(&self, submission: Submission) -> Reply<'_, RunView>;

    /// All runs, in the order of their names, which is that of time.
    fn runs(&self) -> Reply<'_, Vec<RunView>>;

    /// One run.
    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, RunView>;

    /// One run again and again, about once a second, until it ends or the listener leaves.
    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, RunView>;

    /// Pauses, resumes or cancels a run; returns it as it is then. Repetition: the same.
    fn command<'a>(&'a self, run: &'a RunId, command: RunCommand) -> Reply<'a, RunView>;

    /// Queues failed dialogues with one of these causes again, all of them where none is named; returns how many.
    fn retry<'a>(&'a self, run: &'a RunId, causes: &'a [FailureCause]) -> Reply<'a, u64>;

    /// Removes a run that is over, with its records; one that goes on is cancelled first with `force`. Records of it that
    /// come late are refused for good. Repetition: harmless.
    fn remove<'a>(&'a self, run: &'a RunId, force: bool) -> Reply<'a, ()>;

    /// The record that counts, for every dialogue that has one, and before them the manifest.
    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem>;

    /// The workers, by name.
    fn workers(&self) -> Reply<'_, Vec<WorkerView>>;

    /// Asks a worker to finish what it holds and end.
    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, ()>;

    /// Units of a run that were set aside, then those that are suspects; or one of them.
    fn dead_letters<'a>(&'a self, run: &'a RunId, unit: Option<u64>) -> Reply<'a, Vec<DeadLetterView>>;

    /// Gives units set aside another chance, all of them where none is named; returns how many.
    fn requeue<'a>(&'a self, run: &'a RunId, units: &'a [u64]) -> Reply<'a, u64>;

    /// Whether the coordinator and what it needs are fit for a long run: warnings, worst first.
    fn check(&self) -> Reply<'_, Vec<String>>;
}

/// A run to be begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The benchmark configuration, resolved, as JSON.
    pub configuration: serde_json::Value,
    /// The sealed pack where it is not the built-in one.
    pub pack: Option<Arc<[u8]>>,
}

/// What may be asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunCommand {
    /// Hand out no more units; what is in hand goes on.
    Pause,
    /// Go on: also from nothing but the record log, also when cancelled.
    Resume,
    /// Stop; workers drop what they hold.
    Cancel,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// Its queue is being built.
    Preparing,
    /// Units are handed out.
    Active,
    /// None is, by hand.
    Paused,
    /// Stopped by hand.
    Cancelled,
    /// Every dialogue has a record.
    Finished,
}

impl RunPhase {
    /// The name used in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }

    /// Whether nothing happens any more unless somebody asks for it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Cancelled | Self::Finished)
    }
}

impl std::fmt::Display for RunPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A run as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// The run.
    pub run: RunId,
    /// Name of its configuration.
    pub name: String,
    /// Where it stands.
    pub phase: RunPhase,
    /// When it was planned.
    pub created_at: Timestamp,
    /// Generation of its queue.
    pub generation: u64,
    /// Dialogues planned.
    pub planned: u64,
    /// Dialogues whose record that counts has scores.
    pub scored: u64,
    /// Dialogues whose record that counts is a failure.
    pub failed: u64,
    /// Failed dialogues by cause.
    pub failures: Vec<(FailureCause, u64)>,
    /// Dialogues per second over the last minute, as this coordinator sees them: those of its models together. What was
    /// recorded before it looked says nothing about the rate.
    pub rate: f64,
    /// Tokens generated per second over the same time.
    #[serde(default)]
    pub tokens_per_second: f64,
    /// Seconds that the slowest of the models that move takes for the rest; `None` where none moves.
    pub eta_s: Option<f64>,
    /// What keeps it from going on, where something does.
    pub trouble: Option<String>,
    /// Its models, in the order of the plan.
    pub models: Vec<ModelView>,
    /// Scores by task and model, in the order of the plan; empty in lists of runs.
    pub cells: Vec<CellView>,
    /// Why dialogues failed, the commonest first, not more than people read; empty in lists of runs.
    #[serde(default)]
    pub refusals: Vec<RefusalView>,
    /// What must be known to read the scores, such as models that were not measured alike.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Who did what to it, oldest first; empty in lists of runs.
    #[serde(default)]
    pub history: Vec<HistoryEntry>,
}

impl RunView {
    /// Dialogues that have a record.
    pub fn done(&self) -> u64 {
        self.scored + self.failed
    }

    /// Models that have dialogues left which nobody can ask, by the reason: the commonest first.
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

/// Something that somebody did to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// When.
    pub at: Timestamp,
    /// Name of the identity; [`Caller::ANYONE`](crate::caller::Caller::ANYONE) where none are kept.
    pub who: String,
    /// What, in words: `submitted`, `paused`, `retried 5 dialogues`.
    pub what: String,
}

/// A model of a run as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelView {
    /// The model.
    pub model: ModelLabel,
    /// Dialogues planned.
    pub planned: u64,
    /// Dialogues scored.
    pub scored: u64,
    /// Dialogues failed.
    pub failed: u64,
    /// Units that wait for a worker.
    pub units_pending: u64,
    /// Units that a worker holds.
    pub units_leased: u64,
    /// Units set aside.
    pub units_dead: u64,
    /// Suspects among the units that wait or are held: a worker died with them, so they run alone.
    #[serde(default)]
    pub units_suspect: u64,
    /// Registered workers that serve it.
    pub workers: u64,
    /// Why it gets no work, where it is parked.
    pub parked: Option<String>,
    /// Its share of the run's pace.
    #[serde(default)]
    pub pace: Pace,
    /// Why nobody can ask what is left of it, where that is so.
    #[serde(default)]
    pub blocked: Option<String>,
    /// Mean of the means of its tasks.
    #[serde(default)]
    pub mean: Mean,
}

impl ModelView {
    /// Dialogues without a record.
    pub fn remaining(&self) -> u64 {
        self.planned.saturating_sub(self.scored + self.failed)
    }
}

/// How fast a model gets on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// Dialogues per second over the last minute.
    pub rate: f64,
    /// Tokens generated per second over the same time.
    pub tokens_per_second: f64,
    /// Seconds that the rest takes at this rate; `None` where it does not move.
    pub eta_s: Option<f64>,
}

/// One model on one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellView {
    /// The task.
    pub task: TaskLabel,
    /// The model.
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
}

impl CellView {
    /// The mean with what it covers.
    pub fn covered_mean(&self) -> Mean {
        Mean { value: self.mean, covered: self.scored.saturating_sub(self.missing), planned: self.planned }
    }
}

/// Dialogues of a model that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalView {
    /// The model.
    pub model: ModelLabel,
    /// Why.
    pub cause: FailureCause,
    /// The words of the server, or ours.
    pub message: String,
    /// How many.
    pub dialogues: u64,
}

/// One piece of an export, in this order: the manifest, then records by model, task and iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportItem {
    /// The run's manifest as JSON.
    Manifest(Arc<str>),
    /// The record that counts for a dialogue.
    Record {
        /// Its ticket: its place in the order of commits.
        ticket: u64,
        /// The [`Record`](crate::Record) as JSON.
        json: Arc<str>,
    },
}

/// A worker as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerView {
    /// The worker.
    pub worker: WorkerId,
    /// What it last said of itself.
    pub status: WorkerStatus,
    /// Milliseconds since then.
    pub seen_ms_ago: u64,
    /// Whether it was asked to drain.
    pub draining: bool,
}

/// A unit with deaths of workers on its account, as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterView {
    /// The unit.
    pub unit: u64,
    /// Its dialogues.
    pub dialogues: Vec<DialogueKey>,
    /// What brought it here, oldest first.
    pub strikes: Vec<StrikeView>,
    /// Whether it was not set aside: it waits to run alone, or does.
    #[serde(default)]
    pub suspect: bool,
}

/// One death on a unit's account. The first made it a suspect; each later one came while it ran alone, and is a strike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrikeView {
    /// Who held it.
    pub worker: WorkerId,
    /// The attempt that ended so.
    pub attempt: u32,
    /// Why.
    pub cause: String,
    /// When.
    pub at: Timestamp,
}
