//! Resolves the name of a run as given by a user: its whole name, its beginning, or `latest`.

use std::path::Path;

use benchmarks::names::benchmark_of;
use domain::control::{BenchmarkView, Condition, Control, RunLine};
use domain::{ErrorCode, RunId};
use jiff::Timestamp;

use crate::kit::exit_code::{explained, usage};
use crate::kit::output::{printable, say};
use crate::kit::runtime::block_on;
use crate::place::here::Folder;

/// The text for a run's name in `--help`.
pub const HELP: &str = "Name of the run or pipeline, its beginning if no other one begins like it, or `latest` for the newest one.";

/// The same for verbs that read.
pub const HELP_OF_READERS: &str = "Name of the run or pipeline, its beginning if no other one begins like it, `latest` for the newest one, or the path of an archive.";

/// The newest run.
pub const LATEST: &str = "latest";

/// Maximum number of names in a message.
const NAMES_LISTED_MAX: usize = 5;

/// A run or a pipeline that a name may mean.
struct Candidate {
    name: RunId,
    created_at: Option<Timestamp>,
}

/// The run or judged benchmark that a name means. A name that matches none is returned unchanged; who asks for it is told that it
/// does not exist.
///
/// # Errors
/// Several begin like this (exit code 2); they cannot be listed.
pub async fn resolve(wanted: &str, control: &dyn Control) -> anyhow::Result<RunId> {
    if is_whole(wanted) {
        return Ok(RunId::new(wanted));
    }
    let listed = control.list().await.map_err(explained)?;
    if wanted == LATEST {
        for view in listed.iter().filter(|view| view.condition == Some(Condition::Unreadable)) {
            let why = view.trouble.as_deref().unwrap_or_default();
            say(&format!("warning: run {} cannot be read: {}", view.run, printable(why)));
        }
    }
    let candidate = |view: BenchmarkView| Candidate { name: view.run, created_at: Some(view.created_at) };
    let mut candidates: Vec<Candidate> = listed.into_iter().map(candidate).collect();
    // Runs of a judged benchmark are named after it and are not listed beside it.
    if let Some((benchmark, _)) = wanted.split_once('.')
        && let Some(view) = candidates.iter().find(|candidate| candidate.name.as_str() == benchmark)
    {
        let view = control.view(&view.name).await.map_err(explained)?;
        let run = |run: RunLine| Candidate { name: run.name, created_at: None };
        candidates.extend(view.runs.into_iter().map(run));
    }
    choose(wanted, candidates)
}

/// The same for a folder of this machine. Not for async code.
pub fn of_folder(wanted: &str, data_dir: &Path) -> anyhow::Result<RunId> {
    block_on(async { resolve(wanted, &Folder::at(data_dir)?).await })
}

/// Whether a run or judged benchmark has exactly this name, or it is `latest` and there is one.
pub async fn is_known(name: &str, control: &dyn Control) -> anyhow::Result<bool> {
    if name == LATEST {
        return Ok(!control.list().await.map_err(explained)?.is_empty());
    }
    match control.view(&RunId::new(name)).await {
        Ok(_) => Ok(true),
        // What cannot be the name of a run is the name of none.
        Err(error) if matches!(error.code, ErrorCode::NotFound | ErrorCode::Invalid) => Ok(false),
        Err(error) => Err(explained(error)),
    }
}

/// Whether a text has the form of a whole name, which is not looked up.
fn is_whole(wanted: &str) -> bool {
    let mut lengths = wanted.split('-').map(str::len);
    lengths.by_ref().take(3).eq([8, 6, 8]) && lengths.next().is_none()
}

fn choose(wanted: &str, candidates: Vec<Candidate>) -> anyhow::Result<RunId> {
    let named = RunId::new(wanted);
    if candidates.iter().any(|candidate| candidate.name == named) {
        return Ok(named);
    }
    // Of a pipeline and the runs of its stages, users mean the pipeline, unless they name the stage.
    let is_stage = |candidate: &Candidate| benchmark_of(&candidate.name) != candidate.name;
    let (stages, runs): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_stage);
    if wanted == LATEST {
        let newest = runs.into_iter().max_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        return Ok(newest.map_or(named, |newest| newest.name));
    }
    let beginning_so = |among: Vec<Candidate>| -> Vec<RunId> {
        let names = among.into_iter().map(|candidate| candidate.name);
        names.filter(|name| name.as_str().starts_with(wanted)).collect()
    };
    let mut fit = beginning_so(runs);
    if fit.is_empty() {
        fit = beginning_so(stages);
    }
    match fit.as_slice() {
        [] => Ok(named),
        [run] => Ok(run.clone()),
        several => {
            let listed: Vec<&str> = several.iter().take(NAMES_LISTED_MAX).map(RunId::as_str).collect();
            let more = if several.len() > listed.len() { ", …" } else { "" };
            let listed = listed.join(", ");
            Err(usage!("`{wanted}` may be any of {} runs: {listed}{more}", several.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<Candidate> {
        let names = [
            ("20260101-000000-a", 1),
            ("20260102-000000-b", 2),
            ("20260102-000000-bc", 4),
            ("quick-0a1b2c", 3),
            ("quick-0a1b2c.ask.m.1", 3),
            ("quick-0a1b2c.grade.m.1", 9),
        ];
        let candidate = |(name, day)| Candidate {
            name: RunId::new(name),
            created_at: Some(Timestamp::from_second(i64::from(day) * 86_400).unwrap()),
        };
        names.map(candidate).into()
    }

    fn found(wanted: &str) -> anyhow::Result<String> {
        choose(wanted, runs()).map(|run| run.to_string())
    }

    #[test]
    fn runs_are_found_by_name_by_its_beginning_and_as_the_latest() {
        assert_eq!(found("20260101").unwrap(), "20260101-000000-a");
        assert_eq!(found("20260102-000000-b").unwrap(), "20260102-000000-b", "a whole name is no beginning");
        assert_eq!(found("2025").unwrap(), "2025", "who opens it says that it is not there");
        let several = found("20260102").unwrap_err().to_string();
        assert!(several.contains("2 runs") && several.contains("20260102-000000-bc"), "{several}");
        assert_eq!(choose("latest", Vec::new()).unwrap().as_str(), "latest");
        assert!(is_whole("20261121-143141-2b216850") && !is_whole("20261121-143141") && !is_whole("latest"));
    }

    #[test]
    fn the_latest_is_the_newest_and_not_the_last_by_name() {
        assert_eq!(found("latest").unwrap(), "20260102-000000-bc");
        let without_it = runs().into_iter().filter(|run| run.name.as_str() != "20260102-000000-bc").collect();
        assert_eq!(choose("latest", without_it).unwrap().as_str(), "quick-0a1b2c");
    }

    #[test]
    fn a_pipeline_is_meant_where_its_stages_begin_like_it_too() {
        assert_eq!(found("quick").unwrap(), "quick-0a1b2c");
        assert_eq!(found("quick-0a1b2c.gr").unwrap(), "quick-0a1b2c.grade.m.1");
    }
}
