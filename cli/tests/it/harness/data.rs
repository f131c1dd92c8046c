//! A data folder for one test, and readers of its content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use domain::{DialogueKey, Record};
use results::log::{LogItem, LogReader};
use results::{RunDir, RunManifest};
use tempfile::TempDir;

use super::acknowledged::ACKNOWLEDGED;
use super::process::{self, Finished, Running};

/// Between two looks at a file that another process writes.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A data folder, and the state folder of the user whose it is: a machine of its own. Both are removed at the end.
pub struct Data {
    folder: TempDir,
    state: TempDir,
}

impl Data {
    /// An empty one.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The user's state folder, in which `kgfleet` has one of its own.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// The file in which workers note what coordinators acknowledged.
    pub fn acknowledged(&self) -> PathBuf {
        self.state().join("acknowledged")
    }

    /// `kgfleet` with these arguments in this folder.
    pub fn command<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = process::kgfleet();
        command.args(arguments).current_dir(self.path());
        command.env("KGFLEET_DATA_DIR", self.path()).env("XDG_STATE_HOME", self.state());
        command.env("KGFLEET_LOGIN", self.state().join("login.toml"));
        command.env(ACKNOWLEDGED, self.acknowledged());
        command
    }

    /// Runs `kgfleet` to its end.
    pub fn kgfleet<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Finished {
        process::finish(&mut self.command(arguments))
    }

    /// Starts `kgfleet`.
    pub fn start<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Writes a file beside the runs; its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Puts what an archive holds beside the other runs.
    pub fn unpack(&self, archive: &Path) {
        results::archive::unpack(archive, self.path()).unwrap();
    }

    /// The runs, oldest first.
    pub fn runs(&self) -> Vec<RunOnDisk> {
        let found = RunDir::list(self.path()).unwrap();
        found
            .into_iter()
            .map(|found| RunOnDisk { dir: found.dir, manifest: found.manifest.unwrap() })
            .collect()
    }

    /// The only run.
    #[track_caller]
    pub fn run(&self) -> RunOnDisk {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "runs in the folder");
        runs.remove(0)
    }

    /// Waits until the only run has this many records. Fails when the process ends before.
    #[track_caller]
    pub fn until_recorded(&self, running: &mut Running, records: usize) {
        loop {
            let ended = running.has_ended();
            if self.runs().first().is_some_and(|run| run.entries().len() >= records) {
                return;
            }
            assert!(!ended, "the process ended before there were {records} records");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// A run as it lies on the disk.
pub struct RunOnDisk {
    /// Its folder.
    pub dir: RunDir,
    pub manifest: RunManifest,
}

impl RunOnDisk {
    pub fn name(&self) -> &str {
        self.manifest.run.as_str()
    }

    /// Every record of its log, superseded ones too. A tail that a writer left unfinished is passed over; any other damage
    /// fails the test.
    #[track_caller]
    pub fn entries(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for item in LogReader::open(&self.dir.log(), None).unwrap() {
            match item.unwrap() {
                LogItem::Record { record, .. } => records.push(*record),
                LogItem::Event { .. } => {}
                LogItem::Damage(damage) => assert!(!damage.is_loss(), "{damage}"),
            }
        }
        records
    }

    /// The records by dialogue. Fails when a dialogue has two.
    #[track_caller]
    pub fn records(&self) -> BTreeMap<DialogueKey, Record> {
        let mut records = BTreeMap::new();
        for record in self.entries() {
            let key = record.key.clone();
            assert!(records.insert(key.clone(), record).is_none(), "{key} has two records");
        }
        records
    }

    /// Length of its log in bytes, as far as it is written.
    pub fn log_bytes(&self) -> u64 {
        let Ok(files) = std::fs::read_dir(self.dir.log()) else { return 0 };
        files.flatten().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    /// The files in its folder of exports, unfinished ones too.
    pub fn exported(&self) -> impl Iterator<Item = PathBuf> {
        std::fs::read_dir(self.dir.exports()).into_iter().flatten().map(|file| file.unwrap().path())
    }
}
