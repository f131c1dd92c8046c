//! The cluster as its users meet it: coordinators, workers and a real Redis, started, steered, killed.

mod alone;
mod attacker;
mod bad_input;
mod chaos;
mod draining;
mod drifting;
mod dying;
mod killers;
mod logins;
mod mishaps;
mod names;
mod pipelines;
mod refused;
mod renewing;
mod restoring;
mod rights;
mod rude;
mod same_records;
mod seen;
mod sentinel;
mod several;
mod sharing;
mod steering;
mod symptoms;
mod tls;
mod until_done;

use std::collections::BTreeMap;

use domain::DialogueKey;
use jiff::Timestamp;
use results::log::LogEntry;

use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, RunOnDisk, Running, Server};

/// Dialogues that a worker of [`Cluster::worker`] has in flight.
const IN_FLIGHT: usize = 4;

/// A run of which so many dialogues are answered and the others wait for their answers at its one worker.
fn in_the_middle(
    cluster: &Cluster,
    tasks: &[&str],
    iterations: u32,
    answered: usize,
) -> (Server, Coordinator, String, Running) {
    let server = Server::start();
    server.gate().close_after(answered);
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, tasks, iterations);
    let worker = cluster.worker("first", &coordinator, &server);
    server.gate().until_held(IN_FLIGHT);
    (server, coordinator, run, worker)
}

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
