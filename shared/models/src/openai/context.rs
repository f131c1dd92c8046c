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

/// The context and, if it is exact, the prompt's length, from a server's refusal.
pub(super) fn numbers(message: &str) -> Option<(u32, Option<u32>)> {
    let context =
        ["maximum context length is ", "context length is only ", "max_model_len=", "model length of "]
            .into_iter()
            .find_map(|mark| number_after(message, mark))?;
    let prompt = number_before(message, " in the messages")
        .or_else(|| number_before(message, " input tokens"))
        .or_else(|| number_after(message, "prompt (length "));
    // "at least N" is where the tokenizer stopped counting: it only proves that the prompt is too long.
    let known = prompt.filter(|prompt| *prompt >= context || !message.contains("at least"));
    Some((context, known))
}

fn number_after(text: &str, mark: &str) -> Option<u32> {
    let rest = &text[text.find(mark)? + mark.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn number_before(text: &str, mark: &str) -> Option<u32> {
    let rest = &text[..text.find(mark)?];
    let start = rest.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    // The character before the digits may take several bytes; then there is no number to read.
    rest.get(start..)?.parse().ok()
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

    #[test]
    fn numbers_are_read_from_every_known_wording() {
        for (message, expected) in [
            (
                "This model's maximum context length is 512 tokens. However, you requested 4532 tokens (4528 in the messages, 4 in the completion).",
                Some((512, Some(4528))),
            ),
            (
                "You passed 900 input tokens and requested 200 output tokens. However, the model's context length is only 1024 tokens",
                Some((1024, Some(900))),
            ),
            (
                "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit",
                Some((1024, Some(1025))),
            ),
            (
                "This model's maximum context length is 1024 tokens. However, you requested 500 output tokens and your prompt contains at least 525 input tokens",
                Some((1024, None)),
            ),
            (
                "max_tokens=99999 cannot be greater than max_model_len=1024. Please request fewer",
                Some((1024, None)),
            ),
            (
                "The decoder prompt (length 700) is longer than the maximum model length of 512.",
                Some((512, Some(700))),
            ),
            ("maximum context length is many tokens", None),
            ("something else", None),
        ] {
            assert_eq!(numbers(message), expected, "{message}");
        }
    }
}
