//! The commands of users.

use std::sync::Arc;
use std::time::Duration;

use domain::control::{BenchmarkCommand, DeadLetterView, RunPhase, StrikeView};
use domain::{ErrorCode, FailureCause, RunId, ServiceError, WorkerId};
use jiff::Timestamp;
use queue::limits::{DEAD_LETTERS_PER_PAGE_MAX, FENCES_PER_CALL_MAX};
use queue::{Suspect, UnitId};

use crate::benchmarks::submit::GoesOn;
use crate::coordinator::Coordinator;
use crate::errors::{Result, conflict, not_found};
use crate::queue::queued_unit::QueuedUnit;
use crate::records::dialogues::DialogueTable;
use crate::records::log_handle::LogHandle;
use crate::records::run::Run;
use crate::records::store::RunStateFile;

impl Coordinator {
    pub(crate) async fn command_run(&self, id: &RunId, command: BenchmarkCommand) -> Result<Arc<Run>> {
        let run = self.runs.followed(id, Duration::ZERO).await?;
        self.commits.hold(&run).await?;
        if command == BenchmarkCommand::Resume {
            let phase = self.storage.state(id).await?.map_or(run.phase(), |state| state.phase);
            if phase == RunPhase::Finished && run.table(DialogueTable::is_complete) {
                return Ok(run);
            }
            self.activate(&run, GoesOn::Resumed).await?;
            for spec in &run.models {
                let model = &spec.label;
                self.queues.call(&run, |queue, at| async move { queue.unpark(&at, model).await }).await?;
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
            _ => Ok(Some(RunStateFile { phase: to, ..self.summed_up(&run, state) })),
        })
        .await?;
        tracing::info!(run = %id, "{to}");
        Ok(run)
    }

    /// The state with the counts of a run, so that they can be shown without loading it.
    pub(crate) fn summed_up(&self, run: &Run, state: RunStateFile) -> RunStateFile {
        run.table(|table| RunStateFile { scored: table.scored(), failures: table.failures(), ..state })
    }

    /// Queues failed dialogues again, except those with a pending retry. Units are added first; they are handed out when the
    /// run is active.
    pub(crate) async fn retry_run(&self, id: &RunId, causes: &[FailureCause]) -> Result<u64> {
        let run = self.runs.followed(id, Duration::ZERO).await?;
        self.commits.hold(&run).await?;
        if !self.storage.is_shared() {
            self.commits.committer(&run).await?;
        }
        run.attend();
        let is_wanted = |table: &DialogueTable, slot| {
            let failure = table.get(slot).and_then(|entry| entry.outcome.err());
            failure.is_some_and(|cause| causes.is_empty() || causes.contains(&cause))
        };
        let pending = self.pending_retries(&run).await?;
        let dialogues = self.ask_again(&run, &pending, is_wanted).await?;
        // Pending retries are asked even if a coordinator died before it reported them.
        if dialogues > 0 || pending.iter().any(|asked| *asked > 0) {
            self.rework(&run).await?;
            tracing::info!(run = %id, dialogues, "failed dialogues are asked again");
        }
        Ok(dialogues)
    }

    /// Makes a run active until no unit is left, even if every dialogue has a record.
    async fn rework(&self, run: &Arc<Run>) -> Result<()> {
        let fleet = self.storage.is_shared();
        let changed = self.change_state(run, |state| {
            let phase = if state.phase == RunPhase::Paused { RunPhase::Paused } else { RunPhase::Active };
            Ok(Some(RunStateFile { phase, rework: true, fleet, ..state }))
        });
        changed.await.map(drop)
    }

    /// Removes a run from sink and queue. With `force`, an active run is cancelled first, and a run that cannot be loaded is
    /// removed too. Other coordinators notice within a round.
    pub(crate) async fn remove_run(&self, id: &RunId, force: bool) -> Result<()> {
        match self.runs.known(id).await {
            Err(error) if error.code == ErrorCode::NotFound && self.storage.sink.is_removed(id).await? => {}
            Err(error) if error.code == ErrorCode::NotFound => return Err(error),
            Err(error) if !force => {
                return Err(conflict(format!("{}; `--force` removes the run all the same", error.message)));
            }
            Err(_) => self.storage.sink.remove_run(id).await?,
            Ok(run) => {
                self.commits.hold(&run).await?;
                if self.storage.is_shared() {
                    self.change_state(&run, |state| match state.phase {
                        phase if phase.is_over() => Ok(None),
                        phase if !force => Err(conflict(format!(
                            "run {id} is {phase}: cancel it first, or `--force` does both"
                        ))),
                        _ => Ok(Some(RunStateFile { phase: RunPhase::Cancelled, ..state })),
                    })
                    .await?;
                } else {
                    if !force {
                        self.expect_removable(id).await?;
                    }
                    // Nobody else writes it; who removes it needs the lock.
                    *run.log.lock().await = LogHandle::default();
                }
                self.storage.sink.remove_run(id).await?;
            }
        }
        self.runs.forget(id);
        self.health.note_queue(self.queue.forget_run(id).await)?;
        self.signal.touch();
        tracing::info!(run = %id, "removed");
        Ok(())
    }

