//! What was promised: acknowledged records, and commands with what came of them. What breaks a promise is written down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::exchange::{Delivery, Grant, LeaseEnd, LeaseId, Orders, Receipt};
use domain::{DialogueKey, RecordId, RunId};
use results::Summary;

use crate::fleet::LEASE_FOR;
use crate::world::Process;

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Submit,
    Extend,
    Pause,
    Resume,
    Cancel,
    Retry,
    Remove,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Done,
    Refused,
    /// Nobody can say: the coordinator died, or could not reach the queue or the sink.
    Unknown,
}

/// A command and when it was carried out, by the numbers of events.
#[derive(Clone, Debug)]
pub struct Told {
    pub asked: Asked,
    pub name: RunId,
    pub begun: u64,
    pub ended: u64,
    pub came: Came,
}

/// A record that a worker may have dropped.
#[derive(Clone, Debug)]
pub struct Kept {
    pub run: RunId,
    pub key: DialogueKey,
    pub id: RecordId,
    pub generation: u64,
    pub at: u64,
}

/// A unit that a worker holds.
struct Holding {
    worker: Arc<Process>,
    lease: LeaseId,
    /// Until when nobody may take it away, in the world's time.
    good_until: Duration,
}

#[derive(Default)]
pub struct Book(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    kept: BTreeMap<(RunId, DialogueKey), Vec<Kept>>,
    told: Vec<Told>,
    holdings: Vec<Holding>,
    /// What somebody has begun to remove.
    removed: BTreeSet<RunId>,
    broken: Vec<String>,
}

impl Book {
    /// Writes down that a promise was broken.
    pub fn broken(&self, what: String) {
        self.0.lock().unwrap().broken.push(what);
    }

    pub fn all_broken(&self) -> Vec<String> {
        self.0.lock().unwrap().broken.clone()
    }

    pub fn removes(&self, name: &RunId) {
        self.0.lock().unwrap().removed.insert(name.clone());
    }

    pub fn tell(&self, told: Told) {
        self.0.lock().unwrap().told.push(told);
    }

    pub fn told(&self) -> Vec<Told> {
        self.0.lock().unwrap().told.clone()
    }

    /// Every record that was acknowledged.
    pub fn kept(&self) -> Vec<Kept> {
        self.0.lock().unwrap().kept.values().flatten().cloned().collect()
    }

    pub fn acknowledged(&self, at: u64, deliveries: &[Delivery], receipts: &[Receipt]) {
        let mut pages = self.0.lock().unwrap();
        for (delivery, receipt) in deliveries.iter().zip(receipts) {
            if *receipt == Receipt::Stored {
                let attempt = Summary::parse(&delivery.json).unwrap().attempt;
                let (id, generation) = (attempt.id, attempt.generation);
                let (run, key) = (delivery.run.clone(), delivery.key.clone());
                let kept = Kept { run: run.clone(), key: key.clone(), id, generation, at };
                pages.kept.entry((run, key)).or_default().push(kept);
            }
        }
    }

    /// A worker says which of its leases have ended.
    pub fn gives_back(&self, worker: &Arc<Process>, ended: &BTreeMap<LeaseId, LeaseEnd>) {
        let is_over = |holding: &Holding| {
            holding.worker.is_dead()
                || (Arc::ptr_eq(&holding.worker, worker) && ended.contains_key(&holding.lease))
        };
        self.0.lock().unwrap().holdings.retain(|holding| !is_over(holding));
    }

    /// What a worker holds after a report that it sent at `asked`. Nobody else may hold it then.
    pub fn holds(
        &self,
        worker: &Arc<Process>,
        (asked, now): (Duration, Duration),
        renewed: &[LeaseId],
        orders: &Orders,
    ) {
        let mut pages = self.0.lock().unwrap();
        let Pages { holdings, broken, removed, .. } = &mut *pages;
        let is_lost =
            |holding: &Holding| Arc::ptr_eq(&holding.worker, worker) && orders.lost.contains(&holding.lease);
        holdings.retain(|holding| !holding.worker.is_dead() && !is_lost(holding));
        for holding in holdings.iter_mut().filter(|holding| renewed.contains(&holding.lease)) {
            if Arc::ptr_eq(&holding.worker, worker) {
                holding.good_until = asked + LEASE_FOR;
            }
        }
        for Grant { lease, .. } in &orders.grants {
            let is_same = |held: &LeaseId| {
                (&held.run, held.generation, held.unit) == (&lease.run, lease.generation, lease.unit)
            };
            let other = holdings.iter().find(|holding| {
                is_same(&holding.lease)
                    && holding.good_until > now
                    && !Arc::ptr_eq(&holding.worker, worker)
                    && !removed.iter().any(|removed| of(removed, &lease.run))
            });
            if let Some(other) = other {
                let (one, two) = (other.worker.name(), worker.name());
                broken.push(format!("unit {} of run {} is held by {one} and {two}", lease.unit, lease.run));
            }
            let (worker, lease) = (Arc::clone(worker), lease.clone());
            holdings.push(Holding { worker, lease, good_until: asked + LEASE_FOR });
        }
    }

    /// Looks at what was handed out upon a report that began at this event.
    pub fn granted(&self, begun: u64, grants: &[Grant]) {
        let mut pages = self.0.lock().unwrap();
        for grant in grants.iter().filter(|grant| grant.retry.is_none()) {
            for iteration in &grant.iterations {
                let run = grant.lease.run.clone();
                let key = DialogueKey {
                    model: grant.lease.model.clone(),
                    task: grant.task.clone(),
                    iteration: *iteration,
                };
                // Who removes a run and starts it again is asked everything again.
                if pages.removed.iter().any(|removed| of(removed, &run)) {
                    continue;
                }
                let known = pages.kept.get(&(run.clone(), key.clone()));
                if known.is_some_and(|kept| kept.iter().any(|kept| kept.at < begun)) {
                    let what =
                        format!("{key} of run {run} is handed out although its record was acknowledged");
                    pages.broken.push(what);
                }
            }
        }
    }
}

/// Whether a run is this one, or one of the judged benchmark of this name.
pub fn of(name: &RunId, run: &RunId) -> bool {
    let rest = run.as_str().strip_prefix(name.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
