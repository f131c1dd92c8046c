//! A run on protected exercises leaves no text of a prompt or an answer in plaintext, unless the user asked for it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Output;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use packs::{Group, Header, Parts, published_password};
use results::llmkgbench::discover;
use serde_json::{Value, json};

use crate::harness::process::kgfleet;

const MARSH: &str = "@prefix : <http://marsh.example/> .\n:quillmere a :Reedbed ; :hosts :bittern , :spoonbill .\n\
                     :tarnholm a :Reedbed ; :hosts :avocet .\n";

/// A text shorter than this, in characters, may occur by chance, or be part of a heading.
const TELLING_CHARACTERS: usize = 12;

/// A folder with two packs of the same invented exercises, one of them protected, and a configuration for each.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        let lab = Self(tempfile::tempdir().unwrap());
        for (name, protected) in [("guarded", true), ("open", false)] {
            packs::seal_file(&parts(protected), &published_password(), &lab.path(&format!("{name}.kgpack")))
                .unwrap();
            let configuration = format!(
                "name = \"{name}\"\nseed = 5\niterations = 4\npack = \"{name}.kgpack\"\n\
                 [[models]]\nlabel = \"good\"\nconnector = \"simulated\"\nskill = 1.0\n\
                 [[models]]\nlabel = \"poor\"\nconnector = \"simulated\"\nskill = 0.2\n"
            );
            fs::write(lab.path(&format!("{name}.toml")), configuration).unwrap();
        }
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn call(&self, arguments: &[&str]) -> Output {
        kgfleet().current_dir(self.0.path()).args(arguments).output().unwrap()
    }

    /// Standard output and standard error of a call that ends with this exit code.
    fn ends(&self, arguments: &[&str], code: i32) -> (String, String) {
        let output = self.call(arguments);
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {talk}");
        (String::from_utf8(output.stdout).unwrap(), talk)
    }

    /// Runs a configuration; the run's name.
    fn run(&self, configuration: &str, more: &[&str]) -> String {
        self.ends(&[&["run", configuration, "--evaluators", "1"], more].concat(), 0);
        let (listed, _) = self.ends(&["status", "--json"], 0);
        let last: Value = serde_json::from_str(listed.lines().last().unwrap()).unwrap();
        assert_eq!((&last["scored"], &last["state"]), (&json!(16), &json!("finished")));
        last["run"].as_str().unwrap().to_owned()
    }

    fn folder(&self, run: &str) -> PathBuf {
        self.path("kgfleet-data").join("runs").join(run)
    }

    /// Every line of every text of a run's records: prompts, answers, and infos that quote them.
    fn texts(&self, run: &str) -> BTreeSet<String> {
        self.ends(&["export", run, "--format", "jsonl", "--plaintext", "--out", "clear.jsonl"], 0);
        let exported = fs::read_to_string(self.path("clear.jsonl")).unwrap();
        fs::remove_file(self.path("clear.jsonl")).unwrap();
        let mut texts = BTreeSet::new();
        for line in exported.lines() {
            let record = &serde_json::from_str::<Value>(line).unwrap()["record"];
            for round in record["rounds"].as_array().unwrap() {
                collect(&round["prompt"]["text"], &mut texts);
                collect(&round["answer"]["text"], &mut texts);
            }
            collect(&record["outcome"]["infos"], &mut texts);
        }
        texts.retain(|text| text.chars().count() >= TELLING_CHARACTERS);
        // Of the identifiers of cases, which stand in tables and are no texts.
        texts.retain(|text| !text.starts_with("case-"));
        assert!(texts.iter().any(|text| text.contains("quillmere")), "{texts:?}");
        texts
    }
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => texts.extend(text.lines().map(str::to_owned)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn parts(protected: bool) -> Parts {
    let mut parts = Parts::new("marsh");
    let tasks = ["Text2SparqlExecEvalListOrganizational", "Text2AnswerListOrganizational"];
    parts
        .insert_header(&Header {
            name: "marsh".into(),
            version: "1".into(),
            licence: "CC0-1.0".into(),
            description: "Invented reedbeds.".into(),
            provenance: "Written for this test.".into(),
            canary: "none".into(),
            protected,
            compat: tasks::Compat::default(),
            limits: tasks::EvaluationLimits::default(),
            groups: vec![Group {
                name: "all".into(),
                default: true,
                tasks: tasks.iter().map(|&label| label.into()).collect(),
            }],
            graphs: Vec::new(),
        })
        .unwrap();
    let cases = |answers: &dyn Fn(&str, &str) -> Value| -> Vec<Value> {
        [("quillmere", "bittern"), ("tarnholm", "avocet")]
            .iter()
            .map(|(place, bird)| {
                let mut case = answers(place, bird);
                let result = if *place == "quillmere" { json!([":bittern", ":spoonbill"]) } else { json!([":avocet"]) };
                case["uid"] = format!("case-{place}").into();
                case["malformedAnswer"] = format!("Nobody has ever looked into {place}.").into();
                case["data"] = json!({
                    "uid": format!("case-{place}"), "question": format!("Which birds live at {place} in spring?"),
                    "refSparql": format!("SELECT ?bird WHERE {{ :{place} :hosts ?bird }}"), "refResultSet": result,
                    "multishotLimit": 3, "multishotSyntaxLimit": 3, "multishotResultLimit": 3,
                    "graphTurtle": MARSH, "graphFormat": "turtle", "baseIri": "http://marsh.example/"
                });
                case["prompt"] = json!({"graph": MARSH, "kgInfo": MARSH});
                case
            })
            .collect()
    };
    let query = |place: &str, bird: &str| {
        let ask = |pattern: &str| format!("```sparql\nSELECT ?bird WHERE {{ {pattern} }}\n```");
        json!({
            "referenceAnswer": ask(&format!(":{place} :hosts ?bird")),
            "wrongAnswer": ask(&format!("?reedbed_of_{place} :hosts ?bird . FILTER(?bird = :{bird})")),
        })
    };
    let answer = |place: &str, bird: &str| {
        let right = if place == "quillmere" { ":bittern\n:spoonbill" } else { ":avocet" };
        json!({"referenceAnswer": right, "wrongAnswer": format!("http://elsewhere.example/{bird}-of-{place}")})
    };
    let templates = json!({
        "first": "Marsh riddle, solve it with care: {{question}}\n{{graph}}", "syntax": "Bad grammar, marsh guest: {{message}}",
        "empty-result": "Nothing comes back from the marsh, try once more."
    });
    let insert = |label: &str, version: &str, wording: &Value, cases: Vec<Value>, parts: &mut Parts| {
        let task = json!({
            "label": label, "class": label, "version": version, "parameters": {}, "wording": wording, "cases": cases
        });
        parts.insert_task(&serde_json::from_value(task).unwrap()).unwrap();
    };
    insert(tasks[0], "3.1.2", &templates, cases(&query), &mut parts);
    insert(tasks[1], "2.0.2", &json!({"first": templates["first"]}), cases(&answer), &mut parts);
    parts
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// The bytes of a file, and whatever comes of them when every zstd frame is decompressed and every member of an archive
/// unpacked that needs no password.
fn all_bytes(path: &Path) -> Vec<u8> {
    const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let raw = fs::read(path).unwrap();
    let mut bytes = raw.clone();
    for at in (0..raw.len()).filter(|&at| raw[at..].starts_with(&ZSTD_MAGIC)) {
        // What follows the frame is an error that comes after its content.
        let _ = zstd::stream::copy_decode(&raw[at..], &mut bytes);
    }
    if let Ok(mut archive) = zip::ZipArchive::new(File::open(path).unwrap()) {
        for index in 0..archive.len() {
            if let Ok(mut member) = archive.by_index(index) {
                member.read_to_end(&mut bytes).unwrap();
            }
        }
    }
    bytes
}

/// The texts that occur in the files of a folder, as they are or as JSON escapes them.
fn leaks(folder: &Path, texts: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files(folder) {
        let bytes = all_bytes(&file);
        let lossy = String::from_utf8_lossy(&bytes);
        for text in texts {
            let escaped = Value::from(text.as_str()).to_string();
            if lossy.contains(text.as_str()) || lossy.contains(escaped.trim_matches('"')) {
                found.push(format!("{}: {text}", file.display()));
            }
        }
    }
    found
}

#[test]
fn the_folder_of_a_protected_run_holds_no_text() {
    let lab = Lab::new();
    let run = lab.run("guarded.toml", &[]);
    for format in ["csv", "xlsx", "jsonl"] {
        lab.ends(&["export", &run, "--format", format], 0);
    }
    lab.ends(&["export", &run, "--format", "result-json", "--password", "pass"], 0);
    let texts = lab.texts(&run);
    assert!(files(&lab.folder(&run)).len() >= 7);
    assert_eq!(leaks(&lab.folder(&run), &texts), Vec::<String>::new());

    // The same exercises unprotected: the search finds what is there, in the log and in the files at the end.
    let open = lab.run("open.toml", &[]);
    let found = leaks(&lab.folder(&open), &lab.texts(&open));
    assert!(
        found.iter().any(|leak| leak.contains("kglog"))
            && found.iter().any(|leak| leak.contains("_result.json"))
    );
}

#[test]
fn an_archive_of_a_protected_run_holds_no_text_and_the_run_opens_elsewhere() {
    let lab = Lab::new();
    let run = lab.run("guarded.toml", &[]);
    let texts = lab.texts(&run);
    lab.ends(&["archive", &run, "--out", "guarded.tar.zst"], 0);
    let elsewhere = lab.path("elsewhere");
    let head = results::archive::unpack(&lab.path("guarded.tar.zst"), &elsewhere).unwrap();
    assert!(head.files.iter().any(|file| file.path.ends_with(".kgpack")));
    assert_eq!(leaks(&elsewhere, &texts), Vec::<String>::new());
    // Without the pack that its configuration names.
    fs::remove_file(lab.path("guarded.kgpack")).unwrap();
    let arguments = ["export", run.as_str(), "--format", "csv", "--form", "wide", "--data-dir", "elsewhere"];
    lab.ends(&arguments, 0);
    lab.ends(&["verify", &run, "--data-dir", "elsewhere"], 0);
    lab.ends(&["verify", "guarded.tar.zst"], 0);
    lab.ends(&["archive", &run, "--data-dir", "elsewhere"], 0);
}

#[test]
fn readers_of_a_protected_run_open_it_unasked_and_redact() {
    let lab = Lab::new();
    let run = lab.run("guarded.toml", &[]);
    lab.ends(&["verify", &run], 0);
    // Nothing is left to ask: the records that are there were read.
    let (_, talk) = lab.ends(&["resume", &run], 0);
    assert!(talk.contains("16 dialogues scored"), "{talk}");

    let dialogue = "good/Text2SparqlExecEvalListOrganizational/0";
    for more in [&[][..], &["--json"]] {
        let arguments = [&["show", run.as_str(), dialogue], more].concat();
        let (shown, _) = lab.ends(&arguments, 0);
        assert!(!shown.contains("quillmere :hosts") && shown.contains(" characters]"), "{shown}");
        assert!(shown.contains("answerParse"), "scores are shown: {shown}");
        let (shown, _) = lab.ends(&[&arguments[..], &["--plaintext"]].concat(), 0);
        assert!(shown.contains("quillmere :hosts"), "{shown}");
    }
}

/// The texts of a report, as its script unpacks them.
fn texts_of(page: &str) -> String {
    let blocks = page.split("id=\"block-").skip(1);
    let packed = blocks.map(|part| part.split_once('>').unwrap().1.split_once('<').unwrap().0);
    let unpacked = |block: &str| {
        let (bytes, mut text) = (STANDARD.decode(block).unwrap(), String::new());
        ZlibDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        text
    };
    packed.map(unpacked).collect()
}

#[test]
fn what_was_expected_is_as_protected_as_texts_and_a_pack_that_is_gone_is_named() {
    let lab = Lab::new();
    let dialogue = "good/Text2SparqlExecEvalListOrganizational/0";
    let guarded = lab.run("guarded.toml", &[]);
    let (shown, _) = lab.ends(&["show", &guarded, dialogue], 0);
    assert!(shown.contains("expected and extracted: protected; --plaintext shows them"), "{shown}");
    assert!(!shown.contains("SELECT") && !shown.contains(":bittern"), "{shown}");
    let (shown, _) = lab.ends(&["show", &guarded, dialogue, "--plaintext"], 0);
    let (head, _) = shown.split_once("--- prompt 1").unwrap();
    for text in ["extracted query", "SELECT ?bird WHERE { :quillmere :hosts ", ":bittern\n:spoonbill"] {
        assert!(head.contains(text), "`{text}`: {shown}");
    }

    let report = |run: &str, more: &[&str]| {
        lab.ends(&[&["report", run, "--out", "page.html"], more].concat(), 0);
        texts_of(&fs::read_to_string(lab.path("page.html")).unwrap())
    };
    let texts = report(&guarded, &[]);
    assert!(texts.contains("the exercises are protected") && !texts.contains(":bittern"), "{texts}");
    let texts = report(&guarded, &["--plaintext"]);
    assert!(texts.contains("\"expected\":") && texts.contains(":bittern\\n:spoonbill"), "{texts}");

    let open = lab.run("open.toml", &[]);
    let (shown, _) = lab.ends(&["show", &open, dialogue], 0);
    assert!(shown.contains("extracted query"), "{shown}");
    assert!(report(&open, &[]).contains(":bittern\\n:spoonbill"));
    fs::remove_file(lab.path("open.kgpack")).unwrap();
    let kept = lab.path("kgfleet-data").join("packs");
    if kept.exists() {
        fs::remove_dir_all(kept).unwrap();
    }
    let (shown, _) = lab.ends(&["show", &open, dialogue], 0);
    assert!(shown.contains("expected and extracted: not known: the pack of run"), "{shown}");
    assert!(report(&open, &[]).contains("the pack of run"));
    assert!(shown.contains("--- prompt 1 (first) ---"), "the rest is shown: {shown}");
}

#[test]
fn result_files_of_a_protected_run_are_encrypted_or_asked_for_in_the_clear() {
    let lab = Lab::new();
    let (_, talk) = lab.ends(&["run", "guarded.toml", "--export", "result-json"], 2);
    assert!(talk.contains("--password") && talk.contains("--plaintext"), "{talk}");
    assert!(!lab.path("kgfleet-data").exists(), "refused before anything is asked");

    let run = lab.run("guarded.toml", &["--password", "reed", "--export", "result-json"]);
    let (_, talk) = lab.ends(&["export", &run, "--format", "result-json"], 2);
    assert!(talk.contains("--password") && talk.contains("--plaintext"), "{talk}");
    lab.ends(&["export", &run, "--format", "result-json", "--password", ""], 2);

    let sealed = lab.folder(&run).join("exports").join(format!("{run}_result.zip"));
    let texts = lab.texts(&run);
    assert_eq!(leaks(sealed.parent().unwrap(), &texts), Vec::<String>::new());
    let document = discover(std::slice::from_ref(&sealed), Some("reed")).remove(0).unwrap();
    assert!(document.is_protected());
    let mut records = 0;
    document
        .read(|record| {
            assert!(record.unwrap().record.answers().count() > 0);
            records += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(records, 16);

    lab.ends(&["export", &run, "--format", "result-json", "--plaintext", "--out", "clear.json"], 0);
    let clear = fs::read_to_string(lab.path("clear.json")).unwrap();
    assert!(clear.contains("SELECT ?bird WHERE { :quillmere :hosts ?bird }"));
}

#[test]
fn without_its_key_a_protected_run_is_checked_and_not_read() {
    let lab = Lab::new();
    let run = lab.run("guarded.toml", &[]);
    let path = lab.folder(&run).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let key = manifest["log_key"].as_str().unwrap().to_owned();
    assert!(key.len() > 64, "{key}");

    // Wrapped with another password.
    let cipher = results::log::LogCipher::generate();
    let stranger = results::password::Password::new("theirs");
    manifest["log_key"] = results::run_key::wrap(&cipher, &stranger).unwrap().into();
    fs::write(&path, manifest.to_string()).unwrap();
    let (checked, talk) = lab.ends(&["verify", &run], 1);
    assert!(
        checked.contains("18 lines are encrypted and intact") && checked.contains("is sound"),
        "{checked}"
    );
    assert!(talk.contains("does not open with this password"), "{talk}");
    let (_, talk) = lab.ends(&["show", &run, "good/Text2SparqlExecEvalListOrganizational/0"], 3);
    assert!(talk.contains("does not open with this password"), "{talk}");
    lab.ends(&["status"], 0);

    // Without any, nothing is appended in the clear.
    manifest.as_object_mut().unwrap().remove("log_key");
    fs::write(&path, manifest.to_string()).unwrap();
    let (_, talk) = lab.ends(&["show", &run, "good/Text2SparqlExecEvalListOrganizational/0"], 3);
    assert!(talk.contains("`log_key`"), "{talk}");
    fs::remove_file(lab.folder(&run).join("log/00000001-00000001.kglog")).unwrap();
    let left = files(&lab.folder(&run).join("log"));
    let (_, talk) = lab.ends(&["resume", &run], 2);
    assert!(talk.contains("no key to encrypt its records with"), "{talk}");
    assert_eq!(files(&lab.folder(&run).join("log")), left, "not even an empty log");
}
