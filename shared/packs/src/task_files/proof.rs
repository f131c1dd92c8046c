//! Proves a compiled file by judging answers of known score: reference answers must score 1, unreadable ones 0, and the answers
//! that the file states as tests what it says. It also gives each case a wrong and an unreadable answer, with which others can
//! verify the pack. No model is asked.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Pack, PackError};
use serde_json::Value;
use tasks::families::declared::spec::{AnswerReading, AnswerRule, CheckRule, DeclaredSpec};
use tasks::{Effort, Exercise, Task, TaskData};

use crate::task_files::answer_form::{body_of, in_form};
use crate::task_files::compiled_task::CompiledTask;
use crate::task_files::mutants;

/// How far a score may lie from the stated one.
const TOLERANCE: f64 = 5e-7;

/// The same of a score that a file states, which people write with three digits.
const STATED_TOLERANCE: f64 = 5e-4;

/// Most mutants of a task that are judged.
const MUTANTS_MAX: usize = 1_000;

/// Most mutants that a note names.
const MUTANTS_NAMED_MAX: usize = 8;

/// What was proven of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    pub label: String,
    pub cases: usize,
    /// Cases whose reference answer is known and scores 1.
    pub references: usize,
    pub tests_passed: usize,
    pub tests: usize,
    /// Reference answers with one part less that were judged.
    pub mutants: usize,
    /// Those of them that still score 1.
    pub mutants_right: usize,
    /// The longest prompt, in characters.
    pub prompt_chars: usize,
    /// What failed: with the line in the file where one is known.
    pub failures: Vec<(Option<usize>, String)>,
    /// What the author may want to know.
    pub notes: Vec<String>,
}

/// An answer that cannot be read.
fn malformed(rule: &AnswerRule) -> &'static str {
    match rule.read_as {
        // A list has to have a letter or a digit to be one.
        AnswerReading::Text | AnswerReading::List => "...",
        AnswerReading::Xml => "<I do not know.",
        _ => "I do not know.",
    }
}

/// Bodies that are hardly ever right, tried in this order.
fn unlikely(rule: &AnswerRule) -> &'static [&'static str] {
    match rule.read_as {
        AnswerReading::Sparql => &[
            "SELECT ?s WHERE { ?s ?p ?o }",
            "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }",
            "ASK { FILTER(false) }",
        ],
        AnswerReading::Number => &["0", "-1", "123456789"],
        AnswerReading::Turtle | AnswerReading::Nt => {
            &["<http://example.org/nothing> <http://example.org/of> <http://example.org/this> ."]
        }
        AnswerReading::JsonLd => {
            &["{}", "{\"@id\": \"http://example.org/nothing\", \"http://example.org/of\": \"this\"}"]
        }
        AnswerReading::Xml => &["<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>"],
        AnswerReading::Shapes => &["[] a <http://www.w3.org/ns/shacl#NodeShape> ."],
        AnswerReading::Json => &["[\"nothing of this\"]", "[{\"nothing\": \"of this\"}]", "{}"],
        AnswerReading::Text | AnswerReading::List => &["nothing of this", "no", "yes"],
    }
}

/// Gives each case its answers of known score: a wrong one from the other cases or the tests, an unreadable one.
pub(crate) fn complete(compiled: &mut CompiledTask, pack: &Pack) -> Result<(), PackError> {
    let task = built(pack, &compiled.data)?;
    let Some(spec) = spec(&compiled.data) else { return Ok(()) };
    let effort = Effort::full(pack.header().limits);
    let references: Vec<String> =
        compiled.data.cases.iter().filter_map(|case| case.reference_answer.clone()).collect();
    for (number, case) in compiled.data.cases.iter_mut().enumerate() {
        let case = Arc::make_mut(case);
        let exercise = task.cases()[number].exercise();
        let score = |answer: &str| score_of(&**exercise, answer, &effort, "score");
        let of_tests = || compiled.tests.iter().filter(|test| test.case == case.uid);
        if case.reference_answer.as_deref().is_none_or(|reference| score(reference) < 1.0) {
            let right = of_tests().find(|test| score(&test.answer) >= 1.0);
            case.reference_answer = right.map(|test| test.answer.clone()).or(case.reference_answer.take());
        }
        let in_form =
            unlikely(&spec.answer).iter().map(|body| in_form(body, &spec.answer)).collect::<Vec<_>>();
        let of_others = references.iter().cycle().skip(number + 1).take(references.len().min(8));
        let tests = of_tests().map(|test| &test.answer);
        let mut wrong = tests.chain(of_others).chain(&in_form);
        case.wrong_answer = wrong.find(|answer| score(answer) < 1.0).cloned();
        case.malformed_answer = Some(malformed(&spec.answer).to_owned());
    }
    Ok(())
}

