//! The tables for analyses, in two forms. *Long*: one row per dialogue and score. *Wide*: one row per dialogue, with
//! its other fields and a column per score. A column is added to the lists in this module; every format then has it.
//!
//! In the long form a dialogue without scores has one row with an empty `score`, so that no dialogue is missed when
//! counting. What many dialogues share, such as the scoring rules, stands once, under a number:
//! [`provenance`](super::provenance).

use std::collections::HashMap;

use domain::redaction::{Texts, redact_text};
use domain::{RunId, Scores, TaskProvenance, Usage};
use results::{OutcomeSummary, Summary};
use serde_json::Value;

use crate::dialogues::shapes::leaves;
use crate::table::{ALL_DIGITS, ColumnKind, RowCell, RowColumn};

/// The record without the message of a failure if texts are redacted, because it can quote an exercise.
#[must_use]
pub(super) fn disclosed(mut record: Summary, texts: Texts) -> Summary {
    if let OutcomeSummary::Unscored { message, .. } | OutcomeSummary::Failed { message, .. } =
        &mut record.outcome
        && texts == Texts::Redact
    {
        redact_text(message);
    }
    record
}

/// The score that stands for the dialogues of a task: its key, or its group and key; empty if unknown.
pub type Headline<'a> = &'a dyn Fn(&TaskProvenance) -> &'static [&'static str];

/// What a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A dialogue and a score.
    #[default]
    Long,
    /// A dialogue.
    Wide,
}

/// Name, type and meaning of a column.
pub type ColumnSpec = (&'static str, ColumnKind, &'static str);

/// The columns that both forms begin with.
const COMMON: [ColumnSpec; 8] = [
    ("run", ColumnKind::Text, "the run"),
    ("model", ColumnKind::Text, "label of the model"),
    ("task", ColumnKind::Text, "label of the task"),
    ("iteration", ColumnKind::Integer, "repetition, from 0"),
    ("case", ColumnKind::Text, "case of the task"),
    ("state", ColumnKind::Text, "scored; unscored: answered, without a score; or failed"),
    ("failure", ColumnKind::Text, "why it has no scores"),
    ("message", ColumnKind::Text, "what happened, for people; of protected exercises its length"),
];

/// The other columns of the long form.
const LONG: [ColumnSpec; 5] = [
    ("group", ColumnKind::Text, "round from 0, or mean, max, meanExt, last; empty for single-shot tasks"),
    ("score", ColumnKind::Text, "name of the score; empty if there are none"),
    ("value", ColumnKind::Number, "the score"),
    ("is_headline", ColumnKind::Flag, "whether this score stands for the dialogue"),
    (
        "provenance",
        ColumnKind::Integer,
        "number of the row's provenance: versions, pack, scoring rules, model",
    ),
];

/// The other columns of the wide form, before its scores.
const WIDE: [ColumnSpec; 13] = [
    ("headline_score", ColumnKind::Text, "name of the score that stands for the dialogue"),
    ("headline", ColumnKind::Number, "that score"),
    ("rounds", ColumnKind::Integer, "prompts with an answer"),
    ("prompt_tokens", ColumnKind::Integer, "tokens of all prompts; empty if the server did not report them"),
    (
        "completion_tokens",
        ColumnKind::Integer,
        "tokens of all answers; empty if the server did not report them",
    ),
    ("started_at", ColumnKind::Time, "start of the dialogue, UTC"),
    ("seconds", ColumnKind::Number, "from the start of the dialogue to its last answer"),
    (
        "evaluation_seconds",
        ColumnKind::Number,
        "from the last answer to the end: evaluation, and the wait for it",
    ),
    ("seed", ColumnKind::Integer, "sampling seed"),
    ("worker", ColumnKind::Text, "worker"),
    ("attempt", ColumnKind::Integer, "attempt, from 1"),
    ("record", ColumnKind::Text, "id of the record"),
    (
        "provenance",
        ColumnKind::Integer,
        "number of the row's provenance: versions, pack, scoring rules, model",
    ),
];

/// The columns of a table and how a record fills them.
pub struct Layout<'a> {
    run: &'a RunId,
    headline: Headline<'a>,
    columns: Vec<RowColumn>,
    /// In the wide form, the column of each score, by name; `None` in the long form.
    places: Option<HashMap<String, usize>>,
}

impl<'a> Layout<'a> {
    /// The long form.
    pub fn long(run: &'a RunId, headline: Headline<'a>) -> Self {
        Self { run, headline, columns: named(COMMON.iter().chain(&LONG)), places: None }
    }

    /// The wide form with these [names of scores](ScoreNames).
    pub fn wide(run: &'a RunId, headline: Headline<'a>, scores: &ScoreNames) -> Self {
        let mut columns = named(COMMON.iter().chain(&WIDE));
        let mut places = HashMap::new();
        for name in &scores.0 {
            // A score named like another column must not take its name.
            let taken = columns.iter().any(|column| column.name == *name);
            places.insert(name.clone(), columns.len());
            columns.push(RowColumn {
                name: if taken { format!("score.{name}") } else { name.clone() },
                kind: ColumnKind::Number,
                meaning: "a score; rounds from 0, or mean, max, meanExt, last before its name",
            });
        }
        Self { run, headline, columns, places: Some(places) }
    }

    /// Name, type and meaning of every column, in order.
    pub fn columns(&self) -> &[RowColumn] {
        &self.columns
    }

