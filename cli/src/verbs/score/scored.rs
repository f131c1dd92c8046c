//! The reply to one line: its answers are judged one after the other, as in a dialogue of a run.

use std::sync::Arc;

use domain::seed::question_seed;
use domain::{Infos, Prompt, Scores};
use serde_json::{Value, json};
use tasks::{Case, ComparedPart, Dialogue, Evaluation, GivenExercise, Limit, Task, headline_answer};
use worker::EvaluatorError;
use worker::Judgement;
use worker::evaluate::sandbox::{Beyond, Examined};

use super::opened::{OpenedPack, OpenedPacks};
use super::request::{CaseRequest, Place, Refusal, Wanted};

/// The reply to a line.
pub(super) async fn reply(wanted: Wanted, packs: &Arc<OpenedPacks>) -> Result<Value, Refusal> {
    match wanted {
        Wanted::Tasks { pack } => tasks(&pack, packs).await,
        Wanted::Case(case) => of_case(&case, packs).await,
        Wanted::Given { given, answer, compares } => of_given(given, &answer, compares, packs).await,
    }
}

async fn tasks(name: &str, packs: &Arc<OpenedPacks>) -> Result<Value, Refusal> {
    let opened = packs.of(name).await.map_err(Refusal::of_material)?;
    let task = |task: &Arc<Task>| {
        let cases: Vec<&str> = task.cases().iter().map(|case| case.data.uid.as_str()).collect();
        json!({
            "label": task.label,
            "class": task.class_name,
            "version": task.version,
            "headline": task.class.headline.join("."),
            "group": opened.pack.group_of(&task.label),
            "rounds": !task.class.follow_ups.is_empty(),
            "cases": cases,
        })
    };
    let header = opened.pack.header();
    Ok(json!({
        "pack": {
            "name": header.name,
            "version": header.version,
            "hash": opened.pack.hash().as_str(),
            "protected": header.protected,
            "scorer": opened.scorer,
        },
        "tasks": opened.tasks.iter().map(task).collect::<Vec<_>>(),
    }))
}

async fn of_case(asked: &CaseRequest, packs: &Arc<OpenedPacks>) -> Result<Value, Refusal> {
    let opened = packs.of(&asked.pack).await.map_err(Refusal::of_material)?;
    let (number, iteration, task) = found(&opened, asked).map_err(Refusal::of_material)?;
    let case = task.case_index(iteration);
    let mut dialogue = Dialogue::new(task.case(iteration).exercise().shots());
    let mut examined = Vec::with_capacity(asked.answers.len());
    for answer in &asked.answers {
        let judgement = Judgement { task: number, case, answer: answer.as_str().into() };
        let beyond = Beyond { given: None, compares: asked.compares };
        let sandbox = opened.sandbox().await.map_err(Refusal::of_evaluator)?;
        let Examined { verdict, compared } = sandbox.examine(judgement, beyond).await.map_err(refused)?;
        dialogue.take(verdict);
        examined.push(compared);
    }
    let question = question_seed(asked.seed, &task.label, iteration);
    let unworded = |error: tasks::TemplateError| Refusal::of_material(error.to_string());
    let next = task.next_prompt(iteration, question, &dialogue).map_err(unworded)?;
    let system = task.system(iteration).map_err(unworded)?;
    let Evaluation { scores, infos, unscored } = dialogue.into_evaluation();
    let at = headline_answer(task.class.headline, &scores, examined.len());
    let compared = at.map(|at| examined.swap_remove(at)).unwrap_or_default();
    Ok(json!({
        "case": task.case(iteration).data.uid,
        "value": task.class.headline_of(&scores),
        "headline": task.class.headline.join("."),
        "scores": scores,
        "infos": infos,
        "unscored": unscored,
        "system": system,
        "next": next.map(|Prompt { kind, text }| json!({ "kind": kind, "text": text })),
        "compared": shown(&compared),
        "target": target(task.case(iteration), compared),
        "limit": Limit::in_infos(&infos),
    }))
}

async fn of_given(
    given: GivenExercise,
    answer: &str,
    compares: bool,
    packs: &Arc<OpenedPacks>,
) -> Result<Value, Refusal> {
    let sandbox = packs.given().await.map_err(Refusal::of_evaluator)?;
    let beyond = Beyond { given: Some(Arc::new(given)), compares };
    let judgement = Judgement { task: 0, case: 0, answer: answer.into() };
    let Examined { verdict, compared } = sandbox.examine(judgement, beyond).await.map_err(refused)?;
    let (scores, infos): (Scores, Infos) = (verdict.scores, verdict.infos);
    Ok(json!({
        "value": scores.get("score"),
        "headline": "score",
        "compared": shown(&compared),
        "limit": Limit::in_infos(&infos),
        "scores": scores,
        "infos": infos,
    }))
}

/// The place of the task, the iteration of its case, and the task.
fn found<'o>(opened: &'o OpenedPack, asked: &CaseRequest) -> Result<(usize, u32, &'o Task), String> {
    let CaseRequest { pack, task: label, place, .. } = asked;
    let number = opened.places.get(&label.as_str().into()).copied();
    let number = number.ok_or_else(|| format!("the pack {pack} has no task `{label}`"))?;
    let task = &opened.tasks[number];
    let iteration = match place {
        Place::Iteration(iteration) => *iteration,
        Place::Uid(uid) => {
            let at = task.cases().iter().position(|case| case.data.uid == *uid);
            let at = at.and_then(|at| u32::try_from(at).ok());
            at.ok_or_else(|| format!("the task {label} of the pack {pack} has no case `{uid}`"))?
        }
    };
    Ok((number, iteration, task))
}

fn refused(error: EvaluatorError) -> Refusal {
    match error {
        EvaluatorError::Refused(why) => Refusal::of_material(why),
        error => Refusal::of_evaluator(error.to_string()),
    }
}

fn shown(parts: &[ComparedPart]) -> Vec<Value> {
    let part = |part: &ComparedPart| json!({ "what": part.what, "expected": part.expected, "extracted": part.extracted });
    parts.iter().map(part).collect()
}

/// What a right answer is: the whole answer that scores full marks where the pack has one, or what is expected, part by part.
fn target(case: &Case, compared: Vec<ComparedPart>) -> Option<String> {
    if let Some(answer) = &case.data.reference_answer {
        return Some(answer.clone());
    }
    let expected: Vec<String> = compared.into_iter().filter_map(|part| part.expected).collect();
    (!expected.is_empty()).then(|| expected.join("\n\n"))
}