fn spec(data: &TaskData) -> Option<DeclaredSpec> {
    serde_json::from_value(Value::Object(data.parameters.clone())).ok()
}

fn built(pack: &Pack, data: &TaskData) -> Result<Task, PackError> {
    let mut tasks = pack.build_selected(&pack.graphs()?.build(), |task| task.label == data.label)?;
    tasks.pop().ok_or_else(|| PackError::MissingEntry {
        pack: pack.name().to_owned(),
        entry: data.label.to_string(),
    })
}

fn score_of(exercise: &dyn Exercise, answer: &str, effort: &Effort, name: &str) -> f64 {
    exercise.judge(answer, effort).scores.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Proves the cases of a task of the compiled pack.
pub(crate) fn prove(compiled: &CompiledTask, pack: &Pack) -> Result<Proof, PackError> {
    let task = built(pack, &compiled.data)?;
    let effort = Effort::full(pack.header().limits);
    let mut proof = Proof {
        label: compiled.data.label.to_string(),
        cases: compiled.data.cases.len(),
        tests: compiled.tests.len(),
        ..Proof::default()
    };
    for (number, case) in compiled.data.cases.iter().enumerate() {
        let exercise = task.cases()[number].exercise();
        let prompt = case.prompt.get("prompt").and_then(Value::as_str).unwrap_or_default();
        proof.prompt_chars = proof.prompt_chars.max(prompt.chars().count());
        let score = |answer: &str| score_of(&**exercise, answer, &effort, "score");
        let mut fail =
            |message: String| proof.failures.push((None, format!("case `{}`: {message}", case.uid)));
        match case.reference_answer.as_deref().map(score) {
            Some(score) if (score - 1.0).abs() <= TOLERANCE => proof.references += 1,
            Some(score) => fail(format!("the reference scores {score}")),
            None => {}
        }
        if case.malformed_answer.as_deref().is_some_and(|answer| score(answer) > 0.0) {
            fail("an answer that cannot be read scores more than 0".to_owned());
        }
    }
    for test in &compiled.tests {
        let number = compiled.data.cases.iter().position(|case| case.uid == test.case);
        let Some(number) = number else { continue };
        let scores = task.cases()[number].exercise().judge(&test.answer, &effort).scores;
        let off = test.scores.iter().find(|(name, stated)| {
            scores
                .get(name)
                .and_then(Value::as_f64)
                .is_none_or(|found| (found - stated).abs() > STATED_TOLERANCE)
        });
        match off {
            None => proof.tests_passed += 1,
            Some((name, stated)) => {
                let found = scores.get(name).map_or_else(|| "none".to_owned(), Value::to_string);
                let all: Vec<String> =
                    scores.iter().map(|(name, value)| format!("`{name}` {value}")).collect();
                let message =
                    format!("test {} has `{name}` {found}, not {stated} ({})", test.number, all.join(", "));
                proof.failures.push((Some(test.line), message));
            }
        }
    }
    notes(compiled, &mut proof);
    if let Some(spec) = spec(&compiled.data) {
        note_idle_shapes(compiled, &spec, &task, &effort, &mut proof);
        mutate(compiled, &spec, &task, &effort, &mut proof);
    }
    Ok(proof)
}

/// Notes what makes a task tell less about models than it seems to.
fn notes(compiled: &CompiledTask, proof: &mut Proof) {
    let cases = &compiled.data.cases;
    let expected =
        |case: &Arc<tasks::CaseData>| case.data.get("expected").map(Value::to_string).unwrap_or_default();
    let mut prompts: Vec<(&str, String, &str)> = cases
        .iter()
        .map(|case| {
            let prompt = case.prompt.get("prompt").and_then(Value::as_str).unwrap_or_default();
            (prompt, expected(case), case.uid.as_str())
        })
        .collect();
    // A stable sort keeps the order of the file among equal prompts.
    prompts.sort_by_key(|(prompt, ..)| *prompt);
    for pair in prompts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let (left, right) = (pair[0].2, pair[1].2);
        match pair[0].1 == pair[1].1 {
            true => proof.notes.push(format!("cases `{left}` and `{right}` are the same")),
            false => proof.failures.push((
                None,
                format!("cases `{left}` and `{right}` have the same prompt and expect different things"),
            )),
        }
    }
    let all: Vec<String> = cases.iter().map(expected).collect();
    let distinct: HashSet<&String> = all.iter().collect();
    let most = distinct.iter().map(|one| (all.iter().filter(|other| other == one).count(), *one)).max();
    if let Some((most, _)) = most.filter(|(most, _)| all.len() > 4 && most * 10 >= all.len() * 8) {
        proof.notes.push(format!(
            "{most} of {} cases expect the same: whoever always says it is nearly always right",
            all.len()
        ));
    }
    let unknown = proof.cases - proof.references;
    if unknown > 0 && proof.failures.is_empty() {
        proof.notes.push(format!(
            "{unknown} cases have no answer that is known to score 1; a `[[task.test]]` states one"
        ));
    }
}

