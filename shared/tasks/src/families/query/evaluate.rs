//! Judges one answer.

use domain::{Infos, Scores};
use rdf::{Dialect, PreparedQuery, QueryLimits, QuerySyntaxError, Solutions};
use serde_json::Value;

use super::extract::extract_query;
use super::{QueryCase, follow_up, result_set, suffixes};
use crate::compared::ComparedPart;
use crate::exercise::{Effort, EvaluationStage, Limit, Verdict};
use crate::families::brackets::check_query;
use crate::families::overlap::Overlap;
use crate::text::python::splitlines;
use crate::text::unified_diff::unified_diff;

/// `parseError` of a valid query.
const NO_PARSE_ERROR: &str = "The SPARQL query syntax is correct.";

/// `parseError` of an answer without a query, as in the published records (Python's message for a regular expression
/// applied to `None`).
const NO_QUERY_ERROR: &str = "expected string or bytes-like object";

/// Why a query cannot be executed.
#[derive(Debug, Default)]
pub(super) struct ParseFailure {
    /// The parser's message.
    pub(super) message: String,
    /// The text at which it stopped.
    unexpected: String,
    /// An unknown prefix.
    prefix: String,
}

impl ParseFailure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl From<QuerySyntaxError> for ParseFailure {
    fn from(error: QuerySyntaxError) -> Self {
        match error.limit {
            Some(finding) => Limit::from(&finding).into(),
            None => Self {
                message: error.message,
                unexpected: error.unexpected,
                prefix: error.unknown_prefix.unwrap_or_default(),
            },
        }
    }
}

impl From<Limit> for ParseFailure {
    fn from(limit: Limit) -> Self {
        Self::new(limit.message())
    }
}

impl QueryCase {
    /// The verdict on one answer.
    pub(super) fn verdict(&self, answer: &str, effort: &Effort) -> Verdict {
        let too_large = answer.len() > effort.limits.answer_bytes_max;
        let query = query_of(answer, effort);
        let parsed = if too_large { Err(Limit::Size.into()) } else { self.parse(query, effort) };

        let mut infos = Infos::new();
        infos.insert("testUid".into(), self.uid.as_str().into());
        infos.insert("sparql".into(), query.into());
        infos.insert("diffSparql".into(), self.difference(query).into());
        match parsed {
            Err(failure) => self.refuse(query, &failure, infos),
            Ok(prepared) => self.compare(query, &prepared, effort, infos),
        }
    }

    /// The queries and their results; that of the answer is the one of its verdict.
    pub(super) fn compared_queries(&self, answer: &str, infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let (expected, query) = (self.reference.lines.join("\n"), query_of(answer, effort));
        vec![
            ComparedPart::new("query", Some(expected), query.map(str::to_owned)).by_line(),
            result_set::compared(&self.reference.result, infos),
        ]
    }

    pub(super) fn parse(&self, query: Option<&str>, effort: &Effort) -> Result<PreparedQuery, ParseFailure> {
        let query = query.ok_or_else(|| ParseFailure::new(NO_QUERY_ERROR))?;
        if let EvaluationStage::WithoutParsing(limit) = effort.stage {
            return Err(limit.into());
        }
        check_query(query, &effort.limits)?;
        let setting = &self.ground().setting;
        Ok(rdf::prepare(query, &setting.prefixes, setting.dialect)?)
    }

    /// The difference from the reference query, for readers of the record.
    fn difference(&self, query: Option<&str>) -> String {
        let optimal: Vec<&str> = self.reference.lines.iter().map(String::as_str).collect();
        unified_diff(&optimal, &query.map(splitlines).unwrap_or_default())
    }

    fn refuse(&self, query: Option<&str>, failure: &ParseFailure, mut infos: Infos) -> Verdict {
        insert_parse_infos(&mut infos, failure, query.is_none());
        let mut scores = Scores::new();
        scores.insert("answerParse".into(), 0.0.into());
        scores.insert("combined".into(), 0.0.into());
        let follow_up = Some(follow_up::syntax(&failure.message, query));
        Verdict { scores, infos, follow_up, unscored: None }
    }

    fn compare(
        &self,
        query: Option<&str>,
        prepared: &PreparedQuery,
        effort: &Effort,
        mut infos: Infos,
    ) -> Verdict {
        insert_parse_infos(&mut infos, &ParseFailure::new(NO_PARSE_ERROR), false);
        self.insert_iri_infos(&mut infos, query.unwrap_or_default());

        let solutions = self.execute(prepared, effort).unwrap_or_else(|message| {
            infos.insert("EvaluationException".into(), message.into());
            Solutions::default()
        });
        infos.insert("answerResultLength".into(), solutions.rows.len().into());
        let setting = &self.ground().setting;
        let expected = match setting.dialect {
            Dialect::Rdflib => &result_set::expected_of(&solutions, &self.reference.result),
            Dialect::Standard | Dialect::Wikidata => &self.reference.result,
        };
        let values = setting.value_texts.set(solutions);
        infos.insert("answerSetSize".into(), values.len().into());
        infos.insert(result_set::SHOWN.into(), Value::Array(result_set::shown(&values)));

        let Overlap { precision, recall, f1 } = Overlap::of(&values, expected);
        let mut scores = Scores::new();
        scores.insert("answerParse".into(), 1.0.into());
        scores.insert("combined".into(), (0.2 + 0.8 * f1).into());
        scores.insert("f1measure".into(), f1.into());
        scores.insert("precision".into(), precision.into());
        scores.insert("recall".into(), recall.into());
        let follow_up = values.is_empty().then(|| follow_up::empty_result(query));
        Verdict { scores, infos, follow_up, unscored: None }
    }

    fn execute(&self, prepared: &PreparedQuery, effort: &Effort) -> Result<Solutions, String> {
        if let EvaluationStage::WithoutExecution(limit) = effort.stage {
            return Err(limit.message().to_owned());
        }
        let limits =
            QueryLimits { deadline: Some(effort.limits.query_time), rows_max: effort.limits.rows_max };
        prepared.execute(&self.ground().setting.graph, &limits).map_err(|error| error.to_string())
    }

    fn insert_iri_infos(&self, infos: &mut Infos, query: &str) {
        let ground = self.ground();
        let iris = rdf::query_iris(query, &ground.setting.prefixes);
        insert_overlap(infos, "sparqlIris", Overlap::of(&iris, &ground.reference_iris));
        let suffixes = suffixes(&iris);
        insert_overlap(infos, "sparqlIrisSuffix", Overlap::of(&suffixes, &ground.reference_suffixes));
    }
}

/// The query of an answer. One above the size limit is not searched for a query.
fn query_of<'a>(answer: &'a str, effort: &Effort) -> Option<&'a str> {
    if answer.len() > effort.limits.answer_bytes_max { None } else { extract_query(answer) }
}

fn insert_parse_infos(infos: &mut Infos, failure: &ParseFailure, empty: bool) {
    infos.insert("parseError".into(), failure.message.as_str().into());
    infos.insert("parseErrorPrefix".into(), failure.prefix.as_str().into());
    infos.insert("parseErrorUnexpected".into(), failure.unexpected.as_str().into());
    infos.insert("parseErrorEmpty".into(), empty.into());
    // False in every published record; kept for readers that expect the key.
    infos.insert("parseErrorSPARQL".into(), false.into());
}

fn insert_overlap(infos: &mut Infos, name: &str, overlap: Overlap) {
    infos.insert(format!("{name}Precision"), overlap.precision.into());
    infos.insert(format!("{name}Recall"), overlap.recall.into());
    infos.insert(format!("{name}F1measure"), overlap.f1.into());
}
