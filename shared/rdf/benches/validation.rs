//! SHACL on sizes of real tasks: `cargo bench -p rdf --bench validation`.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use harness::timing::timed;
use rdf::shacl::{ShaclShapes, validate};
use rdf::{Graph, QueryGraph, RdfFormat};

/// Most time for 20 shapes over 1 000 triples.
const VALIDATED_MAX: Duration = Duration::from_millis(5);

const PREFIXES: &str = "@prefix : <http://e/> . @prefix sh: <http://www.w3.org/ns/shacl#> .\n";

fn parsed(text: &str) -> Graph {
    Graph::parse(&format!("{PREFIXES}{text}"), RdfFormat::Turtle, None).unwrap_or_default()
}

fn main() {
    let (mut shapes, mut data) = (String::new(), String::new());
    for n in 0..20 {
        let _ = writeln!(
            shapes,
            ":S{n} sh:targetClass :K{n} ; sh:property [ sh:path :p ; sh:minCount 1 ; sh:maxCount 3 ; sh:nodeKind sh:IRI ; \
             sh:class :K{} ] ; sh:property [ sh:path :q ; sh:minInclusive 0 ; sh:pattern '^[0-9]+$' ] .",
            (n + 1) % 20
        );
    }
    for n in 0..250 {
        let _ =
            writeln!(data, ":n{n} a :K{} ; :p :n{} , :n{} ; :q {n} .", n % 20, (n + 1) % 250, (n + 21) % 250);
    }
    let (shapes, data) = (parsed(&shapes), QueryGraph::from_graph(&parsed(&data)));
    timed("20 shapes are read", None, || ShaclShapes::read(black_box(&shapes)).map(|shapes| shapes.len()));
    let read = ShaclShapes::read(&shapes).unwrap_or_default();
    timed("20 shapes over 1 000 triples", Some(VALIDATED_MAX), || {
        validate(black_box(&read), black_box(&data)).targets
    });
}
