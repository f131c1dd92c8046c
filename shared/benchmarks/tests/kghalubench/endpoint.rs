//! The queries of an [`Endpoint`], answered by a SPARQL engine: what comes back is what a dump of the same graph says.

use benchmarks::kinds::kghalubench::draw::assessment::{Assessment, Recipe, draw_all};
use benchmarks::kinds::kghalubench::draw::graph::KnowledgeGraph;
use benchmarks::kinds::kghalubench::draw::mapping::Numbered;
use benchmarks::kinds::kghalubench::draw::{
    DocumentHash, Dump, Endpoint, GraphError, Mapping, Question, Select,
};
use harness::invented_graph::{MAPPING, turtle};
use harness::sparql_endpoint::SparqlEngine;
use harness::wikidata_graph::{self, WikidataShape};
use rdf::stream::StreamFormat;
use rdf::{Graph, QueryGraph, RdfFormat};

/// An engine in place of a server, that cuts long lists as some endpoints do.
struct Cutting {
    engine: SparqlEngine,
    rows_max: usize,
    asked: usize,
}

impl Cutting {
    fn new(document: &str, format: RdfFormat) -> Self {
        let graph = Graph::parse(document, format, None).unwrap();
        Self { engine: SparqlEngine::new(&graph), rows_max: usize::MAX, asked: 0 }
    }
}

impl Select for &mut Cutting {
    fn select(&mut self, query: &str) -> Result<String, GraphError> {
        self.asked += 1;
        let text = self.engine.answer(query).map_err(GraphError::Endpoint)?;
        let mut answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        if query.starts_with("SELECT ?entity") {
            answer["results"]["bindings"].as_array_mut().unwrap().truncate(self.rows_max);
        }
        Ok(answer.to_string())
    }
}

fn mapping() -> Mapping {
    Mapping::from_toml(MAPPING).unwrap()
}

fn wikidata() -> Mapping {
    Mapping::from_toml(Mapping::named("wikidata").unwrap()).unwrap()
}

/// The invented graph of a seed.
fn invented(seed: u64) -> Dump {
    Dump::parse(turtle(seed).as_bytes(), RdfFormat::Turtle, mapping()).unwrap()
}

