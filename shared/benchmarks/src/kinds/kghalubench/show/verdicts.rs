//! The table of what became of every answer, with the difficulty of its question. The shares and means of the other tables can
//! be computed from it.

use report::table::{Cell, Table};

use super::Numbers;
use crate::kinds::kghalubench::draw::exercise;
use crate::kinds::kghalubench::draw::question::FACTS;
use crate::kinds::kghalubench::numbers::metrics::{FactDecision, Fate};

/// One row per planned answer, in the order of models and of the plan.
pub(super) fn table(all: &[&Numbers]) -> Table {
    let facts =
        (1..=FACTS).flat_map(|number| [format!("fact {number}"), format!("fact {number} decided by")]);
    let mut table = Table::default()
        .left(["pipeline", "model", "assessment"])
        .right(["question", "answer"])
        .left(["entity", "type", "outcome"])
        .right(["points", "difficulty", "similarity"])
        .left(facts)
        .titled("Verdicts");
    for numbers in all {
        let Numbers { found, weights, study, .. } = numbers;
        let difficulty = study.scale.difficulty(weights, &found.assessments);
        for model in &found.models {
            for answer in &model.answers {
                let Some(assessment) = found.assessments.get(answer.assessment) else { continue };
                let Some(question) = assessment.questions.get(answer.question) else { continue };
                let (place, number) = (answer.assessment, answer.question);
                let answered = difficulty.answered(&found.assessments, place, number, answer.fate);
                let cells = [
                    Cell::from(found.pipeline.as_str()),
                    Cell::from(model.model.as_str()),
                    Cell::from(exercise::label(assessment.number)),
                    Cell::Count(answer.question as u64 + 1),
                    Cell::Count(u64::from(answer.repetition) + 1),
                    Cell::from(question.entity.as_str()),
                    Cell::from(question.type_name.as_str()),
                    Cell::from(outcome(&answer.fate)),
                    Cell::count(answer.fate.points().map(u64::from)),
                    Cell::number(answered.map(|answered| answered.difficulty), 4),
                    Cell::number(answer.similarity, 4),
                ];
                table.row(cells.into_iter().chain(of_facts(&answer.fate)));
            }
        }
    }
    table
}

fn outcome(fate: &Fate) -> &'static str {
    match fate {
        Fate::Abstained => "abstained",
        Fate::Hallucinated => "other entity",
        Fate::Aligned(_) => "aligned",
        Fate::NotScored => "not scored",
    }
}

/// Of each fact, whether it is stated and which filter decided; nothing where facts were not looked at.
fn of_facts(fate: &Fate) -> Vec<Cell> {
    let Fate::Aligned(facts) = fate else { return vec![Cell::Empty; 2 * FACTS] };
    let of_fact = |fact: &FactDecision| {
        [Cell::from(if fact.correct { "stated" } else { "wrong" }), Cell::from(fact.by.stage())]
    };
    facts.iter().flat_map(of_fact).collect()
}
