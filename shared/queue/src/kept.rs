//! What Redis keeps of the queue for the next leader, and what follows from it.
//!
//! Runs, units that are not done with their leases and deaths, and workers are kept. What was answered follows from the record
//! log; parkings, what is said of pools, and rate budgets are told again by those who told them before.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{InstanceId, ModelLabel, RunId, WorkerId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::millis;
use crate::error::{Error, Result};
use crate::memory::{MemoryQueue, MemoryRegistration, MemoryRun, MemoryUnit, UnitPlace};
use crate::run::{RunRef, RunStatus};
use crate::run_state::RunState;
use crate::unit::{Death, NewUnit, UnitId};

/// A change of what is kept. Entries are one line of JSON, and after it the bytes that the queue does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Everything is removed: what follows replaces it.
    Clear,
    /// What replaces everything is there.
    Whole,
    Run(RunId, Vec<u8>),
    /// A run is removed with its units.
    RunGone(RunId),
    Unit(RunId, UnitId, Vec<u8>),
    UnitGone(RunId, UnitId),
    Worker(WorkerId, Vec<u8>),
    WorkerGone(WorkerId),
    /// Nothing: the next round says whether anything could be written.
    Probe,
}

#[derive(Serialize, Deserialize)]
struct KeptRun {
    generation: u64,
    plan_hash: String,
    state: RunState,
    next_unit: UnitId,
    lease_ms: u64,
    max_strikes: u32,
    /// Units ever added, by model.
    added: BTreeMap<ModelLabel, u64>,
}

#[derive(Serialize, Deserialize)]
struct KeptUnit {
    model: ModelLabel,
    dialogues: u32,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deaths: Vec<Death>,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dead: bool,
}

#[derive(Serialize, Deserialize)]
struct KeptWorker {
    instance: InstanceId,
    identity: String,
    draining: bool,
    ttl_ms: u64,
}

fn entry(head: &impl Serialize, rest: &[u8]) -> Vec<u8> {
    let mut entry = serde_json::to_vec(head).unwrap_or_default();
    entry.push(b'\n');
    entry.extend_from_slice(rest);
    entry
}

/// Reads what [`entry`] wrote.
fn read<'e, T: DeserializeOwned>(what: &str, entry: &'e [u8]) -> Result<(T, &'e [u8])> {
    let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
    let (head, rest) = entry.split_at(end);
    let head = serde_json::from_slice(head)
        .map_err(|error| Error::Corrupt { message: format!("{what} in Redis: {error}") })?;
    Ok((head, rest.get(1..).unwrap_or_default()))
}

fn run_entry(run: &MemoryRun) -> Vec<u8> {
    let RunStatus { at, plan_hash, state, next_unit, lease_for, max_strikes } = run.status.clone();
    let added = run.models.iter().map(|(label, model)| (label.clone(), model.added)).collect();
    let kept = KeptRun {
        generation: at.generation,
        plan_hash,
        state,
        next_unit,
        lease_ms: millis(lease_for),
        max_strikes,
        added,
    };
    entry(&kept, b"")
}

fn unit_entry(unit: &MemoryUnit) -> Vec<u8> {
    let NewUnit { model, dialogues, payload } = &unit.content;
    let worker = match &unit.place {
        UnitPlace::Leased { worker, .. } => Some(worker.clone()),
        UnitPlace::Pending | UnitPlace::Dead => None,
    };
    let kept = KeptUnit {
        model: model.clone(),
        dialogues: *dialogues,
        attempt: unit.attempt,
        deaths: unit.deaths.clone(),
        worker,
        dead: unit.place == UnitPlace::Dead,
    };
    entry(&kept, payload)
}

fn worker_entry(of: &MemoryRegistration) -> Vec<u8> {
    let kept = KeptWorker {
        instance: of.instance.clone(),
        identity: of.identity.clone(),
        draining: of.draining,
        ttl_ms: of.expires_ms.saturating_sub(of.seen_ms),
    };
    entry(&kept, &of.info)
}

