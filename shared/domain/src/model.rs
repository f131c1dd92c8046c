//! A model under test, as configurations describe it and workers reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

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
    /// Base URL of the server, such as `http://127.0.0.1:8000/v1`. Optional for connectors with a default address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Name of a key that workers of a fleet hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Environment variable that holds the key. Not allowed in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File that holds the key. Not allowed in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<std::path::PathBuf>,
    /// Repetitions of every task for this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Repetitions of single tasks for this model, by label or pattern; 0 leaves a task out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task_iterations: BTreeMap<String, u32>,
    /// Sampling parameters; unset ones are left to the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Sampling,
    /// Whether requests carry the dialogue's seed. Default: yes, if the API has a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_seed: Option<bool>,
    /// Rate limit of the key in calls per minute, shared by all workers that use it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Maximum number of dialogues in flight. Default: adapts to the server.
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

impl ModelSpec {
    /// A model with the defaults of its connector.
    pub fn new(label: impl Into<String>, connector: Connector) -> Self {
        Self {
            label: ModelLabel::new(label),
            connector,
            model: None,
            endpoint: None,
            key: None,
            key_env: None,
            key_file: None,
            iterations: None,
            task_iterations: BTreeMap::new(),
            sampling: Sampling::default(),
            send_seed: None,
            calls_per_minute: None,
            concurrency: None,
            stream: None,
            skill: None,
            recorded: Vec::new(),
        }
    }
}

fn is_default(sampling: &Sampling) -> bool {
    *sampling == Sampling::default()
}

/// Environment variables that hold keys when a configuration names none.
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const GEMINI_KEY: &str = "GEMINI_API_KEY";
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// OpenAI's own address; models there use its key.
const OPENAI_ADDRESS: &str = "https://api.openai.com/";

/// Where a key is stored; never the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlace<'a> {
    Variable(&'a str),
    File(&'a Path),
}

impl fmt::Display for KeyPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.pad(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl ModelSpec {
    /// The name sent to the server.
    pub fn requested(&self) -> &str {
        self.model.as_deref().unwrap_or(self.label.as_str())
    }

    /// Where its key is stored; `None` if it needs none.
    pub fn key_place(&self) -> Option<KeyPlace<'_>> {
        match (&self.key_env, &self.key_file) {
            (Some(name), _) => Some(KeyPlace::Variable(name)),
            (None, Some(path)) => Some(KeyPlace::File(path)),
            (None, None) => self.usual_key().map(KeyPlace::Variable),
        }
    }

    /// The provider's usual key variable, used when a configuration names none.
    fn usual_key(&self) -> Option<&'static str> {
        match self.connector {
            Connector::Anthropic => Some(ANTHROPIC_KEY),
            Connector::Gemini => Some(GEMINI_KEY),
            Connector::OpenaiCompatible => self
                .endpoint
                .as_deref()
                .is_some_and(|at| at.starts_with(OPENAI_ADDRESS))
                .then_some(OPENAI_KEY),
            Connector::Simulated | Connector::Replay => None,
        }
    }
}

named! {
    /// How a model is reached.
    pub enum Connector {
        /// Any server with OpenAI's API: vLLM first.
        OpenaiCompatible = "openai-compatible",
        /// Anthropic's messages API.
        Anthropic = "anthropic",
        /// Google's Gemini API.
        Gemini = "gemini",
        /// The built-in simulator.
        Simulated = "simulated",
        /// Answers of a recorded run.
        Replay = "replay",
    }
}

impl Connector {
    /// The provider's address, if there is one provider.
    pub fn own_endpoint(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::OpenaiCompatible | Self::Simulated | Self::Replay => None,
        }
    }

    /// The kinds of questions that the connector supports. Whether a given model supports them, only its server
    /// knows.
    pub const fn offers(self) -> &'static [Ask] {
        match self {
            Self::OpenaiCompatible | Self::Simulated => &Ask::ALL,
            Self::Anthropic | Self::Gemini | Self::Replay => &[Ask::Chat],
        }
    }
}

named! {
    /// A kind of question to a model.
    pub enum Ask {
        /// A conversation to continue; the answer is a text.
        Chat = "chat",
        /// Texts to embed: texts of similar meaning get similar vectors.
        Embed = "embed",
        /// Pairs of texts to classify, for example whether the first entails the second.
        Classify = "classify",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        for connector in Connector::ALL {
            assert_eq!(serde_json::to_value(connector).unwrap(), connector.as_str());
            assert!(connector.offers().contains(&Ask::Chat), "{connector}");
        }
        for ask in Ask::ALL {
            assert_eq!(serde_json::to_value(ask).unwrap(), ask.as_str());
        }
    }
}
