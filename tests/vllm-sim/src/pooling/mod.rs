//! Models that generate no text: embedders and classifiers of pairs of texts. vLLM calls them pooling models.
//!
//! Both go by the words of a text, so that benchmarks with such judges can be tried: [`embedder`] defines which texts
//! are similar, [`classifier`] which follow from which. Like everything the simulator says, their answers are
//! functions of model name and text.

pub mod classifier;
pub mod embedder;
pub mod tokens;
mod words;

pub use classifier::Classifier;
pub use embedder::Embedder;
