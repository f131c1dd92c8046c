//! The winning records of a run.

use std::collections::{BTreeSet, HashMap};

use domain::model::{stated_active, stated_size};
use domain::{DialogueKey, ModelLabel, ModelProvenance, ModelSpec, Provenance, Record, Sampling, TaskLabel};
use results::log::LogError;
use results::{OutcomeSummary, RunManifest, Summary};
use serde::Deserialize;
use tasks::ComparedAnswer;

use super::{class_of, sorted, with};
use crate::details::{Details, DialogueDetail};
use crate::dialogues::{
    Column, ColumnId, Dialogues, Exercises, NewDialogue, Origin, SourceInfo, TaskId, Warning,
};
use crate::export::Source;
use crate::names;

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

/// Adds the winners of the planned dialogues `keys`, and their texts to `details`, if given. Also counts the planned
/// dialogues. Returns the number of dialogues added.
///
/// # Errors
/// The record log cannot be read.
pub fn read_run<K: Iterator<Item = DialogueKey>>(
    all: &mut Dialogues,
    run: &RunSource<'_>,
    keys: impl Fn() -> K,
    mut details: Option<&mut Details>,
) -> Result<u64, ReadError> {
    let RunSource { records, manifest, exercises, compare } = run;
    let billed = billed(&manifest.configuration);
    let new_column = |all: &mut Dialogues, model: &str| {
        let column = all.column(Column {
            model: model.to_owned(),
            name: model.to_owned(),
            family: names::family(model),
            size: stated_size(model),
            active: stated_active(model),
            origin: Origin::Run(manifest.run.clone()),
            exercises: exercises.clone(),
        });
        if let Some(name) = billed.get(model) {
            all.setup_of(column).billed_as = Some(name.clone());
        }
        column
    };
    // Tens of thousands of records share a few dozen models and tasks.
    let (mut columns, mut ids) =
        (HashMap::<ModelLabel, ColumnId>::new(), HashMap::<TaskLabel, TaskId>::new());
    let (mut scorers, mut dialogues, mut unknown) = (BTreeSet::new(), 0, BTreeSet::new());
    let mut told: HashMap<ColumnId, (ModelProvenance, Sampling)> = HashMap::new();
    let (mut outside, mut first_outside) = (0_u64, None);
    let whole = details.is_some();
    let parts = (!whole).then(|| records.summaries(keys()).map(|read| Ok((read?, None))));
    let records = whole.then(|| {
        records.records(keys()).map(|read| {
            let record = read?.1;
            Ok((Summary::of(&record), Some(record)))
        })
    });
    for read in parts.into_iter().flatten().chain(records.into_iter().flatten()) {
        let (mut part, record): (Summary, Option<Record>) = read.map_err(ReadError::Log)?;
        // It follows the prompt, and says nothing of the model.
        part.provenance.model.max_tokens = None;
        if let Some((details, record)) = details.as_deref_mut().zip(record) {
            let compared = details.is_clear(manifest.protected).then(|| compare(&record));
            let detail = DialogueDetail::of_record(record);
            details.push(with(detail, compared), manifest.protected)?;
        }
        let (key, task) = (&part.key, &part.provenance.task);
        let id = match ids.get(&key.task) {
            Some(id) => *id,
            None => {
                let class = class_of(&task.class, &task.version);
                if let Err(error) = &class {
                    unknown.insert(error.to_string());
                }
                let headline = class.as_ref().map_or(&[][..], |class| class.headline);
                let id = all.task(key.task.as_str(), &task.class, headline);
                ids.insert(key.task.clone(), id);
                id
            }
        };
        let column = match columns.get(&key.model) {
            Some(column) => *column,
            None => {
                let column = new_column(all, key.model.as_str());
                columns.insert(key.model.clone(), column);
                column
            }
        };
        let Provenance { model, sampling, kgfleet, .. } = &part.provenance;
        // Most records say the same as the one before them of their model.
        if told.get(&column).is_none_or(|known| (&known.0, &known.1) != (model, sampling)) {
            all.setup_of(column).note_record(model, sampling, kgfleet);
            told.insert(column, (model.clone(), sampling.clone()));
        }
        all.setup_of(column).thrown_away += &part.thrown_away();
        if let Some(scores) = part.outcome.scores()
            && let Err(error) = all.tasks[id].check(scores)
        {
            outside += 1;
            first_outside.get_or_insert_with(|| format!("{key}: {error}"));
        }
        all.add(NewDialogue {
            column,
            task: id,
            case: &task.case,
            iteration: part.key.iteration,
            outcome: match &part.outcome {
                OutcomeSummary::Scored(scores) => Ok(scores),
                OutcomeSummary::Unscored { cause, .. } | OutcomeSummary::Failed { cause, .. } => {
                    Err(cause.to_string())
                }
            },
            rounds: part.rounds.len() as u32,
            prompt_tokens: part.tokens(|usage| usage.prompt_tokens),
            cached_tokens: part
                .rounds
                .iter()
                .filter_map(|round| round.answer.usage.cached_tokens)
                .fold(0, u64::saturating_add),
            completion_tokens: part.tokens(|usage| usage.completion_tokens),
            seconds: Some(part.time().dialogue_s),
            odd: part.oddities(),
            attempt: part.attempt.number,
        });
        if !scorers.contains(&task.scorer) {
            scorers.insert(task.scorer.clone());
        }
        dialogues += 1;
    }
    // Planned tasks without any record have no class that could be named; they count all the same where others have them.
    let mut planned: Vec<(ModelLabel, TaskId, u64)> = Vec::new();
    let mut places: HashMap<(ModelLabel, TaskId), usize> = HashMap::new();
    for key in keys() {
        let known = ids.get(&key.task).copied();
        let known = known.or_else(|| all.tasks.iter().position(|task| task.label == key.task.as_str()));
        if let Some(task) = known {
            let place = *places.entry((key.model, task)).or_insert_with_key(|(model, task)| {
                planned.push((model.clone(), *task, 0));
                planned.len() - 1
            });
            planned[place].2 += 1;
        }
    }
    for (model, task, count) in planned {
        let column = match columns.get(&model) {
            Some(column) => *column,
            None => new_column(all, model.as_str()),
        };
        all.plan(column, task, count);
    }
    if dialogues < manifest.planned_dialogues {
        let planned = manifest.planned_dialogues;
        all.warnings.push(Warning(format!("run {} has {dialogues} of {planned} dialogues", manifest.run)));
    }
    if let Some(first) = first_outside {
        let run = &manifest.run;
        all.warnings.push(Warning(format!(
            "run {run} has {outside} dialogues with scores that cannot be; they count as not scored; the first is {first}"
        )));
    }
    if scorers.len() > 1 {
        all.warnings
            .push(Warning(format!("run {} was scored by several versions of the rules", manifest.run)));
    }
    all.warnings.extend(unknown.into_iter().map(Warning));
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
