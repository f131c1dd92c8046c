//! Tends everything: the periodic work of a coordinator. Each step may be done twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::{ErrorCode, RunId, ServiceError};
use queue::RunStatus;

use crate::benchmarks::Benchmarks;
use crate::errors::Result;
use crate::health::{Health, Uptime};
use crate::options::{Adopt, CoordinatorOptions};
use crate::queue::client::QueueClient;
use crate::queue::signal::WorkSignal;
use crate::queue_owner::Ownership;
use crate::records::events::RunStateFile;
use crate::records::loaded::LoadedRuns;
use crate::records::named_models::NamedModels;
use crate::records::store::Store;
use crate::runs::Runs;
use crate::runs::life::GoesOn;
use crate::views::{Views, gauges};

/// Number of rounds between two searches of the sink for runs that the queue has lost.
pub(crate) const ROUNDS_PER_DISCOVERY: u64 = 30;

/// Decides when leases may be taken over. After a start, and after the queue could not be reached or written, workers first get
/// the time of a lease to renew theirs, because they could not do so before.
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
            self.unusable(now);
        }
        (self.was_late, self.last) = (late, Some((now, store_ms)));
    }

    /// The queue could not be reached or written at `now`.
    pub(crate) fn unusable(&mut self, now: Duration) {
        self.until = now + self.length;
    }

    /// Whether leases may be taken over.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        now >= self.until
    }
}

/// Runs rounds until the coordinator is dropped.
pub(crate) async fn rounds(tending: Weak<Tending>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // A coordinator that waits for another one says so once.
    let mut told = None;
    loop {
        ticks.tick().await;
        let Some(tending) = tending.upgrade() else { return };
        let tended = {
            let mut round = std::pin::pin!(tending.round());
            // A queue or a log that hangs holds up the round: report the health meanwhile.
            loop {
                match tokio::time::timeout(every, &mut round).await {
                    Ok(tended) => break tended,
                    Err(_) => tending.tell_health(),
                }
            }
        };
        let trouble = tended.err().map(|error| error.message);
        if let Some(trouble) = trouble.as_ref().filter(|_| trouble != told) {
            tracing::warn!(error = trouble, "runs cannot be tended now");
        }
        told = trouble;
        tending.tell_health();
    }
}

/// The rounds, with what they tend. What is kept between them can be lost: without it, a coordinator only waits a little longer.
pub(crate) struct Tending {
    pub options: CoordinatorOptions,
    pub clock: Uptime,
    pub health: Arc<Health>,
    pub store: Arc<Store>,
    pub loaded: Arc<LoadedRuns>,
    pub queue: Arc<QueueClient>,
    pub signal: Arc<WorkSignal>,
    pub runs: Arc<Runs>,
    pub benchmarks: Arc<Benchmarks>,
    pub views: Arc<Views>,
    pub ownership: Arc<Ownership>,
    pub named: Arc<NamedModels>,
    pub memory: RoundMemory,
}

/// What is kept between rounds.
pub(crate) struct RoundMemory {
    grace: Mutex<TakeoverGrace>,
    round: Mutex<u64>,
}

impl RoundMemory {
    pub(crate) fn new(options: &CoordinatorOptions, now: Duration) -> Self {
        let length = options.grace.unwrap_or(options.lease_for);
        // Workers renew every third of a lease, so two thirds are left when a stop begins.
        let late_after = (options.lease_for * 2 / 3).max(options.tend_every * 2);
        Self { grace: Mutex::new(TakeoverGrace::new(length, late_after, now)), round: Mutex::new(0) }
    }
}

impl Tending {
    /// One round over all runs. A problem of one does not delay the others.
    pub(crate) async fn round(&self) -> std::result::Result<(), ServiceError> {
        let round = {
            let mut round = self.memory.round.lock().unwrap_or_else(PoisonError::into_inner);
            *round += 1;
            *round - 1
        };
        // Search at the start, then rarely: listing the sink may be slow.
        let is_thorough = round.is_multiple_of(ROUNDS_PER_DISCOVERY);
        let asked = self.ask_queue().await;
        let (statuses, reaps, now_ms) = {
            let mut grace = self.memory.grace.lock().unwrap_or_else(PoisonError::into_inner);
            let now = self.clock.now();
            match asked {
                Ok((statuses, store_ms)) => {
                    grace.round(now, store_ms);
                    // Whoever was refused since the last round comes again, and has its lease until then.
                    let was_refused = self.health.note_written();
                    if was_refused {
                        grace.unusable(now);
                    }
                    (statuses, !was_refused && grace.is_over(now), store_ms)
                }
                Err(error) => {
                    grace.unusable(now);
                    return Err(error);
                }
            }
        };
        let statuses: BTreeMap<RunId, RunStatus> =
            statuses.into_iter().map(|status| (status.at.run.clone(), status)).collect();
        if self.store.is_shared() {
            self.discover(&statuses, is_thorough).await?;
        }
        for run in self.loaded.live() {
            self.named.add(run.id(), run.manifest.revision, &run.models);
            let tended = self.runs.tend(&run, statuses.get(run.id()), reaps).await;
            if let Err(error) = &tended {
                tracing::warn!(run = %run.id(), %error, "the run cannot be tended now");
            }
            run.set_trouble(tended.err().map(|error| error.message));
        }
        self.benchmarks.tend_all().await?;
        self.loaded.evict();
        self.views.learn_submitters(is_thorough).await;
        self.views.fleet.note_lost(now_ms).await?;
        self.views.state_gauges().await;
        self.health.set_tended();
        Ok(())
    }

