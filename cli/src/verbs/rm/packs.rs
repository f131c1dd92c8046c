//! Packs that no run and no judged benchmark names any more.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use domain::RunId;
use results::RunDir;
use results::run_dir::FoundRun;

use crate::kit::exit_code::explained;
use crate::kit::output::{explain, note, say};
use crate::kit::runtime::block_on;
use crate::place::local;

/// The folder of packs in a data folder, where each is named by its hash.
const PACKS: &str = "packs";
const PACK_ENDING: &str = ".kgpack";

/// What a pack is called while it is decided whether it goes.
const ASIDE_ENDING: &str = ".aside";

/// The folder of runs in a data folder.
const RUNS: &str = "runs";

/// The folder with the documents of judged benchmarks, `NAME.manifest-1.json` and others.
pub(super) const PIPELINES: &str = "pipelines";

/// The file by whose lock one process at a time removes packs.
const REMOVAL_LOCK: &str = "packs.lock";

/// Length of the hash of a pack, in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// What was written more recently may belong to a run that begins.
const AGE_MIN: Duration = Duration::from_secs(60 * 60);

/// The packs that runs and judged benchmarks refer to.
#[derive(Debug, Default)]
pub(super) struct NeededPacks {
    /// Hashes of packs, and others.
    hashes: BTreeSet<String>,
    /// Manifests of runs that say nothing, each with the reason.
    unread_runs: Vec<String>,
    /// The same of the documents of judged benchmarks.
    pub unread_judged: Vec<String>,
    /// Folders of runs without a manifest, each with its last change: a copy that goes on brings the manifest last.
    unfinished: Vec<(String, SystemTime)>,
}

impl NeededPacks {
    /// Why somebody may need a pack that nobody is known to need; `None` if everybody is known.
    pub fn doubt(&self, now: SystemTime) -> Option<String> {
        let mut unread = self.unread_runs.iter().chain(&self.unread_judged);
        if let Some(first) = unread.next() {
            return Some(match unread.count() {
                0 => first.clone(),
                more => format!("{first}; and {more} more"),
            });
        }
        let (folder, _) = self.unfinished.iter().find(|(_, changed)| !is_aged(*changed, now, AGE_MIN))?;
        Some(format!("{folder} has no manifest yet, and was written less than an hour ago"))
    }
}

