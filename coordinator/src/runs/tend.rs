//! Tends runs: the periodic work of a coordinator.
//!
//! Every coordinator does this for all runs, concurrently with others: each step may be done twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::RunId;
use domain::control::RunPhase;
use history::Event;
use queue::{ModelCounts, NewUnit, Reap, RunStatus};

use crate::coordinator::Coordinator;
use crate::errors::Result;
use crate::options::{Adopt, CoordinatorOptions};
use crate::queue::queued_unit::new_unit;
use crate::records::dialogues::DialogueTable;
use crate::records::run::Run;
use crate::records::store::{Revised, RunStateFile};
use crate::views::gauges;

/// Number of rounds between two searches of the sink for runs that the queue has lost.
const ROUNDS_PER_DISCOVERY: u64 = 30;

/// Decides when leases may be taken over. After a start, and after the queue was unreachable, workers first get the time of
/// a lease to renew theirs, because they could not do so before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TakeoverGrace {
    length: Duration,
    until: Duration,
    /// A round is late if it comes this much later than the one before: leases may have expired because this coordinator did
    /// not renew them. The same applies if the store's clock was set forward.
    late_after: Duration,
    /// The time of the last round, here and on the store's clock.
    last: Option<(Duration, u64)>,
    was_late: bool,
}

impl TakeoverGrace {
    pub(crate) fn new(length: Duration, late_after: Duration, now: Duration) -> Self {
        Self { length, until: now + length, late_after, last: None, was_late: false }
    }

    /// A round at `now`, with `store_ms` on the store's clock. Consecutive late rounds get a single grace period: a machine
    /// that is always slow still takes over leases.
    pub(crate) fn round(&mut self, now: Duration, store_ms: u64) {
        let late = self.last.is_some_and(|(before, store_before)| {
            let ours = now.saturating_sub(before);
            let theirs = Duration::from_millis(store_ms.saturating_sub(store_before));
            ours > self.late_after || theirs > ours + self.late_after
        });
        if late && !self.was_late {
            self.unreachable(now);
        }
        (self.was_late, self.last) = (late, Some((now, store_ms)));
    }

    /// The queue could not be reached at `now`.
    pub(crate) fn unreachable(&mut self, now: Duration) {
        self.until = now + self.length;
    }

    /// Whether leases may be taken over.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        now >= self.until
    }
}

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

/// Decides the next step. The counts must be older than the last reading of records; otherwise a record that arrived in
/// between would look like a gap.
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

/// State kept between rounds; without it, a coordinator only waits a little longer.
pub(crate) struct Tending {
    grace: Mutex<TakeoverGrace>,
    round: Mutex<u64>,
}

/// Runs rounds until the coordinator is dropped.
pub(crate) async fn rounds(coordinator: Weak<Coordinator>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(coordinator) = coordinator.upgrade() else { return };
        let tended = {
            let mut tending = std::pin::pin!(coordinator.tend());
            // A queue or a log that hangs holds up the round: report the health meanwhile.
            loop {
                match tokio::time::timeout(every, &mut tending).await {
                    Ok(tended) => break tended,
                    Err(_) => gauges::health(&coordinator),
                }
            }
        };
        if let Err(error) = tended {
            tracing::warn!(%error, "runs cannot be tended now");
        }
        gauges::health(&coordinator);
    }
}

impl Tending {
    pub(crate) fn new(config: &CoordinatorOptions, now: Duration) -> Self {
        let length = config.grace.unwrap_or(config.lease_for);
        // Workers renew every third of a lease, so two thirds are left when a stop begins.
        let late_after = (config.lease_for * 2 / 3).max(config.tend_every * 2);
        Self { grace: Mutex::new(TakeoverGrace::new(length, late_after, now)), round: Mutex::new(0) }
    }

