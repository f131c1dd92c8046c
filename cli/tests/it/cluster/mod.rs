//! The cluster as its users meet it: coordinators, workers and a real Redis, started, steered, killed.

mod alone;
mod attacker;
mod bad_input;
mod chaos;
mod draining;
mod dying;
mod killers;
mod mishaps;
mod names;
mod pipelines;
mod pod_costs;
mod rude;
mod same_records;
mod seen;
mod sentinel;
mod several;
mod steering;
mod symptoms;
mod tls;

use std::collections::BTreeMap;

use domain::DialogueKey;
use jiff::Timestamp;
use results::log::LogEntry;

use crate::harness::{Cluster, RunOnDisk};

/// Milliseconds since the Unix epoch.
fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap()
}

/// The record of every dialogue that counts, and that there are exactly so many.
#[track_caller]
fn winners(cluster: &Cluster, dialogues: usize) -> BTreeMap<DialogueKey, LogEntry> {
    let run: RunOnDisk = cluster.data.run();
    let mut winners: BTreeMap<DialogueKey, LogEntry> = BTreeMap::new();
    for entry in run.entries() {
        let rank = |entry: &LogEntry| (!entry.record.outcome.is_scored(), entry.ticket);
        match winners.get(&entry.record.key) {
            Some(standing) if rank(standing) < rank(&entry) => {}
            _ => {
                winners.insert(entry.record.key.clone(), entry);
            }
        }
    }
    assert_eq!(winners.len(), dialogues);
    cluster.data.kgfleet(&["verify", run.name(), "--history"]).expect(0);
    winners
}
