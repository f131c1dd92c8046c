//! JudgePairSimilarity and JudgePairClass: judges that do not chat, asked about two texts.
//!
//! The prompt is a JSON list of the two texts, and the answer is made by the connector from the model's reply: for an
//! embedder `{"cosine": 0.73}`, for a classifier `{"label": "ENTAILMENT", "probability": 0.98, ...}`. Asking again
//! would bring the same answer, so there is no follow-up: an answer that cannot be read leaves the dialogue unscored.
//!
//! JudgePairSimilarity: score `cosine`, -1 to 1; no parameters. JudgePairClass: parameters `choices`, the classes, and
//! `worth`, the score of each, in the same order; scores `grade` and `probability`; info `choice`, the class as spelled
//! in `choices`. The case of a class name is ignored. A class that is none of `choices` leaves the dialogue unscored.

use domain::{Ask, Infos, Scores};
use serde::Deserialize;
use serde_json::Value;

use crate::class::{AnswerForm, ClassSpec, Marks};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;

/// Name of the class of JudgePairSimilarity in packs.
pub const SIMILARITY: &str = "JudgePairSimilarity";

/// Name of the class of JudgePairClass in packs.
pub const CLASS: &str = "JudgePairClass";

/// Their version.
pub const VERSION: &str = "1.0";

/// The placeholder of the first prompt, which is all of it.
pub const PAIR: &str = "pair";

/// Two texts as they stand in the prompt.
pub fn pair(left: &str, right: &str) -> String {
    serde_json::json!([left, right]).to_string()
}

const SIMILARITIES: ClassSpec = ClassSpec {
    // Texts that have nothing in common may have a cosine below 0.
    marks: Marks { full: 1.0, least: -1.0 },
    wider: &[("cosine", -1.0..=1.0)],
    asks: Ask::Embed,
    judges: true,
    ..ClassSpec::new(&[(SIMILARITY, &[VERSION])], &["cosine"], AnswerForm::Text, |_, _, _| {
        Ok(Box::new(Similarity))
    })
};

const OF_CLASSES: ClassSpec = ClassSpec {
    names: &[(CLASS, &[VERSION])],
    headline: &["grade"],
    marks: Marks::UNIT,
    // A task says what each class is worth.
    wider: &[("grade", f64::NEG_INFINITY..=f64::INFINITY)],
    asks: Ask::Classify,
    exercise: |input, _, _| classes(input),
    ..SIMILARITIES
};

/// Both classes.
pub(crate) const CLASSES: [ClassSpec; 2] = [SIMILARITIES, OF_CLASSES];

struct Similarity;

struct Classes {
    /// The classes as spelled in the task, with their scores.
    choices: Vec<(String, Value)>,
}

fn classes(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let (choices, worth) = case_fields::choices(input.parameters)?;
    Ok(Box::new(Classes { choices: choices.into_iter().zip(worth).collect() }))
}

#[derive(Deserialize)]
struct Cosine {
    cosine: f64,
}

#[derive(Deserialize)]
struct Class {
    label: String,
    probability: f64,
}

fn unscored(message: String) -> Verdict {
    Verdict { unscored: Some(message), ..Verdict::default() }
}

/// Parses the answer as JSON; the error says why it cannot be read, or that it is longer than answers may be.
fn read<'a, T: Deserialize<'a>>(answer: &'a str, effort: &Effort) -> Result<T, String> {
    if answer.len() > effort.limits.answer_bytes_max {
        return Err("the answer is too long".to_owned());
    }
    serde_json::from_str(answer).map_err(|error| format!("the answer is none of this judge: {error}"))
}

impl Exercise for Similarity {
    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        match read::<Cosine>(answer, effort) {
            Ok(Cosine { cosine }) if (-1.0..=1.0).contains(&cosine) => Verdict {
                scores: Scores::from_iter([("cosine".to_owned(), cosine.into())]),
                ..Verdict::default()
            },
            Ok(Cosine { cosine }) => unscored(format!("{cosine} is no cosine")),
            Err(reason) => unscored(reason),
        }
    }
}

