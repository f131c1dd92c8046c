//! RdfFriendCount: name the person known by most others (LLM-KG-Bench 3, Meyer et al., ESWC 2025; the class is
//! called TurtleFriendCount in earlier releases).
//!
//! The graph is generated (`people`) and shown in one of four syntaxes (`serialize`). An answer should be the
//! IRI of the special person and nothing else:
//!
//! - `recall`: 1 if the special person's local name occurs anywhere in the answer, else 0.
//! - `precision`: 1 over the number of persons mentioned, each mention counted; 0 on a miss.
//! - `f1`: their harmonic mean.
//! - `brevity`: length of the IRI in angle brackets over the length of the answer, at most 1.
//! - `noSpecialFriends`: 1 minus the share of the *special friends* that are named. Their extra edges make the special
//!   person special: naming them is the typical mistake of reading edges backwards.
//!
//! Fields, in the case or else among the task's parameters: `knowsCount` (default 2), `specialIndex` (default 3),
//! `specialAddKnowsCount` (default 3 in TurtleFriendCount, whose records have no parameters), `graphFormat` (default
//! `turtle`) and the number of persons `n`. Without `n` it is that of the recorded first prompt, or else follows from
//! `size`: `size` / 100 - 4. The case may list its `specialFriends` (local names).
//!
//! Placeholder of the first prompt: `{{graph}}`, with the order of subjects (JSON-LD, RDF/XML) or statements
//! (N-Triples) drawn from the question seed.

use std::collections::BTreeSet;

use domain::{Infos, Scores};
use regex::{Captures, Regex};
use serde_json::Value;

use crate::class::{AnswerForm, ClassSpec};
use crate::compared::{ComparedPart, lines_of};
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, Verdict};
use crate::families::case_fields;
use crate::text::python::WORD;
use crate::wording::Fields;

mod people;
mod serialize;

use people::{People, iri, local_name};
use serialize::GraphText;

/// One graph and its special person.
struct FriendCount {
    people: People,
    shown: GraphText,
    /// Length of the graph in the prompt, the same for every order.
    graph_chars: usize,
    triples: usize,
    special_iri: String,
    special_name: String,
    special_friends: Vec<String>,
    /// A person anywhere in the text; group 1 is the number without leading zeros.
    mention: Regex,
}

/// Find the person known by most others.
pub(crate) const CLASS: ClassSpec = ClassSpec::new(
    &[("RdfFriendCount", &["4.4"]), ("TurtleFriendCount", &["2.0", "3.1"])],
    &["f1"],
    AnswerForm::Text,
    |input, _, _| exercise(input),
);

/// Reads a case.
fn exercise(input: &CaseInput<'_>) -> Result<Box<dyn Exercise>, CaseError> {
    let number = |field| case_fields::count_or_parameter(input, field);
    let added = match number("specialAddKnowsCount")? {
        None if input.class == "TurtleFriendCount" => 3,
        None => {
            return Err(CaseError::Field { field: "specialAddKnowsCount", expected: "whole number" });
        }
        Some(added) => added,
    };
    let people = People::new(
        person_count(input)?,
        number("knowsCount")?.unwrap_or(2),
        number("specialIndex")?.unwrap_or(3),
        added,
    )?;
    let shown = GraphText::of(&people, case_fields::graph_format(input)?);
    let mention = Regex::new(&format!("person-0*({WORD}*)"))
        .map_err(|_| CaseError::Field { field: "n", expected: "usable pattern" })?;
    Ok(Box::new(FriendCount {
        graph_chars: shown.text(0).chars().count(),
        shown,
        triples: people.triple_count(),
        special_iri: iri(people.special()),
        special_name: local_name(people.special()),
        special_friends: special_friend_names(input, &people)?,
        people,
        mention,
    }))
}

/// Number of persons: from the case, the recorded prompt or the size.
fn person_count(input: &CaseInput<'_>) -> Result<usize, CaseError> {
    let missing =
        CaseError::Field { field: "n", expected: "number of persons, or a parameter `size` of 500 or more," };
    if let Some(count) = case_fields::count_or_parameter(input, "n")? {
        return Ok(count);
    }
    if let (Some(prompt), Ok(person)) = (input.first_prompt, Regex::new("person-[0-9a-f]{8}")) {
        return Ok(person.find_iter(prompt).map(|person| person.as_str()).collect::<BTreeSet<_>>().len());
    }
    let size = case_fields::count_or_parameter(input, "size")?.ok_or_else(|| missing.clone())?;
    (size / 100).checked_sub(4).ok_or(missing)
}

/// Local names of the special friends. TurtleFriendCount numbered those beyond the last person as if the circle never
/// closed, so it never found them.
fn special_friend_names(input: &CaseInput<'_>, people: &People) -> Result<Vec<String>, CaseError> {
    if input.data.contains_key("specialFriends") {
        return case_fields::texts(input.data, "specialFriends");
    }
    let closed = input.class != "TurtleFriendCount";
    let place = |friend| if closed { friend % people.count() } else { friend };
    Ok(people.special_friends().map(|friend| local_name(place(friend))).collect())
}

