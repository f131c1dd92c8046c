//! What pages and reports read: single dialogues, scores, and the records of judged benchmarks.

use benchmarks::ModelReading;
use domain::caller::CallerRole;
use domain::redaction;
use domain::{DialogueKey, ModelLabel, RunId, TaskLabel};

use crate::access::Access;
use crate::benchmarks::reading::BenchmarkReading;
use crate::errors::Result;
use crate::plan::configuration::Configuration;
use crate::views::dialogues::{DialogueLine, ModelScores, RecordView};

impl Access {
    /// The record that counts for a dialogue; `None` if there is none yet. Texts of protected exercises are redacted for
    /// whoever is no operator.
    ///
    /// # Errors
    /// There is no such run or dialogue, or the log cannot be read.
    pub async fn record(&self, run: &RunId, key: &DialogueKey) -> Result<Option<RecordView>> {
        let found = self.parts.views.record_of(run, key).await?;
        let Some((protected, mut record)) = found else { return Ok(None) };
        let redacted = protected && !self.caller.has(CallerRole::Operator);
        if redacted {
            redaction::redact(&mut record);
        } else if protected {
            self.reads(run).await?;
        }
        Ok(Some(RecordView { record, redacted }))
    }

    /// The headline scores of every model, in the order of the plan.
    ///
    /// # Errors
    /// There is no such run, or it cannot be loaded.
    pub async fn scores(&self, run: &RunId) -> Result<Vec<ModelScores>> {
        self.parts.views.scores(run).await
    }

    /// The dialogues of a model on a task, by iteration.
    ///
    /// # Errors
    /// There is no such run, model or task.
    pub async fn dialogues(
        &self,
        run: &RunId,
        model: &ModelLabel,
        task: &TaskLabel,
    ) -> Result<Vec<DialogueLine>> {
        self.parts.views.dialogues(run, model, task).await
    }

    /// The configuration of a judged benchmark; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn pipeline(&self, name: &RunId) -> Result<Option<Configuration>> {
        self.parts.benchmarks.configuration_of(name).await
    }

    /// A judged benchmark as its records are now; `None` if there is none of this name.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_judged(&self, name: &RunId) -> Result<Option<BenchmarkReading>> {
        self.parts.benchmarks.read_judged(name).await
    }

    /// The records about one of its models.
    ///
    /// # Errors
    /// The sink cannot be read.
    pub async fn read_about(&self, reading: &BenchmarkReading, model: &ModelLabel) -> Result<ModelReading> {
        self.parts.benchmarks.read_about(reading, model).await
    }
}
