//! The spools of one working folder: taking over those of workers that do not come back, and listing and dropping
//! records by hand.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use domain::RunId;
use rustix::fs::{FlockOperation, flock};

use super::segment::{MAGIC, PRIVATE, SpoolError, at, frames, segments_in};

/// Maximum number of other spools that a worker checks when it starts.
const SPOOLS_MAX: usize = 1_000;

/// Records of a run in a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Number of records, including acknowledged ones.
    pub records: u64,
    pub bytes: u64,
}

/// A spool of a working folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolFolder {
    /// The folder.
    pub dir: PathBuf,
    /// Whether a worker uses it.
    pub in_use: bool,
    /// Records by run.
    pub runs: BTreeMap<RunId, Held>,
}

/// The spool folders below `root`, by name; none if there is no such folder.
fn folders(root: &Path) -> Result<Vec<PathBuf>, SpoolError> {
    let entries = match std::fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(at(root))?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry.map_err(at(root))?.path();
        if path.join("lock").is_file() {
            folders.push(path);
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// Locks a spool, if it is free.
fn free_lock(dir: &Path) -> Option<File> {
    let lock = OpenOptions::new().append(true).open(dir.join("lock")).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(lock)
}

/// Lists the records in the spools below `root`.
///
/// # Errors
/// One of them cannot be read.
pub fn survey(root: &Path) -> Result<Vec<SpoolFolder>, SpoolError> {
    let mut found = Vec::new();
    for dir in folders(root)? {
        let in_use = free_lock(&dir).is_none();
        let mut runs: BTreeMap<RunId, Held> = BTreeMap::new();
        for (_, path) in segments_in(&dir)? {
            // Its worker may just have deleted it.
            let Ok(content) = std::fs::read(&path) else { continue };
            for frame in frames(&content) {
                let held = runs.entry(frame.run()).or_default();
                held.records += 1;
                held.bytes += frame.record.len() as u64;
            }
        }
        found.push(SpoolFolder { dir, in_use, runs });
    }
    Ok(found)
}

/// Deletes the records of a run, or of all runs, from a spool that no worker uses; returns how many.
///
/// # Errors
/// A worker uses it, or it cannot be written.
pub fn drop_records(dir: &Path, run: Option<&RunId>) -> Result<u64, SpoolError> {
    let _lock = free_lock(dir).ok_or_else(|| SpoolError::InUse(dir.to_owned()))?;
    let mut dropped = 0;
    for (_, path) in segments_in(dir)? {
        let content = std::fs::read(&path).map_err(at(&path))?;
        let (gone, kept): (Vec<_>, Vec<_>) =
            frames(&content).partition(|frame| run.is_none_or(|run| frame.run() == *run));
        dropped += gone.len() as u64;
        if kept.is_empty() {
            std::fs::remove_file(&path).map_err(at(&path))?;
        } else if !gone.is_empty() {
            let part = path.with_extension("part");
            let write = || {
                let mut file =
                    OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&part)?;
                file.write_all(MAGIC)?;
                kept.iter().try_for_each(|frame| file.write_all(frame.whole))?;
                std::fs::rename(&part, &path)
            };
            write().map_err(at(&path))?;
        }
    }
    Ok(dropped)
}

/// Moves segments of workers that are gone into `own`, numbered from `next` on, up to this many bytes; returns the
/// next number. Whatever cannot be taken over stays in place and is logged.
pub(super) fn adopt(own: &Path, mut next: u64, bytes_max: u64) -> u64 {
    let Some(root) = own.parent() else { return next };
    let folders = folders(root).unwrap_or_else(|error| {
        tracing::warn!(%error, "spools of other workers cannot be looked for");
        Vec::new()
    });
    let mut taken = 0;
    for dir in folders.into_iter().filter(|dir| dir != own).take(SPOOLS_MAX) {
        let Some(_lock) = free_lock(&dir) else { continue };
        let segments = segments_in(&dir).unwrap_or_default();
        let mut moved = 0;
        for (_, path) in &segments {
            let bytes = path.metadata().map_or(0, |file| file.len());
            if taken + bytes > bytes_max {
                tracing::warn!(dir = %dir.display(), "records of a worker that is gone stay in its spool: this one would be full");
                return next;
            }
            if !is_segment(path) {
                tracing::warn!(path = %path.display(), "left behind by a worker that is gone, and of no version known here");
                continue;
            }
            match std::fs::rename(path, own.join(format!("{next:08}.spool"))) {
                Ok(()) => (moved, next, taken) = (moved + 1, next + 1, taken + bytes),
                Err(error) => tracing::warn!(path = %path.display(), %error, "cannot be taken over"),
            }
        }
        if moved > 0 {
            tracing::info!(dir = %dir.display(), segments = moved, "took over the records of a worker that is gone");
        }
    }
    next
}

/// Whether a file begins like a segment.
fn is_segment(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(path).is_ok_and(|mut file| std::io::Read::read_exact(&mut file, &mut start).is_ok())
        && start == *MAGIC
}

#[cfg(test)]
mod tests {
    use domain::DialogueKey;
    use domain::exchange::Delivery;

    use super::super::spool::Spool;
    use super::*;

    fn delivery(run: &str, iteration: u32) -> Delivery {
        let key = DialogueKey { model: "m".into(), task: "t".into(), iteration };
        Delivery { run: run.into(), key, failure: None, json: "{}".into() }
    }

    #[test]
    fn what_workers_left_that_are_gone_is_taken_over_and_what_others_use_is_not() {
        let root = tempfile::tempdir().unwrap();
        let dir = |name: &str| root.path().join(name);
        let (mut gone, _) = Spool::open(&dir("gone"), 0).unwrap();
        gone.append(&[delivery("a", 0), delivery("b", 1)]).unwrap();
        drop(gone);
        let (mut busy, _) = Spool::open(&dir("busy"), 0).unwrap();
        busy.append(&[delivery("a", 2)]).unwrap();
        std::fs::create_dir(dir("odd")).unwrap();
        std::fs::write(dir("odd").join("lock"), "").unwrap();
        std::fs::write(dir("odd").join("00000001.spool"), "kgspool9").unwrap();

        let (spool, none) = Spool::open(&dir("new"), 10).unwrap();
        assert!(none.records.is_empty(), "no room");
        drop(spool);
        let (mut spool, recovered) = Spool::open(&dir("new"), 1 << 20).unwrap();
        let runs: Vec<&str> = recovered.records.iter().map(|(run, _)| run.as_str()).collect();
        assert_eq!(runs, ["a", "b"]);
        spool.append(&[delivery("a", 3)]).unwrap();
        drop(spool);
        assert!(Spool::open(&dir("gone"), 0).unwrap().1.records.is_empty());
        assert_eq!(Spool::open(&dir("new"), 0).unwrap().1.records.len(), 3);
    }

    #[test]
    fn people_see_what_waits_and_drop_what_they_name() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("w");
        let (mut spool, _) = Spool::open(&dir, 0).unwrap();
        spool.append(&[delivery("a", 0), delivery("b", 1), delivery("a", 2)]).unwrap();
        let found = survey(root.path()).unwrap();
        assert!(found[0].in_use);
        let records: Vec<_> = found[0].runs.iter().map(|(run, held)| (run.as_str(), held.records)).collect();
        assert_eq!(records, [("a", 2), ("b", 1)]);
        assert!(matches!(drop_records(&dir, None), Err(SpoolError::InUse(_))));
        drop(spool);
        assert_eq!(drop_records(&dir, Some(&"a".into())).unwrap(), 2);
        let (spool, recovered) = Spool::open(&dir, 0).unwrap();
        assert_eq!(spool.read(recovered.records[0].1).unwrap(), delivery("b", 1));
        drop((spool, recovered));
        assert_eq!(drop_records(&dir, None).unwrap(), 1);
        assert_eq!(survey(root.path()).unwrap()[0].runs.len(), 0);
        assert!(survey(&root.path().join("none")).unwrap().is_empty());
    }
}
