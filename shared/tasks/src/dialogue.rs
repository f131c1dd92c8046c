//! The prompt-answer-evaluate loop as a state machine: it takes verdicts and gives the next prompt and the final scores.
//! Live, replayed and verified dialogues all use [`Dialogue`].

use domain::{Infos, PromptKind, Scores};
use serde_json::Value;

use crate::aggregate::aggregate;
use crate::exercise::{Effort, Exercise, FollowUp, Shots, Verdict};

/// The info with the number of answers, in dialogues that keep the infos of each.
const ANSWERS_INFO: &str = "multiShotCount";

/// The verdicts of a dialogue so far, and the follow-up to the last one.
#[derive(Clone, Debug)]
pub struct Dialogue {
    shots: Shots,
    verdicts: Vec<Verdict>,
    follow_up: Option<FollowUp>,
}

/// What is asked next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next<'d> {
    /// The first prompt.
    First,
    FollowUp(&'d FollowUp),
    /// Nothing: the dialogue is over, see [`Dialogue::into_evaluation`].
    Done,
}

/// The scores and infos of a whole dialogue, in the shape of result files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    pub scores: Scores,
    pub infos: Infos,
    /// Why there are no scores, if the last answer could not be scored.
    pub unscored: Option<String>,
}

impl Dialogue {
    /// A dialogue before its first answer.
    pub fn new(shots: Shots) -> Self {
        Self { shots, verdicts: Vec::new(), follow_up: None }
    }

    /// What is asked next.
    pub fn next(&self) -> Next<'_> {
        match &self.follow_up {
            None if self.verdicts.is_empty() => Next::First,
            None => Next::Done,
            Some(follow_up) => Next::FollowUp(follow_up),
        }
    }

    /// Number of judged answers.
    pub fn answers(&self) -> usize {
        self.verdicts.len()
    }

    /// Takes the verdict on the next answer. A recorded dialogue may continue where it would end by the rules.
    pub fn take(&mut self, mut verdict: Verdict) {
        let follow_up = verdict.follow_up.take();
        self.verdicts.push(verdict);
        self.follow_up = follow_up.filter(|follow_up| self.may_ask(follow_up.kind));
    }

    fn may_ask(&self, kind: PromptKind) -> bool {
        let limit = match (&self.shots, kind) {
            (Shots::Single, _) => 1,
            (Shots::Last { answers_max }, _) => *answers_max,
            (Shots::Multi { answers_max, answers_max_syntax, .. }, PromptKind::Syntax) => {
                *answers_max_syntax.min(answers_max)
            }
            (Shots::Multi { answers_max, answers_max_empty_result, .. }, PromptKind::EmptyResult) => {
                *answers_max_empty_result.min(answers_max)
            }
            (Shots::Multi { answers_max, .. }, _) => *answers_max,
        };
        self.verdicts.len() < limit
    }

    /// The scores of the answers so far, as if the dialogue ended here: a recorded dialogue may have ended where it would
    /// not by the rules.
    pub fn into_evaluation(mut self) -> Evaluation {
        match self.shots {
            Shots::Single | Shots::Last { .. } => {
                let last = self.verdicts.pop().unwrap_or_default();
                Evaluation { scores: last.scores, infos: last.infos, unscored: last.unscored }
            }
            Shots::Multi { aggregated, answers_max, .. } => {
                multi_shot(self.verdicts, aggregated, answers_max)
            }
        }
    }
}

/// A recorded dialogue, judged again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// The scores and infos of all answers.
    pub evaluation: Evaluation,
    /// The follow-up to each answer; `None` where the dialogue would end.
    pub follow_ups: Vec<Option<FollowUp>>,
}

/// Judges every recorded answer, including those after the point where the dialogue would end by the rules.
pub fn replay<'a>(
    exercise: &dyn Exercise,
    answers: impl IntoIterator<Item = &'a str>,
    effort: &Effort,
) -> Replayed {
    let mut dialogue = Dialogue::new(exercise.shots());
    let mut follow_ups = Vec::new();
    for answer in answers {
        dialogue.take(exercise.judge(answer, effort));
        follow_ups.push(dialogue.follow_up.clone());
    }
    Replayed { evaluation: dialogue.into_evaluation(), follow_ups }
}

