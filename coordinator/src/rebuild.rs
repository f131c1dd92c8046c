//! Queue and log in step: a run's queue joined, or built anew from manifest and record log.
//!
//! The queue holds no truth. Whatever it has lost follows from the run's manifest (all units, always in the same
//! order) and from the log (the dialogues that have a record). Any number of coordinators may do this at once: creating
//! joins, committing is idempotent, and units have ids by their place, so that who is second is told where to go on.

use std::sync::Arc;
use std::time::Duration;

use domain::{ErrorCode, ServiceError};
use queue::limits::{MAX_COMMITS_PER_CALL, MAX_UNITS_PER_ADD};
use queue::{NewUnit, RunRef, RunState, UnitId};
use results::log::{LogTail, Parsed, RecordHead, TailPart};

use crate::aggregate::Aggregate;
use crate::core::Core;
use crate::errors::{Result, conflict, internal, is_out_of_step, of_queue};
use crate::payload::new_unit;
use crate::remarks::Remark;
use crate::run::{Found, Run};
use crate::storage::RunStateFile;

/// Highest generation that is believed. Redis counts exactly up to 2^53, and no run comes near this.
const GENERATION_MAX: u64 = 1 << 52;

impl Core {
    /// Brings run and queue into step and returns the building of the queue. `stale` is the generation that the caller
    /// found to be gone; where another caller has seen to it meanwhile, nothing is left to do.
    pub(crate) async fn join(&self, run: &Arc<Run>, stale: Option<u64>) -> Result<RunRef> {
        let _one = run.joining.lock().await;
        if let Some(at) = run.at()
            && Some(at.generation) != stale
        {
            return Ok(at);
        }
        // Records of others first: what is known to be answered is not handed out again, whatever the queue knows.
        self.follow(run).await?;
        let state = match self.storage.state(run.id()).await? {
            Some(state) => state,
            // Where it was removed, its queue is not to be built again.
            None => self.expect(run).await.map(|()| RunStateFile::default())?,
        };
        let found = self.note_queue(self.queue.run(run.id()).await)?;
        let status = match found {
            Some(status) => status,
            None => self.note_queue(self.queue.create_run(&run.spec(&self.config)).await)?,
        };
        if status.plan_hash != run.manifest.plan_hash {
            return Err(conflict(format!(
                "the queue holds run {} with plan {}, its manifest says {}",
                run.id(),
                status.plan_hash,
                run.manifest.plan_hash
            )));
        }
        self.set_queue_state(&status.at, status.state, &state).await?;
        run.set_phase(state.phase);
        run.set_at(status.at.clone());
        self.backlog.touch();
        Ok(status.at)
    }

    /// Gives the queue the state that the sink says.
    pub(crate) async fn set_queue_state(
        &self,
        at: &RunRef,
        from: RunState,
        file: &RunStateFile,
    ) -> Result<()> {
        let to = file.queue_state();
        if from == to {
            return Ok(());
        }
        if !from.may_become(to) {
            // Every state may become active, and active every other one.
            self.note_queue(self.queue.set_state(at, RunState::Active).await)?;
        }
        self.note_queue(self.queue.set_state(at, to).await).map(|_| ())
    }

    /// Commits every record that counts and adds the units of the plan that the queue has not got yet.
    pub(crate) async fn fill(&self, run: &Arc<Run>) -> Result<()> {
        let _one = run.filling.lock().await;
        if run.is_filled() {
            return Ok(());
        }
        let at = self.at(run).await?;
        let in_step = |error: queue::Error| {
            if is_out_of_step(&error) {
                run.set_filled_no_more();
            }
            of_queue(&error)
        };
        let mut from = Some(0);
        while let Some(first) = from {
            let (commits, next) = run.winners(first, MAX_COMMITS_PER_CALL);
            if !commits.is_empty() {
                self.queue.commit(&at, &commits).await.map_err(in_step)?;
            }
            from = next;
        }
        // A run whose dialogues all have a record needs no units, only what it is asked to do again.
        if !run.table(Aggregate::is_complete) {
            let status = self.note_queue(self.queue.run(run.id()).await)?;
            let mut next = status.map_or(0, |status| status.next_unit.0);
            // Coordinators of a fleet must agree on the numbers of units, whatever each of them knows of the log; what is
            // done is passed over when it is handed out. One alone leaves it out at once.
            let done: Vec<bool> = match self.is_shared() {
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
                let chunk = units
                    .by_ref()
                    .take(MAX_UNITS_PER_ADD)
                    .map(|unit| new_unit(&run.plan, unit, None))
                    .collect::<Result<Vec<NewUnit>>>()?;
                if chunk.is_empty() {
                    break;
                }
                let added = self.queue.add_units(&at, UnitId(next), &chunk).await.map_err(in_step)?;
                next = added.next.0;
                if !added.applied {
                    // Another coordinator is adding them, too.
                    units = units_from(next);
                }
                self.backlog.touch();
            }
        }
        if run.at() == Some(at) {
            run.set_filled();
        }
        Ok(())
    }