    /// The runs of the queue, and its time. Fails if the queue cannot be read, or not be written.
    async fn ask_queue(&self) -> Result<(Vec<RunStatus>, u64)> {
        self.ownership.check(Adopt::NOTHING).await?;
        let asked = async { Ok((self.queue.raw().runs().await?, self.queue.raw().now_ms().await?)) };
        self.health.note_queue(asked.await)
    }

    /// Loads runs that are not loaded yet and go on: those in the queue and, from time to time, those that are only in the sink.
    async fn discover(&self, statuses: &BTreeMap<RunId, RunStatus>, thorough: bool) -> Result<()> {
        let is_over = |status: &RunStatus| {
            matches!(status.state, queue::RunState::Cancelled | queue::RunState::Finished)
        };
        let mut names: Vec<RunId> =
            statuses.values().filter(|status| !is_over(status)).map(|status| status.at.run.clone()).collect();
        let mut revisions = BTreeMap::new();
        if thorough {
            let found = self.store.sink.runs().await?;
            for manifest in found.iter().filter_map(|found| found.manifest.as_ref().ok()) {
                self.named.add_manifest(manifest);
                revisions.insert(manifest.run.clone(), manifest.revision);
            }
            names.extend(found.into_iter().map(|found| found.dir.run()));
            self.named.keep_left_out(|run| names.contains(run));
            // Who led before may have removed or extended a run when it was followed already.
            for run in self.loaded.loaded() {
                if !names.contains(run.id()) {
                    self.queue.expect(&run).await.ok();
                } else if revisions.get(run.id()) != Some(&run.manifest.revision) {
                    self.loaded.expect_newest(&run).await.ok();
                }
            }
        }
        for name in names {
            if self.loaded.get(&name).is_some_and(|run| run.is_attended() && !run.phase().is_over()) {
                self.named.let_in(&name);
                continue;
            }
            let state = match self.state_of(&name).await {
                Ok(state) => state,
                // Reported once when loading was tried, and shown to users.
                Err(error) => {
                    tracing::debug!(run = %name, %error, "left out");
                    self.leave_out(&name).await;
                    continue;
                }
            };
            let Some(state) = state else {
                self.named.let_in(&name);
                continue;
            };
            if state.phase.is_over() {
                self.named.let_in(&name);
                let revision = revisions.get(&name).copied().unwrap_or_default();
                if let Err(error) = self.look_after_end(&name, &state, revision, statuses.get(&name)).await {
                    tracing::warn!(run = %name, %error, "the end of the run cannot be told now");
                }
                continue;
            }
            self.named.let_in(&name);
            if let Some(run) = self.loaded.get(&name) {
                run.attend();
                self.signal.touch();
            }
        }
        Ok(())
    }

    /// The state of a run of this fleet; `None` of any other. Of one that goes on, by its log: who led before may have died between
    /// the list and the log.
    async fn state_of(&self, name: &RunId) -> Result<Option<RunStateFile>> {
        let state = match self.loaded.state(name).await? {
            Some(listed) if listed.fleet && !listed.phase.is_over() => {
                self.loaded.newest(name).await?.known_state()
            }
            state => state,
        };
        Ok(state.filter(|state| state.fleet))
    }

    /// Does what follows from the state of a run that is over: whoever ended or extended it may have died over that.
    async fn look_after_end(
        &self,
        name: &RunId,
        over: &RunStateFile,
        revision: u32,
        queued: Option<&RunStatus>,
    ) -> Result<()> {
        if let Some(run) = self.loaded.get(name).filter(|run| !run.is_listed()) {
            self.runs.logs.open(&run).await?;
            self.runs.logs.list_end(&run).await?;
        }
        if over.is_behind(revision) {
            let run = self.loaded.newest(name).await?;
            return self.runs.begin(&run, GoesOn::Named).await.map(drop);
        }
        match queued {
            Some(queued) => self.queue.set_state_of(queued, over).await,
            None => Ok(()),
        }
    }

    /// Notes that a run which may have work cannot be loaded.
    async fn leave_out(&self, name: &RunId) {
        let manifest = self.store.manifest(name).await.ok().flatten();
        self.named.leave_out(name, manifest.as_ref());
    }

    /// Whether this coordinator can work.
    pub(crate) fn fitness(&self) -> Result<()> {
        let unfit = |message: String| Err(ServiceError::new(ErrorCode::Unavailable, message));
        match self.health.trouble() {
            Some(trouble) => unfit(trouble),
            None if self.options.tends && !self.health.is_tended() => {
                unfit("runs are still being loaded".into())
            }
            None => Ok(()),
        }
    }

    fn tell_health(&self) {
        gauges::health(&self.health, &self.runs.logs, self.fitness().is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_loses_a_lease_right_after_a_start_or_an_outage() {
        let at = Duration::from_secs;
        let mut grace = TakeoverGrace::new(at(30), at(20), at(0));
        assert!(!grace.is_over(at(29)) && grace.is_over(at(30)));
        grace.unusable(at(100));
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
}
