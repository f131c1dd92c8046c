//! What a task file declares of a task, as its pack holds it: the parameters of the task. `packs::task_files` writes them,
//! and [`declared`](super) reads them. Packs are kept for long, so a field or a word keeps its meaning within a version of the
//! classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::Scores;
use rdf::RdfFormat;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    pub checks: Vec<Arc<CheckSpec>>,
    /// Prefixes that answers may use undeclared.
    #[serde(default)]
    pub prefixes: BTreeMap<String, String>,
    /// Whether an answer that can be read and is not right gets a follow-up.
    #[serde(default)]
    pub content: bool,
    /// How often each case is asked where a configuration does not say how often.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repeats: u32,
}

fn once() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_once(repeats: &u32) -> bool {
    *repeats == 1
}

/// What a judge is asked about the answers to a case: the field [`CASE_FIELD`](Self::CASE_FIELD) of its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JudgeSpec {
    /// The question, in which `{{answer}}` stands for the answer.
    pub question: String,
    /// The share of the grade in the result, 0 to 1.
    pub weight: f64,
    pub when: JudgedWhen,
}

impl JudgeSpec {
    /// The field of a case that holds it.
    pub const CASE_FIELD: &str = "judge";

    /// What the data of a case says; nothing where its answers are not graded.
    pub fn of_case(case: &Map<String, Value>) -> Option<Self> {
        Self::deserialize(case.get(Self::CASE_FIELD)?).ok()
    }
}

/// Which answers a judge grades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedWhen {
    /// Those that can be read.
    #[default]
    Readable,
    /// Those with a score below 1.
    Imperfect,
    Always,
}

impl JudgedWhen {
    /// Whether an answer with these scores is graded.
    pub fn wants(self, scores: &Scores) -> bool {
        let is_full = |name| super::of_last(scores, name).is_some_and(|value| value >= 1.0);
        match self {
            Self::Readable => is_full("readable"),
            Self::Imperfect => !is_full("score"),
            Self::Always => true,
        }
    }
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
    /// A graph in one of four syntaxes.
    Turtle,
    #[serde(rename = "jsonld")]
    JsonLd,
    Xml,
    Nt,
    Sparql,
    /// SHACL shapes in Turtle.
    Shapes,
}

impl AnswerReading {
    /// The syntax of a graph.
    pub fn rdf_format(self) -> Option<RdfFormat> {
        match self {
            Self::Turtle => Some(RdfFormat::Turtle),
            Self::JsonLd => Some(RdfFormat::JsonLd),
            Self::Xml => Some(RdfFormat::RdfXml),
            Self::Nt => Some(RdfFormat::NTriples),
            Self::Text | Self::Number | Self::List | Self::Json | Self::Sparql | Self::Shapes => None,
        }
    }
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
    /// A subset of JSON Schema, as text.
    Schema { schema: String },
    /// The triples of a graph, whatever the names of blank nodes.
    Graph { literals: LiteralComparison, blank: BlankComparison, ignore: Vec<String> },
    /// Queries that must hold of the graph of the answer, with that of the case if so said.
    Assert { ask: Vec<Assertion>, with_graph: bool },
    /// SHACL shapes that the graph of the answer must have: those given here, or those that each case expects.
    Conforms { shapes: Option<String>, by: ConformityMeasure },
    /// SHACL shapes, judged by the graphs that they accept and reject.
    Shapes,
    /// A text, by its likeness to the expected one.
    Similar,
}

impl CheckRule {
    /// Its name in task files.
    pub fn kind(&self) -> String {
        let written = serde_json::to_value(self).unwrap_or_default();
        written["kind"].as_str().unwrap_or_default().to_owned()
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
            Self::Schema { .. } => reading == AnswerReading::Json,
            Self::Graph { .. } | Self::Assert { .. } | Self::Conforms { .. } => {
                reading.rdf_format().is_some()
            }
            Self::Shapes => reading == AnswerReading::Shapes,
            Self::Similar => true,
        }
    }

    /// Whether each case says what it expects.
    pub fn expects(&self) -> bool {
        match self {
            Self::Pattern { .. } | Self::Schema { .. } | Self::Assert { .. } => false,
            Self::Conforms { shapes, .. } => shapes.is_none(),
            _ => true,
        }
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

/// How literals of two graphs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiteralComparison {
    /// `2.50` is `2.5`.
    #[default]
    Value,
    /// The same text and datatype.
    Exact,
}

/// How blank nodes of two graphs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlankComparison {
    /// Each stands for one of the other graph, such that most triples are the same.
    #[default]
    Mapped,
    /// Any is the same as any other.
    Equal,
}

/// A query that must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// The name of its score, behind that of the check.
    pub name: String,
    /// An ASK query.
    pub query: String,
}

/// How conformity is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConformityMeasure {
    /// 1 or 0.
    #[default]
    Graph,
    /// The share of the nodes that shapes are about that have no violation.
    Node,
}
