//! Durable commits, replay of a log, and reading of result files. `cargo bench -p results`.
#![allow(clippy::unwrap_used, reason = "benchmarks fail by panicking")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::ops::ControlFlow;

use domain::Record;
use harness::timing::timed;
use results::llmkgbench::discover;
use results::log::{CommitQueue, LogCipher, LogLine, LogOptions, LogReader, LogWriter};
use serde_json::json;

/// Records of one measurement.
const RECORDS: u64 = 5_000;

/// Callers that wait for their commit at the same time, as many as dialogues end together.
const CALLERS: u64 = 256;

/// A record of ordinary size: a prompt of 1 500 characters, three answers' worth of scores.
fn record(number: u64) -> Record {
    let mut prompt = String::new();
    for n in 0..30 {
        writeln!(prompt, ":person-{n} foaf:knows :person-{} , :person-{number} .", (n * 7 + number) % 30)
            .unwrap();
    }
    let record = json!({
        "key": {"model": "m", "task": "RdfFriendCount-turtle-1", "iteration": number},
        "attempt": {"id": format!("{number:036}"), "generation": 1, "number": 1, "worker": "w-1"},
        "started_at": "2025-01-01T00:00:00.000001Z",
        "ended_at": "2025-01-01T00:00:02.5Z",
        "rounds": [{
            "prompt": {"kind": "first", "text": prompt},
            "prompted_at": "2025-01-01T00:00:00.000002Z",
            "answer": {"text": format!("It is :person-{number}."), "usage": {"prompt_tokens": 700, "completion_tokens": 9}},
            "answered_at": "2025-01-01T00:00:02Z"
        }],
        "outcome": {"state": "scored", "scores": {"f1": 0.5, "recall": 1, "precision": 1, "brevity": 0.25}, "infos": {"persons": 30}},
        "provenance": {
            "kgfleet": "0.1.0",
            "task": {"class": "RdfFriendCount", "version": "4.4", "case": "c", "pack": "own", "pack_hash": "ab", "scorer": "1"},
            "model": {"connector": "scripted", "requested": "m"},
            "sampling": {},
            "seed": number
        }
    });
    serde_json::from_value(record).unwrap()
}

/// Commits all records, [`CALLERS`] at a time.
async fn commit_all(records: &[Record], queue: &CommitQueue) {
    let callers = (0..CALLERS).map(|caller| {
        let queue = queue.clone();
        let mine: Vec<Record> =
            records.iter().filter(|record| record.provenance.seed % CALLERS == caller).cloned().collect();
        tokio::spawn(async move {
            for record in mine {
                let json = serde_json::to_string(&record).unwrap();
                queue.commit_batch(vec![LogLine::Record(json.into())]).await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

fn main() {
    commit();
    result_files();
}

fn commit() {
    let records: Vec<Record> = (0..RECORDS).map(record).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let kinds = [("", None), (", encrypted", Some(LogCipher::generate()))];
    for (kind, cipher) in kinds {
        let options = || LogOptions { cipher: cipher.clone(), ..LogOptions::default() };
        timed(&format!("{RECORDS} durable commits, {CALLERS} callers{kind}"), None, || {
            let folder = tempfile::tempdir().unwrap();
            let writer = LogWriter::open(folder.path(), options()).unwrap();
            let (queue, thread) = CommitQueue::start(writer).unwrap();
            runtime.block_on(commit_all(&records, &queue));
            drop(queue);
            thread.join();
        });
        let folder = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::open(folder.path(), options()).unwrap();
        records.iter().for_each(|record| writer.append(record).unwrap());
        writer.commit().unwrap();
        timed(&format!("replay of {RECORDS} records{kind}"), None, || {
            let reader = LogReader::open(folder.path(), cipher.as_ref()).unwrap();
            reader.for_each(|item| drop(black_box(item.unwrap())));
        });
    }
}

fn result_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x_result.json");
    let record = json!({
        "modelId": "GPT--m--m",
        "taskInfo": {"taskId": "RdfFriendCount", "version": "4.4"},
        "scores": {"f1": 0.5}, "info": {},
        "interactions": [["prompt", "t", ":a foaf:knows :b .\n".repeat(600)], ["response", "t", "Zoë"]]
    });
    std::fs::write(&path, serde_json::to_vec_pretty(&vec![record; 520]).unwrap()).unwrap();
    let document = discover(std::slice::from_ref(&path), None).remove(0).unwrap();
    timed("read a result file of 520 records", None, || {
        document.read(|item| {
            black_box(item.unwrap());
            ControlFlow::Continue(())
        })
    });
}
