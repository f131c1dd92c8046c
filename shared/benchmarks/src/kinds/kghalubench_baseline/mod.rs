//! What KGHaluBench is compared with: one chat model that judges the same answers alone (paper, A.3.1 and A.4.3).
//!
//! The stages `facts` and `abstain` are those of KGHaluBench in the same edition, so that their verdicts are taken over. Stage
//! `entity`: the judge `baseline` says whether an answer and the description are about one entity. Stage `stated`: it says of each
//! fact whether the answer states it, also where it took the answer for one about another entity: a sheet that people annotated has
//! facts of answers that others take for aligned.
//!
//! Scores of an answer: `points` of 3, `abstained`, `hallucinated`, `aligned`; where it is no abstention, `stated1` to `stated3`; where
//! it is aligned, `wrong` facts.

use domain::{FailureCause, Scores};

use super::kghalubench::judged_alike::{
    ABSTAIN, FACTS, JUDGING as KGHALUBENCH, SYSTEM, edition1, question_of, sentences,
};
use crate::judging::{Judgements, Judging, PromptPlace, PromptTexts, Stage, StageInput, Subject, delimited};
use crate::kind::Kind;
use crate::questions;
use crate::report::NotJudged;
use crate::results;

/// See the text of the module.
pub static KIND: Kind = Kind {
    name: "kghalubench-baseline",
    about: "overviews of entities of a knowledge graph, checked by one chat model alone: what kghalubench is compared with",
    judging: Some(&Judging {
        stages: &[FACTS, ABSTAIN, ENTITY, STATED],
        settings: &[],
        conclude,
        ..KGHALUBENCH
    }),
    former: &[&Judging {
        stages: &[edition1::FACTS, edition1::ABSTAIN, ENTITY, STATED],
        settings: &[],
        conclude,
        ..KGHALUBENCH
    }],
    showing: Some(&results::SHOWING),
};

const CHOICES: [(&str, f64); 2] = [("TRUE", 1.0), ("FALSE", 0.0)];

const ENTITY: Stage = Stage {
    name: "entity",
    judge: "baseline",
    version: "1",
    task: || questions::choice("entity", SYSTEM, &CHOICES, include_str!("entity.txt")),
    places: &[PromptPlace::Needed("description"), PromptPlace::Needed("answer")],
    stands_in: false,
    about: StageInput::Answers {
        reads: &[],
        questions: |subject, judgements| match question_of(&subject.case) {
            Some(question) if has_answered(judgements) => {
                vec![vec![
                    ("description", delimited(&question.description)),
                    ("answer", delimited(&subject.answer)),
                ]]
            }
            _ => Vec::new(),
        },
    },
};

const STATED: Stage = Stage {
    name: "stated",
    judge: "baseline",
    version: "1",
    task: || questions::choice("stated", SYSTEM, &CHOICES, include_str!("stated.txt")),
    places: &[PromptPlace::Needed("fact"), PromptPlace::Needed("answer")],
    stands_in: false,
    about: StageInput::Answers {
        reads: &["facts"],
        questions: |subject, judgements| {
            if !has_answered(judgements) {
                return Vec::new();
            }
            let ask = |sentence: String| -> PromptTexts {
                vec![("fact", delimited(&sentence)), ("answer", delimited(&subject.answer))]
            };
            sentences(subject, judgements).into_iter().map(ask).collect()
        },
    },
};

fn has_answered(judgements: &Judgements<'_>) -> bool {
    matches!(judgements.number("abstain", "grade"), Ok(Some(answered)) if answered > 0.0)
}

/// The name of the score that says whether a fact is stated; facts count from 0.
pub(super) fn stated(fact: usize) -> String {
    format!("stated{}", fact + 1)
}

fn conclude(_: &Subject, judgements: &Judgements<'_>) -> Result<Scores, NotJudged> {
    let missing = |stage| NotJudged { stage, cause: FailureCause::JudgeUnparseable };
    let answered = judgements.number("abstain", "grade")?.ok_or_else(|| missing("abstain"))?;
    let mut scores = Scores::default();
    let mut set = |name: &str, value: f64| drop(scores.insert(name.to_owned(), value.into()));
    if answered == 0.0 {
        let abstained = [("points", 1.0), ("abstained", 1.0), ("hallucinated", 0.0), ("aligned", 0.0)];
        abstained.into_iter().for_each(|(name, value)| set(name, value));
        return Ok(scores);
    }
    let same = judgements.number("entity", "grade")?.ok_or_else(|| missing("entity"))?;
    let mut facts = 0.0;
    for (number, ruling) in judgements.of("stated").iter().enumerate() {
        let is_stated = ruling.number("grade").ok_or_else(|| missing("stated"))?;
        set(&stated(number), is_stated);
        facts += is_stated;
    }
    let answered =
        [("points", facts * same), ("abstained", 0.0), ("hallucinated", 1.0 - same), ("aligned", same)];
    answered.into_iter().for_each(|(name, value)| set(name, value));
    if same > 0.0 {
        set("wrong", judgements.of("stated").len() as f64 - facts);
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use domain::Infos;
    use serde_json::Map;

    use super::*;
    use crate::verdicts::Ruling;

    fn graded(grade: f64) -> Ruling {
        let scores = Scores::from_iter([("grade".to_owned(), grade.into())]);
        Ruling::Scored { scores, infos: Infos::new(), seconds: 1.0 }
    }

    fn concluded(rulings: &[(&'static str, Vec<Ruling>)]) -> Result<Scores, NotJudged> {
        let mut judgements = Judgements::default();
        for (stage, rulings) in rulings {
            judgements.push(stage, rulings.iter().collect());
        }
        let key = domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 };
        let (question, answer) = (String::new(), String::new());
        let subject = Subject { key, question, answer, case: Map::new(), scores: Scores::default() };
        conclude(&subject, &judgements)
    }

    #[test]
    fn points_are_facts_of_answers_about_the_entity() {
        let number = |scores: &Scores, name: &str| scores.get(name).and_then(serde_json::Value::as_f64);
        let facts = || ("stated", [1.0, 0.0, 1.0].map(graded).to_vec());
        let of = |same| concluded(&[("abstain", vec![graded(1.0)]), ("entity", vec![graded(same)]), facts()]);
        let (aligned, other) = (of(1.0).unwrap(), of(0.0).unwrap());
        assert_eq!((number(&aligned, "points"), number(&aligned, "wrong")), (Some(2.0), Some(1.0)));
        assert_eq!((number(&other, "points"), number(&other, "hallucinated")), (Some(0.0), Some(1.0)));
        assert_eq!((number(&other, "stated1"), number(&other, "wrong")), (Some(1.0), None));
        let abstained = concluded(&[("abstain", vec![graded(0.0)])]).unwrap();
        assert_eq!((number(&abstained, "points"), number(&abstained, "stated1")), (Some(1.0), None));
    }

    #[test]
    fn an_answer_without_a_verdict_is_not_scored() {
        let not = || Ruling::Not(FailureCause::JudgeUnparseable);
        let same = || ("entity", vec![graded(1.0)]);
        for (stage, rulings) in [
            ("abstain", vec![("abstain", vec![not()])]),
            ("entity", vec![("abstain", vec![graded(1.0)]), ("entity", vec![not()])]),
            ("stated", vec![("abstain", vec![graded(1.0)]), same(), ("stated", vec![graded(1.0), not()])]),
        ] {
            assert_eq!(concluded(&rulings).unwrap_err().stage, stage);
        }
    }
}
