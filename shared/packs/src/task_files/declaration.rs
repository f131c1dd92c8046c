//! One `[[task]]` of a file: its preset, checks, cases, prompts and known answers, as the task of a pack.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use domain::TaskLabel;
use rdf::{Graph, PrefixTable, RdfFormat};
use serde::Deserialize;
use serde_json::{Map, Value};
use tasks::families::declared::spec::{
    AnswerReading, AnswerRule, CheckRule, DeclaredSpec, JudgeSpec, JudgedWhen,
};
use tasks::families::declared::{BEST, LAST, ONE, VERSION, check_expected};
use tasks::{CaseData, CaseError, TaskData};

use crate::task_files::answer_form::{in_form, written_answer};
use crate::task_files::cases::{self, DeclaredRow};
use crate::task_files::check::{self, DeclaredCheck, ExpectedSource, TellingFields, word};
use crate::task_files::compiled_task::{CompiledTask, KnownAnswer};
use crate::task_files::context::FileContext;
use crate::task_files::expected::{self, ReferenceResults};
use crate::task_files::few_shot;
use crate::task_files::field_path::plain;
use crate::task_files::graphs::FileGraph;
use crate::task_files::mistake::{MistakeList, hint};
use crate::task_files::presets;
use crate::task_files::shown::ShownRule;
use crate::task_files::table::FileSection;
use crate::task_files::wording::{self, PromptMaterial};

/// Most answers of a dialogue.
const ROUNDS_MAX: usize = 5;

/// Share of a judge's grade in the result where a file does not say.
const GRADE_WEIGHT: f64 = 0.5;

/// Compiles a task. `None` if it has mistakes, which are in the list.
pub(crate) fn compile(
    section: &FileSection<'_>,
    context: &FileContext<'_>,
    results: &mut ReferenceResults,
) -> Option<CompiledTask> {
    let mistakes = context.mistakes;
    let label = label(section, mistakes);
    let (task, preset) = completed(section, mistakes)?;
    let answer = answer_rule(&task);
    let checks = check::of_task(&task, &answer, context);
    let rounds = task.whole_within("rounds", 1..=ROUNDS_MAX, mistakes).unwrap_or(1);
    let readable = task.share("readable", mistakes).unwrap_or(0.0);
    let judge = judge(&task, mistakes);
    let graph = file_graph(&task, context);
    let mut rows = cases::of_task(&task, context.read_text, mistakes);
    let shots = few_shot::of_task(&task, &mut rows, context);
    let shown = ShownRule::of_task(&task, mistakes);
    if rows.is_empty() && !task.has("cases") {
        mistakes
            .at(&task.place, "the task has no cases: write `[[task.case]]` or name a file in `cases.file`");
    }
    if let Some(preset) = preset {
        needed(preset, &rows, &task, mistakes);
    }
    let hidden: HashSet<&str> = {
        let revealed = task.texts("reveal");
        // Shapes that an answer must keep give nothing away.
        let telling = checks.iter().filter(|check| !matches!(check.spec.rule, CheckRule::Conforms { .. }));
        let expected = telling.filter_map(|check| check.source.as_ref()).flat_map(ExpectedSource::fields);
        expected.filter(|field| !revealed.iter().any(|shown| shown.value == *field)).collect()
    };
    let templates = wording::templates(&task, context);
    let material = PromptMaterial { hidden: &hidden, shown: &shown, shots: &shots };
    for template in &templates {
        wording::check_names(template, &rows, &hidden, &checks, mistakes);
    }
    if mistakes.none_yet().is_err() {
        return None;
    }
    let spec = DeclaredSpec {
        answer,
        readable,
        rounds,
        checks: checks.iter().map(|check| Arc::new(check.spec.clone())).collect(),
        prefixes: context
            .prefixes
            .iter()
            .map(|(prefix, namespace)| (prefix.to_owned(), namespace.to_owned()))
            .collect(),
        content: rounds > 1
            && task.section("follow_up").is_some_and(|follow_up| follow_up.text("content").is_some()),
        repeats: context.repeats,
    };
    for check in checks.iter().filter(|check| check.source.is_none()) {
        if let Err(error) = check_expected(&check.spec, None, context.prefixes) {
            mistakes.at(&check.place, format!("the check `{}`: {}", check.spec.name, reason(error)));
        }
    }
    let mut compiled = Vec::with_capacity(rows.len());
    // Graphs of cases live as long as results are looked up by them.
    let mut of_cases = Vec::new();
    for row in &rows {
        let case_graph = match task.text("graph_field") {
            Some(field) => {
                let graph = graph_of_case(row, field.value, context)?;
                of_cases.push(Rc::clone(&graph));
                Some(graph)
            }
            None => graph.clone().map(|(_, graph)| graph),
        };
        let part = match case_graph.as_ref().map(|graph| shown.judged(graph, row)) {
            None | Some(Ok(None)) => None,
            Some(Ok(Some(part))) => {
                of_cases.push(Rc::new(part));
                of_cases.last().cloned()
            }
            Some(Err(message)) => {
                mistakes.at(&row.place, format!("case `{}`: {message}", row.id));
                continue;
            }
        };
        let (is_part, case_graph) = (part.is_some(), part.or(case_graph));
        let mut data = Map::new();
        match (&case_graph, &graph) {
            (Some(_), Some((name, _))) if !is_part => {
                data.insert("graphName".into(), name.as_str().into());
            }
            (Some(of_case), _) => {
                data.insert("graphTurtle".into(), of_case.document.as_str().into());
            }
            (None, _) => {}
        }
        data.insert(
            "expected".into(),
            expected_of(row, &checks, case_graph.as_deref(), context, results).into(),
        );
        let mut prompt = wording::prompts_of(row, &templates, &material, case_graph.as_deref(), context);
        if let (Some((weight, when)), Some(Value::String(question))) =
            (judge, prompt.shift_remove(wording::JUDGE))
        {
            let spec = JudgeSpec { question, weight, when };
            data.insert(JudgeSpec::CASE_FIELD.into(), serde_json::to_value(spec).unwrap_or_default());
        }
        let reference = match prompt.shift_remove(wording::WRAP) {
            Some(wrap) => {
                data.insert("wrap".into(), wrap);
                None
            }
            None => reference_answer(row, &checks, &data, &spec.answer, context.prefixes),
        };
        compiled.push(Arc::new(CaseData {
            uid: row.id.clone(),
            data,
            prompt,
            reference_answer: reference,
            ..CaseData::default()
        }));
    }
    let tests = tests(&task, &rows, mistakes);
    let wording = wording::wording(&task, rounds, mistakes);
    mistakes.none_yet().ok()?;
    let class = match (rounds, task.text("headline").map(|headline| headline.value)) {
        (1, _) => ONE,
        (_, Some("last")) => LAST,
        _ => BEST,
    };
    let Ok(Value::Object(parameters)) = serde_json::to_value(&spec) else { return None };
    Some(CompiledTask {
        data: TaskData {
            label: TaskLabel::new(label?),
            class: class.to_owned(),
            version: VERSION.to_owned(),
            parameters,
            wording,
            cases: compiled,
        },
        preset: preset.map(|preset| preset.name),
        tests,
        checks: spec.checks,
        line: mistakes.line_of(section.place.start),
    })
}

