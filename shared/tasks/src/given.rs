//! Exercises that a caller gives instead of a pack, for those who have an answer and a reference and no task. They are
//! judged by the checks of [declared tasks](crate::families::declared), with the same scores.

use std::sync::Arc;

use rdf::{Dialect, Graph, PrefixTable, QueryLimits, RdfFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::exercise::{CaseError, CaseInput, Compat, EvaluationLimits, Exercise, ReadOnce};
use crate::families;
use crate::families::declared::spec::{AnswerPart, ItemKind};
use crate::families::declared::{EXPECTED_COLUMNS_MAX, ONE, ResultTable, VERSION};
use crate::graphs::GraphLibrary;

/// The name of the graph that a caller gives.
const GRAPH: &str = "graph";

/// What an answer is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", tag = "kind", deny_unknown_fields)]
pub enum GivenExercise {
    /// A query, by the rows that it finds on a graph, compared with those of a reference query.
    Sparql {
        reference: String,
        graph: String,
        #[serde(default = "turtle")]
        format: String,
        #[serde(default)]
        take: AnswerPart,
    },
    /// A document, by its triples, compared with those of a reference document in the same syntax.
    Graph {
        reference: String,
        #[serde(default = "turtle")]
        format: String,
        #[serde(default)]
        take: AnswerPart,
    },
    /// A list, one item a line or in JSON, compared with a reference list.
    List {
        reference: Vec<String>,
        #[serde(default)]
        items: ItemKind,
        #[serde(default)]
        ordered: bool,
    },
    /// A document, by SHACL shapes in Turtle that its graph must have.
    Conforms {
        shapes: String,
        #[serde(default = "turtle")]
        format: String,
        #[serde(default)]
        take: AnswerPart,
    },
}

fn turtle() -> String {
    RdfFormat::Turtle.as_str().to_owned()
}

/// Builds exercises that callers give, and keeps the last one and the last graph: callers judge many answers to one
/// question, and ask many questions about one graph.
#[derive(Default)]
pub struct GivenExercises {
    last: Option<(GivenExercise, Arc<dyn Exercise>)>,
    graph: Option<GivenGraph>,
}

struct GivenGraph {
    document: String,
    format: RdfFormat,
    library: GraphLibrary,
}

impl GivenExercises {
    /// The exercise of what is given. A reference query is run here, within the time of one query.
    ///
    /// # Errors
    /// A reference, a graph or shapes cannot be used; the message says which and why.
    pub fn of(
        &mut self,
        given: &GivenExercise,
        limits: &EvaluationLimits,
    ) -> Result<Arc<dyn Exercise>, CaseError> {
        if let Some((known, exercise)) = &self.last
            && known == given
        {
            return Ok(Arc::clone(exercise));
        }
        let exercise = self.build(given, limits)?;
        self.last = Some((given.clone(), Arc::clone(&exercise)));
        Ok(exercise)
    }

    fn build(
        &mut self,
        given: &GivenExercise,
        limits: &EvaluationLimits,
    ) -> Result<Arc<dyn Exercise>, CaseError> {
        match given {
            GivenExercise::Sparql { reference, graph, format, take } => {
                let library = self.library(graph, syntax(format)?);
                let expected = expected_rows(reference, &library, limits)?;
                let rule = json!({ "kind": "rows", "compare": "rows" });
                let data = fields([("graphName", GRAPH.into()), ("expected", json!({ "rows": expected }))]);
                exercise(&json!({ "take": take, "as": "sparql" }), "rows", &rule, &data, &library)
            }
            GivenExercise::Graph { reference, format, take } => {
                let format = syntax(format)?;
                let reference = in_turtle("reference", reference, format)?;
                let rule = json!({ "kind": "graph", "literals": "value", "blank": "mapped", "ignore": [] });
                let data = fields([("expected", json!({ "graph": reference }))]);
                let answer = json!({ "take": take, "as": format.as_str() });
                exercise(&answer, "graph", &rule, &data, &GraphLibrary::default())
            }
            GivenExercise::List { reference, items, ordered } => {
                let rule = json!({ "kind": "list", "items": items, "ordered": ordered, "partial": true });
                let data = fields([("expected", json!({ "list": reference }))]);
                exercise(&json!({ "as": "list" }), "list", &rule, &data, &GraphLibrary::default())
            }
            GivenExercise::Conforms { shapes, format, take } => {
                let rule = json!({ "kind": "conforms", "shapes": shapes, "by": "graph" });
                let answer = json!({ "take": take, "as": syntax(format)?.as_str() });
                exercise(&answer, "conforms", &rule, &Map::new(), &GraphLibrary::default())
            }
        }
    }

    fn library(&mut self, document: &str, format: RdfFormat) -> GraphLibrary {
        if let Some(known) = &self.graph
            && known.format == format
            && known.document == document
        {
            return known.library.clone();
        }
        let bytes = document.as_bytes().to_vec();
        let library = GraphLibrary::builder().with(GRAPH, format, move || Ok(bytes.clone())).build();
        let graph = GivenGraph { document: document.to_owned(), format, library: library.clone() };
        self.graph = Some(graph);
        library
    }
}

fn exercise(
    answer: &Value,
    name: &str,
    rule: &Value,
    data: &Map<String, Value>,
    library: &GraphLibrary,
) -> Result<Arc<dyn Exercise>, CaseError> {
    let prefixes = PrefixTable::rdflib_defaults();
    let prefixes: Map<String, Value> =
        prefixes.iter().map(|(prefix, namespace)| (prefix.to_owned(), namespace.into())).collect();
    // Whoever gives an empty reference means it: there is no author of a task to ask.
    let check = json!({ "name": name, "weight": 1.0, "emptyOk": true, "rule": rule });
    let parameters = fields([
        ("answer", answer.clone()),
        ("rounds", 1.into()),
        ("checks", json!([check])),
        ("prefixes", prefixes.into()),
    ]);
    let input = CaseInput {
        class: ONE,
        version: VERSION,
        parameters: &parameters,
        data,
        first_prompt: None,
        once: &ReadOnce::default(),
    };
    Ok(families::exercise(&input, library, Compat::default())?.into())
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn syntax(name: &str) -> Result<RdfFormat, CaseError> {
    name.parse().map_err(|error: rdf::format::UnknownFormat| CaseError::Reference {
        field: "format",
        message: error.to_string(),
    })
}

/// A document in Turtle, in which checks expect graphs.
fn in_turtle(field: &'static str, document: &str, format: RdfFormat) -> Result<String, CaseError> {
    if format == RdfFormat::Turtle {
        return Ok(document.to_owned());
    }
    let graph = Graph::parse(document, format, None)
        .map_err(|error| CaseError::Reference { field, message: error.to_string() })?;
    Ok(graph.serialize(RdfFormat::NTriples, &PrefixTable::new()))
}

fn expected_rows(
    reference: &str,
    library: &GraphLibrary,
    limits: &EvaluationLimits,
) -> Result<Value, CaseError> {
    let unusable = |message: String| CaseError::Reference { field: "reference", message };
    let graph = library.get(GRAPH)?;
    let prefixes = PrefixTable::layered(&[&PrefixTable::rdflib_defaults(), &graph.prefixes]);
    let query =
        rdf::prepare(reference, &prefixes, Dialect::Standard).map_err(|error| unusable(error.message))?;
    let limits = QueryLimits { deadline: Some(limits.query_time), rows_max: limits.rows_max };
    let table =
        ResultTable::of(&query, &graph.graph, &limits).map_err(|error| unusable(error.to_string()))?;
    if table.columns > EXPECTED_COLUMNS_MAX {
        let columns = table.columns;
        return Err(unusable(format!(
            "its result has {columns} columns; {EXPECTED_COLUMNS_MAX} are the most"
        )));
    }
    serde_json::to_value(&table).map_err(|error| unusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::Effort;

    const ZOO: &str = "@prefix : <http://zoo.example/> .\n:a a :Bird ; :age 2 .\n:b a :Bird ; :age 3 .";

    fn given(json: Value) -> GivenExercise {
        serde_json::from_value(json).unwrap()
    }

    fn score(given: &GivenExercise, answer: &str) -> f64 {
        let limits = EvaluationLimits::default();
        let exercise = GivenExercises::default().of(given, &limits).unwrap();
        exercise.judge(answer, &Effort::full(limits)).scores["score"].as_f64().unwrap()
    }

    #[test]
    fn a_query_is_judged_by_what_the_reference_finds() {
        let given = given(json!({
            "kind": "sparql", "reference": "SELECT ?b { ?b a :Bird }", "graph": ZOO
        }));
        assert_eq!(score(&given, "SELECT ?x WHERE { ?x :age ?y }"), 1.0);
        assert_eq!(score(&given, "SELECT ?x { ?x :age 2 }"), 2.0 / 3.0);
        assert_eq!(score(&given, "SELECT nonsense"), 0.0);
    }

    #[test]
    fn graphs_lists_and_shapes_are_judged_in_every_syntax_that_they_take() {
        let triples =
            "<http://a.example/s> <http://a.example/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .";
        for format in ["turtle", "nt"] {
            let graph = given(json!({ "kind": "graph", "reference": triples, "format": format }));
            assert_eq!(score(&graph, triples), 1.0, "{format}");
        }
        let jsonld = "{\"@id\": \"http://a.example/s\", \"http://a.example/p\": 1}";
        let graph = given(json!({ "kind": "graph", "reference": jsonld, "format": "jsonld" }));
        assert_eq!(score(&graph, jsonld), 1.0);
        let list = given(json!({ "kind": "list", "reference": ["Ann", "Bob"] }));
        assert_eq!((score(&list, "bob\r\nann\r\n"), score(&list, "[\"Ann\"]")), (1.0, 2.0 / 3.0));
        let shapes = "@prefix : <http://zoo.example/> . [] a sh:NodeShape ; sh:targetClass :Bird ;\n\
            sh:property [ sh:path :age ; sh:minCount 1 ] .";
        let conforms = given(json!({ "kind": "conforms", "shapes": shapes }));
        assert_eq!(score(&conforms, ZOO), 1.0);
        assert_eq!(score(&conforms, &format!("{ZOO} :c a :Bird .")), 0.0);
    }

    #[test]
    fn what_cannot_be_used_is_named_and_what_was_given_last_is_kept() {
        let limits = EvaluationLimits::default();
        let mut kept = GivenExercises::default();
        let refused = |kept: &mut GivenExercises, json: Value| {
            kept.of(&given(json), &limits).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let sparql = |reference: &str, graph: &str| json!({ "kind": "sparql", "reference": reference, "graph": graph });
        assert!(
            refused(&mut kept, sparql("SELECT", ZOO)).starts_with("`reference` of the case does not parse")
        );
        assert!(refused(&mut kept, sparql("ASK {}", "<a")).contains("the graph `graph` cannot be read"));
        assert!(
            refused(&mut kept, json!({ "kind": "graph", "reference": "", "format": "n4" })).contains("n4")
        );
        let good = given(sparql("ASK {}", ZOO));
        let first = kept.of(&good, &limits).unwrap();
        assert!(Arc::ptr_eq(&first, &kept.of(&good, &limits).unwrap()));
        let unknown = json!({ "kind": "list", "reference": [], "size": 1 });
        assert!(serde_json::from_value::<GivenExercise>(unknown).is_err());
    }
}