/// Notes shapes that are about no node of any reference answer. Such shapes judge nothing: every graph conforms to them.
fn note_idle_shapes(
    compiled: &CompiledTask,
    spec: &DeclaredSpec,
    task: &Task,
    effort: &Effort,
    proof: &mut Proof,
) {
    let is_shapes = |rule: &CheckRule| matches!(rule, CheckRule::Conforms { .. });
    for check in spec.checks.iter().filter(|check| is_shapes(&check.rule)) {
        let info = format!("{}_targets", check.name);
        let targets: Vec<u64> = compiled
            .data
            .cases
            .iter()
            .zip(task.cases())
            .filter_map(|(case, built)| {
                let verdict = built.exercise().judge(case.reference_answer.as_ref()?, effort);
                verdict.infos.get(&info)?.as_u64()
            })
            .collect();
        if !targets.is_empty() && targets.iter().all(|targets| *targets == 0) {
            proof.notes.push(format!(
                "the shapes of `{}` find no node in any reference answer, so every answer conforms: say what they are \
                 about with `sh:targetClass` or another target",
                check.name
            ));
        }
    }
}

/// Judges reference answers that lack a part, and notes which of them are still right: what they lack is not measured.
fn mutate(compiled: &CompiledTask, spec: &DeclaredSpec, task: &Task, effort: &Effort, proof: &mut Proof) {
    let prefixes = spec.prefixes.iter().collect();
    let mut right = Vec::new();
    for (number, case) in compiled.data.cases.iter().enumerate() {
        let Some(reference) = &case.reference_answer else { continue };
        let exercise = task.cases()[number].exercise();
        if score_of(&**exercise, reference, effort, "score") < 1.0 {
            continue;
        }
        for mutant in mutants::of(body_of(reference, &spec.answer), spec.answer.read_as, &prefixes) {
            if proof.mutants == MUTANTS_MAX {
                break;
            }
            proof.mutants += 1;
            if score_of(&**exercise, &in_form(&mutant.body, &spec.answer), effort, "score") >= 1.0 {
                right.push(format!("`{}`: {}", case.uid, mutant.without));
            }
        }
    }
    proof.mutants_right = right.len();
    if right.is_empty() {
        return;
    }
    let more = right.len().saturating_sub(MUTANTS_NAMED_MAX);
    right.truncate(MUTANTS_NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    proof.notes.push(format!(
        "{} of {} reference answers with one part less score 1, so these parts are not measured: {}{more}",
        proof.mutants_right,
        proof.mutants,
        right.join("; ")
    ));
}
