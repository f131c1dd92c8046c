//! The JSON of vLLM's OpenAI-compatible interface: [`request`] comes in; [`pooling`] for embedders
//! and classifiers; [`reply`] and [`error`] go out. Field order and the many nulls are those of vLLM 0.32.

pub(crate) mod error;
pub(crate) mod pooling;
pub(crate) mod reply;
pub(crate) mod request;

/// vLLM's version string. The suffix distinguishes simulated records from real ones.
pub(crate) const SYSTEM_FINGERPRINT: &str = "vllm-0.32.0-simulated";
/// The version that `/version` reports, whose behaviour is simulated.
pub(crate) const VLLM_VERSION: &str = "0.32.0";
