//! The state that a worker reports to its coordinator, shared by the work loop and the lease keeper.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::exchange::{Offer, Parking, Registration, Report, Serves, Until, WorkerStatus};

use crate::slots::Slots;

/// The reported state.
#[derive(Debug)]
pub struct Ledger {
    pub registration: Registration,
    /// Leases and their dialogues.
    pub slots: Slots,
    /// What the worker offers; only the work loop adds the room.
    pub serves: Vec<Serves>,
    /// For people.
    pub status: WorkerStatus,
    /// Whether the worker is stopping.
    pub draining: bool,
    /// Set if the worker ends when its models have no work left.
    pub until: Option<Until>,
    parked: Vec<Parking>,
}

impl Ledger {
    /// A ledger without leases.
    pub fn new(registration: Registration, status: WorkerStatus) -> Self {
        Self {
            registration,
            slots: Slots::default(),
            serves: Vec::new(),
            status,
            draining: false,
            until: None,
            parked: Vec::new(),
        }
    }

    /// A report of the whole state.
    pub fn report(&self, offers: Vec<Offer>, wait: Duration) -> Report {
        Report {
            worker: self.registration.worker.clone(),
            instance: self.registration.instance.clone(),
            offers,
            held: self.slots.held().cloned().collect(),
            ended: self.slots.ended_leases().map(|(lease, end)| (lease.clone(), end)).collect(),
            parked: self.parked.clone(),
            draining: self.draining,
            wait,
            status: self.status.clone(),
            until: self.until.clone(),
        }
    }

    /// The same without room: renews leases but requests no work.
    pub fn renewal(&self) -> Report {
        let offers = self.serves.iter().map(|serves| Offer { serves: serves.clone(), room: 0 });
        self.report(offers.collect(), Duration::ZERO)
    }

    /// Reports a parked model; the last report about a model counts.
    pub fn park(&mut self, parking: Parking) {
        self.parked.retain(|known| known.run != parking.run || known.model != parking.model);
        self.parked.push(parking);
    }

    /// Removes what the coordinator has processed of this report.
    pub fn noted(&mut self, report: &Report) {
        self.slots.noted(report.ended.keys());
        self.parked.retain(|parking| !report.parked.contains(parking));
    }

    /// Whether the coordinator has yet to process something beyond `report`.
    pub fn has_news(&self, report: Option<&Report>) -> bool {
        let Some(report) = report else { return !(self.slots.is_told() && self.parked.is_empty()) };
        // Reported items stay in the ledger until they are processed, so comparing counts is enough.
        self.slots.ended_leases().len() > report.ended.len()
            || self.parked.len() > report.parked.len()
            || self.draining != report.draining
    }
}

/// A ledger shared by two threads.
#[derive(Clone, Debug)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// Shares a ledger.
    pub fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Locks the ledger. Never hold it across an await.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
