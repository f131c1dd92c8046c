//! Assembles an answer from one body or from the events of a stream.

use domain::{Answer, FinishReason, Oddity, ReasoningMarks, Usage};

use super::convert;
use super::joined::Joined;
use super::odd_numbers::without_odd_numbers;
use super::said::{SaidContent, WireReply, WireSaid, Word, has_said, says_something};
use crate::chat::{ANSWER_BYTES_MAX, ANSWER_TOO_LARGE, ChatReply};
use crate::error::{CallError, blanked};
use crate::http::{unparsable, unusable};
use crate::quirks::Remedy;
use crate::reasoning;
use crate::refusals::{self, Rejected};
use crate::secret::Secret;
use crate::stops;

/// An answer being assembled.
#[derive(Debug, Default)]
pub(super) struct AnswerBuilder {
    text: Joined,
    reasoning: Joined,
    refusal: Joined,
    finish_reason: Option<FinishReason>,
    usage: Usage,
    model: Option<String>,
    system_fingerprint: Option<String>,
    /// A choice has come, if only an empty one.
    is_begun: bool,
    /// Pieces of a stream have come.
    in_pieces: bool,
    /// The token counts have come in an event of their own, which is a stream's last.
    is_closed: bool,
    too_large: bool,
}

/// What is needed to understand what a server says.
#[derive(Clone, Copy, Default)]
pub(super) struct Understanding<'a> {
    pub(super) key: Option<&'a Secret>,
    /// What the model puts around its thoughts; `None` for what is known of models.
    pub(super) reasoning: Option<&'a ReasoningMarks>,
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
        let mended;
        let reply: WireReply<'_> = match serde_json::from_slice(json) {
            Ok(reply) => reply,
            Err(error) => {
                mended = without_odd_numbers(json).ok_or_else(|| unparsable(&error, key))?;
                serde_json::from_slice(&mended).map_err(|error| unparsable(&error, key))?
            }
        };
        let choice = reply.choices.and_then(|choices| choices.into_iter().next());
        let of_choice = choice.as_ref().and_then(|choice| choice.error.as_ref());
        let is_error = [reply.error.as_ref(), of_choice].into_iter().flatten().any(says_something)
            || reply.object.is_some_and(|object| object.0 == "error")
            || (choice.is_none() && reply.message.as_ref().is_some_and(says_something));
        if is_error {
            return self.refused(json, key);
        }
        keep_first(&mut self.model, reply.model);
        keep_first(&mut self.system_fingerprint, reply.system_fingerprint);
        if let Some(usage) = &reply.usage {
            let counted = convert::usage(usage);
            self.usage = if counted.is_empty() { self.usage } else { counted };
            self.is_closed |= choice.is_none();
        }
        let Some(choice) = choice else { return Ok(Absorbed::Other) };
        if let Some(word) = choice.finish_reason.filter(|word| !stops::is_no_reason(&word.0)) {
            self.finish_reason = Some(convert::finish_reason(&word.0).ok_or_else(|| {
                let message = format!("the server ended the generation (finish_reason: {})", word.0);
                CallError::aborted(message, self.usage)
            })?);
        }
        let is_token = match (choice.delta, choice.message) {
            (Some(delta), _) if has_said(&delta) || self.in_pieces => {
                self.in_pieces = true;
                self.add(&delta, key)?
            }
            // A whole answer, which may also come as a stream of one event. After pieces it would only repeat them.
            (_, Some(message)) if !self.in_pieces => self.add(&message, key)?,
            (Some(_), _) => false,
            (None, None) => {
                // Of what a filter withheld, nothing but the reason may come.
                self.is_begun |= self.finish_reason == Some(FinishReason::ContentFilter);
                return Ok(Absorbed::Other);
            }
            (None, Some(_)) => false,
        };
        self.is_begun = true;
        Ok(match (self.too_large, is_token) {
            (true, _) => Absorbed::Enough,
            (false, true) => Absorbed::Token,
            (false, false) => Absorbed::Other,
        })
    }

    /// Takes an error that came instead of a piece. A filter's ends the answer.
    pub(super) fn refused(&mut self, json: &[u8], key: Option<&Secret>) -> Result<Absorbed, Rejected> {
        let rejected = refusals::classify_within_success(&String::from_utf8_lossy(json), key);
        if rejected.remedy != Some(Remedy::Withheld) {
            return Err(rejected);
        }
        (self.is_begun, self.finish_reason) = (true, Some(FinishReason::ContentFilter));
        Ok(Absorbed::Enough)
    }

    /// Whether the answer is complete according to the model or the server.
    pub(super) fn is_finished(&self) -> bool {
        self.finish_reason.is_some() || self.too_large
    }

    /// Whether a stream that ends here has come to its end.
    pub(super) fn is_closed(&self) -> bool {
        self.is_finished() || self.is_closed
    }

    /// The same error, with what was bought with it.
    pub(super) fn bought(&self, rejected: Rejected) -> Rejected {
        let answer = (&self.text, &self.reasoning, blanked(&rejected.error.message));
        let error = rejected.error.for_nothing(answer, self.usage);
        Rejected { error, ..rejected }
    }

    /// The answer so far.
    ///
    /// # Errors
    /// Nothing has come that could be one.
    pub(super) fn finish(self, said: &Understanding<'_>) -> Result<ChatReply, Rejected> {
        if !self.is_begun {
            return Err(unusable("the answer has no choices").into());
        }
        let finish_reason = if self.too_large {
            Some(FinishReason::Other(ANSWER_TOO_LARGE.to_owned()))
        } else {
            self.finish_reason
        };
        let thoughts = (!self.reasoning.is_empty()).then(|| self.reasoning.into_text());
        let (mut text, reasoning) = reasoning::split(self.text.into_text(), thoughts, said.reasoning);
        if text.is_empty() {
            // A refusal is the model's answer.
            text = self.refusal.into_text();
        }
        let odd = [
            (Oddity::NoFinishReason, finish_reason.is_none()),
            (Oddity::ReasoningMarkers, said.reasoning.is_none() && reasoning::holds_markers(&text)),
        ];
        let oddities = odd.into_iter().filter(|(_, is_so)| *is_so).map(|(oddity, _)| oddity).collect();
        let answer = Answer { text, reasoning, finish_reason, usage: self.usage, oddities };
        Ok(ChatReply::said(answer, self.model, self.system_fingerprint, said.key))
    }

    /// Adds what the model said; whether it said anything.
    fn add(&mut self, said: &WireSaid<'_>, key: Option<&Secret>) -> Result<bool, CallError> {
        // Some servers send the same reasoning under both names, or one of them empty.
        let is_full = |content: &&SaidContent<'_>| !content.is_empty();
        let thoughts = said.reasoning.as_ref().filter(is_full).or(said.reasoning_content.as_ref());
        let mut keep = |kept: &mut Joined, piece: &[u8]| {
            kept.push(piece).map_err(|error| unparsable(&error, key))?;
            self.too_large |= kept.cut(ANSWER_BYTES_MAX);
            Ok::<(), CallError>(())
        };
        if let Some(content) = &said.content {
            keep(&mut self.reasoning, &content.thought)?;
            keep(&mut self.text, &content.text)?;
        }
        if let Some(thoughts) = thoughts {
            keep(&mut self.reasoning, &thoughts.text)?;
            keep(&mut self.reasoning, &thoughts.thought)?;
        }
        if let Some(refusal) = &said.refusal {
            keep(&mut self.refusal, &refusal.text)?;
        }
        Ok(has_said(said))
    }
}

