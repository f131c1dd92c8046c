//! `kgfleet run` without arguments, and everything that can be done with its result.

use std::path::Path;

use serde_json::Value;
use vllm_sim::{ModelConfig, SimConfig};

use crate::harness::{Data, NT_TASK, Server};

/// Three simulated models, five iterations of each task.
const TASKS: usize = 26;
const DIALOGUES: usize = TASKS * 3 * 5;

/// Magic bytes of the binary export format.
const ZIP: &[u8] = b"PK";

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_run_without_arguments_completes_and_everything_can_be_read_back() {
    let data = Data::new();
    data.kgfleet(&["plan", "quick"]).expect(0).prints(&["sim-strong", "390"]);
    let finished = data.kgfleet(&["run"]).expect(0);
    let finished = finished.says(&["390 dialogues scored, 0 failed", "_result.json (390 dialogues)", ".csv"]);
    let between_rules = finished.stdout.lines().skip_while(|line| !line.starts_with("---")).skip(1);
    let rows = between_rules.take_while(|line| !line.starts_with("---"));
    assert_eq!(rows.count(), TASKS, "a row per task in {finished}");
    let finished = finished.prints(&["sim-strong", "sim-middling", "sim-weak", "mean of tasks"]);
    assert!(!finished.stdout.contains("failed"), "{finished}");

    let run = data.run();
    let (name, exports) = (run.name(), run.dir.exports());
    assert_eq!(run.records().len(), DIALOGUES);
    assert!(run.records().values().all(|entry| entry.outcome.is_scored()));

    data.kgfleet(&["verify", name])
        .expect(0)
        .prints(&["390 dialogues: 390 scored, 0 failed", "the log is sound"]);
    let verified = data.kgfleet(&["verify", name, "--json"]).expect(0).json();
    assert_eq!((&verified["sound"], &verified["missing"]), (&Value::Bool(true), &Value::from(0)));

    let listed = data.kgfleet(&["status", "--json"]).expect(0).json();
    assert_eq!(listed["run"], name);
    assert_eq!((&listed["state"], &listed["planned"]), (&Value::from("finished"), &Value::from(DIALOGUES)));
    data.kgfleet(&["status"]).expect(0).prints(&[name, "quick", "finished"]);

    let key = "sim-strong/RdfFriendCount-nt-1/2";
    let key_parts = ["--- prompt 1 (first) ---", "--- answer 1", "--- scores ---", "\"f1\""];
    data.kgfleet(&["show", name, key]).expect(0).prints(&key_parts);
    let shown = data.kgfleet(&["show", name, key, "--json"]).expect(0).json();
    assert_eq!(shown["key"]["iteration"], 2);
    data.kgfleet(&["show", name, "sim-strong/RdfFriendCount-nt-1/5"])
        .expect(2)
        .says(&["no record of dialogue"]);

    for format in ["result-json", "csv", "xlsx", "jsonl"] {
        data.kgfleet(&["export", name, "--format", format]).expect(0).says(&["(390 dialogues)"]);
    }
    let file = |extension: &str| exports.join(format!("{name}{extension}"));
    let results: Vec<Value> = serde_json::from_str(&text(&file("_result.json"))).unwrap();
    assert_eq!(results.len(), DIALOGUES);
    for field in ["taskInfo", "interactions", "scores", "info", "modelId"] {
        assert!(results.iter().all(|result| result.get(field).is_some()), "{field}");
    }
    let lines = text(&file(".jsonl"));
    assert_eq!(lines.lines().count(), DIALOGUES);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["run"] == name));
    let table = text(&file(".csv"));
    assert!(table.lines().count() > DIALOGUES, "a row per dialogue and score");
    assert!(std::fs::read(file(".xlsx")).unwrap().starts_with(ZIP));

    // Re-evaluation follows the published defects and knows nothing of packs: exercises whose graph is named by its case
    // cannot be judged there and are told one by one, all others must come out as the run judged them.
    let file = file("_result.json");
    let again = data.kgfleet(&["reevaluate", file.to_str().unwrap(), "--json"]);
    let by_name = again.stderr.matches("the case needs the graph").count();
    let again = again.expect(4).json();
    assert!(by_name > 0);
    let count = |field: &str| again[field].as_u64().unwrap();
    assert_eq!(count("dialogues") + count("record_errors"), DIALOGUES as u64);
    assert!(count("dialogues") >= 300, "{again}");
    assert_eq!(count("dialogues_score_equal"), count("dialogues"), "{again}");
    assert_eq!((count("score_equal"), count("equal")), (count("score_values"), count("values")), "{again}");

    data.kgfleet(&["rm", name]).expect(0).says(&["removed"]);
    assert!(data.runs().is_empty() && !run.dir.path().exists());
}

#[test]
fn several_models_at_one_server_are_asked_alike() {
    let data = Data::new();
    let server = Server::with(SimConfig::new(["a", "b"].map(ModelConfig::new).to_vec()));
    let run = ["run", "--endpoint", &server.url(), "--task", NT_TASK, "--iterations", "2"];
    let models = ["--model", "a", "--model", "b", "--temperature", "0.5", "--max-tokens", "77"];
    data.kgfleet(&[&run[..], &models].concat()).expect(0);
    let records = data.run().records();
    let asked: Vec<String> = records.keys().map(|key| key.model.to_string()).collect();
    assert_eq!(asked, ["a", "a", "b", "b"]);
    for entry in records.values() {
        let sampling = &entry.provenance.sampling;
        assert_eq!((sampling.temperature, sampling.top_p, sampling.max_tokens), (Some(0.5), None, Some(77)));
    }
    data.kgfleet(&[&run[..], &["--model", "a", "--temperature", "3"]].concat())
        .expect(2)
        .says(&["temperature"]);
    data.kgfleet(&["run", "--temperature", "1"]).expect(2).says(&["--endpoint"]);
}

#[test]
fn a_written_configuration_runs_and_is_not_written_over() {
    let data = Data::new();
    let server = Server::with(SimConfig::new(vec![ModelConfig::new("a")]));
    let file = data.path().join("mine.toml");
    let file = file.to_str().unwrap();
    let init = ["init", file, "--endpoint", &server.url(), "--model", "a"];
    data.kgfleet(&init).expect(0).says(&["kgfleet plan"]);
    let written = text(Path::new(file));
    data.kgfleet(&init).expect(2).says(&["is there already"]);
    assert_eq!(text(Path::new(file)), written);
    data.kgfleet(&["plan", file]).expect(0).prints(&["lists it", "disk: records in ", ": about ", " free"]);
    data.kgfleet(&["run", file, "--task", NT_TASK, "--limit", "2"]).expect(0);
    assert_eq!(data.run().records().len(), 2);
    data.kgfleet(&["init", "other.toml", "--model", "a\"b"]).expect(2).says(&["--model"]);
}
