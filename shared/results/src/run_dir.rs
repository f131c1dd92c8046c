//! The folder of a run on disk.
//!
//! ```text
//! DATA/runs/RUN/manifest.json    what was planned
//! DATA/runs/RUN/manifest-N.json  what is planned since the run was extended, from 2; the newest counts
//! DATA/runs/RUN/state.json       the state of the run that its log says, once more for lists
//! DATA/runs/RUN/history/*.json   who did what to it
//! DATA/runs/RUN/lock             held by the one process that creates the run, or that writes its log without a
//!                                cluster; shared by the coordinators of a cluster. Where the file system has no
//!                                locks, `lock.*` with a heartbeat
//! DATA/runs/RUN/live.json        what is under way in that process, while it works
//! DATA/runs/RUN/generations/*.json  the generations of its queue, one empty file each
//! DATA/runs/RUN/log/*.kglog      the record log; beside it `*.synced`, `*.claim` and `*.ends`
//! DATA/runs/RUN/exports/         exports for which no path was given
//! DATA/removed/RUN               marks a run that was removed on purpose, so that late records are refused; with the
//!                                generation after which a run of the same name goes on counting
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use domain::{RunId, machine};

use crate::files::{self, Doing, IoError, if_there};
use crate::manifest::{ManifestError, RunManifest};
use crate::run_lock::LOCK;
pub use crate::run_lock::{Holder, RunLock};

/// The longest step from a generation that is known, or from the time of day in milliseconds, to the next one. Short enough
/// that a run may be built anew as often as it likes, long enough that a number which is forgotten is not hit again.
pub const GENERATION_STEP_MAX: u64 = 1 << 20;

/// The folder of the claimed generations of a run's queue.
pub(crate) const GENERATIONS: &str = "generations";

/// Content of the file that marks a removed run whose folder of generations has these names. Two runs of one name share no
/// generation, so that neither leases nor records of the first are taken for those of the second. Coordinators may claim some
/// at this moment, up to [`GENERATION_STEP_MAX`] above the others and above the time of day: these are left out as well.
pub(crate) fn removed_mark(generations: &[String], before: u64) -> Vec<u8> {
    let now = u64::try_from(machine::now().as_millisecond()).unwrap_or_default();
    let known = highest_generation(generations).unwrap_or_default().max(before);
    let last = known.max(now) + 2 * GENERATION_STEP_MAX;
    format!("removed\nthe next generation is above {last}\n").into_bytes()
}

/// The last generation of the runs of a name that were removed, by their mark; 0 if the mark names none.
pub(crate) fn removed_generation(mark: &[u8]) -> u64 {
    let last = String::from_utf8_lossy(mark).split_whitespace().next_back().map(str::parse);
    last.and_then(Result::ok).unwrap_or_default()
}

/// The highest generation among the names of a run's folder of generations.
pub(crate) fn highest_generation(names: &[String]) -> Option<u64> {
    names.iter().filter_map(|name| name.strip_suffix(".json")?.parse().ok()).max()
}

/// The document with the manifest of a run, see [`revision_name`].
pub(crate) const MANIFEST: &str = "manifest";

/// The file with the state of a run.
pub(crate) const STATE: &str = "state.json";

/// Revisions of a manifest. A run that is extended more often is a mistake of a program.
const REVISIONS_MAX: u32 = 1_000;

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// A run found in a data folder.
#[derive(Debug)]
pub struct FoundRun {
    pub dir: RunDir,
    /// Its manifest, or why it cannot be used.
    pub manifest: Result<RunManifest, ManifestError>,
}

