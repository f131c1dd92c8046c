//! Replaces the part of Wikidata that a reference query reads.
//!
//! The published cases share one question: the value of a property of an item, qualified by a point in time of a
//! given year. The published run asked Wikidata's endpoint. The answer depends on the one statement of that
//! year; the item's other statements only need other values and other years. Entity, properties, year and value are all
//! in the case's reference query and reference result, so the graph is generated from these.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::exercise::CaseError;
use crate::families::case_fields;
use crate::families::query::case_graph;
use crate::graphs::ExerciseGraph;

/// Number of statements of other years, as many as Wikidata had when the cases were created.
const OTHER_STATEMENTS: u32 = 7;

/// What the reference query asks for.
#[derive(Debug, PartialEq, Eq)]
struct Question<'a> {
    /// `Q…`
    item: &'a str,
    /// `P…` of the value.
    property: &'a str,
    /// `P…` of the point in time.
    qualifier: &'a str,
    year: u32,
}

/// The graph of a case whose reference has the published shape.
pub(super) fn from_reference(data: &Map<String, Value>) -> Result<Arc<ExerciseGraph>, CaseError> {
    const SHAPE: CaseError = CaseError::Field {
        field: "graphTurtle",
        expected: "text, unless the reference asks for one qualified number of a Wikidata item",
    };
    let question = Question::of(case_fields::text(data, "refSparql")?).ok_or(SHAPE)?;
    let result = case_fields::texts(data, "refResultSet")?;
    let [value] = result.as_slice() else { return Err(SHAPE) };
    let document = document(&question, value.parse().map_err(|_| SHAPE)?);
    case_graph::parse("refSparql", &document)
}

impl<'a> Question<'a> {
    fn of(query: &'a str) -> Option<Self> {
        // Names and numbers of the query, with the prefix in front of each name.
        let words: Vec<&str> =
            query.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').filter(|w| !w.is_empty()).collect();
        let local = |prefix: &str| words.iter().find_map(|word| word.strip_prefix(prefix));
        let year = words.iter().find(|word| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit()))?;
        Some(Self {
            item: local("wd:")?,
            property: local("p:")?,
            qualifier: local("pq:")?,
            year: year.parse().ok()?,
        })
    }
}

/// Before the names of statements. Queries have no prefix for it.
const STATEMENT: &str = "http://www.wikidata.org/entity/statement/";

fn document(question: &Question<'_>, value: u64) -> String {
    let Question { item, property, qualifier, year } = question;
    let mut turtle = String::from(
        "@prefix wd: <http://www.wikidata.org/entity/> .\n\
         @prefix wdt: <http://www.wikidata.org/prop/direct/> .\n\
         @prefix p: <http://www.wikidata.org/prop/> .\n\
         @prefix ps: <http://www.wikidata.org/prop/statement/> .\n\
         @prefix pq: <http://www.wikidata.org/prop/qualifier/> .\n\
         @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n",
    );
    for age in 0..=OTHER_STATEMENTS {
        let (year, value) = (year.saturating_sub(age), value.saturating_add(1000 * u64::from(age)));
        // Writing to a string cannot fail.
        let _ = writeln!(
            turtle,
            "wd:{item} p:{property} <{STATEMENT}{item}-{year}> .\n\
             <{STATEMENT}{item}-{year}> ps:{property} \"{value}\"^^xsd:decimal ;\n  \
             pq:{qualifier} \"{year:04}-01-01T00:00:00Z\"^^xsd:dateTime ."
        );
        if age == OTHER_STATEMENTS {
            let _ = writeln!(turtle, "wd:{item} wdt:{property} \"{value}\"^^xsd:decimal .");
        }
    }
    turtle
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HEIGHT: &str = "SELECT ?h WHERE { wd:Q17 p:P2048 ?st . ?st ps:P2048 ?h ; pq:P585 ?t \
                          FILTER(contains(YEAR(?t), '1987')) }";

    #[test]
    fn the_question_is_read_from_the_reference_query() {
        assert_eq!(
            Question::of(HEIGHT),
            Some(Question { item: "Q17", property: "P2048", qualifier: "P585", year: 1987 })
        );
        assert_eq!(Question::of("SELECT ?s { ?s ?p ?o }"), None);
    }

    #[test]
    fn one_statement_holds_the_reference_and_all_others_differ() {
        let document = document(&Question::of(HEIGHT).unwrap(), 324);
        assert_eq!(document.matches("\"324\"").count(), 1);
        assert_eq!(document.matches("\"1987-").count(), 1);
        assert_eq!(document.matches(" ps:P2048 ").count(), 8);
        assert_eq!(document.matches(" wdt:P2048 ").count(), 1);
        assert!(!document.contains("@prefix s:"), "the endpoint has no such prefix");
    }

    #[test]
    fn references_of_another_shape_need_a_graph_of_their_own() {
        let data = |query: &str, result: Value| {
            let data = json!({ "refSparql": query, "refResultSet": result });
            from_reference(data.as_object().unwrap()).map(|_| ())
        };
        assert_eq!(data(HEIGHT, json!(["324"])), Ok(()));
        for error in [
            data("SELECT ?s { ?s ?p ?o }", json!(["324"])),
            data(HEIGHT, json!(["324", "325"])),
            data(HEIGHT, json!(["tall"])),
        ] {
            assert!(matches!(error, Err(CaseError::Field { field: "graphTurtle", .. })), "{error:?}");
        }
    }
}
