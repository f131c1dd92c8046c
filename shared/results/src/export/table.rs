//! The table for analyses: one row per dialogue and score.
//!
//! A dialogue without scores has one row with an empty `score`, so that no dialogue is missed when counting.

use domain::{Attempt, DialogueKey, Provenance, RunId, Usage};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::log::OutcomeHead;

/// The part of a [`Record`](domain::Record) in the table. Reading it from JSON skips the texts, which are most of a record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TableRecord {
    key: DialogueKey,
    attempt: Attempt,
    started_at: Timestamp,
    ended_at: Timestamp,
    rounds: Vec<RoundUsage>,
    outcome: OutcomeHead,
    provenance: Provenance,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct RoundUsage {
    answer: AnswerUsage,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct AnswerUsage {
    #[serde(default)]
    usage: Usage,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// Whole numbers.
    Integer,
    /// Floating-point numbers.
    Number,
    Time,
}

/// The columns in order: name, type and meaning.
pub const COLUMNS: [(&str, Kind, &str); 28] = [
    ("run", Kind::Text, "the run"),
    ("model", Kind::Text, "label of the model"),
    ("task", Kind::Text, "label of the task"),
    ("iteration", Kind::Integer, "repetition, from 0"),
    ("state", Kind::Text, "scored; unscored: answered, without a score; or failed"),
    ("failure", Kind::Text, "why it has no scores"),
    ("group", Kind::Text, "round from 0, or mean, max, meanExt, last; empty for single-shot tasks"),
    ("score", Kind::Text, "name of the score; empty if there are none"),
    ("value", Kind::Number, "the score"),
    ("task_class", Kind::Text, "task class"),
    ("task_version", Kind::Text, "version of the task class"),
    ("case", Kind::Text, "case of the task"),
    ("pack", Kind::Text, "task pack"),
    ("pack_hash", Kind::Text, "hash of the pack's manifest, SHA-256"),
    ("scorer", Kind::Text, "version of the scoring rules"),
    ("connector", Kind::Text, "connector to the model"),
    ("model_requested", Kind::Text, "model asked for"),
    ("model_reported", Kind::Text, "model reported by the server"),
    ("seed", Kind::Integer, "sampling seed"),
    ("rounds", Kind::Integer, "prompts with an answer"),
    ("prompt_tokens", Kind::Integer, "tokens of all prompts; empty if the server did not report them"),
    ("completion_tokens", Kind::Integer, "tokens of all answers; empty if the server did not report them"),
    ("started_at", Kind::Time, "start of the dialogue, UTC"),
    ("seconds", Kind::Number, "length of the dialogue"),
    ("worker", Kind::Text, "worker"),
    ("attempt", Kind::Integer, "attempt, from 1"),
    ("kgfleet", Kind::Text, "version of kgfleet"),
    ("record", Kind::Text, "id of the record"),
];

/// The columns that differ between the rows of one dialogue: group, score and value.
pub const PER_SCORE: std::ops::Range<usize> = 6..9;

/// Number of columns.
pub const WIDTH: usize = COLUMNS.len();

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Empty,
    Text(&'a str),
    Integer(i64),
    Number(f64),
    Time(Timestamp),
}

/// A row, its cells in the order of [`COLUMNS`].
pub type Row<'a> = [Cell<'a>; WIDTH];

/// Passes the rows of a dialogue to `each`, in the order of its scores. Returns their number.
pub fn rows<E>(
    run: &RunId,
    record: &TableRecord,
    mut each: impl FnMut(&Row<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    let mut rows = 0;
    for (group, score, value) in scores(&record.outcome) {
        each(&row(run, record, group, score, value))?;
        rows += 1;
    }
    if rows == 0 {
        each(&row(run, record, Cell::Empty, Cell::Empty, Cell::Empty))?;
        rows = 1;
    }
    Ok(rows)
}

/// Group, name and value of every score.
fn scores(outcome: &OutcomeHead) -> impl Iterator<Item = (Cell<'_>, Cell<'_>, Cell<'_>)> {
    let scores = match outcome {
        OutcomeHead::Scored(scores) => Some(scores),
        OutcomeHead::Unscored { .. } | OutcomeHead::Failed { .. } => None,
    };
    scores.into_iter().flatten().flat_map(|(name, value)| -> Vec<(Cell<'_>, Cell<'_>, Cell<'_>)> {
        match value {
            Value::Object(group) => group
                .iter()
                .filter_map(|(score, value)| {
                    Some((Cell::Text(name), Cell::Text(score), Cell::Number(value.as_f64()?)))
                })
                .collect(),
            _ => value
                .as_f64()
                .map(|value| (Cell::Empty, Cell::Text(name), Cell::Number(value)))
                .into_iter()
                .collect(),
        }
    })
}

fn row<'a>(
    run: &'a RunId,
    record: &'a TableRecord,
    group: Cell<'a>,
    score: Cell<'a>,
    value: Cell<'a>,
) -> Row<'a> {
    let (task, model) = (&record.provenance.task, &record.provenance.model);
    let (state, failure) = match &record.outcome {
        OutcomeHead::Scored(_) => ("scored", Cell::Empty),
        OutcomeHead::Unscored { cause, .. } => ("unscored", Cell::Text(cause.as_str())),
        OutcomeHead::Failed { cause, .. } => ("failed", Cell::Text(cause.as_str())),
    };
    let integer = |number: u64| i64::try_from(number).map_or(Cell::Empty, Cell::Integer);
    // If the server did not count the tokens of some round, the sum would be too small: leave it empty.
    let tokens = |count: fn(&Usage) -> Option<u64>| {
        let sum: Option<u64> = record.rounds.iter().map(|round| count(&round.answer.usage)).sum();
        sum.filter(|_| !record.rounds.is_empty()).map_or(Cell::Empty, integer)
    };
    [
        Cell::Text(run.as_str()),
        Cell::Text(record.key.model.as_str()),
        Cell::Text(record.key.task.as_str()),
        Cell::Integer(record.key.iteration.into()),
        Cell::Text(state),
        failure,
        group,
        score,
        value,
        Cell::Text(&task.class),
        Cell::Text(&task.version),
        Cell::Text(&task.case),
        Cell::Text(&task.pack),
        Cell::Text(&task.pack_hash),
        Cell::Text(&task.scorer),
        Cell::Text(&model.connector),
        Cell::Text(&model.requested),
        model.reported.as_deref().map_or(Cell::Empty, Cell::Text),
        integer(record.provenance.seed),
        integer(record.rounds.len() as u64),
        tokens(|usage| usage.prompt_tokens),
        tokens(|usage| usage.completion_tokens),
        Cell::Time(record.started_at),
        Cell::Number(record.ended_at.duration_since(record.started_at).as_secs_f64()),
        Cell::Text(record.attempt.worker.as_str()),
        Cell::Integer(record.attempt.number.into()),
        Cell::Text(&record.provenance.kgfleet),
        Cell::Text(record.attempt.id.as_str()),
    ]
}
