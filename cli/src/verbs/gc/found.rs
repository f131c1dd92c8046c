//! Reads what lies in the folders: packs and who refers to them, what killed processes left, spools, and when benchmarks ended.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use benchmarks::names::benchmark_of;
use domain::RunId;
use domain::control::RunPhase;
use results::run_dir::FoundRun;
use results::{RunDir, RunManifest, Sink, sink};
use serde::Deserialize;
use worker::outbox::spools;

use super::plan::{
    EmptySpool, FileExtent, Leftovers, NeededPacks, RUNS, StoredBenchmark, StoredPack, TemporaryFile,
};
use crate::files::bundle_layout::DATA;
use crate::kit::exit_code::explained;
use crate::kit::output::explain;
use crate::kit::runtime::block_on;
use crate::place::{folders, local};

/// The folder of packs in a data folder, where each is named by its hash.
const PACKS: &str = "packs";
const PACK_ENDING: &str = ".kgpack";

/// The folder with the documents of judged benchmarks, `NAME.manifest-1.json` and others.
const PIPELINES: &str = "pipelines";

/// The folders beside those of runs in which files are written in one step.
const FLAT_FOLDERS: [&str; 5] = [PACKS, PIPELINES, "submissions", "removed", "usage"];

/// The folder of spools in a working folder.
const SPOOLS: &str = "spool";

/// The file of a run that its writers lock. It says nothing of when the run was written.
const LOCK: &str = "lock";

/// What a spool holds beside its segments.
const BESIDE_SEGMENTS: [&str; 3] = [LOCK, "instances", "instances.new"];

/// Bytes of a segment that was only begun.
const SEGMENT_HEAD_BYTES: u64 = 8;

/// Length of the hash of a pack, in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// Length of what is drawn for the name of a file that is not complete yet, in hexadecimal digits.
const DRAWN_DIGITS: usize = 16;

/// Reads everything that may go; benchmarks only if they are asked for, because each of them has to be looked at.
pub(super) fn read(data: &Path, work: &Path, with_benchmarks: bool) -> anyhow::Result<Leftovers> {
    let mut notes = Vec::new();
    let benchmarks = match with_benchmarks {
        true => stored_benchmarks(data, &mut notes)?,
        false => Vec::new(),
    };
    let spools = empty_spools(work).unwrap_or_else(|error| {
        notes.push(format!("no spool is removed: {}", explain(&error)));
        Vec::new()
    });
    let (packs, temporaries) = (stored_packs(data)?, temporaries(data)?);
    Ok(Leftovers { packs, needed: needed(data)?, temporaries, spools, benchmarks, notes })
}

/// Size and last change of a file, or of everything in a folder.
pub(super) fn measure(path: &Path) -> io::Result<FileExtent> {
    let metadata = fs::symlink_metadata(path)?;
    let bytes = if metadata.is_file() { metadata.len() } else { 0 };
    let mut whole = FileExtent { bytes, changed: metadata.modified()? };
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let part = measure(&entry?.path())?;
            whole.bytes += part.bytes;
            whole.changed = whole.changed.max(part.changed);
        }
    }
    Ok(whole)
}

/// What is in a folder, by name; nothing where there is no such folder.
fn entries(folder: &Path) -> anyhow::Result<Vec<(String, DirEntry)>> {
    let cannot = || format!("cannot list {}", folder.display());
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.with_context(cannot)?,
    };
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry.with_context(cannot)?;
        // A name that is no text is none of ours.
        if let Ok(name) = entry.file_name().into_string() {
            entries.push((name, entry));
        }
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(entries)
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn stored_packs(data: &Path) -> anyhow::Result<Vec<StoredPack>> {
    let mut packs = Vec::new();
    for (name, entry) in entries(&data.join(PACKS))? {
        let hash = name.strip_suffix(PACK_ENDING).filter(|hash| is_hex(hash, HASH_DIGITS) && is_file(&entry));
        // One that is replaced at this moment is new, so it stays.
        if let (Some(hash), Ok(extent)) = (hash, measure(&entry.path())) {
            packs.push(StoredPack { path: Path::new(PACKS).join(&name), hash: hash.to_owned(), extent });
        }
    }
    Ok(packs)
}

