//! EntityOverview: an overview of an entity that must state three facts about it (KGHaluBench, 3.1.4). Answers have no
//! score here: judges score them in the judged benchmark `kghalubench`.
//!
//! Fields of a case: those of a question of KGHaluBench (`shared/benchmarks`), of which only `name` and `facts` are used here.
//! Placeholder of the first prompt: `question`. Infos: `characters` and `words` of the answer.

use domain::Infos;
use serde_json::Value;

use crate::class::{AnswerForm, ClassSpec};
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Limit, Verdict};
use crate::families::case_fields;

/// The name of the class in packs.
pub const NAME: &str = "EntityOverview";

/// Its version.
pub const VERSION: &str = "1.0";

/// An overview of an entity, to be judged by models.
pub(crate) const CLASS: ClassSpec =
    ClassSpec::new(&[(NAME, &[VERSION])], &[], AnswerForm::Text, |input, _, _| exercise(input));

struct EntityOverview;

fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    case_fields::text(input.data, "name")?;
    let expected = "list of the facts that are asked for";
    let facts = input.data.get("facts").and_then(Value::as_array).filter(|facts| !facts.is_empty());
    facts.ok_or(CaseError::Field { field: "facts", expected })?;
    Ok(Box::new(EntityOverview))
}

impl Exercise for EntityOverview {
    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let mut infos = Infos::from_iter([
            ("characters".to_owned(), answer.chars().count().into()),
            ("words".to_owned(), answer.split_whitespace().count().into()),
        ]);
        if answer.len() > effort.limits.answer_bytes_max {
            infos.insert("evaluationLimit".into(), Limit::Size.message().into());
        }
        Verdict { infos, ..Verdict::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::exercise::ReadOnce;

    fn case(data: Value) -> Result<Box<dyn Exercise>, CaseError> {
        let Value::Object(data) = data else { panic!() };
        let parameters = Map::new();
        exercise(&CaseInput {
            class: NAME,
            version: VERSION,
            parameters: &parameters,
            data: &data,
            first_prompt: None,
            once: &ReadOnce::default(),
        })
    }

    #[test]
    fn a_case_needs_a_name_and_facts() {
        assert!(case(json!({"facts": [{}]})).is_err());
        assert!(case(json!({"name": "Balira", "facts": []})).is_err());
    }
}
