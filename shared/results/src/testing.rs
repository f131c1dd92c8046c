//! Invented records for tests.

use std::sync::Arc;

use domain::{DialogueKey, FailureCause, Outcome, Record, RunId};
use serde_json::{Map, Value, json};

use crate::log::LogEntry;
use crate::manifest::{MANIFEST_VERSION, PackUse, RunManifest, hash};

pub fn key(model: &str, iteration: u32) -> DialogueKey {
    DialogueKey { model: model.into(), task: "RdfFriendCount-turtle-1".into(), iteration }
}

/// An entry whose texts depend on all its arguments.
pub fn entry(ticket: u64, model: &str, iteration: u32, scored: bool) -> LogEntry {
    let outcome = if scored {
        let scores = json!({"f1": f64::from(iteration) / 7.0, "mean": {"recall": 1}});
        let infos = json!({"answerPersonCount": 1, "said": "=so"});
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        Outcome::Scored { scores: map(scores), infos: map(infos) }
    } else {
        Outcome::Failed { cause: FailureCause::Timeout, message: "no answer within 60 s".into() }
    };
    let record: Record = serde_json::from_value(json!({
        "key": key(model, iteration),
        "attempt": {"id": format!("00000000-0000-7000-8000-{ticket:012}"), "generation": 1, "number": 1, "worker": "w-1"},
        "started_at": "2025-01-01T00:00:00.000001Z",
        "ended_at": "2025-01-01T00:00:02.5Z",
        "rounds": [{
            "prompt": {"kind": "first", "text": format!("Who is known by most? ({iteration})")},
            "prompted_at": "2025-01-01T00:00:00.000002Z",
            "answer": {"text": format!("Zoë, says {model}\n"), "usage": {"prompt_tokens": 12, "completion_tokens": 5}},
            "answered_at": "2025-01-01T00:00:02Z"
        }],
        "outcome": outcome,
        "provenance": {
            "kgfleet": "0.1.0",
            "task": {"class": "RdfFriendCount", "version": "4.4", "case": "c", "pack": "own", "pack_hash": "ab", "scorer": "1"},
            "model": {"connector": "scripted", "requested": model},
            "sampling": {},
            "seed": ticket
        }
    }))
    .expect("a record");
    LogEntry { ticket, record }
}

/// An entry as writers are given it: its ticket, and its record as JSON.
pub fn line(entry: &LogEntry) -> (u64, Arc<str>) {
    (entry.ticket, serde_json::to_string(&entry.record).expect("a record").into())
}

pub fn manifest(run: &str) -> RunManifest {
    let configuration = json!({"models": ["m"]});
    RunManifest {
        version: MANIFEST_VERSION,
        revision: 1,
        run: RunId::new(run),
        created_at: "2025-01-01T00:00:00Z".parse().expect("a time"),
        kgfleet: "0.1.0".into(),
        configuration_hash: hash(&configuration),
        configuration,
        keyless_hash: None,
        plan_hash: "cd".into(),
        seed: 7,
        packs: vec![PackUse { name: "own".into(), hash: "ab".into() }],
        planned_dialogues: 3,
        protected: false,
        log_key: None,
        about: None,
        other: Map::new(),
    }
}
