//! `kgfleet score --serve` as other programs use it, and the Python package, which is one of them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::process;

/// A program that scores, and the lines to and from it.
struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Serving {
    fn start() -> Self {
        let mut command = process::kgfleet();
        command.args(["score", "--serve", "--evaluators", "1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut serving = Self { child, input, output };
        assert_eq!(serving.next()["lines"], 1);
        serving
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Ends the input; what comes until the end.
    fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        let rest = self.output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        rest
    }
}

#[test]
fn a_bad_line_is_answered_and_nothing_else_is_lost() {
    let mut serving = Serving::start();
    let given = json!({ "kind": "list", "reference": ["a"] });
    let bad = ["{\"id\": 1", "[]", "{\"id\": 2, \"task\": \"none\"}", "{\"id\": 3, \"task\": 7}"];
    for line in bad {
        serving.send(line);
    }
    for number in 10..300 {
        serving.send(&json!({ "id": number, "given": given, "answers": ["a"] }).to_string());
    }
    // All that was sent is answered after the end of the input, in any order.
    let mut replies = serving.end();
    assert_eq!(replies.len(), bad.len() + 290);
    replies.retain(|reply| reply.get("error").is_none());
    assert_eq!(replies.len(), 290);
    assert!(replies.iter().all(|reply| reply["value"] == 1.0));
}

#[test]
fn the_python_package_passes_its_tests() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
    let mut python = Command::new("python3");
    python.args([
        "-W",
        "error",
        "-m",
        "unittest",
        "discover",
        "--start-directory",
        "tests/core",
        "--top-level-directory",
        ".",
    ]);
    python.current_dir(&package).env("KGFLEET_PROGRAM", env!("CARGO_BIN_EXE_kgfleet"));
    // The folder of the sources stays as it is.
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = python.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}
