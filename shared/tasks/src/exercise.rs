//! The interface of task classes: an [`Exercise`] is one case, ready to be asked and judged.

use std::any::Any;
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use domain::{Infos, PromptKind, Scores};
use rdf::ScanFinding;
use serde_json::{Map, Value};

use crate::compared::ComparedPart;
use crate::wording::Fields;

/// One case of a task class with its parameters. Everything expensive (parsing graphs and reference texts) is done
/// beforehand; judging an answer is a pure function.
pub trait Exercise: Send + Sync {
    /// Values for placeholders of the first prompt that are generated rather than stored, such as a graph
    /// serialised in an order drawn from `question_seed`.
    fn opening(&self, question_seed: u64) -> Fields {
        let _ = question_seed;
        Fields::default()
    }

    /// The maximum number of answers of a dialogue, and how their scores are combined.
    fn shots(&self) -> Shots {
        Shots::Single
    }

    /// Loads deferred graphs, see
    /// [`GraphLibraryBuilder::build_deferred`](crate::graphs::GraphLibraryBuilder::build_deferred). Call it before
    /// `judge`, which panics if a graph cannot be read.
    ///
    /// # Errors
    /// A deferred graph cannot be read.
    fn prepare(&self) -> Result<(), CaseError> {
        Ok(())
    }

    /// The parser's message if it refuses a query or document, for classes whose answers are one. Only for
    /// [prepared](Exercise::prepare) exercises.
    fn complaint(&self, text: &str, effort: &Effort) -> Option<String> {
        let _ = (text, effort);
        None
    }

    /// The scores of one answer and the follow-up to it. A verdict depends on this answer only; [`crate::Dialogue`] decides
    /// when to stop.
    fn judge(&self, answer: &str, effort: &Effort) -> Verdict;

    /// What the case expects and what `judge` extracts from an answer, part by part, for people who read a dialogue.
    /// Empty where answers are compared with nothing. No query is run: `infos`, those of the verdict on the answer,
    /// have its result. The exercise need not be [prepared](Exercise::prepare).
    fn compared(&self, answer: &str, infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let _ = (answer, infos, effort);
        Vec::new()
    }
}

/// The evaluation of one answer.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// Score names to numbers.
    pub scores: Scores,
    /// Explanations of the scores.
    pub infos: Infos,
    /// The next prompt, if another answer is allowed.
    pub follow_up: Option<FollowUp>,
    /// Why the answer cannot be scored: a judge's reply that matches none of the choices.
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

/// The rounds of a dialogue, and how their scores are combined.
#[derive(Clone, Debug, PartialEq)]
pub enum Shots {
    /// One prompt, one answer; the verdict's scores are the dialogue's.
    Single,
    /// Follow-ups until an answer is readable; the scores are those of the last verdict.
    Last {
        /// Most answers of a dialogue.
        answers_max: usize,
    },
    /// Follow-ups as long as verdicts have one.
    Multi {
        /// Most answers of a dialogue.
        answers_max: usize,
        /// No `syntax` follow-up is sent after this many answers.
        answers_max_syntax: usize,
        /// No `empty-result` follow-up is sent after this many answers.
        answers_max_empty_result: usize,
        /// The score keys that are aggregated over the rounds (`mean`, `max`, `meanExt`), in their order.
        aggregated: &'static [&'static str],
    },
}

impl Shots {
    /// Follow-ups of every kind up to so many answers.
    pub(crate) fn up_to(answers_max: usize, aggregated: &'static [&'static str]) -> Self {
        let (answers_max_syntax, answers_max_empty_result) = (answers_max, answers_max);
        Self::Multi { answers_max, answers_max_syntax, answers_max_empty_result, aggregated }
    }
}

/// The effort of an evaluation. Limits are cooperative; an evaluation that exceeds them is killed from outside, and the
/// answer is judged again at the next lower stage.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Effort {
    pub limits: EvaluationLimits,
    pub stage: EvaluationStage,
}

impl Effort {
    /// Full effort within `limits`.
    pub fn full(limits: EvaluationLimits) -> Self {
        Self { limits, stage: EvaluationStage::Full }
    }
}

/// How far an evaluation goes. An answer that hits a limit is scored as the nearest ordinary failure and carries
/// the limit's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationStage {
    /// Parse and execute.
    Full,
    /// Parse only: a query counts as having an empty result, because execution hit this limit.
    WithoutExecution(Limit),
    /// Do not parse: queries and documents count as not parsable, because parsing hit this limit.
    WithoutParsing(Limit),
}

domain::named! {
    /// The limit that an answer hit.
    pub enum Limit {
        /// Processor time.
        CpuTime = "cpu-time",
        /// Memory.
        Memory = "memory",
        /// Nesting of brackets and groups.
        Nesting = "nesting",
        /// Size of the answer.
        Size = "size",
        /// The evaluation process died for another reason while judging the answer.
        Crash = "crash",
    }
}

