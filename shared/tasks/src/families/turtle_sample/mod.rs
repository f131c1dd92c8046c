//! TurtleSampleGeneration: generate a graph of persons of a given size (Meyer et al., "Benchmarking the Abilities of
//! Large Language Models for RDF Knowledge Graph Creation and Comprehension", 2023; taskId SyntheticDatasetGeneration
//! in published records).
//!
//! A prompt asks for `n` persons, each of whom knows at least `minFriends` and at most `maxFriends` others. As much of the
//! answer as possible is read as Turtle ([`rdf::tolerant`]):
//!
//! - `parsable`: always 1.0, because it was determined after the repair; it carries no information.
//! - `persons_relative_error`: (persons - n) / n, where persons are the subjects of type foaf:Person. 0 is best, -1
//!   is nothing, above 0 too many.
//! - `min_friends_ok`, `max_friends_ok`: 1 if the smallest and the largest number of friends are within the bounds.
//!   Persons without friends are ignored; if nobody has friends, the numbers are 0 and n.
//!
//! Fields, in the case or else among the task's parameters: `n`, `minFriends` (default 2), `maxFriends` (default
//! n - 1). Without `n`, all three are the first numbers of the recorded prompt, or else follow from `size`: n is
//! `size` / 100.
//!
//! Placeholders of the first prompt: `{{n}}`, `{{minFriends}}` and `{{maxFriends}}`.

use std::collections::{HashMap, HashSet};

use domain::{Infos, Scores};
use rdf::{Graph, NamedOrBlankNode, Term};

use crate::class::{AnswerForm, ClassSpec, Marks};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;
use crate::families::readable_turtle;
use crate::wording::Fields;

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const PERSON: &str = "http://xmlns.com/foaf/0.1/Person";
const KNOWS: &str = "http://xmlns.com/foaf/0.1/knows";

/// The requested numbers.
struct TurtleSample {
    persons: usize,
    friends_min: usize,
    friends_max: usize,
    /// Whether the infos contain the bounds and the numbers found. Records of the old name contain only `n_persons`.
    full_infos: bool,
}

/// Generate a graph of persons of a given size. The headline is a relative error: -1 is "nothing found".
pub(crate) const CLASS: ClassSpec = ClassSpec {
    marks: Marks { full: 0.0, least: -1.0 },
    wider: &[("persons_relative_error", -1.0..=f64::INFINITY)],
    ..ClassSpec::new(
        &[("TurtleSampleGeneration", &["1.0"]), ("SyntheticDatasetGeneration", &["1.0"])],
        &["persons_relative_error"],
        AnswerForm::Document,
        |input, _, _| exercise(input),
    )
};

/// Reads a case.
fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let number = |field| case_fields::count_or_parameter(input, field);
    let recorded = match (number("n")?, input.first_prompt) {
        (None, Some(prompt)) => first_numbers(prompt),
        _ => None,
    };
    let (persons, friends_min, friends_max) = match recorded {
        Some([persons, min, max]) => (persons, min, max),
        None => {
            let persons = match (number("n")?, number("size")?) {
                (Some(persons), _) => persons,
                (None, Some(size)) => size / 100,
                (None, None) => 0,
            };
            let max = number("maxFriends")?.unwrap_or(persons.saturating_sub(1));
            (persons, number("minFriends")?.unwrap_or(2), max)
        }
    };
    if persons == 0 {
        let expected = "number of persons, or a parameter `size` of 100 or more,";
        return Err(CaseError::Field { field: "n", expected });
    }
    let full_infos = input.class != "SyntheticDatasetGeneration";
    Ok(Box::new(TurtleSample { persons, friends_min, friends_max, full_infos }))
}

/// The first three numbers of a text.
fn first_numbers(text: &str) -> Option<[usize; 3]> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

impl Exercise for TurtleSample {
    fn opening(&self, _question_seed: u64) -> Fields {
        Fields::from(
            [("n", self.persons), ("minFriends", self.friends_min), ("maxFriends", self.friends_max)]
                .map(|(name, number)| (name.to_owned(), number.to_string())),
        )
    }

    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let readable = readable_turtle::read(answer, effort);
        let found = PersonsOfGraph::of(&readable.graph);
        let (fewest, most) = found.fewest_and_most(self.persons);

        let mut scores = Scores::new();
        scores.insert("parsable".into(), 1.0.into());
        let error = (found.persons as f64 - self.persons as f64) / self.persons as f64;
        scores.insert("persons_relative_error".into(), error.into());
        scores.insert("min_friends_ok".into(), u8::from(fewest >= self.friends_min).into());
        scores.insert("max_friends_ok".into(), u8::from(most <= self.friends_max).into());

