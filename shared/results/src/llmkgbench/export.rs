//! kgfleet's records in the format of LLM-KG-Bench 3, with the same keys in the same order.

use std::time::Duration;

use domain::{Outcome, Record};
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::python_time;
use super::record::ResultRecord;

/// Metadata of a task in result files that records do not contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskMeta {
    /// Task class as published, such as `RdfFriendCount`.
    pub task_id: String,
    /// Task class with parameters, such as `RdfFriendCount-turtle-1`.
    pub task_label: String,
    /// Version of the class.
    pub version: String,
    pub task_parameter: Map<String, Value>,
    /// The program that produced the result; LLM-KG-Bench writes the commit of its code.
    pub git_commit: String,
    /// The case, with the field names of `condensedTaskData`.
    pub task_data: Map<String, Value>,
    /// The requested size, if the task has one.
    pub target_size: Option<u64>,
    /// The estimated size in code points, if the class has one.
    pub estimated_size: Option<u64>,
}

/// A record as written by LLM-KG-Bench, with times in `zone` (LLM-KG-Bench uses local time and does not name the zone).
///
/// `None` for a dialogue without scores: these files cannot represent one, and zeros would be wrong. The caller reports
/// how many were left out.
pub fn from_record(record: &Record, task: &TaskMeta, zone: &TimeZone) -> Option<ResultRecord> {
    let Outcome::Scored { scores, infos } = &record.outcome else { return None };
    let model = &record.provenance.model;
    let reported = model.reported.as_deref().unwrap_or(&model.requested);
    let mut interactions = Vec::with_capacity(2 * record.rounds.len());
    let mut code_points = 0;
    for round in &record.rounds {
        for (speaker, at, text) in [
            ("prompt", round.prompted_at, &round.prompt.text),
            ("response", round.answered_at, &round.answer.text),
        ] {
            code_points += text.chars().count();
            interactions.push(json!([speaker, python_time::local_time(at, zone), text]));
        }
    }
    // LLM-KG-Bench stops its clock at the last answer, before evaluation.
    let ended = record.rounds.last().map_or(record.ended_at, |round| round.answered_at);
    let length = Duration::try_from(ended.duration_since(record.started_at)).unwrap_or_default();
    let value = json!({
        "startTime": python_time::local_time(record.started_at, zone),
        "reevalOriginalTime": null,
        "modelId": format!("{}--{}--{reported}", model.connector, model.requested),
        "taskInfo": {
            "taskId": task.task_id,
            "taskLabel": task.task_label,
            "version": task.version,
            "taskParameter": task.task_parameter,
            "gitCommit": task.git_commit,
            "condensedTaskData": task.task_data,
        },
        "taskSizeInfo": {
            "targetSize": task.target_size,
            "estimatedSize": task.estimated_size,
            "actualSize": code_points,
        },
        "scores": scores,
        "info": infos,
        "taskData": task.task_data,
        "interactions": interactions,
        "duration": python_time::duration(length),
    });
    // Every field was written above, so this is always `Some`.
    ResultRecord::from_value(value).ok()
}

#[cfg(test)]
mod tests {
    use domain::{FailureCause, Infos, Scores};

    use super::*;

    fn record(outcome: &Outcome) -> Record {
        let value = json!({
            "key": {"model": "tiny", "task": "RdfFriendCount-turtle-1", "iteration": 0},
            "attempt": {"id": "x", "generation": 1, "number": 1, "worker": "w"},
            "started_at": "2025-01-01T00:00:00.000001Z",
            "ended_at": "2025-01-01T00:00:09Z",
            "rounds": [{
                "prompt": {"kind": "first", "text": "Wie heißt er?"},
                "prompted_at": "2025-01-01T00:00:00.000002Z",
                "answer": {"text": "Zoë"},
                "answered_at": "2025-01-01T00:00:02.5Z"
            }],
            "outcome": outcome,
            "provenance": {
                "kgfleet": "0.1.0",
                "task": {"class": "RdfFriendCount", "version": "4.4", "case": "0", "pack": "p", "pack_hash": "h", "scorer": "1"},
                "model": {"connector": "openai-compatible", "requested": "tiny"},
                "sampling": {},
                "seed": 1
            }
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn keys_come_in_the_published_order_with_sizes_in_code_points() {
        let scored = record(&Outcome::Scored { scores: Scores::new(), infos: Infos::new() });
        let exported = from_record(&scored, &TaskMeta::default(), &TimeZone::UTC).unwrap();
        let keys: Vec<&str> = exported.fields().keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "startTime",
                "reevalOriginalTime",
                "modelId",
                "taskInfo",
                "taskSizeInfo",
                "scores",
                "info",
                "taskData",
                "interactions",
                "duration"
            ]
        );
        assert_eq!(exported.model_id(), "openai-compatible--tiny--tiny");
        assert_eq!(exported.fields()["taskSizeInfo"]["actualSize"], 13 + 3);
        assert_eq!(exported.duration(), Some("0:00:02.499999"));
        assert_eq!(exported.start_time(), Some("2025-01-01T00:00:00.000001"));
    }

    #[test]
    fn a_dialogue_without_scores_is_left_out() {
        let failed = record(&Outcome::Failed { cause: FailureCause::Timeout, message: "late".into() });
        assert_eq!(from_record(&failed, &TaskMeta::default(), &TimeZone::UTC), None);
    }
}
