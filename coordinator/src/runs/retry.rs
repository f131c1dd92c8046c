//! Retries of failed dialogues: each is in the log before the queue gets its units.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use queue::NewUnit;

use crate::errors::Result;
use crate::metrics;
use crate::plan::Unit;
use crate::plan::numbering::Slot;
use crate::queue::queued_unit::new_unit;
use crate::records::dialogues::DialogueTable;
use crate::records::events::{RetryUnit, RunEvent};
use crate::records::run::Run;
use crate::runs::Runs;

impl Runs {
    /// Retries failed dialogues: logs the retry, then queues it. Dialogues with a `pending` retry are skipped.
    pub(crate) async fn ask_again(
        &self,
        run: &Arc<Run>,
        pending: &BTreeMap<Slot, u64>,
        wanted: impl Fn(&DialogueTable, Slot) -> bool,
    ) -> Result<u64> {
        let wanted: Vec<bool> = run.table(|table| {
            (0..table.len()).map(|slot| !pending.contains_key(&slot) && wanted(table, slot)).collect()
        });
        let units = units_of(run, |slot| wanted[slot]);
        let dialogues = units.iter().map(|unit| unit.iterations.len() as u64).sum();
        if dialogues == 0 {
            return Ok(0);
        }
        let kept = |unit: &Unit| RetryUnit {
            model: run.plan.models[unit.model].label.clone(),
            task: run.plan.tasks[unit.task].label.clone(),
            iterations: unit.iterations.clone(),
        };
        let retried = RunEvent::Retried(units.iter().map(kept).collect());
        let number = self.logs.append(run, retried).await?.unwrap_or_default();
        self.queue.append_units(run, queued(run, units, number)?).await?;
        metrics::asked_again(dialogues);
        Ok(dialogues)
    }

    /// Queues pending retries that have no unit, because the queue was lost or a coordinator died before queuing them. Returns
    /// whether there were any.
    pub(crate) async fn queue_retries(&self, run: &Arc<Run>) -> Result<bool> {
        let pending = run.pending_retries();
        let numbers: BTreeSet<u64> = pending.values().copied().collect();
        let mut units = Vec::new();
        for number in numbers {
            units.extend(queued(run, units_of(run, |slot| pending.get(&slot) == Some(&number)), number)?);
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

fn queued(run: &Run, units: Vec<Unit>, number: u64) -> Result<Vec<NewUnit>> {
    units.into_iter().map(|unit| new_unit(&run.plan, unit, Some(number))).collect()
}
