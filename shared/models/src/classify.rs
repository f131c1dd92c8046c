//! Classes of pairs of texts.

use std::sync::Arc;

use domain::Usage;
use serde_json::json;

use crate::chat::{ChatReply, ChatRequest};
use crate::embed::length_within;
use crate::error::CallError;
use crate::pairs::{pair, said};

/// The premise and the hypothesis of a prompt. Nothing of them is cut: a verdict on half a text is worthless.
pub(crate) fn texts(request: &ChatRequest) -> Result<[String; 2], CallError> {
    let [premise, hypothesis] = pair(request)?;
    length_within("the premise", &premise)?;
    length_within("the hypothesis", &hypothesis)?;
    Ok([premise, hypothesis])
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

impl From<Classification> for ChatReply {
    fn from(found: Classification) -> Self {
        let of_class =
            |class: &Class| json!({ "label": class.label.as_deref(), "probability": class.probability });
        let answer = json!({
            "label": &*found.label,
            "probability": found.probability,
            "classes": found.classes.iter().map(of_class).collect::<Vec<_>>(),
        });
        said(&answer, found.usage, found.reported_model)
    }
}