    /// One round over all runs. A problem of one does not delay the others.
    pub(crate) async fn round(&self, coordinator: &Coordinator) -> Result<()> {
        let round = {
            let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
            *round += 1;
            *round - 1
        };
        // Search at the start, then rarely: listing the sink may be slow.
        if coordinator.storage.sink.has_locks() || round.is_multiple_of(ROUNDS_PER_DISCOVERY) {
            coordinator.check_bond(Adopt::NOTHING).await?;
        }
        let asked = async { Ok((coordinator.queue.runs().await?, coordinator.queue.now_ms().await?)) };
        let asked = coordinator.health.note_queue(asked.await);
        let (statuses, reaps) = {
            let mut grace = self.grace.lock().unwrap_or_else(PoisonError::into_inner);
            match asked {
                Ok((statuses, store_ms)) => {
                    grace.round(coordinator.clock.now(), store_ms);
                    (statuses, grace.is_over(coordinator.clock.now()))
                }
                Err(error) => {
                    grace.unreachable(coordinator.clock.now());
                    return Err(error);
                }
            }
        };
        let statuses: BTreeMap<RunId, RunStatus> =
            statuses.into_iter().map(|status| (status.at.run.clone(), status)).collect();
        if coordinator.storage.is_shared() {
            coordinator.discover(&statuses, round.is_multiple_of(ROUNDS_PER_DISCOVERY)).await?;
        }
        for run in coordinator.runs.live() {
            let tended = coordinator.tend_run(&run, statuses.get(run.id()), reaps).await;
            if let Err(error) = &tended {
                tracing::warn!(run = %run.id(), %error, "the run cannot be tended now");
            }
            run.set_trouble(tended.err().map(|error| error.message));
        }
        coordinator.tend_pipelines(round.is_multiple_of(ROUNDS_PER_DISCOVERY)).await?;
        coordinator.runs.evict();
        gauges::gauges(coordinator).await;
        coordinator.health.set_tended();
        Ok(())
    }
}

impl Coordinator {
    /// Loads runs submitted to other coordinators of the fleet: those in the queue and, from time to time, those that are only
    /// in the sink.
    async fn discover(&self, statuses: &BTreeMap<RunId, RunStatus>, thorough: bool) -> Result<()> {
        let is_over = |status: &RunStatus| {
            matches!(status.state, queue::RunState::Cancelled | queue::RunState::Finished)
        };
        let mut names: Vec<RunId> =
            statuses.values().filter(|status| !is_over(status)).map(|status| status.at.run.clone()).collect();
        if thorough {
            names.extend(self.storage.names().await?);
        }
        for name in names {
            match self.runs.get(&name) {
                Some(run) if run.is_attended() && !run.phase().is_over() => continue,
                _ => {}
            }
            let state = match self.storage.state(&name).await {
                Ok(Some(state)) if state.fleet && !state.phase.is_over() => state,
                Ok(_) => continue,
                Err(error) => {
                    tracing::warn!(run = %name, %error, "the run's state cannot be read");
                    continue;
                }
            };
            if let Some(known) = self.runs.get(&name) {
                // A run that continues may have been extended, and is then read again.
                self.runs.expect_newest(&known).await.ok();
            }
            match self.runs.followed(&name, Duration::ZERO).await {
                Ok(run) => {
                    // A run that was over when it was loaded was resumed.
                    run.attend();
                    run.set_phase(state.phase);
                    self.signal.touch();
                }
                // Reported once when loading was tried, and shown to users.
                Err(error) => tracing::debug!(run = %name, %error, "left out"),
            }
        }
        Ok(())
    }

    async fn tend_run(&self, run: &Arc<Run>, status: Option<&RunStatus>, reaps: bool) -> Result<()> {
        // The queue was read before the state: a command in between is not undone.
        let Revised { revision, content } = self.storage.revised_state(run.id()).await?;
        let Some(state) = content else { return self.queues.expect(run).await };
        if state.phase.is_over() {
            // Whoever ended it may have read records that were not read here. Read them first, so that nobody sees the
            // run change.
            self.runs.follow(run).await?;
        }
        run.set_phase(state.phase);
        self.commits.hold(run).await?;
        let lost = |at: &queue::RunRef| status.is_none_or(|status| status.at != *at);
        let at = match run.at() {
            Some(at) if lost(&at) => self.queues.join(run, Some(at.generation)).await?,
            Some(at) => at,
            None => self.queues.join(run, None).await?,
        };
        if let Some(status) = status {
            self.queues.set_state(&at, status.state, &state).await?;
        }
        if run.phase().is_over() {
            self.signal.touch();
            return Ok(());
        }
        if !run.is_filled() {
            self.queues.fill(run).await?;
        }
        if reaps {
            self.reap(run, &Reap::Expired).await?;
        }
        let counts = self.queues.call(run, |queue, at| async move { queue.counts(&at).await }).await?;
        self.runs.follow(run).await?;
        let to_do = state.rework && counts.iter().any(|counts| counts.pending + counts.leased > 0);
        if to_do || !run.table(DialogueTable::is_complete) {
            // Somebody asked for more while another coordinator was finishing it.
            self.reopen(run).await?;
        }
        let unrecorded = state.rework || !run.table(DialogueTable::is_complete);
        if unrecorded && counts.iter().any(|counts| counts.dead > 0) {
            self.record_dead(run).await?;
        }
        match run.table(|table| due(table, state.rework, run.is_filled(), &counts)) {
            Due::Nothing => Ok(()),
            Due::Finish => self.finish_run(run, (revision, state), &counts).await,
            Due::CloseGaps => match self.queues.forget_lost(run).await? {
                true => Ok(()),
                false => self.close_gaps(run).await,
            },
            Due::FinishOrAskAgain => match self.queue_retries(run).await? {
                true => Ok(()),
                false => self.finish_run(run, (revision, state), &counts).await,
            },
        }
    }

