//! A model under test, as configurations describe it and workers reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::chat::Sampling;
use crate::ids::ModelLabel;
pub use crate::provider::Connector;
use crate::request::{ReasoningMarks, RequestSettings, is_default};
use crate::time_limits::TimeLimits;

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
    /// Command that prints the key, such as `["gcloud", "auth", "print-access-token"]`; run again when the server refuses the
    /// key. Not allowed in a fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_command: Vec<String>,
    /// Names under which the server's answers may come, beside the requested one; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers_as: Vec<String>,
    /// What the model puts around its thoughts. Default: what is known of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningMarks>,
    /// Headers that every request carries, such as those of a gateway.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What the address of every request has after its `?`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Repetitions of every task for this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Repetitions of single tasks for this model, by label or pattern; 0 leaves a task out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task_iterations: BTreeMap<String, u32>,
    /// Sampling parameters; unset ones are left to the server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sampling: Sampling,
    /// What its server needs to be told in requests, beside sampling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub request: RequestSettings,
    /// Whether requests carry the dialogue's seed. Default: yes, if the API has a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_seed: Option<bool>,
    /// How long its calls may take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub time_limits: TimeLimits,
    /// Rate limit of the key in calls per minute, shared by all workers that use it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<u32>,
    /// Rate limit of the key in tokens of prompts and answers per minute, shared by all workers that use it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
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
            key_command: Vec::new(),
            answers_as: Vec::new(),
            reasoning: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            iterations: None,
            task_iterations: BTreeMap::new(),
            sampling: Sampling::default(),
            request: RequestSettings::default(),
            send_seed: None,
            time_limits: TimeLimits::default(),
            calls_per_minute: None,
            tokens_per_minute: None,
            concurrency: None,
            stream: None,
            skill: None,
            recorded: Vec::new(),
        }
    }
}

/// What stands between name and host in [`ModelSpec::billed_as`].
pub const BILLED_AT: &str = " at ";

/// Where a key is stored; never the key itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlace<'a> {
    Variable(&'a str),
    File(&'a Path),
    Command(&'a [String]),
}

impl fmt::Display for KeyPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.pad(name),
            Self::File(path) => path.display().fmt(f),
            Self::Command(words) => f.pad(&words.join(" ")),
        }
    }
}

impl ModelSpec {
    /// The name sent to the server.
    pub fn requested(&self) -> &str {
        self.model.as_deref().unwrap_or(self.label.as_str())
    }

    /// How a provider may bill it, by which prices are found: the name that is sent, and the host that it is sent to, if that is
    /// known, as in `gpt-4o at api.openai.com`. `None` of models that nobody bills.
    pub fn billed_as(&self) -> Option<String> {
        let name = self.connector.is_billed().then(|| self.requested())?;
        let address = self.endpoint.as_deref().or(self.connector.own_endpoint());
        let host = address.and_then(|address| Url::parse(address).ok()?.host_str().map(str::to_owned));
        Some(host.map_or_else(|| name.to_owned(), |host| format!("{name}{BILLED_AT}{host}")))
    }

    /// Whether its answers are streamed.
    pub fn streams(&self) -> bool {
        match self.connector {
            Connector::OpenaiCompatible => self.stream.unwrap_or(true),
            // A simulator is local and cannot stall unnoticed, and whole answers are cheaper.
            Connector::Simulated => self.stream.unwrap_or(false),
            Connector::Anthropic | Connector::Gemini | Connector::Replay => false,
        }
    }

    /// Where its key is stored; `None` if it needs none.
    pub fn key_place(&self) -> Option<KeyPlace<'_>> {
        match (&self.key_env, &self.key_file) {
            (Some(name), _) => Some(KeyPlace::Variable(name)),
            (None, Some(path)) => Some(KeyPlace::File(path)),
            (None, None) if !self.key_command.is_empty() => Some(KeyPlace::Command(&self.key_command)),
            (None, None) => self.usual_key().map(KeyPlace::Variable),
        }
    }

    /// The provider's usual key variable, used when a configuration names none.
    fn usual_key(&self) -> Option<&'static str> {
        let key = self.connector.provider().usual_key?;
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        key.only_at.is_none_or(|at| endpoint.starts_with(at)).then_some(key.variable)
    }
}

/// Largest size that is accepted in a name, in billions of parameters.
const STATED_SIZE_MAX: f64 = 10_000.0;

/// Billions of parameters that a name states: the last `7B`, `0.5b` or `8x7B` in it, each a word of its own.
pub fn stated_size(name: &str) -> Option<f64> {
    let words = name.split(|c: char| !c.is_alphanumeric() && c != '.');
    let billions = |word: &str| {
        let number = word.strip_suffix(['B', 'b'])?;
        let product = number.split('x').map(|factor| factor.parse::<f64>().ok());
        product.reduce(|a, b| Some(a? * b?)).flatten().filter(|size| *size > 0.0 && *size < STATED_SIZE_MAX)
    };
    words.filter_map(billions).next_back()
}

/// Billions of parameters that take part in each token, if a name states them: `A14B` in `Qwen2-57B-A14B`.
pub fn stated_active(name: &str) -> Option<f64> {
    let words = name.split(|c: char| !c.is_alphanumeric() && c != '.');
    words.filter_map(|word| stated_size(word.strip_prefix(['A', 'a'])?)).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_bills_a_simulated_model() {
        let mut model = ModelSpec::new("mine", Connector::Simulated);
        model.model = Some("gpt-4o".to_owned());
        assert_eq!(model.billed_as(), None);
        model.connector = Connector::OpenaiCompatible;
        assert_eq!(model.billed_as().as_deref(), Some("gpt-4o"));
        model.endpoint = Some("https://API.openai.com:443/v1".to_owned());
        assert_eq!(model.billed_as().as_deref(), Some("gpt-4o at api.openai.com"));
        model = ModelSpec::new("claude", Connector::Anthropic);
        assert_eq!(model.billed_as().as_deref(), Some("claude at api.anthropic.com"));
    }

    #[test]
    fn sizes_are_those_that_names_state() {
        let sizes = [
            ("Llama-3.1-8B", Some(8.0)),
            ("meta-llama/Llama-3.3-70B-Instruct", Some(70.0)),
            ("Qwen2-57B-A14B", Some(57.0)),
            ("mixtral-8x7b", Some(56.0)),
            ("Qwen2.5-0.5B", Some(0.5)),
            ("Claude 3.5 Haiku", None),
            ("sim-strong", None),
            ("NaNB infB -3B", Some(3.0)),
        ];
        for (name, expected) in sizes {
            assert_eq!(stated_size(name), expected, "{name}");
        }
        let actives =
            [("Qwen2-57B-A14B-Instruct", Some(14.0)), ("Qwen3-30B-A3B", Some(3.0)), ("Llama-3.1-8B", None)];
        for (name, expected) in actives {
            assert_eq!(stated_active(name), expected, "{name}");
        }
    }
}
