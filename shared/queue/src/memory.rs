//! The reference model: every operation, in ordinary collections. It takes `now_ms` and does no IO, so tests control
//! its time. Its caller, [`MemoryStore`](crate::MemoryStore), has checked the input against [`crate::limits`]; only
//! limits on what is stored are checked here.
//!
//! A new operation is added to [`QueueStore`](crate::QueueStore), here, to `memory_store.rs`, to `calls.rs`, and to the
//! conformance suite. What changes what [a next leader](crate::kept) must know notes that.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::{InstanceId, ModelLabel, RunId, WorkerId};

pub(crate) use self::state::{MemoryRun, MemoryUnit, Model, UnitPlace};
use crate::clock::millis;
use crate::error::{Error, Result};
use crate::limits::{
    RATE_BUCKETS_MAX, REAPED_PER_MODEL_MAX, RELEASES_MAX, WORKERS_MAX, WORKERS_PER_IDENTITY_MAX, at_most,
    identity_full, workers_full,
};
use crate::run::{ModelCounts, Parked, RunRef, RunSpec, RunStatus};
use crate::run_state::RunState;
use crate::unit::{
    Added, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Suspect, Transition, UnitId,
};
use crate::worker::{
    Claim, Heartbeat, HeartbeatOrders, PoolsEntry, RateLimit, RateReply, WorkerEntry, WorkerNameTaken,
};

/// All runs, workers and rate budgets, in memory. Its operations are those of [`crate::QueueStore`].
#[derive(Clone, Debug, Default)]
pub struct MemoryQueue {
    pub(crate) runs: BTreeMap<RunId, MemoryRun>,
    pub(crate) workers: BTreeMap<WorkerId, MemoryRegistration>,
    /// What is said of pools, by release.
    pub(crate) pools: BTreeMap<String, MemoryPools>,
    /// When each bucket will be full again, in microseconds since the Unix epoch.
    pub(crate) rates: BTreeMap<String, u64>,
    /// Whether a next leader is told of changes.
    is_kept: bool,
    pub(crate) touched: Touched,
}

/// What has changed beside runs since a next leader was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Runs that were removed, or replaced by another generation.
    pub(crate) runs_gone: BTreeSet<RunId>,
    pub(crate) workers: BTreeSet<WorkerId>,
}

#[derive(Clone, Debug)]
pub(crate) struct MemoryRegistration {
    pub(crate) instance: InstanceId,
    pub(crate) identity: String,
    pub(crate) info: Vec<u8>,
    pub(crate) seen_ms: u64,
    pub(crate) expires_ms: u64,
    pub(crate) draining: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct MemoryPools {
    info: Vec<u8>,
    expires_ms: u64,
}

impl MemoryQueue {
    /// An empty queue whose changes are kept for a next leader.
    pub(crate) fn kept() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    fn touch_worker(&mut self, worker: &WorkerId) {
        if self.is_kept {
            self.touched.workers.insert(worker.clone());
        }
    }

    fn touch_gone(&mut self, run: &RunId) {
        if self.is_kept {
            self.touched.runs_gone.insert(run.clone());
        }
    }

    /// The run, if the caller's generation is the current one.
    fn at(&mut self, at: &RunRef) -> Result<&mut MemoryRun> {
        let run = self.runs.get_mut(&at.run).ok_or_else(|| Error::RunGone { run: at.run.clone() })?;
        let current = run.status.at.generation;
        if current != at.generation {
            return Err(Error::StaleGeneration { run: at.run.clone(), given: at.generation, current });
        }
        Ok(run)
    }

    fn drop_expired_workers(&mut self, now_ms: u64) {
        let expired = self.workers.iter().filter(|(_, entry)| entry.expires_ms <= now_ms);
        let expired: Vec<WorkerId> = expired.map(|(worker, _)| worker.clone()).collect();
        for worker in &expired {
            self.workers.remove(worker);
            self.touch_worker(worker);
        }
    }
}

impl MemoryQueue {
    pub(crate) fn create_run(&mut self, spec: &RunSpec) -> Result<RunStatus> {
        if let Some(run) = self.runs.get(&spec.run) {
            if run.status.at.generation >= spec.generation {
                spec.check_joins(&run.status.plan_hash)?;
                return Ok(run.status.clone());
            }
            self.touch_gone(&spec.run);
        }
        let status = RunStatus {
            at: RunRef { run: spec.run.clone(), generation: spec.generation },
            plan_hash: spec.plan_hash.clone(),
            state: RunState::Active,
            next_unit: UnitId(0),
            lease_for: spec.lease_for,
            max_strikes: spec.max_strikes,
        };
        let run = MemoryRun::new(status.clone(), self.is_kept);
        self.runs.insert(spec.run.clone(), run);
        Ok(status)
    }

