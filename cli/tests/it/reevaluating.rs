//! `kgfleet reevaluate` on result files that are not as they should be: what is wrong is named with file and record, the
//! rest is evaluated.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use results::llmkgbench::{discover, writer};
use serde_json::{Value, json};

use crate::harness::{CHEAP_TASKS, Data, Finished};

/// Some input could not be used, the rest was.
const BAD_INPUT: i32 = 4;
/// Nothing could.
const INFRASTRUCTURE: i32 = 3;

/// A folder with one good result file, and the records in it.
struct Corpus {
    data: Data,
    folder: PathBuf,
    records: Vec<Value>,
}

impl Corpus {
    /// The export of a small run of this project's own exercises.
    fn new() -> Self {
        let data = Data::new();
        let mut arguments = vec!["run", "--iterations", "2", "--no-sandbox", "--export", "result-json"];
        arguments.extend(CHEAP_TASKS.iter().flat_map(|task| ["--task", task]));
        data.kgfleet(&arguments).expect(0);
        let run = data.run();
        let folder = data.path().join("corpus");
        std::fs::create_dir(&folder).unwrap();
        let good = folder.join("a-good_result.json");
        std::fs::copy(run.dir.exports().join(format!("{}_result.json", run.name())), &good).unwrap();
        let records: Vec<Value> = serde_json::from_slice(&std::fs::read(good).unwrap()).unwrap();
        assert_eq!(records.len(), 3 * CHEAP_TASKS.len() * 2);
        Self { data, folder, records }
    }

    fn good(&self) -> u64 {
        self.records.len() as u64
    }

    /// Puts a file beside the good one.
    fn add(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.folder.join(name), content).unwrap();
    }

    /// Puts a file of these records beside the good one.
    fn add_records(&self, name: &str, records: &[Value]) {
        self.add(name, serde_json::to_vec(records).unwrap());
    }

    /// Evaluates the folder.
    fn evaluate(&self, options: &[&str]) -> Finished {
        self.evaluate_path(&self.folder, options)
    }

    fn evaluate_path(&self, path: &Path, options: &[&str]) -> Finished {
        let arguments = [&["reevaluate", path.to_str().unwrap(), "--json"], options].concat();
        self.data.kgfleet(&arguments)
    }
}

/// `dialogues`, `record_errors` and `file_errors` of a summary.
fn counts(finished: &Finished) -> (u64, u64, u64) {
    let summary = finished.json();
    let count = |field: &str| summary[field].as_u64().unwrap();
    (count("dialogues"), count("record_errors"), count("file_errors"))
}

#[test]
fn a_good_corpus_agrees_with_itself_and_can_be_held_to_it() {
    let corpus = Corpus::new();
    let finished = corpus.evaluate(&["--require-agreement", "1"]).expect(0);
    assert_eq!(counts(&finished), (corpus.good(), 0, 0));

    let mut record = corpus.records[0].clone();
    record["scores"]["f1"] = json!(0.123);
    corpus.add_records("b-changed_result.json", &[record]);
    corpus.evaluate(&[]).expect(0);
    let short = corpus.evaluate(&["--require-agreement", "1"]).expect(1);
    short.says(&["is below the required 100 %"]);
}

#[test]
fn what_cannot_be_read_is_named_with_file_and_record_and_the_rest_is_evaluated() {
    let corpus = Corpus::new();
    let text = serde_json::to_vec_pretty(&corpus.records).unwrap();
    corpus.add("b-cut_result.json", &text[..text.len() / 2]);
    corpus.add("c-object_result.json", "{\"a\": 1}");
    corpus.add("d-no.zip", "no zip at all");
    let document = discover(&[corpus.folder.join("a-good_result.json")], None).remove(0).unwrap();
    let locked = writer::Archive { member: "locked_result.json", password: "right" };
    writer::write(&corpus.folder.join("e-locked.zip"), Some(locked), |list| {
        let mut outcome = Ok(());
        let read = document.read(|record| {
            outcome = list.write(&record.unwrap().record);
            std::ops::ControlFlow::Continue(())
        });
        read.unwrap();
        outcome
    })
    .unwrap();
    let mut unknown = corpus.records[0].clone();
    unknown["taskInfo"]["taskId"] = json!("TeaLeafReading");
    corpus.add_records("f-odd_result.json", &[unknown, json!(["no", "record"]), corpus.records[0].clone()]);

    let right = corpus.evaluate(&["--password", "right"]).expect(BAD_INPUT);
    let (dialogues, record_errors, file_errors) = counts(&right);
    // The good file, the archive, the good record among odd ones, and what the cut file holds.
    assert!((2 * corpus.good() + 2..3 * corpus.good()).contains(&dialogues), "{dialogues} dialogues");
    assert_eq!((record_errors, file_errors), (2, 3));
    right.says(&[
        "b-cut_result.json: is truncated: it ends at byte",
        "c-object_result.json: is not a JSON list of records: byte 0 is `{`",
        "d-no.zip: is not a zip archive",
        "f-odd_result.json: record 0: ",
        "TeaLeafReading",
        "f-odd_result.json: record 1: ",
    ]);
    let archive = corpus.folder.join("e-locked.zip");
    let wrong = corpus.evaluate_path(&archive, &["--password", "wrong"]).expect(INFRASTRUCTURE);
    wrong.says(&["e-locked.zip", "cannot be decrypted: the password is wrong"]);
    corpus.evaluate_path(&archive, &[]).expect(INFRASTRUCTURE).says(&["is encrypted: a password is needed"]);
    corpus.evaluate_path(&corpus.folder.join("none.json"), &[]).expect(INFRASTRUCTURE).says(&["none.json"]);
}

