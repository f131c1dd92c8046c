//! Verifies a pack: tests every case with answers of known score.

use std::fmt;

use domain::{PromptKind, TaskLabel};
use serde::Serialize;
use serde_json::Value;
use tasks::{AnswerForm, CaseData, Dialogue, Effort, GraphLibrary, Marks, Repair, Task, TaskData};

use crate::manifest::PackHash;
use crate::pack::Pack;

/// Tolerance for sums of floating-point scores.
const TOLERANCE: f64 = 1e-9;

/// Maximum number of answers that a trial gives in one dialogue.
const ROUNDS_MAX: usize = 16;

/// The result of [`verify`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackReport {
    /// The pack's file.
    pub pack: String,
    /// Its hash. Opening the pack compared all entries with the manifest.
    pub hash: PackHash,
    /// Number of entries, all checked against their SHA-256.
    pub entries: usize,
    /// Tasks tested.
    pub tasks: usize,
    /// Cases tested.
    pub cases: usize,
    /// Single checks that passed.
    pub passed: usize,
    /// Missing answers: imported packs often have no answers of known score; these were not tested.
    pub answers_missing: usize,
    /// Failed checks.
    pub findings: Vec<PackFinding>,
}

impl PackReport {
    /// Whether all checks passed.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// A failed check.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackFinding {
    pub task: TaskLabel,
    /// The case; `None` for the whole task.
    pub case: Option<String>,
    /// A message. It quotes scores and messages, never texts of the pack.
    pub message: String,
}

impl fmt::Display for PackFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.task)?;
        if let Some(case) = &self.case {
            write!(f, "/{case}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Tests every case of a pack:
///
/// * it can be built, and its first prompt and the follow-ups to its answers can be worded;
/// * the reference answer gets full marks in every single score, in its first round;
/// * the wrong answer scores less;
/// * the malformed answer gets the lowest score that the task can give and, if the task has follow-ups, a follow-up
///   about its form;
/// * a document or query to be repaired is refused by the parser, and its repair is accepted.
pub fn verify(pack: &Pack) -> PackReport {
    let mut check = Check { task: TaskLabel::new(""), case: None, report: empty_report(pack) };
    match pack.graphs() {
        Ok(graphs) => {
            let graphs = graphs.build();
            for data in pack.tasks() {
                check.task(pack, data, &graphs);
            }
        }
        Err(error) => check.fail(error.to_string()),
    }
    check.report
}

fn empty_report(pack: &Pack) -> PackReport {
    PackReport {
        pack: pack.name().to_owned(),
        hash: pack.hash().clone(),
        entries: pack.manifest().entries.len(),
        tasks: 0,
        cases: 0,
        passed: 0,
        answers_missing: 0,
        findings: Vec::new(),
    }
}

/// The report in progress, and the current case.
struct Check {
    task: TaskLabel,
    case: Option<String>,
    report: PackReport,
}

impl Check {
    fn fail(&mut self, message: String) {
        self.report.findings.push(PackFinding { task: self.task.clone(), case: self.case.clone(), message });
    }

    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if holds {
            self.report.passed += 1;
        } else {
            self.fail(otherwise());
        }
    }

    fn task(&mut self, pack: &Pack, data: &TaskData, graphs: &GraphLibrary) {
        self.task = data.label.clone();
        self.case = None;
        self.report.tasks += 1;
        let built = pack.build_selected(graphs, |task| task.label == data.label);
        let task = match built.as_deref() {
            Ok([task]) => task,
            Ok(_) => return self.fail("the task cannot be found by its label".to_owned()),
            Err(error) => return self.fail(error.to_string()),
        };
        let effort = Effort::full(pack.header().limits);
        for (index, case) in data.cases.iter().enumerate() {
            self.case = Some(case.uid.clone());
            self.report.cases += 1;
            let unique = data.cases[..index].iter().all(|earlier| earlier.uid != case.uid);
            self.expect(unique, || "another case of the task has the same identifier".to_owned());
            self.answers(task, index, case, &effort);
            self.repair(task, index, case, &effort);
        }
    }

    fn answers(&mut self, task: &Task, index: usize, case: &CaseData, effort: &Effort) {
        let trial = Trial { task, iteration: u32::try_from(index).unwrap_or(u32::MAX), effort };
        let prompt = task.first_prompt(trial.iteration, 0);
        self.expect(prompt.as_ref().is_ok_and(|prompt| !prompt.text.trim().is_empty()), || match prompt {
            Err(error) => format!("the first prompt cannot be worded: {error}"),
            Ok(_) => "the first prompt is empty".to_owned(),
        });
        if task.class.headline.is_empty() {
            // Answers without a score have no known quality.
            return;
        }
        let Marks { full, least } = task.class.marks;
        if let Some(outcome) = self.try_answer(&trial, case.reference_answer.as_deref(), "reference") {
            self.expect((outcome.headline - full).abs() <= TOLERANCE, || {
                format!("the reference answer scores {} instead of {full}", outcome.headline)
            });
            let imperfect = outcome.imperfect.join(", ");
            self.expect(imperfect.is_empty(), || {
                format!("the reference answer is not perfect in {imperfect}")
            });
            self.expect(outcome.first_reply.is_none(), || {
                "the reference answer provokes a follow-up".to_owned()
            });
        }
        if let Some(outcome) = self.try_answer(&trial, case.wrong_answer.as_deref(), "wrong") {
            self.expect((outcome.headline - full).abs() > TOLERANCE, || {
                "the wrong answer scores full marks".to_owned()
            });
        }
        if let Some(outcome) = self.try_answer(&trial, case.malformed_answer.as_deref(), "malformed") {
            self.expect((outcome.headline - least).abs() <= TOLERANCE, || {
                format!("the malformed answer scores {} instead of {least}", outcome.headline)
            });
            if outcome.has_follow_ups {
                let about_form = [PromptKind::Syntax, PromptKind::Structure];
                self.expect(outcome.first_reply.is_some_and(|kind| about_form.contains(&kind)), || {
                    format!("the malformed answer is answered with {:?}", outcome.first_reply)
                });
            }
        }
    }

    fn try_answer(&mut self, trial: &Trial<'_>, answer: Option<&str>, kind: &str) -> Option<TrialOutcome> {
        let Some(answer) = answer else {
            self.report.answers_missing += 1;
            return None;
        };
        match trial.run(answer) {
            Ok(outcome) => Some(outcome),
            Err(message) => {
                self.fail(format!("the {kind} answer: {message}"));
                None
            }
        }
    }

    /// Uses the exercise's own parser, which knows the formats, prefixes and leniency of the task.
    fn repair(&mut self, task: &Task, index: usize, case: &CaseData, effort: &Effort) {
        let Some(Repair { broken, repaired }) = task.class.repair else { return };
        let kind = if task.class.answers == AnswerForm::Query { "query" } else { "document" };
        let built = task.case(u32::try_from(index).unwrap_or(u32::MAX));
        let exercise = built.exercise();
        if let Some(broken) = text(case, broken) {
            self.expect(exercise.complaint(broken, effort).is_some(), || {
                format!("the {kind} to be repaired has no syntax error")
            });
        }
        if let Some(repaired) = text(case, repaired) {
            let complaint = exercise.complaint(repaired, effort);
            self.expect(complaint.is_none(), || {
                format!("the repaired {kind} is refused: {}", complaint.unwrap_or_default())
            });
        }
    }
}

fn text<'c>(case: &'c CaseData, field: &str) -> Option<&'c str> {
    case.data.get(field).and_then(Value::as_str)
}

