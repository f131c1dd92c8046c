//! Data of earlier versions stays usable: it is opened, shown, resumed, finished and exported, and its scores do not
//! change. [`freeze`] made the archives in `cli/testdata`; the README there describes their content.

pub mod archive;
mod fleet;
mod folder;
mod freeze;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use domain::text::hex;
use domain::{Outcome, Record};
use results::log::LogEntry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::harness::{Data, RunOnDisk};

/// The configurations in an archive.
const EXACT: &str = "exact.toml";
const JUDGED: &str = "judged.toml";

/// What the queue of a fleet was told, beside its records.
const QUEUE: &str = "queue.resp";

/// The worker of a fleet, and seconds of its leases.
const NAME_OF_WORKER: &str = "w";
const LEASE: &str = "2";

/// What an archive holds, as the version that wrote it saw it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Left {
    /// `kgfleet status`: name, and dialogues planned, scored and failed.
    benchmarks: BTreeMap<String, [u64; 3]>,
    /// The record log of every run.
    logs: BTreeMap<String, LeftLog>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LeftLog {
    records: usize,
    /// Hash of tickets, keys, prompts, answers and outcomes.
    digest: String,
}

impl Left {
    fn of(data: &Data) -> Self {
        let listed = data.kgfleet(&["status", "--json"]).expect(0).stdout;
        let benchmark = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let counts = ["planned", "scored", "failed"].map(|count| line[count].as_u64().unwrap());
            (line["run"].as_str().unwrap().to_owned(), counts)
        };
        Self { benchmarks: listed.lines().map(benchmark).collect(), logs: logs(data) }
    }
}

/// What every log says.
fn logs(data: &Data) -> BTreeMap<String, LeftLog> {
    let log = |run: &RunOnDisk| {
        let mut digest = Sha256::new();
        let entries = run.entries();
        for entry in &entries {
            let record = &entry.record;
            digest.update(format!("{} {}\n", entry.ticket, record.key));
            for round in &record.rounds {
                digest.update(format!("{:?} {:?}\n", round.prompt.text, round.answer.text));
            }
            digest.update(match &record.outcome {
                Outcome::Scored { scores, .. } => serde_json::to_string(scores).unwrap(),
                Outcome::Unscored { cause, message, .. } | Outcome::Failed { cause, message } => {
                    format!("{cause}: {message}")
                }
            });
        }
        let digest = hex(digest.finalize());
        (run.name().to_owned(), LeftLog { records: entries.len(), digest })
    };
    data.runs().iter().map(log).collect()
}

/// Puts an archive into a folder; what it holds, every record of which can be read as it was written.
fn opened(archive: &Path, data: &Data) -> Left {
    archive::open(archive, data.path());
    let text = std::fs::read_to_string(archive.with_extension("json")).unwrap();
    let left: Left = serde_json::from_str(&text).unwrap();
    assert_eq!(logs(data), left.logs, "{}", archive.display());
    left
}

/// The archives of this kind, one of each version that has one.
fn archives(kind: &str) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(archive::folder()).unwrap().map(|entry| entry.unwrap().path());
    let archives = versions.map(|version| version.join(kind).with_extension("sealed"));
    let found: Vec<PathBuf> = archives.filter(|archive| archive.is_file()).collect();
    assert!(!found.is_empty(), "archives of a {kind}");
    found
}

impl Left {
    /// The exact benchmark, and what counted of it: dialogues planned, scored and failed.
    fn exact(&self) -> (&str, [u64; 3]) {
        let (name, counts) = self.benchmarks.iter().find(|(name, _)| self.logs.contains_key(*name)).unwrap();
        (name, *counts)
    }

    /// The judged one. Its runs have its name in front.
    fn judged(&self) -> &str {
        self.benchmarks.keys().find(|name| !self.logs.contains_key(*name)).unwrap()
    }
}

/// The entries of every run.
type Entries = BTreeMap<String, Vec<LogEntry>>;

fn entries(data: &Data) -> Entries {
    data.runs().iter().map(|run| (run.name().to_owned(), run.entries())).collect()
}

/// Everything that there was is there, unchanged, and what was scored was not asked again.
#[track_caller]
fn assert_kept(before: &Entries, data: &Data) {
    let after = entries(data);
    for (run, before) in before {
        let after = &after[run];
        for entry in before {
            assert!(after.contains(entry), "{run}: the record of {} is another one", entry.record.key);
            // A worker that did not hear that its record arrived has sent it again.
            let of_it = |other: &&LogEntry| other.record.key == entry.record.key;
            let ids: BTreeSet<&str> =
                after.iter().filter(of_it).map(|other| other.record.attempt.id.as_str()).collect();
            assert!(
                !entry.record.outcome.is_scored() || ids.len() == 1,
                "{run}: {} was asked again",
                entry.record.key
            );
        }
    }
}

/// The exported records: as many as planned, and among them what was scored before.
#[track_caller]
fn assert_exported(file: &Path, before: &[LogEntry], planned: u64) {
    let text = std::fs::read_to_string(file).unwrap();
    let records: Vec<Record> = text
        .lines()
        .map(|line| {
            serde_json::from_value(serde_json::from_str::<Value>(line).unwrap()["record"].take()).unwrap()
        })
        .collect();
    assert_eq!(records.len() as u64, planned, "{}", file.display());
    for entry in before.iter().filter(|entry| entry.record.outcome.is_scored()) {
        assert!(records.contains(&entry.record), "{}: not as recorded", entry.record.key);
    }
}
