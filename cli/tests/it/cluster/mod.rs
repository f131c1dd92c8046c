//! The cluster as its users meet it: coordinators, workers and a real Redis, started, steered, killed.

mod alone;
pub mod attacker;
mod chaos;
mod demo;
mod draining;
mod dying;
mod full_disk;
mod logins;
mod mishaps;
mod names;
mod pipelines;
mod renewing;
mod restoring;
mod rights;
mod rude;
mod same_records;
mod seen;
mod sentinel;
mod sharing;
mod steering;
mod symptoms;
mod tls;
mod until_done;

use std::collections::BTreeMap;

use domain::{DialogueKey, Record, RecordId};

use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, RunOnDisk, Running, Server, acknowledged};

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

/// The record of every dialogue that counts, and that there are exactly so many. No record that was acknowledged is missing.
#[track_caller]
fn winners(cluster: &Cluster, dialogues: usize) -> BTreeMap<DialogueKey, Record> {
    let run: RunOnDisk = cluster.data.run();
    let mut winners: BTreeMap<DialogueKey, Record> = BTreeMap::new();
    for record in run.entries() {
        match winners.get(&record.key) {
            Some(first) if first.outcome.is_scored() || !record.outcome.is_scored() => {}
            _ => {
                winners.insert(record.key.clone(), record);
            }
        }
    }
    assert_eq!(winners.len(), dialogues);
    cluster.data.kgfleet(&["verify", run.name()]).expect(0);
    let acknowledged = acknowledged::read(&cluster.data.acknowledged()).remove(&run.manifest.run).unwrap();
    let kept = acknowledged::kept(&run.dir.log());
    assert_eq!(acknowledged.difference(&kept).collect::<Vec<_>>(), Vec::<&RecordId>::new());
    winners
}