/// Which packs are needed. Wherever a hash stands in a manifest, the pack counts as needed: in its list of packs, as the path
/// of a pack in its configuration, or as the pack by which a run was judged again.
pub(super) fn needed(data: &Path) -> anyhow::Result<NeededPacks> {
    let mut needed = NeededPacks::default();
    for FoundRun { dir, manifest } in RunDir::list(data)? {
        let run = dir.run();
        let unread = match manifest {
            // Manifests of early versions name packs otherwise.
            Ok(manifest) if !manifest.packs.iter().any(|used| is_hex(&used.hash, HASH_DIGITS)) => {
                "it names no pack by its hash".to_owned()
            }
            Ok(manifest) => {
                needed.add(benchmark_of(&run), hashes_in(&serde_json::to_string(&manifest)?));
                continue;
            }
            Err(error) => explain(&error.into()),
        };
        needed.unread_runs.push(format!("what run {run} needs is not known: {unread}"));
    }
    for (name, entry) in entries(&data.join(RUNS))? {
        let path = entry.path();
        if is_folder(&entry)
            && !path.join("manifest.json").is_file()
            && let Ok(extent) = measure(&path)
        {
            needed.unfinished.push((format!("{RUNS}/{name}"), extent.changed));
        }
    }
    for name in judged_names(data)? {
        let unread = match block_on(local::documents(&name, data)) {
            Ok(Some(documents)) => {
                needed.add(name, hashes_in(&documents.to_json().map_err(explained)?));
                continue;
            }
            Ok(None) => "its first document is missing".to_owned(),
            Err(error) => explain(&error),
        };
        needed.unread_judged.push(format!("what pipeline {name} needs is not known: {unread}"));
    }
    Ok(needed)
}

/// What may be the hash of a pack in a text.
fn hashes_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == HASH_DIGITS)
}

