//! What Text2Sparql and SparqlSyntaxFixing share: an answer contains a query, the query runs on a graph, and its values
//! are compared with a reference.
//!
//! The rules are those of LLM-KG-Bench 3 (Meyer et al., ESWC 2025):
//!
//! 1. The query is the first fenced code block with the word SELECT ([`extract`]).
//! 2. It may use undeclared prefixes of the task's table. A query that does not parse scores 0, and its follow-up is
//!    `syntax` ([`evaluate`]).
//! 3. The values of all cells of all rows form one set of texts ([`result_set`]), which is compared with the
//!    reference set of the case: `combined` is 0.2 for a query that parses plus 0.8 times F1.
//! 4. The follow-up to an empty set is `empty-result`, whatever the reason; any other set, right or wrong, ends the
//!    dialogue ([`follow_up`]).
//!
//! The IRIs in the answer's query are compared with those in the reference query; this explains scores and is not scored.
//!
//! Placeholders of the follow-ups: `syntax` has `{{message}}` (the parser's) and `{{query}}` (`None` without a
//! query), `empty-result` has `{{query}}`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use domain::Infos;
use rdf::{Dialect, PrefixTable, QueryGraph};
use serde_json::{Map, Value};

use crate::compared::ComparedPart;
use crate::exercise::{CaseError, Effort, Exercise, Shots, Verdict};
use crate::families::case_fields;
use crate::graphs::ExerciseGraph;
use crate::text::python::splitlines;
use crate::wording::Fields;

pub(crate) mod case_graph;
mod evaluate;
mod extract;
mod follow_up;
mod result_set;
pub(crate) mod wikidata;

use case_graph::CaseGraph;
pub(crate) use result_set::ValueTexts;

/// Answers of a dialogue if the case does not say.
const ANSWERS_MAX: usize = 3;

/// The score keys that are aggregated over the rounds.
const AGGREGATED: &[&str] = &["answerParse", "f1measure", "combined"];

/// A question with everything needed to judge answers.
pub(crate) struct QueryCase {
    uid: String,
    reference: Reference,
    ground: LazyLock<Result<Ground, CaseError>, Survey>,
    shots: Shots,
    /// Generated values of the first prompt.
    opening: Fields,
}

/// What depends on the graph of a case. Processes that only ask questions defer reading it.
struct Ground {
    setting: QuerySetting,
    /// The IRIs that the reference query mentions.
    reference_iris: BTreeSet<String>,
    /// Their last parts.
    reference_suffixes: BTreeSet<String>,
}

type Survey = Box<dyn FnOnce() -> Result<Ground, CaseError> + Send>;

/// The environment in which the queries of a case run.
pub(crate) struct QuerySetting {
    pub(crate) graph: QueryGraph,
    /// Prefixes that queries may use without declaring them.
    pub(crate) prefixes: PrefixTable,
    /// The rules by which queries are read.
    pub(crate) dialect: Dialect,
    /// How the values of a result are written.
    pub(crate) value_texts: ValueTexts,
}

/// The reference of a case, prepared once.
struct Reference {
    /// The lines of the reference query.
    lines: Vec<String>,
    /// The expected values as texts.
    result: BTreeSet<String>,
}

impl QueryCase {
    /// Reads the fields `uid`, `refSparql`, `refResultSet` and the optional limits `multishotLimit`,
    /// `multishotSyntaxLimit` and `multishotResultLimit`; `setting` is computed from the graph when that has been read.
    pub(crate) fn read(
        data: &Map<String, Value>,
        graph: CaseGraph,
        setting: impl FnOnce(&ExerciseGraph) -> QuerySetting + Send + 'static,
    ) -> Result<Self, CaseError> {
        let query = case_fields::text(data, "refSparql")?.to_owned();
        let reference = Reference {
            lines: splitlines(&query).into_iter().map(str::to_owned).collect(),
            result: case_fields::texts(data, "refResultSet")?.into_iter().collect(),
        };
        let answers_max = case_fields::count_or(data, "multishotLimit", ANSWERS_MAX)?;
        let deferred = graph.is_deferred();
        let survey: Survey = Box::new(move || {
            let setting = setting(&*graph.load()?);
            let reference_iris = rdf::query_iris(&query, &setting.prefixes);
            let reference_suffixes = suffixes(&reference_iris);
            Ok(Ground { setting, reference_iris, reference_suffixes })
        });
        let case = Self {
            uid: case_fields::text(data, "uid")?.to_owned(),
            reference,
            ground: LazyLock::new(survey),
            shots: Shots::Multi {
                answers_max,
                answers_max_syntax: case_fields::count_or(data, "multishotSyntaxLimit", answers_max)?,
                answers_max_empty_result: case_fields::count_or(data, "multishotResultLimit", answers_max)?,
                aggregated: AGGREGATED,
            },
            opening: Fields::new(),
        };
        if !deferred {
            case.prepare()?;
        }
        Ok(case)
    }

    /// The same case with generated values of the first prompt.
    pub(crate) fn opened_with(self, opening: Fields) -> Self {
        Self { opening, ..self }
    }

    /// What depends on the graph.
    ///
    /// # Panics
    /// The graph was deferred and cannot be read; call [`Exercise::prepare`] first.
    fn ground(&self) -> &Ground {
        match &*self.ground {
            Ok(ground) => ground,
            Err(error) => panic!("judged without being prepared: {error}"),
        }
    }
}

impl Exercise for QueryCase {
    fn opening(&self, _question_seed: u64) -> Fields {
        self.opening.clone()
    }

    fn shots(&self) -> Shots {
        self.shots.clone()
    }

    fn prepare(&self) -> Result<(), CaseError> {
        self.ground.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// The graph, whose prefixes the query may use, must have been read.
    fn complaint(&self, query: &str, effort: &Effort) -> Option<String> {
        self.parse(Some(query), effort).err().map(|failure| failure.message)
    }

    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        self.verdict(answer, effort)
    }

    fn compared(&self, answer: &str, infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        self.compared_queries(answer, infos, effort)
    }
}

fn suffixes(iris: &BTreeSet<String>) -> BTreeSet<String> {
    iris.iter().map(|iri| rdf::iri_suffix(iri).to_owned()).collect()
}