impl EvaluationStage {
    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::WithoutExecution(_) => "without-execution",
            Self::WithoutParsing(_) => "without-parsing",
        }
    }
}

impl From<&ScanFinding> for Limit {
    fn from(finding: &ScanFinding) -> Self {
        match finding {
            ScanFinding::TooLarge { .. } => Self::Size,
            _ => Self::Nesting,
        }
    }
}

impl Limit {
    /// The text in the infos.
    pub fn message(self) -> &'static str {
        match self {
            Self::CpuTime => "evaluation limit: CPU time",
            Self::Memory => "evaluation limit: memory",
            Self::Nesting => "evaluation limit: nesting depth",
            Self::Size => "evaluation limit: answer size",
            Self::Crash => "evaluation limit: the evaluator died on this answer",
        }
    }

    /// The limit that the infos of an outcome name, in any of their texts.
    pub fn in_infos(infos: &Map<String, Value>) -> Option<Self> {
        fn within(value: &Value) -> Option<Limit> {
            match value {
                Value::String(text) => Limit::ALL.into_iter().find(|limit| limit.message() == text),
                Value::Array(items) => items.iter().find_map(within),
                Value::Object(fields) => fields.values().find_map(within),
                Value::Null | Value::Bool(_) | Value::Number(_) => None,
            }
        }
        infos.values().find_map(within)
    }
}

/// Limits of one evaluation. They are configuration and part of the scorer version.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationLimits {
    /// Processor time of one query; after it, the result counts as empty, with the error `A time out occurred`. Its name in
    /// files is from the published run, which measured wall-clock time; on an idle machine both are the same.
    #[serde(with = "seconds", rename = "query_wall")]
    pub query_time: Duration,
    /// Maximum size of an answer, in bytes; a longer one is scored as not parsable.
    pub answer_bytes_max: usize,
    /// Maximum nesting of brackets and groups in a document or query.
    pub nesting_max: usize,
    /// Maximum number of rows of a query result.
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

/// A case as read from a record of a result file or from a pack. Both use the field names of
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
    /// The recorded first prompt, for the few data that are found nowhere else.
    pub first_prompt: Option<&'a str>,
    /// What the class reads of the parameters, once for all cases of the task.
    pub once: &'a ReadOnce,
}

/// What a class keeps of the parameters of a task, so that thousands of cases share it.
#[derive(Debug, Default)]
pub struct ReadOnce(OnceCell<Arc<dyn Any + Send + Sync>>);

impl ReadOnce {
    /// What was read for an earlier case of the task, or what `read` gives.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn get_or_read<T: Any + Send + Sync>(
        &self,
        read: impl FnOnce() -> Result<T, CaseError>,
    ) -> Result<Arc<T>, CaseError> {
        let kept = self.0.get().cloned().and_then(|kept| kept.downcast().ok());
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let read = Arc::new(read()?);
        // A class keeps one thing; a second one would only not be kept.
        let _ = self.0.set(read.clone());
        Ok(read)
    }
}

/// Properties of the published run, reproduced for imported material only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compat {
    /// Bind `rdfs:` and `xsd:` without the trailing `#` in the prefix table of three Text2Sparql classes.
    pub prefix_defect: bool,
    /// Read and evaluate queries as rdflib does, not by the standard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rdflib: bool,
}

impl Compat {
    /// Everything as in the published run.
    pub const PUBLISHED: Self = Self { prefix_defect: true, rdflib: true };

    /// The rules by which queries are read.
    pub fn dialect(self) -> rdf::Dialect {
        if self.rdflib { rdf::Dialect::Rdflib } else { rdf::Dialect::Standard }
    }
}

/// The scoring rules of a class or version are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownClass {
    /// No class has this name.
    #[error("unknown task class `{0}`")]
    Name(String),
    /// The class exists, but not in this version.
    #[error("unknown version `{version}` of task class `{name}` (known: {known})")]
    Version {
        name: String,
        version: String,
        /// The known versions, separated by commas.
        known: String,
    },
}

/// Why a case cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CaseError {
    /// The class or its version is unknown.
    #[error(transparent)]
    Class(#[from] UnknownClass),
    /// A field is missing or has the wrong type.
    #[error("the task data has no usable field `{field}` ({expected} expected)")]
    Field {
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// A reference document of the case does not parse.
    #[error("`{field}` of the case does not parse: {message}")]
    Reference {
        field: &'static str,
        /// The parser's message.
        message: String,
    },
    /// A graph that the case refers to is missing.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_limit_is_found_wherever_the_infos_name_it() {
        let of = |infos: Value| Limit::in_infos(infos.as_object().unwrap());
        assert_eq!(of(json!({ "parseError": Limit::Nesting.message() })), Some(Limit::Nesting));
        assert_eq!(of(json!({ "0": { "errors": ["a", Limit::Size.message()] } })), Some(Limit::Size));
        assert_eq!(of(json!({ "parseError": "evaluation limit: patience", "rows": 3 })), None);
    }
}
