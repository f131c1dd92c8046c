//! The answers of simulated models. An answer is a pure function of the question: models have no state, so the order
//! and concurrency of requests change nothing. A further kind of model is a variant of [`AnswerConfig`].

mod filler;
mod skilled;

use std::sync::Arc;

use domain::Message;
use serde::{Deserialize, Serialize};

use crate::bounds::ConfigError;
use crate::identity::{Draw, SimIdentity, first_prompt};
use crate::pooling::{Classifier, Embedder};

pub use skilled::SkillDial;

/// One question to a simulated model.
#[derive(Clone, Copy, Debug)]
pub struct SimAsk<'a> {
    /// The served model's name.
    pub model: &'a str,
    /// The conversation so far, oldest first.
    pub messages: &'a [Message],
    /// The request's sampling seed; 0 when it names none, so that even then equal requests get equal answers.
    pub seed: i64,
    /// The hashes of the above.
    pub identity: SimIdentity,
}

impl<'a> SimAsk<'a> {
    /// A question; hashes its texts.
    pub fn new(model: &'a str, messages: &'a [Message], seed: i64) -> Self {
        Self { model, messages, seed, identity: SimIdentity::of(model, seed, messages) }
    }

    /// The first message of the user, which states the exercise; empty when there is none.
    pub fn first_prompt(&self) -> &'a str {
        first_prompt(self.messages)
    }

    /// The random numbers of this round of the dialogue.
    fn draw(&self) -> Draw {
        Draw::new(&[self.identity.conversation, u64::from(self.identity.round)])
    }
}

/// A simulated model: what it says, before the request's limits (`max_tokens`, `stop`, context) cut it. Must be pure: same
/// [`SimAsk`], same answer. It answers at once; the latency law determines the simulated duration.
pub type AnswerModel = dyn Fn(&SimAsk<'_>) -> String + Send + Sync;

/// An exercise whose answers are known. The texts are complete model answers, with the fences and prose that the
/// task's extraction expects (or, when malformed, trips over).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCase {
    /// An answer with full marks.
    pub right: String,
    /// A well-formed answer with low marks.
    pub wrong: String,
    /// An answer that cannot be parsed.
    pub malformed: String,
}

/// Knows the right answers: the simulated knowledge of a language model. Called on the serving threads for every
/// request, so it should be a lookup.
pub trait AnswerKey: Send + Sync {
    /// The exercise that this first prompt states, or `None` when it is unknown.
    fn solve(&self, first_prompt: &str) -> Option<KnownCase>;
}

/// The kind of a served model.
pub(crate) enum Purpose {
    /// Generates text.
    Chat(Arc<AnswerModel>),
    /// Embeds texts.
    Embed(Embedder),
    /// Classifies pairs of texts.
    Classify(Classifier),
}

/// The behaviour behind a model name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerConfig {
    /// Repeats the last message.
    Echo {},
    /// Random words.
    Garbage {
        /// Length of every answer in tokens, 1 to 1 000 000; 200 by default.
        #[serde(default = "garbage_tokens")]
        tokens: u32,
    },
    /// A fixed answer per round, whatever the question; the last one repeats.
    Scripted {
        /// The answers, at least one.
        answers: Vec<String>,
    },
    /// Right, wrong, malformed or rambling answers by chance.
    Skilled {
        /// The chances.
        #[serde(default)]
        overall: SkillDial,
        /// Whether every answer ends with a line that no other has, as answers of language models differ. Whoever judges
        /// them can then remember no verdict.
        #[serde(default)]
        distinct: bool,
    },
    /// An embedder (`/v1/embeddings`).
    Embedder {
        /// Share of texts whose vector has nothing to do with their words, 0 to 1; 0 by default.
        #[serde(default)]
        unrelated: f64,
    },
    /// A classifier that says whether one text follows from another (`/classify`).
    Classifier {
        /// Share of the pairs of each class that are said to be of the other two, in equal parts, 0 to 1; 0 by default.
        #[serde(default)]
        mistaken: f64,
    },
}

fn garbage_tokens() -> u32 {
    200
}

impl Default for AnswerConfig {
    fn default() -> Self {
        Self::Skilled { overall: SkillDial::default(), distinct: false }
    }
}

impl AnswerConfig {
    /// Most tokens of a garbage answer.
    const GARBAGE_TOKENS_MAX: u32 = 1_000_000;

    /// Checks the bounds; `key` is the path of this value in the configuration.
    pub(crate) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        match self {
            Self::Echo {} => Ok(()),
            Self::Garbage { tokens } => {
                ConfigError::in_range(format!("{key}.tokens"), *tokens, 1, Self::GARBAGE_TOKENS_MAX)
            }
            Self::Scripted { answers } if answers.is_empty() => {
                Err(ConfigError::new(format!("{key}.answers"), "must hold at least one answer"))
            }
            Self::Scripted { .. } => Ok(()),
            Self::Skilled { overall, .. } => overall.validate(&format!("{key}.overall")),
            Self::Embedder { unrelated: share } | Self::Classifier { mistaken: share } => {
                ConfigError::in_range(key, *share, 0.0, 1.0)
            }
        }
    }

    /// The model itself, of that name. Without a key a skilled model knows nothing and says so.
    pub(crate) fn build(&self, name: &str, key: Option<&Arc<dyn AnswerKey>>) -> Purpose {
        match self {
            Self::Embedder { unrelated } => Purpose::Embed(Embedder::new(name, *unrelated)),
            Self::Classifier { mistaken } => Purpose::Classify(Classifier::new(name, *mistaken)),
            chat => {
                let (chat, key) = (chat.clone(), key.cloned());
                Purpose::Chat(Arc::new(move |ask| chat.answer(ask, key.as_deref())))
            }
        }
    }

    /// What a model of texts says; others say nothing.
    fn answer(&self, ask: &SimAsk<'_>, key: Option<&dyn AnswerKey>) -> String {
        match self {
            Self::Echo {} => ask.messages.last().map(|message| message.content.clone()).unwrap_or_default(),
            Self::Garbage { tokens } => filler::letters(&mut ask.draw(), *tokens),
            Self::Scripted { answers } => {
                let said = answers.get(ask.identity.round as usize).or(answers.last());
                said.cloned().unwrap_or_default()
            }
            Self::Skilled { overall, distinct } => overall.answer(ask, key, *distinct),
            Self::Embedder { .. } | Self::Classifier { .. } => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_its_answer_and_the_last_repeats() {
        let model = AnswerConfig::Scripted { answers: vec!["one".into(), "two".into()] };
        let mut messages = vec![Message::user("p")];
        for expected in ["one", "two", "two"] {
            assert_eq!(model.answer(&SimAsk::new("m", &messages, 0), None), expected);
            messages.extend([Message::assistant("a"), Message::user("again")]);
        }
    }
}
