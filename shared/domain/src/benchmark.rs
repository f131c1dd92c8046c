//! A model under test, as configurations describe it and workers reach it.

use serde::{Deserialize, Serialize};

use crate::chat::Sampling;
use crate::ids::ModelLabel;

/// A model under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// The name in tables and files, unique in the configuration.
    pub label: ModelLabel,
    /// How it is reached.
    pub connector: Connector,
    /// The name sent to the server. Default: the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Base URL of the server, such as `http://127.0.0.1:8000/v1`. Connectors of one provider know theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Name of a key that the workers of a fleet hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Environment variable that holds the key. Not in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File that holds the key. Not in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<std::path::PathBuf>,
    /// Repetitions of every task for this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// How tokens are drawn; what is not set is left to the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Sampling,
    /// Whether the server is sent the seed of every dialogue. Default: yes, where its API has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_seed: Option<bool>,
    /// Calls per minute that the key bears, shared by all workers that use it. Default: no limit of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Most dialogues in flight. Default: adapts to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Whether answers are streamed, so that a stalled server is noticed early. Default: yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Skill of a simulated model, 0 (knows nothing) to 1 (knows everything).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<f64>,
    /// Recorded result files that a replayed model answers from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<std::path::PathBuf>,
}

fn is_default(sampling: &Sampling) -> bool {
    *sampling == Sampling::default()
}

impl ModelSpec {
    /// The name sent to the server.
    pub fn requested(&self) -> &str {
        self.model.as_deref().unwrap_or(self.label.as_str())
    }
}

/// How a model is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connector {
    /// Any server with OpenAI's chat API: vLLM first.
    OpenaiCompatible,
    /// Anthropic's messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// The built-in simulator.
    Simulated,
    /// Answers of a recorded run.
    Replay,
}

impl Connector {
    /// The provider's own address, where there is a provider.
    pub fn own_endpoint(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::OpenaiCompatible | Self::Simulated | Self::Replay => None,
        }
    }
}
