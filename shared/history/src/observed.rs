//! A queue whose answers are noted.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use queue::{
    Added, Claim, Commit, CommitEffect, Committed, Fence, Heartbeat, Lease, LeaseRequest, ModelCounts,
    NewUnit, QueueStore, RateLimit, RateReply, Reap, Reaped, Renewal, Reply, RunRef, RunSpec, RunState,
    RunStatus, Suspect, Transition, UnitId, WorkerEntry,
};

use crate::event::{Ending, Event};
use crate::file::EventLog;

/// A queue that notes who was given what, and what became of it.
pub struct Observed {
    queue: Arc<dyn QueueStore>,
    events: EventLog,
}

impl Observed {
    /// Notes what this queue does.
    pub fn new(queue: Arc<dyn QueueStore>, events: EventLog) -> Self {
        Self { queue, events }
    }

    /// Ends leases, noted before and after.
    async fn ended(
        &self,
        at: &RunRef,
        ending: Ending,
        fences: &[Fence],
        call: Reply<'_, Vec<Transition>>,
    ) -> queue::Result<Vec<Transition>> {
        self.events.write(&at.run, Event::Ending { ending, fences: fences.to_vec() }).await;
        let transitions = call.await?;
        let applied = fences.iter().zip(&transitions).filter(|(_, became)| **became == Transition::Applied);
        let fences: Vec<Fence> = applied.map(|(fence, _)| fence.clone()).collect();
        if !fences.is_empty() {
            self.events.write(&at.run, Event::Ended { ending, fences }).await;
        }
        Ok(transitions)
    }
}

/// Passes calls on of which nothing is noted.
macro_rules! passed_on {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {$(
        fn $call<'a>(&'a self, $($argument: $type),*) -> Reply<'a, $answer> {
            self.queue.$call($($argument),*)
        }
    )+};
}

impl QueueStore for Observed {
    passed_on! {
        owner() -> Option<String>;
        claim(owner: &'a str, anew: bool) -> String;
        run(run: &'a RunId) -> Option<RunStatus>;
        runs() -> Vec<RunStatus>;
        set_state(at: &'a RunRef, to: RunState) -> RunState;
        forget_run(run: &'a RunId) -> bool;
        tickets(at: &'a RunRef, count: u32) -> Range<u64>;
        committed(at: &'a RunRef, keys: &'a [DialogueKey]) -> Vec<Option<Committed>>;
        counts(at: &'a RunRef) -> Vec<ModelCounts>;
        suspects(at: &'a RunRef, dead: bool, after: Option<UnitId>, limit: u32) -> Vec<Suspect>;
        suspect(at: &'a RunRef, unit: UnitId) -> Option<Suspect>;
        requeue(at: &'a RunRef, units: &'a [UnitId]) -> u64;
        park(at: &'a RunRef, model: &'a ModelLabel, parked_for: Duration, reason: &'a str) -> ();
        unpark(at: &'a RunRef, model: &'a ModelLabel) -> ();
        heartbeat(worker: &'a WorkerId, claim: &'a Claim, info: &'a [u8], ttl: Duration) -> Heartbeat;
        workers() -> Vec<WorkerEntry>;
        drain_worker(worker: &'a WorkerId) -> bool;
        deregister(worker: &'a WorkerId, instance: &'a InstanceId) -> bool;
        take_rate(bucket: &'a str, rate: RateLimit, permits: u32) -> RateReply;
        now_ms() -> u64;
        check() -> Vec<String>;
    }

    fn create_run<'a>(&'a self, spec: &'a RunSpec) -> Reply<'a, RunStatus> {
        Box::pin(async move {
            let status = self.queue.create_run(spec).await?;
            let lease_ms = status.lease_for.as_millis() as u64;
            let opened = Event::Opened { generation: status.at.generation, lease_ms };
            self.events.write(&spec.run, opened).await;
            Ok(status)
        })
    }

    fn add_units<'a>(&'a self, at: &'a RunRef, first: UnitId, units: &'a [NewUnit]) -> Reply<'a, Added> {
        Box::pin(async move {
            let added = self.queue.add_units(at, first, units).await?;
            if added.applied {
                let offered = Event::Offered { generation: at.generation, first, units: units.len() as u64 };
                self.events.write(&at.run, offered).await;
            }
            Ok(added)
        })
    }

    fn lease<'a>(&'a self, at: &'a RunRef, ask: &'a LeaseRequest) -> Reply<'a, Vec<Lease>> {
        Box::pin(async move {
            let leases = self.queue.lease(at, ask).await?;
            for lease in &leases {
                let (fence, worker) = (lease.fence.clone(), ask.worker.clone());
                let granted = Event::Granted { fence, worker, until_ms: lease.deadline_ms };
                self.events.write(&at.run, granted).await;
            }
            Ok(leases)
        })
    }

    fn renew<'a>(
        &'a self,
        at: &'a RunRef,
        worker: &'a WorkerId,
        models: &'a [ModelLabel],
        held: &'a [Fence],
    ) -> Reply<'a, Renewal> {
        Box::pin(async move {
            let renewal = self.queue.renew(at, worker, models, held).await?;
            let kept = held.iter().filter(|fence| !renewal.lost.contains(fence)).cloned();
            let held: Vec<Fence> =
                kept.chain(renewal.unreported.iter().map(|lease| lease.fence.clone())).collect();
            if !held.is_empty() {
                let renewed = Event::Renewed { worker: worker.clone(), held, until_ms: renewal.deadline_ms };
                self.events.write(&at.run, renewed).await;
            }
            Ok(renewal)
        })
    }

    fn release<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        Box::pin(self.ended(at, Ending::Release, fences, self.queue.release(at, fences)))
    }

    fn finish<'a>(&'a self, at: &'a RunRef, fences: &'a [Fence]) -> Reply<'a, Vec<Transition>> {
        Box::pin(self.ended(at, Ending::Finish, fences, self.queue.finish(at, fences)))
    }

    fn reap<'a>(&'a self, at: &'a RunRef, whose: &'a Reap) -> Reply<'a, Reaped> {
        Box::pin(async move {
            let worker = match whose {
                Reap::Expired => None,
                Reap::Worker(worker) => Some(worker.clone()),
            };
            // A look for expired leases every second would be most of what is noted; what expired shows from the times.
            if worker.is_some() {
                self.events.write(&at.run, Event::Reaping { generation: at.generation, worker }).await;
            }
            let reaped = self.queue.reap(at, whose).await?;
            let units = [&reaped.suspected[..], &reaped.struck, &reaped.dead].concat();
            if !units.is_empty() {
                self.events.write(&at.run, Event::Reaped { generation: at.generation, units }).await;
            }
            Ok(reaped)
        })
    }

    fn commit<'a>(&'a self, at: &'a RunRef, commits: &'a [Commit]) -> Reply<'a, Vec<CommitEffect>> {
        Box::pin(async move {
            let effects = self.queue.commit(at, commits).await?;
            for (commit, effect) in commits.iter().zip(&effects) {
                let Committed { scored, ticket } = commit.record;
                let (generation, key, effect) = (at.generation, commit.key.clone(), (*effect).into());
                let committed = Event::Committed { generation, key, scored, ticket, effect };
                self.events.write(&at.run, committed).await;
            }
            Ok(effects)
        })
    }
}
