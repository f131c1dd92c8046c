//! What a task file declares of a task, as its pack holds it: the parameters of the task. The crate `task-files` writes them,
//! and [`declared`](super) reads them. Packs are kept for long, so a field or a word keeps its meaning within a version of the
//! classes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How answers are read and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredSpec {
    pub answer: AnswerRule,
    /// The share of the score for an answer that can be read, 0 to 1.
    #[serde(default)]
    pub readable: f64,
    /// Most answers of a dialogue.
    pub rounds: usize,
    /// In the order in which their scores are added.
    pub checks: Vec<CheckSpec>,
    /// Prefixes that answers may use undeclared.
    #[serde(default)]
    pub prefixes: BTreeMap<String, String>,
}

/// Which part of an answer counts, and what it is read as.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerRule {
    pub take: AnswerPart,
    /// Languages of blocks that count, in any case; all of them if the list is empty.
    pub language: Vec<String>,
    /// Words one of which a block must contain, in any case; none if the list is empty.
    pub containing: Vec<String>,
    /// Only the text behind the last such marker counts.
    pub after: Option<String>,
    #[serde(rename = "as")]
    pub read_as: AnswerReading,
    /// Whether a second block is a finding.
    pub one: bool,
}

/// The part of an answer that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerPart {
    /// The first fenced block that fits.
    Block,
    /// The last fenced block that fits.
    LastBlock,
    /// All of it.
    #[default]
    Text,
    /// The first line that is not blank.
    Line,
    /// The first JSON list or object.
    Json,
}

/// What an answer is read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerReading {
    #[default]
    Text,
    Number,
    /// One item a line, or a JSON list.
    List,
    Json,
    Sparql,
}

/// One check of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckSpec {
    /// The name of its main score; the others are `NAME_part`.
    pub name: String,
    /// Its share of the score, relative to the other checks.
    pub weight: f64,
    /// Whether the whole score is 0 when this check is not passed in full.
    #[serde(default)]
    pub gate: bool,
    /// Whether an empty answer is right where the expected one is empty.
    #[serde(default)]
    pub empty_ok: bool,
    pub rule: CheckRule,
}

/// What a check compares, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "kind", deny_unknown_fields)]
pub enum CheckRule {
    /// The same text, white space around it aside.
    Exact,
    /// The same text but for case, white space, quotes, marks of emphasis and a final stop.
    Text,
    /// A regular expression that must match somewhere.
    Pattern { matches: String },
    /// The same number, but for a distance: absolute, or relative to the expected one.
    Number { within: f64, relative: f64 },
    /// The word that the answer begins with.
    Choice { choices: Vec<String> },
    /// The items of a list.
    List { items: ItemKind, ordered: bool, partial: bool },
    /// The rows that a query finds.
    Rows { compare: RowComparison },
}

impl CheckRule {
    /// Its name in task files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Text => "text",
            Self::Pattern { .. } => "pattern",
            Self::Number { .. } => "number",
            Self::Choice { .. } => "choice",
            Self::List { .. } => "list",
            Self::Rows { .. } => "rows",
        }
    }

    /// Whether it can judge an answer that is read like this.
    pub fn reads(&self, reading: AnswerReading) -> bool {
        match self {
            Self::Exact | Self::Text | Self::Pattern { .. } | Self::Choice { .. } => {
                reading == AnswerReading::Text
            }
            Self::Number { .. } => reading == AnswerReading::Number,
            Self::List { .. } => matches!(reading, AnswerReading::List | AnswerReading::Json),
            Self::Rows { .. } => reading == AnswerReading::Sparql,
        }
    }

    /// Whether each case says what it expects.
    pub fn expects(&self) -> bool {
        !matches!(self, Self::Pattern { .. })
    }
}

/// What the items of a list are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemKind {
    /// Texts, compared as by the check `text`.
    #[default]
    Text,
    /// IRIs, in full or with a prefix.
    Iri,
    /// Numbers, compared by value.
    Number,
    /// JSON objects, compared by their texts and numbers.
    Record,
}

/// How two results are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowComparison {
    /// Row by row.
    #[default]
    Rows,
    /// As one set of all cells.
    Cells,
}
