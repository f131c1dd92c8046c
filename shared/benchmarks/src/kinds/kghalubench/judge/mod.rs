//! How answers are judged. `stages` has what each judge is asked; here verdicts become scores. Nothing here asks a judge.
//!
//! Stage `facts`: the judge `writer` states each fact in a sentence. It needs no answers, so it is asked once for all models
//! while they still answer. Stage `abstain`: the judge `abstention` tells answers from admissions not to know. Stage
//! `similarity`: the judge `embedder` says how near an answer is to the entity's description; with the token-set ratio this
//! decides whether it is about the entity. Of answers that are, each fact goes through up to three filters: stage `nli`, the
//! judge `classifier`; stage `llm`, the judge `entailment`, for what is not entailed; stage `expert`, the judge `expert`, where
//! the two contradict each other. An answer for which a judge that had to be asked gave no verdict is not scored.
//!
//! Scores of an answer: `points` of 3, `abstained`, `hallucinated`, `aligned`; where it is aligned, `wrong` facts, and
//! `by_nli`, `by_llm`, `by_expert`, the facts that each filter decided; where it was compared, `similarity`.

use std::collections::BTreeMap;

use domain::control::Better;
use domain::{FailureCause, Mean, Scores, TaskLabel};
use serde_json::{Map, Value};

use crate::judging::{Judgements, Judging, Setting, Subject};
use crate::kinds::kghalubench::draw::{Question, exercise, question};
use crate::kinds::kghalubench::numbers::metrics::{FactDecision, Fate, Filter};
use crate::kinds::kghalubench::numbers::token_set;
use crate::questions;
use crate::report::{JudgedDialogue, Metric, NotJudged};
use crate::verdicts::Ruling;

pub(in crate::kinds) mod edition1;
pub(in crate::kinds) mod stages;
#[cfg(test)]
mod tests;
mod windows;

/// See the text of the module.
pub(in crate::kinds) const JUDGING: Judging = Judging {
    stages: &[stages::FACTS, stages::ABSTAIN, stages::SIMILARITY, stages::NLI, stages::LLM, stages::EXPERT],
    settings: &[THRESHOLD, COSINE_SHARE, WINDOW],
    every_case: true,
    refuses: exercise::refusal,
    conclude,
    metrics,
    results: &[
        ("accuracy", Better::Higher),
        ("abstention", Better::Neither),
        ("halu-bok", Better::Lower),
        ("halu-dok", Better::Lower),
    ],
};

/// Similarity from which on an answer is about the entity (paper, A.3.1: the threshold of the highest F1).
pub const THRESHOLD: Setting = Setting { name: "similarity_threshold", default: 0.70, range: (0.0, 1.0) };

/// Share of the cosine in the similarity; the rest is the token-set ratio (paper, A.2.2).
pub const COSINE_SHARE: Setting = Setting { name: "cosine_share", default: 0.7, range: (0.0, 1.0) };

/// Characters of an answer that the classifier reads at once; 0 for all. The paper's classifier reads 512 tokens, of which a
/// sentence takes some tens; English has about four characters to a token.
pub const WINDOW: Setting = Setting { name: "classifier_window", default: 1_800.0, range: (0.0, 1e6) };

/// The question of a case; nothing for a case of another class.
pub(in crate::kinds) fn question_of(case: &Map<String, Value>) -> Option<Question> {
    exercise::question_of(case).ok()
}

/// How near an answer is to the entity's description: from their cosine.
fn similarity(question: &Question, answer: &str, cosine: f64, cosine_share: f64) -> f64 {
    let ratio = token_set::token_set_ratio(&question.description, answer);
    cosine_share * cosine + (1.0 - cosine_share) * ratio
}

/// What is known of an answer before its facts are looked at.
enum Entity {
    Abstained,
    /// About another entity; with the similarity.
    Hallucinated(f64),
    /// About the entity; with the similarity.
    Aligned(f64),
}

