//! The versions, model and sampling parameters behind a record.

use serde::{Deserialize, Serialize};

use crate::chat::Sampling;
use crate::cut_text::optional_name;
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
    /// Where it was made; `None` if its worker does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at: Option<MadeAt>,
}

/// Maximum length of each text of [`MadeAt`], in characters.
pub const MADE_AT_CHARS_MAX: usize = 1_000;

/// Where a record was made, as far as its worker knows: what is `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MadeAt {
    /// The worker's image, or the digest of its program: `sha256:` and hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The version that the server gives, as it gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    /// The command of the server, if the worker started it, without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_command: Option<String>,
    /// The server's image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_image: Option<String>,
    /// What the server has loaded under the model's name: a repository or a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// The revision of these weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The kind of GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// GPUs of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl MadeAt {
    /// The same with every text shortened to [`MADE_AT_CHARS_MAX`]; an empty one is unknown.
    pub fn bounded(self) -> Self {
        let text = |text: Option<String>| {
            text.filter(|text| !text.is_empty()).map(|text| {
                match text.char_indices().nth(MADE_AT_CHARS_MAX) {
                    Some((end, _)) => text[..end].to_owned(),
                    None => text,
                }
            })
        };
        Self {
            program: text(self.program),
            server_version: text(self.server_version),
            server_command: text(self.server_command),
            server_image: text(self.server_image),
            weights: text(self.weights),
            revision: text(self.revision),
            gpu: text(self.gpu),
            gpus: self.gpus.filter(|gpus| *gpus > 0),
            node: text(self.node),
        }
    }

    /// What is known, in lines for people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let gpus = match (&self.gpu, self.gpus) {
            (None, None) => "unknown".to_owned(),
            (kind, None) => text(kind),
            (kind, Some(gpus)) => format!("{gpus} x {}", text(kind)),
        };
        vec![
            ("program", text(&self.program)),
            ("server", text(&self.server_version)),
            ("server image", text(&self.server_image)),
            ("server command", text(&self.server_command)),
            ("weights", text(&self.weights)),
            ("revision", text(&self.revision)),
            ("GPUs", gpus),
            ("node", text(&self.node)),
        ]
    }
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
    #[serde(default, deserialize_with = "optional_name", skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
    /// The server's fingerprint of its build and configuration.
    #[serde(default, deserialize_with = "optional_name", skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// Its address; never with a key in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How requests were changed because the server refused them as they were, such as `without seed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapted: Vec<String>,
    /// The limit of tokens of its last answer, where it is not the one of the configuration: the default, or what the context left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_record_was_made_is_bounded_and_what_is_unknown_says_so() {
        let long = Some("ü".repeat(MADE_AT_CHARS_MAX + 5));
        let made =
            MadeAt { server_command: long, node: Some(String::new()), gpus: Some(8), ..MadeAt::default() };
        let made = made.bounded();
        assert_eq!(made.server_command.as_ref().unwrap().chars().count(), MADE_AT_CHARS_MAX);
        assert_eq!(made.node, None);
        let lines = made.lines();
        assert!(
            lines.contains(&("GPUs", "8 x unknown".to_owned()))
                && lines.contains(&("node", "unknown".to_owned()))
        );
        assert_eq!(serde_json::to_value(MadeAt::default()).unwrap(), serde_json::json!({}));
        let read: MadeAt = serde_json::from_str(r#"{"of_the_future": 1, "gpu": "H100"}"#).unwrap();
        assert_eq!(read.gpu.as_deref(), Some("H100"));
    }
}
