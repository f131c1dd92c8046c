//! Re-evaluation of six published models: `cargo bench -p cli --bench reevaluate`.
//!
//! The published data is not part of this repository: it is looked for in the folder that `KGFLEET_CONFORMANCE` names,
//! else beside the repository in `shared/conformance`. Prints figures with the bound beside them and asserts nothing.

mod measure;

use std::path::{Path, PathBuf};
use std::process::Command;

use measure::{KGFLEET, line, timed};
use serde_json::Value;

fn main() {
    let folder = std::env::var_os("KGFLEET_CONFORMANCE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/conformance"),
        PathBuf::from,
    );
    let (records, graph) = (folder.join("v3"), folder.join("graphs/beastiary_kg.rdf.zip"));
    let (true, true, Some(password)) = (records.is_dir(), graph.is_file(), password(&folder)) else {
        println!("SKIPPED: no published dialogues in {}; set KGFLEET_CONFORMANCE", folder.display());
        return;
    };
    println!("{} processors", std::thread::available_parallelism().map_or(0, usize::from));
    let mut command = Command::new(KGFLEET);
    command.arg("reevaluate").arg(&records).arg("--json").args(["--password", &password]);
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

/// The password that the data's own documentation publishes, the last quoted word in its line about `v3/`.
fn password(folder: &Path) -> Option<String> {
    let readme = std::fs::read_to_string(folder.join("README.md")).ok()?;
    let line = readme.lines().find(|line| line.contains("`v3/`"))?;
    Some(line.rsplit('`').nth(1)?.to_owned())
}
