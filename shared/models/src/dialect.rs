//! What differs between the APIs of hosted providers, and code that their connectors share.

use std::time::Duration;

use domain::{Answer, Connector, FailureCause, FinishReason, RetryAdvice, Role, Usage};
use reqwest::header::HeaderMap;

use crate::chat::{ANSWER_BYTES_MAX, ANSWER_TOO_LARGE, ChatReply, ChatRequest, cut_text};
use crate::error::{CallError, SetupError};
use crate::reasoning;
use crate::secret::Secret;

/// What differs between the APIs of hosted providers. A further provider of this kind is a further value.
#[derive(Debug)]
pub(crate) struct ProviderDialect {
    pub connector: Connector,
    pub headers: fn(&Secret) -> Result<HeaderMap, SetupError>,
    /// Path of the route that answers for a model.
    pub path: fn(&str) -> String,
    /// Serialises a request for a model.
    pub request: fn(&str, &ChatRequest) -> Result<Vec<u8>, CallError>,
    /// Parses the body of a success.
    pub reply: fn(&[u8], &Secret) -> Result<ChatReply, CallError>,
    /// Classifies an error status with its `Retry-After` and its body.
    pub classify: fn(u16, Option<Duration>, &str, &Secret) -> CallError,
}

/// Refuses a request that sets one of the sampling fields that a provider's API lacks. Dropping the field silently would
/// measure something other than the configuration says.
pub(crate) fn refuse_fields(provider: &str, lacking: &[(&str, bool)]) -> Result<(), CallError> {
    let Some((field, _)) = lacking.iter().find(|(_, is_set)| *is_set) else { return Ok(()) };
    let message =
        format!("{provider}'s API has no sampling parameter {field}; remove it from the configuration");
    Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
}

/// The instructions of a request, for APIs without a system role.
pub(crate) fn instructions(request: &ChatRequest) -> Option<String> {
    let system: Vec<&str> = request
        .messages
        .iter()
        .filter(|message| message.role == Role::System)
        .map(|message| message.content.as_str())
        .collect();
    (!system.is_empty()).then(|| system.join("\n\n"))
}

/// An answer of text and thoughts, both cut to the limit.
pub(crate) fn answer(
    mut text: String,
    mut thoughts: String,
    finish_reason: Option<FinishReason>,
    usage: Usage,
) -> Answer {
    cut_text(&mut thoughts, ANSWER_BYTES_MAX);
    let finish_reason = if cut_text(&mut text, ANSWER_BYTES_MAX) {
        Some(FinishReason::Other(ANSWER_TOO_LARGE.to_owned()))
    } else {
        finish_reason
    };
    let (text, reasoning) = reasoning::split(text, Some(thoughts), None);
    Answer { text, reasoning, finish_reason, usage, oddities: Vec::new() }
}