fn label<'a>(task: &FileSection<'a>, mistakes: &MistakeList<'_>) -> Option<&'a str> {
    let Some(label) = task.text("label") else {
        mistakes.at(&task.place, "the task has no `label`");
        return None;
    };
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if label.value.is_empty()
        || label.value.len() > 100
        || label.value.starts_with('.')
        || !label.value.chars().all(good)
    {
        let message = format!(
            "the label `{}` may have 1 to 100 letters, digits and `._-`, and no `.` in front",
            label.value
        );
        mistakes.at(&label.place, message);
    }
    Some(label.value)
}

/// The task with what its preset adds.
fn completed<'a>(
    task: &FileSection<'a>,
    mistakes: &MistakeList<'_>,
) -> Option<(FileSection<'a>, Option<&'static presets::Preset>)> {
    let Some(like) = task.text("like") else { return Some((task.clone(), None)) };
    match presets::find(like.value) {
        Some(found) => Some((task.clone().completed_from(&found.table), Some(found.preset))),
        None => {
            let near = hint(like.value, presets::ALL.iter().map(|preset| preset.name));
            let list = "`kgfleet task show --presets` lists them";
            let near = if near.is_empty() { format!("; {list}") } else { format!("{near} {list}") };
            mistakes.at(&like.place, format!("no preset `{}`{near}", like.value));
            None
        }
    }
}

fn answer_rule(task: &FileSection<'_>) -> AnswerRule {
    let Some(answer) = task.section("answer") else { return AnswerRule::default() };
    let mut keys = answer.row();
    keys.retain(|key, _| !key.starts_with("wrap"));
    // What keys may hold was checked before.
    let rule = AnswerRule::deserialize(Value::Object(keys)).unwrap_or_default();
    AnswerRule { after: rule.after.filter(|marker| !marker.is_empty()), ..rule }
}

