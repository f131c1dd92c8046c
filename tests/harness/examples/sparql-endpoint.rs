//! Serves a document of N-Triples as a SPARQL endpoint on a free port of loopback, until it is ended, and refuses every so many
//! requests for the moment: `cargo run -q -p harness --features sparql-endpoint --example sparql-endpoint -- FILE EVERY`. It prints
//! its address.

use std::process::ExitCode;

use harness::sparql_endpoint::{SparqlEngine, SparqlServer};
use rdf::{Graph, RdfFormat};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, every] = arguments.as_slice() else {
        eprintln!("sparql-endpoint: give a file and a number");
        return ExitCode::from(2);
    };
    let graph = std::fs::read_to_string(file)
        .map_err(|error| error.to_string())
        .and_then(|text| Graph::parse(&text, RdfFormat::NTriples, None).map_err(|error| error.to_string()));
    let (Ok(every), Ok(graph)) = (every.parse(), &graph) else {
        eprintln!("sparql-endpoint: {file} and {every} cannot be used: {}", graph.err().unwrap_or_default());
        return ExitCode::from(2);
    };
    println!("{}", SparqlServer::start(SparqlEngine::new(graph), every).url());
    loop {
        std::thread::park();
    }
}