    /// Sees that a run is not one that a fleet goes on with, now or when its coordinators are back.
    ///
    /// # Errors
    /// It is; or its state cannot be read.
    pub async fn expect_removable(&self, id: &RunId) -> Result<()> {
        match self.storage.state(id).await? {
            Some(RunStateFile { fleet: true, phase, .. }) if !phase.is_over() => Err(conflict(format!(
                "run {id} is {phase} in a fleet, which goes on with it when a coordinator starts: cancel it there first, \
                 with --coordinator URL, or remove it all the same with `--force`"
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) async fn drain(&self, worker: &WorkerId) -> Result<()> {
        if self.health.note_queue(self.queue.drain_worker(worker).await)? {
            return Ok(());
        }
        Err(not_found(format!("no worker `{worker}` is registered")))
    }

    pub(crate) async fn dead(&self, id: &RunId, unit: Option<u64>) -> Result<Vec<DeadLetterView>> {
        let run = self.runs.known(id).await?;
        let letters = match unit {
            None => [self.suspects(&run, true).await?, self.suspects(&run, false).await?].concat(),
            Some(unit) => {
                let letter = self
                    .queues
                    .call(&run, |queue, at| async move { queue.suspect(&at, UnitId(unit)).await })
                    .await?;
                vec![
                    letter
                        .ok_or_else(|| not_found(format!("no worker died with unit {unit} of run {id}")))?,
                ]
            }
        };
        letters.into_iter().map(|letter| view(&run, letter)).collect()
    }

    /// All dead letters of a run (`dead`), or all suspects.
    pub(crate) async fn suspects(&self, run: &Arc<Run>, dead: bool) -> Result<Vec<Suspect>> {
        let mut letters: Vec<Suspect> = Vec::new();
        loop {
            let after = letters.last().map(|letter| letter.unit);
            let page = self
                .queues
                .call(run, |queue, at| async move {
                    queue.suspects(&at, dead, after, DEAD_LETTERS_PER_PAGE_MAX).await
                })
                .await?;
            if page.is_empty() {
                return Ok(letters);
            }
            letters.extend(page);
        }
    }

    pub(crate) async fn requeue_units(&self, id: &RunId, units: &[u64]) -> Result<u64> {
        let run = self.runs.known(id).await?;
        let units: Vec<UnitId> = match units {
            [] => self.suspects(&run, true).await?.into_iter().map(|letter| letter.unit).collect(),
            units => units.iter().copied().map(UnitId).collect(),
        };
        let mut requeued = 0;
        for units in units.chunks(FENCES_PER_CALL_MAX) {
            requeued +=
                self.queues.call(&run, |queue, at| async move { queue.requeue(&at, units).await }).await?;
        }
        if requeued > 0 {
            self.rework(&run).await?;
            tracing::info!(run = %id, requeued, "units get another chance");
        }
        Ok(requeued)
    }

    /// Problems that endanger a long run, the worst first.
    pub(crate) async fn check_all(&self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        match self.queue.check().await {
            Ok(found) => warnings.extend(found),
            Err(error) => warnings.insert(0, crate::errors::of_queue(&error).message),
        }
        warnings.extend(self.storage.check().await);
        Ok(warnings)
    }

    /// Whether this coordinator can work.
    pub(crate) fn fitness(&self) -> Result<()> {
        let unfit = |message: String| Err(ServiceError::new(ErrorCode::Unavailable, message));
        match self.health.trouble() {
            Some(trouble) => unfit(trouble),
            None if self.config.tends && !self.health.is_tended() => {
                unfit("runs are still being loaded".into())
            }
            None => Ok(()),
        }
    }
}

fn view(run: &Run, letter: Suspect) -> Result<DeadLetterView> {
    let payload = QueuedUnit::read(&letter.payload)?;
    let model = run.layout.model(&letter.model);
    let key = |iteration: &u32| run.key(model?, payload.task, *iteration);
    let strike = |death: queue::Death| StrikeView {
        worker: death.worker,
        attempt: death.attempt,
        cause: death.cause,
        at: i64::try_from(death.at_ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .unwrap_or_default(),
    };
    Ok(DeadLetterView {
        unit: letter.unit.0,
        dialogues: payload.iterations.iter().filter_map(key).collect(),
        strikes: letter.deaths.into_iter().map(strike).collect(),
        suspect: !letter.dead,
    })
}
