//! The task classes of LLM-KG-Bench, by the names that result files and configurations use.

use std::fmt;

/// A task class of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskClass {
    /// Find the shortest path between two persons of an organisational graph.
    RdfConnectionExplain,
    /// Find the person whom most persons know.
    RdfFriendCount,
    /// Repair an RDF document.
    RdfSyntaxFix,
    /// Turn a fact sheet into a graph.
    FactExtract,
    /// Generate a graph of persons of a given size.
    TurtleSampleGeneration,
    /// Repair a Turtle document in one answer.
    TurtleErrors,
    /// Answer a SPARQL query over a graph, line by line.
    Sparql2Answer,
    /// Answer a question over a graph, line by line.
    Text2Answer,
    /// Turn a question into a SPARQL query.
    Text2Sparql(Text2SparqlSet),
    /// Repair a SPARQL query.
    SparqlSyntaxFixing,
}

/// The data sets of Text2Sparql. They differ in prefix table, graph and (in the published run) a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Text2SparqlSet {
    /// The organisational graph with readable IRIs.
    Organizational,
    /// Its twin with numeric IRIs.
    OrgaNumerical,
    /// A supply-chain graph.
    CoypuMini,
    /// A large bestiary, shown in parts.
    Beastiary,
    /// Wikidata.
    LcQuad,
    /// Whatever the case describes by itself: prefixes and graph stand in its data.
    Generic,
}

/// Class names, in the order in which they are documented: name, class, versions whose scoring is known.
/// Names of the articles and names of older releases are aliases of one class.
const NAMES: &[(&str, TaskClass, &[&str])] = &[
    ("RdfConnectionExplainStatic", TaskClass::RdfConnectionExplain, &["3.2"]),
    ("TurtleConnectionExplainStatic", TaskClass::RdfConnectionExplain, &["1.0", "2.0"]),
    ("RdfFriendCount", TaskClass::RdfFriendCount, &["4.4"]),
    ("TurtleFriendCount", TaskClass::RdfFriendCount, &["2.0", "3.1"]),
    ("RdfSyntaxFixList", TaskClass::RdfSyntaxFix, &["0.3-testing", "0.3"]),
    ("FactExtractStatic", TaskClass::FactExtract, &["1.0", "1.1"]),
    ("TurtleSampleGeneration", TaskClass::TurtleSampleGeneration, &["1.0"]),
    ("SyntheticDatasetGeneration", TaskClass::TurtleSampleGeneration, &["1.0"]),
    ("TurtleErrorsStatic", TaskClass::TurtleErrors, &["2.0", "5.0"]),
    ("Sparql2AnswerList", TaskClass::Sparql2Answer, &["2.0", "2.0.2"]),
    ("Sparql2AnswerListOrganizational", TaskClass::Sparql2Answer, &["2.0", "2.0.2"]),
    ("Text2AnswerList", TaskClass::Text2Answer, &["2.0", "2.0.2"]),
    ("Text2AnswerListOrganizational", TaskClass::Text2Answer, &["2.0", "2.0.2"]),
    ("Text2SparqlList", TaskClass::Text2Sparql(Text2SparqlSet::Generic), &["3.1.2"]),
    (
        "Text2SparqlExecEvalListOrganizational",
        TaskClass::Text2Sparql(Text2SparqlSet::Organizational),
        &["3.1.2"],
    ),
    ("Text2SparqlExecEvalListOrgaNumerical", TaskClass::Text2Sparql(Text2SparqlSet::OrgaNumerical), &["4.0"]),
    ("Text2SparqlExecEvalListCoypuMini", TaskClass::Text2Sparql(Text2SparqlSet::CoypuMini), &["3.0"]),
    ("Text2SparqlExecEvalListBeastiary", TaskClass::Text2Sparql(Text2SparqlSet::Beastiary), &["2.4.2"]),
    ("Text2SparqlExecEvalListLcQuad", TaskClass::Text2Sparql(Text2SparqlSet::LcQuad), &["3.0"]),
    ("SparqlSyntaxFixingList", TaskClass::SparqlSyntaxFixing, &["5.0", "5.1.2"]),
    ("SparqlSyntaxFixingListLcQuad", TaskClass::SparqlSyntaxFixing, &["5.0", "5.1.2"]),
];

impl TaskClass {
    /// The class behind a name, if this version's scoring rules are known.
    pub fn resolve(name: &str, version: &str) -> Result<Self, UnknownClass> {
        let (_, class, versions) = NAMES
            .iter()
            .find(|(known, ..)| *known == name)
            .ok_or_else(|| UnknownClass::Name(name.to_owned()))?;
        if versions.contains(&version) {
            Ok(*class)
        } else {
            Err(UnknownClass::Version {
                name: name.to_owned(),
                version: version.to_owned(),
                known: versions.join(", "),
            })
        }
    }

    /// The class names that configurations may use, with the newest version of each.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        NAMES.iter().filter_map(|(name, _, versions)| Some((*name, *versions.last()?)))
    }

    /// The newest version of a class name.
    pub fn version_of(name: &str) -> Option<&'static str> {
        Self::names().find(|(known, _)| *known == name).map(|(_, version)| version)
    }

    /// The score that stands for a dialogue in tables, as the published plots choose it: a path into the scores.
    pub fn headline(self) -> &'static [&'static str] {
        match self {
            Self::RdfConnectionExplain => &["listTrimF1"],
            Self::RdfFriendCount => &["f1"],
            Self::RdfSyntaxFix | Self::Text2Sparql(_) | Self::SparqlSyntaxFixing => &["max", "combined"],
            Self::FactExtract => &["norm_f-measure"],
            Self::TurtleSampleGeneration => &["persons_relative_error"],
            Self::TurtleErrors => &["normAnswerF1Score"],
            Self::Sparql2Answer | Self::Text2Answer => &["combinedF1"],
        }
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
}