impl Exercise for FriendCount {
    fn opening(&self, question_seed: u64) -> Fields {
        Fields::from([("graph".to_owned(), self.shown.text(question_seed))])
    }

    fn judge(&self, answer: &str, _effort: &Effort) -> Verdict {
        let mentioned: Vec<&str> = self.mentioned(answer).into_iter().map(|(_, number)| number).collect();
        let friends_named =
            self.special_friends.iter().filter(|friend| answer.contains(friend.as_str())).count();
        let no_special_friends = match self.special_friends.len() {
            0 => 1.0,
            friends => 1.0 - friends_named as f64 / friends as f64,
        };
        // In published records, constants are integers and results of a division floating-point numbers.
        let zero = || Value::from(0);
        let (recall, precision, f1) = if answer.contains(&self.special_name) {
            let precision = 1.0 / mentioned.len() as f64;
            (1, precision.into(), (2.0 * precision / (precision + 1.0)).into())
        } else {
            (0, zero(), zero())
        };
        let brief = self.special_iri.chars().count() + "<>".len();
        let length = answer.chars().count();
        let brevity = if length <= brief { 1.into() } else { (brief as f64 / length as f64).into() };

        let mut scores = Scores::new();
        scores.insert("recall".into(), recall.into());
        scores.insert("brevity".into(), brevity);
        scores.insert("precision".into(), precision);
        scores.insert("f1".into(), f1);
        scores.insert("noSpecialFriends".into(), no_special_friends.into());

        let mut infos = Infos::new();
        infos.insert("persons".into(), self.people.count().into());
        infos.insert("triples".into(), self.triples.into());
        infos.insert("graphSizeChar".into(), self.graph_chars.into());
        infos.insert("specialNode".into(), self.special_iri.as_str().into());
        infos.insert("answerPersonCount".into(), mentioned.len().into());
        infos.insert("specialFriendsInAnswer".into(), friends_named.into());
        infos.insert("personsInAnswer".into(), mentioned.into());
        Verdict { scores, infos, follow_up: None, unscored: None }
    }

    fn compared(&self, answer: &str, _infos: &Infos, _effort: &Effort) -> Vec<ComparedPart> {
        let mentioned = self.mentioned(answer).into_iter().map(|(person, _)| person);
        vec![ComparedPart::new("person", Some(self.special_name.clone()), lines_of(mentioned)).by_line()]
    }
}

impl FriendCount {
    /// The persons that a text mentions: as they are written, and their numbers without leading zeros.
    fn mentioned<'a>(&self, answer: &'a str) -> Vec<(&'a str, &'a str)> {
        let both = |mention: Captures<'a>| Some((mention.get(0)?.as_str(), mention.get(1)?.as_str()));
        self.mention.captures_iter(answer).filter_map(both).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::exercise::{EvaluationLimits, ReadOnce};

    fn case(class: &str, parameters: &Value, prompt: Option<&str>) -> Result<Box<dyn Exercise>, CaseError> {
        exercise(&CaseInput {
            class,
            version: if class == "RdfFriendCount" { "4.4" } else { "2.0" },
            parameters: parameters.as_object().unwrap(),
            data: &Map::new(),
            first_prompt: prompt,
            once: &ReadOnce::default(),
        })
    }

    #[test]
    fn the_special_person_is_shown_beside_the_persons_mentioned() {
        let parameters = json!({"size": "1000", "specialAddKnowsCount": 2});
        let case = case("RdfFriendCount", &parameters, None).unwrap();
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |answer: &str| case.compared(answer, &Infos::new(), &effort).remove(0);
        let part = shown("Known by person-00000001: **person-004**");
        assert_eq!(part.expected.as_deref(), Some("person-00000004"));
        assert_eq!(part.extracted.as_deref(), Some("person-00000001\nperson-004"));
        assert_eq!(shown("Nobody.").extracted, None);
    }

    #[test]
    fn the_number_of_persons_may_stand_in_the_prompt_only() {
        let graph = GraphText::of(&People::new(16, 2, 3, 3).unwrap(), rdf::RdfFormat::Turtle).text(0);
        let exercise = case("TurtleFriendCount", &json!({}), Some(&format!("Who?\n\n{graph}"))).unwrap();
        let infos = exercise.judge("", &Effort::full(EvaluationLimits::default())).infos;
        assert_eq!(infos["persons"], 16);
        assert_eq!(infos["graphSizeChar"], graph.len());
    }

    #[test]
    fn parameters_that_make_no_question_are_refused() {
        assert!(case("RdfFriendCount", &json!({"size": 1000}), None).is_err(), "no specialAddKnowsCount");
        for parameters in [
            json!({"specialAddKnowsCount": 1}),
            json!({"specialAddKnowsCount": 1, "size": 300}),
            json!({"specialAddKnowsCount": 1, "n": 5}),
            json!({"specialAddKnowsCount": 4, "n": 6}),
            json!({"specialAddKnowsCount": 1, "n": 6, "specialIndex": 6}),
            json!({"specialAddKnowsCount": 1, "n": 100_000_000}),
            json!({"specialAddKnowsCount": 1, "n": 6, "graphFormat": "n3"}),
        ] {
            assert!(case("RdfFriendCount", &parameters, None).is_err(), "{parameters}");
        }
    }
}