/// A dialogue with a model that always gives the same answer.
struct Trial<'t> {
    task: &'t Task,
    iteration: u32,
    effort: &'t Effort,
}

struct TrialOutcome {
    headline: f64,
    /// Scores of the last answer below full marks, with their values.
    imperfect: Vec<String>,
    first_reply: Option<PromptKind>,
    has_follow_ups: bool,
}

impl Trial<'_> {
    fn run(&self, answer: &str) -> Result<TrialOutcome, String> {
        let exercise = self.task.case(self.iteration).exercise();
        let mut dialogue = Dialogue::new(exercise.shots());
        let mut first_reply = None;
        for _ in 0..ROUNDS_MAX {
            dialogue.take(exercise.judge(answer, self.effort));
            let reply = self.task.next_prompt(self.iteration, 0, &dialogue);
            match reply.map_err(|error| format!("the reply to it cannot be worded: {error}"))? {
                Some(prompt) => first_reply = first_reply.or(Some(prompt.kind)),
                None => {
                    let evaluation = dialogue.into_evaluation();
                    return Ok(TrialOutcome {
                        headline: headline(self.task, &evaluation.scores)?,
                        imperfect: imperfect(&evaluation.scores),
                        first_reply,
                        has_follow_ups: exercise.shots() != tasks::Shots::Single,
                    });
                }
            }
        }
        Err(format!("the dialogue does not end within {ROUNDS_MAX} answers"))
    }
}

fn headline(task: &Task, scores: &domain::Scores) -> Result<f64, String> {
    let class = task.class;
    class.headline_of(scores).ok_or_else(|| match class.headline {
        [] => "the class has no headline score".to_owned(),
        path => format!("there is no score `{}`", path.join(".")),
    })
}

fn imperfect(scores: &domain::Scores) -> Vec<String> {
    let of_last_answer = scores.get("last").and_then(Value::as_object).unwrap_or(scores);
    let full = |name: &str| if name == "persons_relative_error" { 0.0 } else { 1.0 };
    let is_full =
        |name: &str, value: &Value| value.as_f64().is_some_and(|v| (v - full(name)).abs() <= TOLERANCE);
    of_last_answer
        .iter()
        .filter(|(name, value)| !is_full(name, value))
        .map(|(name, value)| format!("{name} ({value})"))
        .collect()
}
