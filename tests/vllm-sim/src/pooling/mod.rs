//! Models that write nothing: embedders, which give vectors, and classifiers, which give classes of pairs of texts. vLLM
//! calls them pooling models.
//!
//! Both go by the words of a text, so that a benchmark can be tried whose judges they are: [`embedder`] says which texts
//! are near, [`classifier`] which follow from which. Like everything the simulator says, their answers are functions of
//! model name, seed and text.

pub mod classifier;
pub mod embedder;
pub mod tokens;
mod words;

pub use classifier::{Classifier, ClassifierDial};
pub use embedder::{Embedder, EmbedderDial};