impl MemoryQueue {
    /// The changes of what is kept since they were last taken.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        let gone = std::mem::take(&mut self.touched.runs_gone);
        let mut changes: Vec<Change> = gone.into_iter().map(Change::RunGone).collect();
        for (name, run) in &mut self.runs {
            if std::mem::take(&mut run.is_touched) {
                changes.push(Change::Run(name.clone(), run_entry(run)));
            }
            for id in std::mem::take(&mut run.touched) {
                changes.push(match run.units.get(&id) {
                    Some(unit) => Change::Unit(name.clone(), id, unit_entry(unit)),
                    None => Change::UnitGone(name.clone(), id),
                });
            }
        }
        for worker in std::mem::take(&mut self.touched.workers) {
            changes.push(match self.workers.get(&worker) {
                Some(known) => Change::Worker(worker, worker_entry(known)),
                None => Change::WorkerGone(worker),
            });
        }
        changes
    }

    /// Everything that is kept, to be written anew.
    pub(crate) fn all_changes(&mut self) -> Vec<Change> {
        self.take_changes();
        let mut changes = vec![Change::Clear];
        for (name, run) in &self.runs {
            changes.push(Change::Run(name.clone(), run_entry(run)));
            let units = run.units.iter();
            changes.extend(units.map(|(id, unit)| Change::Unit(name.clone(), *id, unit_entry(unit))));
        }
        let workers = self.workers.iter();
        changes.extend(workers.map(|(worker, known)| Change::Worker(worker.clone(), worker_entry(known))));
        changes.push(Change::Whole);
        changes
    }
}

/// What Redis keeps, as it was read: names with their entries.
#[derive(Debug, Default)]
pub(crate) struct KeptEntries {
    pub(crate) runs: Vec<(String, Vec<u8>)>,
    /// The units of each run, in the order of `runs`.
    pub(crate) units: Vec<Vec<(u64, Vec<u8>)>>,
    pub(crate) workers: Vec<(String, Vec<u8>)>,
}

impl KeptEntries {
    /// The queue of the next leader. Whoever holds something has the time of a lease from now on to renew it.
    pub(crate) fn into_queue(self, now_ms: u64) -> Result<MemoryQueue> {
        let mut queue = MemoryQueue::kept();
        for ((name, entry), units) in self.runs.into_iter().zip(self.units) {
            let (kept, _) = read::<KeptRun>(&format!("run `{name}`"), &entry)?;
            let name = RunId::new(name);
            let at = RunRef { run: name.clone(), generation: kept.generation };
            let lease_for = Duration::from_millis(kept.lease_ms);
            let KeptRun { plan_hash, state, next_unit, max_strikes, .. } = kept;
            let status = RunStatus { at, plan_hash, state, next_unit, lease_for, max_strikes };
            let mut run = MemoryRun::new(status, true);
            run.is_touched = false;
            for (label, added) in kept.added {
                run.models.entry(label).or_default().added = added;
            }
            for (id, entry) in units {
                let (kept, payload) = read::<KeptUnit>(&format!("unit {id} of run `{name}`"), &entry)?;
                let KeptUnit { model, dialogues, attempt, deaths, worker, dead } = kept;
                let place = match worker {
                    Some(worker) => UnitPlace::Leased { worker, deadline_ms: now_ms + millis(lease_for) },
                    None if dead => UnitPlace::Dead,
                    None => UnitPlace::Pending,
                };
                let content = NewUnit { model, dialogues, payload: payload.to_vec() };
                run.insert(UnitId(id), MemoryUnit { content, attempt, deaths, place });
            }
            queue.runs.insert(name, run);
        }
        for (name, entry) in self.workers {
            let (kept, info) = read::<KeptWorker>(&format!("worker `{name}`"), &entry)?;
            let KeptWorker { instance, identity, draining, ttl_ms } = kept;
            let (info, expires_ms) = (info.to_vec(), now_ms + ttl_ms);
            let known =
                MemoryRegistration { instance, identity, info, seen_ms: now_ms, expires_ms, draining };
            queue.workers.insert(WorkerId::new(name), known);
        }
        Ok(queue)
    }
}
