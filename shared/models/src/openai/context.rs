//! Limits the tokens of an answer to what the context leaves.
//!
//! Only the server knows exact token counts; we bound them. A byte-level tokenizer makes at most one token per byte,
//! so a prompt whose bytes fit certainly fits, and the server is not asked. A lower guess would cut answers that had
//! room, a higher one would be refused, so in between the server counts.

use domain::Message;

/// Tokens that a chat template may add to a conversation, such as a date or a default system prompt.
const TEMPLATE_TOKENS_MAX: usize = 128;

/// Tokens that a chat template may add to a message.
const MESSAGE_TOKENS_MAX: usize = 16;

/// Bytes per token of English prose and RDF, estimated low, for servers that do not count.
const BYTES_PER_TOKEN: usize = 3;

/// An upper bound of the prompt's tokens.
pub(super) fn most_tokens(messages: &[Message]) -> u32 {
    tokens(messages, 1)
}

/// An estimate of the prompt's tokens, rather too high than too low.
pub(super) fn likely_tokens(messages: &[Message]) -> u32 {
    tokens(messages, BYTES_PER_TOKEN)
}

fn tokens(messages: &[Message], bytes_per_token: usize) -> u32 {
    let of_message = |message: &Message| message.content.len() / bytes_per_token + MESSAGE_TOKENS_MAX;
    let sum = messages.iter().map(of_message).sum::<usize>() + TEMPLATE_TOKENS_MAX;
    u32::try_from(sum).unwrap_or(u32::MAX)
}

/// The wanted tokens, reduced to what the context leaves; `None` if the prompt fills it.
pub(super) fn room(wanted: u32, context: u32, prompt: u32) -> Option<u32> {
    let left = context.saturating_sub(prompt);
    (left > 0).then_some(wanted.min(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_what_the_context_leaves() {
        assert_eq!(room(4096, 8192, 1000), Some(4096));
        assert_eq!(room(4096, 8192, 8000), Some(192));
        assert_eq!(room(4096, 8192, 8192), None);
        assert_eq!(room(4096, 8192, 9000), None);
    }

    #[test]
    fn bounds_hold_for_any_text() {
        let messages = [Message::user("é".repeat(100)), Message::assistant("")];
        assert_eq!(most_tokens(&messages), 200 + 2 * 16 + 128);
        assert!(likely_tokens(&messages) < most_tokens(&messages));
    }
}
