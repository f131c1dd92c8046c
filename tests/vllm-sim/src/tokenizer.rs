//! The simulator's tokens: four bytes of UTF-8 each.
//!
//! English text has about four characters per token with the tokenizers of current models, so lengths come out
//! plausible, and counting costs a division. The one rule serves for usage, the context length check, the
//! latency law and the KV-cache blocks, so these always agree with each other.

use domain::{Message, Role};

pub const BYTES_PER_TOKEN: usize = 4;

/// Tokens of a text of so many bytes, the last one possibly short. Saturates at `u32::MAX`.
pub fn tokens_in(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX)
}

/// The first `tokens` tokens of a text, cut back to whole characters.
pub fn prefix(text: &str, tokens: u32) -> &str {
    &text[..boundary(text, tokens as usize)]
}

/// The tokens of a text from the `start`-th (counted from 0) on. A character is at most four bytes long, so none of
/// them is empty and there are exactly [`tokens_in`] of them; together they are the text.
pub fn pieces(text: &str, start: u32) -> impl Iterator<Item = &str> {
    let total = text.len().div_ceil(BYTES_PER_TOKEN);
    (start as usize..total).map(|at| &text[boundary(text, at)..boundary(text, at + 1)])
}

/// Numbers for the tokens of a text, as `/tokenize` reports them: below 32 000, equal for equal tokens.
pub fn ids(text: &str) -> Vec<u32> {
    const VOCABULARY: u32 = 32_000;
    text.as_bytes()
        .chunks(BYTES_PER_TOKEN)
        .map(|chunk| chunk.iter().fold(0_u32, |id, &byte| (id << 8) | u32::from(byte)) % VOCABULARY)
        .collect()
}

/// The prompt as the model sees it: each message between markers, then the marker that invites the answer.
/// A follow-up's rendering begins with the rendering of the rounds before it, which is what makes prefix caching work.
pub fn render(messages: &[Message]) -> String {
    let mut text = String::with_capacity(rendered_len(messages));
    for message in messages {
        text.push_str(marker(message.role));
        text.push_str(&message.content);
        text.push('\n');
    }
    text.push_str(marker(Role::Assistant));
    text
}

/// Bytes of [`render`]'s text without building it.
pub fn rendered_len(messages: &[Message]) -> usize {
    let invitation = marker(Role::Assistant).len();
    messages.iter().map(|message| marker(message.role).len() + message.content.len() + 1).sum::<usize>()
        + invitation
}

fn marker(role: Role) -> &'static str {
    match role {
        Role::System => "<|system|>\n",
        Role::User => "<|user|>\n",
        Role::Assistant => "<|assistant|>\n",
    }
}

/// The last character boundary at or before the end of `tokens` tokens.
fn boundary(text: &str, tokens: usize) -> usize {
    let mut at = tokens.saturating_mul(BYTES_PER_TOKEN).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_follow_up_begins_with_the_rounds_before_it() {
        let mut messages = vec![Message::user("What is ex:a?")];
        let first = render(&messages);
        assert_eq!(first.len(), rendered_len(&messages));
        messages.extend([Message::assistant("A thing."), Message::user("Are you sure?")]);
        assert!(render(&messages).starts_with(&(first + "A thing.\n")));
    }

    proptest! {
        #[test]
        fn pieces_make_up_the_text(text in "\\PC{0,80}", start in 0_u32..90, cut in 0_u32..90) {
            let all: Vec<&str> = pieces(&text, 0).collect();
            prop_assert_eq!(all.concat(), text.clone());
            prop_assert_eq!(all.len(), tokens_in(text.len()) as usize);
            prop_assert!(all.iter().all(|piece| !piece.is_empty()));
            prop_assert_eq!(pieces(&text, start).count(), all.len().saturating_sub(start as usize));
            let short = prefix(&text, cut);
            prop_assert!(text.starts_with(short));
            prop_assert_eq!(tokens_in(short.len()), tokens_in(text.len()).min(cut));
        }
    }
}
