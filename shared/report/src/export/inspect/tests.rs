//! What the logs hold; `cli/tests/it/inspecting.rs` has Inspect itself read them.

use domain::{FailureCause, TaskProvenance};
use results::testing;
use tempfile::TempDir;

use super::*;

const FILE: &str = "m_RdfFriendCount-turtle-1.eval";

fn headline(_: &TaskProvenance) -> &'static [&'static str] {
    &["f1"]
}

/// A dialogue about one of two cases.
fn record(model: &str, iteration: u32, scored: bool) -> Record {
    let mut record = testing::numbered(u64::from(iteration) + 1, model, iteration, scored);
    record.provenance.task.case = ["c", "d"][iteration as usize % 2].to_owned();
    record
}

/// A folder with the logs of these records, of a run that plans `iterations` of each model.
fn exported(records: &[Record], iterations: u32, cases: Option<usize>, texts: Texts) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut models: Vec<&str> = records.iter().map(|record| record.key.model.as_str()).collect();
    models.dedup();
    let planned =
        models.iter().flat_map(|model| (0..iterations).map(move |iteration| testing::key(model, iteration)));
    let mut manifest = testing::manifest("r");
    manifest.planned_dialogues = models.len() as u64 * u64::from(iterations);
    let options = TableOptions { manifest: &manifest, headline: &headline, texts };
    let read = records.iter().cloned().map(Ok);
    let written = write(folder.path(), options, &|_| cases, planned, read).unwrap();
    assert_eq!(written, records.len() as u64);
    folder
}

fn archive(folder: &TempDir, file: &str) -> zip::ZipArchive<File> {
    zip::ZipArchive::new(File::open(folder.path().join(file)).unwrap()).unwrap()
}

fn names(folder: &TempDir, file: &str) -> Vec<String> {
    archive(folder, file).file_names().map(|name| name.unwrap().into_owned()).collect()
}

