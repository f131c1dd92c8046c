//! JudgeChoice: a model that judges the answer of another one chooses one of several words.
//!
//! The first line of the reply that is not blank must begin with one of the words, in any case, optionally in quotes or
//! marks of emphasis; the rest is the judge's reason and is not read. Searching for a word anywhere would read "not
//! CORRECT" as CORRECT. If a reply matches no word, the judge is asked once more, with the follow-up `choice`; a second
//! such reply leaves the dialogue unscored, with the cause `judge-unparseable`.
//!
//! Parameters of a task: `choices`, the words; `worth`, their scores in the same order. Score: `grade`. Info:
//! `choice`, the word. Placeholders of the first prompt are fields of the case; that of the follow-up is `choices`.

use domain::{Infos, PromptKind, Scores};
use serde_json::Value;

use crate::class::{AnswerForm, ClassSpec};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, FollowUp, Limit, Shots, Verdict};
use crate::families::{case_fields, first_word};
use crate::wording::Fields;

/// The name of the class in packs.
pub const NAME: &str = "JudgeChoice";

/// Its version.
pub const VERSION: &str = "1.0";

/// Maximum number of answers of a judge to one question.
const ANSWERS_MAX: usize = 2;

/// Choose one of several words for the answer of another model.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    follow_ups: &[PromptKind::Choice],
    judges: true,
    // A task says what each choice is worth.
    wider: &[("grade", f64::NEG_INFINITY..=f64::INFINITY)],
    ..ClassSpec::new(&[(NAME, &[VERSION])], &["grade"], AnswerForm::Text, |input, _, _| exercise(input))
};

struct JudgeChoice {
    /// The words as they are written.
    choices: Vec<String>,
    /// Their scores.
    worth: Vec<Value>,
}

fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let (choices, worth) = case_fields::choices(input.parameters)?;
    Ok(Box::new(JudgeChoice { choices, worth }))
}

impl Exercise for JudgeChoice {
    fn shots(&self) -> Shots {
        Shots::Last { answers_max: ANSWERS_MAX }
    }

    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let mut verdict = Verdict::default();
        let too_long = answer.len() > effort.limits.answer_bytes_max;
        match self.chosen(answer, effort) {
            Some(found) => {
                verdict.scores = Scores::from_iter([("grade".to_owned(), self.worth[found].clone())]);
                verdict.infos = Infos::from_iter([("choice".to_owned(), self.choices[found].clone().into())]);
            }
            None => {
                let choices = self.choices.join(", ");
                verdict.unscored = Some(format!("the reply begins with none of {choices}"));
                if too_long {
                    verdict.infos.insert("evaluationLimit".into(), Limit::Size.message().into());
                }
                let fields = Fields::from([("choices".to_owned(), choices)]);
                verdict.follow_up = Some(FollowUp { kind: PromptKind::Choice, fields });
            }
        }
        verdict
    }

    fn compared(&self, answer: &str, _infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let expected = format!("one of {}", self.choices.join(", "));
        let chosen = self.chosen(answer, effort).map(|found| self.choices[found].clone());
        vec![ComparedPart::new("choice", Some(expected), chosen)]
    }
}

impl JudgeChoice {
    /// The place of the word that a reply begins with. One that is too long is not read.
    fn chosen(&self, reply: &str, effort: &Effort) -> Option<usize> {
        let too_long = reply.len() > effort.limits.answer_bytes_max;
        first_word::of(if too_long { "" } else { reply }, &self.choices)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::dialogue::{Dialogue, Next};
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case(parameters: Value) -> Result<Box<dyn Exercise>, CaseError> {
        let Value::Object(parameters) = parameters else { panic!() };
        let data = Map::new();
        let (class, version) = (NAME, VERSION);
        exercise(&CaseInput {
            class,
            version,
            parameters: &parameters,
            data: &data,
            first_prompt: None,
            once: &ReadOnce::default(),
        })
    }

    fn graded() -> Box<dyn Exercise> {
        let parameters =
            json!({"choices": ["CORRECT", "NOT MENTIONED", "INCORRECT"], "worth": [1.0, 0.5, 0.0]});
        case(parameters).unwrap()
    }

    fn judge(reply: &str) -> Verdict {
        graded().judge(reply, &Effort::full(EvaluationLimits::default()))
    }

    #[test]
    fn the_words_are_shown_beside_the_one_that_was_chosen() {
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |reply: &str| graded().compared(reply, &Infos::new(), &effort).remove(0);
        let part = shown("**Incorrect.** The width is missing.");
        assert_eq!(part.expected.as_deref(), Some("one of CORRECT, NOT MENTIONED, INCORRECT"));
        assert_eq!(part.extracted.as_deref(), Some("INCORRECT"));
        assert!(!part.by_line && shown("well").extracted.is_none());
    }

    #[test]
    fn a_reply_that_fits_nothing_is_asked_again_once_and_then_has_no_score() {
        let mut dialogue = Dialogue::new(Shots::Last { answers_max: ANSWERS_MAX });
        dialogue.take(judge("well"));
        let Next::FollowUp(asked) = dialogue.next() else { panic!("{:?}", dialogue.next()) };
        assert_eq!(
            (asked.kind, asked.fields["choices"].as_str()),
            (PromptKind::Choice, "CORRECT, NOT MENTIONED, INCORRECT")
        );
        let mut other = dialogue.clone();
        dialogue.take(judge("well, well"));
        assert_eq!(dialogue.next(), Next::Done);
        let evaluation = dialogue.into_evaluation();
        assert!(evaluation.scores.is_empty() && evaluation.unscored.unwrap().contains("CORRECT"));
        other.take(judge("Correct"));
        assert_eq!(other.next(), Next::Done);
        let evaluation = other.into_evaluation();
        assert_eq!((evaluation.scores["grade"].clone(), evaluation.unscored), (json!(1.0), None));
    }

    #[test]
    fn words_and_worth_belong_together() {
        for parameters in
            [json!({}), json!({"choices": ["A"], "worth": []}), json!({"choices": [], "worth": []})]
        {
            assert!(case(parameters).is_err());
        }
    }
}
