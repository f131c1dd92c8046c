//! An answer cut to the request's limits, as it is sent.

use std::borrow::Cow;

use domain::FinishReason;

use crate::answers::SimAnswer;
use crate::metrics::EndReason;
use crate::tokenizer::{pieces, prefix, tokens_in};
use crate::wire::chunk::ChunkToken;

/// The cut answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServedAnswer {
    pub(super) reasoning: Option<String>,
    pub(super) text: String,
    /// `finish_reason` on the wire.
    pub(super) finish: Cow<'static, str>,
    /// The same for the counters.
    pub(super) reason: EndReason,
    /// The stop string that ended the text.
    pub(super) stop_reason: Option<String>,
    /// Send null instead of the text.
    pub(super) null: bool,
}

impl ServedAnswer {
    /// Cuts what the model says at the first stop string and after `max_tokens` tokens, reasoning included.
    pub(super) fn cut(said: SimAnswer, stop: &[String], max_tokens: u32) -> Self {
        let SimAnswer { mut text, mut reasoning, finish } = said;
        let (finish, reason) = words(finish);
        let stopped = stop
            .iter()
            .filter(|stop| !stop.is_empty())
            .filter_map(|stop| text.find(stop.as_str()).map(|at| (at, stop)))
            .min_by_key(|&(at, _)| at);
        let stop_reason = stopped.map(|(at, stop)| {
            text.truncate(at);
            stop.clone()
        });
        let mut answer = Self { reasoning: None, text, finish, reason, stop_reason, null: false };
        if answer.stop_reason.is_some() {
            (answer.finish, answer.reason) = words(FinishReason::Stop);
        }
        let thoughts = reasoning.as_deref().map_or(0, |reasoning| tokens_in(reasoning.len()));
        if thoughts.saturating_add(tokens_in(answer.text.len())) > max_tokens {
            if let Some(reasoning) = &mut reasoning {
                reasoning.truncate(prefix(reasoning, max_tokens).len());
            }
            answer.text.truncate(prefix(&answer.text, max_tokens.saturating_sub(thoughts)).len());
            (answer.finish, answer.reason) = words(FinishReason::Length);
            answer.stop_reason = None;
        }
        // vLLM's reasoning parser leaves the content null when nothing comes after the thoughts.
        answer.null = answer.text.is_empty() && reasoning.is_some();
        answer.reasoning = reasoning;
        answer
    }

    /// Tokens generated. An empty answer is one token too: the end of sequence.
    pub(super) fn tokens(&self) -> u32 {
        self.thoughts().saturating_add(tokens_in(self.text.len())).max(1)
    }

    /// The tokens from the `start`-th on, at least one in total.
    pub(super) fn tokens_from(&self, start: u32) -> impl Iterator<Item = ChunkToken<'_>> {
        let thoughts = self.reasoning.as_deref().unwrap_or_default();
        let nothing = thoughts.is_empty() && self.text.is_empty() && start == 0;
        pieces(thoughts, start)
            .map(ChunkToken::Reasoning)
            .chain(pieces(&self.text, start.saturating_sub(self.thoughts())).map(ChunkToken::Content))
            .chain(nothing.then_some(ChunkToken::Content("")))
    }

    /// The content on the wire.
    pub(super) fn content(&self) -> Option<&str> {
        (!self.null).then_some(&self.text)
    }

    /// Only half of it, as if the engine had been stopped.
    pub(super) fn aborted(mut self) -> Self {
        self.text.truncate(prefix(&self.text, tokens_in(self.text.len()) / 2).len());
        (self.finish, self.reason) = words(FinishReason::Other("abort".into()));
        self.stop_reason = None;
        self
    }

    /// Null instead of a text.
    pub(super) fn without_content(mut self) -> Self {
        self.text.clear();
        self.null = true;
        self
    }

    fn thoughts(&self) -> u32 {
        self.reasoning.as_deref().map_or(0, |reasoning| tokens_in(reasoning.len()))
    }
}

/// A finish reason on the wire and in the counters.
fn words(finish: FinishReason) -> (Cow<'static, str>, EndReason) {
    match finish {
        FinishReason::Stop => ("stop".into(), EndReason::Stop),
        FinishReason::Length => ("length".into(), EndReason::Length),
        FinishReason::ContentFilter => ("content_filter".into(), EndReason::Stop),
        FinishReason::Repetition => ("repetition".into(), EndReason::Repetition),
        FinishReason::Other(word) => {
            let reason = match word.as_str() {
                "abort" => EndReason::Abort,
                "error" => EndReason::Error,
                _ => EndReason::Stop,
            };
            (word.into(), reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(reasoning: Option<&str>, text: &str) -> SimAnswer {
        SimAnswer { text: text.into(), reasoning: reasoning.map(Into::into), finish: FinishReason::Stop }
    }

    #[test]
    fn the_first_stop_string_ends_the_text() {
        let stop = ["".to_owned(), "yy".to_owned(), "x".to_owned()];
        let answer = ServedAnswer::cut(said(None, "aaxbyy"), &stop, 100);
        assert_eq!(
            (answer.text.as_str(), answer.stop_reason.as_deref(), &*answer.finish),
            ("aa", Some("x"), "stop")
        );
    }

    #[test]
    fn the_limit_counts_thoughts_first() {
        let answer = |limit| ServedAnswer::cut(said(Some("12345678"), "abcdefgh"), &[], limit);
        let all = answer(4);
        assert_eq!((all.tokens(), &*all.finish), (4, "stop"));
        let three = answer(3);
        assert_eq!((three.tokens(), three.text.as_str(), &*three.finish), (3, "abcd", "length"));
        let one = answer(1);
        assert_eq!((one.tokens(), one.reasoning.as_deref(), one.content()), (1, Some("1234"), None));
    }

    #[test]
    fn there_are_as_many_tokens_as_counted() {
        for (reasoning, text) in [(None, ""), (None, "abcde"), (Some("äöü"), "x"), (Some("abcd"), "")] {
            let answer = ServedAnswer::cut(said(reasoning, text), &[], 100);
            for start in 0..=answer.tokens() {
                assert_eq!(answer.tokens_from(start).count() as u32, answer.tokens() - start, "{answer:?}");
            }
        }
    }
}
