//! The JSON of vLLM's OpenAI-compatible interface: [`request`] comes in; [`reply`], [`chunk`] and [`error`] go out;
//! [`pooling`] is both for embedders and classifiers.
//! Field order and the many nulls are those of vLLM 0.32.

pub(crate) mod chunk;
pub(crate) mod error;
pub(crate) mod pooling;
pub(crate) mod reply;
pub(crate) mod request;

/// Always null: a field that vLLM sends and that the simulator does not support.
pub(crate) type Null = Option<()>;
/// The value of such a field.
pub(crate) const NULL: Null = None;

/// vLLM's version string. The suffix distinguishes simulated records from real ones.
pub(crate) const SYSTEM_FINGERPRINT: &str = "vllm-0.32.0-simulated";
/// The version that `/version` reports, whose behaviour is simulated.
pub(crate) const VLLM_VERSION: &str = "0.32.0";
