//! Resolves the name of a run as given by a user: its whole name, its beginning, or `latest`.

use std::path::Path;

use anyhow::anyhow;
use domain::RunId;
use domain::control::Control;
use results::{RunDir, Sink};

use crate::commands::fleet::explained;
use crate::exit_code::Exit;

/// The text for a run's name in `--help`.
pub const HELP: &str =
    "Name of the run, its beginning if no other run begins like it, or `latest` for the newest one.";

/// The newest run.
const LATEST: &str = "latest";

/// Maximum number of names in a message.
const NAMES_LISTED_MAX: usize = 5;

/// A run of this machine. A name that matches no run is returned unchanged; opening it will report that it does not exist.
///
/// # Errors
/// Several runs begin like this (exit code 2); the folder cannot be read.
pub fn of_folder(wanted: &str, data_dir: &Path) -> anyhow::Result<RunId> {
    if is_whole(wanted) {
        return Ok(RunId::new(wanted));
    }
    choose(wanted, RunDir::list(data_dir)?.iter().map(|found| found.dir.run()).collect())
}

/// The same for a run of a coordinator.
///
/// # Errors
/// Several runs begin like this (exit code 2); the coordinator does not answer.
pub async fn of_coordinator(wanted: &str, control: &dyn Control) -> anyhow::Result<RunId> {
    if is_whole(wanted) {
        return Ok(RunId::new(wanted));
    }
    let runs = control.runs().await.map_err(explained)?;
    choose(wanted, runs.into_iter().map(|view| view.run).collect())
}

/// The same for a run in a folder or an object store.
///
/// # Errors
/// Several runs begin like this (exit code 2); the place cannot be read.
pub async fn of_sink(wanted: &str, sink: &dyn Sink) -> anyhow::Result<RunId> {
    if is_whole(wanted) {
        return Ok(RunId::new(wanted));
    }
    choose(wanted, sink.runs().await?.iter().map(|found| found.dir.run()).collect())
}

/// Whether this has the form of a whole name, which need not be looked up.
fn is_whole(wanted: &str) -> bool {
    let mut lengths = wanted.split('-').map(str::len);
    lengths.by_ref().take(3).eq([8, 6, 8]) && lengths.next().is_none()
}

/// `runs` are sorted by name, which is by time.
fn choose(wanted: &str, runs: Vec<RunId>) -> anyhow::Result<RunId> {
    let named = RunId::new(wanted);
    if runs.contains(&named) {
        return Ok(named);
    }
    if wanted == LATEST {
        return Ok(runs.into_iter().next_back().unwrap_or(named));
    }
    let fit: Vec<&RunId> = runs.iter().filter(|run| run.as_str().starts_with(wanted)).collect();
    match fit.as_slice() {
        [] => Ok(named),
        [run] => Ok((*run).clone()),
        several => {
            let listed: Vec<&str> = several.iter().take(NAMES_LISTED_MAX).map(|run| run.as_str()).collect();
            let more = if several.len() > listed.len() { ", …" } else { "" };
            let listed = listed.join(", ");
            Err(Exit::usage(anyhow!("`{wanted}` may be any of {} runs: {listed}{more}", several.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_name_by_its_beginning_and_as_the_latest() {
        let runs =
            || ["20260101-000000-a", "20260102-000000-b", "20260102-000000-bc"].map(RunId::new).to_vec();
        let found = |wanted: &str| choose(wanted, runs()).map(|run| run.to_string());
        assert_eq!(found("20260101").unwrap(), "20260101-000000-a");
        assert_eq!(found("20260102-000000-b").unwrap(), "20260102-000000-b", "a whole name is no beginning");
        assert_eq!(found("latest").unwrap(), "20260102-000000-bc");
        assert_eq!(found("2025").unwrap(), "2025", "who opens it says that it is not there");
        let several = found("20260102").unwrap_err().to_string();
        assert!(several.contains("2 runs") && several.contains("20260102-000000-bc"), "{several}");
        assert_eq!(choose("latest", Vec::new()).unwrap().as_str(), "latest");
        assert!(is_whole("20261121-143141-2b216850") && !is_whole("20261121-143141") && !is_whole("latest"));
    }
}
