//! One folder per task family. Each declares its classes as [`ClassSpec`], reads their cases and judges answers by the
//! rules of its paper. A family is registered by one line in `FAMILIES`; `docs/adding-a-task.md` says what else it
//! needs.

use std::fmt;
use std::ops::Deref;

use crate::class::ClassSpec;
use crate::exercise::{CaseError, CaseInput, Compat, Exercise, UnknownClass};
use crate::graphs::GraphLibrary;

pub mod answer_list;
pub mod connection_explain;
pub mod declared;
pub mod entity_overview;
pub mod fact_extract;
pub mod friend_count;
pub mod judge_choice;
pub mod judge_pair;
pub mod judge_text;
pub mod rdf_syntax_fix;
pub mod sparql_syntax_fixing;
pub mod text2sparql;
pub mod turtle_errors;
pub mod turtle_sample;

mod brackets;
mod case_fields;
mod first_word;
mod overlap;
mod query;
mod rdflib_layout;
mod readable_turtle;
mod seeded;

/// Every class, one line for each family.
const FAMILIES: &[&[ClassSpec]] = &[
    &[connection_explain::CLASS],
    &[friend_count::CLASS],
    &[rdf_syntax_fix::CLASS],
    &[fact_extract::CLASS],
    &[turtle_sample::CLASS],
    &[turtle_errors::CLASS],
    &answer_list::CLASSES,
    &text2sparql::CLASSES,
    &[sparql_syntax_fixing::CLASS],
    &[entity_overview::CLASS],
    &[judge_choice::CLASS],
    &[judge_text::CLASS],
    &judge_pair::CLASSES,
    &declared::CLASSES,
];

/// All classes.
pub fn classes() -> impl Iterator<Item = &'static ClassSpec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// A registered task class.
#[derive(Clone, Copy)]
pub struct TaskClass(&'static ClassSpec);

impl TaskClass {
    /// The class of a name, if the scoring rules of this version are known.
    pub fn resolve(name: &str, version: &str) -> Result<Self, UnknownClass> {
        for spec in classes() {
            let Some((_, versions)) = spec.names.iter().find(|(known, _)| *known == name) else { continue };
            return if versions.contains(&version) {
                Ok(Self(spec))
            } else {
                Err(UnknownClass::Version {
                    name: name.to_owned(),
                    version: version.to_owned(),
                    known: versions.join(", "),
                })
            };
        }
        Err(UnknownClass::Name(name.to_owned()))
    }

    /// The newest version of a class name.
    pub fn version_of(name: &str) -> Option<&'static str> {
        let mut names = classes().flat_map(|spec| spec.names);
        names.find(|(known, _)| *known == name).and_then(|(_, versions)| versions.last().copied())
    }

    /// Its first name.
    pub fn name(self) -> &'static str {
        self.0.names.first().map_or("", |(name, _)| name)
    }

    /// Expected number of answers of a dialogue, for ordering the work.
    pub fn answers_expected(self) -> usize {
        if self.0.follow_ups.is_empty() { 1 } else { 2 }
    }
}

impl Deref for TaskClass {
    type Target = ClassSpec;

    fn deref(&self) -> &ClassSpec {
        self.0
    }
}

