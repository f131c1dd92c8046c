//! Replies in many pieces: server-sent events, one per token.

use serde::Serialize;

use super::reply::{CachedTokens, SimUsage};
use super::{NULL, Null, SYSTEM_FINGERPRINT};

/// The end of a stream.
pub(crate) const DONE: &[u8] = b"data: [DONE]\n\n";

/// What the events of one stream have in common, and replies in one piece too.
#[derive(Clone, Debug)]
pub(crate) struct ChunkHead {
    pub(crate) chat: bool,
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
}

/// The event of a content token before and after its text. All but the last of a stream differ in nothing else, and
/// serialising each from scratch would be most of what a stream costs.
#[derive(Debug)]
pub(crate) struct ChunkTemplate {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// How a stream's last token ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) finish_reason: &'a str,
    pub(crate) stop_reason: Option<&'a str>,
}

/// The text of one token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChunkToken<'a> {
    Content(&'a str),
    Reasoning(&'a str),
}

#[derive(Serialize)]
struct EngineEvent<'a, C> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: C,
    #[serde(flatten)]
    more: More,
}

/// Fields that only some events have, after the common ones.
#[derive(Serialize)]
#[serde(untagged)]
enum More {
    None {},
    First { prompt_token_ids: Null, prompt_text: Null },
    Usage { usage: StreamUsage, system_fingerprint: &'static str },
}

/// As [`SimUsage`], without the fields that are null.
#[derive(Serialize)]
struct StreamUsage {
    prompt_tokens: u32,
    total_tokens: u32,
    completion_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<CachedTokens>,
}

#[derive(Serialize)]
struct ChatChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Null,
    finish_reason: Option<&'a str>,
    /// Only with the last token, where it may be null.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<Option<&'a str>>,
    /// Null in all events but the first, which lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<Null>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
}

#[derive(Serialize)]
struct CompletionChoice<'a> {
    index: u32,
    text: &'a str,
    logprobs: Null,
    finish_reason: Option<&'a str>,
    stop_reason: Option<&'a str>,
    token_ids: Null,
}

impl ChunkTemplate {
    /// The same as [`ChunkHead::write_token`] writes for a content token that is not the last.
    pub(crate) fn write_content(&self, out: &mut Vec<u8>, text: &str) {
        out.extend_from_slice(&self.before);
        // A string into memory: this cannot fail.
        let _ = serde_json::to_writer(&mut *out, text);
        out.extend_from_slice(&self.after);
    }
}

impl ChunkHead {
    /// The event that opens a chat stream; completions have none.
    pub(crate) fn write_opening(&self, out: &mut Vec<u8>) {
        if !self.chat {
            return;
        }
        let delta = Delta { role: Some("assistant"), content: Some(""), reasoning: None };
        let choice = ChatChoice {
            index: 0,
            delta,
            logprobs: NULL,
            finish_reason: None,
            stop_reason: None,
            token_ids: None,
        };
        self.write(out, [choice], More::First { prompt_token_ids: NULL, prompt_text: NULL });
    }

    /// The mould of this stream's events.
    pub(crate) fn template(&self) -> ChunkTemplate {
        // Inside a JSON string quotes are escaped, so this can only be the field itself.
        let field: &[u8] = if self.chat { b"\"content\":\"\"" } else { b"\"text\":\"\"" };
        let mut before = Vec::new();
        self.write_token(&mut before, ChunkToken::Content(""), None);
        let at = before.windows(field.len()).position(|window| window == field).unwrap_or_default();
        let after = before.split_off(at + field.len());
        before.truncate(before.len() - 2);
        ChunkTemplate { before, after }
    }

    /// The event of one token; the last one carries the end.
    pub(crate) fn write_token(&self, out: &mut Vec<u8>, token: ChunkToken<'_>, end: Option<End<'_>>) {
        let finish_reason = end.map(|end| end.finish_reason);
        let stop_reason = end.map(|end| end.stop_reason);
        if self.chat {
            let delta = match token {
                ChunkToken::Content(text) => Delta { content: Some(text), ..Delta::default() },
                ChunkToken::Reasoning(text) => Delta { reasoning: Some(text), ..Delta::default() },
            };
            let choice = ChatChoice {
                index: 0,
                delta,
                logprobs: NULL,
                finish_reason,
                stop_reason,
                token_ids: Some(NULL),
            };
            self.write(out, [choice], More::None {});
        } else {
            let (ChunkToken::Content(text) | ChunkToken::Reasoning(text)) = token;
            let stop_reason = stop_reason.flatten();
            let choice = CompletionChoice {
                index: 0,
                text,
                logprobs: NULL,
                finish_reason,
                stop_reason,
                token_ids: NULL,
            };
            self.write(out, [choice], More::None {});
        }
    }

    /// The event with the usage, which has no choices.
    pub(crate) fn write_usage(&self, out: &mut Vec<u8>, usage: SimUsage) {
        let usage = StreamUsage {
            prompt_tokens: usage.prompt_tokens,
            total_tokens: usage.total_tokens,
            completion_tokens: usage.completion_tokens,
            prompt_tokens_details: usage.prompt_tokens_details,
        };
        self.write::<[(); 0]>(out, [], More::Usage { usage, system_fingerprint: SYSTEM_FINGERPRINT });
    }

    fn write<C: Serialize>(&self, out: &mut Vec<u8>, choices: C, more: More) {
        let object = if self.chat { "chat.completion.chunk" } else { "text_completion" };
        let event =
            EngineEvent { id: &self.id, object, created: self.created, model: &self.model, choices, more };
        out.extend_from_slice(b"data: ");
        // Text keys into memory: this cannot fail.
        let _ = serde_json::to_writer(&mut *out, &event);
        out.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mould_gives_the_same_events() {
        for chat in [true, false] {
            let model = r#"a "content":"" "text":"" b"#.to_owned();
            let head = ChunkHead { chat, id: "i".into(), created: 1, model };
            let template = head.template();
            for text in ["abcd", "\"\n\\", ""] {
                let (mut slow, mut fast) = (Vec::new(), Vec::new());
                head.write_token(&mut slow, ChunkToken::Content(text), None);
                template.write_content(&mut fast, text);
                assert_eq!(String::from_utf8(fast).unwrap(), String::from_utf8(slow).unwrap());
            }
        }
    }
}