    /// Finishes a run, unless its state has changed since this revision.
    async fn finish_run(
        &self,
        run: &Arc<Run>,
        (revision, state): (u32, RunStateFile),
        counts: &[ModelCounts],
    ) -> Result<()> {
        // A command that arrived since this round began takes precedence, here and when the state is written.
        if self.storage.revised_state(run.id()).await?.revision != revision {
            return Ok(());
        }
        // A run that was extended is not finished, even if the process that extended it has died.
        self.runs.expect_newest(run).await?;
        // This fixes which records count. It comes first, so that nobody sees a finished run change.
        if let Some((number, event)) = run.close()
            && !self.health.note_sink(self.storage.sink.seal(run.id(), number, event).await)?
        {
            // Another coordinator was first, perhaps with other records. Its seal will be read with the log.
            self.runs.discard(run);
            return Ok(());
        }
        if self.events.is_on() {
            self.events.write(run.id(), Event::Finished(run.what_counts())).await;
        }
        let state = RunStateFile { phase: RunPhase::Finished, rework: false, ..self.summed_up(run, state) };
        if !self.revise_state(run, revision, &state).await? {
            return Ok(()); // What it asks for is let in by the next round.
        }
        tracing::info!(run = %run.id(), "finished");
        let left: u64 = counts.iter().map(|counts| counts.pending + counts.leased).sum();
        let dead: u64 = counts.iter().map(|counts| counts.dead).sum();
        if left > 0 && dead == 0 {
            // Units of a rebuilt queue, all of whose dialogues have a record: no worker will ask for them. A later retry
            // is queued anew.
            self.health.note_queue(self.queue.forget_run(run.id()).await)?;
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
        self.queues.append_units(run, units).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::dialogues::DialogueRow;

    #[test]
    fn nobody_loses_a_lease_right_after_a_start_or_an_outage() {
        let at = Duration::from_secs;
        let mut grace = TakeoverGrace::new(at(30), at(20), at(0));
        assert!(!grace.is_over(at(29)) && grace.is_over(at(30)));
        grace.unreachable(at(100));
        assert!(!grace.is_over(at(129)) && grace.is_over(at(130)));
    }

    #[test]
    fn nobody_loses_a_lease_because_the_coordinator_was_stopped_or_a_clock_was_set() {
        let at = Duration::from_secs;
        let mut grace = TakeoverGrace::new(at(30), at(20), at(0));
        grace.round(at(100), 1_000_000);
        assert!(grace.is_over(at(100)));
        // The process was stopped for 40 s.
        grace.round(at(140), 1_040_000);
        assert!(!grace.is_over(at(169)) && grace.is_over(at(170)));
        grace.round(at(141), 1_041_000);
        // The clock of Redis was set an hour forward, later back.
        grace.round(at(142), 4_642_000);
        grace.round(at(150), 1_050_000);
        assert!(!grace.is_over(at(171)) && grace.is_over(at(172)));
        // A machine on which every round is late does take leases over.
        grace.round(at(200), 1_100_000);
        grace.round(at(229), 1_129_000);
        assert!(!grace.is_over(at(229)) && grace.is_over(at(230)));
    }

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
                scored: 0,
                failed: 0,
                parked: None,
            }]
        };
        let open = DialogueTable::new(1);
        let mut full = open.clone();
        full.fold(0, DialogueRow { ticket: 1, outcome: Ok(Some(1.0)), late: false });
        assert_eq!(due(&full, false, true, &counts(0, 0)), Due::Finish);
        assert_eq!(due(&full, false, true, &counts(3, 1)), Due::Finish);
        assert_eq!(due(&full, true, true, &counts(0, 1)), Due::Nothing);
        assert_eq!(due(&full, true, true, &counts(0, 0)), Due::FinishOrAskAgain);
        assert_eq!(due(&open, false, true, &counts(0, 1)), Due::Nothing);
        assert_eq!(due(&open, false, false, &counts(0, 0)), Due::Nothing);
        assert_eq!(due(&open, false, true, &counts(0, 0)), Due::CloseGaps);
    }
}