/// The verdict at the level of the entity.
fn entity(question: &Question, answer: &str, judgements: &Judgements<'_>) -> Result<Entity, NotJudged> {
    let missing = |stage| NotJudged { stage, cause: FailureCause::JudgeUnparseable };
    let answered = judgements.number("abstain", "grade")?.ok_or_else(|| missing("abstain"))?;
    if answered == 0.0 {
        return Ok(Entity::Abstained);
    }
    let cosine = judgements.number("similarity", "cosine")?.ok_or_else(|| missing("similarity"))?;
    let similarity = similarity(question, answer, cosine, judgements.setting(&COSINE_SHARE));
    Ok(if similarity < judgements.setting(&THRESHOLD) {
        Entity::Hallucinated(similarity)
    } else {
        Entity::Aligned(similarity)
    })
}

/// What the filters say of a fact of an aligned answer.
enum Checked {
    Decided(FactDecision),
    /// The classifier does not call it entailed: the next filter has to say.
    AskLlm,
    /// The language model calls it stated and the classifier contradicted.
    AskExpert,
}

/// Follows one fact through the filters. `nli` are the rulings on the parts of the answer. `llm` and `expert` are the
/// rulings on those facts that reached the filter, in order; a ruling is taken from them when the fact is such a one.
/// They end early while a stage still waits.
fn check<'r>(
    nli: &[&Ruling],
    llm: &mut impl Iterator<Item = &'r Ruling>,
    expert: &mut impl Iterator<Item = &'r Ruling>,
) -> Result<Checked, NotJudged> {
    let decided = |correct, by| Ok(Checked::Decided(FactDecision { correct, by }));
    if nli.iter().any(|ruling| ruling.number("grade") == Some(questions::ENTAILED)) {
        return decided(true, Filter::Nli);
    }
    let mut contradicted = false;
    for ruling in nli {
        contradicted |= grade("nli", ruling)? == questions::CONTRADICTED;
    }
    let Some(ruling) = llm.next() else { return Ok(Checked::AskLlm) };
    let stated = grade("llm", ruling)? > 0.0;
    if !stated || !contradicted {
        return decided(stated, Filter::Llm);
    }
    match expert.next() {
        None => Ok(Checked::AskExpert),
        Some(ruling) => decided(grade("expert", ruling)? > 0.0, Filter::Expert),
    }
}

fn grade(stage: &'static str, ruling: &Ruling) -> Result<f64, NotJudged> {
    match ruling {
        Ruling::Not(cause) => Err(NotJudged { stage, cause: *cause }),
        Ruling::Scored { .. } => {
            ruling.number("grade").ok_or(NotJudged { stage, cause: FailureCause::JudgeUnparseable })
        }
    }
}

fn conclude(subject: &Subject, judgements: &Judgements<'_>) -> Result<Scores, NotJudged> {
    let (fate, similarity) = fate(subject, judgements)?;
    Ok(scores(&fate, similarity))
}

/// What became of an answer, with its similarity to the entity's description where that was asked for.
///
/// # Errors
/// A judge that had to be asked gave no verdict.
pub fn fate(subject: &Subject, judgements: &Judgements<'_>) -> Result<(Fate, Option<f64>), NotJudged> {
    let unusable = NotJudged { stage: crate::names::ASK, cause: FailureCause::EvaluatorFailed };
    let question = question_of(&subject.case).ok_or(unusable)?;
    Ok(match entity(&question, &subject.answer, judgements)? {
        Entity::Abstained => (Fate::Abstained, None),
        Entity::Hallucinated(similarity) => (Fate::Hallucinated, Some(similarity)),
        Entity::Aligned(similarity) => {
            (Fate::Aligned(decisions(&subject.answer, judgements)?), Some(similarity))
        }
    })
}

/// The facts of an answer in the sentences that judges were asked about.
pub fn sentences(subject: &Subject, judgements: &Judgements<'_>) -> Vec<String> {
    question_of(&subject.case).map_or_else(Vec::new, |question| stages::sentences(&question, judgements))
}

/// What was decided of the three facts of an aligned answer.
fn decisions(answer: &str, judgements: &Judgements<'_>) -> Result<[FactDecision; 3], NotJudged> {
    let mut llm = judgements.of("llm").iter().copied();
    let mut expert = judgements.of("expert").iter().copied();
    let mut decisions = Vec::with_capacity(3);
    for nli in stages::by_fact(answer, judgements) {
        let waits = |stage| NotJudged { stage, cause: FailureCause::JudgeUnparseable };
        match check(nli, &mut llm, &mut expert)? {
            Checked::Decided(decision) => decisions.push(decision),
            Checked::AskLlm => return Err(waits("llm")),
            Checked::AskExpert => return Err(waits("expert")),
        }
    }
    decisions.try_into().map_err(|_| NotJudged { stage: "nli", cause: FailureCause::JudgeUnparseable })
}

