//! The configuration of the simulator. Field names follow vLLM's options; `deploy/local/simulator.toml` shows all of them.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::answers::AnswerConfig;
use crate::bounds::ConfigError;
use crate::faults::FaultPlan;
use crate::latency::{BLOCK_TOKENS, Profile};

/// One simulated server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimConfig {
    /// The models it serves, at least one, names unique. Each behaves like a vLLM of its own behind one address.
    pub models: Vec<ModelConfig>,
    /// When set, requests to `/v1/...` need the header `Authorization: Bearer KEY` (vLLM's `--api-key`); the other
    /// paths stay open, as in vLLM. None by default.
    #[serde(default)]
    pub api_key: Option<String>,
    /// Faults. None by default.
    #[serde(default)]
    pub faults: FaultPlan,
}

/// One served model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// The name that requests use (`--served-model-name`). Not empty.
    pub name: String,
    /// Its answers. A model of medium skill by default.
    #[serde(default)]
    pub answers: AnswerConfig,
    /// Its latency. None by default.
    #[serde(default)]
    pub profile: Profile,
    /// Tokens of prompt and answer together (`--max-model-len`), 64 to 16 777 216; 32 768 by default.
    #[serde(default = "default_max_model_len")]
    pub max_model_len: u32,
    /// Requests decoded at once (`--max-num-seqs`), 1 to 1 048 576; the profile's by default. Not with profile `zero`,
    /// which never has two requests at once.
    #[serde(default)]
    pub max_num_seqs: Option<u32>,
    /// KV-cache blocks of 16 tokens (`--num-gpu-blocks-override`), enough for one request of `max_model_len`; the
    /// profile's by default. Not with profile `zero`.
    #[serde(default)]
    pub num_gpu_blocks: Option<u32>,
    /// When `max_num_seqs` changes, which no vLLM does: a stand-in for servers that become slower or faster. Never by
    /// default. Not with profile `zero`.
    #[serde(default)]
    pub capacity_at: Vec<CapacityChange>,
    /// Report cached prompt tokens in `usage` (`--enable-prompt-tokens-details`). Off by default, as in vLLM.
    #[serde(default)]
    pub enable_prompt_tokens_details: bool,
}

/// Seconds since the model's first request, and the factor of its `max_num_seqs` from then on, 0.01 to 100. In the order
/// of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityChange(pub f64, pub f64);

impl CapacityChange {
    /// Longest time until a change in seconds: a month.
    const SECONDS_MAX: f64 = 30.0 * 86_400.0;
    const FACTOR: (f64, f64) = (0.01, 100.0);

    /// When it is, and how many requests are decoded at once from then on.
    pub(crate) fn of(self, max_num_seqs: u32) -> (Duration, u32) {
        let Self(seconds, factor) = self;
        (Duration::from_secs_f64(seconds), ((f64::from(max_num_seqs) * factor) as u32).max(1))
    }
}

fn default_max_model_len() -> u32 {
    32_768
}

impl ModelConfig {
    /// Bounds of `max_model_len` in tokens. The upper one keeps one request's block list within some megabytes.
    const MODEL_LEN: (u32, u32) = (64, 1 << 24);
    /// Most requests decoded at once; beyond any real engine.
    const NUM_SEQS_MAX: u32 = 1 << 20;

    /// A model with every default.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            answers: AnswerConfig::default(),
            profile: Profile::default(),
            max_model_len: default_max_model_len(),
            max_num_seqs: None,
            num_gpu_blocks: None,
            capacity_at: Vec::new(),
            enable_prompt_tokens_details: false,
        }
    }

    fn validate(&self, key: &str) -> Result<(), ConfigError> {
        if self.name.is_empty() {
            return Err(ConfigError::new(format!("{key}.name"), "must not be empty"));
        }
        self.answers.validate(&format!("{key}.answers"))?;
        self.profile.validate(&format!("{key}.profile"))?;
        let (low, high) = Self::MODEL_LEN;
        ConfigError::in_range(format!("{key}.max_model_len"), self.max_model_len, low, high)?;
        let Some(engine) = self.profile.engine() else {
            let limits = [
                ("max_num_seqs", self.max_num_seqs),
                ("num_gpu_blocks", self.num_gpu_blocks),
                ("capacity_at", (!self.capacity_at.is_empty()).then_some(1)),
            ];
            return match limits.into_iter().find(|(_, limit)| limit.is_some()) {
                Some((name, _)) => Err(ConfigError::new(
                    format!("{key}.{name}"),
                    "has no effect with profile \"zero\": leave it out",
                )),
                None => Ok(()),
            };
        };
        let seqs = self.max_num_seqs.unwrap_or(engine.max_num_seqs);
        ConfigError::in_range(format!("{key}.max_num_seqs"), seqs, 1, Self::NUM_SEQS_MAX)?;
        let mut earliest = 0.0;
        for (at, &CapacityChange(seconds, factor)) in self.capacity_at.iter().enumerate() {
            let (key, (low, high)) = (format!("{key}.capacity_at[{at}]"), CapacityChange::FACTOR);
            ConfigError::in_range(format!("{key}[0]"), seconds, earliest, CapacityChange::SECONDS_MAX)?;
            ConfigError::in_range(format!("{key}[1]"), factor, low, high)?;
            earliest = seconds;
        }
        // Otherwise a long request would wait for blocks for ever.
        let blocks = self.num_gpu_blocks.unwrap_or(engine.num_gpu_blocks);
        ConfigError::in_range(
            format!("{key}.num_gpu_blocks"),
            blocks,
            self.max_model_len.div_ceil(BLOCK_TOKENS),
            u32::MAX,
        )
    }
}