/// The names of judged benchmarks by their documents, also of those that cannot be read.
fn judged_names(data: &Path) -> anyhow::Result<Vec<RunId>> {
    let mut names: Vec<RunId> = Vec::new();
    for (file, _) in entries(&data.join(PIPELINES))? {
        let manifest = file.strip_suffix(".json").and_then(|file| file.rsplit_once(".manifest-"));
        if let Some((name, revision)) = manifest
            && revision.parse::<u32>().is_ok()
        {
            names.push(RunId::new(name));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Whether another process writes a run. The lock is given back at once.
fn is_busy(dir: &RunDir) -> bool {
    // Looking at a run makes no file in it.
    dir.path().join(LOCK).exists() && dir.lock().is_err()
}

/// Files that were to be replaced or created in one step, and folders in which runs were made ready.
fn temporaries(data: &Path) -> anyhow::Result<Vec<TemporaryFile>> {
    let mut found = Vec::new();
    let mut add = |path: &Path, run: Option<&RunId>, is_folder: bool, is_busy: bool| {
        // Whoever wrote it may just have renamed it.
        if let (Ok(extent), Ok(relative)) = (measure(path), path.strip_prefix(data)) {
            let (path, run) = (relative.to_owned(), run.cloned());
            found.push(TemporaryFile { path, extent, run, is_folder, is_busy });
        }
    };
    for (name, entry) in entries(data)? {
        let path = entry.path();
        if is_file(&entry) && (is_part(&name) || is_probe(&name)) {
            add(&path, None, false, false);
        } else if is_folder(&entry) && is_made_ready(&name, &path) {
            add(&path, None, true, false);
        }
    }
    for folder in FLAT_FOLDERS {
        for (name, entry) in entries(&data.join(folder))? {
            if is_file(&entry) && is_part(&name) {
                add(&entry.path(), None, false, false);
            }
        }
    }
    let store = sink::folder(data);
    for (name, entry) in entries(&data.join(RUNS))? {
        let run = RunId::new(name);
        let Some(dir) = store.run_dir(&run).ok().filter(|_| is_folder(&entry)) else { continue };
        let mut parts = Vec::new();
        parts_below(&entry.path(), &mut parts)?;
        let is_busy = !parts.is_empty() && is_busy(&dir);
        for part in parts {
            add(&part.path(), Some(&run), false, is_busy);
        }
    }
    Ok(found)
}

/// Whether a file has the name that `results::files` gives to one that is not complete yet, where several processes may write
/// it: `FILE.0123456789abcdef.part`.
fn is_part(name: &str) -> bool {
    let drawn = name.strip_suffix(".part").and_then(|name| name.rsplit_once('.'));
    drawn.is_some_and(|(file, drawn)| !file.is_empty() && is_hex(drawn, DRAWN_DIGITS))
}

/// Whether a file has the name of one by which a data folder was tried.
fn is_probe(name: &str) -> bool {
    name.strip_prefix("probe-").is_some_and(|drawn| is_hex(drawn, DRAWN_DIGITS))
}

/// Whether a folder is one in which a bundle was unpacked or answers were judged again. Its name is that of any program's
/// temporary folders, so what is in it counts too.
fn is_made_ready(name: &str, path: &Path) -> bool {
    let drawn = name.strip_prefix(".tmp");
    drawn.is_some_and(|drawn| drawn.len() == 6 && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        && (path.join(DATA).is_dir() || path.join(RUNS).is_dir())
}

/// The files in the folder of a run that are not complete: also those that one process alone writes, `FILE.part`.
fn parts_below(folder: &Path, parts: &mut Vec<DirEntry>) -> anyhow::Result<()> {
    for (name, entry) in entries(folder)? {
        if is_folder(&entry) {
            parts_below(&entry.path(), parts)?;
        } else if is_file(&entry) && name.len() > ".part".len() && name.ends_with(".part") {
            parts.push(entry);
        }
    }
    Ok(())
}

/// The spools that hold no record and that no worker uses. Acknowledgements are not written down: a spool whose records were
/// all delivered is one whose segments were deleted.
fn empty_spools(work: &Path) -> anyhow::Result<Vec<EmptySpool>> {
    let mut empty = Vec::new();
    for found in spools::survey(&work.join(SPOOLS))? {
        if found.in_use || !found.runs.is_empty() || !is_empty_spool(&found.dir)? {
            continue;
        }
        if let (Ok(extent), Ok(path)) = (measure(&found.dir), found.dir.strip_prefix(work)) {
            empty.push(EmptySpool { path: path.to_owned(), extent });
        }
    }
    Ok(empty)
}

/// Whether the folder of a spool has nothing in it that may hold a record: no segment with more than its beginning, and no file
/// that is unknown here.
pub(super) fn is_empty_spool(dir: &Path) -> anyhow::Result<bool> {
    Ok(entries(dir)?.iter().all(|(name, entry)| {
        let is_begun = || entry.metadata().is_ok_and(|file| file.len() <= SEGMENT_HEAD_BYTES);
        is_file(entry)
            && (BESIDE_SEGMENTS.contains(&name.as_str()) || (name.ends_with(".spool") && is_begun()))
    }))
}

/// The judged benchmarks, and the runs that are no part of one. Parts whose judged benchmark is gone are left alone.
fn stored_benchmarks(data: &Path, notes: &mut Vec<String>) -> anyhow::Result<Vec<StoredBenchmark>> {
    let (found, store) = (RunDir::list(data)?, sink::folder(data));
    let mut all = Vec::new();
    for view in local::all(data)? {
        let own: Vec<&FoundRun> =
            found.iter().filter(|run| local::is_run_of(&run.dir.run(), view.run.as_str())).collect();
        let configuration = block_on(local::find(&view.run, data))?;
        all.push(StoredBenchmark {
            is_judged: true,
            is_over: view.phase.is_over(),
            is_busy: own.iter().any(|run| is_busy(&run.dir)),
            reuses: configuration.and_then(|configuration| configuration.reuse).map(RunId::new),
            bytes: own.iter().map(|run| bytes_of(&run.dir)).sum(),
            written: judged_written(data, &view.run, &found),
            name: view.run,
        });
    }
    for FoundRun { dir, manifest } in &found {
        let name = dir.run();
        let Some(manifest) = manifest.as_ref().ok().filter(|_| benchmark_of(&name) == name) else { continue };
        let is_over = is_over(&store, dir, manifest).unwrap_or_else(|error| {
            notes.push(format!("run {name} stays: {}", explain(&error)));
            false
        });
        all.push(StoredBenchmark {
            is_judged: false,
            is_over,
            is_busy: is_busy(dir),
            reuses: None,
            bytes: bytes_of(dir),
            written: run_written(dir),
            name,
        });
    }
    Ok(all)
}

fn bytes_of(dir: &RunDir) -> u64 {
    measure(dir.path()).map_or(0, |extent| extent.bytes)
}

/// What the state of a run says about its end.
#[derive(Deserialize)]
struct EndedState {
    phase: RunPhase,
    /// The revision of the manifest of which everything was asked when it was finished; 0 where that is not known.
    #[serde(default)]
    finished_revision: u32,
}

/// Whether a run is over: nobody goes on with it by himself.
fn is_over(store: &Arc<dyn Sink>, dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<bool> {
    let document = store.state_of(&dir.run())?;
    let state = block_on(async { Ok(store.newest_json::<EndedState>(&document, 0).await?) })?;
    let Some((_, EndedState { phase, finished_revision })) = state else {
        // What was judged again has no state, and neither have runs of early versions.
        return Ok(folders::recorded(dir, manifest)?.len() as u64 >= manifest.planned_dialogues);
    };
    // Who extends a finished run may be killed before it goes on.
    let is_extended = phase == RunPhase::Finished && (1..manifest.revision).contains(&finished_revision);
    Ok(phase.is_over() && !is_extended)
}

/// When the newest record, state or manifest of a run was written. Exports do not count: they are made of these at any time.
pub(super) fn run_written(dir: &RunDir) -> Option<SystemTime> {
    newest_in(dir.path(), |name| name != LOCK).max(newest_in(&dir.log(), |_| true))
}

/// The same of a judged benchmark, with its own documents.
pub(super) fn judged_written(data: &Path, name: &RunId, found: &[FoundRun]) -> Option<SystemTime> {
    let own = found.iter().filter(|run| local::is_run_of(&run.dir.run(), name.as_str()));
    let beginning = format!("{name}.");
    let documents = newest_in(&data.join(PIPELINES), |file| file.starts_with(&beginning));
    own.filter_map(|run| run_written(&run.dir)).max().max(documents)
}

/// The last change of the files in a folder whose names count.
fn newest_in(folder: &Path, counts: impl Fn(&str) -> bool) -> Option<SystemTime> {
    let files = entries(folder).ok()?.into_iter().filter(|(name, entry)| is_file(entry) && counts(name));
    files.filter_map(|(_, entry)| entry.metadata().ok()?.modified().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unfinished_files_are_known_and_no_others() {
        assert!(is_part("manifest.json.0123456789abcdef.part"));
        for other in ["a.part", ".0123456789abcdef.part", "a.0123456789abcdeg.part", "a.0123456789abcdef"] {
            assert!(!is_part(other), "{other}");
        }
        assert!(is_probe("probe-0123456789abcdef") && !is_probe("probe-1") && !is_probe("probe.json"));
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_made_ready(".tmpAbc123", folder.path()), "of another program");
        fs::create_dir(folder.path().join(RUNS)).unwrap();
        assert!(is_made_ready(".tmpAbc123", folder.path()) && !is_made_ready("runs", folder.path()));
    }

    #[test]
    fn hashes_are_found_wherever_they_stand() {
        let (a, b) = ("a".repeat(HASH_DIGITS), "0".repeat(HASH_DIGITS));
        let text =
            format!(r#"{{"pack":"data/packs/{a}.kgpack","hash":"{b}","short":"abc","long":"{a}{b}"}}"#);
        assert_eq!(hashes_in(&text).collect::<Vec<_>>(), [a.as_str(), b.as_str()]);
    }

    #[test]
    fn a_spool_is_empty_only_without_anything_that_may_be_a_record() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| fs::write(folder.path().join(name), content).unwrap();
        write(LOCK, "");
        write("instances", "an instance\n");
        write("00000001.spool", "kgspool1");
        assert!(is_empty_spool(folder.path()).unwrap());
        write("00000001.spool", "kgspool1 and half a record");
        assert!(!is_empty_spool(folder.path()).unwrap());
        write("00000001.spool", "");
        write("of-a-later-version", "");
        assert!(!is_empty_spool(folder.path()).unwrap());
    }
}
