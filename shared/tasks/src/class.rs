//! What a task class is. Each class says it of itself, in the folder of its family; [`crate::families`] registers them.

use std::fmt;
use std::ops::Deref;

use domain::{Ask, PromptKind};

use crate::exercise::{CaseError, CaseInput, Compat, Exercise};
use crate::families;
use crate::graphs::GraphLibrary;

/// What is the same for all tasks of a class, and what other parts of the program need to know of it. Whoever adds a
/// class is told by the compiler what is missing.
pub struct ClassSpec {
    /// Names in result files and configurations, in the order in which they are documented, each with the versions whose
    /// scoring is known, the newest last. Names of the articles and names of older releases are aliases of one class.
    pub names: &'static [(&'static str, &'static [&'static str])],
    /// The score that stands for a dialogue in tables: a path into the scores. Empty for a class that gives no score.
    pub headline: &'static [&'static str],
    /// The headline of a perfect answer and of one that cannot be read at all.
    pub marks: Marks,
    /// What is asked of a model. Of what is no conversation, the prompt is a JSON list of texts, and the answer a JSON object with
    /// what the verdict needs.
    pub asks: Ask,
    /// What an answer is expected to be.
    pub answers: AnswerForm,
    /// The follow-ups that it can send. A class that sends some is expected to take two answers.
    pub follow_ups: &'static [PromptKind],
    /// Where a case has what is broken and its repair, for classes that ask for repairs.
    pub repair: Option<Repair>,
    /// Whether its answers are replies of judges. What such a reply says follows from class and parameters alone, so that
    /// one evaluation process reads those of all cases; and a dialogue that is asked again draws its reply with another
    /// seed. Where answers are what is measured, the same key always asks the same thing.
    pub judges: bool,
    /// What only LLM-KG-Bench's classes have.
    pub published: Published,
    /// Reads a case: parses everything that it holds, so that a broken one is found before it is asked.
    pub exercise: ReadCase,
}

/// Reads a case of a class.
pub type ReadCase = fn(&CaseInput<'_>, &GraphLibrary, Compat) -> Result<Box<dyn Exercise>, CaseError>;

/// The headline at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marks {
    /// Of a perfect answer.
    pub full: f64,
    /// Of one that cannot be read.
    pub least: f64,
}

impl Marks {
    /// From nothing to all.
    pub const UNIT: Self = Self { full: 1.0, least: 0.0 };
}

/// What an answer is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// A SPARQL query.
    Query,
    /// An RDF document.
    Document,
    /// Words, names, numbers.
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
    /// The size that they state beforehand, in characters.
    pub estimated_size: Option<u64>,
    /// Scores that need a reference which was never published: they cannot be compared.
    pub incomparable: &'static [&'static str],
}

impl Published {
    /// Of a class that is none of LLM-KG-Bench's, or of which its files say nothing more.
    pub const NOTHING: Self = Self { estimated_size: None, incomparable: &[] };
}

/// A registered task class.
#[derive(Clone, Copy)]
pub struct TaskClass(&'static ClassSpec);

impl TaskClass {
    /// The class behind a name, if this version's scoring rules are known.
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

    /// The name that it is known by first.
    pub fn name(self) -> &'static str {
        self.0.names.first().map_or("", |(name, _)| name)
    }

    /// Answers that a dialogue is expected to take, for the order of work.
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

/// The class or its version is not one whose scoring rules are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownClass {
    /// No class has this name.
    Name(String),
    /// The class exists, this version of it is not known.
    Version {
        /// The class.
        name: String,
        /// The version met.
        version: String,
        /// The versions known, comma-separated.
        known: String,
    },
}

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "unknown task class `{name}`"),
            Self::Version { name, version, known } => {
                write!(f, "unknown version `{version}` of task class `{name}` (known: {known})")
            }
        }
    }
}

impl std::error::Error for UnknownClass {}

#[cfg(test)]
mod tests {
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
