//! A queue whose answers are noted.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use queue::{
    Added, Claim, Commit, CommitEffect, Committed, Fence, Heartbeat, Lease, LeaseRequest, ModelCounts,
    NewUnit, QueueOwner, QueueStore, RateLimit, RateReply, Reap, Reaped, Renewal, RunRef, RunSpec, RunState,
    RunStatus, Suspect, Transition, UnitId, WorkerEntry,
};

use crate::event::{Event, LeaseEnding};
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
        ending: LeaseEnding,
        fences: &[Fence],
        call: impl Future<Output = queue::Result<Vec<Transition>>>,
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

    async fn create_run(&self, spec: &RunSpec) -> queue::Result<RunStatus> {
        let status = self.queue.create_run(spec).await?;
        let lease_ms = status.lease_for.as_millis() as u64;
        let opened = Event::Opened { generation: status.at.generation, lease_ms };
        self.events.write(&spec.run, opened).await;
        Ok(status)
    }

    async fn add_units(&self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> queue::Result<Added> {
        let added = self.queue.add_units(at, first, units).await?;
        if added.applied {
            let offered = Event::Offered { generation: at.generation, first, units: units.len() as u64 };
            self.events.write(&at.run, offered).await;
        }
        Ok(added)
    }

    async fn lease(&self, at: &RunRef, ask: &LeaseRequest) -> queue::Result<Vec<Lease>> {
        let leases = self.queue.lease(at, ask).await?;
        for lease in &leases {
            let (fence, worker) = (lease.fence.clone(), ask.worker.clone());
            let granted = Event::Granted { fence, worker, until_ms: lease.deadline_ms };
            self.events.write(&at.run, granted).await;
        }
        Ok(leases)
    }

    async fn renew(
        &self,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> queue::Result<Renewal> {
        let renewal = self.queue.renew(at, worker, models, held).await?;
        let kept = held.iter().filter(|fence| !renewal.lost.contains(fence)).cloned();
        let held: Vec<Fence> =
            kept.chain(renewal.unreported.iter().map(|lease| lease.fence.clone())).collect();
        if !held.is_empty() {
            let renewed = Event::Renewed { worker: worker.clone(), held, until_ms: renewal.deadline_ms };
            self.events.write(&at.run, renewed).await;
        }
        Ok(renewal)
    }

    async fn release(&self, at: &RunRef, fences: &[Fence]) -> queue::Result<Vec<Transition>> {
        self.ended(at, LeaseEnding::Release, fences, self.queue.release(at, fences)).await
    }

    async fn finish(&self, at: &RunRef, fences: &[Fence]) -> queue::Result<Vec<Transition>> {
        self.ended(at, LeaseEnding::Finish, fences, self.queue.finish(at, fences)).await
    }

    async fn reap(&self, at: &RunRef, whose: &Reap) -> queue::Result<Reaped> {
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
    }

    async fn commit(&self, at: &RunRef, commits: &[Commit]) -> queue::Result<Vec<CommitEffect>> {
        let effects = self.queue.commit(at, commits).await?;
        for (commit, effect) in commits.iter().zip(&effects) {
            let Committed { scored, ticket } = commit.record;
            let (generation, key, effect) = (at.generation, commit.key.clone(), (*effect).into());
            let committed = Event::Committed { generation, key, scored, ticket, effect };
            self.events.write(&at.run, committed).await;
        }
        Ok(effects)
    }
}

/// Makes the trait of two lists: calls that are passed on as they are, and those of which something is noted above.
macro_rules! calls {
    (
        passed_on {$($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+}
        noted {$($noted:ident($($noted_argument:ident: $noted_type:ty),*) -> $noted_answer:ty;)+}
    ) => {
        #[async_trait::async_trait]
        impl QueueStore for Observed {
            fn address(&self) -> Option<&str> {
                self.queue.address()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                self.queue.$call($($argument),*).await
            })+
            $(async fn $noted(&self, $($noted_argument: $noted_type),*) -> queue::Result<$noted_answer> {
                Self::$noted(self, $($noted_argument),*).await
            })+
        }
    };
}

calls! {
    passed_on {
        owner() -> Option<QueueOwner>;
        bind(from: Option<&QueueOwner>, to: &QueueOwner) -> QueueOwner;
        run(run: &RunId) -> Option<RunStatus>;
        runs() -> Vec<RunStatus>;
        set_state(at: &RunRef, to: RunState) -> RunState;
        forget_run(run: &RunId) -> bool;
        tickets(at: &RunRef, count: u32) -> Range<u64>;
        committed(at: &RunRef, keys: &[DialogueKey]) -> Vec<Option<Committed>>;
        counts(at: &RunRef) -> Vec<ModelCounts>;
        suspects(at: &RunRef, dead: bool, after: Option<UnitId>, limit: u32) -> Vec<Suspect>;
        suspect(at: &RunRef, unit: UnitId) -> Option<Suspect>;
        requeue(at: &RunRef, units: &[UnitId]) -> u64;
        park(at: &RunRef, model: &ModelLabel, parked_for: Duration, reason: &str) -> ();
        unpark(at: &RunRef, model: &ModelLabel) -> ();
        heartbeat(worker: &WorkerId, claim: &Claim, info: &[u8], ttl: Duration) -> Heartbeat;
        workers() -> Vec<WorkerEntry>;
        drain_worker(worker: &WorkerId) -> bool;
        deregister(worker: &WorkerId, instance: &InstanceId) -> bool;
        take_rate(bucket: &str, rate: RateLimit, permits: u32) -> RateReply;
        now_ms() -> u64;
        check() -> Vec<String>;
    }
    noted {
        create_run(spec: &RunSpec) -> RunStatus;
        add_units(at: &RunRef, first: UnitId, units: &[NewUnit]) -> Added;
        lease(at: &RunRef, ask: &LeaseRequest) -> Vec<Lease>;
        renew(at: &RunRef, worker: &WorkerId, models: &[ModelLabel], held: &[Fence]) -> Renewal;
        release(at: &RunRef, fences: &[Fence]) -> Vec<Transition>;
        finish(at: &RunRef, fences: &[Fence]) -> Vec<Transition>;
        reap(at: &RunRef, whose: &Reap) -> Reaped;
        commit(at: &RunRef, commits: &[Commit]) -> Vec<CommitEffect>;
    }
}
