//! Judged facts: answers to fact extraction tasks, graded by a model. The smallest judged benchmark there is: it shows that
//! stages work, and what a judge's grade is worth beside the exact score of the same answer.
//!
//! Stage `grade`: the judge `grader` compares the answer with the reference document and says CORRECT, PARTLY or INCORRECT.
//! Stage `review`: what it called PARTLY is put before the judge `reviewer`, who says ACCEPTABLE or UNACCEPTABLE.
//! Scores of an answer: `grade`, 1 for what is correct or acceptable, 0 for the rest; `partly`, 1 where it was reviewed.

use domain::control::Better;
use domain::{FailureCause, Scores};
use serde_json::Value;

use crate::judging::{Judgements, Judging, PromptPlace, PromptTexts, Stage, StageInput, Subject, delimited};
use crate::kind::Kind;
use crate::questions::{self, GRADES, OF_ANSWERS};
use crate::report::{JudgedDialogue, Metric, NotJudged};
use crate::results;

/// See the text of the module.
pub static KIND: Kind = Kind {
    name: "judged-facts",
    about: "answers to fact extraction tasks, graded by a model and reviewed by a second one",
    judging: Some(&Judging {
        stages: &[GRADE, REVIEW],
        settings: &[],
        every_case: false,
        refuses: |_| None,
        conclude,
        metrics,
        results: &[("grade", Better::Higher), ("partly", Better::Neither)],
    }),
    former: &[],
    showing: Some(&results::SHOWING),
};

const GRADE: Stage = Stage {
    name: "grade",
    judge: "grader",
    version: "1",
    task: || questions::choice("grade", OF_ANSWERS, &GRADES, include_str!("grade.txt")),
    places: COMPARED,
    stands_in: false,
    about: StageInput::Answers { reads: &[], questions: |subject, _| vec![compared(subject)] },
};

const REVIEW: Stage = Stage {
    name: "review",
    judge: "reviewer",
    version: "1",
    task: || {
        let choices = [("ACCEPTABLE", 1.0), ("UNACCEPTABLE", 0.0)];
        questions::choice("review", OF_ANSWERS, &choices, include_str!("review.txt"))
    },
    places: COMPARED,
    stands_in: false,
    about: StageInput::Answers {
        reads: &[],
        questions: |subject, judgements| match judgements.number("grade", "grade") {
            Ok(Some(grade)) if grade > 0.0 && grade < 1.0 => vec![compared(subject)],
            _ => Vec::new(),
        },
    },
};

/// What both judges are shown.
const COMPARED: &[PromptPlace] =
    &[PromptPlace::Offered("question"), PromptPlace::Needed("reference"), PromptPlace::Needed("answer")];

/// The field of a case that holds the expected document.
const REFERENCE: &str = "referenceTurtle";

fn compared(subject: &Subject) -> PromptTexts {
    let reference = subject.case.get(REFERENCE).and_then(Value::as_str).unwrap_or_default();
    vec![
        ("question", delimited(&subject.question)),
        ("reference", delimited(reference)),
        ("answer", delimited(&subject.answer)),
    ]
}

fn conclude(_: &Subject, judgements: &Judgements<'_>) -> Result<Scores, NotJudged> {
    let missing = NotJudged { stage: "grade", cause: FailureCause::JudgeUnparseable };
    let grade = judgements.number("grade", "grade")?.ok_or(missing)?;
    let review = judgements.number("review", "grade")?;
    let partly = if review.is_some() { 1.0 } else { 0.0 };
    Ok(Scores::from_iter([
        ("grade".to_owned(), review.unwrap_or(grade).into()),
        ("partly".to_owned(), partly.into()),
    ]))
}

fn metrics(judged: &[JudgedDialogue]) -> Vec<Metric> {
    vec![Metric::mean_of("grade", "grade", judged), Metric::mean_of("partly", "partly", judged)]
}