/// Which packs are needed. Wherever a hash stands in a manifest, the pack counts as needed: in its list of packs, as the path
/// of a pack in its configuration, or as the pack by which a run was judged again.
pub(super) fn needed(data: &Path) -> anyhow::Result<NeededPacks> {
    let mut needed = NeededPacks::default();
    for FoundRun { dir, manifest } in RunDir::list(data)? {
        let run = dir.run();
        let unread = match manifest {
            Ok(manifest) => {
                needed.hashes.extend(hashes_in(&serde_json::to_string(&manifest)?));
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
            && let Ok(changed) = last_change(&path)
        {
            needed.unfinished.push((format!("{RUNS}/{name}"), changed));
        }
    }
    for name in judged_names(data)? {
        let unread = match block_on(local::documents(&name, data)) {
            Ok(Some(documents)) => {
                needed.hashes.extend(hashes_in(&documents.to_json().map_err(explained)?));
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
fn hashes_in(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == HASH_DIGITS).map(str::to_owned)
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

/// The last change of a file, or of everything in a folder.
fn last_change(path: &Path) -> io::Result<SystemTime> {
    let metadata = fs::symlink_metadata(path)?;
    let mut changed = metadata.modified()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            changed = changed.max(last_change(&entry?.path())?);
        }
    }
    Ok(changed)
}

/// What is in a folder, by name; nothing where there is no such folder.
pub(super) fn entries(folder: &Path) -> anyhow::Result<Vec<(String, DirEntry)>> {
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

pub(super) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Whether something is at least so old. What is of the future, by a clock that was set, is new.
pub(super) fn is_aged(changed: SystemTime, now: SystemTime, least: Duration) -> bool {
    now.duration_since(changed).is_ok_and(|age| age >= least)
}

/// The packs of a data folder, by their hashes, also those that a killed process set aside.
fn stored(data: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut packs = Vec::new();
    for (name, entry) in entries(&data.join(PACKS))? {
        let pack = name.strip_suffix(ASIDE_ENDING).unwrap_or(&name);
        let hash = pack.strip_suffix(PACK_ENDING).filter(|hash| hash.len() == HASH_DIGITS && is_file(&entry));
        if let Some(hash) = hash {
            packs.push((hash.to_owned(), entry.path()));
        }
    }
    Ok(packs)
}

/// Removes the packs of a data folder that nobody names and that are old enough, so that none is lost to a process that begins a
/// run with it at the same moment. There is no lock of packs. So each is first renamed; then everything is read that may refer to
/// it; then it is removed, or renamed back if somebody refers to it or it is new. That is enough, because
///
/// - who submits a pack, or derives one, writes it anew and creates the run, or the judged benchmark, afterwards: either the pack
///   was written after it was renamed here, and lies in its place; or before, and is new;
/// - who begins a run with the built-in pack creates the run, and then looks for the pack, and writes it where there is none:
///   either it looked after the pack was renamed, or its manifest is read here;
/// - who copies a run from elsewhere looks for the pack, writes records for long, and the manifest last: a folder of a run
///   without a manifest that was written within the hour keeps all packs. Only a copy that has looked for its pack and has not
///   written anything yet is overlooked; the same copy again brings the pack again.
///
/// Who needs the pack in the moment in which it is away is told that it is not there, and can ask again. A coordinator also
/// writes a pack anew when it loads a run, and so does the removal of a judged benchmark: its derived packs go with a later one.
///
/// # Errors
/// A folder cannot be read, or a pack not be removed.
pub(super) fn remove_needless(data: &Path) -> anyhow::Result<()> {
    let needed = needed(data)?;
    let now = SystemTime::now();
    let is_old = |path: &Path| last_change(path).is_ok_and(|changed| is_aged(changed, now, AGE_MIN));
    let mut packs = stored(data)?;
    packs.retain(|(hash, path)| !needed.hashes.contains(hash) && is_old(path));
    if packs.is_empty() {
        return Ok(());
    }
    if let Some(why) = needed.doubt(now) {
        say(&format!("no pack is removed: {why}"));
        return Ok(());
    }
    let lock = data.join(REMOVAL_LOCK);
    let lock = File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
    if lock.try_lock().is_err() {
        bail!("another process removes packs in {}, or the folder has no locks", data.display());
    }
    let mut aside = Vec::new();
    for (hash, path) in packs {
        let place = data.join(PACKS).join(format!("{hash}{PACK_ENDING}"));
        let away = data.join(PACKS).join(format!("{hash}{PACK_ENDING}{ASIDE_ENDING}"));
        fs::rename(&path, &away).with_context(|| format!("cannot rename {}", path.display()))?;
        aside.push((hash, place, away));
    }
    let needed = self::needed(data);
    for (hash, place, away) in aside {
        let may_go = needed.as_ref().is_ok_and(|needed| {
            needed.doubt(now).is_none() && !needed.hashes.contains(&hash) && is_old(&away)
        });
        if may_go {
            fs::remove_file(&away).with_context(|| format!("cannot remove {}", away.display()))?;
            note!("removed pack {hash}, which no run names");
        } else {
            fs::rename(&away, &place).with_context(|| format!("cannot rename {}", away.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_that_nobody_names_goes_and_a_new_one_stays() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join(PACKS)).unwrap();
        let pack = |name: &str, age: u64| {
            let path = data.path().join(format!("packs/{}.kgpack", name.repeat(HASH_DIGITS)));
            let changed = SystemTime::now() - Duration::from_secs(age);
            File::create(&path).unwrap().set_modified(changed).unwrap();
            path
        };
        let (old, new) = (pack("a", 2 * 60 * 60), pack("b", 0));
        remove_needless(data.path()).unwrap();
        assert!(!old.exists() && new.exists());
    }

    #[test]
    fn packs_stay_where_somebody_may_need_them() {
        let now = SystemTime::now();
        let ago = |hours: u64| now - Duration::from_secs(hours * 60 * 60);
        let mut needed =
            NeededPacks { unfinished: vec![("runs/x".to_owned(), ago(0))], ..NeededPacks::default() };
        assert!(needed.doubt(now).unwrap().contains("runs/x has no manifest yet"));
        needed.unfinished[0].1 = ago(2);
        assert_eq!(needed.doubt(now), None, "the copy has ended, and begins anew with the pack");
        needed.unread_runs = vec!["run x says nothing".to_owned(), "run y says nothing".to_owned()];
        assert_eq!(needed.doubt(now).unwrap(), "run x says nothing; and 1 more");
    }
}