/// How long it took to decide each fact of an aligned answer: what all its filters took, one after the other. Nothing of other
/// answers.
pub fn fact_seconds(
    subject: &Subject,
    judgements: &Judgements<'_>,
    fate: &Fate,
) -> Option<[f64; question::FACTS]> {
    let Fate::Aligned(facts) = fate else { return None };
    let seconds = |ruling: Option<&&Ruling>| ruling.and_then(|ruling| ruling.seconds()).unwrap_or(0.0);
    let (mut llm, mut expert) = (judgements.of("llm").iter(), judgements.of("expert").iter());
    let mut parts = stages::by_fact(&subject.answer, judgements);
    Some(facts.map(|fact| {
        let mut sum: f64 = parts.next().into_iter().flatten().filter_map(|ruling| ruling.seconds()).sum();
        if fact.by >= Filter::Llm {
            sum += seconds(llm.next());
        }
        if fact.by == Filter::Expert {
            sum += seconds(expert.next());
        }
        sum
    }))
}

fn scores(fate: &Fate, similarity: Option<f64>) -> Scores {
    let one_if = |holds: bool| if holds { 1.0 } else { 0.0 };
    let mut scores = Scores::from_iter([
        ("points".to_owned(), f64::from(fate.points().unwrap_or(0)).into()),
        ("abstained".to_owned(), one_if(*fate == Fate::Abstained).into()),
        ("hallucinated".to_owned(), one_if(*fate == Fate::Hallucinated).into()),
        ("aligned".to_owned(), one_if(matches!(fate, Fate::Aligned(_))).into()),
    ]);
    if let Fate::Aligned(facts) = fate {
        let count =
            |holds: &dyn Fn(&FactDecision) -> bool| facts.iter().filter(|fact| holds(fact)).count() as f64;
        scores.insert("wrong".to_owned(), count(&|fact| !fact.correct).into());
        for (name, filter) in
            [("by_nli", Filter::Nli), ("by_llm", Filter::Llm), ("by_expert", Filter::Expert)]
        {
            scores.insert(name.to_owned(), count(&|fact| fact.by == filter).into());
        }
    }
    if let Some(similarity) = similarity {
        scores.insert("similarity".to_owned(), similarity.into());
    }
    scores
}

/// Accuracy over all answers; abstention, Halu_BOK and Halu_DOK as means over assessments, of which each is a task. The weighted
/// accuracy needs weights, which are no part of a run.
fn metrics(judged: &[JudgedDialogue]) -> Vec<Metric> {
    let is = |judged: &JudgedDialogue, name| judged.number(name) == Some(1.0);
    let third = |points: Option<f64>| points.map(|points| points / 3.0);
    let rate =
        |name, of: &dyn Fn(&JudgedDialogue) -> bool, value: &dyn Fn(&JudgedDialogue) -> Option<f64>| {
            let mut by_assessment: BTreeMap<&TaskLabel, Vec<Option<f64>>> = BTreeMap::new();
            for judged in judged.iter().filter(|judged| of(judged)) {
                by_assessment.entry(&judged.key.task).or_default().push(value(judged));
            }
            Metric { name, mean: over_assessments(by_assessment.into_values().map(Mean::of)) }
        };
    vec![
        Metric {
            name: "accuracy",
            mean: Mean::of(judged.iter().map(|judged| third(judged.number("points")))),
        },
        rate("abstention", &|_| true, &|judged| judged.number("abstained")),
        rate("halu-bok", &|judged| !is(judged, "abstained"), &|judged| judged.number("hallucinated")),
        rate("halu-dok", &|judged| is(judged, "aligned"), &|judged| third(judged.number("wrong"))),
    ]
}

/// The mean of the means of those assessments that have one.
fn over_assessments(means: impl Iterator<Item = Mean>) -> Mean {
    let (mut values, mut covered, mut planned) = (Vec::new(), 0, 0);
    for mean in means {
        values.extend(mean.value.map(Some));
        covered += mean.covered;
        planned += mean.planned;
    }
    Mean { value: Mean::of(values).value, covered, planned }
}
