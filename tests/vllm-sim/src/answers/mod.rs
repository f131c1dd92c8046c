//! The answers of simulated models. An answer is a pure function of the question: models have no state, so the order
//! and concurrency of requests change nothing. A further kind of model is a file here and a variant of
//! [`AnswerConfig`].

mod echo;
mod filler;
mod garbage;
mod scripted;
mod skilled;

use std::sync::Arc;

use domain::{FinishReason, Message};
use serde::{Deserialize, Serialize};

use crate::bounds::ConfigError;
use crate::identity::{SimIdentity, first_prompt};
use crate::pooling::{Classifier, ClassifierDial, Embedder, EmbedderDial};

pub use echo::Echo;
pub use garbage::Garbage;
pub use scripted::{ScriptedAnswer, ScriptedAnswers};
pub use skilled::{Skill, SkillDial, Skilled};

/// One question to a simulated model.
#[derive(Clone, Copy, Debug)]
pub struct SimAsk<'a> {
    /// The served model's name.
    pub model: &'a str,
    /// The conversation so far, oldest first. A request to `/v1/completions` is one message of the user.
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

    /// The last message; empty when there is none.
    pub fn last_message(&self) -> &'a str {
        self.messages.last().map_or("", |message| &message.content)
    }
}

/// The answer of a simulated model, before the request's limits (`max_tokens`, `stop`, context) cut it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimAnswer {
    /// The answer. Empty together with reasoning goes out as `"content": null`, as vLLM does.
    pub text: String,
    /// The thoughts before it, sent in the message's `reasoning` field.
    pub reasoning: Option<String>,
    /// Why the model stopped, unless a limit of the request stops it earlier. `Other` is sent as it is.
    pub finish: FinishReason,
}

impl SimAnswer {
    /// A complete answer without reasoning.
    pub fn complete(text: impl Into<String>) -> Self {
        Self { text: text.into(), reasoning: None, finish: FinishReason::Stop }
    }
}

/// A simulated model. Implementations must be pure: same [`SimAsk`], same answer.
pub trait AnswerModel: Send + Sync {
    /// Answers at once; the latency law determines the simulated duration.
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer;
}

impl<F: Fn(&SimAsk<'_>) -> SimAnswer + Send + Sync> AnswerModel for F {
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer {
        self(ask)
    }
}

/// An exercise whose answers are known. The texts are complete model answers, with the fences and prose that the
/// task's extraction expects (or, when malformed, trips over).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCase {
    /// The task family, which selects the skill dial.
    pub family: String,
    /// An answer with full marks.
    pub right: String,
    /// A well-formed answer with low marks.
    pub wrong: String,
    /// An answer that cannot be parsed.
    pub malformed: String,
    /// A long answer that misses the point; a generic one is made up when absent.
    pub rambling: Option<String>,
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
    Chat(Arc<dyn AnswerModel>),
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
    /// A fixed answer per round; the last one repeats.
    Scripted {
        /// The answers, at least one.
        answers: Vec<ScriptedAnswer>,
    },
    /// Right, wrong, malformed or rambling answers by chance, as the dial of the task family says.
    Skilled(Skill),
    /// An embedder (`/v1/embeddings`).
    Embedder(EmbedderDial),
    /// A classifier that says whether one text follows from another (`/classify`).
    Classifier(ClassifierDial),
}

fn garbage_tokens() -> u32 {
    200
}

impl Default for AnswerConfig {
    fn default() -> Self {
        Self::Skilled(Skill::default())
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
            Self::Skilled(skill) => skill.validate(key),
            Self::Embedder(dial) => dial.validate(key),
            Self::Classifier(dial) => dial.validate(key),
        }
    }

    /// The model itself, of that name. Without a key a skilled model knows nothing and says so.
    pub(crate) fn build(&self, name: &str, key: Option<&Arc<dyn AnswerKey>>) -> Purpose {
        Purpose::Chat(match self {
            Self::Echo {} => Arc::new(Echo),
            Self::Garbage { tokens } => Arc::new(Garbage::new(*tokens)),
            Self::Scripted { answers } => Arc::new(ScriptedAnswers::new(answers.clone())),
            Self::Skilled(skill) => Arc::new(Skilled::new(skill.clone(), key.cloned())),
            Self::Embedder(dial) => return Purpose::Embed(Embedder::new(name, *dial)),
            Self::Classifier(dial) => return Purpose::Classify(Classifier::new(name, dial.clone())),
        })
    }
}
