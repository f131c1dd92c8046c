//! Creates and begins runs, and changes their state: first in the log, then in the queue.

use std::sync::Arc;

use domain::control::RunPhase;
use domain::{ErrorCode, ServiceError};
use results::RunManifest;

use crate::errors::Result;
use crate::records::events::{RunEvent, RunStateFile};
use crate::records::run::Run;
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
    /// Creates and begins a run. One that is there already is begun.
    pub(crate) async fn create(&self, manifest: RunManifest) -> Result<()> {
        self.queue.expect_leading().await?;
        match self.store.sink.create_run(&manifest).await.map_err(ServiceError::from) {
            Err(error) if error.code == ErrorCode::Conflict => {}
            created => drop(self.health.note_sink(created)?),
        }
        let run = self.loaded.known(&manifest.run).await?;
        self.begin(&run, GoesOn::Named).await.map(drop)
    }

    /// Makes this coordinator tend a run, and fills its queue; `false` if it does not go on.
    pub(crate) async fn begin(&self, run: &Arc<Run>, goes_on: GoesOn) -> Result<bool> {
        let fleet = self.store.is_shared();
        self.logs.open(run).await?;
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

    /// Changes the state of a run to what `decide` makes of it, unless that is nothing, and tells the queue; returns the state. What
    /// goes on is in the sink's list before the log says so, and what is over after that: who looks for runs that go on misses none.
    pub(crate) async fn change_state(
        &self,
        run: &Arc<Run>,
        decide: impl FnOnce(RunStateFile) -> Result<Option<RunStateFile>>,
    ) -> Result<Option<RunStateFile>> {
        let state = {
            let _one = run.changing.lock().await;
            // What earlier writers said last is known once the log is open.
            let epoch = self.logs.open(run).await?.epoch;
            let known = run.known_state();
            let known =
                known.unwrap_or_else(|| RunStateFile { phase: run.phase(), ..RunStateFile::default() });
            let Some(state) = decide(known)? else { return Ok(None) };
            let state = RunStateFile { epoch: 0, ..state };
            if !state.phase.is_over() {
                let listed = RunStateFile { epoch, ..state.clone() };
                self.health.note_sink(self.store.put_state(run.id(), &listed).await)?;
            }
            run.set_listed(!state.phase.is_over());
            self.logs.append(run, RunEvent::State(state.clone())).await?;
            state
        };
        if state.phase.is_over() {
            self.logs.list_end(run).await?;
        }
        run.attend();
        let at = self.queue.at(run).await?;
        // If the queue was joined just now, it has the state already.
        if let Some(status) = self.health.note_queue(self.queue.raw().run(run.id()).await)? {
            self.queue.set_state(run, &at, status.state, &state).await?;
        }
        self.signal.touch();
        Ok(Some(state))
    }

    /// Writes the state of a run that was copied from elsewhere, as it was there.
    pub(crate) async fn take_state(&self, run: &Arc<Run>, state: &RunStateFile) -> Result<()> {
        if run.known_state().map(|known| known.phase) == Some(state.phase) {
            // Its log was copied, too.
            let epoch = self.store.sink.epoch(run.id()).await?.unwrap_or_default();
            return self.store.put_state(run.id(), &RunStateFile { epoch, ..state.clone() }).await;
        }
        let state = RunStateFile { epoch: 0, ..state.clone() };
        self.logs.append(run, RunEvent::State(state)).await?;
        self.logs.list_end(run).await
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
}
