//! Task files as people use them: written, checked, run, sealed.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::harness::Data;
use crate::harness::process::kgfleet;

const GRAPH: &str = "@prefix : <http://example.org/zoo#> .\n\
    :ola a :Otter ; :weighs 9 . :odd a :Otter ; :weighs 11 . :hal a :Heron ; :weighs 2 . :hen a :Heron ; :weighs 3 .";

fn called(folder: &Path, arguments: &[&str]) -> Output {
    kgfleet().current_dir(folder).env("XDG_STATE_HOME", folder).args(arguments).output().unwrap()
}

/// Standard output of a call that ends with this exit code.
fn ends(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = called(folder, arguments);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {talk}");
    String::from_utf8(output.stdout).unwrap()
}

fn talk(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(called(folder, arguments).stderr).unwrap()
}

#[test]
fn a_new_file_is_checked_run_and_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("zoo.ttl"), GRAPH).unwrap();
    ends(folder, &["task", "new", "--graph", "zoo.ttl", "--name", "zoo"], 0);
    ends(folder, &["task", "new", "--graph", "zoo.ttl", "--name", "zoo"], 2);
    let checked = ends(folder, &["task", "check", "zoo.toml"], 0);
    assert!(checked.contains("references 3 of 3") && checked.contains("no licence yet"), "{checked}");
    assert!(ends(folder, &["task", "list", "zoo.toml"], 0).contains("rows (1)"));
    let prompt = ends(folder, &["task", "show", "zoo.toml", "--prompt", "1"], 0);
    assert!(
        prompt.contains("Which things are of the class Heron?") && prompt.contains("```turtle"),
        "{prompt}"
    );

    let told = ends(folder, &["run", "zoo.toml", "--data-dir", "runs", "--json"], 0);
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!((&told["scored"], &told["failed"]), (&json!(9), &json!(0)), "three cases, three models");
    let run = told["run"].as_str().unwrap();
    let shown = ends(folder, &["show", run, "sim-strong/zoo-sparql/0", "--data-dir", "runs", "--json"], 0);
    assert!(shown.contains("\"rows_recall\""), "{shown}");
    // The run goes on from its own copy of the pack, whatever becomes of the file.
    std::fs::remove_file(folder.join("zoo.ttl")).unwrap();
    ends(folder, &["verify", run, "--data-dir", "runs"], 0);
    ends(folder, &["export", run, "--format", "csv", "--data-dir", "runs"], 0);

    std::fs::write(folder.join("zoo.ttl"), GRAPH).unwrap();
    assert!(talk(folder, &["task", "seal", "zoo.toml"]).contains("states its licence"));
    let text = std::fs::read_to_string(folder.join("zoo.toml")).unwrap();
    std::fs::write(folder.join("zoo.toml"), text.replace("licence = \"\"", "licence = \"CC0-1.0\"")).unwrap();
    let hash = ends(folder, &["task", "seal", "zoo.toml"], 0);
    let verified: Value =
        serde_json::from_str(&ends(folder, &["pack", "verify", "zoo.kgpack", "--json"], 0)).unwrap();
    assert_eq!((&verified["hash"], &verified["answersMissing"]), (&json!(hash.trim()), &json!(0)));
}

#[test]
fn a_watched_file_is_checked_again_when_it_or_its_data_change() {
    let data = Data::new();
    std::fs::write(data.path().join("zoo.ttl"), GRAPH).unwrap();
    ends(data.path(), &["task", "new", "--graph", "zoo.ttl", "--name", "zoo"], 0);
    let file = data.path().join("zoo.toml");
    let mut watching = data.start(&["task", "check", file.to_str().unwrap(), "--watch"]);
    watching.until_it_says("waiting for a change");
    // In one step, so that nobody sees half of it.
    let replace = |content: &str| {
        std::fs::write(data.state().join("zoo.ttl"), content).unwrap();
        std::fs::rename(data.state().join("zoo.ttl"), data.path().join("zoo.ttl")).unwrap();
    };
    replace("no Turtle");
    watching.until_it_says("line 1, column 1: no is not a valid subject");
    watching.until_it_says("waiting for a change");
    replace(GRAPH);
    watching.until_it_says("waiting for a change");
    watching.signal(rustix::process::Signal::INT);
    assert_eq!(watching.finish().stdout.matches("references 3 of 3").count(), 2);
}

