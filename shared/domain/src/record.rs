//! The durable outcome of one dialogue.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dialogue::Round;
use crate::ids::{DialogueKey, RecordId, WorkerId};
use crate::outcome::Outcome;
use crate::provenance::Provenance;

/// What is kept of a dialogue: enough to understand, re-evaluate and repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which dialogue.
    pub key: DialogueKey,
    /// Which attempt of which worker wrote this.
    pub attempt: Attempt,
    /// When the dialogue began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Prompts and answers, in order. A failed dialogue keeps the rounds it had.
    pub rounds: Vec<Round>,
    /// How it ended.
    pub outcome: Outcome,
    /// Failed calls of a round that never got its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_calls: Vec<crate::dialogue::FailedCall>,
    /// Versions, model, sampling, seed.
    pub provenance: Provenance,
}

/// Who wrote a record. Where several records of one key exist, readers choose the winner by commit order;
/// this tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Unique per record.
    pub id: RecordId,
    /// Run generation: rises when the queue is rebuilt.
    pub generation: u64,
    /// Attempt number of the unit, from 1.
    pub number: u32,
    /// The worker.
    pub worker: WorkerId,
}
