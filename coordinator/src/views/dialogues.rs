//! What a person who looks closely reads of a run: the dialogues behind a mean, and one of them in full.

use std::sync::Arc;

use domain::{DialogueKey, FailureCause, Iteration, ModelLabel, Record, RunId, TaskLabel};
use report::analysis::cells::TaskScores;
use results::log::PlaceReader;

use crate::errors::{Result, internal, not_found};
use crate::plan::PlannedModel;
use crate::views::Views;

/// One planned dialogue of a model on a task.
#[derive(Clone, Debug, PartialEq)]
pub struct DialogueLine {
    pub iteration: Iteration,
    /// What it asks.
    pub case: String,
    /// The headline score of its record, which scores may lack, or why there are none; `None` without a record.
    pub outcome: Option<std::result::Result<Option<f64>, FailureCause>>,
}

/// The headline scores of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelScores {
    pub model: ModelLabel,
    /// In the order of the plan.
    pub tasks: Vec<TaskScores>,
}

/// A dialogue in full, as somebody may read it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordView {
    pub record: Record,
    /// Whether its texts were replaced by their lengths.
    pub redacted: bool,
}

impl Views {
    /// The headline scores of every model, in the order of the plan, all of one moment.
    ///
    /// # Errors
    /// There is no such run, or it cannot be loaded.
    pub(crate) async fn scores(&self, run: &RunId) -> Result<Vec<ModelScores>> {
        let run = self.loaded.known(run).await?;
        let cases: Vec<u32> = run.tasks.iter().map(|kind| kind.cases.len().max(1) as u32).collect();
        Ok(run.table(|table| {
            let of_task = |model: usize, task: usize| {
                let mut found = TaskScores::default();
                for (iteration, slot) in run.layout.cell(model, task).enumerate() {
                    found.planned += 1;
                    if let Some(Ok(Some(score))) = table.get(slot).map(|row| row.outcome) {
                        found.scores.push((iteration as u32 % cases[task], score));
                    }
                }
                found
            };
            let of_model = |(place, model): (usize, &PlannedModel)| ModelScores {
                model: model.label.clone(),
                tasks: (0..cases.len()).map(|task| of_task(place, task)).collect(),
            };
            run.plan.models.iter().enumerate().map(of_model).collect()
        }))
    }

    /// The dialogues of a model on a task, by iteration.
    ///
    /// # Errors
    /// There is no such run, model or task.
    pub(crate) async fn dialogues(
        &self,
        run: &RunId,
        model: &ModelLabel,
        task: &TaskLabel,
    ) -> Result<Vec<DialogueLine>> {
        let run = self.loaded.known(run).await?;
        let (Some(model), Some(task)) = (run.layout.model(model), run.layout.task(task)) else {
            return Err(not_found(format!("run {} has no model `{model}` or no task `{task}`", run.id())));
        };
        let cases = &run.tasks[task].cases;
        let case = |iteration: usize| cases.get(iteration % cases.len().max(1)).cloned().unwrap_or_default();
        Ok(run.table(|table| {
            let line = |(iteration, slot)| DialogueLine {
                iteration: iteration as Iteration,
                case: case(iteration),
                outcome: table.get(slot).map(|row| row.outcome),
            };
            run.layout.cell(model, task).enumerate().map(line).collect()
        }))
    }

    /// The record that counts for a dialogue, and whether its texts are protected; `None` if there is no record yet.
    ///
    /// # Errors
    /// There is no such run or dialogue, or the log cannot be read.
    pub(crate) async fn record_of(&self, id: &RunId, key: &DialogueKey) -> Result<Option<(bool, Record)>> {
        let permit = Arc::clone(&self.readings).acquire_owned().await.map_err(internal)?;
        let run = self.loaded.known(id).await?;
        let slot = run.layout.slot_of(key);
        let slot = slot.ok_or_else(|| not_found(format!("run {id} has no dialogue {key}")))?;
        let folder = self.store.sink.run_dir(id)?.log();
        let Some(row) = run.table(|table| table.get(slot)) else { return Ok(None) };
        let read = move || {
            let _permit = permit;
            let mut reader = PlaceReader::new(&folder, run.cipher.as_ref());
            let (record, _) = run.read::<Record>(&mut reader, row.location)?;
            Ok(Some((run.manifest.protected, record)))
        };
        service_kit::aside::run(read).await.map_err(internal)?
    }
}
