//! Writes the invented graph of a seed and its mapping into a folder, as `graph.ttl` and `mapping.toml`, for
//! `kgfleet halu generate`: `cargo run -q -p harness --features invented-graph --example invented-graph -- SEED FOLDER`.

use std::path::Path;
use std::process::ExitCode;

use harness::invented_graph::{MAPPING, turtle};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seed, folder] = arguments.as_slice() else {
        eprintln!("invented-graph: give a seed and a folder");
        return ExitCode::from(2);
    };
    let Ok(seed) = seed.parse() else {
        eprintln!("invented-graph: `{seed}` is no seed: give a whole number");
        return ExitCode::from(2);
    };
    for (name, text) in [("graph.ttl", turtle(seed)), ("mapping.toml", MAPPING.to_owned())] {
        let path = Path::new(folder).join(name);
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("invented-graph: cannot write {}: {error}", path.display());
            return ExitCode::from(3);
        }
    }
    ExitCode::SUCCESS
}
