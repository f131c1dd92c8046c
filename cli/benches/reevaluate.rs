//! Re-evaluation of six published models: `cargo bench -p cli --bench reevaluate`.
//!
//! The published data is not part of this repository: `harness::Conformance` says where it is looked for. Prints
//! figures with the bound beside them and asserts nothing.

mod measure;

use std::process::Command;

use harness::Conformance;
use measure::{KGFLEET, line, timed};
use serde_json::Value;

fn main() {
    let Some(data) = Conformance::find() else { return };
    let (records, graph) = (data.path("v3"), data.path("graphs/beastiary_kg.rdf.zip"));
    println!("{} processors", std::thread::available_parallelism().map_or(0, usize::from));
    let mut command = Command::new(KGFLEET);
    command.arg("reevaluate").arg(&records).arg("--json").args(["--password", &data.password]);
    command.arg("--graph").arg(format!("beastiary={}", graph.display()));
    let (output, took, resident_max) = timed(&mut command);
    let summary: Value = serde_json::from_str(&output).unwrap_or_default();
    let dialogues = summary["dialogues"].as_f64().unwrap_or(f64::NAN);
    let seconds = took.as_secs_f64();
    line("dialogues", &format!("{dialogues}"), "3 120 in six models");
    line("seconds, start and decryption included", &format!("{seconds:.2}"), "below 10 s");
    line("dialogues per second", &format!("{:.0}", dialogues / seconds), "");
    line("highest resident memory", &format!("{:.0} MB", resident_max as f64 / 1e6), "below 400 MB");
}
