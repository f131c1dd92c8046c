//! From a configuration to a run: checked, planned, written down, queued.

use std::sync::Arc;

use domain::control::{RunPhase, Submission};
use domain::{Connector, ModelSpec};
use futures::FutureExt;
use history::Event;
use results::RunManifest;

use crate::config::MAX_DIALOGUES;
use crate::configuration::Benchmark;
use crate::core::Core;
use crate::errors::{Result, conflict, internal, invalid};
use crate::manifest::{NewManifestError, new_manifest};
use crate::plan::{Plan, outlines};
use crate::run::Run;
use crate::storage::RunStateFile;

/// What error messages call a configuration that came without a file.
const CONFIGURATION: &str = "configuration";

impl Core {
    /// Plans a run and queues it, or joins the unfinished one of the same configuration.
    pub(crate) async fn submit_run(self: &Arc<Self>, submission: Submission) -> Result<Arc<Run>> {
        let benchmark: Benchmark = serde_json::from_value(submission.configuration)
            .map_err(|error| invalid(format!("{CONFIGURATION}: {error}")))?;
        benchmark.validate(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        if self.is_shared() {
            let replays = |model: &&ModelSpec| model.connector == Connector::Replay;
            if let Some(replayed) = benchmark.models.iter().find(replays) {
                return Err(invalid(format!(
                    "model `{}` replays files of this machine, which workers elsewhere do not have; use `kgfleet run`",
                    replayed.label
                )));
            }
            benchmark.validate_fleet(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        } else {
            benchmark.validate_local(CONFIGURATION).map_err(|error| invalid(error.to_string()))?;
        }
        let pack = self.submitted_pack(&benchmark, submission.pack).await?;
        let plan = Plan::new(&benchmark, &outlines(&pack)).map_err(|error| invalid(error.to_string()))?;
        if plan.dialogues() > MAX_DIALOGUES {
            let planned = plan.dialogues();
            return Err(invalid(format!(
                "{planned} dialogues are planned; a run may have {MAX_DIALOGUES}: split the configuration"
            )));
        }
        let manifest = new_manifest(&benchmark, &pack, &plan).map_err(|error| match error {
            NewManifestError::Configuration(error) => internal(error),
            NewManifestError::Protection(error) => conflict(error.to_string()),
        })?;
        if let Some(run) = self.unfinished(&manifest).await? {
            self.begin(&run).await?;
            return Ok(run);
        }
        self.storage.create(&manifest).await?;
        let run = self.known(&manifest.run).await?;
        self.begin(&run).await?;
        tracing::info!(run = %run.id(), planned = manifest.planned_dialogues, "submitted");
        Ok(run)
    }

    /// Makes a run one of this coordinator's and fills its queue.
    pub(crate) async fn begin(self: &Arc<Self>, run: &Arc<Run>) -> Result<()> {
        self.hold(run).await?;
        let state = self.storage.state(run.id()).await?.unwrap_or_default();
        // A paused run of a fleet stays paused until somebody resumes it; one of a single process was interrupted.
        let stays = self.is_shared() && state.phase == RunPhase::Paused;
        let phase = if stays { RunPhase::Paused } else { RunPhase::Active };
        let state = RunStateFile { phase, fleet: self.is_shared(), ..state };
        if !self.is_shared() {
            // The right to write the run: whoever else has it is running it.
            self.committer(run).await?;
        }
        self.keep_pack(&run.material.pack_hash).await?;
        let rework = state.rework;
        self.change_state(run, state).await?;
        self.fill(run).await?;
        if rework && !self.is_shared() {
            // Nobody else has queued it.
            self.queue_retries(run).await?;
        }
        Ok(())
    }

    /// Writes down where a run stands, then tells the queue. One that had finished is reopened first.
    pub(crate) async fn change_state(&self, run: &Arc<Run>, state: RunStateFile) -> Result<()> {
        if state.phase != RunPhase::Finished && run.is_closed() {
            let queue = &self.queue;
            let call = |at| async move { queue.tickets(&at, 1).await }.boxed();
            let ticket = self.on_queue(run, call).await?.start;
            if let Some((number, event)) = run.reopen(ticket)
                && !self.note_sink(self.storage.seal(run.id(), number, event).await)?
            {
                self.runs.discard(run);
                return Err(conflict(format!("run {} was reopened by another command; ask again", run.id())));
            }
            self.events.write(run.id(), Event::Reopened {}).await;
        }
        self.note_sink(self.storage.set_state(run.id(), &state).await)?;
        run.set_phase(state.phase);
        run.attend();
        let at = self.at(run).await?;
        // Where the queue was joined just now it has the state already.
        if let Some(status) = self.note_queue(self.queue.run(run.id()).await)? {
            self.set_queue_state(&at, status.state, &state).await?;
        }
        self.backlog.touch();
        Ok(())
    }

    /// The latest run of the same configuration and plan that is not over.
    async fn unfinished(&self, wanted: &RunManifest) -> Result<Option<Arc<Run>>> {
        let same = |old: &RunManifest| {
            old.configuration_hash == wanted.configuration_hash && old.plan_hash == wanted.plan_hash
        };
        for (id, old) in self.storage.found().await?.into_iter().rev() {
            if !old.is_ok_and(|old| same(&old)) {
                continue;
            }
            match self.storage.state(&id).await {
                Ok(Some(state)) if state.phase.is_over() => continue,
                _ => {}
            }
            // One that cannot be loaded cannot go on; what to do about it is no question of this submission.
            let loaded = self.known(&id).await;
            match self.apart(&id, loaded)? {
                Some(run) if !run.phase().is_over() => return Ok(Some(run)),
                _ => {}
            }
        }
        Ok(None)
    }
}
