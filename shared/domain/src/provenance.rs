//! The versions, model and sampling parameters behind a record.

use serde::{Deserialize, Serialize};

use crate::chat::Sampling;
use crate::ids::ModelLabel;

/// Everything besides the texts that is needed to understand a record years later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of kgfleet that ran the dialogue.
    pub kgfleet: String,
    /// The exercise.
    pub task: TaskProvenance,
    pub model: ModelProvenance,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Seed of this dialogue, sent to servers whose API has a seed.
    pub seed: u64,
    /// Which model's answers the dialogue judges; `None` if its model is not a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

/// What a judging run is about: the model whose answers it judges, and the stage and pipeline that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct About {
    pub pipeline: String,
    pub stage: String,
    /// The model whose answers are judged.
    pub model: ModelLabel,
    /// Which run of the stage for this model it is, from 1.
    pub number: u32,
}

/// Where the exercise came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProvenance {
    /// Task class, such as `RdfFriendCount`.
    pub class: String,
    /// Version of the task class, as in published results.
    pub version: String,
    /// Identifier of the case.
    pub case: String,
    /// Name of the pack.
    pub pack: String,
    /// Hash of the pack's manifest, hexadecimal SHA-256.
    pub pack_hash: String,
    /// Version of the scoring rules, compatibility switches and limits included.
    pub scorer: String,
}

/// Which model answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelProvenance {
    /// Connector, such as `openai-compatible`.
    pub connector: String,
    /// The name asked for.
    pub requested: String,
    /// The model name in the server's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
    /// The server's fingerprint of its build and configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// Its address; never with a key in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}
