//! What dialogues have used: tokens, answers, time, failed calls. The same sums for one dialogue and for all of a model.

use std::ops::{AddAssign, SubAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dialogue::{FailedCall, Round};

/// Sums over dialogues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelUsage {
    /// Dialogues with an answer.
    pub dialogues: u64,
    /// Of these, those of which a server did not count all tokens. Their tokens are in no sum: a part would look like a whole.
    pub uncounted: u64,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
    /// Of these, the tokens that servers found in their prefix caches.
    pub cached_tokens: u64,
    /// Tokens of all answers, reasoning included.
    pub completion_tokens: u64,
    /// Answered prompts.
    pub answers: u64,
    /// Milliseconds from prompts to the ends of their answers, failed calls in between included.
    pub answer_ms: u64,
    /// Calls that failed, most of which were repeated.
    pub failed_calls: u64,
}

impl ModelUsage {
    /// What a dialogue of these rounds used; `failed_calls` are those of a round that never got its answer.
    pub fn of_dialogue<'a>(
        rounds: impl IntoIterator<Item = &'a Round>,
        failed_calls: impl IntoIterator<Item = &'a FailedCall>,
    ) -> Self {
        let (mut used, mut thrown_away) = (Self::default(), Self::default());
        for call in failed_calls {
            used.failed_calls += 1;
            thrown_away.discarded(&call.usage);
        }
        let mut counts_all = true;
        for round in rounds {
            let usage = &round.answer.usage;
            round.failed_calls.iter().for_each(|call| thrown_away.discarded(&call.usage));
            counts_all &= used.answered(
                usage,
                round.answered_at.duration_since(round.prompted_at).as_millis(),
                round.failed_calls.len(),
            );
        }
        used.end(counts_all);
        used += &thrown_away;
        used
    }

    /// Adds the tokens of an answer that was thrown away: they were paid, too.
    pub fn discarded(&mut self, usage: &crate::Usage) {
        *self += &Self {
            prompt_tokens: usage.prompt_tokens.unwrap_or_default(),
            cached_tokens: usage.cached_tokens.unwrap_or_default(),
            completion_tokens: usage.completion_tokens.unwrap_or_default(),
            ..Self::default()
        };
    }

    /// Adds a round of the one dialogue that this is about; returns whether its server counted its tokens.
    pub fn answered(&mut self, usage: &crate::Usage, took_ms: i128, failed_calls: usize) -> bool {
        *self += &Self {
            answers: 1,
            // A clock that was set back gives nothing.
            answer_ms: u64::try_from(took_ms).unwrap_or_default(),
            failed_calls: failed_calls as u64,
            prompt_tokens: usage.prompt_tokens.unwrap_or_default(),
            cached_tokens: usage.cached_tokens.unwrap_or_default(),
            completion_tokens: usage.completion_tokens.unwrap_or_default(),
            ..Self::default()
        };
        usage.prompt_tokens.is_some() && usage.completion_tokens.is_some()
    }

    /// Ends the one dialogue that this is about.
    pub fn end(&mut self, counts_all: bool) {
        self.dialogues = u64::from(self.answers > 0);
        if !counts_all {
            self.uncounted = self.dialogues;
            (self.prompt_tokens, self.cached_tokens, self.completion_tokens) = (0, 0, 0);
        }
    }

    /// Mean seconds from a prompt to the end of its answer; `None` without answers.
    pub fn seconds_per_answer(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.answer_ms as f64 / 1e3 / self.answers as f64)
    }

    /// Dialogues of which all tokens are in the sums.
    pub fn counted(&self) -> u64 {
        self.dialogues.saturating_sub(self.uncounted)
    }

    /// Each number of both, put together.
    fn with(&mut self, other: &Self, change: fn(u64, u64) -> u64) {
        for (own, other) in [
            (&mut self.dialogues, other.dialogues),
            (&mut self.uncounted, other.uncounted),
            (&mut self.prompt_tokens, other.prompt_tokens),
            (&mut self.cached_tokens, other.cached_tokens),
            (&mut self.completion_tokens, other.completion_tokens),
            (&mut self.answers, other.answers),
            (&mut self.answer_ms, other.answer_ms),
            (&mut self.failed_calls, other.failed_calls),
        ] {
            *own = change(*own, other);
        }
    }
}

impl AddAssign<&Self> for ModelUsage {
    fn add_assign(&mut self, other: &Self) {
        self.with(other, u64::saturating_add);
    }
}

impl SubAssign<&Self> for ModelUsage {
    fn sub_assign(&mut self, other: &Self) {
        self.with(other, u64::saturating_sub);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Usage;

    fn usage(prompt: Option<u64>, completion: Option<u64>) -> Usage {
        Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            cached_tokens: Some(3),
            ..Usage::default()
        }
    }

    fn dialogue(rounds: &[Usage]) -> ModelUsage {
        let mut used = ModelUsage::default();
        let counted: Vec<bool> = rounds.iter().map(|usage| used.answered(usage, 1500, 1)).collect();
        used.end(counted.into_iter().all(|counted| counted));
        used
    }

    #[test]
    fn tokens_that_a_server_did_not_count_are_in_no_sum() {
        let whole = dialogue(&[usage(Some(10), Some(5)), usage(Some(20), Some(6))]);
        let part = dialogue(&[usage(Some(10), Some(5)), usage(Some(20), None)]);
        assert_eq!((whole.prompt_tokens, whole.completion_tokens, whole.cached_tokens), (30, 11, 6));
        assert_eq!((part.prompt_tokens, part.completion_tokens, part.uncounted), (0, 0, 1));
        let none = dialogue(&[]);
        assert_eq!((none, none.seconds_per_answer()), (ModelUsage::default(), None));
        let mut all = ModelUsage::default();
        all += &whole;
        all += &part;
        assert_eq!((all.dialogues, all.counted(), all.answers, all.failed_calls), (2, 1, 4, 4));
        assert_eq!(all.seconds_per_answer(), Some(1.5));
        all -= &part;
        assert_eq!(all, whole);
    }

    #[test]
    fn no_count_of_a_server_is_too_large_for_a_sum() {
        let most = usage(Some(u64::MAX), Some(u64::MAX));
        let used = dialogue(&[most, most]);
        assert_eq!((used.prompt_tokens, used.completion_tokens), (u64::MAX, u64::MAX));
        let read: Usage = serde_json::from_str(
            r#"{"prompt_tokens": 18446744073709551615, "completion_tokens": 1099511627776, "cached_tokens": null}"#,
        )
        .unwrap();
        let told = Usage { completion_tokens: Some(1 << 40), ..Usage::default() };
        assert_eq!((read, Usage { prompt_tokens: Some(u64::MAX), ..told }.plausible()), (told, told));
    }
}