/// The answer that the headline of a dialogue is about, counted from 0: the best one where the best counts, of equal
/// ones the last, and otherwise the last. `None` without answers.
pub fn headline_answer(headline: &[&str], scores: &Scores, answers: usize) -> Option<usize> {
    let last = answers.checked_sub(1)?;
    let ["max", name] = headline else { return Some(last) };
    let score = |number: usize| scores.get(&number.to_string())?.get(*name)?.as_f64();
    let scored = (0..answers).filter_map(|number| Some((number, score(number)?)));
    let best = scored.max_by(|(_, left), (_, right)| left.total_cmp(right));
    Some(best.map_or(last, |(number, _)| number))
}

/// The infos of the verdict on one answer, counted from 0, among those of its dialogue: all of them, unless they are
/// kept by answer.
pub fn infos_of_answer(infos: &Infos, number: usize) -> &Infos {
    let of_answer = infos.get(&number.to_string()).and_then(Value::as_object);
    of_answer.filter(|_| infos.contains_key(ANSWERS_INFO)).unwrap_or(infos)
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
    infos.insert(ANSWERS_INFO.into(), count.into());
    if let Some(last) = last {
        scores.insert("last".into(), Value::Object(last.scores));
        infos.insert("last".into(), Value::Object(last.infos));
    }
    Evaluation { scores, infos, unscored: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wording::Fields;

    const SHOTS: Shots = Shots::Multi {
        answers_max: 3,
        answers_max_syntax: 2,
        answers_max_empty_result: 3,
        aggregated: &["combined"],
    };

    fn verdict(combined: f64, kind: Option<PromptKind>) -> Verdict {
        let mut scores = Scores::new();
        scores.insert("combined".into(), combined.into());
        let follow_up = kind.map(|kind| FollowUp { kind, fields: Fields::default() });
        Verdict { scores, infos: Infos::new(), follow_up, unscored: None }
    }

    #[test]
    fn a_dialogue_stops_when_nothing_is_asked_or_the_limit_of_its_kind_is_reached() {
        let mut dialogue = Dialogue::new(SHOTS);
        assert_eq!(dialogue.next(), Next::First);
        dialogue.take(verdict(0.0, Some(PromptKind::Syntax)));
        assert!(matches!(dialogue.next(), Next::FollowUp(asked) if asked.kind == PromptKind::Syntax));
        dialogue.take(verdict(0.2, Some(PromptKind::EmptyResult)));
        assert!(matches!(dialogue.next(), Next::FollowUp(asked) if asked.kind == PromptKind::EmptyResult));
        dialogue.take(verdict(1.0, Some(PromptKind::EmptyResult)));
        assert_eq!(dialogue.next(), Next::Done, "three answers are the most");
        let evaluation = dialogue.into_evaluation();
        assert_eq!(evaluation.scores["max"], json!({"combined": 1.0}));
        assert_eq!(evaluation.infos["multiShotCount"], 3);

        let mut dialogue = Dialogue::new(SHOTS);
        dialogue.take(verdict(0.0, Some(PromptKind::Syntax)));
        dialogue.take(verdict(0.0, Some(PromptKind::Syntax)));
        assert_eq!(dialogue.next(), Next::Done, "syntax is asked once when its limit is 2");
    }

    #[test]
    fn the_answer_behind_the_headline_is_found_with_its_infos() {
        let mut dialogue = Dialogue::new(SHOTS);
        for combined in [0.2, 0.7, 0.7, 0.1] {
            let mut verdict = verdict(combined, Some(PromptKind::Syntax));
            verdict.infos.insert("seen".into(), combined.into());
            dialogue.take(verdict);
        }
        let Evaluation { scores, infos, .. } = dialogue.into_evaluation();
        assert_eq!(headline_answer(&["max", "combined"], &scores, 4), Some(2), "of equal ones the last");
        assert_eq!(headline_answer(&["last", "combined"], &scores, 4), Some(3));
        assert_eq!(headline_answer(&["max", "other"], &scores, 4), Some(3));
        assert_eq!(headline_answer(&["max", "combined"], &Scores::new(), 0), None);
        assert_eq!(infos_of_answer(&infos, 1)["seen"], json!(0.7));
        let single = Infos::from_iter([("0".to_owned(), json!({})), ("seen".to_owned(), json!(1))]);
        assert_eq!(infos_of_answer(&single, 0), &single);
    }

    #[test]
    fn single_shot_scores_stand_by_themselves() {
        let mut dialogue = Dialogue::new(Shots::Single);
        dialogue.take(verdict(0.5, Some(PromptKind::Syntax)));
        assert_eq!(dialogue.next(), Next::Done, "a single-shot task never asks again");
        let evaluation = dialogue.into_evaluation();
        assert_eq!(Value::Object(evaluation.scores), json!({"combined": 0.5}));
    }
}
