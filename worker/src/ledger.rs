//! What a worker tells its coordinator, shared by the two who tell it: the work loop and the lease keeper.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::exchange::{Offer, Parking, Registration, Report, Serves, WorkerStatus};

use crate::slots::Slots;

/// The state that reports are made of.
#[derive(Debug)]
pub struct Ledger {
    /// Who reports.
    pub registration: Registration,
    /// Leases and their dialogues.
    pub slots: Slots,
    /// What the worker serves; room is told by the work loop alone.
    pub serves: Vec<Serves>,
    /// For people.
    pub status: WorkerStatus,
    /// Whether the worker is ending.
    pub draining: bool,
    parked: Vec<Parking>,
}

impl Ledger {
    /// The ledger of a worker that holds nothing.
    pub fn new(registration: Registration, status: WorkerStatus) -> Self {
        Self {
            registration,
            slots: Slots::default(),
            serves: Vec::new(),
            status,
            draining: false,
            parked: Vec::new(),
        }
    }

    /// The whole state as it is now.
    pub fn report(&self, offers: Vec<Offer>, wait: Duration) -> Report {
        Report {
            worker: self.registration.worker.clone(),
            instance: self.registration.instance.clone(),
            offers,
            held: self.slots.held().cloned().collect(),
            finished: self.slots.finished().cloned().collect(),
            released: self.slots.released().cloned().collect(),
            parked: self.parked.clone(),
            draining: self.draining,
            wait,
            status: self.status.clone(),
        }
    }

    /// The same without room: renews leases and asks for nothing.
    pub fn renewal(&self) -> Report {
        let offers = self.serves.iter().map(|serves| Offer { serves: serves.clone(), room: 0 });
        self.report(offers.collect(), Duration::ZERO)
    }

    /// Tells of a model that cannot be asked for a while; the last word about a model counts.
    pub fn park(&mut self, parking: Parking) {
        self.parked.retain(|known| known.run != parking.run || known.model != parking.model);
        self.parked.push(parking);
    }

    /// The coordinator has taken note of what this report told.
    pub fn noted(&mut self, report: &Report) {
        self.slots.noted(&report.finished, &report.released);
        self.parked.retain(|parking| !report.parked.contains(parking));
    }

    /// Whether there is something that the coordinator has not taken note of, beyond what `report` tells it.
    pub fn has_news(&self, report: Option<&Report>) -> bool {
        let Some(report) = report else { return !(self.slots.is_told() && self.parked.is_empty()) };
        // What a report tells stays in the ledger until it is noted, so that counting is enough.
        self.slots.finished().len() > report.finished.len()
            || self.slots.released().len() > report.released.len()
            || self.parked.len() > report.parked.len()
            || self.draining != report.draining
    }
}

/// A ledger that two threads use, each for moments.
#[derive(Clone, Debug)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// Shares a ledger.
    pub fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// The ledger, for a moment: never across an await.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
