//! When tokens are sent: the latency law of a continuous-batching engine, over virtual time.
//!
//! The law is that of llm-d-inference-sim, so that results can be compared:
//!
//! - time to first token = `prefill_overhead` + (prompt - cached tokens) x `prefill_per_token`
//! - inter-token latency = `decode_per_token` x (1 + (`decode_load_factor` - 1) x running / `max_num_seqs`)
//! - requests are admitted first come, first served, while fewer than `max_num_seqs` run and the KV cache has blocks
//! - full blocks of 16 tokens stay in the cache after use and are evicted least recently used first
//!
//! [`law`] is the arithmetic and the calibrated profiles, [`blocks`] the cache, [`engine`] the scheduler. All of it
//! is synchronous and takes the time as an argument; the waiting happens elsewhere. No wall clock, no IO.

pub mod blocks;
pub mod engine;
pub mod law;

pub use blocks::{BLOCK_TOKENS, BlockPool};
pub use engine::{Engine, EngineEvent, EngineFinished, EngineJob, EngineLoad, JobId};
pub use law::{CustomProfile, Profile};