#[test]
fn mistakes_and_failed_proofs_have_places_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["task", "new", "answer-word", "--name", "words"], 0);
    let good = std::fs::read_to_string(folder.join("words.toml")).unwrap();
    std::fs::write(folder.join("bad.toml"), good.replace("like =", "lake =")).unwrap();
    ends(folder, &["task", "check", "bad.toml"], 2);
    let told = talk(folder, &["run", "bad.toml"]);
    assert!(told.contains("bad.toml:") && told.contains("did you mean `like`?"), "{told}");
    let test = "[[task.test]]\ncase = \"legs\"\nanswer.text = \"stool\"\nscore = 1\n";
    std::fs::write(folder.join("wrong.toml"), format!("{good}{test}")).unwrap();
    let failed = ends(folder, &["task", "check", "wrong.toml"], 1);
    assert!(failed.contains("test 1 has `score` 0.0, not 1"), "{failed}");
    assert!(talk(folder, &["run", "wrong.toml"]).contains("`kgfleet task check wrong.toml` names them"));
    ends(folder, &["run", "wrong.toml"], 2);
    assert!(!folder.join("kgfleet-data").exists(), "nothing was begun");
    let words = folder.join("words.toml");
    let both = ["run", "quick", "--endpoint", "http://127.0.0.1:9", "--model", "m"];
    assert!(talk(folder, &both).contains("is a configuration"));
    assert!(words.exists());
}

#[test]
fn a_configuration_may_name_a_task_file_as_its_pack() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["task", "new", "answer-word", "--name", "words"], 0);
    let configuration = "name = 'own'\npack = 'words.toml'\niterations = 4\n[[models]]\nlabel = 'sim'\nconnector = \
                         'simulated'\nskill = 1.0\n";
    std::fs::write(folder.join("own.toml"), configuration).unwrap();
    let told = ends(folder, &["run", "own.toml", "--json"], 0);
    let told: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(told["scored"], 4);
    let again: Value = serde_json::from_str(ends(folder, &["runs", "--json"], 0).trim()).unwrap();
    assert_eq!(again["state"], "finished");

    // A configuration that says no number asks what the file says: every case, twice.
    let file = std::fs::read_to_string(folder.join("words.toml")).unwrap();
    std::fs::write(
        folder.join("words.toml"),
        file.replace("task_file = 1\n", "task_file = 1\nrepeats = 2\n"),
    )
    .unwrap();
    std::fs::write(folder.join("own.toml"), configuration.replace("iterations = 4\n", "")).unwrap();
    let listed = ends(folder, &["task", "list", "words.toml"], 0);
    let row = listed.lines().find(|line| line.starts_with("words")).unwrap();
    let numbers: Vec<u64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers[1], 2 * numbers[0], "{listed}");
    let told: Value = serde_json::from_str(ends(folder, &["run", "own.toml", "--json"], 0).trim()).unwrap();
    assert_eq!(told["scored"], numbers[1]);
}

#[test]
fn the_verdict_on_an_answer_is_shown_before_anybody_is_asked() {
    use std::io::Write;

    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ends(folder, &["task", "new", "answer-word", "--name", "words"], 0);
    let show = ["task", "show", "words.toml", "--answer", "legs"];
    let mut child = kgfleet()
        .current_dir(folder)
        .args(show)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"\n**Chair.**\n").unwrap();
    let verdict: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&verdict["scores"]["score"], &verdict["followUp"]), (&json!(1.0), &Value::Null));
    assert!(ends(folder, &["task", "show", "--presets"], 0).contains("text-to-sparql"));
    assert!(ends(folder, &["task", "show", "words.toml", "--expanded"], 0).contains("[[task.check]]"));
    let schema: Value = serde_json::from_str(&ends(folder, &["task", "schema"], 0)).unwrap();
    assert_eq!(schema["properties"]["task_file"]["type"], "integer");
}
