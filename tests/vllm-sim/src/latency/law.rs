//! The latency law, and constants for some machines.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::ConfigError;

/// How fast a model is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Answers at once and never queues: for measuring clients. The engine is left out altogether, its prefix cache too.
    #[default]
    Zero,
    /// An 8B model on one H100.
    #[serde(rename = "h100-8b")]
    H1008b,
    /// A 70B model on eight H100s (tensor parallel).
    #[serde(rename = "h100-70b-tp8")]
    H10070bTp8,
    /// A small model on one L40S.
    L40s,
    /// Every round takes the same time, whatever its length and the load. Without prefix cache, as it would save nothing.
    Fixed {
        /// Time of one round in milliseconds, 0 to 3 600 000. A stream gets all its tokens at the end of it.
        round_ms: f64,
    },
    /// Other constants.
    Custom(CustomProfile),
}

/// The constants of an engine and its latency law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomProfile {
    /// Time to the first token of a cached prompt in milliseconds, 0 to 3 600 000.
    pub prefill_overhead_ms: f64,
    /// Time per uncached prompt token in milliseconds, 0 to 3 600 000.
    pub prefill_per_token_ms: f64,
    /// Time per answer token on an idle engine in milliseconds, 0 to 3 600 000.
    pub decode_per_token_ms: f64,
    /// How much slower a full engine decodes, 1 to 100.
    pub decode_load_factor: f64,
    /// Requests decoded at once, from 1.
    pub max_num_seqs: u32,
    /// KV-cache blocks of 16 tokens, from 1. A request that needs more than all of them is never admitted: the caller must
    /// refuse it.
    pub num_gpu_blocks: u32,
}

impl Profile {
    /// Maximum value of a constant in milliseconds: an hour.
    const MS_MAX: f64 = 3_600_000.0;
    /// Largest slowdown by load.
    const LOAD_FACTOR_MAX: f64 = 100.0;
    /// For profiles that are not meant to run out of anything.
    const PLENTY: u32 = 1 << 20;

    /// The engine of this profile, or `None` when there is nothing to wait for.
    pub fn engine(&self) -> Option<CustomProfile> {
        // Constants after llm-d-inference-sim's calibrated profiles. Blocks: GPU memory x 0.9 less the weights in
        // bfloat16, divided by the KV bytes of 16 tokens (128 KiB per token for 8B, 320 KiB for 70B).
        Some(match self {
            Self::Zero => return None,
            Self::H1008b => CustomProfile {
                prefill_overhead_ms: 30.0,
                prefill_per_token_ms: 0.25,
                decode_per_token_ms: 12.0,
                decode_load_factor: 2.0,
                max_num_seqs: 256,
                num_gpu_blocks: 28_000,
            },
            Self::H10070bTp8 => CustomProfile {
                prefill_overhead_ms: 80.0,
                prefill_per_token_ms: 0.5,
                decode_per_token_ms: 25.0,
                decode_load_factor: 3.0,
                max_num_seqs: 256,
                num_gpu_blocks: 83_000,
            },
            Self::L40s => CustomProfile {
                prefill_overhead_ms: 20.0,
                prefill_per_token_ms: 0.35,
                decode_per_token_ms: 15.0,
                decode_load_factor: 1.5,
                max_num_seqs: 128,
                num_gpu_blocks: 12_500,
            },
            Self::Fixed { round_ms } => CustomProfile {
                prefill_overhead_ms: *round_ms,
                prefill_per_token_ms: 0.0,
                decode_per_token_ms: 0.0,
                decode_load_factor: 1.0,
                max_num_seqs: Self::PLENTY,
                num_gpu_blocks: u32::MAX,
            },
            Self::Custom(custom) => *custom,
        })
    }

    pub(crate) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        match self {
            Self::Zero | Self::H1008b | Self::H10070bTp8 | Self::L40s => Ok(()),
            Self::Fixed { round_ms } => {
                ConfigError::in_range(format!("{key}.fixed.round_ms"), *round_ms, 0.0, Self::MS_MAX)
            }
            Self::Custom(custom) => custom.validate(&format!("{key}.custom")),
        }
    }
}

impl CustomProfile {
    /// Time from admission to the first token.
    pub fn time_to_first_token(&self, uncached_tokens: u32) -> Duration {
        let prefill = nanos(self.prefill_per_token_ms).saturating_mul(u64::from(uncached_tokens));
        Duration::from_nanos(nanos(self.prefill_overhead_ms).saturating_add(prefill))
    }

    /// Time between two tokens of each request while `running` of at most `max_num_seqs` requests run, rounded up to a
    /// nanosecond.
    pub fn inter_token_latency_ns(&self, running: u32) -> u64 {
        let (idle, full) =
            (nanos(self.decode_per_token_ms), nanos(self.decode_per_token_ms * self.decode_load_factor));
        let slower = u128::from(full.saturating_sub(idle));
        let share = (slower * u128::from(running)).div_ceil(u128::from(self.max_num_seqs.max(1)));
        idle.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// Whether the prefix cache can save any time. Otherwise callers may leave the blocks' hashes out: the cache then
    /// stays empty instead of filling up for nothing.
    pub fn caches_prefixes(&self) -> bool {
        nanos(self.prefill_per_token_ms) > 0
    }

    fn validate(&self, key: &str) -> Result<(), ConfigError> {
        for (name, ms) in [
            ("prefill_overhead_ms", self.prefill_overhead_ms),
            ("prefill_per_token_ms", self.prefill_per_token_ms),
            ("decode_per_token_ms", self.decode_per_token_ms),
        ] {
            ConfigError::in_range(format!("{key}.{name}"), ms, 0.0, Profile::MS_MAX)?;
        }
        let factor = self.decode_load_factor;
        ConfigError::in_range(format!("{key}.decode_load_factor"), factor, 1.0, Profile::LOAD_FACTOR_MAX)
        // The two counts are checked where the model's own values may replace them.
    }
}

/// Whole nanoseconds, so that a simulated run is the same on every machine.
fn nanos(milliseconds: f64) -> u64 {
    (milliseconds * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_h100_profile_gives_the_published_figures() {
        let engine = Profile::H1008b.engine().unwrap();
        let law = engine;
        assert_eq!(law.time_to_first_token(0), Duration::from_millis(30));
        assert_eq!(law.time_to_first_token(1000), Duration::from_millis(280));
        assert_eq!(law.inter_token_latency_ns(0), 12_000_000);
        assert_eq!(law.inter_token_latency_ns(128), 18_000_000);
        assert_eq!(law.inter_token_latency_ns(256), 24_000_000);
        assert!(Profile::Zero.engine().is_none());
    }
}