/// A graph of Wikidata's shape.
fn shaped(has_statistics: bool) -> String {
    let mut text = Vec::new();
    wikidata_graph::write(WikidataShape { entities: 600, seed: 4, has_statistics }, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// A document that is read triple by triple.
fn streamed(document: &str, format: StreamFormat, mapping: Mapping) -> Dump {
    let graph = QueryGraph::read(&mut document.as_bytes(), format).unwrap();
    let mut hash = DocumentHash::new(document.len() as u64);
    hash.update(document.as_bytes());
    Dump::new(graph, hash, mapping).unwrap()
}

fn questions(graph: &mut dyn KnowledgeGraph) -> Vec<Question> {
    let recipe = Recipe { questions: 30, ..Recipe::default() };
    let assessments = draw_all(graph, recipe, 2).unwrap();
    assessments.into_iter().flat_map(|assessment| assessment.questions).collect()
}

#[test]
fn an_endpoint_and_a_dump_of_one_graph_agree() {
    let (mut engine, mut dump) = (Cutting::new(&turtle(3), RdfFormat::Turtle), invented(3));
    let mut endpoint = Endpoint::new(&mut engine, mapping());
    assert_eq!(endpoint.types().unwrap(), dump.types().unwrap());
    let drawn = endpoint.draw(5, 4).unwrap();
    assert_eq!(drawn, dump.draw(5, 4).unwrap());
    for candidate in drawn {
        let entity = endpoint.entity(&candidate.id).unwrap();
        assert!(entity.is_some());
        assert_eq!(entity, dump.entity(&candidate.id).unwrap());
    }
    assert!(endpoint.entity("https://world.example/entity/nobody").unwrap().is_none());
}

#[test]
fn a_whole_document_a_streamed_one_and_an_endpoint_draw_the_same_questions() {
    // Among them are items of two types, dates that nobody knows, labels in two languages.
    for has_statistics in [true, false] {
        let text = shaped(has_statistics);
        let mut memory = Dump::parse(text.as_bytes(), RdfFormat::NTriples, wikidata()).unwrap();
        let mut file = streamed(&text, StreamFormat::Lines, wikidata());
        assert_eq!(file.snapshot(), memory.snapshot());
        let expected = questions(&mut memory);
        assert_eq!(questions(&mut file), expected);
        // An endpoint that cuts its answers is asked for parts.
        for (rows_max, parts) in [(usize::MAX, 0), (100, 12)] {
            let mut engine = Cutting { rows_max, ..Cutting::new(&text, RdfFormat::NTriples) };
            assert_eq!(questions(&mut Endpoint::new(&mut engine, wikidata())), expected);
            // Statistics, types and the list once, then statements, labels and kinds of relations for each draw.
            assert!(engine.asked <= 8 + parts + 3 * 2 * 30 * 3, "{} queries", engine.asked);
        }
        let known = expected[0].statistics.counts().map(|count| count.is_some());
        assert_eq!(known, [has_statistics, has_statistics, true, true, has_statistics, true, has_statistics]);
        for question in &expected {
            // Neither identifiers nor files, addresses or categories are asked for, nor anything in another language.
            let asked = question.facts.iter().flat_map(|fact| fact.objects.iter().chain([&fact.relation]));
            for words in asked.chain([&question.name, &question.description]) {
                for foreign in ["VIAF", "Freebase", "image", "website", "Commons", "deutsch", "ist eine"] {
                    assert!(!words.contains(foreign), "{words}");
                }
            }
        }
    }
}

#[test]
fn entities_can_be_drawn_by_number_and_a_dump_agrees() {
    let graph = turtle(3);
    let mut engine = Cutting::new(&graph, RdfFormat::Turtle);
    let numbered = Numbered { prefix: "https://world.example/entity/Q".to_owned(), largest: 9_999 };
    let mapping = Mapping { numbered: Some(numbered), ..mapping() };
    let mut endpoint = Endpoint::new(&mut engine, mapping.clone());
    let recipe = Recipe { questions: 6, ..Recipe::default() };
    let draw = |graph: &mut dyn KnowledgeGraph| -> Vec<Assessment> { draw_all(graph, recipe, 1).unwrap() };
    let first = draw(&mut endpoint);
    assert_eq!(first[0].questions.len(), 6);
    // Statistics and types once, and a few queries for each draw.
    assert!(engine.asked <= 8 + 3 * 12, "{} queries", engine.asked);
    let mut again = Cutting::new(&graph, RdfFormat::Turtle);
    assert_eq!(draw(&mut Endpoint::new(&mut again, mapping.clone())), first);
    let mut dump = Dump::parse(graph.as_bytes(), RdfFormat::Turtle, mapping).unwrap();
    assert_eq!(draw(&mut dump)[0].questions, first[0].questions);
}

/// Paintings of which every one has a long description, a long text among its facts, and blank nodes.
fn hostile() -> String {
    let long = "Many words. ".repeat(5_500);
    let mut text = String::from(
        "@prefix e: <http://e/> . @prefix l: <http://www.w3.org/2000/01/rdf-schema#> .\n\
         e:Painting l:label \"painting\" . e:artist l:label \"artist\" . e:year l:label \"year\" .\n\
         e:room l:label \"room\" . e:text l:label \"text\" .\n",
    );
    for number in 0..20 {
        text.push_str(&format!(
            "e:p{number} e:type e:Painting, [] ; l:label \"Painting {number}\" ; e:about \"\"\"{long}\"\"\" ;\n\
             e:artist \"Ada\", [ e:part [] ] ; e:year 19{number:02} ; e:room \"{number}\", [] ; e:text \"\"\"{long}\"\"\" .\n\
             [] e:type e:Painting ; l:label \"a painting without a name of its own\" ; e:about \"x\" .\n"
        ));
    }
    text
}

#[test]
fn long_literals_and_blank_nodes_are_no_questions() {
    let mapping = Mapping::from_toml(
        "type = \"http://e/type\"\nlabel = \"http://www.w3.org/2000/01/rdf-schema#label\"\ndescription = \"http://e/about\"\n",
    )
    .unwrap();
    let text = hostile();
    let mut memory = Dump::parse(text.as_bytes(), RdfFormat::Turtle, mapping.clone()).unwrap();
    let recipe = Recipe { questions: 20, ..Recipe::default() };
    let drawn = draw_all(&mut memory, recipe, 1).unwrap();
    let mut file = streamed(&text, StreamFormat::Terse, mapping.clone());
    assert_eq!(draw_all(&mut file, recipe, 1).unwrap(), drawn);
    let mut engine = Cutting::new(&text, RdfFormat::Turtle);
    let listed = draw_all(&mut Endpoint::new(&mut engine, mapping), recipe, 1).unwrap();
    assert_eq!(listed[0].questions, drawn[0].questions);
    for question in &drawn[0].questions {
        assert!(question.description.ends_with("words.") && question.description.len() <= 6_000);
        assert!(question.facts.iter().all(|fact| fact.relation != "text" && fact.objects.len() == 1));
        // Two of its six statements lead to blank nodes: they count.
        assert_eq!(question.statistics.statements, Some(6));
    }
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