    /// Appends units behind all others, for dialogues that are asked again or were lost.
    pub(crate) async fn append_units(&self, run: &Arc<Run>, units: Vec<NewUnit>) -> Result<()> {
        self.fill(run).await?;
        let _one = run.filling.lock().await;
        let status = self.note_queue(self.queue.run(run.id()).await)?;
        let Some(status) = status else { return Err(internal("the queue was lost while units were added")) };
        let mut next = status.next_unit;
        for chunk in units.chunks(MAX_UNITS_PER_ADD) {
            loop {
                let added = self.note_queue(self.queue.add_units(&status.at, next, chunk).await)?;
                next = added.next;
                if added.applied {
                    break;
                }
            }
        }
        self.backlog.touch();
        Ok(())
    }

    /// Reads the records that have come into the log since it was read before: all of them at first, then those of other
    /// writers.
    pub(crate) async fn follow(&self, run: &Arc<Run>) -> Result<()> {
        let mut place = run.tail.lock().await;
        let first = place.is_none();
        if !first && !self.is_shared() {
            return Ok(()); // Nobody else writes.
        }
        self.storage.sink.refresh(run.id()).await?;
        let mut tail = match place.take() {
            Some(tail) => tail,
            None => self.storage.tail(run)?,
        };
        let (run_of, run, now) = (run, Arc::clone(run), self.now());
        let read = move || {
            let result = read_on(&run, &mut tail, (!first).then_some(now));
            (tail, result)
        };
        let (tail, result) = tokio::task::spawn_blocking(read).await.map_err(internal)?;
        *place = Some(tail);
        if result? {
            return Ok(());
        }
        self.runs.discard(run_of);
        let message = format!("run {} was finished or reopened elsewhere; its log is read anew", run_of.id());
        Err(ServiceError::new(ErrorCode::Unavailable, message))
    }
}

/// Folds everything that is new, and says whether the table holds; `now` where it counts for the rate.
fn read_on(run: &Run, tail: &mut LogTail, now: Option<Duration>) -> Result<bool> {
    let mut holds = true;
    while let Some(part) = tail.poll().map_err(internal)? {
        let mut lines = match part {
            TailPart::Lines(lines) => lines,
            TailPart::Sealed(seals) => {
                holds &= run.learn(seals);
                continue;
            }
            TailPart::Damage(damage) => {
                tracing::warn!(run = %run.id(), %damage, "the record log is damaged; the dialogues in that place are asked again");
                continue;
            }
        };
        let mut records = Vec::new();
        while let Some(line) = lines.next() {
            match line.parse::<RecordHead>() {
                Ok(Parsed { ticket, record, .. }) => {
                    let (entry, generation) = (run.entry(ticket, &record), record.attempt.generation);
                    // A number out of nowhere says nothing about the queue; the record itself counts as for every reader.
                    let generation = if generation > GENERATION_MAX { 0 } else { generation };
                    records.push(Found { entry, remark: Remark::of(&record), ticket, generation });
                }
                Err(error) => {
                    tracing::warn!(run = %run.id(), %error, "a line of the record log is no record");
                }
            }
        }
        run.fold(lines.end(), records, now, |_, _, _| {});
    }
    Ok(holds)
}
