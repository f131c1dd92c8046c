//! Writes a graph of Wikidata's shape as N-Triples to standard output:
//! `cargo run -q -p harness --features invented-graph --example wikidata-graph -- ENTITIES SEED [statistics]`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use harness::wikidata_graph::{WikidataShape, write};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (numbers, more) = arguments.split_at(arguments.len().min(2));
    let numbers: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let [entities, seed] = numbers[..] else {
        eprintln!("wikidata-graph: give a number of entities and a seed");
        return ExitCode::from(2);
    };
    let shape =
        WikidataShape { entities, seed, has_statistics: more.iter().any(|word| word == "statistics") };
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    match write(shape, &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wikidata-graph: {error}");
            ExitCode::from(3)
        }
    }
}
