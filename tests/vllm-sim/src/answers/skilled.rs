//! The model with a skill: it recognises the exercise and succeeds with a probability that its dial sets per task family.
//!
//! Outcomes are drawn from (model name, seed, first prompt, round) alone. Different models, and different seeds of
//! one model, therefore fail at different exercises, while the same dialogue always goes the same way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AnswerKey, AnswerModel, KnownCase, SimAnswer, SimAsk, filler};
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

/// The skills of one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Skill {
    /// For families that have no dial of their own.
    pub overall: SkillDial,
    /// Dials by task family, as the answer key names them.
    pub families: BTreeMap<String, SkillDial>,
    /// Whether every answer ends with a line that no other has, as answers of language models differ. Whoever judges them
    /// can then remember no verdict.
    pub distinct: bool,
}

impl Skill {
    /// The same dial for every family.
    pub fn overall(dial: SkillDial) -> Self {
        Self { overall: dial, ..Self::default() }
    }

    pub(super) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        self.overall.validate(&format!("{key}.overall"))?;
        self.families.iter().try_for_each(|(name, dial)| dial.validate(&format!("{key}.families.{name}")))
    }
}

impl SkillDial {
    /// How far the four chances may miss 1: decimal fractions do not add up exactly.
    const SUM_TOLERANCE: f64 = 1e-6;

    fn validate(&self, key: &str) -> Result<(), ConfigError> {
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

    /// The way of answering that a number in [0, 1) selects.
    fn manner(&self, unit: f64) -> Manner {
        let mut bound = 0.0;
        for (chance, manner) in
            [(self.right, Manner::Right), (self.wrong, Manner::Wrong), (self.malformed, Manner::Malformed)]
        {
            bound += chance;
            if unit < bound {
                return manner;
            }
        }
        // A dial without rambling whose other chances sum to a hair below 1 must not ramble.
        if self.rambling > 0.0 { Manner::Rambling } else { Manner::Wrong }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Right,
    Wrong,
    Malformed,
    Rambling,
}

/// A model that answers by its dials; see the module.
pub struct Skilled {
    skill: Skill,
    key: Option<Arc<dyn AnswerKey>>,
}

impl Skilled {
    /// Sentences of a rambling answer that the key does not provide: about 400 tokens.
    const RAMBLING_SENTENCES: usize = 40;

    /// A model with these skills and this knowledge; without a key it knows no exercise.
    pub fn new(skill: Skill, key: Option<Arc<dyn AnswerKey>>) -> Self {
        Self { skill, key }
    }

    /// Plays the dialogue from its first round: each failure so far had its chance of being fixed.
    fn manner(dial: &SkillDial, ask: &SimAsk<'_>) -> Manner {
        let draw = |round: u32| Draw::new(&[ask.identity.conversation, u64::from(round)]).unit();
        let first = dial.manner(draw(0));
        if (1..=ask.identity.round).any(|round| draw(round) < dial.fix) { Manner::Right } else { first }
    }
}

impl AnswerModel for Skilled {
    fn answer(&self, ask: &SimAsk<'_>) -> SimAnswer {
        let Some(case) = self.key.as_ref().and_then(|key| key.solve(ask.first_prompt())) else {
            return SimAnswer::complete("I am sorry, but I do not know how to solve this exercise.");
        };
        let KnownCase { family, right, wrong, malformed, rambling } = case;
        let dial = self.skill.families.get(&family).unwrap_or(&self.skill.overall);
        let text = match Self::manner(dial, ask) {
            Manner::Right => right,
            Manner::Wrong => wrong,
            Manner::Malformed => malformed,
            Manner::Rambling => rambling.unwrap_or_else(|| {
                filler::prose(&mut Draw::new(&[ask.identity.conversation]), Self::RAMBLING_SENTENCES)
            }),
        };
        if !self.skill.distinct {
            return SimAnswer::complete(text);
        }
        let number = Draw::new(&[ask.identity.conversation, u64::from(ask.identity.round)]).next_u64();
        SimAnswer::complete(format!("{text}\n\nThis was answer {number:016x}."))
    }
}

#[cfg(test)]
mod tests {
    use domain::Message;

    use super::*;

    struct Key;
    impl AnswerKey for Key {
        fn solve(&self, first_prompt: &str) -> Option<KnownCase> {
            first_prompt.starts_with("solve").then(|| KnownCase {
                family: "sums".into(),
                right: "right".into(),
                wrong: "wrong".into(),
                malformed: "malformed".into(),
                rambling: None,
            })
        }
    }

    fn shares(dial: SkillDial, rounds: usize) -> BTreeMap<String, usize> {
        let model = Skilled::new(Skill::overall(dial), Some(Arc::new(Key)));
        let mut counts = BTreeMap::new();
        for seed in 0..4000 {
            let mut messages = vec![Message::user("solve this")];
            for _ in 0..rounds {
                messages.extend([Message::assistant("?"), Message::user("again")]);
            }
            let mut text = model.answer(&SimAsk::new("m", &messages, seed)).text;
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
        let model = Skilled::new(Skill { distinct: true, ..Skill::default() }, Some(Arc::new(Key)));
        let answer = |seed| model.answer(&SimAsk::new("m", &[Message::user("solve this")], seed)).text;
        let texts: std::collections::BTreeSet<String> = (0..100).map(answer).collect();
        assert_eq!(texts.len(), 100);
        assert_eq!(answer(7), answer(7), "but the same question has the same answer");
    }

    #[test]
    fn unknown_exercises_get_a_harmless_answer() {
        let model = Skilled::new(Skill::default(), Some(Arc::new(Key)));
        let answer = model.answer(&SimAsk::new("m", &[Message::user("cook this")], 0));
        assert!(answer.text.starts_with("I am sorry"));
    }

    #[test]
    fn families_have_their_own_dial() {
        let sure = SkillDial { right: 1.0, wrong: 0.0, malformed: 0.0, rambling: 0.0, fix: 0.0 };
        let never = SkillDial { right: 0.0, wrong: 1.0, ..sure };
        let skill =
            Skill { overall: never, families: BTreeMap::from([("sums".into(), sure)]), ..Skill::default() };
        let model = Skilled::new(skill, Some(Arc::new(Key)));
        assert!(
            (0..50)
                .all(|seed| model.answer(&SimAsk::new("m", &[Message::user("solve")], seed)).text == "right")
        );
    }
}
