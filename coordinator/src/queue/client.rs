//! Reconciles queue and log: joins a run's queue, or rebuilds it from manifest and record log.
//!
//! The queue is never the source of truth. If it is lost, it follows from the run's manifest (all units, always in the same
//! order) and from the log (the dialogues that have a record). Creating an existing queue joins it, and unit ids are positions,
//! so that who goes on learns where to continue.

use std::sync::Arc;

use domain::{ErrorCode, ServiceError};
use queue::limits::UNITS_PER_ADD_MAX;
use queue::{NewUnit, QueueStore, Reap, RunRef, RunState, RunStatus, UnitId};

use crate::errors::{Result, is_out_of_step, not_found};
use crate::health::Health;
use crate::metrics;
use crate::options::CoordinatorOptions;
use crate::queue::generation::{self, Beyond, Step};
use crate::queue::queued_unit::new_unit;
use crate::queue::signal::WorkSignal;
use crate::records::dialogues::DialogueTable;
use crate::records::events::RunStateFile;
use crate::records::loaded::LoadedRuns;
use crate::records::run::Run;
use crate::records::store::Store;

/// How often a generation is claimed before the caller has to come again. A claim fails where another coordinator
/// succeeds, so each attempt is as many coordinators as build the same queue at the same moment.
const CLAIMS_MAX: u32 = 8;

/// How often queue and log are reconciled for one call before its caller has to come again. Each time, another coordinator has
/// built the queue anew meanwhile.
const RECONCILED_MAX: u32 = 4;

/// The queues of runs, with what they are reconciled with.
pub(crate) struct QueueClient {
    options: CoordinatorOptions,
    raw: Arc<dyn QueueStore>,
    store: Arc<Store>,
    loaded: Arc<LoadedRuns>,
    signal: Arc<WorkSignal>,
    health: Arc<Health>,
}

impl QueueClient {
    pub(crate) fn new(
        options: CoordinatorOptions,
        raw: Arc<dyn QueueStore>,
        store: Arc<Store>,
        loaded: Arc<LoadedRuns>,
        signal: Arc<WorkSignal>,
        health: Arc<Health>,
    ) -> Self {
        Self { options, raw, store, loaded, signal, health }
    }

    /// The queue itself, for calls that belong to no generation of a run.
    pub(crate) fn raw(&self) -> &dyn QueueStore {
        &*self.raw
    }

    /// Sees that this process leads the fleet, by a round that the queue's server takes.
    ///
    /// # Errors
    /// Another one does, or nobody can say.
    pub(crate) async fn expect_leading(&self) -> Result<()> {
        match self.raw.now_ms().await {
            // Where the server takes no writes, nobody else begins to lead.
            Err(queue::Error::Unwritable { .. }) => Ok(()),
            led => self.health.note_queue(led).map(drop),
        }
    }

    /// The generation of a run's queue. If it is unknown, joins or builds the queue.
    pub(crate) async fn at(&self, run: &Arc<Run>) -> Result<RunRef> {
        match run.at() {
            Some(at) => Ok(at),
            None => self.join(run, None).await,
        }
    }

    /// Calls the queue for a run. If the queue has lost the run, or was rebuilt, reconciles them and repeats the call.
    pub(crate) async fn call<T, F>(
        &self,
        run: &Arc<Run>,
        call: impl Fn(Arc<dyn QueueStore>, RunRef) -> F,
    ) -> Result<T>
    where
        F: Future<Output = queue::Result<T>>,
    {
        let mut at = self.at(run).await?;
        for _ in 0..RECONCILED_MAX {
            let generation = at.generation;
            match call(Arc::clone(&self.raw), at).await {
                Err(error) if is_out_of_step(&error) => {
                    tracing::warn!(run = %run.id(), %error, "reconciling queue and log");
                    at = self.join(run, Some(generation)).await?;
                }
                result => return self.health.note_queue(result),
            }
        }
        self.health.note_queue(call(Arc::clone(&self.raw), at).await)
    }

    /// Checks that a run without state exists. If not, it is forgotten, so that no record of it is acknowledged.
    ///
    /// # Errors
    /// The run does not exist.
    pub(crate) async fn expect(&self, run: &Arc<Run>) -> Result<()> {
        let removed = self.store.sink.is_removed(run.id()).await?;
        if !removed && self.store.manifest(run.id()).await?.is_some() {
            return Ok(()); // Just created: its state is written after its manifest.
        }
        self.loaded.forget(run.id());
        self.signal.touch();
        if removed {
            self.health.note_queue(self.raw.forget_run(run.id()).await)?;
        }
        Err(not_found(format!("run {} is not in {} any more", run.id(), self.store.sink)))
    }

