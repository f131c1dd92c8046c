//! Writes an assessment as a task of a pack, and reads it back. A case holds its whole question with description and facts, so
//! that judges and tables need the pack only and never the graph.

use std::sync::Arc;

use serde_json::{Map, Value};
use tasks::families::entity_overview;
use tasks::{CaseData, TaskData, Wording};

use crate::kinds::kghalubench::draw::assessment::Assessment;
use crate::kinds::kghalubench::draw::question;
use crate::kinds::kghalubench::draw::question::{FACTS, Question};
use crate::kinds::kghalubench::draw::simulated::{Recall, answer};

/// Prefix of the tasks' labels.
pub const LABEL: &str = "KGHalu";

/// The label of an assessment: `KGHalu-01` is the first.
pub fn label(number: u32) -> String {
    format!("{LABEL}-{:02}", number + 1)
}

/// The task of an assessment, with a case for each question, in the program's own wording unless [another](question::worded) is
/// chosen. Its reference, wrong and malformed answers are those of a
/// simulated model, so that packs can be verified without a real one.
///
/// # Errors
/// None for an assessment that was drawn: its fields can be written as JSON.
pub fn task(assessment: &Assessment, chosen: Option<&Wording>) -> Result<TaskData, serde_json::Error> {
    let Assessment { number, recipe, snapshot, as_of, questions } = assessment;
    let mut parameters = Map::from_iter([
        ("assessment".to_owned(), (*number).into()),
        ("recipe".to_owned(), serde_json::to_value(recipe)?),
        ("snapshot".to_owned(), snapshot.as_str().into()),
    ]);
    if let Some(date) = as_of {
        parameters.insert("as_of".to_owned(), date.to_string().into());
    }
    let case = |(place, question): (usize, &Question)| {
        // Somebody else to mistake the entity for.
        let another = &questions[(place + 1) % questions.len()];
        case(place, question, another, chosen.is_some()).map(Arc::new)
    };
    Ok(TaskData {
        label: label(*number).as_str().into(),
        class: entity_overview::NAME.to_owned(),
        version: entity_overview::VERSION.to_owned(),
        parameters,
        wording: chosen.cloned().unwrap_or_else(question::wording),
        cases: questions.iter().enumerate().map(case).collect::<Result<_, _>>()?,
    })
}

fn case(
    place: usize,
    question: &Question,
    another: &Question,
    in_parts: bool,
) -> Result<CaseData, serde_json::Error> {
    let Value::Object(data) = serde_json::to_value(question)? else { return Ok(CaseData::default()) };
    let says = |recall| Some(answer(question, recall, another));
    Ok(CaseData {
        uid: format!("q{:03}", place + 1),
        data,
        prompt: if in_parts {
            let places = question::PLACES.into_iter().zip(question.places());
            places.map(|(name, text)| (name.to_owned(), text.into())).collect()
        } else {
            Map::from_iter([("question".to_owned(), question::text(question).into())])
        },
        reference_answer: says(Recall::Knows([true; FACTS])),
        wrong_answer: says(Recall::Knows([true, false, place.is_multiple_of(3)])),
        malformed_answer: says(if place.is_multiple_of(2) { Recall::Abstains } else { Recall::Invents }),
        ..CaseData::default()
    })
}

/// Why a task is no assessment; nothing if it is one.
pub fn refusal(task: &TaskData) -> Option<String> {
    let why = match assessment_of(task) {
        Ok(assessment) if assessment.questions.is_empty() => "it has no questions".to_owned(),
        Ok(_) => return None,
        Err(error) => error.to_string(),
    };
    Some(format!("it is no assessment, as `kgfleet halu generate` draws them ({why})"))
}

/// The assessment of a task.
///
/// # Errors
/// The task was not made by [`task`].
pub fn assessment_of(task: &TaskData) -> Result<Assessment, serde_json::Error> {
    let parameter = |name: &str| task.parameters.get(name).cloned().unwrap_or_default();
    Ok(Assessment {
        number: serde_json::from_value(parameter("assessment"))?,
        recipe: serde_json::from_value(parameter("recipe"))?,
        snapshot: serde_json::from_value(parameter("snapshot"))?,
        as_of: serde_json::from_value(parameter("as_of"))?,
        questions: task.cases.iter().map(|case| question_of(&case.data)).collect::<Result<_, _>>()?,
    })
}

/// The question of a case.
///
/// # Errors
/// The case was not made by [`task`].
pub fn question_of(data: &Map<String, Value>) -> Result<Question, serde_json::Error> {
    serde_json::from_value(Value::Object(data.clone()))
}

#[cfg(test)]
mod tests {
    use domain::PromptKind;

    use super::*;
    use crate::kinds::kghalubench::draw::assessment::{Recipe, draw};
    use crate::kinds::kghalubench::draw::testing::invented;

    #[test]
    fn a_question_survives_its_case() {
        let mut dump = invented(1);
        let recipe = Recipe { questions: 5, ..Recipe::default() };
        let drawn = draw(&mut dump, recipe, 2).unwrap();
        assert_eq!(assessment_of(&task(&drawn, None).unwrap()).unwrap(), drawn);
        let assessment = Assessment { as_of: "2025-06".parse().ok(), ..drawn };
        let task = task(&assessment, None).unwrap();
        assert_eq!(task.label.as_str(), "KGHalu-03");
        assert_eq!(refusal(&task), None);
        let without = TaskData { cases: Vec::new(), ..task.clone() };
        assert!(refusal(&without).unwrap().contains("no questions"));
        let mut damaged = task.clone();
        Arc::make_mut(&mut damaged.cases[4]).data.remove("description");
        assert!(refusal(&damaged).unwrap().contains("description"));
        let mut other = task.clone();
        other.parameters.clear();
        assert!(refusal(&other).unwrap().contains("no assessment"));
        for (case, question) in task.cases.iter().zip(&assessment.questions) {
            assert_eq!(&question_of(&case.data).unwrap(), question);
            let asked = task.wording.render(PromptKind::First, |place| case.prompt.get(place)?.as_str());
            let asked = asked.unwrap();
            assert!(
                asked.contains(&question.name)
                    && question.facts.iter().all(|fact| asked.contains(&fact.relation))
            );
        }
        assert_eq!(assessment_of(&task).unwrap(), assessment);
        assert!(question_of(&Map::new()).is_err());
    }
}
