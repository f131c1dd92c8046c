//! The contract between a task class and the rest: an [`Exercise`] is one case, ready to be asked and judged.

use std::time::Duration;

use domain::{Infos, PromptKind, Scores};
use serde_json::{Map, Value};

use crate::class::UnknownClass;
use crate::wording::Fields;

/// One case of a task class with its parameters: everything expensive about it (parsed graphs, reference texts)
/// is done, judging an answer is a pure function.
pub trait Exercise: Send + Sync {
    /// Values for the placeholders of the first prompt that are made rather than stored, such as a graph
    /// serialised in an order drawn from `question_seed`. Empty for cases whose data says it all.
    fn opening(&self, question_seed: u64) -> Fields {
        let _ = question_seed;
        Fields::default()
    }

    /// How many answers a dialogue may have and how their scores are put together.
    fn shots(&self) -> Shots {
        Shots::Single
    }

    /// Does what was put off until answers are judged, see
    /// [`GraphLibraryBuilder::build_deferred`](crate::graphs::GraphLibraryBuilder::build_deferred). Who judges calls it
    /// first, where it can still be told that a graph is broken: judging would panic.
    ///
    /// # Errors
    /// What was put off cannot be done.
    fn prepare(&self) -> Result<(), CaseError> {
        Ok(())
    }

    /// What the judge's parser says against a query or document, where answers of the class are one and it refuses this
    /// one. Only [prepared](Exercise::prepare) exercises can tell.
    fn complaint(&self, text: &str, effort: &Effort) -> Option<String> {
        let _ = (text, effort);
        None
    }

    /// What one answer is worth and what the task would say to it. Judging looks at this answer alone; when to
    /// stop is [`crate::Dialogue`]'s business.
    fn judge(&self, answer: &str, effort: &Effort) -> Verdict;
}

/// The evaluation of one answer.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// Score names to numbers.
    pub scores: Scores,
    /// What explains them.
    pub infos: Infos,
    /// What the task would say next, if another answer is allowed.
    pub follow_up: Option<FollowUp>,
    /// Why the answer has no score, where it can have none: a judge's reply that fits nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<String>,
}

/// A prompt that an evaluation asks for.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FollowUp {
    pub kind: PromptKind,
    /// Values for its placeholders, such as the parser's message.
    pub fields: Fields,
}

/// Rounds of a dialogue and how their scores are put together.
#[derive(Clone, Debug, PartialEq)]
pub enum Shots {
    /// One prompt, one answer; the verdict's scores are the dialogue's.
    Single,
    /// Follow-ups until an answer can be read; the last verdict is the dialogue's.
    Last {
        /// Most answers of a dialogue.
        answers_max: usize,
    },
    /// Follow-ups while the evaluation asks for them.
    Multi {
        /// Most answers of a dialogue.
        answers_max: usize,
        /// A `syntax` follow-up is sent only while there are fewer answers than this.
        syntax_max: usize,
        /// An `empty-result` follow-up is sent only while there are fewer answers than this.
        result_max: usize,
        /// The score keys that are aggregated over the rounds (`mean`, `max`, `meanExt`), in their order.
        aggregated: &'static [&'static str],
    },
}

/// How hard to try. The limits are cooperative; what does not cooperate is ended from outside, and then judged again at
/// the next lower stage.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Effort {
    pub limits: EvaluationLimits,
    /// What may be done.
    pub stage: Stage,
}

impl Effort {
    /// Everything, within `limits`.
    pub fn full(limits: EvaluationLimits) -> Self {
        Self { limits, stage: Stage::Full }
    }
}

/// What an evaluation may do. An answer that hits a limit is scored as the nearest ordinary failure and carries
/// the limit's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Parse and execute.
    Full,
    /// A query is parsed and counts as having no result, because execution hit this limit.
    WithoutExecution(Limit),
    /// Query and document count as not parsable, because parsing hit this limit.
    WithoutParsing(Limit),
}

/// The limit that an answer hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Seconds of processor.
    CpuTime,
    /// Bytes of memory.
    Memory,
    /// Depth of brackets and groups.
    Nesting,
    /// Bytes of the answer.
    Size,
    /// The evaluating process died for another reason while it read the answer.
    Crash,
}

