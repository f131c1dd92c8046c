//! Assembles an answer from one body or from the events of a stream.

use domain::{Answer, FailureCause, FinishReason, RetryAdvice, Usage};

use super::convert;
use super::errors::{self, Rejected};
use super::wire::{Text, WireReply, WireSaid};
use crate::chat::{ANSWER_BYTES_MAX, ANSWER_TOO_LARGE, ChatReply, cut_text};
use crate::error::CallError;
use crate::http::{unparsable, unusable};
use crate::reasoning;
use crate::secret::{Secret, scrub_with};

/// An answer being assembled.
#[derive(Debug, Default)]
pub(super) struct AnswerBuilder {
    text: String,
    reasoning: String,
    refusal: String,
    finish_reason: Option<FinishReason>,
    usage: Usage,
    model: Option<String>,
    system_fingerprint: Option<String>,
    too_large: bool,
}

/// What a piece contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absorbed {
    /// A token: the model makes progress.
    Token,
    /// Something else, such as the usage.
    Other,
    /// More text than the limit: stop reading.
    Enough,
}

impl AnswerBuilder {
    /// Adds one JSON piece.
    pub(super) fn absorb(&mut self, json: &[u8], key: Option<&Secret>) -> Result<Absorbed, Rejected> {
        // Invalid UTF-8 is an error here, too: no version of the API sends it.
        let reply: WireReply<'_> = serde_json::from_slice(json).map_err(|error| unparsable(&error, key))?;
        if reply.error.is_some() || reply.object.is_some_and(|object| object.0 == "error") {
            let text = String::from_utf8_lossy(json);
            return Err(errors::classify_within_success(&scrub_with(key, &text)));
        }
        keep_first(&mut self.model, reply.model);
        keep_first(&mut self.system_fingerprint, reply.system_fingerprint);
        if let Some(usage) = &reply.usage {
            self.usage = convert::usage(usage);
        }
        // We request one answer, so there is one choice.
        let Some(choice) = reply.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(Absorbed::Other);
        };
        if let Some(word) = choice.finish_reason {
            self.finish_reason = Some(convert::finish_reason(&word.0).ok_or_else(|| {
                let message = format!("the server ended the generation (finish_reason: {})", word.0);
                CallError::new(FailureCause::Aborted, RetryAdvice::Transient, message)
            })?);
        }
        if let Some(said) = choice.delta.or(choice.message) {
            self.add(&said);
        }
        Ok(if self.too_large { Absorbed::Enough } else { Absorbed::Token })
    }

    /// Whether the answer is complete according to the model or the server.
    pub(super) fn is_finished(&self) -> bool {
        self.finish_reason.is_some() || self.too_large
    }

    /// The answer so far.
    pub(super) fn finish(self) -> ChatReply {
        let finish_reason = if self.too_large {
            Some(FinishReason::Other(ANSWER_TOO_LARGE.to_owned()))
        } else {
            self.finish_reason
        };
        let (mut text, reasoning) =
            reasoning::split(self.text, (!self.reasoning.is_empty()).then_some(self.reasoning));
        if text.is_empty() {
            // A refusal is the model's answer.
            text = self.refusal;
        }
        ChatReply {
            answer: Answer { text, reasoning, finish_reason, usage: self.usage },
            reported_model: self.model,
            system_fingerprint: self.system_fingerprint,
            first_token: None,
        }
    }

    fn add(&mut self, said: &WireSaid<'_>) {
        // Some servers send the same reasoning under both names.
        let reasoning = said.reasoning.as_ref().or(said.reasoning_content.as_ref());
        for (kept, piece) in [
            (&mut self.text, said.content.as_ref()),
            (&mut self.reasoning, reasoning),
            (&mut self.refusal, said.refusal.as_ref()),
        ] {
            if let Some(piece) = piece {
                kept.push_str(&piece.0);
                self.too_large |= cut_text(kept, ANSWER_BYTES_MAX);
            }
        }
    }
}

/// Parses an answer that was not streamed.
pub(super) fn read_whole(body: &[u8], key: Option<&Secret>) -> Result<ChatReply, Rejected> {
    let mut answer = AnswerBuilder::default();
    if answer.absorb(body, key)? == Absorbed::Other {
        return Err(unusable("the answer has no choices").into());
    }
    Ok(answer.finish())
}

fn keep_first(kept: &mut Option<String>, value: Option<Text<'_>>) {
    if kept.is_none() {
        *kept = value.map(|text| text.0.into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(json: &str) -> ChatReply {
        read_whole(json.as_bytes(), None).unwrap()
    }

    #[test]
    fn a_whole_answer_is_read_with_all_that_is_known_of_it() {
        let reply = whole(
            r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",
               "content":"a\n\u00e9","refusal":null,"reasoning":"because"},"logprobs":null,"finish_reason":"stop"}],
               "system_fingerprint":"f","usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,
               "prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":null}}"#,
        );
        assert_eq!(reply.answer.text, "a\né");
        assert_eq!(reply.answer.reasoning.as_deref(), Some("because"));
        assert_eq!(reply.answer.finish_reason, Some(FinishReason::Stop));
        let usage = Usage {
            prompt_tokens: Some(3),
            completion_tokens: Some(2),
            cached_tokens: Some(1),
            reasoning_tokens: None,
        };
        assert_eq!(reply.answer.usage, usage);
        assert_eq!(
            (reply.reported_model.as_deref(), reply.system_fingerprint.as_deref()),
            (Some("m"), Some("f"))
        );
    }

    #[test]
    fn useless_answers_are_answers() {
        let null = whole(
            r#"{"choices":[{"message":{"content":null,"reasoning_content":"hm"},"finish_reason":"length"}]}"#,
        );
        assert_eq!(null.answer.text, "");
        assert_eq!(null.answer.reasoning.as_deref(), Some("hm"));
        assert_eq!(null.answer.finish_reason, Some(FinishReason::Length));
        assert_eq!(whole(r#"{"choices":[{"message":{"content":null,"refusal":"no"}}]}"#).answer.text, "no");
        let parts = whole(
            r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]}}]}"#,
        );
        assert_eq!(parts.answer.text, "ab");
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for (json, cause) in [
            (
                r#"{"choices":[{"message":{"content":"half"},"finish_reason":"abort"}]}"#,
                FailureCause::Aborted,
            ),
            (r#"{"choices":[]}"#, FailureCause::Server),
            (r#"{"choices":[{"message":{"content":7}}]}"#, FailureCause::Server),
            ("<html>", FailureCause::Server),
            (r#"{"error":{"message":"engine dead","code":500}}"#, FailureCause::Server),
            (r#"{"object":"error","message":"slow down","code":429}"#, FailureCause::RateLimited),
        ] {
            let rejected = read_whole(json.as_bytes(), None).unwrap_err();
            assert_eq!(rejected.error.cause, cause, "{json}");
            assert_ne!(rejected.error.retry, RetryAdvice::No, "{json}");
        }
    }
}
