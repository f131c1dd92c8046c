//! Compared facts: answers to fact extraction tasks, compared with the reference by models that do not chat. It shows stages
//! that ask an embedder and a classifier, and one that needs no answers.
//!
//! Stage `statement`: the judge `writer` states in a sentence what the reference of a case says; once for all models, beside
//! their answers. Stage `similarity`: the judge `embedder` says how near the answer is to the reference. Stage `support`: for
//! answers that are near enough, the judge `classifier` says whether the statement follows from them; where none was written,
//! the reference stands in its place.
//! Scores of an answer: `similarity`, the cosine; `near`, 1 from [`NEAR`] on; `supported`, 1 for entailment, 0 for
//! contradiction and for what is not near.

use domain::control::Better;
use domain::{FailureCause, Scores};
use serde_json::{Map, Value};

use crate::judging::{Judgements, Judging, PromptPlace, Stage, StageInput, Subject, delimited};
use crate::kind::Kind;
use crate::questions::{self, pair};
use crate::report::{JudgedDialogue, Metric, NotJudged};
use crate::results;

/// See the text of the module.
pub static KIND: Kind = Kind {
    name: "compared-facts",
    about: "answers to fact extraction tasks, compared with the reference by an embedder and a classifier",
    judging: Some(&Judging {
        stages: &[STATEMENT, SIMILARITY, SUPPORT],
        settings: &[],
        every_case: false,
        refuses: |_| None,
        conclude,
        metrics,
        results: &[("supported", Better::Higher), ("near", Better::Higher), ("similarity", Better::Higher)],
    }),
    former: &[],
    showing: Some(&results::SHOWING),
};

/// Cosine from which on an answer speaks of what it was asked about.
pub const NEAR: f64 = 0.5;

/// The field of a case that holds the expected document.
const REFERENCE: &str = "referenceTurtle";

const STATEMENT: Stage = Stage {
    name: "statement",
    judge: "writer",
    version: "1",
    task: || {
        let again = "That is no text. Reply with one sentence.";
        questions::text("statement", include_str!("statement.txt"), again)
    },
    places: &[PromptPlace::Needed("reference")],
    stands_in: true,
    about: StageInput::Cases(|case| vec![vec![("reference", delimited(reference(case)))]]),
};

const SIMILARITY: Stage = Stage {
    name: "similarity",
    judge: "embedder",
    version: "1",
    task: || questions::similarity("similarity"),
    places: &[],
    stands_in: false,
    about: StageInput::Answers {
        reads: &[],
        questions: |subject, _| vec![pair(reference(&subject.case), &subject.answer)],
    },
};

const SUPPORT: Stage = Stage {
    name: "support",
    judge: "classifier",
    version: "1",
    task: || questions::entailment("support"),
    places: &[],
    stands_in: false,
    about: StageInput::Answers {
        reads: &["statement"],
        questions: |subject, judgements| match judgements.number("similarity", "cosine") {
            Ok(Some(cosine)) if cosine >= NEAR => {
                let written = judgements.texts("statement").first().copied().flatten();
                vec![pair(&subject.answer, written.unwrap_or_else(|| reference(&subject.case)))]
            }
            _ => Vec::new(),
        },
    },
};

fn reference(case: &Map<String, Value>) -> &str {
    case.get(REFERENCE).and_then(Value::as_str).unwrap_or_default()
}

fn conclude(_: &Subject, judgements: &Judgements<'_>) -> Result<Scores, NotJudged> {
    let missing = NotJudged { stage: "similarity", cause: FailureCause::JudgeUnparseable };
    let cosine = judgements.number("similarity", "cosine")?.ok_or(missing)?;
    let supported = judgements.number("support", "grade")?.unwrap_or(0.0);
    let near = if cosine >= NEAR { 1.0 } else { 0.0 };
    Ok(Scores::from_iter([
        ("similarity".to_owned(), cosine.into()),
        ("near".to_owned(), near.into()),
        ("supported".to_owned(), supported.into()),
    ]))
}

fn metrics(judged: &[JudgedDialogue]) -> Vec<Metric> {
    let mean = |name| Metric::mean_of(name, name, judged);
    vec![mean("supported"), mean("near"), mean("similarity")]
}