fn member(folder: &TempDir, file: &str, name: &str) -> Value {
    let mut archive = archive(folder, file);
    let text = io::read_to_string(archive.by_name(name).unwrap()).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn files(folder: &TempDir) -> Vec<String> {
    let listed = fs::read_dir(folder.path()).unwrap();
    let mut files: Vec<String> =
        listed.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    files
}

#[test]
fn a_log_holds_dialogues_their_summaries_and_the_results() {
    let records = [record("m", 0, true), record("m", 1, true), record("m", 2, false), record("n", 0, true)];
    let folder = exported(&records, 3, Some(2), Texts::Keep);
    assert_eq!(files(&folder), [FILE, "n_RdfFriendCount-turtle-1.eval"]);
    assert_eq!(
        names(&folder, FILE),
        [
            "_journal/start.json",
            "samples/c_epoch_1.json",
            "samples/d_epoch_1.json",
            "samples/c_epoch_2.json",
            "summaries.json",
            "header.json"
        ]
    );
    let header = member(&folder, FILE, "header.json");
    assert_eq!((&header["status"], &header["version"]), (&json!("success"), &json!(2)));
    let results = &header["results"];
    assert_eq!((&results["total_samples"], &results["completed_samples"]), (&json!(3), &json!(2)));
    let score = &results["scores"][0];
    assert_eq!((&score["scored_samples"], &score["unscored_samples"]), (&json!(2), &json!(0)));
    // Of 0 and 1/7 both are 1/14.
    for metric in ["mean", "stderr"] {
        let value = score["metrics"][metric]["value"].as_f64().unwrap();
        assert!((value - 1.0 / 14.0).abs() < 1e-12, "{metric}: {value}");
    }
    assert_eq!(header["stats"]["model_usage"]["m"]["total_tokens"], 3 * 17);
    let eval = &header["eval"];
    assert_eq!((&eval["model"], &eval["task"]), (&json!("m"), &json!("RdfFriendCount-turtle-1")));
    assert_eq!((&eval["config"]["epochs"], &eval["dataset"]["samples"]), (&json!(2), &json!(2)));
    assert_eq!(member(&folder, FILE, "_journal/start.json")["eval"], *eval);

    let sample = member(&folder, FILE, "samples/d_epoch_1.json");
    assert_eq!(sample["scores"][SCORER]["value"], 1.0 / 7.0);
    assert_eq!(sample["scores"][SCORER]["metadata"], json!({ "mean.recall": 1 }));
    assert_eq!((&sample["id"], &sample["epoch"], &sample["target"]), (&json!("d"), &json!(1), &json!("")));
    assert_eq!(sample["input"], "Who is known by most? (1)");
    assert_eq!(sample["output"]["completion"], "Zoë, says m\n");
    let usage = &sample["output"]["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(12), &json!(5)));
    let roles: Vec<&Value> =
        sample["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert_eq!(sample["started_at"], "2025-01-01T00:00:00.000001Z");

    let summaries = member(&folder, FILE, "summaries.json");
    let summaries = summaries.as_array().unwrap();
    assert_eq!(summaries.len(), 3);
    assert_eq!(summaries[1]["scores"], json!({ SCORER: { "value": 1.0 / 7.0 } }));
    assert!(summaries.iter().all(|summary| summary.get("messages").is_none()));
    assert_eq!(summaries[1]["metadata"].get("infos"), None);
}

#[test]
fn a_failed_dialogue_has_an_error_and_an_unscored_one_neither_error_nor_score() {
    let mut silent = record("m", 0, false);
    silent.rounds.clear();
    let mut unread = record("m", 1, false);
    unread.outcome = Outcome::Unscored {
        cause: FailureCause::JudgeUnparseable,
        infos: domain::Infos::new(),
        message: "odd".into(),
    };
    let folder = exported(&[silent, unread], 2, Some(2), Texts::Keep);
    let failed = member(&folder, FILE, "samples/c_epoch_1.json");
    assert_eq!(failed["error"]["message"], "timeout: no answer within 60 s");
    assert_eq!((&failed["scores"], &failed["input"]), (&Value::Null, &json!("")));
    assert_eq!(failed.get("output"), None);
    let unscored = member(&folder, FILE, "samples/d_epoch_1.json");
    assert_eq!((&unscored["error"], &unscored["scores"]), (&Value::Null, &Value::Null));
    assert_eq!(unscored["metadata"]["message"], "odd");
    let results = &member(&folder, FILE, "header.json")["results"];
    assert_eq!((&results["completed_samples"], &results["total_samples"]), (&json!(1), &json!(2)));
    let score = &results["scores"][0];
    assert_eq!((&score["unscored_samples"], &score["metrics"]), (&json!(1), &json!({})));
    assert_eq!(member(&folder, FILE, "summaries.json")[0]["error"], "timeout: no answer within 60 s");
}

#[test]
fn a_log_is_a_success_when_every_planned_dialogue_has_a_record() {
    let records = [record("m", 0, true), record("m", 2, true), record("n", 0, true), record("n", 1, true)];
    let status = |folder: &TempDir, file: &str| member(folder, file, "header.json")["status"].clone();
    let folder = exported(&records, 2, None, Texts::Keep);
    assert_eq!(status(&folder, FILE), "success");
    let folder = exported(&records, 3, None, Texts::Keep);
    assert_eq!(status(&folder, FILE), "cancelled");
    assert_eq!(member(&folder, FILE, "header.json")["results"]["total_samples"], 3);
    // Without the plan nobody knows what is missing where.
    let mut manifest = testing::manifest("r");
    manifest.planned_dialogues = 5;
    let options = TableOptions { manifest: &manifest, headline: &headline, texts: Texts::Keep };
    let keys = records.iter().map(|record| record.key.clone());
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), options, &|_| None, keys, records.iter().cloned().map(Ok)).unwrap();
    assert_eq!(status(&folder, FILE), "cancelled");
    // Epochs come from the plan where it is known, and are counted elsewhere.
    assert!(names(&folder, FILE).contains(&"samples/c_epoch_2.json".to_owned()));
    let gap = exported(&[record("m", 2, true)], 3, Some(2), Texts::Keep);
    assert!(names(&gap, FILE).contains(&"samples/c_epoch_2.json".to_owned()));
}

#[test]
fn names_that_no_file_may_have_are_replaced_and_stay_apart() {
    let labels = ["../a b", "../a/b", "-a-B", "-a-b-2", "模型", &"long".repeat(100)];
    let mut records: Vec<Record> = labels.iter().map(|label| record(label, 0, true)).collect();
    records[0].provenance.task.case = "../é\u{85}%/x".to_owned();
    let folder = exported(&records, 1, Some(1), Texts::Keep);
    let found = files(&folder);
    let task = "RdfFriendCount-turtle-1";
    for name in ["-a-b_{}", "-a-b_{}-2", "-a-B_{}-3", "-a-b-2_{}", "--_{}"] {
        let name = name.replace("{}", task) + ".eval";
        assert!(found.contains(&name), "{name} is not among {found:?}");
    }
    assert_eq!(found.len(), labels.len());
    assert!(found.iter().all(|name| name.len() < 250 && !name.starts_with('.')), "{found:?}");
    let sample = "samples/..%2Fé%C2%85%25%2Fx_epoch_1.json";
    assert_eq!(names(&folder, "-a-b_RdfFriendCount-turtle-1.eval")[1], sample);
    let sample = member(&folder, "-a-b_RdfFriendCount-turtle-1.eval", sample);
    assert_eq!(sample["metadata"]["case"], "../é\u{85}%/x");
    assert_eq!(sample["scores"][SCORER]["value"], 0.0);
}

#[test]
fn equal_runs_give_equal_bytes_and_no_text_where_it_is_redacted() {
    let records = [record("m", 0, true), record("m", 1, false)];
    let bytes = |texts| fs::read(exported(&records, 2, Some(2), texts).path().join(FILE)).unwrap();
    assert_eq!(bytes(Texts::Keep), bytes(Texts::Keep));
    let folder = exported(&records, 2, Some(2), Texts::Redact);
    for name in names(&folder, FILE) {
        let text = member(&folder, FILE, &name).to_string();
        for secret in ["Zoë", "Who is known", "=so", "no answer within"] {
            assert!(!text.contains(secret), "{name}: {secret}");
        }
    }
    let sample = member(&folder, FILE, "samples/d_epoch_1.json");
    assert_eq!(sample["error"]["message"], "timeout: [21 characters]");
}

#[test]
fn a_record_that_cannot_be_read_ends_the_export_and_leaves_no_half_log() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = testing::manifest("r");
    let options = TableOptions { manifest: &manifest, headline: &headline, texts: Texts::Keep };
    let read = [Ok(record("m", 0, true)), Err(LogError::DiskFull { path: "log".into() })];
    let error = write(folder.path(), options, &|_| None, std::iter::empty(), read.into_iter()).unwrap_err();
    assert!(matches!(error, ExportError::Log(_)), "{error}");
    assert_eq!(files(&folder), Vec::<String>::new());
}
