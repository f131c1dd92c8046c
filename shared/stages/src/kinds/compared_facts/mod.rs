//! Compared facts: answers to fact extraction tasks, compared with the reference by models that do not chat. It shows stages
//! that ask an embedder and a classifier, and one that needs no answers.
//!
//! Stage `statement`: the judge `writer` states in a sentence what the reference of a case says; once for all models, beside
//! their answers. Stage `similarity`: the judge `embedder` says how near the answer is to the reference. Stage `support`: for
//! answers that are near enough, the judge `classifier` says whether the statement follows from them; where none was written,
//! the reference stands in its place.
//! Scores of an answer: `similarity`, the cosine; `near`, 1 from [`NEAR`] on; `supported`, 1 for entailment, 0 for contradiction
//! and for what is not near.

use domain::{FailureCause, PromptKind, Scores};
use serde_json::{Map, Value, json};
use tasks::families::{judge_pair, judge_text};
use tasks::{TaskData, Template, Wording};

use crate::kind::{Judgements, Matter, PipelineKind, StageSpec, Subject, Texts, delimited};
use crate::report::{Judged, Metric, NotJudged};

/// See the text of the module.
pub const KIND: PipelineKind = PipelineKind {
    name: "compared-facts",
    about: "answers to fact extraction tasks, compared with the reference by an embedder and a classifier",
    stages: &[STATEMENT, SIMILARITY, SUPPORT],
    conclude,
    metrics,
};

/// Cosine from which on an answer speaks of what it was asked about.
pub const NEAR: f64 = 0.5;

/// The field of a case that holds the expected document.
const REFERENCE: &str = "referenceTurtle";

const STATEMENT: StageSpec = StageSpec {
    name: "statement",
    judge: "writer",
    version: "1",
    task: || {
        let mut wording = Wording::default();
        wording.insert(PromptKind::First, Template::new(include_str!("statement.txt").trim_end()));
        wording.insert(PromptKind::Choice, Template::new("That is no text. Reply with one sentence."));
        task("statement", judge_text::NAME, judge_text::VERSION, Map::new(), wording)
    },
    about: Matter::Cases(|case| vec![vec![("reference", delimited(reference(case)))]]),
};

const SIMILARITY: StageSpec = StageSpec {
    name: "similarity",
    judge: "embedder",
    version: "1",
    task: || task("similarity", judge_pair::SIMILARITY, judge_pair::VERSION, Map::new(), of_pairs()),
    about: Matter::Answers {
        reads: &[],
        questions: |subject, _| vec![pair(reference(&subject.case), &subject.answer)],
    },
};

const SUPPORT: StageSpec = StageSpec {
    name: "support",
    judge: "classifier",
    version: "1",
    task: || {
        let parameters = Map::from_iter([
            ("choices".to_owned(), json!(["entailment", "neutral", "contradiction"])),
            ("worth".to_owned(), json!([1.0, 0.5, 0.0])),
        ]);
        task("support", judge_pair::CLASS, judge_pair::VERSION, parameters, of_pairs())
    },
    about: Matter::Answers {
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

fn pair(left: &str, right: &str) -> Texts {
    vec![(judge_pair::PAIR, judge_pair::pair(left, right))]
}

/// The prompt is the pair and nothing else.
fn of_pairs() -> Wording {
    let mut wording = Wording::default();
    wording.insert(PromptKind::First, Template::new("{{pair}}"));
    wording
}

fn task(
    label: &str,
    class: &str,
    version: &str,
    parameters: Map<String, Value>,
    wording: Wording,
) -> TaskData {
    TaskData {
        label: label.into(),
        class: class.to_owned(),
        version: version.to_owned(),
        parameters,
        wording,
        cases: Vec::new(),
    }
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

fn metrics(judged: &[Judged]) -> Vec<Metric> {
    let mean = |name| Metric::mean_of(name, name, judged);
    vec![mean("supported"), mean("near"), mean("similarity")]
}
