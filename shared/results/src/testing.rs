//! Invented records for tests.

use domain::{DialogueKey, FailureCause, Outcome, Record, RunId};
use serde_json::{Map, Value, json};

use crate::log::LogLine;
use crate::manifest::{MANIFEST_VERSION, PackUse, RunManifest, hash};

pub fn key(model: &str, iteration: u32) -> DialogueKey {
    DialogueKey { model: model.into(), task: "RdfFriendCount-turtle-1".into(), iteration }
}

/// A record whose texts depend on all its arguments, with the number of its iteration.
pub fn record(model: &str, iteration: u32, scored: bool) -> Record {
    numbered(iteration.into(), model, iteration, scored)
}

/// The [number](numbered) of a record.
pub fn number(record: &Record) -> u64 {
    record.provenance.seed
}

/// A record with a number of its own, so that several of one dialogue can be told apart.
pub fn numbered(number: u64, model: &str, iteration: u32, scored: bool) -> Record {
    let outcome = if scored {
        let scores = json!({"f1": f64::from(iteration) / 7.0, "mean": {"recall": 1}});
        let infos = json!({"answerPersonCount": 1, "said": "=so"});
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        Outcome::Scored { scores: map(scores), infos: map(infos) }
    } else {
        Outcome::Failed { cause: FailureCause::Timeout, message: "no answer within 60 s".into() }
    };
    serde_json::from_value(json!({
        "key": key(model, iteration),
        "attempt": {"id": format!("00000000-0000-7000-8000-{number:012}"), "generation": 1, "number": 1, "worker": "w-1"},
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
            "seed": number
        }
    }))
    .expect("a record")
}

/// A record as it is appended.
pub fn line(record: &Record) -> LogLine {
    LogLine::Record(serde_json::to_string(record).expect("a record").into())
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
