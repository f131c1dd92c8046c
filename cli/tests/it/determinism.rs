//! Equal seeds give equal records, with a simulator that answers by seed, in whatever order dialogues run.

use std::collections::BTreeMap;
use std::path::Path;

use domain::{Attempt, DialogueKey, Record, RecordId, WorkerId};
use jiff::Timestamp;

use crate::harness::Data;

/// Three simulated models, 26 tasks, 2 iterations.
const DIALOGUES: usize = 156;

/// The records of a run with this seed, without what may differ.
fn records(seed: &str, how: &[&str]) -> BTreeMap<DialogueKey, Record> {
    let data = Data::new();
    let arguments = [&["run", "--iterations", "2", "--seed", seed, "--export", "jsonl"], how].concat();
    data.kgfleet(&arguments).expect(0).says(&[".jsonl (156 dialogues)"]);
    let run = data.run();
    timeless(&run.dir.exports().join(format!("{}.jsonl", run.name())))
}

/// The records of an export, without what may differ in one process: times, attempts and the simulator's port.
pub fn timeless(exported: &Path) -> BTreeMap<DialogueKey, Record> {
    let lines = std::fs::read_to_string(exported).unwrap();
    let records = lines.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let record = without_times(serde_json::from_value(line["record"].take()).unwrap());
        (record.key.clone(), record)
    });
    records.collect()
}

fn without_times(mut record: Record) -> Record {
    let worker = WorkerId::new("any");
    record.attempt = Attempt { id: RecordId::new("any"), generation: 0, number: 0, worker };
    let endpoint = record.provenance.model.endpoint.replace("any".to_owned());
    assert!(endpoint.is_some_and(|endpoint| endpoint.starts_with("http://127.0.0.1:")));
    for time in [&mut record.started_at, &mut record.ended_at] {
        *time = Timestamp::UNIX_EPOCH;
    }
    for round in &mut record.rounds {
        assert!(round.failed_calls.is_empty());
        (round.prompted_at, round.answered_at) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
    }
    record
}

#[track_caller]
fn assert_same(one: &BTreeMap<DialogueKey, Record>, other: &BTreeMap<DialogueKey, Record>, how: &str) {
    for (key, record) in one {
        assert_eq!(Some(record), other.get(key), "{key} differs {how}");
    }
    assert_eq!(one.len(), other.len(), "{how}");
}

/// The name of a scorer, and its limits without those of the sandbox.
fn without_sandbox(scorer: &str) -> (&str, serde_json::Value) {
    let (name, limits) = scorer.split_once(' ').unwrap();
    let mut limits: serde_json::Value = serde_json::from_str(limits).unwrap();
    limits.as_object_mut().unwrap().remove("sandbox").expect("a scorer names its sandbox, or null");
    (name, limits)
}

#[test]
fn records_are_equal_at_any_concurrency_and_in_or_out_of_the_sandbox() {
    let one = records("7", &["--concurrency", "1"]);
    assert_eq!(one.len(), DIALOGUES);
    assert_same(&one, &records("7", &["--concurrency", "256"]), "at any concurrency");

    // The scorer's version names the limits of the sandbox, where there is one. All else is equal.
    let mut unconfined = records("7", &["--concurrency", "16", "--no-sandbox"]);
    for (key, record) in &mut unconfined {
        let scorer = &one[key].provenance.task.scorer;
        assert_eq!(without_sandbox(scorer), without_sandbox(&record.provenance.task.scorer), "{key}");
        assert_ne!(*scorer, record.provenance.task.scorer, "{key}");
        record.provenance.task.scorer.clone_from(scorer);
    }
    assert_same(&one, &unconfined, "in or out of the sandbox");

    // The comparison can fail: another seed gives other records.
    let other = records("8", &["--no-sandbox"]);
    assert!(one.iter().all(|(key, record)| record.provenance.seed != other[key].provenance.seed));
    assert!(one.iter().any(|(key, record)| record.outcome != other[key].outcome));
}
