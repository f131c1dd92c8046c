//! Fills [`Dialogues`] from runs and from result files. Here are the winning records of a run.

mod published;

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc;
use std::thread::{self, Scope};

use domain::{DialogueKey, ModelLabel, ModelSpec, Record, TaskLabel};
use results::log::LogError;
use results::{RunManifest, Summary};
use serde::Deserialize;
use tasks::{ComparedAnswer, TaskClass, UnknownClass};

use crate::details::{Details, DialogueDetail};
use crate::dialogues::{
    Column, ColumnId, Dialogues, Exercises, Origin, ReportedDialogue, SourceInfo, TaskId,
};
use crate::export::Source;

pub use published::{ERRORS_TOLD_MAX, FileReading, read_documents};

/// The score that stands for a dialogue of a recorded class: its key, or its group and key; empty if the class is unknown.
pub fn headline(name: &str, version: &str) -> &'static [&'static str] {
    class_of(name, version).map_or(&[], |class| class.headline)
}

/// The class behind a recorded name and version. A later or earlier version of a known class has the same headline.
fn class_of(name: &str, version: &str) -> Result<TaskClass, UnknownClass> {
    TaskClass::resolve(name, version).or_else(|error| match TaskClass::version_of(name) {
        Some(known) => TaskClass::resolve(name, known),
        None => Err(error),
    })
}

/// A dialogue with what was expected and extracted, if anybody looked.
fn with(detail: DialogueDetail, compared: Option<Result<ComparedAnswer, String>>) -> DialogueDetail {
    match compared {
        Some(compared) => detail.compared(compared),
        None => detail,
    }
}

/// Sorted without repetitions.
fn sorted(texts: BTreeSet<String>) -> Vec<String> {
    texts.into_iter().collect()
}

/// A run to read.
pub struct RunSource<'a> {
    pub records: &'a Source,
    pub manifest: &'a RunManifest,
    /// The exercises that it asked.
    pub exercises: Exercises,
    /// What a dialogue expected and what was extracted; asked only where texts may be shown.
    pub compare: &'a dyn Fn(&Record) -> Result<ComparedAnswer, String>,
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("its texts cannot be compressed: {0}")]
    Details(#[from] std::io::Error),
}

/// How the models of a configuration may be billed, by label. What this version cannot read has none.
fn billed(configuration: &serde_json::Value) -> HashMap<String, String> {
    let models = configuration.get("models").and_then(|models| models.as_array());
    let name = |model: &serde_json::Value| {
        let spec = ModelSpec::deserialize(model).ok()?;
        Some((spec.label.to_string(), spec.billed_as()?))
    };
    models.into_iter().flatten().filter_map(name).collect()
}

/// Items that are read before they are taken: whole records, of which one may have megabytes.
const AHEAD_MAX: usize = 32;

/// The same items, read by a thread of their own: while one is taken, the next ones are read.
fn ahead<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    items: impl Iterator<Item = T> + Send + 'scope,
) -> impl Iterator<Item = T> {
    let (sender, receiver) = mpsc::sync_channel(AHEAD_MAX);
    scope.spawn(move || items.map(|item| sender.send(item)).all(|sent| sent.is_ok()));
    receiver.into_iter()
}

