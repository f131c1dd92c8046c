//! The durable outcome of one dialogue.

pub mod bounded;
pub mod limits;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dialogue::Round;
use crate::ids::{DialogueKey, RecordId, WorkerId};
use crate::outcome::Outcome;
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
    #[serde(deserialize_with = "bounded::rounds")]
    pub rounds: Vec<Round>,
    /// How it ended.
    pub outcome: Outcome,
    /// Failed calls of a round that never got its answer.
    #[serde(default, deserialize_with = "bounded::failed_calls", skip_serializing_if = "Vec::is_empty")]
    pub failed_calls: Vec<crate::dialogue::FailedCall>,
    #[serde(deserialize_with = "bounded::provenance")]
    pub provenance: Provenance,
}

impl Record {
    /// Reads a record from its JSON, without trailing data. Here and not where it is called, because this crate is compiled for
    /// speed: a coordinator reads every record of a fleet.
    ///
    /// # Errors
    /// Not JSON, or not that of a record.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// Who wrote a record. Of several records of one key the first scored one counts, else the first; this tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Unique per record.
    #[serde(deserialize_with = "bounded::id")]
    pub id: RecordId,
    /// Generation of the run's queue.
    pub generation: u64,
    /// Attempt number of the unit, from 1.
    pub number: u32,
    #[serde(deserialize_with = "bounded::worker")]
    pub worker: WorkerId,
}
