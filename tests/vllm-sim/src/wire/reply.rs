//! Texts as they are sent: in one piece, or as server-sent events, one per token.

use serde_json::{Value, json};

use super::SYSTEM_FINGERPRINT;

/// The end of a stream.
pub(crate) const DONE: &[u8] = b"data: [DONE]\n\n";

/// Token counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimUsage {
    pub(crate) prompt_tokens: u32,
    pub(crate) completion_tokens: u32,
    /// Reported when it is given.
    pub(crate) cached_tokens: Option<u32>,
}

impl SimUsage {
    fn total(self) -> u32 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// The counts as they stand in whole replies.
    pub(crate) fn whole(self) -> Value {
        json!({
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.total(),
            "completion_tokens": self.completion_tokens,
            "prompt_tokens_details": self.cached_tokens.map(|tokens| json!({ "cached_tokens": tokens })),
            "completion_tokens_details": null,
        })
    }

    /// The same in a stream, which leaves out what is null.
    fn streamed(self) -> Value {
        let mut usage = self.whole();
        if let Value::Object(fields) = &mut usage {
            fields.retain(|_, value| !value.is_null());
        }
        usage
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) finish_reason: &'a str,
    /// The stop string that ended it.
    pub(crate) stop_reason: Option<&'a str>,
}

/// What the events of one stream have in common, and replies in one piece too.
#[derive(Clone, Debug)]
pub(crate) struct ReplyHead {
    pub(crate) id: String,
    pub(crate) created: u64,
    pub(crate) model: String,
}

impl ReplyHead {
    /// The body of a reply in one piece.
    pub(crate) fn whole(&self, text: &str, end: End<'_>, usage: SimUsage) -> String {
        let choice = json!({
            "index": 0,
            "message": {
                "role": "assistant",
                "content": text,
                "refusal": null,
                "annotations": null,
                "audio": null,
                "function_call": null,
                "reasoning": null,
            },
            "logprobs": null,
            "finish_reason": end.finish_reason,
            "stop_reason": end.stop_reason,
            "token_ids": null,
            "routed_experts": null,
        });
        let reply = json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "service_tier": null,
            "system_fingerprint": SYSTEM_FINGERPRINT,
            "usage": usage.whole(),
            "prompt_logprobs": null,
            "prompt_token_ids": null,
            "prompt_text": null,
            "kv_transfer_params": null,
            "ec_transfer_params": null,
            "metrics": null,
        });
        reply.to_string()
    }

    /// The event that opens a stream.
    pub(crate) fn write_opening(&self, out: &mut Vec<u8>) {
        let delta = json!({ "role": "assistant", "content": "" });
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null });
        let mut event = self.event(json!([choice]));
        event["prompt_token_ids"] = Value::Null;
        event["prompt_text"] = Value::Null;
        write(out, &event);
    }

    /// The event of one token; the last one carries the end.
    pub(crate) fn write_token(&self, out: &mut Vec<u8>, text: &str, end: Option<End<'_>>) {
        let mut choice = json!({ "index": 0, "delta": { "content": text }, "logprobs": null });
        choice["finish_reason"] = end.map(|end| end.finish_reason).into();
        if let Some(end) = end {
            choice["stop_reason"] = end.stop_reason.into();
        }
        choice["token_ids"] = Value::Null;
        write(out, &self.event(json!([choice])));
    }

    /// The event with the usage, which has no choices.
    pub(crate) fn write_usage(&self, out: &mut Vec<u8>, usage: SimUsage) {
        let mut event = self.event(json!([]));
        event["usage"] = usage.streamed();
        event["system_fingerprint"] = SYSTEM_FINGERPRINT.into();
        write(out, &event);
    }

    /// The mould of this stream's events.
    pub(crate) fn mould(&self) -> EventMould {
        // Inside a JSON string quotes are escaped, so this can only be the field itself.
        let field = b"\"content\":\"\"";
        let mut before = Vec::new();
        self.write_token(&mut before, "", None);
        let at = before.windows(field.len()).position(|window| window == field).unwrap_or_default();
        let after = before.split_off(at + field.len());
        before.truncate(before.len() - 2);
        EventMould { before, after }
    }

    fn event(&self, choices: Value) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }
}

/// The event of a token before and after its text. All but the last of a stream differ in nothing else, and serialising each
/// from scratch would be most of what a stream costs.
#[derive(Debug)]
pub(crate) struct EventMould {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl EventMould {
    /// The same as [`ReplyHead::write_token`] writes for a token that is not the last.
    pub(crate) fn write(&self, out: &mut Vec<u8>, text: &str) {
        out.extend_from_slice(&self.before);
        // A string into memory: this cannot fail.
        let _ = serde_json::to_writer(&mut *out, text);
        out.extend_from_slice(&self.after);
    }
}

fn write(out: &mut Vec<u8>, event: &Value) {
    out.extend_from_slice(b"data: ");
    // JSON into memory: this cannot fail.
    let _ = serde_json::to_writer(&mut *out, event);
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mould_gives_the_same_events() {
        let head = ReplyHead { id: "i".into(), created: 1, model: r#"a "content":"" b"#.into() };
        let mould = head.mould();
        for text in ["abcd", "\"\n\\", ""] {
            let (mut slow, mut fast) = (Vec::new(), Vec::new());
            head.write_token(&mut slow, text, None);
            mould.write(&mut fast, text);
            assert_eq!(String::from_utf8(fast).unwrap(), String::from_utf8(slow).unwrap());
        }
    }
}