        let mut infos = Infos::new();
        infos.insert("n_persons".into(), self.persons.into());
        if self.full_infos {
            infos.insert("expected_min".into(), self.friends_min.into());
            infos.insert("expected_max".into(), self.friends_max.into());
            infos.insert("actual_min".into(), fewest.into());
            infos.insert("actual_max".into(), most.into());
        }
        if let Some(limit) = readable.limit {
            infos.insert("evaluationLimit".into(), limit.message().into());
        }
        Verdict { scores, infos, follow_up: None, unscored: None }
    }

    fn compared(&self, answer: &str, _infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let numbers = |persons: usize, friends: Option<(usize, usize)>| match friends {
            Some((fewest, most)) => format!("persons: {persons}\nfriends of each: {fewest} to {most}"),
            None => format!("persons: {persons}\nfriends of each: 0"),
        };
        let readable = readable_turtle::read(answer, effort);
        let found = PersonsOfGraph::of(&readable.graph);
        let friends = (!found.friends.is_empty()).then(|| found.fewest_and_most(self.persons));
        let extracted = (found.persons > 0).then(|| numbers(found.persons, friends));
        let expected = numbers(self.persons, Some((self.friends_min, self.friends_max)));
        vec![ComparedPart::new("numbers", Some(expected), extracted)]
    }
}

/// The persons found in a graph.
struct PersonsOfGraph<'a> {
    persons: usize,
    /// Number of friends, of persons who have any.
    friends: HashMap<&'a NamedOrBlankNode, usize>,
}

impl<'a> PersonsOfGraph<'a> {
    fn of(graph: &'a Graph) -> Self {
        let is_person = |object: &Term| matches!(object, Term::NamedNode(class) if class.as_str() == PERSON);
        let persons: HashSet<&NamedOrBlankNode> = graph
            .iter()
            .filter(|triple| triple.predicate.as_str() == TYPE && is_person(&triple.object))
            .map(|triple| &triple.subject)
            .collect();
        let mut friends = HashMap::new();
        for triple in graph.iter() {
            if triple.predicate.as_str() == KNOWS && persons.contains(&triple.subject) {
                *friends.entry(&triple.subject).or_insert(0) += 1;
            }
        }
        Self { persons: persons.len(), friends }
    }

    /// The smallest and the largest number of friends; 0 and `persons_asked` if nobody has friends.
    fn fewest_and_most(&self, persons_asked: usize) -> (usize, usize) {
        let numbers = || self.friends.values().copied();
        (numbers().min().unwrap_or(0), numbers().max().unwrap_or(persons_asked))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case(parameters: &Value, prompt: Option<&str>) -> Result<Box<dyn Exercise>, CaseError> {
        exercise(&CaseInput {
            class: "TurtleSampleGeneration",
            version: "1.0",
            parameters: parameters.as_object().unwrap(),
            data: &Map::new(),
            first_prompt: prompt,
            once: &ReadOnce::default(),
        })
    }

    const HEAD: &str = "@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix : <http://example.org/> .\n";

    #[test]
    fn the_numbers_asked_for_are_shown_beside_those_found() {
        let exercise = case(&json!({"n": 4, "minFriends": 2}), None).unwrap();
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |answer: &str| exercise.compared(answer, &Infos::new(), &effort).remove(0);
        let part = shown(&format!("{HEAD}:a a foaf:Person ; foaf:knows :b .\n:b a foaf:Person ."));
        assert_eq!(part.expected.as_deref(), Some("persons: 4\nfriends of each: 2 to 3"));
        assert_eq!(part.extracted.as_deref(), Some("persons: 2\nfriends of each: 1 to 1"));
        assert_eq!(
            shown(&format!("{HEAD}:a a foaf:Person .")).extracted.as_deref(),
            Some("persons: 1\nfriends of each: 0")
        );
        assert_eq!(shown("Sorry.").extracted, None);
    }

    #[test]
    fn numbers_come_from_the_case_the_prompt_or_the_size() {
        let numbers = |parameters: &Value, prompt| {
            let fields = case(parameters, prompt).unwrap().opening(0);
            ["n", "minFriends", "maxFriends"].map(|name| fields[name].clone())
        };
        assert_eq!(numbers(&json!({}), Some("Make 30 of them, 1 to 7 friends, 99")), ["30", "1", "7"]);
        assert_eq!(numbers(&json!({"size": "2000"}), None), ["20", "2", "19"]);
        assert!(case(&json!({"size": 50}), None).is_err());
        assert!(case(&json!({}), None).is_err());
    }
}