    /// Passes the rows of a dialogue to `each`, in the order of its scores.
    pub fn rows<E>(
        &self,
        record: &Summary,
        provenance: usize,
        mut each: impl FnMut(&[RowCell<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let headline = (self.headline)(&record.provenance.task);
        let mut cells = self.common(record);
        let number = RowCell::Count(provenance as u64);
        let Some(places) = &self.places else {
            let mut scores = leaves_of(&record.outcome).map(Some).peekable();
            let none = scores.peek().is_none().then_some(None);
            for leaf in scores.chain(none) {
                cells.truncate(COMMON.len());
                cells.extend(match leaf {
                    None => [RowCell::Empty, RowCell::Empty, RowCell::Empty, RowCell::Empty],
                    Some((group, score, value)) => [
                        group.map_or(RowCell::Empty, text),
                        text(score),
                        RowCell::Number(value, ALL_DIGITS),
                        RowCell::Flag(group.into_iter().chain([score]).eq(headline.iter().copied())),
                    ],
                });
                cells.push(number.clone());
                each(&cells)?;
            }
            return Ok(());
        };
        let name = headline.join(".");
        cells.extend(of_dialogue(record, &name, headline, number));
        cells.resize(self.columns.len(), RowCell::Empty);
        let mut whole = String::new();
        for (group, score, value) in leaves_of(&record.outcome) {
            if let Some(&place) = places.get(full_name(group, score, &mut whole)) {
                cells[place] = RowCell::Number(value, ALL_DIGITS);
            }
        }
        each(&cells)
    }

    fn common<'r>(&self, record: &'r Summary) -> Vec<RowCell<'r>>
    where
        'a: 'r,
    {
        let mut cells = Vec::with_capacity(self.columns.len());
        let why = record.outcome.why();
        cells.extend([
            text(self.run.as_str()),
            text(record.key.model.as_str()),
            text(record.key.task.as_str()),
            RowCell::Count(record.key.iteration.into()),
            text(&record.provenance.task.case),
            text(record.outcome.state()),
            why.map_or(RowCell::Empty, |(cause, _)| text(cause.as_str())),
            why.map(|(_, message)| message)
                .filter(|message| !message.is_empty())
                .map_or(RowCell::Empty, text),
        ]);
        cells
    }
}

/// The cells of [`WIDE`].
fn of_dialogue<'r>(
    record: &'r Summary,
    name: &'r str,
    headline: &[&str],
    provenance: RowCell<'r>,
) -> [RowCell<'r>; WIDE.len()] {
    let tokens =
        |count: fn(&Usage) -> Option<u64>| record.tokens(count).map_or(RowCell::Empty, RowCell::Count);
    let time = record.time();
    [
        if name.is_empty() { RowCell::Empty } else { text(name) },
        record
            .outcome
            .scores()
            .and_then(|scores| score_at(scores, headline))
            .map_or(RowCell::Empty, |value| RowCell::Number(value, ALL_DIGITS)),
        RowCell::Count(record.rounds.len() as u64),
        tokens(|usage| usage.prompt_tokens),
        tokens(|usage| usage.completion_tokens),
        RowCell::Time(record.started_at),
        RowCell::Number(time.dialogue_s, ALL_DIGITS),
        RowCell::Number(time.evaluation_s, ALL_DIGITS),
        RowCell::Count(record.provenance.seed),
        text(record.attempt.worker.as_str()),
        RowCell::Count(record.attempt.number.into()),
        text(record.attempt.id.as_str()),
        provenance,
    ]
}

fn text(text: &str) -> RowCell<'_> {
    RowCell::Text(text.into())
}

fn named<'c>(columns: impl Iterator<Item = &'c ColumnSpec>) -> Vec<RowColumn> {
    columns.map(|&(name, kind, meaning)| RowColumn { name: name.to_owned(), kind, meaning }).collect()
}

/// The names of all scores of some dialogues, in the order of their first appearance: the columns of the wide form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoreNames(Vec<String>);

impl ScoreNames {
    /// Adds the names of a dialogue's scores.
    pub(super) fn learn(&mut self, outcome: &OutcomeSummary) {
        let mut whole = String::new();
        let mut expected = 0;
        for (group, score, _) in leaves_of(outcome) {
            let name = full_name(group, score, &mut whole);
            // Dialogues of a task have the same scores in the same order, so the next name is often the next known one.
            if self.0.get(expected).is_some_and(|known| known == name) {
                expected += 1;
                continue;
            }
            match self.0.iter().position(|known| known == name) {
                Some(at) => expected = at + 1,
                None => {
                    self.0.push(name.to_owned());
                    expected = self.0.len();
                }
            }
        }
    }
}

/// `GROUP.SCORE`, or the score alone.
fn full_name<'n>(group: Option<&str>, score: &'n str, whole: &'n mut String) -> &'n str {
    let Some(group) = group else { return score };
    whole.clear();
    whole.extend([group, ".", score]);
    whole
}

fn leaves_of(outcome: &OutcomeSummary) -> impl Iterator<Item = (Option<&str>, &str, f64)> {
    outcome.scores().into_iter().flat_map(leaves)
}

/// The score of this key, or of this group and key.
pub fn score_at(scores: &Scores, path: &[&str]) -> Option<f64> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(scores.get(*first)?, |value: &Value, key| value.get(key))?.as_f64()
}
