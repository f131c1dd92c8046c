//! SparqlSyntaxFixing: repair a SPARQL query for Wikidata that has a syntax error (LLM-KG-Bench 3, Meyer et al.,
//! ESWC 2025; the older name of the class is SparqlSyntaxFixingListLcQuad).
//!
//! The repaired query is run and judged by its result, see [`super::query`] for the rules. A small graph replaces
//! Wikidata's endpoint: the case names or contains one, or it is generated from the case's reference ([`extract`]).
//! Values are compared as in the endpoint's JSON, so IRIs are written in full.
//!
//! Fields of a case: `uid`, `testSparql`, `refSparql`, `refResultSet`; optionally `errorMessage`, a graph as
//! `graphTurtle`, `graph` or `graphName`, `prefixes`, and the limits of the dialogue (`multishotLimit`,
//! `multishotSyntaxLimit`, `multishotResultLimit`).
//!
//! Placeholders of the first prompt: `{{testSparql}}`, the query to repair, and `{{errorMessage}}`, the case's
//! text or else this parser's message about that query.

use domain::PromptKind;
use rdf::{Dialect, PrefixTable};

use super::query::case_graph::{self, CaseGraph};
use super::query::{QueryCase, QuerySetting, ValueTexts, wikidata};
use crate::class::{AnswerForm, ClassSpec, Published, Repair};
use crate::exercise::{CaseError, CaseInput, Effort, EvaluationLimits, Exercise};
use crate::families::case_fields;
use crate::graphs::{ExerciseGraph, GraphLibrary};
use crate::wording::Fields;

mod extract;

/// Repair a SPARQL query.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    follow_ups: &[PromptKind::Syntax, PromptKind::EmptyResult],
    repair: Some(Repair { broken: "testSparql", repaired: "refSparql" }),
    published: Published {
        estimated_size: Some(2000),
        case_keys: &["entityLabelMapping", "errorMessage"],
        ..Published::NOTHING
    },
    ..ClassSpec::new(
        &[("SparqlSyntaxFixingList", &["5.0", "5.1.2"]), ("SparqlSyntaxFixingListLcQuad", &["5.0", "5.1.2"])],
        &["max", "combined"],
        AnswerForm::Query,
        |input, graphs, _| exercise(input, graphs),
    )
};

/// Reads a case.
fn exercise(input: &CaseInput<'_>, library: &GraphLibrary) -> Result<Box<dyn Exercise>, CaseError> {
    let graph = match case_graph::of_case(input.data, library)? {
        Some(graph) => graph,
        None => CaseGraph::Loaded(extract::from_reference(input.data)?),
    };
    let of_case = case_graph::prefixes_of_case(input.data)?;
    let setting = move |loaded: &ExerciseGraph| {
        let layers = [&PrefixTable::rdflib_defaults(), &loaded.prefixes, &wikidata::prefixes(), &of_case];
        QuerySetting {
            graph: loaded.graph.clone(),
            prefixes: PrefixTable::layered(&layers),
            dialect: Dialect::Wikidata,
            value_texts: ValueTexts::Raw,
        }
    };
    let case = QueryCase::read(input.data, graph, setting)?;
    let opening = opening(input, &case)?;
    Ok(Box::new(case.opened_with(opening)))
}

/// The fields of the first prompt. A recorded first prompt needs none.
fn opening(input: &CaseInput<'_>, case: &QueryCase) -> Result<Fields, CaseError> {
    let broken = case_fields::text(input.data, "testSparql")?;
    let mut fields = Fields::from([("testSparql".to_owned(), broken.to_owned())]);
    let given = case_fields::text(input.data, "errorMessage").map(str::to_owned);
    let message = match given {
        Ok(message) => Some(message),
        Err(_) => {
            case.prepare()?;
            case.complaint(broken, &Effort::full(EvaluationLimits::default()))
        }
    };
    match message {
        Some(message) => {
            fields.insert("errorMessage".into(), message);
        }
        None if input.first_prompt.is_some() => {}
        None => {
            return Err(CaseError::Field { field: "testSparql", expected: "query with a syntax error" });
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
