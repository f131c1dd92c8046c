//! What comes out of a pipeline: a pure function of the records that count.

use domain::{DialogueKey, FailureCause, Mean, ModelLabel, Scores};

/// Why an answer has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotJudged {
    /// The stage whose judge gave no verdict; [`ASK`](crate::names::ASK) where there is no answer to judge.
    pub stage: &'static str,
    /// Why.
    pub cause: FailureCause,
}

/// What became of one dialogue with a model under test.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedDialogue {
    /// The dialogue.
    pub key: DialogueKey,
    /// Its scores, or why it has none.
    pub outcome: JudgedOutcome,
}

/// See [`JudgedDialogue`].
#[derive(Clone, Debug, PartialEq)]
pub enum JudgedOutcome {
    /// Judged.
    Scored(Scores),
    /// Not scored, which is not zero.
    Not(NotJudged),
    /// It waits for a verdict of this stage.
    Waiting(&'static str),
}

impl JudgedDialogue {
    pub(crate) fn of(key: DialogueKey, outcome: Result<Scores, NotJudged>) -> Self {
        Self { key, outcome: outcome.map_or_else(JudgedOutcome::Not, JudgedOutcome::Scored) }
    }

    pub(crate) fn waiting(key: DialogueKey, stage: &'static str) -> Self {
        Self { key, outcome: JudgedOutcome::Waiting(stage) }
    }

    /// A dialogue that gave no answer.
    pub fn unanswered(key: DialogueKey, cause: FailureCause) -> Self {
        Self { key, outcome: JudgedOutcome::Not(NotJudged { stage: crate::names::ASK, cause }) }
    }

    /// A dialogue that has no record yet.
    pub fn unasked(key: DialogueKey) -> Self {
        Self::waiting(key, crate::names::ASK)
    }

    /// A number of it; nothing where it has none.
    pub fn number(&self, score: &str) -> Option<f64> {
        match &self.outcome {
            JudgedOutcome::Scored(scores) => scores.get(score)?.as_f64(),
            JudgedOutcome::Not(_) | JudgedOutcome::Waiting(_) => None,
        }
    }
}

/// A number of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    /// Its value, with how much of what was planned it covers.
    pub mean: Mean,
}

impl Metric {
    /// The mean of a score over all dialogues that were planned.
    pub fn mean_of(name: &'static str, score: &str, judged: &[JudgedDialogue]) -> Self {
        Self { name, mean: Mean::of(judged.iter().map(|judged| judged.number(score))) }
    }
}

/// The numbers of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReport {
    /// The model.
    pub model: ModelLabel,
    /// Dialogues that were planned.
    pub planned: u64,
    /// Those that have scores.
    pub scored: u64,
    /// Those that have none and wait for nothing, by stage and cause.
    pub not_judged: Vec<(NotJudged, u64)>,
    /// The numbers.
    pub metrics: Vec<Metric>,
}

impl ModelReport {
    /// Of what became of all dialogues of a model, in the order of the plan.
    pub fn of(
        model: ModelLabel,
        judged: &[JudgedDialogue],
        metrics: fn(&[JudgedDialogue]) -> Vec<Metric>,
    ) -> Self {
        let mut not_judged = std::collections::BTreeMap::new();
        for judged in judged {
            if let JudgedOutcome::Not(why) = &judged.outcome {
                *not_judged.entry(*why).or_insert(0) += 1;
            }
        }
        let scored =
            judged.iter().filter(|judged| matches!(judged.outcome, JudgedOutcome::Scored(_))).count();
        Self {
            model,
            planned: judged.len() as u64,
            scored: scored as u64,
            not_judged: not_judged.into_iter().collect(),
            metrics: metrics(judged),
        }
    }
}