#[test]
fn a_pack_judges_its_own_records_with_its_named_graphs() {
    const TASK: &str = "Text2SparqlExecEvalListBeastiary-turtle-subgraph";
    let data = Data::new();
    data.kgfleet(&["run", "--iterations", "2", "--no-sandbox", "--export", "result-json", "--task", TASK])
        .expect(0);
    let run = data.run();
    let file = run.dir.exports().join(format!("{}_result.json", run.name()));
    let file = file.to_str().unwrap();
    let records: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for key in ["entityLabelMapping", "iris", "subGraph", "subSchema"] {
        assert!(records[0]["taskData"].get(key).is_some(), "published cases have `{key}`");
    }

    let without = data.kgfleet(&["reevaluate", file, "--json"]).expect(INFRASTRUCTURE);
    assert!(without.stderr.contains("`bestiary`"), "the graph is named: {}", without.stderr);

    let verdicts = data.path().join("verdicts.jsonl");
    let options = ["--pack", "core", "--require-agreement", "1", "--verdicts", verdicts.to_str().unwrap()];
    let with = data.kgfleet(&[&["reevaluate", file, "--json"], &options[..]].concat()).expect(0);
    let (dialogues, ..) = counts(&with);
    assert!(dialogues > 0);
    let lines = std::fs::read_to_string(verdicts).unwrap();
    assert_eq!(lines.lines().count() as u64, dialogues, "a line for each record");
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["recorded"], first["ours"]);
    assert_eq!(first["task"], TASK);
}

#[test]
fn a_run_that_is_being_written_is_not_judged_again_and_of_a_damaged_one_the_rest_is() {
    let data = Data::new();
    data.kgfleet(&["run", "--iterations", "2", "--no-sandbox", "--task", CHEAP_TASKS[0]]).expect(0);
    let old = data.run();

    let writing = old.dir.lock().unwrap();
    data.kgfleet(&["rejudge", old.name()]).expect(INFRASTRUCTURE).says(&[old.name(), "process"]);
    drop(writing);
    data.kgfleet(&["rejudge", old.name(), "--pack", "none.kgpack"]).expect(2).says(&["none.kgpack"]);
    data.kgfleet(&["rejudge", "nobody"]).expect(2).says(&["nobody"]);

    let segments = std::fs::read_dir(old.dir.log()).unwrap().map(|entry| entry.unwrap().path());
    let segment =
        segments.into_iter().find(|path| path.extension().is_some_and(|end| end == "kglog")).unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&segment, bytes).unwrap();
    data.kgfleet(&["rejudge", old.name()])
        .expect(BAD_INPUT)
        .says(&["the record log is damaged", "are not judged"]);
}

#[test]
fn a_judging_again_that_is_killed_leaves_no_half_run() {
    let data = Data::new();
    data.kgfleet(&["run", "--iterations", "100", "--no-sandbox", "--task", CHEAP_TASKS[0]]).expect(0);
    let old = data.run();
    let dialogues = old.entries().len();
    for attempt in 0..20 {
        let mut judging = data
            .command(&["rejudge", old.name()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed somewhere between its start and its end, each time a little later.
        std::thread::sleep(Duration::from_millis(15 * attempt));
        let _ = (judging.kill(), judging.wait());
        for run in data.runs() {
            assert_eq!(run.entries().len(), dialogues, "{} after attempt {attempt}", run.name());
        }
    }
}