    pub(crate) fn run(&mut self, run: &RunId) -> Result<Option<RunStatus>> {
        Ok(self.runs.get(run).map(|run| run.status.clone()))
    }

    pub(crate) fn runs(&mut self) -> Result<Vec<RunStatus>> {
        Ok(self.runs.values().map(|run| run.status.clone()).collect())
    }

    pub(crate) fn set_state(&mut self, at: &RunRef, to: RunState) -> Result<RunState> {
        let run = self.at(at)?;
        let from = run.status.state;
        if !from.may_become(to) {
            return Err(Error::IllegalState { run: at.run.clone(), from, to });
        }
        run.status.state = to;
        run.touch();
        Ok(from)
    }

    pub(crate) fn forget_run(&mut self, run: &RunId) -> Result<bool> {
        let was_there = self.runs.remove(run).is_some();
        if was_there {
            self.touch_gone(run);
        }
        Ok(was_there)
    }

    pub(crate) fn add_units(&mut self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added> {
        let run = self.at(at)?;
        let applied = first == run.status.next_unit;
        if applied {
            for content in units {
                let id = run.status.next_unit;
                run.status.next_unit.0 += 1;
                let unit = MemoryUnit {
                    content: content.clone(),
                    attempt: 0,
                    deaths: Vec::new(),
                    place: UnitPlace::Pending,
                };
                run.model(&content.model).added += 1;
                run.insert(id, unit);
            }
            run.touch();
        }
        Ok(Added { applied, next: run.status.next_unit })
    }

    pub(crate) fn lease(&mut self, now_ms: u64, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>> {
        let run = self.at(at)?;
        let deadline_ms = now_ms + millis(run.status.lease_for);
        let mut leases = Vec::new();
        if run.status.state != RunState::Active || run.alone.contains_key(&ask.worker) {
            return Ok(leases);
        }
        let open =
            |run: &MemoryRun, label| run.models.get(label).is_some_and(|model| !model.is_parked(now_ms));
        for label in ask.models.iter().filter(|label| open(run, label)).collect::<Vec<_>>() {
            let room = (ask.max_units as usize).saturating_sub(leases.len());
            let ids: Vec<_> = run.model(label).pending.iter().take(room).copied().collect();
            leases.extend(ids.into_iter().filter_map(|id| run.hand_out(id, &ask.worker, deadline_ms)));
        }
        if leases.is_empty() && ask.max_units > 0 && ask.alone && run.holds_nothing(&ask.worker) {
            let open = ask.models.iter().filter(|label| open(run, label));
            let first = open.filter_map(|label| run.models[label].suspects.first()).next();
            if let Some((_, id)) = first.copied() {
                leases.extend(run.hand_out(id, &ask.worker, deadline_ms));
            }
        }
        Ok(leases)
    }

    pub(crate) fn renew(
        &mut self,
        now_ms: u64,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> Result<Renewal> {
        let run = self.at(at)?;
        let deadline_ms = now_ms + millis(run.status.lease_for);
        let labels: BTreeSet<_> = models.iter().chain(held.iter().map(|fence| &fence.model)).collect();
        let reported: BTreeSet<_> = held.iter().filter(|fence| run.holds(fence)).cloned().collect();
        let mut renewed = BTreeSet::new();
        let mut unreported = Vec::new();
        for label in labels {
            let ids = run.model_leased(label);
            for id in ids {
                let Some(unit) = run.units.get_mut(&id) else { continue };
                match &mut unit.place {
                    UnitPlace::Leased { worker: holder, deadline_ms: deadline } if holder == worker => {
                        *deadline = deadline_ms;
                    }
                    _ => continue,
                }
                let Some(unit) = run.units.get(&id) else { continue };
                let lease = run.lease_of(id, unit, deadline_ms);
                renewed.insert(lease.fence.clone());
                if !reported.contains(&lease.fence) {
                    unreported.push(lease);
                }
            }
        }
        let lost = held.iter().filter(|fence| !renewed.contains(fence)).cloned().collect();
        let holds_suspect = run.alone.contains_key(worker);
        Ok(Renewal { state: run.status.state, lost, unreported, holds_suspect, deadline_ms })
    }

    pub(crate) fn release(&mut self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        let run = self.at(at)?;
        let release = |fence: &Fence| {
            if !run.holds(fence) {
                return Transition::Stale;
            }
            run.place(fence.unit, UnitPlace::Pending, |_| {});
            Transition::Applied
        };
        Ok(fences.iter().map(release).collect())
    }

    pub(crate) fn finish(&mut self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        let run = self.at(at)?;
        let finish = |fence: &Fence| {
            if !run.holds(fence) {
                return Transition::Stale;
            }
            run.remove(fence.unit);
            Transition::Applied
        };
        Ok(fences.iter().map(finish).collect())
    }

    pub(crate) fn reap(&mut self, now_ms: u64, at: &RunRef, whose: &Reap) -> Result<Reaped> {
        let run = self.at(at)?;
        let mut reaped = Reaped::default();
        let labels: Vec<_> = run.models.keys().cloned().collect();
        for label in labels {
            let due = |id: &&UnitId| match (run.units.get(id).map(|unit| &unit.place), whose) {
                (Some(UnitPlace::Leased { deadline_ms, .. }), Reap::Expired) => *deadline_ms <= now_ms,
                (Some(UnitPlace::Leased { worker, .. }), Reap::Worker(dead)) => worker == dead,
                _ => false,
            };
            let mut ids: Vec<_> = run.model_leased(&label).iter().filter(due).copied().collect();
            reaped.more |= ids.len() > REAPED_PER_MODEL_MAX;
            ids.truncate(REAPED_PER_MODEL_MAX);
            for id in ids {
                run.take_over(now_ms, id, whose.cause(), &mut reaped);
            }
        }
        Ok(reaped)
    }

    pub(crate) fn counts(&mut self, now_ms: u64, at: &RunRef) -> Result<Vec<ModelCounts>> {
        let run = self.at(at)?;
        let count = |(label, model): (&ModelLabel, &Model)| {
            let [leased, dead] = [&model.leased, &model.dead].map(|ids| ids.len() as u64);
            let suspects_pending = model.suspects.len() as u64;
            let pending = model.pending.len() as u64 + suspects_pending;
            let suspects_leased = run.alone.values().filter(|id| model.leased.contains(id)).count() as u64;
            ModelCounts {
                model: label.clone(),
                added: model.added,
                pending,
                suspects_pending,
                suspects_leased,
                leased,
                dead,
                done: model.added - pending - leased - dead,
                backlog_dialogues: model.backlog_dialogues,
                parked: model.parked.clone().filter(|parked| parked.until_ms > now_ms),
            }
        };
        Ok(run.models.iter().map(count).collect())
    }

    pub(crate) fn suspects(
        &mut self,
        at: &RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<Suspect>> {
        let run = self.at(at)?;
        let first = after.map_or(UnitId(0), |after| UnitId(after.0 + 1));
        let found = run.units.range(first..).filter_map(|(id, _)| run.suspect(*id));
        Ok(found.filter(|suspect| suspect.dead == dead).take(limit as usize).collect())
    }

    pub(crate) fn suspect(&mut self, at: &RunRef, unit: UnitId) -> Result<Option<Suspect>> {
        Ok(self.at(at)?.suspect(unit))
    }

    pub(crate) fn requeue(&mut self, at: &RunRef, units: &[UnitId]) -> Result<u64> {
        let run = self.at(at)?;
        let mut requeued = 0;
        for id in units {
            if run.units.get(id).is_some_and(|unit| unit.place == UnitPlace::Dead) {
                run.place(*id, UnitPlace::Pending, |unit| unit.deaths.clear());
                requeued += 1;
            }
        }
        Ok(requeued)
    }

    pub(crate) fn park(
        &mut self,
        at: &RunRef,
        model: &ModelLabel,
        until_ms: u64,
        reason: &str,
    ) -> Result<()> {
        self.at(at)?.model(model).parked = Some(Parked { reason: reason.to_owned(), until_ms });
        Ok(())
    }

    pub(crate) fn unpark(&mut self, at: &RunRef, model: &ModelLabel) -> Result<()> {
        if let Some(model) = self.at(at)?.models.get_mut(model) {
            model.parked = None;
        }
        Ok(())
    }

    pub(crate) fn heartbeat(
        &mut self,
        now_ms: u64,
        worker: &WorkerId,
        claim: &Claim,
        info: &[u8],
        ttl: Duration,
    ) -> Result<Heartbeat> {
        self.drop_expired_workers(now_ms);
        let known = self.workers.get(worker);
        if known.is_none() {
            if self.workers.len() >= WORKERS_MAX {
                return Err(workers_full());
            }
            let own = self.workers.values().filter(|entry| entry.identity == claim.identity);
            let may_be_full = !claim.identity.is_empty() && self.workers.len() >= WORKERS_PER_IDENTITY_MAX;
            if may_be_full && own.count() >= WORKERS_PER_IDENTITY_MAX {
                return Err(identity_full());
            }
        }
        if let Some(holder) = known.filter(|holder| !claim.may_follow(&holder.instance)) {
            return Ok(Heartbeat::Taken(WorkerNameTaken {
                instance: holder.instance.clone(),
                info: holder.info.clone(),
                silent_ms: now_ms - holder.seen_ms,
                free_in_ms: holder.expires_ms - now_ms,
            }));
        }
        let draining = known.is_some_and(|entry| entry.draining);
        if known.is_none_or(|entry| (&entry.instance, &entry.identity) != (&claim.instance, &claim.identity))
        {
            self.touch_worker(worker);
        }
        let expires_ms = now_ms + millis(ttl);
        let instance = claim.instance.clone();
        let (identity, info) = (claim.identity.clone(), info.to_vec());
        let entry = MemoryRegistration { instance, identity, info, seen_ms: now_ms, expires_ms, draining };
        self.workers.insert(worker.clone(), entry);
        Ok(Heartbeat::Registered(HeartbeatOrders { drain: draining }))
    }

    pub(crate) fn workers(&mut self, now_ms: u64) -> Result<Vec<WorkerEntry>> {
        self.drop_expired_workers(now_ms);
        let entry = |(worker, entry): (&WorkerId, &MemoryRegistration)| WorkerEntry {
            worker: worker.clone(),
            instance: entry.instance.clone(),
            info: entry.info.clone(),
            seen_ms: entry.seen_ms,
            draining: entry.draining,
        };
        Ok(self.workers.iter().map(entry).collect())
    }

    pub(crate) fn drain_worker(&mut self, now_ms: u64, worker: &WorkerId) -> Result<bool> {
        self.drop_expired_workers(now_ms);
        let Some(entry) = self.workers.get_mut(worker) else { return Ok(false) };
        entry.draining = true;
        self.touch_worker(worker);
        Ok(true)
    }

    pub(crate) fn deregister(
        &mut self,
        now_ms: u64,
        worker: &WorkerId,
        instance: &InstanceId,
    ) -> Result<bool> {
        self.drop_expired_workers(now_ms);
        let claim = Claim::of(instance.clone(), "");
        let ours = self.workers.get(worker).is_none_or(|holder| claim.may_follow(&holder.instance));
        if ours && self.workers.remove(worker).is_some() {
            self.touch_worker(worker);
        }
        Ok(ours)
    }

    pub(crate) fn note_pools(
        &mut self,
        now_ms: u64,
        release: &str,
        info: &[u8],
        ttl: Duration,
    ) -> Result<()> {
        self.pools.retain(|_, pools| pools.expires_ms > now_ms);
        if !self.pools.contains_key(release) {
            at_most("releases with pools", RELEASES_MAX, self.pools.len() + 1)?;
        }
        let pools = MemoryPools { info: info.to_vec(), expires_ms: now_ms + millis(ttl) };
        self.pools.insert(release.to_owned(), pools);
        Ok(())
    }

    pub(crate) fn pools(&mut self, now_ms: u64) -> Result<Vec<PoolsEntry>> {
        self.pools.retain(|_, pools| pools.expires_ms > now_ms);
        let entry = |(release, pools): (&String, &MemoryPools)| PoolsEntry {
            release: release.clone(),
            info: pools.info.clone(),
        };
        Ok(self.pools.iter().map(entry).collect())
    }

    pub(crate) fn take_rate(
        &mut self,
        now_ms: u64,
        bucket: &str,
        rate: RateLimit,
        permits: u32,
    ) -> Result<RateReply> {
        let now_us = now_ms * 1_000;
        // A full bucket is the same as an unused one.
        self.rates.retain(|_, full_at_us| *full_at_us > now_us);
        if !self.rates.contains_key(bucket) {
            at_most("rate buckets in use", RATE_BUCKETS_MAX, self.rates.len() + 1)?;
        }
        let (reply, full_at_us) = rate.take(self.rates.get(bucket).copied().unwrap_or(0), now_us, permits);
        self.rates.insert(bucket.to_owned(), full_at_us);
        Ok(reply)
    }
}
