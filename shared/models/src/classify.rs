//! Classes of pairs of texts: the trait of models that give them, and what goes in and out.

use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, Usage};
use futures::future::BoxFuture;

use crate::chat::ModelIdentity;
use crate::embed::{count_within, length_within, size_within};
use crate::error::CallError;

/// The most pairs of one request: each costs the server one or two calls to count its tokens and a place in its queue.
pub const PAIRS_MAX: usize = 64;

/// Something that puts pairs of texts into classes, such as entailment, neutral and contradiction. One call is one
/// attempt, as with [`crate::ChatModel`].
pub trait ClassifyModel: Send + Sync {
    /// Asks once.
    ///
    /// # Errors
    /// Whatever kept the model from answering, and answers that are no classes. A pair beyond the model's context is
    /// [`domain::FailureCause::ContextExceeded`]: nothing is cut, because a verdict on half a text is none.
    fn classify(&self, request: ClassifyRequest) -> BoxFuture<'_, Result<ClassifyReply, CallError>>;

    /// Who is asked, for records and messages.
    fn identity(&self) -> &ModelIdentity;
}

/// Two texts whose relation is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// What is given, such as a model's answer.
    pub premise: Arc<str>,
    /// What may or may not follow from it.
    pub hypothesis: Arc<str>,
}

/// Some pairs for a model. Cloning is cheap: the texts are shared.
#[derive(Clone, Debug)]
pub struct ClassifyRequest {
    /// One to [`PAIRS_MAX`] pairs of texts of at most [`crate::embed::TEXT_BYTES_MAX`] bytes each,
    /// [`crate::embed::REQUEST_BYTES_MAX`] together.
    pub pairs: Arc<[TextPair]>,
    /// The most time this one call may take, tokenizing included.
    pub deadline: Duration,
    /// The dialogue that asks: what makes back-off delays repeatable.
    pub key: DialogueKey,
    /// Round of the dialogue, from 0.
    pub round: u32,
}

impl ClassifyRequest {
    /// Refuses what no server should be sent.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        count_within("pairs", self.pairs.len(), PAIRS_MAX)?;
        self.pairs.iter().enumerate().try_for_each(|(at, pair)| {
            length_within("the premise of pair", at, &pair.premise)?;
            length_within("the hypothesis of pair", at, &pair.hypothesis)
        })?;
        size_within(self.pairs.iter().map(|pair| pair.premise.len() + pair.hypothesis.len()).sum())
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifyReply {
    /// One for each pair, in their order.
    pub classifications: Vec<Classification>,
    /// Tokens of all pairs together.
    pub usage: Usage,
    /// The model name in the server's answer; it may differ from the one asked for.
    pub reported_model: Option<String>,
}

/// Where a pair belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// The likeliest class in the model's own word, such as `ENTAILMENT`.
    pub label: Arc<str>,
    /// Its probability, 0 to 1.
    pub probability: f64,
    /// All classes in the model's order.
    pub classes: Vec<Class>,
}

/// A class and how likely it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The model's word for it, where it is known: servers name the likeliest class only, so the others are known once
    /// some pair was put there, or from the configuration.
    pub label: Option<Arc<str>>,
    /// 0 to 1; all together 1.
    pub probability: f64,
}
