//! JudgeText: a model that writes a text for later stages, such as the sentence that states a fact.
//!
//! The info `text` is the reply without surrounding white space and quotes. The stage that reads it decides whether it
//! is right, because only that stage has the case. A reply without any letter or digit is asked again once, with the
//! follow-up `choice`; a second one leaves the dialogue unscored. No parameters; score `written`, 1 if there is a text.

use domain::{Infos, PromptKind, Scores};

use crate::class::{AnswerForm, ClassSpec};
use crate::compared::ComparedPart;
use crate::exercise::{Effort, Exercise, FollowUp, Limit, Shots, Verdict};
use crate::wording::Fields;

/// The name of the class in packs.
pub const NAME: &str = "JudgeText";

/// Its version.
pub const VERSION: &str = "1.0";

/// The info that holds the text.
pub const TEXT: &str = "text";

/// Maximum number of answers of a model to one question.
const ANSWERS_MAX: usize = 2;

/// Write a text.
pub(crate) const CLASS: ClassSpec = ClassSpec {
    follow_ups: &[PromptKind::Choice],
    judges: true,
    ..ClassSpec::new(&[(NAME, &[VERSION])], &["written"], AnswerForm::Text, |_, _, _| Ok(Box::new(JudgeText)))
};

struct JudgeText;

impl Exercise for JudgeText {
    fn shots(&self) -> Shots {
        Shots::Last { answers_max: ANSWERS_MAX }
    }

    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let mut verdict = Verdict::default();
        if let Some(text) = written(answer, effort) {
            verdict.scores = Scores::from_iter([("written".to_owned(), 1.0.into())]);
            verdict.infos = Infos::from_iter([(TEXT.to_owned(), text.into())]);
            return verdict;
        }
        if answer.len() > effort.limits.answer_bytes_max {
            verdict.infos.insert("evaluationLimit".into(), Limit::Size.message().into());
        }
        verdict.unscored = Some("the reply is no text".to_owned());
        verdict.follow_up = Some(FollowUp { kind: PromptKind::Choice, fields: Fields::default() });
        verdict
    }

    fn compared(&self, answer: &str, _infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        vec![ComparedPart::new("text", None, written(answer, effort).map(str::to_owned))]
    }
}

/// The text of a reply, unless it is too long or has no letter or digit.
fn written<'a>(reply: &'a str, effort: &Effort) -> Option<&'a str> {
    let text = unquoted(reply.trim());
    (reply.len() <= effort.limits.answer_bytes_max && text.contains(char::is_alphanumeric)).then_some(text)
}

/// The text without the quotes that enclose all of it.
fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).map_or(text, str::trim)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::exercise::EvaluationLimits;

    #[test]
    fn a_text_is_what_was_written_and_nothing_is_asked_for_again() {
        let judge = |reply: &str| JudgeText.judge(reply, &Effort::full(EvaluationLimits::default()));
        for (reply, text) in [
            ("\n Ada was born in London. \n", "Ada was born in London."),
            ("\"Ada was born in London.\"", "Ada was born in London."),
            ("\"Ada\" is \"Countess\"", "\"Ada\" is \"Countess\""),
        ] {
            assert_eq!(judge(reply).infos[TEXT], json!(text));
            let parts = JudgeText.compared(reply, &Infos::new(), &Effort::full(EvaluationLimits::default()));
            assert_eq!((parts[0].expected.as_deref(), parts[0].extracted.as_deref()), (None, Some(text)));
        }
        for reply in ["", "...", "\"\""] {
            let verdict = judge(reply);
            assert!(verdict.unscored.is_some() && verdict.follow_up.is_some(), "{reply}: {verdict:?}");
        }
    }
}
