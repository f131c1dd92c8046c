//! Task classes: each declares a [`ClassSpec`] in the folder of its family, and [`crate::families`] registers it.

use std::fmt;
use std::ops::Deref;

use domain::{Ask, PromptKind, Scores};

use crate::exercise::{CaseError, CaseInput, Compat, Exercise};
use crate::families;
use crate::graphs::GraphLibrary;

/// What all tasks of a class share, and what other parts of the program need to know about it. What a class must say is asked
/// for by [`ClassSpec::new`]; what few classes say is set where it differs.
pub struct ClassSpec {
    /// Names in result files and configurations, in documentation order, each with the versions whose scoring rules are
    /// known, the newest last. Names in papers and names of older releases are aliases of one class.
    pub names: &'static [(&'static str, &'static [&'static str])],
    /// The score that represents a dialogue in tables: a path into the scores. Empty for a class without scores.
    pub headline: &'static [&'static str],
    /// The headline of a perfect answer and of an unreadable one.
    pub marks: Marks,
    /// What is asked of a model. Of what is no conversation, the prompt is a JSON list of texts, and the answer a JSON
    /// object with what the verdict needs.
    pub asks: Ask,
    /// What an answer is expected to be.
    pub answers: AnswerForm,
    /// The follow-ups that it can send. Dialogues of a class with follow-ups are expected to take two answers.
    pub follow_ups: &'static [PromptKind],
    /// The fields of a case that hold the broken text and its repair, for classes that ask for repairs.
    pub repair: Option<Repair>,
    /// Whether its answers are replies of judges. How a reply is read depends only on class and parameters, so one
    /// evaluation process reads the replies to all cases; and a dialogue that is retried uses another sampling seed. In
    /// all other classes the answers are what is measured, and the same key always asks the same question.
    pub judges: bool,
    /// What only the classes of LLM-KG-Bench have.
    pub published: Published,
    /// Reads a case. It parses everything in the case, so that a broken one is found before any model is asked.
    pub exercise: ReadCase,
}

impl ClassSpec {
    /// A class of questions to chat models, with one answer that is worth 0 to 1.
    pub const fn new(
        names: &'static [(&'static str, &'static [&'static str])],
        headline: &'static [&'static str],
        answers: AnswerForm,
        exercise: ReadCase,
    ) -> Self {
        Self {
            names,
            headline,
            marks: Marks::UNIT,
            asks: Ask::Chat,
            answers,
            follow_ups: &[],
            repair: None,
            judges: false,
            published: Published::NOTHING,
            exercise,
        }
    }

    /// The headline of a dialogue of this class; `None` where its scores have none.
    pub fn headline_of(&self, scores: &Scores) -> Option<f64> {
        let (first, rest) = self.headline.split_first()?;
        rest.iter().try_fold(scores.get(*first)?, |value, key| value.get(key))?.as_f64()
    }
}

/// Reads a case of a class.
pub type ReadCase = fn(&CaseInput<'_>, &GraphLibrary, Compat) -> Result<Box<dyn Exercise>, CaseError>;

/// The range of the headline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marks {
    /// Of a perfect answer.
    pub full: f64,
    /// Of an unreadable one.
    pub least: f64,
}

impl Marks {
    /// 0 to 1.
    pub const UNIT: Self = Self { full: 1.0, least: 0.0 };
}

/// The form of an expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// A SPARQL query.
    Query,
    /// An RDF document.
    Document,
    /// Anything else: words, names, numbers.
    Text,
}

/// The fields of a case that ask for a repair.
#[derive(Clone, Copy, Debug)]
pub struct Repair {
    pub broken: &'static str,
    pub repaired: &'static str,
}

/// What published result files say of a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Published {
    /// The estimated size that they state, in characters.
    pub estimated_size: Option<u64>,
    /// Scores that need a reference which was never published: they cannot be compared.
    pub incomparable: &'static [&'static str],
}

impl Published {
    /// For a class that is not from LLM-KG-Bench, or about which its files say nothing more.
    pub const NOTHING: Self = Self { estimated_size: None, incomparable: &[] };
}

/// A registered task class.
#[derive(Clone, Copy)]
pub struct TaskClass(&'static ClassSpec);

impl TaskClass {
    /// The class of a name, if the scoring rules of this version are known.
    pub fn resolve(name: &str, version: &str) -> Result<Self, UnknownClass> {
        for spec in families::classes() {
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
        let mut names = families::classes().flat_map(|spec| spec.names);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let scores = |value: serde_json::Value| value.as_object().cloned().unwrap();
        let class = |name, version| TaskClass::resolve(name, version).unwrap();
        let (count, fix) = (class("RdfFriendCount", "4.4"), class("RdfSyntaxFixList", "0.3"));
        assert_eq!(count.headline_of(&scores(json!({"f1": 0.25}))), Some(0.25));
        let nested = scores(json!({"max": {"combined": 0.75}}));
        assert_eq!(fix.headline_of(&nested), Some(0.75));
        assert_eq!(count.headline_of(&nested), None, "missing, not zero");
    }

    #[test]
    fn every_name_belongs_to_one_class_and_has_a_version() {
        let mut names: Vec<&str> = Vec::new();
        for spec in families::classes() {
            assert!(!spec.names.is_empty());
            for (name, versions) in spec.names {
                assert!(!versions.is_empty() && !names.contains(name), "{name}");
                names.push(name);
            }
        }
    }
}
