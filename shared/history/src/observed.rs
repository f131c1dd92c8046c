//! A queue whose calls are noted as events, so that a checker can compare them with the record log afterwards. It changes no
//! call and no answer. A call that ends leases is noted before it is made too, except the look for expired ones, so that a
//! process that is killed in between leaves a trace. An error of the queue is passed on and is no event. To note a further call,
//! give `NotedCalls` a method of its name.

use std::ops::Deref;
use std::sync::Arc;

use domain::{ModelLabel, WorkerId};
use queue::{
    Added, Commit, CommitEffect, Committed, Fence, Lease, LeaseRequest, NewUnit, QueueStore, Reap, Reaped,
    Renewal, RunRef, RunSpec, RunStatus, Transition, UnitId,
};

use crate::event::{Event, LeaseEnding};
use crate::file::EventLog;

/// A queue store that notes its leases and records as events, and otherwise passes every call on.
pub struct Observed(NotedCalls);

impl Observed {
    /// Notes the calls of this queue.
    pub fn new(queue: Arc<dyn QueueStore>, events: EventLog) -> Self {
        Self(NotedCalls { queue, events })
    }
}

/// The calls that are noted, each as a method of the same name. Every other call goes straight to the queue.
struct NotedCalls {
    queue: Arc<dyn QueueStore>,
    events: EventLog,
}

impl Deref for NotedCalls {
    type Target = dyn QueueStore;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

impl NotedCalls {
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

macro_rules! calls {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for Observed {
            fn address(&self) -> Option<&str> {
                self.0.address()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                self.0.$call($($argument),*).await
            })+
        }
    };
}

queue::for_each_call!(calls);
