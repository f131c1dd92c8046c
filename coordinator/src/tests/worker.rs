//! A played worker of these tests, which speaks to a coordinator at once.

use std::ops::{Deref, DerefMut};

use domain::exchange::{Delivery, LeaseId, Orders, Receipt, Registration, WorkExchange};
use domain::{DialogueKey, FailureCause, InstanceId};
use harness::played_worker::{PlayedWorker, record};
use serde_json::json;

pub use harness::played_worker::keys;

use super::ground::Started;

pub fn registration(worker: &str, instance: &str, predecessors: &[&str]) -> Registration {
    Registration {
        worker: worker.into(),
        instance: instance.into(),
        predecessors: predecessors.iter().map(|id| InstanceId::new(*id)).collect(),
        kgfleet: "1".into(),
        host: "h".into(),
    }
}

/// A worker of the two models of a [`submission`](super::ground::submission).
pub struct Worker {
    played: PlayedWorker,
    /// Dialogues of each model that it asks for.
    pub room: u32,
}

impl Deref for Worker {
    type Target = PlayedWorker;

    fn deref(&self) -> &PlayedWorker {
        &self.played
    }
}

impl DerefMut for Worker {
    fn deref_mut(&mut self) -> &mut PlayedWorker {
        &mut self.played
    }
}

impl Worker {
    pub fn new(name: &str) -> Self {
        Self { played: PlayedWorker::new(name, &["org/a", "b"]), room: 7 }
    }

    /// One that ends when these models have nothing left.
    pub fn until(name: &str, models: &[&str]) -> Self {
        Self { played: PlayedWorker::until(name, models), room: 7 }
    }

    /// The same as a process of this id.
    pub fn instance(mut self, instance: &str) -> Self {
        self.instance = instance.into();
        self
    }

    /// Reports, with room for more or without, and takes what the answer says to heart.
    pub async fn exchange(&mut self, coordinator: &Started, room: u32) -> Orders {
        let orders = coordinator.exchange(self.report(room)).await.unwrap();
        assert!(orders.noted);
        self.played.follow(&orders);
        orders
    }

    /// Asks for work until it gets none, answering everything.
    pub async fn work_off(&mut self, coordinator: &Started, asked: &mut Vec<DialogueKey>) {
        loop {
            self.exchange(coordinator, self.room).await;
            if self.held.is_empty() {
                return;
            }
            for grant in std::mem::take(&mut self.held) {
                let records: Vec<Delivery> =
                    keys(&grant).into_iter().map(|key| scored(&grant.lease, &key)).collect();
                asked.extend(records.iter().map(|record| record.key.clone()));
                let receipts = coordinator.deliver(records).await.unwrap();
                assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored), "{receipts:?}");
                self.finished.push(grant.lease);
            }
        }
    }
}

/// A score that depends on the dialogue alone, so that sums in another order would show.
pub fn score(key: &DialogueKey) -> f64 {
    let seed = domain::seed::dialogue_seed(1, key);
    (seed % 1_000_003) as f64 / 1_000_003.0
}

pub fn scored(lease: &LeaseId, key: &DialogueKey) -> Delivery {
    let outcome = json!({"state": "scored", "scores": {"f1": score(key)}, "infos": {}});
    Delivery::of(lease.run.clone(), &record(lease, key, &outcome, &json!([]))).unwrap()
}

pub fn failed(lease: &LeaseId, key: &DialogueKey, cause: FailureCause) -> Delivery {
    let outcome = json!({"state": "failed", "cause": cause, "message": "so it was"});
    Delivery::of(lease.run.clone(), &record(lease, key, &outcome, &json!([]))).unwrap()
}

/// The id of a delivered record.
pub fn record_id(delivery: &Delivery) -> domain::RecordId {
    results::Summary::parse(&delivery.json).unwrap().attempt.id
}