/// Whether this is a piece of an answer, or an error in its place.
pub(super) fn is_piece(json: &[u8]) -> bool {
    let reply = serde_json::from_slice::<WireReply<'_>>(json);
    reply.is_ok_and(|reply| reply.choices.is_some() || reply.error.as_ref().is_some_and(says_something))
}

/// Parses an answer that was not streamed. One gateway puts errors into a list of one.
pub(super) fn read_whole(body: &[u8], said: &Understanding<'_>) -> Result<ChatReply, Rejected> {
    let key = said.key;
    let mut answer = AnswerBuilder::default();
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(refusals::classify_within_success(&String::from_utf8_lossy(body), key));
    }
    let absorbed = answer.absorb(body, key);
    let usage = answer.usage;
    absorbed.and_then(|_| answer.finish(said)).map_err(|rejected| {
        let error = rejected.error.for_nothing(blanked(&String::from_utf8_lossy(body)), usage);
        Rejected { error, ..rejected }
    })
}

fn keep_first(kept: &mut Option<String>, value: Option<Word<'_>>) {
    if kept.is_none() {
        *kept = value.filter(|word| !word.0.is_empty()).map(|word| word.0.into_owned());
    }
}

#[cfg(test)]
mod tests {
    use domain::{FailureCause, RetryAdvice};

