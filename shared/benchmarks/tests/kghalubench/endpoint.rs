//! The queries of an [`Endpoint`], answered by a SPARQL engine over an invented graph: what comes back is what a dump of
//! that graph says.

use benchmarks::kinds::kghalubench::draw::assessment::{Recipe, draw};
use benchmarks::kinds::kghalubench::draw::graph::KnowledgeGraph;
use benchmarks::kinds::kghalubench::draw::mapping::Numbered;
use benchmarks::kinds::kghalubench::draw::{Endpoint, GraphError, Mapping, Select};
use harness::invented_graph::{MAPPING, turtle};
use rdf::{Dialect, Graph, PrefixTable, QueryGraph, QueryLimits, RdfFormat, Value};
use serde_json::{Map, json};

use crate::invented::invented;

/// An engine in place of a server.
struct Engine {
    graph: QueryGraph,
    asked: usize,
}

impl Engine {
    fn new(turtle: &str) -> Self {
        Self {
            graph: QueryGraph::from_graph(&Graph::parse(turtle, RdfFormat::Turtle, None).unwrap()),
            asked: 0,
        }
    }
}

fn term(value: Value) -> serde_json::Value {
    match value {
        Value::Iri(iri) => json!({"type": "uri", "value": iri}),
        Value::Literal { lexical, language: Some(language), .. } => {
            json!({"type": "literal", "value": lexical, "xml:lang": language})
        }
        Value::Literal { lexical, datatype, .. } => {
            json!({"type": "literal", "value": lexical, "datatype": datatype})
        }
        Value::Blank(label) => json!({"type": "bnode", "value": label}),
    }
}

impl Select for &mut Engine {
    fn select(&mut self, query: &str) -> Result<String, GraphError> {
        self.asked += 1;
        let prepared = rdf::prepare(query, &PrefixTable::default(), Dialect::Standard)
            .map_err(|error| GraphError::Endpoint(format!("{error}: {query}")))?;
        let limits = QueryLimits { deadline: None, ..QueryLimits::default() };
        let solutions = prepared.execute(&self.graph, &limits).unwrap();
        let row = |cells: Vec<Option<Value>>| {
            let named = solutions.variables.iter().cloned().zip(cells);
            named.filter_map(|(name, cell)| Some((name, term(cell?)))).collect::<Map<_, _>>()
        };
        let bindings: Vec<Map<_, _>> = solutions.rows.iter().cloned().map(row).collect();
        Ok(json!({"head": {"vars": solutions.variables}, "results": {"bindings": bindings}}).to_string())
    }
}

fn mapping() -> Mapping {
    Mapping::from_toml(MAPPING).unwrap()
}

#[test]
fn an_endpoint_and_a_dump_of_one_graph_agree() {
    let (mut engine, mut dump) = (Engine::new(&turtle(3)), invented(3));
    let mut endpoint = Endpoint::new(&mut engine, mapping());
    let mut types = endpoint.types().unwrap();
    types.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(types, dump.types().unwrap());
    let drawn = endpoint.draw(5, 4).unwrap();
    assert_eq!(drawn.len(), 4);
    for candidate in drawn {
        let entity = endpoint.entity(&candidate.id).unwrap();
        assert!(entity.is_some());
        assert_eq!(entity, dump.entity(&candidate.id).unwrap());
    }
    assert!(endpoint.entity("https://world.example/entity/nobody").unwrap().is_none());
}

#[test]
fn entities_can_be_drawn_by_number() {
    let graph = turtle(3);
    let mut engine = Engine::new(&graph);
    let numbered = Numbered { prefix: "https://world.example/entity/Q".to_owned(), largest: 9_999 };
    let mapping = Mapping { numbered: Some(numbered), ..mapping() };
    let mut endpoint = Endpoint::new(&mut engine, mapping.clone());
    let recipe = Recipe { questions: 6, ..Recipe::default() };
    let first = draw(&mut endpoint, recipe, 0).unwrap();
    assert_eq!(first.questions.len(), 6);
    // Types once, and a few queries for each draw.
    assert!(engine.asked <= 1 + 3 * 12, "{} queries", engine.asked);
    let mut again = Engine::new(&graph);
    assert_eq!(draw(&mut Endpoint::new(&mut again, mapping), recipe, 0).unwrap(), first);
}

#[test]
fn what_is_no_answer_is_an_error() {
    struct Says(&'static str);
    impl Select for Says {
        fn select(&mut self, _: &str) -> Result<String, GraphError> {
            Ok(self.0.to_owned())
        }
    }
    let types = |says| Endpoint::new(Says(says), mapping()).types().unwrap_err().to_string();
    assert!(types("<html>").contains("no SPARQL result"));
    assert!(types(r#"{"results": {"bindings": []}}"#).contains("counts no entities"));
}
