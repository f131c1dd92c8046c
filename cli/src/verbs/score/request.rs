//! What a line on standard input may hold, and how it is refused.

use domain::Iteration;
use serde::Deserialize;
use serde_json::{Value, json};
use tasks::GivenExercise;
use worker::material::CORE;

/// Most answers of a line: a dialogue has five at most, and a recorded one may have gone on.
const ANSWERS_MAX: usize = 64;

/// What a line asks for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// The tasks of a pack.
    Tasks { pack: String },
    /// The scores of a dialogue; without answers its first prompt.
    Case(CaseRequest),
    /// The scores of an answer beside a reference.
    Given { given: GivenExercise, answer: String, compares: bool },
}

/// A dialogue about a case of a pack.
#[derive(Debug)]
pub(super) struct CaseRequest {
    pub(super) pack: String,
    pub(super) task: String,
    pub(super) place: Place,
    pub(super) answers: Vec<String>,
    /// The seed of the run, on which prompts depend.
    pub(super) seed: u64,
    pub(super) compares: bool,
}

/// Which case is meant.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(super) enum Place {
    /// The case of an iteration, as in a run.
    Iteration(Iteration),
    /// The case of this name.
    Uid(String),
}

/// Why a line gets no scores.
#[derive(Debug)]
pub(super) struct Refusal {
    kind: &'static str,
    message: String,
}

impl Refusal {
    /// The line is not what it must be.
    pub(super) fn of_request(message: impl Into<String>) -> Self {
        Self { kind: "request", message: message.into() }
    }

    /// A pack, a task, a reference or a graph cannot be used.
    pub(super) fn of_material(message: String) -> Self {
        Self { kind: "material", message }
    }

    /// Evaluation failed for a reason that no answer can cause.
    pub(super) fn of_evaluator(message: String) -> Self {
        Self { kind: "evaluator", message }
    }

    pub(super) fn into_line(self) -> Value {
        json!({ "error": { "kind": self.kind, "message": self.message } })
    }
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    tasks: Option<String>,
    #[serde(default)]
    given: Option<GivenExercise>,
    #[serde(default)]
    pack: Option<String>,
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    case: Option<Place>,
    #[serde(default)]
    answers: Vec<String>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    compare: bool,
}

/// Reads a line: what the caller calls it, which is any JSON, and what it asks for or what is wrong with it.
pub(super) fn read(line: &[u8]) -> (Value, Result<Wanted, Refusal>) {
    match serde_json::from_slice::<Line>(line) {
        Ok(mut line) => (std::mem::take(&mut line.id), line.wanted()),
        Err(error) => {
            // Whoever sent it knows by its id which one is meant, if that much can be read.
            let id = serde_json::from_slice::<Value>(line).ok().and_then(|line| line.get("id").cloned());
            let refusal = Refusal::of_request(format!("the line cannot be read: {error}"));
            (id.unwrap_or_default(), Err(refusal))
        }
    }
}

impl Line {
    fn wanted(self) -> Result<Wanted, Refusal> {
        let Self { tasks, given, pack, task, case, mut answers, seed, compare, .. } = self;
        if answers.len() > ANSWERS_MAX {
            let message = format!("a line has {} answers; {ANSWERS_MAX} are the most", answers.len());
            return Err(Refusal::of_request(message));
        }
        match (tasks, given, task) {
            (Some(pack), None, None) => Ok(Wanted::Tasks { pack }),
            (None, Some(given), None) => match (answers.pop(), answers.is_empty()) {
                (Some(answer), true) => Ok(Wanted::Given { given, answer, compares: compare }),
                _ => Err(Refusal::of_request("`given` needs one answer in `answers`")),
            },
            (None, None, Some(task)) => Ok(Wanted::Case(CaseRequest {
                pack: pack.unwrap_or_else(|| CORE.to_owned()),
                task,
                place: case.unwrap_or(Place::Iteration(0)),
                answers,
                seed,
                compares: compare,
            })),
            _ => Err(Refusal::of_request("a line has one of: `task`, `given`, `tasks`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Value, Value) {
        let (id, wanted) = read(line.as_bytes());
        (id, wanted.unwrap_err().into_line()["error"].take())
    }

    #[test]
    fn a_line_that_cannot_be_used_is_refused_under_its_own_name() {
        let wrong = refused(r#"{"id": [7, "a"], "task": "T", "answer": "x"}"#);
        assert_eq!((&wrong.0, &wrong.1["kind"]), (&json!([7, "a"]), &json!("request")));
        assert!(wrong.1["message"].as_str().unwrap().contains("unknown field `answer`"), "{wrong:?}");
        assert_eq!(refused("{\"id\": 1").0, Value::Null);
        assert_eq!(refused(r#"{"id": 2, "tasks": "core", "task": "T"}"#).0, 2);
        let two = r#"{"given": {"kind": "list", "reference": []}, "answers": ["a", "b"]}"#;
        assert!(refused(two).1["message"].as_str().unwrap().contains("one answer"));
        let many = json!({ "task": "T", "answers": vec![""; ANSWERS_MAX + 1] }).to_string();
        assert!(refused(&many).1["message"].as_str().unwrap().contains("64 are the most"));
    }

    #[test]
    fn a_case_is_named_by_its_name_or_by_an_iteration() {
        let place = |line: &str| match read(line.as_bytes()).1.unwrap() {
            Wanted::Case(case) => case.place,
            other => panic!("{other:?}"),
        };
        assert_eq!(place(r#"{"task": "T"}"#), Place::Iteration(0));
        assert_eq!(place(r#"{"task": "T", "case": 12}"#), Place::Iteration(12));
        assert_eq!(place(r#"{"task": "T", "case": "12"}"#), Place::Uid("12".to_owned()));
    }
}
