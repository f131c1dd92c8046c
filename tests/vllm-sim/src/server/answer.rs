//! An answer cut to the request's limits, as it is sent.

use crate::metrics::EndReason;
use crate::tokenizer::{pieces, prefix, tokens_in};
use crate::wire::reply::End;

/// The cut answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServedAnswer {
    pub(super) text: String,
    /// Why it ended.
    pub(super) reason: EndReason,
    /// The stop string that ended the text.
    stop_reason: Option<String>,
}

impl ServedAnswer {
    /// Cuts what the model says at the first stop string and after `max_tokens` tokens.
    pub(super) fn cut(mut text: String, stop: &[String], max_tokens: u32) -> Self {
        let stopped = stop
            .iter()
            .filter(|stop| !stop.is_empty())
            .filter_map(|stop| text.find(stop.as_str()).map(|at| (at, stop)))
            .min_by_key(|&(at, _)| at);
        let stop_reason = stopped.map(|(at, stop)| {
            text.truncate(at);
            stop.clone()
        });
        if tokens_in(text.len()) <= max_tokens {
            return Self { text, reason: EndReason::Stop, stop_reason };
        }
        text.truncate(prefix(&text, max_tokens).len());
        Self { text, reason: EndReason::Length, stop_reason: None }
    }

    /// Tokens generated. An empty answer is one token too: the end of sequence.
    pub(super) fn tokens(&self) -> u32 {
        tokens_in(self.text.len()).max(1)
    }

    /// The tokens from the `start`-th on, at least one in total.
    pub(super) fn tokens_from(&self, start: u32) -> impl Iterator<Item = &str> {
        let nothing = self.text.is_empty() && start == 0;
        pieces(&self.text, start).chain(nothing.then_some(""))
    }

    /// How it ended.
    pub(super) fn end(&self) -> End<'_> {
        End { finish_reason: self.reason.as_str(), stop_reason: self.stop_reason.as_deref() }
    }

    /// Only half of it, as if the engine had been stopped.
    pub(super) fn aborted(mut self) -> Self {
        self.text.truncate(prefix(&self.text, tokens_in(self.text.len()) / 2).len());
        Self { text: self.text, reason: EndReason::Abort, stop_reason: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stop_string_ends_the_text_and_the_limit_cuts_it() {
        let stop = ["".to_owned(), "yy".to_owned(), "x".to_owned()];
        let answer = ServedAnswer::cut("aaxbyy".into(), &stop, 100);
        let End { finish_reason, stop_reason } = answer.end();
        assert_eq!((answer.text.as_str(), finish_reason, stop_reason), ("aa", "stop", Some("x")));
        let answer = ServedAnswer::cut("abcdefgh".into(), &[], 1);
        assert_eq!((answer.tokens(), answer.text.as_str(), answer.reason), (1, "abcd", EndReason::Length));
    }

    #[test]
    fn there_are_as_many_tokens_as_counted() {
        for text in ["", "abcde", "äöü", "abcd"] {
            let answer = ServedAnswer::cut(text.into(), &[], 100);
            for start in 0..=answer.tokens() {
                assert_eq!(answer.tokens_from(start).count() as u32, answer.tokens() - start, "{answer:?}");
            }
        }
    }
}