impl Stage {
    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::WithoutExecution(_) => "without-execution",
            Self::WithoutParsing(_) => "without-parsing",
        }
    }
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 5] = [Self::CpuTime, Self::Memory, Self::Nesting, Self::Size, Self::Crash];

    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CpuTime => "cpu-time",
            Self::Memory => "memory",
            Self::Nesting => "nesting",
            Self::Size => "size",
            Self::Crash => "crash",
        }
    }

    /// The text recorded beside the verdict.
    pub fn message(self) -> &'static str {
        match self {
            Self::CpuTime => "evaluation limit: CPU time",
            Self::Memory => "evaluation limit: memory",
            Self::Nesting => "evaluation limit: nesting depth",
            Self::Size => "evaluation limit: answer size",
            Self::Crash => "evaluation limit: the evaluator died on this answer",
        }
    }
}

/// Limits of one evaluation. They are configuration and part of the scorer version.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationLimits {
    /// Processor time of one query; beyond it the query counts as empty with `A time out occurred`. Files name it after
    /// the wall clock by which the published run measured; on an idle machine both are the same.
    #[serde(with = "seconds", rename = "query_wall")]
    pub query_time: Duration,
    /// Bytes of one answer that are looked at; a longer answer is scored as unparsable.
    pub answer_bytes_max: usize,
    /// Depth of brackets and groups in a document or query.
    pub nesting_max: usize,
    /// Rows of one query result.
    pub rows_max: usize,
}

impl Default for EvaluationLimits {
    fn default() -> Self {
        Self {
            query_time: Duration::from_secs(10),
            answer_bytes_max: 16 << 20,
            nesting_max: 256,
            rows_max: 1_000_000,
        }
    }
}

impl EvaluationLimits {
    /// The limits of the published run: 120 s per query.
    pub fn compat() -> Self {
        Self { query_time: Duration::from_secs(120), ..Self::default() }
    }
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Where a case comes from: a record of a result file, or a pack. Both use the field names of
/// `taskInfo.condensedTaskData` in result files.
#[derive(Clone, Copy, Debug)]
pub struct CaseInput<'a> {
    /// Class name, see [`crate::TaskClass::resolve`].
    pub class: &'a str,
    /// Version of the class.
    pub version: &'a str,
    /// Task parameters, such as `graphFormat`.
    pub parameters: &'a Map<String, Value>,
    /// The case.
    pub data: &'a Map<String, Value>,
    /// The recorded first prompt, for the few things that stand nowhere else.
    pub first_prompt: Option<&'a str>,
}

/// Ways of the published run, reproduced for imported material only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(from = "CompatFields")]
pub struct Compat {
    /// `rdfs:` and `xsd:` without their trailing `#` in the prefix table of three Text2Sparql classes.
    pub prefix_defect: bool,
    /// Queries are read and evaluated as rdflib does it, not as the standard says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rdflib: bool,
}

/// [`Compat`] as it is written. Packs that were imported before `rdflib` was a switch of its own mean it.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompatFields {
    prefix_defect: bool,
    rdflib: Option<bool>,
}

impl From<CompatFields> for Compat {
    fn from(fields: CompatFields) -> Self {
        let CompatFields { prefix_defect, rdflib } = fields;
        Self { prefix_defect, rdflib: rdflib.unwrap_or(prefix_defect) }
    }
}

impl Compat {
    /// Everything as in the published run.
    pub const PUBLISHED: Self = Self { prefix_defect: true, rdflib: true };

    /// Whose SPARQL queries are written in.
    pub fn dialect(self) -> rdf::Dialect {
        if self.rdflib { rdf::Dialect::Rdflib } else { rdf::Dialect::Standard }
    }
}

/// A case cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CaseError {
    /// The class or its version is unknown.
    #[error(transparent)]
    Class(#[from] UnknownClass),
    /// A field is missing or has the wrong type.
    #[error("the task data has no usable field `{field}` ({expected} expected)")]
    Field {
        field: &'static str,
        /// What should stand there.
        expected: &'static str,
    },
    /// A reference document of the case does not parse.
    #[error("`{field}` of the case does not parse: {message}")]
    Reference {
        field: &'static str,
        /// The parser's message.
        message: String,
    },
    /// A graph that the case refers to was not given.
    #[error("the case needs the graph `{name}`, which was not given (pass --graph {name}=FILE)")]
    MissingGraph { name: String },
    /// A graph that the case refers to cannot be read.
    #[error("the graph `{name}` cannot be read: {message}")]
    BadGraph {
        name: String,
        /// Why.
        message: String,
    },
}
