//! The durable outcome of one dialogue.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dialogue::Round;
use crate::ids::{DialogueKey, RecordId, WorkerId};
use crate::outcome::{FailureCause, Outcome};
use crate::provenance::Provenance;

/// Maximum size of a record as JSON, in bytes. Every other limit derives from it: wire messages are larger by the
/// size of a record's head, and frames of spools and logs hold more. An answer has up to 16 MiB of text and as much
/// reasoning, a dialogue has up to three answers, and JSON needs up to six bytes per byte; so some records exceed any
/// sensible limit, and their texts are cut before they are sent.
pub const RECORD_BYTES_MAX: usize = (64 << 20) - (64 << 10);

/// What is stored of a dialogue: enough to understand, re-evaluate and repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub key: DialogueKey,
    pub attempt: Attempt,
    /// When the dialogue began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Instructions above the conversation, where the task has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Prompts and answers, in order. A failed dialogue keeps the rounds it had.
    pub rounds: Vec<Round>,
    /// How it ended.
    pub outcome: Outcome,
    /// Failed calls of a round that never got its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_calls: Vec<crate::dialogue::FailedCall>,
    /// The calls of a round that was asked at two servers, in the order in which they were sent; empty if none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hedged: Vec<HedgedCall>,
    pub provenance: Provenance,
}

/// One of the two calls of a round whose first token was late: at the first server, or at the second one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HedgedCall {
    /// Number of the round, from 0.
    pub round: u32,
    /// The server, by its name in metrics.
    pub server: String,
    pub sent_at: Timestamp,
    /// When its answer was complete, or the call was dropped or failed.
    pub ended_at: Timestamp,
    pub end: HedgeEnd,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
}

named! {
    /// How one of two calls ended.
    pub enum HedgeEnd {
        /// It was the first to begin, and its answer counts.
        Answered = "answered",
        /// The other one was the first to begin.
        Dropped = "dropped",
        /// It has no answer.
        Failed = "failed",
    }
}

/// Who wrote a record. If several records of one key exist, their tickets decide which one counts; this tells them
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Unique per record.
    pub id: RecordId,
    /// Generation of the run's queue.
    pub generation: u64,
    /// Attempt number of the unit, from 1.
    pub number: u32,
    pub worker: WorkerId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_asked_once_says_nothing_of_it_and_both_calls_are_read_back() {
        let json = serde_json::json!({
            "key": {"model": "m", "task": "t", "iteration": 0},
            "attempt": {"id": "id", "generation": 1, "number": 1, "worker": "w"},
            "started_at": "2025-01-01T00:00:00Z",
            "ended_at": "2025-01-01T00:00:01Z",
            "rounds": [],
            "outcome": {"state": "failed", "cause": "timeout", "message": "late"},
            "provenance": {
                "kgfleet": "0", "sampling": {}, "seed": 1,
                "task": {"class": "c", "version": "1", "case": "c", "pack": "p", "pack_hash": "h", "scorer": "s"},
                "model": {"connector": "played", "requested": "m"},
            },
        });
        let mut record: Record = serde_json::from_value(json).unwrap();
        assert!(!serde_json::to_string(&record).unwrap().contains("hedged"));
        let call = |server: &str, end, cause| HedgedCall {
            round: 0,
            server: server.to_owned(),
            sent_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            end,
            cause,
        };
        record.hedged = vec![
            call("m at a", HedgeEnd::Failed, Some(FailureCause::Connection)),
            call("m at b", HedgeEnd::Answered, None),
        ];
        let told = serde_json::to_value(&record).unwrap();
        assert_eq!([0, 1].map(|call| &told["hedged"][call]["end"]), ["failed", "answered"]);
        assert!(told["hedged"][1].get("cause").is_none());
        assert_eq!(serde_json::from_value::<Record>(told).unwrap(), record);
    }
}
