//! Compares recorded and recomputed values, leaf by leaf.
//!
//! A leaf is a value that is not an object; a list is one leaf. The comparison covers the keys of both sides, so a value
//! that only one side has counts as a difference. Numbers are equal within [`TOLERANCE`], whatever their JSON type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tasks::TaskClass;

use crate::files::exercises::EMPTY_MAP;

/// Maximum difference of two numbers that count as equal.
const TOLERANCE: f64 = 1e-9;

domain::named! {
    /// The part of a record that contains a leaf, by its name in result files.
    pub enum ScoreSection {
        Scores = "scores",
        Info = "info",
    }
}

domain::named! {
    /// Why a leaf is not compared.
    pub enum Incomparable {
        /// The text that the score compares with was never published.
        ReferenceUnpublished = "reference-unpublished",
        /// Both sides report a syntax error, each in the wording of its parser.
        ParserWording = "parser-wording",
        /// Both sides report an evaluation error, each in the wording of its engine.
        EvaluatorWording = "evaluator-wording",
        /// The published run aborted this query after 120 s.
        PublishedTimeout = "published-timeout",
    }
}

/// The result of comparing a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafVerdict {
    Equal,
    Different,
    Incomparable(Incomparable),
}

/// One leaf of both sides.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub(super) section: ScoreSection,
    /// Keys from the root, joined with dots.
    pub(super) path: String,
    pub(super) recorded: Option<&'a Value>,
    pub(super) ours: Option<&'a Value>,
    pub(super) verdict: LeafVerdict,
}

/// The scores and infos of one side.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) scores: &'a Map<String, Value>,
    pub(super) infos: &'a Map<String, Value>,
}

/// Compares scores and infos of a record.
pub(super) fn compare<'a>(class: TaskClass, recorded: Side<'a>, ours: Side<'a>) -> Vec<Leaf<'a>> {
    let mut leaves = Vec::new();
    let context = Context { class, recorded_infos: recorded.infos };
    context.walk(ScoreSection::Scores, &mut Vec::new(), recorded.scores, ours.scores, &mut leaves);
    context.walk(ScoreSection::Info, &mut Vec::new(), recorded.infos, ours.infos, &mut leaves);
    leaves
}

struct Context<'a> {
    class: TaskClass,
    recorded_infos: &'a Map<String, Value>,
}

impl<'a> Context<'a> {
    fn walk(
        &self,
        section: ScoreSection,
        path: &mut Vec<&'a str>,
        recorded: &'a Map<String, Value>,
        ours: &'a Map<String, Value>,
        leaves: &mut Vec<Leaf<'a>>,
    ) {
        let only_ours = ours.keys().filter(|key| !recorded.contains_key(*key));
        for key in recorded.keys().chain(only_ours) {
            path.push(key);
            match (recorded.get(key), ours.get(key)) {
                (Some(Value::Object(left)), Some(Value::Object(right))) => {
                    self.walk(section, path, left, right, leaves);
                }
                (Some(Value::Object(left)), None) => self.walk(section, path, left, &EMPTY_MAP, leaves),
                (None, Some(Value::Object(right))) => self.walk(section, path, &EMPTY_MAP, right, leaves),
                (left, right) => leaves.push(Leaf {
                    section,
                    path: path.join("."),
                    recorded: left,
                    ours: right,
                    verdict: self.judge(section, path, left, right),
                }),
            }
            path.pop();
        }
    }

    fn judge(
        &self,
        section: ScoreSection,
        path: &[&str],
        recorded: Option<&Value>,
        ours: Option<&Value>,
    ) -> LeafVerdict {
        let Some(key) = path.last() else { return LeafVerdict::Different };
        if let Some(reason) = self.incomparable(section, path, key, recorded, ours) {
            return LeafVerdict::Incomparable(reason);
        }
        let equal = match (recorded, ours) {
            (Some(Value::String(left)), Some(Value::String(right))) if *key == "parsableTriples" => {
                unified_lines(left) == unified_lines(right)
            }
            (Some(left), Some(right)) => same(left, right),
            _ => false,
        };
        if equal { LeafVerdict::Equal } else { LeafVerdict::Different }
    }

