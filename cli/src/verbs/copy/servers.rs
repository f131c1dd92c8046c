//! What ended servers of pools left, as far as they made the records that go into a bundle. A manifest is written before any
//! server is there, and never again; so it is the bundle that cites them, by the names that their files have in the record
//! store.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use domain::WorkerId;
use domain::control::Control;
use domain::pools::ServerUsage;
use results::{RunDir, RunManifest};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::export::ExportSource;
use crate::kit::exit_code::explained;
use crate::kit::output::say;
use crate::kit::runtime::block_on;
use crate::place::remote::Remote;

/// The folder of a record store with a file for each server.
const USAGE: &str = "usage";

/// Servers of which this is read from a folder, at most.
const SERVERS_READ_MAX: usize = 5_000;

/// Longest file of a server, in bytes.
const USAGE_BYTES_MAX: u64 = 64 << 10;

/// What servers left with the coordinators of a fleet. Where they do not tell, a bundle does without.
pub(super) fn of_fleet(remote: &Remote) -> Vec<ServerUsage> {
    let told = block_on(async { remote.client()?.server_usage().await.map_err(explained) });
    told.unwrap_or_else(|error| {
        say(&format!("warning: the bundle does not say which servers made its records: {error:#}"));
        Vec::new()
    })
}

/// What servers left in a folder of this machine that is, or was, a record store.
pub(super) fn of_folder(data: &Path) -> anyhow::Result<Vec<ServerUsage>> {
    let folder = data.join(USAGE);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot list {}", folder.display()))?,
    };
    let mut left = Vec::new();
    for entry in entries.take(SERVERS_READ_MAX) {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        let usage = read(&path).with_context(|| format!("cannot read {}", path.display()));
        // Another version of kgfleet may have written it.
        match usage {
            Ok(usage) => left.push(usage),
            Err(error) => say(&format!("warning: not cited: {error:#}")),
        }
    }
    Ok(left)
}

fn read(path: &Path) -> anyhow::Result<ServerUsage> {
    Ok(serde_json::from_slice(&named_files::read(path, USAGE_BYTES_MAX)?)?)
}

/// The part of a record that says who made it.
#[derive(Deserialize)]
struct MadeBy {
    attempt: MadeIn,
}

#[derive(Deserialize)]
struct MadeIn {
    worker: WorkerId,
}

/// The servers among these that made records of the runs, as JSON; `None` if there is none. What a server said last may
/// repeat texts, so it is left out unless texts may be shown.
pub(super) fn cited(
    mut left: Vec<ServerUsage>,
    runs: &[(RunDir, RunManifest)],
    with_texts: bool,
) -> anyhow::Result<Option<String>> {
    if left.is_empty() {
        return Ok(None);
    }
    let mut workers = BTreeSet::new();
    for (dir, manifest) in runs {
        for made in ExportSource::open(dir.clone(), manifest.clone())?.parts::<MadeBy>() {
            workers.insert(made?.attempt.worker);
        }
    }
    left.retain(|usage| workers.iter().any(|worker| is_pod_of(worker.as_str(), &usage.job)));
    left.sort_by(|a, b| (&a.job, &a.uid).cmp(&(&b.job, &b.uid)));
    let citation = |mut usage: ServerUsage| -> Value {
        if !with_texts {
            usage.why.clear();
        }
        json!({"file": format!("{USAGE}/{}.{}.json", usage.job, usage.uid), "server": usage})
    };
    let all: Vec<Value> = left.into_iter().map(citation).collect();
    Ok(if all.is_empty() { None } else { Some(serde_json::to_string_pretty(&all)? + "\n") })
}

/// Whether a worker has the name of a pod of a Job: the Job's, its index, and what Kubernetes adds.
fn is_pod_of(worker: &str, job: &str) -> bool {
    let Some(rest) = worker.strip_prefix(job).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let (index, added) = rest.split_once('-').unwrap_or((rest, ""));
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    is_index && !added.contains('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_of_the_job_whose_pod_it_is_and_of_no_other() {
        for worker in ["b-a-1-0-x7k2p", "b-a-1-1"] {
            assert!(is_pod_of(worker, "b-a-1"), "{worker}");
        }
        // That of pool `a-1`, and its second server.
        assert!(is_pod_of("b-a-1-2-0-x7k2p", "b-a-1-2"));
        for worker in ["b-a-1-2-0-x7k2p", "b-a-11-0-x7k2p", "b-a-1", "b-a-1-x", "b-a-1-"] {
            assert!(!is_pod_of(worker, "b-a-1"), "{worker}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_no_folder_is_no_server() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(of_folder(data.path()).unwrap(), []);
        let folder = data.path().join(USAGE);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("b-a-1.u.json"), "{}").unwrap();
        fs::write(folder.join("b-a-2.u.json"), " ".repeat((64 << 10) + 1)).unwrap();
        assert_eq!(of_folder(data.path()).unwrap(), []);
        assert_eq!(cited(Vec::new(), &[], true).unwrap(), None);
    }
}
