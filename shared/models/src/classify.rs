//! Classification of pairs of texts: the trait, with its request and reply.

use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, Usage};

use crate::chat::ModelIdentity;
use crate::embed::length_within;
use crate::error::CallError;

/// A model that classifies pairs of texts, for example as entailment, neutral or contradiction. One call is one
/// attempt, as with [`crate::ChatModel`].
#[async_trait::async_trait]
pub trait ClassifyModel: Send + Sync {
    /// Makes one attempt.
    ///
    /// # Errors
    /// Any reason why there is no answer, and replies without valid classes. A pair beyond the model's context is
    /// [`domain::FailureCause::ContextExceeded`]: nothing is cut, because a verdict on half a text is worthless.
    async fn classify(&self, request: ClassifyRequest) -> Result<Classification, CallError>;

    /// Identifies the model in records and messages.
    fn identity(&self) -> &ModelIdentity;
}

/// Two texts whose relation is to be classified, of at most [`crate::embed::TEXT_BYTES_MAX`] bytes each.
#[derive(Clone, Debug)]
pub struct ClassifyRequest {
    /// The given text, such as a model's answer.
    pub premise: String,
    /// The text that may or may not follow from it.
    pub hypothesis: String,
    /// Maximum duration of this call, including tokenizing.
    pub deadline: Duration,
    /// The dialogue.
    pub key: DialogueKey,
}

impl ClassifyRequest {
    /// Checks the size limits.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        length_within("the premise", &self.premise)?;
        length_within("the hypothesis", &self.hypothesis)
    }
}

/// The classes of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// The likeliest class in the model's own word, such as `ENTAILMENT`.
    pub label: Arc<str>,
    /// 0 to 1.
    pub probability: f64,
    /// All classes, in the model's order.
    pub classes: Vec<Class>,
    /// Tokens of the pair.
    pub usage: Usage,
    /// The model name in the server's answer; it may differ from the one asked for.
    pub reported_model: Option<String>,
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
