//! Classification of pairs of texts: the trait, with its request and reply.

use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, Usage};

use crate::chat::ModelIdentity;
use crate::embed::{count_within, length_within, size_within};
use crate::error::CallError;

/// Maximum number of pairs in one request: each pair costs the server one or two tokenizer calls and a place in its
/// queue.
pub const PAIRS_MAX: usize = 64;

/// A model that classifies pairs of texts, for example as entailment, neutral or contradiction. One call is one
/// attempt, as with [`crate::ChatModel`].
#[async_trait::async_trait]
pub trait ClassifyModel: Send + Sync {
    /// Makes one attempt.
    ///
    /// # Errors
    /// Any reason why there is no answer, and replies without valid classes. A pair beyond the model's context is
    /// [`domain::FailureCause::ContextExceeded`]: nothing is cut, because a verdict on half a text is worthless.
    async fn classify(&self, request: ClassifyRequest) -> Result<ClassifyReply, CallError>;

    /// Identifies the model in records and messages.
    fn identity(&self) -> &ModelIdentity;
}

/// Two texts whose relation is to be classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// The given text, such as a model's answer.
    pub premise: Arc<str>,
    /// The text that may or may not follow from it.
    pub hypothesis: Arc<str>,
}

/// A request for a model.
#[derive(Clone, Debug)]
pub struct ClassifyRequest {
    /// One to [`PAIRS_MAX`] pairs of texts of at most [`crate::embed::TEXT_BYTES_MAX`] bytes each,
    /// [`crate::embed::REQUEST_BYTES_MAX`] together.
    pub pairs: Arc<[TextPair]>,
    /// Maximum duration of this call, including tokenizing.
    pub deadline: Duration,
    /// The dialogue; makes back-off delays reproducible.
    pub key: DialogueKey,
    /// Round of the dialogue, from 0.
    pub round: u32,
}

impl ClassifyRequest {
    /// Checks the size limits.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        count_within("pairs", self.pairs.len(), PAIRS_MAX)?;
        self.pairs.iter().enumerate().try_for_each(|(at, pair)| {
            length_within("the premise of pair", at, &pair.premise)?;
            length_within("the hypothesis of pair", at, &pair.hypothesis)
        })?;
        size_within(self.pairs.iter().map(|pair| pair.premise.len() + pair.hypothesis.len()).sum())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClassifyReply {
    /// One per pair, in the same order.
    pub classifications: Vec<Classification>,
    /// Tokens of all pairs together.
    pub usage: Usage,
    /// The model name in the server's answer; it may differ from the one asked for.
    pub reported_model: Option<String>,
}

/// The classes of one pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// The likeliest class in the model's own word, such as `ENTAILMENT`.
    pub label: Arc<str>,
    /// 0 to 1.
    pub probability: f64,
    /// All classes, in the model's order.
    pub classes: Vec<Class>,
}

/// A class and how likely it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The model's name for it, if known. Servers name only the likeliest class, so a name becomes known when some
    /// pair falls into it, or from the configuration.
    pub label: Option<Arc<str>>,
    /// 0 to 1; the probabilities of all classes sum to 1.
    pub probability: f64,
}