/// The share of a grade in the result, and which answers are graded.
fn judge(task: &FileSection<'_>, mistakes: &MistakeList<'_>) -> Option<(f64, JudgedWhen)> {
    let judge = task.section("judge")?;
    if !judge.has("question") && !judge.has("question_file") {
        mistakes.at(&judge.place, "the judge needs one of: question, question_file");
    }
    let weight = judge.share("weight", mistakes).unwrap_or(GRADE_WEIGHT);
    Some((weight, judge.text("when").and_then(|when| word(when.value)).unwrap_or_default()))
}

fn file_graph(task: &FileSection<'_>, context: &FileContext<'_>) -> Option<(String, Rc<FileGraph>)> {
    let name = task.text("graph")?;
    if let Some(field) = task.text("graph_field") {
        context.mistakes.at(&field.place, "`graph` and `graph_field` exclude each other");
    }
    let found = context.graphs.iter().find(|(known, _)| known == name.value);
    if found.is_none() {
        let known: Vec<&str> = context.graphs.iter().map(|(name, _)| name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        context.mistakes.at(&name.place, format!("no graph `{}`; the file has: {known}", name.value));
    }
    found.cloned()
}

fn graph_of_case(row: &DeclaredRow, field: &str, context: &FileContext<'_>) -> Option<Rc<FileGraph>> {
    let told =
        |message: String| context.mistakes.at(&row.place, format!("case `{}`, `{field}`: {message}", row.id));
    let Some(text) = row.fields.get(field).and_then(Value::as_str) else {
        told("there is no graph in Turtle".to_owned());
        return None;
    };
    match FileGraph::read(text, RdfFormat::Turtle, context.prefixes) {
        Ok(graph) => Some(Rc::new(graph)),
        Err(message) => {
            told(message);
            None
        }
    }
}

/// Says which fields a preset wants that a case does not have.
fn needed(
    preset: &presets::Preset,
    rows: &[DeclaredRow],
    task: &FileSection<'_>,
    mistakes: &MistakeList<'_>,
) {
    // Whoever words prompt and checks anew needs none of the fields.
    if task.has("prompt") && task.has("check") {
        return;
    }
    for row in rows {
        if let Some(field) = preset.needs.iter().find(|field| !row.fields.contains_key(**field)) {
            let has: Vec<&str> = row.fields.keys().map(String::as_str).collect();
            let message = format!(
                "case `{}` has no field `{field}`, which the preset `{}` wants; it has: {}",
                row.id,
                preset.name,
                has.join(", ")
            );
            mistakes.at(&row.place, message);
            return;
        }
    }
}

fn expected_of(
    row: &DeclaredRow,
    checks: &[DeclaredCheck<'_>],
    graph: Option<&FileGraph>,
    context: &FileContext<'_>,
    results: &mut ReferenceResults,
) -> Map<String, Value> {
    let mut all = Map::new();
    for check in checks {
        let Some(source) = &check.source else { continue };
        let (rule, spec) = (&check.spec.rule, &check.spec);
        let mut run = |query: &str| {
            let graph = graph.ok_or("the task has no `graph` on which the query could run")?;
            let table = results.of(query, graph, context.limits, spec.empty_ok)?;
            expected::of_result(rule, &table)
        };
        let field = |name: &str| row.fields.get(name).ok_or_else(|| "the case has no such field".to_owned());
        let value = match source {
            ExpectedSource::Field(name) => field(name).and_then(|value| expected::of_value(rule, value)),
            ExpectedSource::Text(text) => expected::of_value(rule, &text.as_str().into()),
            ExpectedSource::Query(query) => run(query),
            ExpectedSource::QueryField(name) => field(name).and_then(|query| run(&plain(query))),
            ExpectedSource::Telling(fields) => telling_graphs(row, fields),
        };
        let value = value.and_then(|value| match check_expected(spec, Some(&value), context.prefixes) {
            Ok(()) => Ok(value),
            Err(error) => Err(reason(error)),
        });
        let value = value.and_then(|value| match value.as_array() {
            Some(items) if items.is_empty() && !spec.empty_ok => {
                Err("the expected list is empty, so saying nothing would be right; `empty_ok = true` in its `[[task.check]]` if so"
                    .to_owned())
            }
            _ => Ok(value),
        });
        match value {
            Ok(value) => {
                all.insert(spec.name.clone(), value);
            }
            Err(message) => {
                let what = source.field().unwrap_or(spec.name.as_str());
                let place = if source.field().is_some() { &row.place } else { &check.place };
                context.mistakes.at(place, format!("case `{}`, `{what}`: {message}", row.id));
            }
        }
    }
    all
}

/// Why a check cannot be used; what was not readable is named by the place of the mistake.
fn reason(error: CaseError) -> String {
    match error {
        CaseError::Reference { message, .. } => message,
        other => other.to_string(),
    }
}

/// The graphs of a case that shapes must tell apart.
fn telling_graphs(row: &DeclaredRow, fields: &TellingFields<'_>) -> Result<Value, String> {
    let field = |name: &str| row.fields.get(name).ok_or_else(|| format!("the case has no field `{name}`"));
    let accept = match field(fields.accept)? {
        Value::Array(graphs) => Value::Array(graphs.clone()),
        one => Value::Array(vec![one.clone()]),
    };
    let reject = field(fields.reject)?;
    if reject.get("file").is_some() {
        return Err("a rejected graph cannot be called `file`".to_owned());
    }
    let mut graphs = Map::new();
    graphs.insert("accept".to_owned(), accept);
    graphs.insert("reject".to_owned(), reject.clone());
    if let Some(focus) = fields.focus {
        graphs.insert("focus".to_owned(), field(focus)?.clone());
    }
    Ok(Value::Object(graphs))
}

/// A list whose records are texts, as a list of records.
fn records(expected: &Value) -> Value {
    let Some(items) = expected.as_array() else { return expected.clone() };
    let record = |item: &Value| {
        let read = item.as_str().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        read.map_or_else(|| item.clone(), Value::Object)
    };
    items.iter().map(record).collect()
}

/// An answer that gives every check what it expects, if one can be written.
fn reference_answer(
    row: &DeclaredRow,
    checks: &[DeclaredCheck<'_>],
    data: &Map<String, Value>,
    rule: &AnswerRule,
    prefixes: &PrefixTable,
) -> Option<String> {
    let expecting = |check: &&DeclaredCheck<'_>| {
        check.spec.rule.expects() && !matches!(check.spec.rule, CheckRule::Conforms { .. })
    };
    let first = checks.iter().find(expecting)?;
    let expected = data.get("expected")?.get(&first.spec.name)?;
    let body = match (rule.read_as, &first.source) {
        (AnswerReading::Sparql, Some(ExpectedSource::Query(query))) => (*query).to_owned(),
        (AnswerReading::Sparql, Some(ExpectedSource::QueryField(field))) => plain(row.fields.get(*field)?),
        (AnswerReading::Sparql, _) => return None,
        (AnswerReading::List, _) => match expected.as_array()?.iter().map(plain).collect::<Vec<_>>() {
            none if none.is_empty() => "none".to_owned(),
            items => items.join("\n"),
        },
        (AnswerReading::Json, _) => records(expected).to_string(),
        (AnswerReading::Shapes, Some(ExpectedSource::Telling(fields))) => {
            plain(row.fields.get(fields.reference)?)
        }
        (AnswerReading::Shapes, _) => return None,
        (AnswerReading::JsonLd | AnswerReading::Xml | AnswerReading::Nt, _)
            if matches!(first.spec.rule, CheckRule::Graph { .. }) =>
        {
            let graph = Graph::parse_turtle_with(&plain(expected), prefixes).ok()?;
            graph.serialize(rule.read_as.rdf_format()?, prefixes)
        }
        _ => plain(expected),
    };
    Some(in_form(&body, rule))
}

fn tests(task: &FileSection<'_>, rows: &[DeclaredRow], mistakes: &MistakeList<'_>) -> Vec<KnownAnswer> {
    let rule = answer_rule(task);
    let language = rule.language.first().map_or("", String::as_str);
    let mut tests = Vec::new();
    for (number, test) in task.sections("test").into_iter().enumerate() {
        let Some(case) = test.text("case") else {
            mistakes.at(&test.place, "the test has no `case`");
            continue;
        };
        if !rows.iter().any(|row| row.id == case.value) {
            let near = hint(case.value, rows.iter().map(|row| row.id.as_str()));
            mistakes.at(&case.place, format!("no case has the id `{}`{near}", case.value));
        }
        let answer = test.section("answer");
        let text = |key: &str| answer.as_ref().and_then(|answer| Some(answer.text(key)?.value));
        let answer = match (text("text"), text("block")) {
            (Some(text), None) => text.to_owned(),
            (None, Some(block)) => written_answer(block, language),
            _ => {
                mistakes.at(&test.place, "the test needs one of: answer.text, answer.block");
                continue;
            }
        };
        let mut scores: Vec<(String, f64)> = Vec::new();
        scores.extend(test.number("score").map(|score| ("score".to_owned(), score.value)));
        for (name, value) in test.by_name("scores") {
            let value = crate::task_files::table::json(value.value).as_f64();
            scores.extend(value.map(|value| (name.to_owned(), value)));
        }
        if scores.is_empty() {
            mistakes.at(&test.place, "the test says no score");
        }
        let line = mistakes.line_of(test.place.start);
        tests.push(KnownAnswer { number: number + 1, line, case: case.value.to_owned(), answer, scores });
    }
    tests
}
