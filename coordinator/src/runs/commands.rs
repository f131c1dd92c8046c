//! The commands of users about runs.

use std::sync::Arc;

use domain::control::{BenchmarkCommand, RunPhase};
use domain::{ErrorCode, FailureCause, RunId};

use crate::errors::{Result, conflict};
use crate::records::dialogues::DialogueTable;
use crate::records::events::RunStateFile;
use crate::records::run::Run;
use crate::runs::Runs;
use crate::runs::life::GoesOn;

impl Runs {
    /// Pauses, resumes or cancels a run.
    pub(crate) async fn command(&self, id: &RunId, command: BenchmarkCommand) -> Result<Arc<Run>> {
        let mut run = self.loaded.known(id).await?;
        if command == BenchmarkCommand::Resume {
            let is_done =
                |run: &Run| run.phase() == RunPhase::Finished && run.table(DialogueTable::is_complete);
            if is_done(&run) && self.store.is_shared() {
                // The disk may have lost what was read before.
                self.loaded.discard(&run).await;
                run = self.loaded.known(id).await?;
            }
            if is_done(&run) {
                return Ok(run);
            }
            self.begin(&run, GoesOn::Resumed).await?;
            for spec in &run.models {
                let model = &spec.label;
                self.queue.call(&run, |queue, at| async move { queue.unpark(&at, model).await }).await?;
            }
            self.signal.touch();
            tracing::info!(run = %id, "resumed");
            return Ok(run);
        }
        let to = if command == BenchmarkCommand::Pause { RunPhase::Paused } else { RunPhase::Cancelled };
        self.change_state(&run, |state| match (to, state.phase) {
            (RunPhase::Paused, phase @ (RunPhase::Cancelled | RunPhase::Finished))
            | (RunPhase::Cancelled, phase @ RunPhase::Finished) => {
                Err(conflict(format!("run {id} is {phase}")))
            }
            _ => Ok(Some(RunStateFile { phase: to, ..run.summed_up(state) })),
        })
        .await?;
        tracing::info!(run = %id, "{to}");
        Ok(run)
    }

    /// Queues failed dialogues again, except those with a pending retry. Units are added first; they are handed out when the
    /// run is active.
    pub(crate) async fn retry(&self, id: &RunId, causes: &[FailureCause]) -> Result<u64> {
        let run = self.loaded.known(id).await?;
        self.logs.open(&run).await?;
        run.attend();
        let is_wanted = |table: &DialogueTable, slot| {
            let failure = table.get(slot).and_then(|entry| entry.outcome.err());
            failure.is_some_and(|cause| causes.is_empty() || causes.contains(&cause))
        };
        let pending = run.pending_retries();
        let dialogues = self.ask_again(&run, &pending, is_wanted).await?;
        // Pending retries are asked even if a coordinator died before it reported them.
        if dialogues > 0 || !pending.is_empty() {
            self.rework(&run).await?;
            tracing::info!(run = %id, dialogues, "failed dialogues are asked again");
        }
        Ok(dialogues)
    }

    /// Removes a run from sink and queue. With `force`, an active run is cancelled first, and a run that cannot be loaded is
    /// removed too.
    pub(crate) async fn remove(&self, id: &RunId, force: bool) -> Result<()> {
        let _one = self.removing.lock().await;
        match self.loaded.known(id).await {
            Err(error) if error.code == ErrorCode::NotFound && self.store.sink.is_removed(id).await? => {}
            Err(error) if error.code == ErrorCode::NotFound => return Err(error),
            Err(error) if !force => {
                return Err(conflict(format!("{}; `--force` removes the run all the same", error.message)));
            }
            Err(_) => {
                self.queue.expect_leading().await?;
                self.store.sink.remove_run(id).await?;
            }
            Ok(run) => {
                if self.store.is_shared() {
                    let cancelled = self.change_state(&run, |state| match state.phase {
                        phase if phase.is_over() => Ok(None),
                        phase if !force => Err(conflict(format!(
                            "run {id} is {phase}: cancel it first, or `--force` does both"
                        ))),
                        _ => Ok(Some(RunStateFile { phase: RunPhase::Cancelled, ..state })),
                    });
                    match cancelled.await {
                        // Its log cannot be written any more.
                        Err(error) if force && !error.code.is_transient() => {}
                        cancelled => drop(cancelled?),
                    }
                } else if !force {
                    self.expect_removable(id).await?;
                }
                self.queue.expect_leading().await?;
                // Who removes it needs the lock.
                self.loaded.discard(&run).await;
                self.store.sink.remove_run(id).await?;
            }
        }
        self.loaded.forget(id);
        self.health.note_queue(self.queue.raw().forget_run(id).await)?;
        self.signal.touch();
        tracing::info!(run = %id, "removed");
        Ok(())
    }

    /// Sees that a run is not one that a fleet goes on with, now or when its coordinators are back.
    ///
    /// # Errors
    /// It is; or its state cannot be read.
    pub async fn expect_removable(&self, id: &RunId) -> Result<()> {
        match self.loaded.state(id).await? {
            Some(RunStateFile { fleet: true, phase, .. }) if !phase.is_over() => Err(conflict(format!(
                "run {id} is {phase} in a fleet, which goes on with it when a coordinator starts: cancel it there first, \
                 with --fleet URL, or remove it all the same with `--force`"
            ))),
            _ => Ok(()),
        }
    }
}
