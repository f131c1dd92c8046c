//! `kgfleet score --serve` as other programs use it, and the Python package, which is one of them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::process;

/// The task of these tests.
const TASK: &str = "RdfFriendCount-nt-1";

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

    fn asks(&mut self, line: &Value) -> Value {
        self.send(&line.to_string());
        self.next()
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
fn a_dialogue_is_scored_and_says_what_was_compared_and_what_is_asked_next() {
    let mut serving = Serving::start();
    let opened = serving.asks(&json!({ "id": "a", "task": TASK, "case": 0 }));
    assert_eq!((&opened["id"], &opened["next"]["kind"]), (&json!("a"), &json!("first")));
    let target = opened["target"].as_str().unwrap();
    let right =
        serving.asks(&json!({ "id": 1, "task": TASK, "case": 0, "answers": [target], "compare": true }));
    assert_eq!(
        (&right["value"], &right["headline"], &right["next"]),
        (&json!(1.0), &json!("f1"), &Value::Null)
    );
    assert!(right["compared"][0]["extracted"].is_string(), "{right}");
    let broken = json!({ "id": 2, "task": "RdfSyntaxFixList-nt", "case": 0, "answers": ["no block"] });
    let broken = serving.asks(&broken);
    assert_eq!(
        (&broken["next"]["kind"], &broken["scores"]["max"]["combined"]),
        (&json!("structure"), &json!(0.0))
    );
    assert_eq!(serving.end(), Vec::<Value>::new());
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
fn a_task_file_is_scored_like_a_pack() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zoo.toml");
    let text = "task_file = 1\nname = \"zoo\"\n[[task]]\nlabel = \"count\"\nprompt = \"{{ q }}\"\n\
        answer.as = \"number\"\n[[task.check]]\nkind = \"number\"\nname = \"n\"\nexpect.field = \"n\"\n\
        [[task.case]]\nid = \"owls\"\nq = \"How many owls?\"\nn = 3\n";
    std::fs::write(&file, text).unwrap();
    let mut serving = Serving::start();
    let ask = |answer: &str| json!({ "pack": file, "task": "count", "case": "owls", "answers": [answer] });
    assert_eq!(serving.asks(&ask("3.0"))["value"], 1.0);
    assert_eq!(serving.asks(&ask("4"))["value"], 0.0);
    let listed = serving.asks(&json!({ "tasks": file }));
    assert_eq!(listed["tasks"][0]["cases"], json!(["owls"]));
    std::fs::write(folder.path().join("bad.toml"), "task_file = 1\n").unwrap();
    let refused = serving.asks(&json!({ "id": 5, "tasks": folder.path().join("bad.toml") }));
    assert_eq!((&refused["id"], &refused["error"]["kind"]), (&json!(5), &json!("material")));
    serving.end();
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
