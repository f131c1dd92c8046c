//! `kgfleet pack` as people call it: its exit codes, and what stands on standard output.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::process::{called, ends};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A dialogue about an invented fact sheet.
fn record(model: &str, prompt: &str) -> Value {
    json!({
        "modelId": format!("Test--{model}--{model}"),
        "taskInfo": {"taskId": "FactExtractStatic", "version": "1.1", "condensedTaskData": {"version": "1.1"}},
        "scores": {}, "info": {},
        "interactions": [["prompt", "2024-01-01T00:00:00", prompt], ["response", "2024-01-01T00:00:01", "Hm."]]
    })
}

fn write_records(folder: &Path, records: &[Value]) {
    std::fs::write(folder.join("a_result.json"), serde_json::to_vec(records).unwrap()).unwrap();
}

#[test]
fn a_pack_is_unsealed_sealed_and_still_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let built_in = parsed(&ends(folder.path(), &["pack", "list", "--json"], 0));
    assert!(built_in["tasks"].as_array().unwrap().len() >= 26);
    ends(folder.path(), &["pack", "unseal", "core", "files"], 0);
    let hash = ends(folder.path(), &["pack", "seal", "files", "own.kgpack"], 0);
    assert_eq!(json!(hash.trim()), built_in["hash"], "the same files have the same hash");
    assert!(folder.path().join("own.manifest.json").is_file());
    let listed = parsed(&ends(folder.path(), &["pack", "list", "own.kgpack", "--json"], 0));
    assert_eq!(listed["tasks"], built_in["tasks"]);
    let shown = parsed(&ends(
        folder.path(),
        &["pack", "show", "own.kgpack", "RdfFriendCount-turtle-1/friends-1", "--json"],
        0,
    ));
    assert!(shown["firstPrompt"].as_str().unwrap().contains("person"), "own packs are shown in the clear");
    ends(folder.path(), &["pack", "unseal", "core", "files"], 3);
}

#[test]
fn mistakes_are_told_once_and_by_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("no.kgpack"), "nothing").unwrap();
    ends(folder.path(), &["pack", "list", "no.kgpack"], 2);
    let message = called(folder.path(), &["pack", "list", "no.kgpack"]).stderr;
    assert_eq!(message.matches("not a sealed pack").count(), 1, "{message}");
    ends(folder.path(), &["pack", "verify", "missing.kgpack"], 3);
    ends(folder.path(), &["pack", "show", "core", "nonsense"], 2);
    ends(folder.path(), &["pack", "import", "missing.json", "--out", "x.kgpack"], 3);
    assert!(!folder.path().join("x.kgpack").exists(), "nothing is written");
}

#[test]
fn imported_packs_are_protected() {
    let folder = tempfile::tempdir().unwrap();
    write_records(folder.path(), &[record("a", "List the FACTS."), record("a", "List the FACTS.")]);
    let report = parsed(&ends(
        folder.path(),
        &["pack", "import", "a_result.json", "--out", "zoo.kgpack", "--json"],
        0,
    ));
    assert_eq!(report["tasks"][0]["dialogues"], 2);
    let listed = parsed(&ends(folder.path(), &["pack", "list", "zoo.kgpack", "--json"], 0));
    assert_eq!((&listed["protected"], &listed["hash"]), (&json!(true), &report["hash"]));
    ends(folder.path(), &["pack", "verify", "zoo.kgpack"], 0);

    assert!(!ends(folder.path(), &["pack", "show", "zoo.kgpack", "case-1"], 0).contains("FACTS"));
    assert!(
        ends(folder.path(), &["pack", "show", "zoo.kgpack", "case-1", "--plaintext"], 0).contains("FACTS")
    );
    ends(folder.path(), &["pack", "unseal", "zoo.kgpack", "clear"], 2);
    assert!(!folder.path().join("clear").exists());
    ends(folder.path(), &["pack", "unseal", "zoo.kgpack", "clear", "--plaintext"], 0);
}

#[test]
fn a_private_password_keeps_a_pack_private() {
    let folder = tempfile::tempdir().unwrap();
    write_records(folder.path(), &[record("a", "?")]);
    let import = ["pack", "import", "a_result.json", "--out", "zoo.kgpack", "--pack-password", "ours"];
    ends(folder.path(), &import, 0);
    ends(folder.path(), &["pack", "list", "zoo.kgpack"], 2);
    ends(folder.path(), &["pack", "list", "zoo.kgpack", "--pack-password", "ours"], 0);
}