impl Exercise for Classes {
    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let Class { label, probability } = match read(answer, effort) {
            Ok(class) => class,
            Err(reason) => return unscored(reason),
        };
        let Some((choice, worth)) = self.known(&label) else {
            return unscored(format!("the class `{label}` is none of {}", self.names()));
        };
        Verdict {
            scores: Scores::from_iter([
                ("grade".to_owned(), worth.clone()),
                ("probability".to_owned(), probability.into()),
            ]),
            infos: Infos::from_iter([("choice".to_owned(), choice.clone().into())]),
            ..Verdict::default()
        }
    }

    fn compared(&self, answer: &str, _infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let read = read::<Class>(answer, effort).ok();
        let found = read.and_then(|class| self.known(&class.label)).map(|(choice, _)| choice.clone());
        vec![ComparedPart::new("class", Some(format!("one of {}", self.names())), found)]
    }
}

impl Classes {
    /// The class of a name, in any case, with its score.
    fn known(&self, label: &str) -> Option<&(String, Value)> {
        self.choices.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(label))
    }

    /// The names of all classes.
    fn names(&self) -> String {
        let names: Vec<&str> = self.choices.iter().map(|(choice, _)| choice.as_str()).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case(class: &str) -> Box<dyn Exercise> {
        let parameters =
            json!({"choices": ["entailment", "neutral", "contradiction"], "worth": [1.0, 0.5, 0.0]});
        let Value::Object(parameters) = parameters else { panic!() };
        let data = Map::new();
        let input = CaseInput {
            class,
            version: VERSION,
            parameters: &parameters,
            data: &data,
            first_prompt: None,
            once: &ReadOnce::default(),
        };
        let case =
            crate::families::exercise(&input, &crate::GraphLibrary::default(), crate::Compat::default());
        case.unwrap()
    }

    fn judge(class: &str, answer: &str) -> Verdict {
        case(class).judge(answer, &Effort::full(EvaluationLimits::default()))
    }

    #[test]
    fn the_classes_are_shown_beside_the_one_that_was_found() {
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |answer: &str| case(CLASS).compared(answer, &Infos::new(), &effort).remove(0);
        let part = shown(r#"{"label": "NEUTRAL", "probability": 0.9}"#);
        assert_eq!(part.expected.as_deref(), Some("one of entailment, neutral, contradiction"));
        assert_eq!(part.extracted.as_deref(), Some("neutral"));
        assert_eq!(shown("neutral").extracted, None);
        assert!(case(SIMILARITY).compared(r#"{"cosine": 0.2}"#, &Infos::new(), &effort).is_empty());
    }

    #[test]
    fn cosines_and_classes_are_read_and_anything_else_has_no_score() {
        assert_eq!(judge(SIMILARITY, r#"{"cosine": 0.25}"#).scores["cosine"], json!(0.25));
        let verdict = judge(CLASS, r#"{"label": "NEUTRAL", "probability": 0.9, "classes": []}"#);
        assert_eq!(
            (verdict.scores["grade"].clone(), verdict.scores["probability"].clone()),
            (json!(0.5), json!(0.9))
        );
        assert_eq!(verdict.infos["choice"], json!("neutral"));
        for (class, answer) in [
            (SIMILARITY, ""),
            (SIMILARITY, r#"{"cosine": 1.5}"#),
            (SIMILARITY, r#"{"label": "NEUTRAL", "probability": 0.9}"#),
            (CLASS, r#"{"label": "LABEL_1", "probability": 0.9}"#),
            (CLASS, "entailment"),
        ] {
            let verdict = judge(class, answer);
            assert!(verdict.unscored.is_some() && verdict.scores.is_empty(), "{class} {answer}: {verdict:?}");
            assert!(verdict.follow_up.is_none());
        }
    }

    #[test]
    fn worth_belongs_to_choices() {
        let input = |parameters: Value| {
            let Value::Object(parameters) = parameters else { panic!() };
            let data = Map::new();
            let (class, version) = (CLASS, VERSION);
            classes(&CaseInput {
                class,
                version,
                parameters: &parameters,
                data: &data,
                first_prompt: None,
                once: &ReadOnce::default(),
            })
            .is_err()
        };
        assert!(input(json!({})) && input(json!({"choices": ["a"], "worth": []})));
    }
}