    /// Reconciles run and queue; returns the current queue. `stale` is the generation that the caller found to be gone; if
    /// another caller has reconciled meanwhile, nothing is left to do.
    pub(crate) async fn join(&self, run: &Arc<Run>, stale: Option<u64>) -> Result<RunRef> {
        let mut unused = run.joining.lock().await;
        match run.at() {
            Some(at) if Some(at.generation) != stale => Ok(at),
            _ => self.reconcile(run, &mut unused).await,
        }
    }

    async fn reconcile(&self, run: &Arc<Run>, unused: &mut Option<u64>) -> Result<RunRef> {
        for _ in 0..RECONCILED_MAX {
            let state = match run.known_state() {
                Some(state) => state,
                // If the run was removed, its queue must not be rebuilt.
                None => self.expect(run).await.map(|()| RunStateFile::default())?,
            };
            let status = self.found_or_built(run, unused).await?;
            match self.tell(&status.at, status.state, &state).await {
                // The queue was lost since it was found.
                Err(error) if is_out_of_step(&error) => continue,
                told => self.health.note_queue(told)?,
            }
            run.set_at(status.at.clone());
            self.signal.touch();
            return Ok(status.at);
        }
        Err(self.busy(run))
    }

    /// What a caller hears who has to come again.
    fn busy(&self, run: &Run) -> ServiceError {
        let message = format!("run {}: other coordinators are building its queue", run.id());
        ServiceError::new(ErrorCode::Unavailable, message)
    }

    /// The queue of a run in its latest generation: as it is, or built in the next one, which is claimed first. A queue for another
    /// plan, because the run was extended or restored from a copy of before, gives way to one of the next generation, so that
    /// whoever still works by that plan finds out.
    async fn found_or_built(&self, run: &Arc<Run>, unused: &mut Option<u64>) -> Result<RunStatus> {
        for _ in 0..CLAIMS_MAX {
            // In this order: who reads the claims last would take a queue that was built in between for an old one.
            let claimed = self.health.note_sink(self.store.sink.generation(run.id()).await)?;
            let found = self.health.note_queue(self.raw.run(run.id()).await)?;
            let (found, outdated) = match found {
                Some(status) if status.plan_hash != run.manifest.plan_hash => {
                    (None, Some(status.at.generation))
                }
                found => (found, None),
            };
            let is_first =
                found.is_none() && outdated.is_none() && claimed.is_none_or(|last| last <= run.after);
            let recorded = run.table(DialogueTable::highest_generation).max(outdated.unwrap_or_default());
            let generation = match (
                generation::step(
                    found.as_ref().map(|status| status.at.generation),
                    claimed,
                    recorded,
                    *unused,
                    Beyond::now(),
                ),
                found,
            ) {
                (Step::Join, Some(status)) => return Ok(status),
                (Step::Adopt(generation), Some(status)) => {
                    let claim = self.store.sink.claim_generation(run.id(), generation).await;
                    self.health.note_sink(claim)?;
                    return Ok(status);
                }
                (Step::Build(generation), found) => {
                    if let Some(old) = found {
                        let (run, old) = (run.id(), old.at.generation);
                        tracing::warn!(%run, old, generation, "the queue came back from an older state; it is built anew");
                    }
                    generation
                }
                (Step::Join | Step::Adopt(_), None) => continue,
            };
            let is_ours = *unused == Some(generation)
                || self.health.note_sink(self.store.sink.claim_generation(run.id(), generation).await)?;
            if !is_ours {
                continue; // Another coordinator builds it, or has.
            }
            // From here on nobody can say whether it was built: whoever calls may be cut off before the answer.
            *unused = None;
            if let Some(old) = outdated {
                tracing::info!(run = %run.id(), old, generation, "the run's queue is built anew");
            }
            let built = self.raw.create_run(&run.spec(&self.options, generation)).await;
            // Where nobody can say whether it was built, leases of this generation may be about.
            if built.as_ref().is_err_and(|error| !matches!(error, queue::Error::Unavailable { .. })) {
                *unused = Some(generation);
            }
            let status = self.health.note_queue(built)?;
            let is_ours = status.at.generation == generation;
            // The first generation of a run is no loss of another one, and an extension is none.
            if is_ours && !is_first && outdated.is_none() {
                metrics::rebuilt();
            }
            return Ok(status);
        }
        Err(self.busy(run))
    }

    /// Sets the queue's state to that in the sink, if the queue in this generation has another one. Who joins a later generation
    /// tells it what is in the sink by then.
    pub(crate) async fn set_state(
        &self,
        run: &Arc<Run>,
        at: &RunRef,
        from: RunState,
        file: &RunStateFile,
    ) -> Result<()> {
        match self.tell(at, from, file).await {
            Err(error) if is_out_of_step(&error) => self.join(run, Some(at.generation)).await.map(drop),
            told => self.health.note_queue(told),
        }
    }

