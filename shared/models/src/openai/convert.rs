//! Converts between our types and the API's.

use std::borrow::Cow;

use domain::{FinishReason, Message, Role, Usage};

use super::wire::WireUsage;

/// The conversation for models without a system role or with strict alternation: system messages are put before the
/// next user message, and neighbours with one role are merged, separated by an empty line.
pub(super) fn folded(messages: &[Message]) -> Cow<'_, [Message]> {
    if !needs_folding(messages) {
        return Cow::Borrowed(messages);
    }
    let mut folded: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        let role = if message.role == Role::System { Role::User } else { message.role };
        match folded.last_mut() {
            Some(last) if last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&message.content);
            }
            _ => folded.push(Message { role, content: message.content.clone() }),
        }
    }
    Cow::Owned(folded)
}

/// Whether folding changes anything.
pub(super) fn needs_folding(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.role == Role::System)
        || messages.windows(2).any(|pair| pair[0].role == pair[1].role)
}

/// Parses the finish reason; `None` if the server itself stopped the generation.
pub(super) fn finish_reason(word: &str) -> Option<FinishReason> {
    match word {
        // vLLM: the engine dropped or failed the request, so the text is not an answer.
        "abort" | "error" => None,
        "stop" | "eos_token" | "stop_sequence" => Some(FinishReason::Stop),
        "length" => Some(FinishReason::Length),
        "content_filter" => Some(FinishReason::ContentFilter),
        "repetition" => Some(FinishReason::Repetition),
        other => Some(FinishReason::Other(other.chars().take(FINISH_REASON_CHARS_MAX).collect())),
    }
}

/// Maximum length of an unknown finish reason, in characters.
const FINISH_REASON_CHARS_MAX: usize = 64;

/// Token counts of a question that generates no text. vLLM reports 0 generated tokens, OpenAI none; we store none.
pub(super) fn usage_of_inputs(wire: &WireUsage) -> Usage {
    Usage { completion_tokens: None, reasoning_tokens: None, ..usage(wire) }
}

/// Converts token counts.
pub(super) fn usage(wire: &WireUsage) -> Usage {
    Usage {
        prompt_tokens: wire.prompt_tokens,
        completion_tokens: wire.completion_tokens,
        cached_tokens: wire.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens),
        reasoning_tokens: wire
            .completion_tokens_details
            .as_ref()
            .and_then(|details| details.reasoning_tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_messages_go_into_the_users() {
        let system = Message { role: Role::System, content: "be brief".into() };
        let messages =
            [system, Message::user("a"), Message::assistant("b"), Message::user("c"), Message::user("d")];
        assert_eq!(
            folded(&messages).as_ref(),
            [Message::user("be brief\n\na"), Message::assistant("b"), Message::user("c\n\nd")]
        );
        let plain = [Message::user("a"), Message::assistant("b"), Message::user("c")];
        assert!(matches!(folded(&plain), Cow::Borrowed(_)));
    }

    #[test]
    fn finish_reasons_keep_unknown_words_and_refuse_aborts() {
        assert_eq!(finish_reason("stop"), Some(FinishReason::Stop));
        assert_eq!(finish_reason("repetition"), Some(FinishReason::Repetition));
        assert_eq!(finish_reason("tool_calls"), Some(FinishReason::Other("tool_calls".into())));
        assert_eq!(finish_reason("abort"), None);
    }
}