impl SimConfig {
    /// A server of these models without key and faults.
    pub fn new(models: Vec<ModelConfig>) -> Self {
        Self { models, api_key: None, faults: FaultPlan::default() }
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first field out of bounds, by its key and bound.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.models.is_empty() {
            return Err(ConfigError::new("models", "must hold at least one model"));
        }
        if self.api_key.as_deref() == Some("") {
            return Err(ConfigError::new("api_key", "must not be empty; leave it out to need none"));
        }
        let mut names = HashSet::new();
        for (index, model) in self.models.iter().enumerate() {
            let key = format!("models[{index}]");
            model.validate(&key)?;
            if !names.insert(&model.name) {
                return Err(ConfigError::new(format!("{key}.name"), format!("repeats \"{}\"", model.name)));
            }
        }
        self.faults.validate("faults")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SimConfig, String> {
        let config: SimConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn the_example_reads_as_written_and_has_every_key() {
        let example = include_str!("../../../deploy/local/simulator.toml");
        let config = parse(example);
        let config = config.unwrap();
        assert_eq!(config.models.len(), 6);
        assert_eq!(config.models[0].profile, Profile::H1008b);
        let changes: Vec<_> = config.models[0].capacity_at.iter().map(|change| change.of(64)).collect();
        assert_eq!(changes, [(Duration::from_secs(60), 32), (Duration::from_secs(120), 64)]);
        let json = serde_json::to_string(&config).unwrap();
        // Every field is written, set or not.
        let keys = json.split('"').zip(json.split('"').skip(1)).filter(|(_, next)| next.starts_with(':'));
        for (key, _) in keys {
            assert!(example.contains(key), "{key} is missing in the example");
        }
        assert_eq!(serde_json::from_str::<SimConfig>(&json).unwrap(), config);
    }

    #[test]
    fn errors_name_key_and_bound() {
        let bad = [
            ("models = []", "models: must hold at least one"),
            ("models = [{ name = '' }]", "models[0].name: must not be empty"),
            ("models = [{ name = 'a' }, { name = 'a' }]", "models[1].name: repeats \"a\""),
            (
                "models = [{ name = 'a', max_model_len = 3 }]",
                "models[0].max_model_len: must be between 64 and",
            ),
            ("models = [{ name = 'a', max_num_seqs = 3 }]", "models[0].max_num_seqs: has no effect"),
            (
                "models = [{ name = 'a', profile = 'l40s', max_num_seqs = 0 }]",
                "max_num_seqs: must be between 1",
            ),
            (
                "models = [{ name = 'a', profile = 'l40s', num_gpu_blocks = 9 }]",
                "num_gpu_blocks: must be between 2048",
            ),
            ("models = [{ name = 'a', capacity_at = [[1, 2]] }]", "models[0].capacity_at: has no effect"),
            (
                "models = [{ name = 'a', profile = 'l40s', capacity_at = [[2, 1], [1, 1]] }]",
                "models[0].capacity_at[1][0]: must be between 2 and",
            ),
            (
                "models = [{ name = 'a', profile = 'l40s', capacity_at = [[1, 0]] }]",
                "models[0].capacity_at[0][1]: must be between 0.01 and 100, not 0",
            ),
            (
                "models = [{ name = 'a', profile = { fixed = { round_ms = -1 } } }]",
                "profile.fixed.round_ms: must be",
            ),
            (
                "models = [{ name = 'a', answers = { kind = 'garbage', tokens = 0 } }]",
                "answers.tokens: must be",
            ),
            ("models = [{ name = 'a', colour = 1 }]", "unknown field `colour`"),
            ("models = [{ name = 'a', answers = { kind = 'echo', loud = true } }]", "unknown field `loud`"),
            ("api_key = ''\nmodels = [{ name = 'a' }]", "api_key: must not be empty"),
            (
                "models = [{ name = 'a' }]\n[[faults.rules]]\nwhen = { probability = 2 }\nfault = 'hang'",
                "faults.rules[0].when.probability: must be between 0 and 1",
            ),
        ];
        for (text, expected) in bad {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}\n gave: {error}");
        }
    }
}