impl PartialEq for TaskClass {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for TaskClass {}

impl fmt::Debug for TaskClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The exercise of a case. It parses everything in the case, so that a broken one is found before any model is asked.
pub fn exercise(
    input: &CaseInput<'_>,
    graphs: &GraphLibrary,
    compat: Compat,
) -> Result<Box<dyn Exercise>, CaseError> {
    (TaskClass::resolve(input.class, input.version)?.exercise)(input, graphs, compat)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::exercise::{Effort, EvaluationLimits, ReadOnce, Verdict};

    #[test]
    fn aliases_share_a_class_and_unknown_versions_are_named() {
        assert_eq!(
            TaskClass::resolve("SyntheticDatasetGeneration", "1.0"),
            TaskClass::resolve("TurtleSampleGeneration", "1.0")
        );
        let error = TaskClass::resolve("RdfFriendCount", "9.9").unwrap_err().to_string();
        assert!(error.contains("9.9") && error.contains("4.4"), "{error}");
        assert_eq!(TaskClass::resolve("Nonsense", "1"), Err(UnknownClass::Name("Nonsense".into())));
    }

    #[test]
    fn the_headline_is_found_where_the_class_has_it() {
        let scores = |value: Value| value.as_object().cloned().unwrap();
        let class = |name, version| TaskClass::resolve(name, version).unwrap();
        let (count, fix) = (class("RdfFriendCount", "4.4"), class("RdfSyntaxFixList", "0.3"));
        assert_eq!(count.headline_of(&scores(json!({"f1": 0.25}))), Some(0.25));
        let nested = scores(json!({"max": {"combined": 0.75}}));
        assert_eq!(fix.headline_of(&nested), Some(0.75));
        assert_eq!(count.headline_of(&nested), None, "missing, not zero");
    }

    #[test]
    fn a_score_outside_its_range_is_named() {
        let check = |name: &str, scores: Value| {
            let class = TaskClass::resolve(name, TaskClass::version_of(name).unwrap()).unwrap();
            class.check(scores.as_object().unwrap()).map_err(|error| error.to_string())
        };
        let queries = "Text2SparqlExecEvalListBeastiary";
        assert_eq!(check(queries, json!({"0": {"combined": 1.0}, "max": {"combined": 0.0}})), Ok(()));
        assert_eq!(
            check(queries, json!({"0": {"combined": 1e6}, "max": {"combined": 1.0}})),
            Err("score `0.combined` is 1000000, and lies outside 0 to 1".into())
        );
        assert!(check(queries, json!({"max": {"combined": -0.1}})).is_err());
        assert_eq!(check("TurtleSampleGeneration", json!({"persons_relative_error": 3.5})), Ok(()));
        assert!(check("TurtleSampleGeneration", json!({"persons_relative_error": -1.5})).is_err());
        assert_eq!(check("TurtleErrorsStatic", json!({"diffRatio": -666.0})), Ok(()));
    }

    #[test]
    fn every_name_belongs_to_one_class_and_has_a_version() {
        let mut names: Vec<&str> = Vec::new();
        for spec in classes() {
            assert!(!spec.names.is_empty());
            for (name, versions) in spec.names {
                assert!(!versions.is_empty() && !names.contains(name), "{name}");
                names.push(name);
            }
        }
    }

    /// A case, to which the answers of the next lines belong.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CaseRow {
        class: String,
        version: String,
        parameters: Map<String, Value>,
        data: Map<String, Value>,
        /// `published`, with the defects of the published classes.
        compat: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(untagged, deny_unknown_fields)]
    enum Row {
        Case { case: CaseRow },
        Answer { about: String, answer: String, verdict: Verdict },
    }

    fn open(case: &CaseRow) -> Box<dyn Exercise> {
        let CaseRow { class, version, parameters, data, compat } = case;
        let once = ReadOnce::default();
        let input = CaseInput { class, version, parameters, data, first_prompt: None, once: &once };
        let compat = compat.as_ref().map_or(Compat::default(), |_| Compat::PUBLISHED);
        exercise(&input, &GraphLibrary::default(), compat).unwrap_or_else(|error| panic!("{class}: {error}"))
    }

    /// Cases with answers and the verdicts on them, a row each in `verdicts.jsonl`: every score, every explanation and the next
    /// prompt, in their order.
    #[test]
    fn every_answer_has_the_verdict_that_its_row_says() {
        let (mut opened, mut wrong) = (None, Vec::new());
        let effort = Effort::full(EvaluationLimits::default());
        for line in include_str!("verdicts.jsonl").lines() {
            match serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")) {
                Row::Case { case } => opened = Some(open(&case)),
                Row::Answer { about, answer, verdict } => {
                    let found =
                        opened.as_ref().expect("a case stands before its answers").judge(&answer, &effort);
                    let [found, verdict] =
                        [found, verdict].map(|verdict| serde_json::to_string(&verdict).unwrap());
                    wrong
                        .extend((found != verdict).then(|| format!("{about}: {answer}\n{found}\n{verdict}")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
