//! The step of a run in each round.
use std::sync::Arc;

use domain::control::{HistoryEntry, RunPhase};
use domain::machine;
use queue::{ModelCounts, NewUnit, Reap, RunStatus};

use crate::errors::Result;
use crate::queue::queued_unit::new_unit;
use crate::records::dialogues::DialogueTable;
use crate::records::events::RunStateFile;
use crate::records::run::Run;
use crate::runs::Runs;

/// Who stands in the history of a run for what its coordinator found by itself.
const COORDINATOR: &str = "coordinator";

/// The next step of a run, decided by its counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Due {
    Nothing,
    /// Every dialogue has a record, and no retry is pending.
    Finish,
    /// Some dialogues have neither record nor unit.
    CloseGaps,
    /// No unit is left; the run is complete unless a pending retry has no units.
    FinishOrAskAgain,
}

/// Decides the next step. The counts must be older than the table; otherwise a record that arrived in between would look like a
/// gap.
pub(crate) fn due(table: &DialogueTable, rework: bool, filled: bool, counts: &[ModelCounts]) -> Due {
    let open: u64 = counts.iter().map(|counts| counts.pending + counts.leased).sum();
    match (table.is_complete(), open) {
        (true, 0) if rework => Due::FinishOrAskAgain,
        (true, 0) => Due::Finish,
        (true, _) if !rework => Due::Finish,
        (false, 0) if filled => Due::CloseGaps,
        _ => Due::Nothing,
    }
}

impl Runs {
    /// Brings queue and log of a run together, and does the next step. `reaps` says whether leases may be taken over.
    pub(crate) async fn tend(&self, run: &Arc<Run>, status: Option<&RunStatus>, reaps: bool) -> Result<()> {
        self.logs.open(run).await?;
        // The queue was read before the state: a command in between is not undone.
        let Some((change, state)) = run.numbered_state() else { return self.queue.expect(run).await };
        let lost = |at: &queue::RunRef| status.is_none_or(|status| status.at != *at);
        let at = match run.at() {
            Some(at) if lost(&at) => self.queue.join(run, Some(at.generation)).await?,
            Some(at) => at,
            None => self.queue.join(run, None).await?,
        };
        if let Some(status) = status {
            self.queue.set_state(run, &at, status.state, &state).await?;
        }
        if state.phase.is_over() {
            self.signal.touch();
            return Ok(());
        }
        if !run.is_filled() {
            self.queue.fill(run).await?;
        }
        if reaps {
            self.queue.reap(run, &Reap::Expired).await?;
        }
        let counts = self.queue.call(run, |queue, at| async move { queue.counts(&at).await }).await?;
        let unrecorded = state.rework || !run.table(DialogueTable::is_complete);
        if unrecorded && counts.iter().any(|counts| counts.dead > 0) {
            self.record_dead(run).await?;
        }
        match run.table(|table| due(table, state.rework, run.is_filled(), &counts)) {
            Due::Nothing => Ok(()),
            Due::Finish => self.finish(run, change, &counts).await,
            Due::CloseGaps => self.close_gaps(run).await,
            Due::FinishOrAskAgain => match self.queue_retries(run).await? {
                true => Ok(()),
                false => self.finish(run, change, &counts).await,
            },
        }
    }

    /// Finishes a run, unless its state has changed since this change: a command that came meanwhile takes precedence.
    async fn finish(&self, run: &Arc<Run>, change: u64, counts: &[ModelCounts]) -> Result<()> {
        // A run that was extended is not finished, even if the process that extended it has died.
        self.loaded.expect_newest(run).await?;
        let finished = self.change_state(run, |state| {
            let is_same = run.numbered_state().is_some_and(|(now, _)| now == change);
            let state = RunStateFile {
                phase: RunPhase::Finished,
                rework: false,
                finished_revision: run.manifest.revision,
                ..run.summed_up(state)
            };
            Ok(is_same.then_some(state))
        });
        if finished.await?.is_none() {
            return Ok(());
        }
        tracing::info!(run = %run.id(), "finished");
        let left: u64 = counts.iter().map(|counts| counts.pending + counts.leased).sum();
        let dead: u64 = counts.iter().map(|counts| counts.dead).sum();
        if left > 0 && dead == 0 {
            // Units of a rebuilt queue, all of whose dialogues have a record: no worker will ask for them. A later retry
            // is queued anew.
            self.health.note_queue(self.queue.raw().forget_run(run.id()).await)?;
            run.clear_at();
        }
        Ok(())
    }

    /// Queues dialogues that have neither record nor unit again, which happens only after damage to the log.
    async fn close_gaps(&self, run: &Arc<Run>) -> Result<()> {
        let missing: Vec<bool> =
            run.table(|table| (0..table.len()).map(|slot| table.get(slot).is_none()).collect());
        let (missing, layout) = (&missing, &run.layout);
        let is_left_out =
            |model, task, iteration| layout.slot(model, task, iteration).is_none_or(|slot| !missing[slot]);
        let units = run.plan.units_without(is_left_out).map(|unit| new_unit(&run.plan, unit, None));
        let units = units.collect::<Result<Vec<NewUnit>>>()?;
        let dialogues: u64 = units.iter().map(|unit| u64::from(unit.dialogues)).sum();
        tracing::warn!(run = %run.id(), dialogues, "dialogues have neither a record nor a unit; they are queued again");
        self.queue.append_units(run, units).await?;
        run.note_lost(dialogues);
        let what = format!("the records of {dialogues} dialogues are lost; they are asked again");
        let entry = HistoryEntry { at: machine::now(), who: COORDINATOR.to_owned(), what };
        Ok(self.store.sink.append_history(run.id(), &entry).await?)
    }
}

#[cfg(test)]
mod tests {
    use results::log::{EntryLocation, SegmentId};

    use super::*;
    use crate::records::dialogues::DialogueRow;

    #[test]
    fn a_run_ends_when_all_is_recorded_and_nothing_is_to_be_done_again() {
        let counts = |pending, leased| {
            [ModelCounts {
                model: "m".into(),
                added: 9,
                pending,
                suspects_pending: 0,
                suspects_leased: 0,
                leased,
                dead: 1,
                done: 0,
                backlog_dialogues: 0,
                parked: None,
            }]
        };
        let location = EntryLocation { segment: SegmentId::first(1), offset: 0, line: 0 };
        let open = DialogueTable::new(1);
        let mut full = open.clone();
        full.fold(0, DialogueRow { location, outcome: Ok(Some(1.0)) });
        assert_eq!(due(&full, false, true, &counts(0, 0)), Due::Finish);
        assert_eq!(due(&full, false, true, &counts(3, 1)), Due::Finish);
        assert_eq!(due(&full, true, true, &counts(0, 1)), Due::Nothing);
        assert_eq!(due(&full, true, true, &counts(0, 0)), Due::FinishOrAskAgain);
        assert_eq!(due(&open, false, true, &counts(0, 1)), Due::Nothing);
        assert_eq!(due(&open, false, false, &counts(0, 0)), Due::Nothing);
        assert_eq!(due(&open, false, true, &counts(0, 0)), Due::CloseGaps);
    }
}
