//! Removes three safeguards, one at a time; the checker must find each removal. Otherwise a check without findings
//! would prove nothing.
//!
//! The scenario: a unit is taken from a silent worker, which then comes back; records are delivered twice; then the
//! machine loses its power and keeps only what was synced.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{DialogueKey, Record, RecordId, WorkerId};
use history::{CheckReport, Event, EventLog, Events, FindingKind, Kept, Observed};
use queue::{
    Commit, Committed, Fence, LeaseRequest, ManualClock, MemoryStore, NewUnit, QueueStore, Reap, RunRef,
    RunSpec, Safeguards, UnitId,
};
use results::log::writer::{SegmentFile, SyncError};
use results::log::{CommitPolicy, CommitQueue, LogItem, LogOptions, LogReader, LogWriter, SegmentEnd};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(2);

/// The content of a disk after a power cut: the synced part of each file.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>);

/// A file on it.
struct Volatile {
    disk: Disk,
    path: PathBuf,
    written: Vec<u8>,
}

impl SegmentFile for Volatile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self, _end: SegmentEnd) -> Result<(), SyncError> {
        self.disk.0.lock().unwrap().insert(self.path.clone(), self.written.clone());
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.written.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

fn record(iteration: u32, id: &str) -> Record {
    serde_json::from_value(json!({
        "key": {"model": "m", "task": "t", "iteration": iteration},
        "attempt": {"id": id, "generation": 1, "number": 1, "worker": "w"},
        "started_at": "2025-01-01T00:00:00Z",
        "ended_at": "2025-01-01T00:00:02Z",
        "rounds": [],
        "outcome": domain::Outcome::Scored { scores: serde_json::Map::new(), infos: serde_json::Map::new() },
        "provenance": {
            "kgfleet": "0.1.0",
            "task": {"class": "c", "version": "1", "case": "c", "pack": "p", "pack_hash": "ab", "scorer": "1"},
            "model": {"connector": "scripted", "requested": "m"},
            "sampling": {},
            "seed": 7
        }
    }))
    .unwrap()
}

/// A small coordinator: it hands out units and stores records, in the same order as the real one.
struct Cluster {
    queue: Observed,
    clock: Arc<ManualClock>,
    events: EventLog,
    log: CommitQueue,
    at: RunRef,
}

impl Cluster {
    async fn lease(&self, worker: &str) -> Vec<Fence> {
        let ask = LeaseRequest {
            worker: WorkerId::new(worker),
            models: vec!["m".into()],
            max_units: 1,
            alone: true,
        };
        self.queue.lease(&self.at, &ask).await.unwrap().into_iter().map(|lease| lease.fence).collect()
    }

    /// Draws a ticket, writes the log, commits to the queue, and acknowledges.
    async fn store(&self, iteration: u32, id: &str) {
        let ticket = self.queue.tickets(&self.at, 1).await.unwrap().start;
        let record = record(iteration, id);
        let key = record.key.clone();
        let json = serde_json::to_string(&record).unwrap();
        self.log.commit_batch(vec![(ticket, json.into())]).await.unwrap();
        let commit = Commit { key, record: Committed { scored: true, ticket } };
        self.queue.commit(&self.at, &[commit]).await.unwrap();
        self.events
            .write(
                &self.at.run,
                Event::Acknowledged { record: RecordId::new(id), generation: self.at.generation },
            )
            .await;
    }
}

/// Runs the scenario.
async fn bad_day(cluster: &Cluster) {
    let first = cluster.lease("one").await;
    cluster.store(0, "a").await;
    // Silent for longer than its lease; the unit goes to another one, and then the first one is back.
    cluster.clock.advance_ms(3_000);
    cluster.queue.reap(&cluster.at, &Reap::Expired).await.unwrap();
    let second = cluster.lease("two").await;
    assert_eq!((first[0].attempt, second[0].attempt), (1, 2));
    cluster.store(0, "b").await;
    cluster.store(1, "c").await;
    cluster.queue.finish(&cluster.at, &first).await.unwrap();
    cluster.queue.finish(&cluster.at, &second).await.unwrap();
}

fn report(safeguards: Safeguards, forgets_to_sync: bool) -> CheckReport {
    let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (disk, events) = (Disk::default(), EventLog::create(folder.path()).unwrap());
    let clock = Arc::new(ManualClock::at(1_780_000_000_000));
    let options = LogOptions { forgets_to_sync, ..LogOptions::default() };
    let files = disk.clone();
    let open = move |path: &Path, _, _| {
        Ok(Volatile { disk: files.clone(), path: path.to_owned(), written: Vec::new() })
    };
    let (writer, _) = LogWriter::open_with(logs.path(), options, Box::new(open)).unwrap();
    let (log, thread) = CommitQueue::start(writer, CommitPolicy::DISK).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = MemoryStore::without(clock.clone(), safeguards);
        let queue = Observed::new(Arc::new(store), events.clone());
        let spec = RunSpec {
            run: "r".into(),
            plan_hash: "p".to_owned(),
            lease_for: LEASE,
            max_strikes: 3,
            generation: 1,
            ticket_floor: 0,
        };
        let at = queue.create_run(&spec).await.unwrap().at;
        let unit = NewUnit { model: "m".into(), dialogues: 2, payload: vec![1] };
        queue.add_units(&at, UnitId(0), &[unit]).await.unwrap();
        bad_day(&Cluster { queue, clock, events, log, at }).await;
    });
    thread.join();
    // The power goes, and comes back.
    for (path, bytes) in disk.0.lock().unwrap().iter() {
        std::fs::write(path, bytes).unwrap();
    }
    let kept: Vec<Kept> = LogReader::open(logs.path(), None)
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            LogItem::Entry { entry, late, .. } => {
                let key: DialogueKey = entry.record.key;
                let record = entry.record.attempt.id;
                Some(Kept { record, key, ticket: entry.ticket, scored: true, late })
            }
            LogItem::Damage(_) => None,
        })
        .collect();
    history::check(&Events::read(folder.path(), &"r".into()).unwrap().noted, &kept)
}

#[test]
fn with_all_safeguards_nothing_is_found() {
    let report = report(Safeguards::All, false);
    assert!(report.is_right(), "{report:?}");
    assert_eq!((report.grants, report.acknowledged, report.superseded), (2, 3, 1));
}

#[test]
fn a_queue_that_takes_stale_fences_is_found() {
    let report = report(Safeguards::NoFence, false);
    assert!(report.count(FindingKind::StaleFence) > 0, "{report:?}");
}

#[test]
fn a_queue_that_counts_a_dialogue_twice_is_found() {
    let report = report(Safeguards::NoDedup, false);
    assert!(report.count(FindingKind::Doubled) > 0, "{report:?}");
}

#[test]
fn a_log_that_acknowledges_before_it_syncs_is_found() {
    let report = report(Safeguards::All, true);
    assert!(report.count(FindingKind::Lost) > 0, "{report:?}");
}
