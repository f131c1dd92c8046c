//! Retries of failed dialogues: for each, the sink stores a [`Retry`] before the queue gets its units.

use std::sync::Arc;

use queue::NewUnit;

use crate::errors::Result;
use crate::metrics;
use crate::plan::Unit;
use crate::plan::numbering::Slot;
use crate::queue::queued_unit::new_unit;
use crate::records::dialogues::DialogueTable;
use crate::records::retry::{Retry, RetryUnit, pending};
use crate::records::run::Run;
use crate::runs::Runs;

impl Runs {
    /// The retries of a run that are pending.
    pub(crate) async fn pending_retries(&self, run: &Run) -> Result<Vec<u64>> {
        let retries = self.store.retries(run.id()).await?;
        Ok(run.table(|table| pending(&retries, &run.layout, table)))
    }

    /// Retries failed dialogues: stores the retry, then queues it. Dialogues with a `pending` retry are skipped.
    pub(crate) async fn ask_again(
        &self,
        run: &Arc<Run>,
        pending: &[u64],
        wanted: impl Fn(&DialogueTable, Slot) -> bool,
    ) -> Result<u64> {
        let wanted: Vec<bool> = run
            .table(|table| (0..table.len()).map(|slot| pending[slot] == 0 && wanted(table, slot)).collect());
        let units = units_of(run, |slot| wanted[slot]);
        let dialogues = units.iter().map(|unit| unit.iterations.len() as u64).sum();
        if dialogues == 0 {
            return Ok(0);
        }
        let asked = self.queue.call(run, |queue, at| async move { queue.tickets(&at, 1).await }).await?.start;
        let kept = |unit: &Unit| RetryUnit {
            model: run.plan.models[unit.model].label.clone(),
            task: run.plan.tasks[unit.task].label.clone(),
            iterations: unit.iterations.clone(),
        };
        let retry = Retry { asked, units: units.iter().map(kept).collect() };
        self.health.note_sink(self.store.put_retry(run.id(), &retry).await)?;
        self.queue.append_units(run, queued(run, units, asked)?).await?;
        metrics::asked_again(dialogues);
        Ok(dialogues)
    }

    /// Queues pending retries that have no unit, because the queue was lost or a coordinator died before queuing them. Returns
    /// whether there were any.
    pub(crate) async fn queue_retries(&self, run: &Arc<Run>) -> Result<bool> {
        let pending = self.pending_retries(run).await?;
        let mut tickets: Vec<u64> = pending.iter().copied().filter(|asked| *asked > 0).collect();
        tickets.sort_unstable();
        tickets.dedup();
        let mut units = Vec::new();
        for asked in &tickets {
            units.extend(queued(run, units_of(run, |slot| pending[slot] == *asked), *asked)?);
        }
        if units.is_empty() {
            return Ok(false);
        }
        tracing::warn!(run = %run.id(), units = units.len(), "what was to be asked again is queued once more");
        self.queue.append_units(run, units).await?;
        Ok(true)
    }
}

/// The units of these dialogues.
fn units_of(run: &Run, wanted: impl Fn(Slot) -> bool + Sync) -> Vec<Unit> {
    let is_left_out =
        |model, task, iteration| run.layout.slot(model, task, iteration).is_none_or(|slot| !wanted(slot));
    run.plan.units_without(is_left_out).collect()
}

fn queued(run: &Run, units: Vec<Unit>, asked: u64) -> Result<Vec<NewUnit>> {
    units.into_iter().map(|unit| new_unit(&run.plan, unit, Some(asked))).collect()
}
