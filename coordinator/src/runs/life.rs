//! Creates and begins runs, and changes their state: first in the sink, then in the queue.

use std::sync::Arc;

use domain::control::RunPhase;
use domain::{ErrorCode, ServiceError};
use results::RunManifest;

use crate::errors::Result;
use crate::records::retry::Rework;
use crate::records::run::{PendingSeal, Run};
use crate::records::store::{CHANGES_MAX, Revised, RunStateFile};
use crate::runs::Runs;

/// Who lets a run go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GoesOn {
    /// A submission of the same configuration, if it is not over.
    Unfinished,
    /// Whoever created it, extended it or named it. In a fleet a paused one stays so until a user resumes it.
    Named,
    /// A user who resumes it.
    Resumed,
}

impl Runs {
    /// Creates and begins a run. If another coordinator has created it, that run is begun.
    pub(crate) async fn create(&self, manifest: RunManifest) -> Result<()> {
        let created = self.store.sink.create_run(&manifest).await.map_err(ServiceError::from);
        let is_ours = match created {
            Err(error) if error.code == ErrorCode::Conflict => false,
            created => self.health.note_sink(created).map(|_| true)?,
        };
        let run = match self.loaded.known(&manifest.run).await {
            // Who was quicker is still writing it down: the next round finds it.
            Err(error) if !is_ours && error.code == ErrorCode::NotFound => return Ok(()),
            run => run?,
        };
        self.begin(&run, GoesOn::Named).await.map(drop)
    }

    /// Makes this coordinator tend a run, and fills its queue; `false` if it does not go on.
    pub(crate) async fn begin(&self, run: &Arc<Run>, goes_on: GoesOn) -> Result<bool> {
        self.logs.lock(run).await?;
        let fleet = self.store.is_shared();
        if !fleet {
            // Lock the run: a process that holds the lock is running it.
            self.logs.committer(run).await?;
        }
        self.packs.keep(&run.material.pack_hash).await?;
        // A paused run of a single process was interrupted.
        let stays =
            |state: &RunStateFile| fleet && goes_on != GoesOn::Resumed && state.phase == RunPhase::Paused;
        let begun = self.change_state(run, |state| {
            if goes_on == GoesOn::Unfinished && state.phase.is_over() {
                return Ok(None);
            }
            let phase = if stays(&state) { RunPhase::Paused } else { RunPhase::Active };
            Ok(Some(RunStateFile { phase, fleet, ..state }))
        });
        let Some(state) = begun.await? else { return Ok(false) };
        self.queue.fill(run).await?;
        if state.rework && !fleet {
            // No other process has queued it.
            self.queue_retries(run).await?;
        }
        Ok(true)
    }

    /// Changes the state of a run, then updates the queue: writes what `decide` makes of the newest state, unless that is
    /// nothing, and returns it. `decide` is asked again where another command was quicker. Every change leaves a revision, also
    /// one that changes nothing: who has decided by the state of before finds out.
    pub(crate) async fn change_state(
        &self,
        run: &Arc<Run>,
        decide: impl Fn(RunStateFile) -> Result<Option<RunStateFile>>,
    ) -> Result<Option<RunStateFile>> {
        for attempt in 0..CHANGES_MAX {
            let Revised { revision, content } = self.store.revised_state(run.id()).await?;
            // A run without a state is as its records are.
            let state =
                content.unwrap_or_else(|| RunStateFile { phase: run.phase(), ..RunStateFile::default() });
            let is_finished = state.phase == RunPhase::Finished;
            let state = match decide(state) {
                Ok(Some(state)) => state,
                nothing => {
                    if is_finished && attempt > 0 {
                        // Another coordinator has finished it, after it was reopened here for what is not wanted any more.
                        self.close_again(run).await?;
                    }
                    return nothing;
                }
            };
            if self.revise_state(run, revision, &state).await? {
                return Ok(Some(state));
            }
        }
        let message = format!("the state of run {} is being changed by others", run.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }

    /// Writes the state that follows this revision, then updates the queue; `false` if another command was quicker. A finished
    /// run is reopened first.
    pub(crate) async fn revise_state(
        &self,
        run: &Arc<Run>,
        after: u32,
        state: &RunStateFile,
    ) -> Result<bool> {
        if state.phase != RunPhase::Finished {
            self.reopen(run).await?;
        }
        if !self.health.note_sink(self.store.revise_state(run.id(), after, state).await)? {
            return Ok(false);
        }
        if state.rework {
            run.set_rework(Rework::Unread);
        }
        let (mut told, mut state) = (after + 1, state.clone());
        for _ in 0..CHANGES_MAX {
            run.set_phase(state.phase);
            run.attend();
            let at = self.queue.at(run).await?;
            // If the queue was joined just now, it has the state already.
            if let Some(status) = self.health.note_queue(self.queue.raw().run(run.id()).await)? {
                self.queue.set_state(run, &at, status.state, &state).await?;
            }
            self.signal.touch();
            // A later command may have spoken to the queue first.
            match self.store.revised_state(run.id()).await? {
                Revised { revision, content: Some(later) } if revision > told => {
                    (told, state) = (revision, later);
                }
                _ => break,
            }
        }
        Ok(true)
    }

    /// Lets new records of a run count, if those that count were fixed.
    pub(crate) async fn reopen(&self, run: &Arc<Run>) -> Result<()> {
        if !run.is_closed() {
            return Ok(());
        }
        let ticket =
            self.queue.call(run, |queue, at| async move { queue.tickets(&at, 1).await }).await?.start;
        self.seals_seen.forget(run.id());
        if let Some(reopening) = run.reopening(ticket)
            && !self.seal(run, reopening).await?
        {
            let message = format!(
                "run {} was reopened by another command, or got records meanwhile; ask again",
                run.id()
            );
            return Err(ServiceError::new(ErrorCode::Unavailable, message));
        }
        Ok(())
    }

    /// Fixes the winners of a finished run anew, if a command reopened it that came too late to let it go on.
    pub(crate) async fn close_again(&self, run: &Arc<Run>) -> Result<()> {
        self.loaded.follow(run).await?;
        if let Some(closing) = run.closing() {
            self.seal(run, closing).await?;
        }
        Ok(())
    }

    /// Writes a seal, and notes it in the run. `false` if another coordinator was first, perhaps with other records, or if more was
    /// read of the log meanwhile: then the run is forgotten, and what its seals say will be read with its log.
    pub(crate) async fn seal(&self, run: &Arc<Run>, pending: PendingSeal) -> Result<bool> {
        let written = self.store.sink.seal(run.id(), pending.number, pending.event.clone()).await;
        let is_written = self.health.note_sink(written)?;
        let holds = is_written && run.seal(pending);
        if !holds {
            self.loaded.discard(run);
        }
        Ok(holds)
    }

    /// Makes a run active until no unit is left, even if every dialogue has a record.
    pub(crate) async fn rework(&self, run: &Arc<Run>) -> Result<()> {
        let fleet = self.store.is_shared();
        let changed = self.change_state(run, |state| {
            let phase = if state.phase == RunPhase::Paused { RunPhase::Paused } else { RunPhase::Active };
            Ok(Some(RunStateFile { phase, rework: true, fleet, ..state }))
        });
        changed.await.map(drop)
    }

    /// The state with the counts of a run, so that they can be shown without loading it.
    pub(crate) fn summed_up(&self, run: &Run, state: RunStateFile) -> RunStateFile {
        run.table(|table| RunStateFile { scored: table.scored(), failures: table.failures(), ..state })
    }
}
