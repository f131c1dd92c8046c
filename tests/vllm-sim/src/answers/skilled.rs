//! The model with a skill: it recognises the exercise and succeeds with a probability that its dial sets.
//!
//! Outcomes are drawn from (model name, seed, first prompt, round) alone. Different models, and different seeds of
//! one model, therefore fail at different exercises, while the same dialogue always goes the same way.

use serde::{Deserialize, Serialize};

use super::{AnswerKey, SimAsk, filler};
use crate::bounds::ConfigError;
use crate::identity::Draw;

/// How often a model answers in which way. The first four are the chances of the first answer and add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDial {
    /// Right answers, 0 to 1.
    pub right: f64,
    /// Well-formed answers that are wrong, 0 to 1.
    pub wrong: f64,
    /// Answers that do not parse, 0 to 1.
    pub malformed: f64,
    /// Long answers that miss the point, 0 to 1.
    pub rambling: f64,
    /// Chance that a follow-up turns a failure into the right answer, 0 to 1; otherwise the model fails again in
    /// the same way. A model that was right stays right.
    pub fix: f64,
}

impl Default for SkillDial {
    /// A middling model, so that a demonstration shows all kinds of outcome.
    fn default() -> Self {
        Self { right: 0.6, wrong: 0.2, malformed: 0.15, rambling: 0.05, fix: 0.5 }
    }
}

impl SkillDial {
    /// How far the four chances may miss 1: decimal fractions do not add up exactly.
    const SUM_TOLERANCE: f64 = 1e-6;

    /// Sentences of a rambling answer: about 400 tokens.
    const RAMBLING_SENTENCES: usize = 40;

    pub(super) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        let Self { right, wrong, malformed, rambling, fix } = *self;
        let fields = [
            ("right", right),
            ("wrong", wrong),
            ("malformed", malformed),
            ("rambling", rambling),
            ("fix", fix),
        ];
        for (name, chance) in fields {
            ConfigError::in_range(format!("{key}.{name}"), chance, 0.0, 1.0)?;
        }
        let sum = right + wrong + malformed + rambling;
        if (sum - 1.0).abs() > Self::SUM_TOLERANCE {
            let bound = format!("right, wrong, malformed and rambling must add up to 1, not {sum}");
            return Err(ConfigError::new(key, bound));
        }
        Ok(())
    }

    /// What a model with this skill says. Without a key it knows no exercise. A `distinct` answer ends with a line that no
    /// other has.
    pub(super) fn answer(&self, ask: &SimAsk<'_>, key: Option<&dyn AnswerKey>, distinct: bool) -> String {
        let Some(case) = key.and_then(|key| key.solve(ask.first_prompt())) else {
            return "I am sorry, but I do not know how to solve this exercise.".to_owned();
        };
        // The dialogue is played from its first round: each failure so far had its chance of being fixed.
        let draw = |round: u32| Draw::new(&[ask.identity.conversation, u64::from(round)]).unit();
        let is_fixed = (1..=ask.identity.round).any(|round| draw(round) < self.fix);
        let (first, mut bound) = (draw(0), 0.0);
        let manners =
            [(self.right, &case.right), (self.wrong, &case.wrong), (self.malformed, &case.malformed)];
        let chosen = manners.into_iter().find(|(chance, _)| {
            bound += chance;
            first < bound
        });
        let text = match chosen {
            _ if is_fixed => case.right,
            Some((_, text)) => text.clone(),
            None if self.rambling > 0.0 => {
                filler::prose(&mut Draw::new(&[ask.identity.conversation]), Self::RAMBLING_SENTENCES)
            }
            // A dial without rambling whose other chances sum to a hair below 1 must not ramble.
            None => case.wrong,
        };
        if !distinct {
            return text;
        }
        format!("{text}\n\nThis was answer {:016x}.", ask.draw().next_u64())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use domain::Message;

    use super::super::KnownCase;
    use super::*;

    struct Key;
    impl AnswerKey for Key {
        fn solve(&self, first_prompt: &str) -> Option<KnownCase> {
            first_prompt.starts_with("solve").then(|| KnownCase {
                right: "right".into(),
                wrong: "wrong".into(),
                malformed: "malformed".into(),
            })
        }
    }

    fn shares(dial: SkillDial, rounds: usize) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for seed in 0..4000 {
            let mut messages = vec![Message::user("solve this")];
            for _ in 0..rounds {
                messages.extend([Message::assistant("?"), Message::user("again")]);
            }
            let mut text = dial.answer(&SimAsk::new("m", &messages, seed), Some(&Key), false);
            if text.starts_with("Let me think") {
                text = "rambling".into();
            }
            *counts.entry(text).or_default() += 1;
        }
        counts
    }

    #[test]
    fn the_dial_sets_the_shares() {
        let counts = shares(SkillDial::default(), 0);
        for (manner, share) in [("right", 0.6), ("wrong", 0.2), ("malformed", 0.15), ("rambling", 0.05)] {
            let got = counts[manner] as f64 / 4000.0;
            assert!((got - share).abs() < 0.03, "{manner}: {got} instead of {share}");
        }
    }

    #[test]
    fn follow_ups_fix_failures_and_spoil_nothing() {
        // Right after two follow-ups: 0.6 at once, and of the rest all but 0.5 x 0.5.
        let right = shares(SkillDial::default(), 2)["right"] as f64 / 4000.0;
        assert!((right - 0.9).abs() < 0.03, "{right}");
    }

    #[test]
    fn extremes_are_exact() {
        let never = SkillDial { right: 0.0, wrong: 1.0, malformed: 0.0, rambling: 0.0, fix: 0.0 };
        assert_eq!(shares(never, 2), BTreeMap::from([("wrong".into(), 4000)]));
        let fixer = SkillDial { fix: 1.0, ..never };
        assert_eq!(shares(fixer, 1), BTreeMap::from([("right".into(), 4000)]));
    }

    #[test]
    fn no_two_distinct_answers_are_equal() {
        let answer = |seed| {
            let asked = [Message::user("solve this")];
            SkillDial::default().answer(&SimAsk::new("m", &asked, seed), Some(&Key), true)
        };
        let texts: BTreeSet<String> = (0..100).map(answer).collect();
        assert_eq!(texts.len(), 100);
        assert_eq!(answer(7), answer(7), "but the same question has the same answer");
    }

    #[test]
    fn unknown_exercises_get_a_harmless_answer() {
        let asked = [Message::user("cook this")];
        let answer = SkillDial::default().answer(&SimAsk::new("m", &asked, 0), Some(&Key), true);
        assert!(answer.starts_with("I am sorry"));
    }
}
