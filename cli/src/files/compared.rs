//! What tasks expected and what was extracted from answers. Cases are found in the pack of a run or in a result file, and
//! answers are read again as evaluation does.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow, bail};
use coordinator::plan::Plan;
use domain::redaction::is_redacted;
use domain::{Infos, Outcome, Record, Scores, TaskLabel};
use packs::Pack;
use results::llmkgbench::ResultRecord;
use tasks::{ComparedAnswer, EvaluationLimits, Exercise, Task, TaskClass};
use worker::evaluate::STACK_BYTES;
use worker::material::build_to_ask;

use super::exercises::BuiltExercises;

/// The tasks of a run, ready for reading answers to them again.
pub struct ComparedTasks {
    /// By their labels in the run, which may call a task otherwise than its pack.
    tasks: HashMap<TaskLabel, Arc<Task>>,
    /// The places of cases by their names.
    cases: HashMap<TaskLabel, HashMap<String, usize>>,
    limits: EvaluationLimits,
}

impl ComparedTasks {
    /// Builds the tasks of a plan, or `only` this one.
    ///
    /// # Errors
    /// The pack does not fit the plan, or cannot be used.
    pub fn build(pack: &Pack, plan: &Plan, only: Option<&TaskLabel>) -> anyhow::Result<Self> {
        let planned: Vec<_> =
            plan.tasks.iter().filter(|task| only.is_none_or(|only| task.label == *only)).collect();
        let in_pack = |index: usize| pack.tasks().get(index).context("the pack lacks a task of the run");
        let labels = planned.iter().map(|task| Ok(&in_pack(task.index)?.label));
        let built = build_to_ask(pack, labels.collect::<anyhow::Result<Vec<_>>>()?)?;
        let (mut tasks, mut cases) = (HashMap::new(), HashMap::new());
        for (planned, task) in planned.iter().zip(built.iter()) {
            let places = task.cases().iter().enumerate().map(|(place, case)| (case.data.uid.clone(), place));
            cases.insert(planned.label.clone(), places.collect());
            tasks.insert(planned.label.clone(), Arc::clone(task));
        }
        Ok(Self { tasks, cases, limits: pack.header().limits })
    }

    /// Reads the answer of a record again. Needs a [large stack](on_large_stack).
    ///
    /// # Errors
    /// The pack has no such case; the texts of the record were replaced; the answer cannot be read.
    pub fn compare(&self, record: &Record) -> anyhow::Result<ComparedAnswer> {
        let (label, uid) = (&record.key.task, &record.provenance.task.case);
        let task = self.tasks.get(label).with_context(|| format!("the run has no task {label}"))?;
        let place = self.cases.get(label).and_then(|cases| cases.get(uid));
        let case = place.and_then(|place| task.cases().get(*place));
        let case = case.with_context(|| format!("the pack has no case {uid} of this task"))?;
        let answers: Vec<&str> = record.rounds.iter().map(|round| round.answer.text.as_str()).collect();
        if answers.iter().any(|answer| is_redacted(answer)) {
            bail!("the coordinator gives protected texts only to operators");
        }
        let nothing = (Scores::new(), Infos::new());
        let verdict = match &record.outcome {
            Outcome::Scored { scores, infos } => (scores, infos),
            Outcome::Unscored { infos, .. } => (&nothing.0, infos),
            Outcome::Failed { .. } => (&nothing.0, &nothing.1),
        };
        let compared = read_again((task.class, &**case.exercise()), &answers, verdict, self.limits)?;
        Ok(compared.with_reference(case.data.reference_answer.as_deref()))
    }
}

/// Reads the answer of a record of a result file again. Needs a [large stack](on_large_stack).
///
/// # Errors
/// The file does not say what the case is, or the answer cannot be read.
pub fn compare_published(
    exercises: &BuiltExercises,
    record: &ResultRecord,
) -> anyhow::Result<ComparedAnswer> {
    let built = exercises.of(record)?;
    let answers: Vec<&str> = record.answers().collect();
    let verdict = (record.scores(), record.infos());
    read_again((built.class, &*built.exercise), &answers, verdict, EvaluationLimits::compat())
}

fn read_again(
    asked: (TaskClass, &dyn Exercise),
    answers: &[&str],
    verdict: (&Scores, &Infos),
    limits: EvaluationLimits,
) -> anyhow::Result<ComparedAnswer> {
    // One answer that breaks a reader must not hide all others.
    let read = || ComparedAnswer::of(asked, answers, verdict, limits);
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| anyhow!("the answer cannot be read"))
}

/// Does something that reads answers of models, on a thread with the stack that evaluation has.
///
/// # Errors
/// There can be no such thread.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)?;
        reader.join().map_err(|_| anyhow!("a thread that reads answers ended"))
    })
}