    fn incomparable(
        &self,
        section: ScoreSection,
        path: &[&str],
        key: &str,
        recorded: Option<&Value>,
        ours: Option<&Value>,
    ) -> Option<Incomparable> {
        if section == ScoreSection::Scores {
            let unpublished = self.class.published.incomparable.contains(&key);
            return unpublished.then_some(Incomparable::ReferenceUnpublished);
        }
        if matches!(key, "answerResultLength" | "answerSetSize" | "answerSet" | "EvaluationException")
            && self.timed_out(path)
        {
            return Some(Incomparable::PublishedTimeout);
        }
        let (Some(Value::String(left)), Some(Value::String(right))) = (recorded, ours) else { return None };
        match key {
            // A message on one side and success on the other remains a difference.
            "parseError" if parse_failed(left) && parse_failed(right) && left != right => {
                Some(Incomparable::ParserWording)
            }
            "parseErrorUnexpected" | "syntaxError" if left != right => Some(Incomparable::ParserWording),
            "EvaluationException" if left != right => Some(Incomparable::EvaluatorWording),
            _ => None,
        }
    }

    /// Whether the published run aborted the query of this path's round.
    fn timed_out(&self, path: &[&str]) -> bool {
        path.first()
            .and_then(|round| self.recorded_infos.get(*round)?.get("EvaluationException")?.as_str())
            .is_some_and(|message| message.contains("time out"))
    }
}

fn parse_failed(message: &str) -> bool {
    message != "The SPARQL query syntax is correct."
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => (left - right).abs() <= TOLERANCE,
            _ => left == right,
        },
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

/// The lines of an N-Triples text as a set, with one label for all blank nodes.
fn unified_lines(text: &str) -> BTreeSet<String> {
    text.lines()
        .map(|line| {
            let words: Vec<&str> =
                line.split(' ').map(|word| if word.starts_with("_:") { "_:b" } else { word }).collect();
            words.join(" ")
        })
        .filter(|line| !line.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(name: &str, version: &str) -> TaskClass {
        TaskClass::resolve(name, version).unwrap()
    }

    fn verdicts(recorded: &Value, ours: &Value, class: TaskClass) -> Vec<(String, LeafVerdict)> {
        let empty = Map::new();
        let side = |value: &Value| value.as_object().unwrap().clone();
        let (recorded, ours) = (side(recorded), side(ours));
        compare(class, Side { scores: &empty, infos: &recorded }, Side { scores: &empty, infos: &ours })
            .into_iter()
            .map(|leaf| (leaf.path, leaf.verdict))
            .collect()
    }

    #[test]
    fn leaves_are_taken_over_the_union_of_keys() {
        let found = verdicts(
            &json!({"0": {"a": 1, "list": [1, 2.0]}, "gone": true}),
            &json!({"0": {"a": 1.0, "list": [1.0, 2]}, "1": {"b": "x"}}),
            class("RdfFriendCount", "4.4"),
        );
        assert_eq!(
            found,
            [
                ("0.a".to_owned(), LeafVerdict::Equal),
                ("0.list".to_owned(), LeafVerdict::Equal),
                ("gone".to_owned(), LeafVerdict::Different),
                ("1.b".to_owned(), LeafVerdict::Different),
            ]
        );
    }

    #[test]
    fn parser_messages_are_compared_by_kind() {
        let ok = "The SPARQL query syntax is correct.";
        let class = class("SparqlSyntaxFixingList", "5.0");
        let of = |left: &str, right: &str| {
            verdicts(&json!({"parseError": left}), &json!({"parseError": right}), class)[0].1
        };
        assert_eq!(of(ok, ok), LeafVerdict::Equal);
        assert_eq!(of(ok, "oops"), LeafVerdict::Different);
        assert_eq!(of("no", "oops"), LeafVerdict::Incomparable(Incomparable::ParserWording));
    }

    #[test]
    fn result_leaves_of_published_time_outs_are_left_out_and_their_scores_are_not() {
        let recorded = json!({"0": {"EvaluationException": "A time out occurred", "answerSet": []}});
        let ours = json!({"0": {"answerSet": ["x"]}});
        let found = verdicts(&recorded, &ours, class("SparqlSyntaxFixingList", "5.0"));
        assert!(
            found
                .iter()
                .all(|(_, verdict)| *verdict == LeafVerdict::Incomparable(Incomparable::PublishedTimeout)),
            "{found:?}"
        );
    }

    #[test]
    fn triples_are_compared_as_sets_without_blank_node_labels() {
        let of = |left: &str, right: &str| {
            verdicts(
                &json!({"parsableTriples": left}),
                &json!({"parsableTriples": right}),
                class("TurtleErrorsStatic", "5.0"),
            )[0]
            .1
        };
        assert_eq!(
            of("_:n1 <p> \"a b\" .\n<s> <p> _:x .\n", "<s> <p> _:0 .\n_:9 <p> \"a b\" ."),
            LeafVerdict::Equal
        );
        assert_eq!(of("<s> <p> <o> .", "<s> <p> <o2> ."), LeafVerdict::Different);
    }
}