    /// The same of a run that need not be loaded. Whoever has built its queue anew since has told it what is in the sink.
    pub(crate) async fn set_state_of(&self, queued: &RunStatus, file: &RunStateFile) -> Result<()> {
        match self.tell(&queued.at, queued.state, file).await {
            Err(error) if is_out_of_step(&error) => Ok(()),
            told => self.health.note_queue(told),
        }
    }

    async fn tell(&self, at: &RunRef, from: RunState, file: &RunStateFile) -> queue::Result<()> {
        let to = file.queue_state();
        if from == to {
            return Ok(());
        }
        if !from.may_become(to) {
            // Every state may become active, and active every other one.
            self.raw.set_state(at, RunState::Active).await?;
        }
        self.raw.set_state(at, to).await.map(drop)
    }

    /// Adds the units of the plan that the queue lacks.
    pub(crate) async fn fill(&self, run: &Arc<Run>) -> Result<()> {
        let _one = run.filling.lock().await;
        if run.is_filled() {
            return Ok(());
        }
        self.call(run, |_, at| self.fill_generation(run, at)).await?
    }

    /// The same in one generation. What fails inside is no fault of the queue.
    async fn fill_generation(&self, run: &Arc<Run>, at: RunRef) -> queue::Result<Result<()>> {
        // If all dialogues have a record, the run needs no units except those of retries.
        if !run.table(DialogueTable::is_complete) {
            let mut next = self.raw.run(run.id()).await?.map_or(0, |status| status.next_unit.0);
            // The next leader of a fleet goes on with the numbers of units, whatever is answered by then; completed dialogues
            // are skipped when units are handed out. A single process leaves them out at once.
            let done: Vec<bool> = match self.store.is_shared() {
                true => Vec::new(),
                false => run.table(|table| (0..table.len()).map(|slot| table.get(slot).is_some()).collect()),
            };
            let (done, layout) = (&done, &run.layout);
            let is_done = |model, task, iteration| {
                !done.is_empty() && layout.slot(model, task, iteration).is_some_and(|slot| done[slot])
            };
            let units_from = |next: u64| run.plan.units_without(is_done).skip(next as usize);
            let mut units = units_from(next);
            loop {
                let chunk = units.by_ref().take(UNITS_PER_ADD_MAX);
                let chunk: Result<Vec<NewUnit>> = chunk.map(|unit| new_unit(&run.plan, unit, None)).collect();
                let chunk = match chunk {
                    Ok(chunk) if chunk.is_empty() => break,
                    Ok(chunk) => chunk,
                    Err(error) => return Ok(Err(error)),
                };
                let added = self.raw.add_units(&at, UnitId(next), &chunk).await?;
                next = added.next.0;
                if !added.applied {
                    units = units_from(next);
                }
                self.signal.touch();
            }
        }
        if run.at() == Some(at) {
            run.set_filled();
        }
        Ok(Ok(()))
    }

    /// Takes over the leases of dead workers.
    pub(crate) async fn reap(&self, run: &Arc<Run>, whose: &Reap) -> Result<()> {
        loop {
            let reaped = self.call(run, |queue, at| async move { queue.reap(&at, whose).await }).await?;
            if !reaped.is_empty() {
                metrics::taken_over(whose, &reaped);
                tracing::warn!(
                    run = %run.id(),
                    ?whose,
                    returned = reaped.returned.len(),
                    suspected = reaped.suspected.len(),
                    struck = reaped.struck.len(),
                    dead = reaped.dead.len(),
                    "took over units of dead workers"
                );
                self.signal.touch();
            }
            if !reaped.more {
                return Ok(());
            }
        }
    }

    /// Appends units for dialogues that are retried or were lost, behind those of the plan.
    pub(crate) async fn append_units(&self, run: &Arc<Run>, units: Vec<NewUnit>) -> Result<()> {
        for _ in 0..=RECONCILED_MAX {
            self.fill(run).await?;
            let _one = run.filling.lock().await;
            let at = self.at(run).await?;
            if !run.is_filled() {
                continue; // Its queue was built anew since.
            }
            match self.append(&at, &units).await {
                Err(error) if is_out_of_step(&error) => {
                    self.join(run, Some(at.generation)).await.map(drop)?;
                }
                appended => {
                    self.signal.touch();
                    return self.health.note_queue(appended);
                }
            }
        }
        Err(self.busy(run))
    }

    async fn append(&self, at: &RunRef, units: &[NewUnit]) -> queue::Result<()> {
        let Some(status) = self.raw.run(&at.run).await? else {
            return Err(queue::Error::RunGone { run: at.run.clone() });
        };
        let mut next = status.next_unit;
        for chunk in units.chunks(UNITS_PER_ADD_MAX) {
            loop {
                // Where the number is that of another generation, this is refused.
                let added = self.raw.add_units(at, next, chunk).await?;
                next = added.next;
                if added.applied {
                    break;
                }
            }
        }
        Ok(())
    }
}