    use super::*;

    fn whole(json: &str) -> ChatReply {
        read_whole(json.as_bytes(), &Understanding::default()).unwrap()
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
    fn counts_of_nothing_do_not_replace_those_that_came() {
        let mut answer = AnswerBuilder::default();
        for json in [r#"{"choices":[],"usage":{"prompt_tokens":3}}"#, r#"{"choices":[],"usage":{}}"#] {
            answer.absorb(json.as_bytes(), None).unwrap();
        }
        assert_eq!(answer.usage.prompt_tokens, Some(3));
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
    fn what_stands_beside_an_answer_does_not_matter() {
        for beside in [
            r#""usage":{"prompt_tokens":12.0,"completion_tokens":"3"}"#,
            r#""usage":{"prompt_tokens":-1,"completion_tokens":2.6,"prompt_tokens_details":[]}"#,
            r#""usage":[],"usage":{"prompt_tokens":{},"completion_tokens":3,"completion_tokens_details":7}"#,
            r#""usage":"none","model":7,"object":null,"system_fingerprint":{"a":"\ud83d"},"x":1e999"#,
            r#""error":{},"message":"","service_tier":["\ude00"]"#,
        ] {
            let json = format!(
                r#"{{"choices":[{{"message":{{"content":"no","content":"yes","role":1}},"finish_reason":"","logprobs":[1e-999]}}],{beside}}}"#
            );
            let reply = whole(&json);
            assert_eq!((reply.answer.text.as_str(), reply.answer.finish_reason), ("yes", None), "{json}");
            assert!(matches!(reply.answer.usage.completion_tokens, None | Some(3)), "{json}");
        }
        let both =
            whole(r#"{"choices":[{"message":{"content":"a","reasoning":"","reasoning_content":"b"}}]}"#);
        assert_eq!(both.answer.reasoning.as_deref(), Some("b"));
        let parts = whole(
            r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"b"}]},{"text":"a"}]}}]}"#,
        );
        assert_eq!((parts.answer.text.as_str(), parts.answer.reasoning.as_deref()), ("a", Some("b")));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for (json, cause) in [
            (
                r#"{"choices":[{"message":{"content":"half"},"finish_reason":"abort"}]}"#,
                FailureCause::Aborted,
            ),
            (r#"{"choices":[]}"#, FailureCause::Server),
            (r#"{"choices":[{"finish_reason":"stop"}]}"#, FailureCause::Server),
            (r#"{"choices":[{"message":"text"}]}"#, FailureCause::Server),
            (
                r#"{"choices":[{"message":{"content":""},"error":{"code":429,"message":"slow"}}]}"#,
                FailureCause::RateLimited,
            ),
            (r#"{"code":500,"message":"out of memory","type":"server_error"}"#, FailureCause::Server),
            (r#"[{"error":{"code":429,"message":"slow down"}}]"#, FailureCause::RateLimited),
            (r#"{"choices":[{"message":{"content":7}}]}"#, FailureCause::Server),
            ("<html>", FailureCause::Server),
            (r#"{"error":{"message":"engine dead","code":500}}"#, FailureCause::Server),
            (r#"{"object":"error","message":"slow down","code":429}"#, FailureCause::RateLimited),
        ] {
            let rejected = read_whole(json.as_bytes(), &Understanding::default()).unwrap_err();
            assert_eq!(rejected.error.cause, cause, "{json}");
            assert_ne!(rejected.error.retry, RetryAdvice::No, "{json}");
        }
    }
}