/// Adds the winners of the planned dialogues `keys`, and their texts to `details`, if given. Also counts the planned
/// dialogues. Returns the number of dialogues added.
///
/// # Errors
/// The record log cannot be read.
pub fn read_run<K: Iterator<Item = DialogueKey> + Send>(
    all: &mut Dialogues,
    run: &RunSource<'_>,
    keys: impl Fn() -> K,
    mut details: Option<&mut Details>,
) -> Result<u64, ReadError> {
    let RunSource { records, manifest, exercises, compare } = run;
    let billed = billed(&manifest.configuration);
    // Tens of thousands of records share a few dozen models and tasks.
    let (mut columns, mut tasks) =
        (HashMap::<ModelLabel, ColumnId>::new(), HashMap::<TaskLabel, TaskId>::new());
    let mut column_of = |all: &mut Dialogues, model: &ModelLabel| {
        if let Some(column) = columns.get(model) {
            return *column;
        }
        let (name, origin) = (model.to_string(), Origin::Run(manifest.run.clone()));
        let column = all.column(Column::of(model.as_str(), name, origin, exercises.clone()));
        if let Some(name) = billed.get(model.as_str()) {
            all.setup_of(column).billed_as = Some(name.clone());
        }
        columns.insert(model.clone(), column);
        column
    };
    all.reserve(records.index.len());
    let (mut scorers, mut dialogues, mut unknown) = (BTreeSet::new(), 0, BTreeSet::new());
    let (mut outside, mut first_outside) = (0_u64, None);
    let whole = details.is_some();
    thread::scope(|scope| -> Result<(), ReadError> {
        let parts = (!whole).then(|| records.summaries(keys()).map(|read| Ok((read?, None))));
        let whole = whole.then(|| {
            let read = records.records(keys()).map(|read| {
                let record = read?;
                Ok((Summary::of(&record), Some(record)))
            });
            ahead(scope, read)
        });
        for read in parts.into_iter().flatten().chain(whole.into_iter().flatten()) {
            let (part, record): (Summary, Option<Record>) = read.map_err(ReadError::Log)?;
            if let Some((details, record)) = details.as_deref_mut().zip(record) {
                let compared = details.is_clear(manifest.protected).then(|| compare(&record));
                details.push(with(DialogueDetail::of_record(record), compared), manifest.protected)?;
            }
            let (key, provenance, task) = (&part.key, &part.provenance, &part.provenance.task);
            let id = *tasks.entry(key.task.clone()).or_insert_with(|| {
                let class = class_of(&task.class, &task.version);
                unknown.extend(class.as_ref().err().map(ToString::to_string));
                all.task(key.task.as_str(), &task.class, class.map_or(&[], |class| class.headline))
            });
            let column = column_of(all, &key.model);
            let setup = all.setup_of(column);
            setup.note_record(&provenance.model, &provenance.sampling, &provenance.kgfleet);
            setup.thrown_away += &part.thrown_away();
            if let Some(scores) = part.outcome.scores()
                && let Err(error) = all.tasks[id].check(scores)
            {
                outside += 1;
                first_outside.get_or_insert_with(|| format!("{key}: {error}"));
            }
            let mut dialogue = ReportedDialogue::of(column, id, key.iteration);
            let cached = part.rounds.iter().filter_map(|round| round.answer.usage.cached_tokens);
            dialogue.rounds = part.rounds.len() as u32;
            dialogue.prompt_tokens = part.tokens(|usage| usage.prompt_tokens);
            dialogue.cached_tokens = cached.fold(0, u64::saturating_add);
            dialogue.completion_tokens = part.tokens(|usage| usage.completion_tokens);
            dialogue.seconds = Some(part.time().dialogue_s);
            dialogue.odd = part.oddities();
            dialogue.attempt = part.attempt.number;
            let outcome = part.outcome.scores().ok_or_else(|| {
                let why = part.outcome.failure();
                why.map_or_else(String::new, |cause| cause.to_string())
            });
            all.add(dialogue, &task.case, outcome);
            if !scorers.contains(&task.scorer) {
                scorers.insert(task.scorer.clone());
            }
            dialogues += 1;
        }
        Ok(())
    })?;
    // Planned tasks without any record have no class that could be named; they count all the same where others have them.
    for key in keys() {
        let known = tasks.get(&key.task).copied();
        let known = known.or_else(|| all.tasks.iter().position(|task| task.label == key.task.as_str()));
        if let Some(task) = known {
            let column = column_of(all, &key.model);
            all.plan(column, task, 1);
        }
    }
    if dialogues < manifest.planned_dialogues {
        let planned = manifest.planned_dialogues;
        all.warnings.push(format!("run {} has {dialogues} of {planned} dialogues", manifest.run));
    }
    if let Some(first) = first_outside {
        let run = &manifest.run;
        all.warnings.push(format!(
            "run {run} has {outside} dialogues with scores that cannot be; they count as not scored; the first is {first}"
        ));
    }
    if scorers.len() > 1 {
        all.warnings.push(format!("run {} was scored by several versions of the rules", manifest.run));
    }
    all.warnings.extend(unknown);
    all.sources.push(SourceInfo {
        name: format!("run {}", manifest.run),
        exercises: exercises.clone(),
        dialogues,
        planned: Some(manifest.planned_dialogues),
        scorers: sorted(scorers),
        started: Some(manifest.created_at),
        configuration: Some(manifest.configuration_hash.clone()),
        protected: manifest.protected,
    });
    Ok(dialogues)
}
