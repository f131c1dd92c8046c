//! A worker that a test plays: it asks no model, and makes its records by hand. It calls nobody itself, so it serves tests of a
//! coordinator in the same process, of its page, and behind a wire.

use std::time::Duration;

use domain::exchange::{
    Grant, LeaseEnd, LeaseId, Offer, Orders, Parking, Registration, Report, Serves, Until, WorkerStatus,
};
use domain::{DialogueKey, InstanceId, Record, RecordId, WorkerId};
use serde_json::{Value, json};

/// What the worker holds, and what it will say in its next report.
pub struct PlayedWorker {
    pub id: WorkerId,
    pub instance: InstanceId,
    pub serves: Vec<Serves>,
    pub held: Vec<Grant>,
    pub finished: Vec<LeaseId>,
    pub released: Vec<LeaseId>,
    pub parked: Vec<Parking>,
    pub draining: bool,
    pub status: WorkerStatus,
    /// Set for one that ends when nothing is left.
    pub until: Option<Until>,
}

impl PlayedWorker {
    /// A worker of this name beside servers of these models.
    pub fn new(name: &str, models: &[&str]) -> Self {
        let status =
            WorkerStatus { serves: models.iter().map(ToString::to_string).collect(), ..Default::default() };
        Self {
            id: WorkerId::new(name),
            instance: InstanceId::default(),
            serves: models.iter().map(|model| Serves::Model((*model).into())).collect(),
            held: Vec::new(),
            finished: Vec::new(),
            released: Vec::new(),
            parked: Vec::new(),
            draining: false,
            status,
            until: None,
        }
    }

    /// One that ends when these models have nothing left.
    pub fn until(name: &str, models: &[&str]) -> Self {
        let expects = models.iter().map(ToString::to_string).collect();
        Self { until: Some(Until { expects }), ..Self::new(name, models) }
    }

    /// What it says first, as a process that follows none.
    pub fn registration(&self) -> Registration {
        Registration {
            worker: self.id.clone(),
            instance: self.instance.clone(),
            predecessors: Vec::new(),
            kgfleet: "1".into(),
            host: self.status.host.clone(),
        }
    }

    /// What it says now, with room for so many more dialogues of each model.
    pub fn report(&self, room: u32) -> Report {
        let ended = |leases: &[LeaseId], end: LeaseEnd| -> Vec<(LeaseId, LeaseEnd)> {
            leases.iter().map(|lease| (lease.clone(), end)).collect()
        };
        let finished = ended(&self.finished, LeaseEnd::Finished);
        Report {
            worker: self.id.clone(),
            instance: self.instance.clone(),
            offers: self.serves.iter().map(|serves| Offer { serves: serves.clone(), room }).collect(),
            held: self.held.iter().map(|grant| grant.lease.clone()).collect(),
            ended: finished.into_iter().chain(ended(&self.released, LeaseEnd::Released)).collect(),
            parked: self.parked.clone(),
            draining: self.draining,
            wait: Duration::ZERO,
            status: self.status.clone(),
            until: self.until.clone(),
        }
    }

    /// Does what the answer to its report says: what it said is heard, lost leases are gone, and new ones are held.
    pub fn follow(&mut self, orders: &Orders) {
        self.finished.clear();
        self.released.clear();
        self.parked.clear();
        self.held.retain(|grant| !orders.lost.contains(&grant.lease));
        for grant in &orders.grants {
            assert!(!grant.iterations.is_empty(), "a grant is of dialogues");
            if !self.held.iter().any(|held| held.lease == grant.lease) {
                self.held.push(grant.clone());
            }
        }
    }
}

/// The dialogues of a grant.
pub fn keys(grant: &Grant) -> Vec<DialogueKey> {
    let key = |iteration: &u32| DialogueKey {
        model: grant.lease.model.clone(),
        task: grant.task.clone(),
        iteration: *iteration,
    };
    grant.iterations.iter().map(key).collect()
}

/// A record of a dialogue under a lease, with this outcome and these rounds.
pub fn record(lease: &LeaseId, key: &DialogueKey, outcome: &Value, rounds: &Value) -> Record {
    serde_json::from_value(json!({
        "key": key,
        "attempt": {
            "id": RecordId::random(),
            "generation": lease.generation,
            "number": lease.attempt,
            "worker": "played",
        },
        "started_at": "2025-01-01T00:00:00Z",
        "ended_at": "2025-01-01T00:00:01Z",
        "rounds": rounds,
        "outcome": outcome,
        "provenance": {
            "kgfleet": "0", "sampling": {}, "seed": 1,
            "task": {
                "class": "c", "version": "1", "case": "case-1", "pack": "p", "pack_hash": "h", "scorer": "s",
            },
            "model": {"connector": "played", "requested": "m"},
        },
    }))
    .unwrap()
}
