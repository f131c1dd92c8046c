//! The durable outcome of one dialogue.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::dialogue::Round;
use crate::ids::{DialogueKey, RecordId, WorkerId};
use crate::outcome::Outcome;
use crate::provenance::Provenance;

/// Longest record as JSON, in bytes. Every limit on the way derives from it: messages of the wire are as much longer as a
/// record's head needs, frames of spools and logs hold more. Answers have 16 MiB of text and as much of reasoning at
/// most, a dialogue has three, and JSON needs up to six bytes for one: so there are records beyond every limit worth
/// having, and their texts are cut before they are sent.
pub const RECORD_BYTES_MAX: usize = (64 << 20) - (64 << 10);

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
