//! A queue whose calls are timed.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use queue::{
    Added, Claim, Commit, CommitEffect, Committed, Fence, Heartbeat, Lease, LeaseRequest, ModelCounts,
    NewUnit, QueueStore, RateLimit, RateReply, Reap, Reaped, Renewal, Reply, RunRef, RunSpec, RunState,
    RunStatus, Suspect, Transition, UnitId, WorkerEntry,
};

use crate::metrics;

/// A queue whose calls are timed.
pub(crate) struct Measured(pub(crate) Arc<dyn QueueStore>);

fn timed<'a, T: 'a>(name: &'static str, call: Reply<'a, T>) -> Reply<'a, T> {
    Box::pin(async move {
        let began = Instant::now();
        let result = call.await;
        metrics::queue_called(name, began.elapsed(), result.as_ref().err());
        result
    })
}

impl QueueStore for Measured {
    fn owner(&self) -> Reply<'_, Option<String>> {
        timed("owner", self.0.owner())
    }

    fn claim<'a>(&'a self, owner: &'a str, anew: bool) -> Reply<'a, String> {
        timed("claim", self.0.claim(owner, anew))
    }

    fn create_run<'a>(&'a self, spec: &'a RunSpec) -> Reply<'a, RunStatus> {
        timed("create_run", self.0.create_run(spec))
    }

    fn run<'a>(&'a self, run: &'a RunId) -> Reply<'a, Option<RunStatus>> {
        timed("run", self.0.run(run))
    }

    fn runs(&self) -> Reply<'_, Vec<RunStatus>> {
        timed("runs", self.0.runs())
    }

    fn set_state<'a>(&'a self, at: &'a RunRef, to: RunState) -> Reply<'a, RunState> {
        timed("set_state", self.0.set_state(at, to))
    }

    fn forget_run<'a>(&'a self, run: &'a RunId) -> Reply<'a, bool> {
        timed("forget_run", self.0.forget_run(run))
    }

    fn add_units<'a>(&'a self, at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Reply<'a, Added> {
        timed("add_units", self.0.add_units(at, first, units))
    }

    fn lease<'a>(&'a self, at: &'a RunRef, ask: &'a LeaseRequest) -> Reply<'a, Vec<Lease>> {
        timed("lease", self.0.lease(at, ask))
    }

    fn renew<'a>(
        &'a self,
        at: &'a RunRef,
        worker: &'a WorkerId,
        models: &'a [ModelLabel],
        held: &'a [Fence],
    ) -> Reply<'a, Renewal> {
        timed("renew", self.0.renew(at, worker, models, held))
    }

    fn release<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        timed("release", self.0.release(at, fences))
    }

    fn finish<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        timed("finish", self.0.finish(at, fences))
    }

    fn reap<'a>(&'a self, at: &'a RunRef, whose: &'a Reap) -> Reply<'a, Reaped> {
        timed("reap", self.0.reap(at, whose))
    }

    fn tickets<'a>(&'a self, at: &'a RunRef, count: u32) -> Reply<'a, Range<u64>> {
        timed("tickets", self.0.tickets(at, count))
    }

    fn commit<'a>(&'a self, at: &'a RunRef, commits: &'a [Commit]) -> Reply<'a, Vec<CommitEffect>> {
        timed("commit", self.0.commit(at, commits))
    }

    fn committed<'a>(&'a self, at: &'a RunRef, keys: &'a [DialogueKey]) -> Reply<'a, Vec<Option<Committed>>> {
        timed("committed", self.0.committed(at, keys))
    }

    fn counts<'a>(&'a self, at: &'a RunRef) -> Reply<'a, Vec<ModelCounts>> {
        timed("counts", self.0.counts(at))
    }

    fn suspects<'a>(
        &'a self,
        at: &'a RunRef,
        dead: bool,
        after: Option<UnitId>,
        limit: u32,
    ) -> Reply<'a, Vec<Suspect>> {
        timed("suspects", self.0.suspects(at, dead, after, limit))
    }

    fn suspect<'a>(&'a self, at: &'a RunRef, unit: UnitId) -> Reply<'a, Option<Suspect>> {
        timed("suspect", self.0.suspect(at, unit))
    }

    fn requeue<'a>(&'a self, at: &'a RunRef, units: &'a [UnitId]) -> Reply<'a, u64> {
        timed("requeue", self.0.requeue(at, units))
    }

    fn park<'a>(
        &'a self,
        at: &'a RunRef,
        model: &'a ModelLabel,
        parked_for: Duration,
        reason: &'a str,
    ) -> Reply<'a, ()> {
        timed("park", self.0.park(at, model, parked_for, reason))
    }

    fn unpark<'a>(&'a self, at: &'a RunRef, model: &'a ModelLabel) -> Reply<'a, ()> {
        timed("unpark", self.0.unpark(at, model))
    }

    fn heartbeat<'a>(
        &'a self,
        worker: &'a WorkerId,
        claim: &'a Claim,
        info: &'a [u8],
        ttl: Duration,
    ) -> Reply<'a, Heartbeat> {
        timed("heartbeat", self.0.heartbeat(worker, claim, info, ttl))
    }

    fn workers(&self) -> Reply<'_, Vec<WorkerEntry>> {
        timed("workers", self.0.workers())
    }

    fn drain_worker<'a>(&'a self, worker: &'a WorkerId) -> Reply<'a, bool> {
        timed("drain_worker", self.0.drain_worker(worker))
    }

    fn deregister<'a>(&'a self, worker: &'a WorkerId, instance: &'a InstanceId) -> Reply<'a, bool> {
        timed("deregister", self.0.deregister(worker, instance))
    }

    fn take_rate<'a>(&'a self, bucket: &'a str, rate: RateLimit, permits: u32) -> Reply<'a, RateReply> {
        timed("take_rate", self.0.take_rate(bucket, rate, permits))
    }

    fn now_ms(&self) -> Reply<'_, u64> {
        timed("now_ms", self.0.now_ms())
    }

    fn check(&self) -> Reply<'_, Vec<String>> {
        timed("check", self.0.check())
    }
}
