//! The prompt-answer-evaluate loop, folded: verdicts go in, the next follow-up or the final scores come out.

use domain::{Infos, PromptKind, Scores};
use serde_json::Value;

use crate::aggregate::aggregate;
use crate::exercise::{FollowUp, Shots, Verdict};

/// The verdicts of a dialogue so far.
#[derive(Clone, Debug)]
pub struct Dialogue {
    shots: Shots,
    verdicts: Vec<Verdict>,
}

/// What happens after an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Ask again.
    Ask(FollowUp),
    /// The dialogue is over, see [`Dialogue::into_evaluation`].
    Done,
}

/// The scores and infos of a whole dialogue, in the shape of result files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Scores.
    pub scores: Scores,
    /// Infos.
    pub infos: Infos,
}

impl Dialogue {
    /// A dialogue before its first answer.
    pub fn new(shots: Shots) -> Self {
        Self { shots, verdicts: Vec::new() }
    }

    /// Takes the verdict of the next answer.
    pub fn take(&mut self, mut verdict: Verdict) -> Next {
        let follow_up = verdict.follow_up.take();
        self.verdicts.push(verdict);
        match follow_up {
            Some(follow_up) if self.may_ask(follow_up.kind) => Next::Ask(follow_up),
            _ => Next::Done,
        }
    }

    fn may_ask(&self, kind: PromptKind) -> bool {
        let Shots::Multi { answers_max, syntax_max, result_max, .. } = self.shots else { return false };
        let answers = self.verdicts.len();
        let limit = match kind {
            PromptKind::Syntax => syntax_max.min(answers_max),
            PromptKind::EmptyResult => result_max.min(answers_max),
            PromptKind::First | PromptKind::Structure | PromptKind::Content | PromptKind::Formatting => {
                answers_max
            }
        };
        answers < limit
    }

    /// The scores of the answers so far, as if the last one ended the dialogue. Re-evaluation needs this where
    /// a recorded dialogue stopped elsewhere than the rules say.
    pub fn into_evaluation(mut self) -> Evaluation {
        match self.shots {
            Shots::Single => {
                let last = self.verdicts.pop().unwrap_or_default();
                Evaluation { scores: last.scores, infos: last.infos }
            }
            Shots::Multi { aggregated, answers_max, .. } => {
                multi_shot(self.verdicts, aggregated, answers_max)
            }
        }
    }
}

fn multi_shot(verdicts: Vec<Verdict>, aggregated: &[&str], answers_max: usize) -> Evaluation {
    let rounds: Vec<&Scores> = verdicts.iter().map(|verdict| &verdict.scores).collect();
    let sums = aggregate(&rounds, aggregated, answers_max);
    let count = verdicts.len();
    let last = verdicts.last().cloned();
    let mut scores = Scores::new();
    let mut infos = Infos::new();
    for (round, verdict) in verdicts.into_iter().enumerate() {
        scores.insert(round.to_string(), Value::Object(verdict.scores));
        infos.insert(round.to_string(), Value::Object(verdict.infos));
    }
    scores.insert("mean".into(), Value::Object(sums.mean));
    scores.insert("max".into(), Value::Object(sums.max));
    scores.insert("meanExt".into(), Value::Object(sums.mean_extended));
    infos.insert("multiShotCount".into(), count.into());
    if let Some(last) = last {
        scores.insert("last".into(), Value::Object(last.scores));
        infos.insert("last".into(), Value::Object(last.infos));
    }
    Evaluation { scores, infos }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wording::Fields;

    const SHOTS: Shots =
        Shots::Multi { answers_max: 3, syntax_max: 2, result_max: 3, aggregated: &["combined"] };

    fn verdict(combined: f64, kind: Option<PromptKind>) -> Verdict {
        let mut scores = Scores::new();
        scores.insert("combined".into(), combined.into());
        let follow_up = kind.map(|kind| FollowUp { kind, fields: Fields::default() });
        Verdict { scores, infos: Infos::new(), follow_up }
    }

    #[test]
    fn a_dialogue_stops_when_nothing_is_asked_or_the_limit_of_its_kind_is_reached() {
        let mut dialogue = Dialogue::new(SHOTS);
        assert!(matches!(dialogue.take(verdict(0.0, Some(PromptKind::Syntax))), Next::Ask(_)));
        assert!(matches!(dialogue.take(verdict(0.2, Some(PromptKind::EmptyResult))), Next::Ask(_)));
        let next = dialogue.take(verdict(1.0, Some(PromptKind::EmptyResult)));
        assert_eq!(next, Next::Done, "three answers are the most");
        let evaluation = dialogue.into_evaluation();
        assert_eq!(evaluation.scores["max"], json!({"combined": 1.0}));
        assert_eq!(evaluation.infos["multiShotCount"], 3);

        let mut dialogue = Dialogue::new(SHOTS);
        dialogue.take(verdict(0.0, Some(PromptKind::Syntax)));
        assert_eq!(
            dialogue.take(verdict(0.0, Some(PromptKind::Syntax))),
            Next::Done,
            "syntax is asked once when its limit is 2"
        );
    }

    #[test]
    fn single_shot_scores_stand_by_themselves() {
        let mut dialogue = Dialogue::new(Shots::Single);
        let next = dialogue.take(verdict(0.5, Some(PromptKind::Syntax)));
        assert_eq!(next, Next::Done, "a single-shot task never asks again");
        let evaluation = dialogue.into_evaluation();
        assert_eq!(Value::Object(evaluation.scores), json!({"combined": 0.5}));
    }
}
