//! Serves a document of N-Triples as a SPARQL endpoint on a free port of loopback, until it is ended, and refuses every so many
//! requests for the moment: `cargo run -q -p harness --features sparql-endpoint --example sparql-endpoint -- FILE EVERY`. It prints
//! its address.

use std::fs::File;
use std::process::ExitCode;

use harness::sparql_endpoint::{SparqlEngine, SparqlServer};
use rdf::stream::StreamError;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, every] = arguments.as_slice() else {
        eprintln!("sparql-endpoint: give a file and a number");
        return ExitCode::from(2);
    };
    let Ok(every) = every.parse() else {
        eprintln!("sparql-endpoint: {every} is no number");
        return ExitCode::from(2);
    };
    let engine = File::open(file)
        .map_err(StreamError::from)
        .and_then(|mut document| SparqlEngine::read(&mut document));
    let engine = match engine {
        Ok(engine) => engine,
        Err(error) => {
            eprintln!("sparql-endpoint: {file} cannot be used: {error}");
            return ExitCode::from(2);
        }
    };
    println!("{}", SparqlServer::start(engine, every).url());
    loop {
        std::thread::park();
    }
}
