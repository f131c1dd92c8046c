//! The table of GPUs and models from which a launch is planned.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::kit::exit_code::{Exit, usage};
use crate::kit::whole_file;

/// The table that comes with the program.
const SHIPPED: &str = include_str!("../../../../deploy/launch/models.toml");

/// What a server needs beside reading its weights until it serves, in minutes: one on a part of a node, and a larger one.
const START_MINUTES: f64 = 3.0;
const START_OF_NODES_MINUTES: f64 = 5.0;

/// What is known about GPUs and models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    pub gpu: Gpu,
    pub dialogue: DialogueSize,
    #[serde(default)]
    pub weights: WeightsSpeed,
    /// By the name under which a model is served.
    pub models: BTreeMap<String, Size>,
}

/// The kind of GPU that the models run on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// A name for people.
    pub name: String,
    /// Its resource name in Kubernetes.
    pub resource: String,
    /// GPUs of a node.
    pub per_node: u32,
    /// Labels of the nodes.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
}

/// The size of a dialogue.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialogueSize {
    /// Tokens that a model writes.
    pub tokens: u32,
}

/// How fast weights come.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsSpeed {
    /// GiB a second that a server reads from a volume that all servers share.
    pub shared_gib_per_second: f64,
}

impl Default for WeightsSpeed {
    fn default() -> Self {
        Self { shared_gib_per_second: 2.0 }
    }
}

domain::named! {
    /// Where weights are when servers begin to load.
    #[derive(Default)]
    pub enum WeightsPlace {
        /// Each server fetches its own, as the times of a table take it.
        #[default]
        Afar = "afar",
        /// On a volume that all servers share, where they were fetched before without GPUs.
        SharedVolume = "shared-volume",
    }
}

impl WeightsPlace {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Afar => Self::SharedVolume,
            Self::SharedVolume => Self::Afar,
        }
    }
}

/// The resources and the speed of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// GPUs of one server.
    pub gpus: u32,
    /// Tokens per second that a busy server writes.
    pub tokens_per_second: u32,
    /// Tokens of a dialogue, if not those of all models.
    pub tokens: Option<u32>,
    /// Minutes until a server serves.
    #[serde(default = "load_minutes")]
    pub load_minutes: u32,
    /// Longest context in tokens, if not the model's.
    pub max_model_len: Option<u32>,
    /// Memory of a server beside its GPUs.
    pub memory: Option<String>,
    /// GiB of its weights, if that is known.
    pub weights_gib: Option<u32>,
    /// Servers at once, at most.
    #[serde(default = "one")]
    pub max_servers: u32,
    /// Whether its weights need a token.
    #[serde(default)]
    pub gated: bool,
    /// What a pool of it is: `vllm`, `embed` or `classify`.
    #[serde(default = "chat")]
    pub kind: String,
}

fn one() -> u32 {
    1
}

fn load_minutes() -> u32 {
    5
}

fn chat() -> String {
    "vllm".to_owned()
}

impl Sizes {
    /// The table in a file, or the one that comes with the program.
    ///
    /// # Errors
    /// The file cannot be read, or a number in it is impossible.
    pub fn read(file: Option<&Path>) -> anyhow::Result<Self> {
        let (name, text) = match file {
            Some(path) => (path.display().to_string(), whole_file::read_text(path).map_err(Exit::usage)?),
            None => ("the shipped table".to_owned(), SHIPPED.to_owned()),
        };
        let sizes: Self = toml::from_str(&text).map_err(|error| usage!("{name}: {error}"))?;
        sizes.check().map_err(|problem| usage!("{name}: {problem}"))?;
        Ok(sizes)
    }

    /// How long a server of this size loads whose weights are there.
    pub fn load(&self, size: &Size, weights: WeightsPlace) -> Duration {
        let mut minutes = f64::from(size.load_minutes);
        if let (WeightsPlace::SharedVolume, Some(gib)) = (weights, size.weights_gib) {
            let of_nodes = size.gpus >= self.gpu.per_node;
            let start = if of_nodes { START_OF_NODES_MINUTES } else { START_MINUTES };
            let reads = f64::from(gib) / self.weights.shared_gib_per_second / 60.0;
            minutes = minutes.min(start + reads);
        }
        Duration::from_secs_f64(60.0 * minutes)
    }

    /// Tokens that a model of this size writes in a dialogue.
    pub fn tokens_of(&self, size: &Size) -> u32 {
        size.tokens.unwrap_or(self.dialogue.tokens)
    }

    fn check(&self) -> Result<(), String> {
        if self.gpu.per_node == 0 || self.dialogue.tokens == 0 {
            return Err("`gpu.per_node` and `dialogue.tokens` must be at least 1".to_owned());
        }
        let speed = self.weights.shared_gib_per_second;
        if !(speed.is_finite() && speed > 0.0) {
            return Err("`weights.shared_gib_per_second` must be above 0".to_owned());
        }
        for (name, size) in &self.models {
            if size.gpus == 0 || size.tokens_per_second == 0 || size.tokens == Some(0) {
                return Err(format!("`{name}`: gpus, tokens and tokens_per_second must be at least 1"));
            }
            if size.max_servers == 0 {
                return Err(format!("`{name}`: max_servers must be at least 1"));
            }
            if size.gpus > self.gpu.per_node && size.gpus % self.gpu.per_node != 0 {
                let per_node = self.gpu.per_node;
                return Err(format!(
                    "`{name}` takes {} GPUs, which is neither at most the {per_node} of a node nor a multiple of them",
                    size.gpus
                ));
            }
            if !["vllm", "embed", "classify"].contains(&size.kind.as_str()) {
                return Err(format!("`{name}`: kind `{}` is none of vllm, embed, classify", size.kind));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_can_be_used_and_a_bad_one_says_where() {
        let shipped = Sizes::read(None).unwrap();
        assert_eq!(shipped.models.len(), 31);
        let mut bad = shipped;
        bad.models.get_mut("deepseek-ai/DeepSeek-R1").unwrap().gpus = 12;
        assert!(bad.check().unwrap_err().contains("`deepseek-ai/DeepSeek-R1` takes 12 GPUs"));
        bad.weights.shared_gib_per_second = 0.0;
        assert!(bad.check().unwrap_err().contains("`weights.shared_gib_per_second`"));
    }

    #[test]
    fn weights_on_a_shared_volume_are_read_at_its_speed() {
        let sizes = Sizes::read(None).unwrap();
        let seconds = |model: &str, place| sizes.load(&sizes.models[model], place).as_secs_f64();
        let (small, large) = ("Qwen/Qwen2-7B-Instruct", "deepseek-ai/DeepSeek-R1");
        // 15 GiB in seven and a half seconds, 641 GiB in 320, and the start.
        assert_eq!(seconds(small, WeightsPlace::SharedVolume), 187.5);
        assert_eq!(seconds(large, WeightsPlace::SharedVolume), 620.5);
        assert_eq!(seconds(small, WeightsPlace::Afar), 300.0);
    }
}