/// Why a run folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The operating system reported an error.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The run exists already.
    #[error("{}: the run exists already", path.display())]
    Exists {
        /// Its folder.
        path: PathBuf,
    },
    /// Another process writes the run.
    #[error("{}: {by} writes this run", path.display())]
    Busy {
        /// Its folder.
        path: PathBuf,
        by: Holder,
    },
    /// A run name must be a single path component.
    #[error("`{0}` is not a run name: letters, digits, `-`, `_` and `.` are allowed, not `.` first")]
    Name(String),
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl RunDir {
    /// Creates the folder of a new run, writing the manifest last: a folder without one is a run that never started.
    /// If several processes create the same run at once, one succeeds.
    pub fn create(data: &Path, manifest: &RunManifest) -> Result<Self, RunDirError> {
        let dir = Self::of(data, &manifest.run)?;
        let exists = |dir: Self| Err(RunDirError::Exists { path: dir.path });
        if dir.is_there() {
            return exists(dir);
        }
        dir.make_folders()?;
        let _lock = match dir.lock() {
            // Another process is creating it.
            Err(RunDirError::Busy { .. }) => return exists(dir),
            lock => lock?,
        };
        if dir.is_there() {
            return exists(dir);
        }
        manifest.write(&dir.manifest_path())?;
        for folder in [data.join("runs"), data.to_owned()] {
            files::sync_folder(&folder).doing("sync", folder)?;
        }
        Ok(dir)
    }

    /// Moves the run to the runs of a data folder on the same file system, where it appears whole or not at all.
    pub fn move_to(&self, data: &Path) -> Result<Self, RunDirError> {
        let moved = Self::of(data, &self.run())?;
        let runs = data.join("runs");
        fs::create_dir_all(&runs).doing("create", &runs)?;
        fs::rename(&self.path, &moved.path).doing("move the run to", &moved.path)?;
        files::sync_folder(&runs).doing("sync", runs)?;
        Ok(moved)
    }

    /// Opens the folder of an existing run.
    pub fn open(data: &Path, run: &RunId) -> Result<(Self, RunManifest), RunDirError> {
        let dir = Self::of(data, run)?;
        let manifest = dir.manifest()?;
        Ok((dir, manifest))
    }

    /// Opens the folder of an existing run although its manifest may have been altered: to say so, or to remove it.
    pub fn open_altered(data: &Path, run: &RunId) -> Result<(Self, RunManifest), RunDirError> {
        let dir = Self::of(data, run)?;
        dir.expect_manifest()?;
        let path = dir.revision_path(dir.revision());
        let text = fs::read(&path).doing("read", &path)?;
        let manifest = RunManifest::parse(&path, &text)?;
        Ok((dir, manifest))
    }

    /// A run by the path of its folder.
    pub fn at(path: impl Into<PathBuf>) -> Result<(Self, RunManifest), RunDirError> {
        let dir = Self { path: path.into() };
        let manifest = dir.manifest()?;
        Ok((dir, manifest))
    }

    /// The runs in a data folder, ordered by name, which is by time for names that begin with their time. Folders
    /// without a manifest are left out, unless they [lost it](Self::has_lost_manifest). No data folder means no runs.
    pub fn list(data: &Path) -> Result<Vec<FoundRun>, RunDirError> {
        let runs = data.join("runs");
        let names = if_there(files::names(&runs)).doing("list", &runs)?.unwrap_or_default();
        let mut dirs: Vec<Self> =
            names.into_iter().map(|name| Self { path: runs.join(name) }).filter(Self::is_run).collect();
        dirs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(dirs.into_iter().map(|dir| FoundRun { manifest: dir.newest_manifest(), dir }).collect())
    }

    /// Names of runs in a data folder, of at most so many, in no order. No manifest is read: for who cannot wait for that.
    pub fn names(data: &Path, names_max: usize) -> Result<Vec<RunId>, RunDirError> {
        let runs = data.join("runs");
        let names = if_there(files::names(&runs)).doing("list", &runs)?.unwrap_or_default();
        let dirs = names.into_iter().take(names_max).map(|name| Self { path: runs.join(name) });
        Ok(dirs.filter(Self::is_run).map(|dir| dir.run()).collect())
    }

    /// Takes the exclusive right to write the run. Readers need no lock.
    pub fn lock(&self) -> Result<RunLock, RunDirError> {
        self.take_lock(Holder::Process)
    }

    /// Takes the shared right to write the run, for the coordinators of a fleet.
    pub fn lock_shared(&self) -> Result<RunLock, RunDirError> {
        self.take_lock(Holder::Fleet)
    }

    fn take_lock(&self, holder: Holder) -> Result<RunLock, RunDirError> {
        let path = self.path.join(LOCK);
        let taken = RunLock::take(&path, holder).doing("lock", path)?;
        taken.map_err(|by| RunDirError::Busy { path: self.path.clone(), by })
    }

    /// Removes the run and everything in it, and leaves a mark, so that late records of a removed run can be
    /// distinguished from those of an unknown run. Requires the lock.
    pub fn remove(self, _lock: &RunLock) -> Result<(), RunDirError> {
        if let Some(mark) = self.removed_path() {
            let folder = mark.parent().unwrap_or(&mark).to_owned();
            fs::create_dir_all(&folder).doing("create", folder)?;
            let claimed = self.path.join(GENERATIONS);
            let claimed = if_there(files::names(&claimed)).doing("list", claimed)?.unwrap_or_default();
            let claimed: Vec<String> =
                claimed.into_iter().filter_map(|name| name.into_string().ok()).collect();
            let before = if_there(fs::read(&mark)).doing("read", &mark)?.unwrap_or_default();
            let content = removed_mark(&claimed, removed_generation(&before));
            files::replace_shared(&mark, &content).doing("write", mark)?;
        }
        // The manifest first: without it this is no longer a run, even if the rest fails.
        let manifest = self.manifest_path();
        if if_there(fs::remove_file(&manifest)).doing("remove", manifest)?.is_none() {
            return Ok(()); // Another process of the fleet is removing it.
        }
        Ok(fs::remove_dir_all(&self.path).doing("remove", self.path)?)
    }

    /// Creates the folders inside.
    pub(crate) fn make_folders(&self) -> Result<(), RunDirError> {
        for folder in [self.log(), self.exports()] {
            fs::create_dir_all(&folder).doing("create", folder)?;
        }
        Ok(())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the run: that of its folder.
    pub fn run(&self) -> RunId {
        RunId::new(self.path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// The folder of the record log.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The folder of the run's history, one file for each entry.
    pub fn history(&self) -> PathBuf {
        self.path.join("history")
    }

    /// The folder of exports.
    pub fn exports(&self) -> PathBuf {
        self.path.join("exports")
    }

    /// The folder of exports, which the folder of a run out of an archive lacks until now.
    pub fn make_exports(&self) -> Result<PathBuf, RunDirError> {
        let folder = self.exports();
        fs::create_dir_all(&folder).doing("create", &folder)?;
        Ok(folder)
    }

    /// The first manifest's file: a folder without one is no run.
    pub fn manifest_path(&self) -> PathBuf {
        self.revision_path(1)
    }

    /// Whether there is a run.
    pub fn is_there(&self) -> bool {
        self.manifest_path().is_file()
    }

    /// Whether records are there whose manifest is gone. Those of a run that is being removed lie beside its mark.
    pub fn has_lost_manifest(&self) -> bool {
        let has_records = || files::names(&self.log()).is_ok_and(|names| !names.is_empty());
        let is_removed = || self.removed_path().is_some_and(|mark| mark.is_file());
        !self.is_there() && has_records() && !is_removed()
    }

    fn is_run(&self) -> bool {
        self.is_there() || self.has_lost_manifest()
    }

    /// # Errors
    /// The manifest of a run with records is gone.
    pub(crate) fn expect_manifest(&self) -> Result<(), ManifestError> {
        if self.has_lost_manifest() {
            return Err(ManifestError::Missing { path: self.manifest_path() });
        }
        Ok(())
    }

    /// The file of a revision of the manifest.
    fn revision_path(&self, revision: u32) -> PathBuf {
        self.path.join(revision_name(MANIFEST, revision))
    }

    /// The file that marks the run as removed, beside the folder of runs.
    pub(crate) fn removed_path(&self) -> Option<PathBuf> {
        Some(self.path.parent()?.parent()?.join("removed").join(self.path.file_name()?))
    }

    /// Reads the newest manifest.
    pub fn manifest(&self) -> Result<RunManifest, RunDirError> {
        Ok(self.newest_manifest()?)
    }

    fn newest_manifest(&self) -> Result<RunManifest, ManifestError> {
        self.expect_manifest()?;
        RunManifest::read(&self.revision_path(self.revision()))
    }

    /// Number of the newest manifest; there are no gaps.
    fn revision(&self) -> u32 {
        let later = (2..=REVISIONS_MAX).take_while(|revision| self.revision_path(*revision).is_file());
        later.last().unwrap_or(1)
    }

    /// The folder of a run, which need not exist.
    pub(crate) fn of(data: &Path, run: &RunId) -> Result<Self, RunDirError> {
        let name = run.as_str();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(RunDirError::Name(name.to_owned()));
        }
        Ok(Self { path: data.join("runs").join(name) })
    }
}

/// The file of a revision of a document. Revisions are numbered from 1 without gaps; each is written once, and the newest
/// counts.
pub fn revision_name(document: &str, revision: u32) -> String {
    match revision {
        1 => format!("{document}.json"),
        later => format!("{document}-{later}.json"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_removed_run_takes_with_it_what_is_claimed_meanwhile() {
        let now = u64::try_from(machine::now().as_millisecond()).unwrap();
        let names = [format!("{:020}.json", 2 * now)];
        let mark = |names: &[String], before| removed_generation(&removed_mark(names, before));
        assert!(mark(&[], 0) > now + GENERATION_STEP_MAX);
        assert!(mark(&names, 0) > 2 * now + GENERATION_STEP_MAX);
        assert!(mark(&names, 3 * now) > 3 * now + GENERATION_STEP_MAX);
    }

    #[test]
    fn a_run_is_found_again_and_has_one_writer() {
        let data = tempfile::tempdir().unwrap();
        assert!(RunDir::list(data.path()).unwrap().is_empty());
        let dir = RunDir::create(data.path(), &testing::manifest("b")).unwrap();
        RunDir::create(data.path(), &testing::manifest("a")).unwrap();
        assert!(matches!(
            RunDir::create(data.path(), &testing::manifest("a")),
            Err(RunDirError::Exists { .. })
        ));
        fs::create_dir(data.path().join("runs/half-made")).unwrap();
        let found: Vec<String> = RunDir::list(data.path())
            .unwrap()
            .into_iter()
            .map(|found| found.manifest.unwrap().run.to_string())
            .collect();
        assert_eq!(found, ["a", "b"]);
        let mut names = RunDir::names(data.path(), 10).unwrap();
        names.sort();
        assert_eq!(names, [RunId::new("a"), RunId::new("b")]);
        assert!(RunDir::names(data.path(), 1).unwrap().len() <= 1);

        // With records, a folder without a manifest is a run that lost it.
        let log = dir.log().join("0.kglog");
        fs::write(&log, "records").unwrap();
        let manifest = fs::read(dir.manifest_path()).unwrap();
        fs::remove_file(dir.manifest_path()).unwrap();
        let found = RunDir::list(data.path()).unwrap();
        assert!(matches!(found[1].manifest, Err(ManifestError::Missing { .. })), "{found:?}");
        for opened in [RunDir::open(data.path(), &dir.run()), RunDir::open_altered(data.path(), &dir.run())] {
            let error = opened.unwrap_err();
            assert!(matches!(error, RunDirError::Manifest(ManifestError::Missing { .. })), "{error}");
        }
        fs::write(dir.manifest_path(), manifest).unwrap();
        fs::remove_file(log).unwrap();

        let lock = dir.lock().unwrap();
        assert!(matches!(dir.lock(), Err(RunDirError::Busy { by: Holder::Process, .. })));
        assert!(matches!(dir.lock_shared(), Err(RunDirError::Busy { by: Holder::Process, .. })));
        dir.clone().remove(&lock).unwrap();
        assert_eq!(RunDir::list(data.path()).unwrap().len(), 1);
        assert!(dir.removed_path().unwrap().is_file());
    }

    #[test]
    fn coordinators_share_a_run_and_nobody_else_writes_it() {
        let data = tempfile::tempdir().unwrap();
        let dir = RunDir::create(data.path(), &testing::manifest("a")).unwrap();
        let (one, two) = (dir.lock_shared().unwrap(), dir.lock_shared().unwrap());
        drop(one);
        let error = dir.lock().unwrap_err();
        assert!(matches!(error, RunDirError::Busy { by: Holder::Fleet, .. }), "{error}");
        drop(two);
        dir.lock().unwrap();
    }

    #[test]
    fn run_names_cannot_leave_the_data_folder() {
        let data = tempfile::tempdir().unwrap();
        for name in ["", "..", "a/b", ".hidden", "ü"] {
            assert!(
                matches!(RunDir::open(data.path(), &RunId::new(name)), Err(RunDirError::Name(_))),
                "{name}"
            );
        }
    }
}
