//! Runs in a folder of this machine, or of a file system that several machines share.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::{RunId, machine};

use super::{OpenLog, Sink, SinkError, SinkReply, SinkReport, blocking};
use crate::disk::{self, DiskFile};
use crate::files::{self, Doing, IoError, if_there};
use crate::log::{LogOptions, LogWriter, SegmentId};
use crate::run_dir::{FoundRun, RunDirError};
use crate::{RunDir, RunManifest};

/// A data folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    data: PathBuf,
}

impl Folder {
    pub(super) fn new(data: PathBuf) -> Self {
        Self { data }
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Result<RunDir, SinkError> {
        Ok(RunDir::of(&self.data, run)?)
    }

    /// Runs blocking work on another thread, with a copy of this.
    fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, SinkError> + Send + 'static,
    ) -> SinkReply<'static, T> {
        let folder = self.clone();
        Box::pin(blocking(move || work(&folder)))
    }

    fn find(&self, run: &RunId) -> Result<RunDir, SinkError> {
        let dir = self.run_dir(run)?;
        dir.expect_manifest().map_err(RunDirError::from)?;
        if dir.is_there() {
            Ok(dir)
        } else {
            Err(SinkError::NoRun { place: dir.path().display().to_string() })
        }
    }

    /// The path of a file to be written. Creates its folder, except that of a run: a run that was just removed must not
    /// reappear.
    fn to_write(&self, file: &str) -> Result<PathBuf, SinkError> {
        let path = self.data.join(file);
        let of_run = file.starts_with("runs/") && file.matches('/').count() == 2;
        match path.parent() {
            Some(folder) if !of_run => disk::create_folders(folder).doing("create", folder)?,
            _ => {}
        }
        Ok(path)
    }

    fn probe(&self) -> Result<SinkReport, SinkError> {
        let name = probe_name();
        let content = b"kgfleet was here";
        let probe = self.to_write(&name)?;
        replace(&probe, content)?;
        let found = read(&probe)?;
        disk::remove_file(&probe).doing("remove", &probe)?;
        if found.as_deref() != Some(content) {
            let source = io::Error::other("what was written is not what is there");
            return Err(IoError { path: probe, doing: "read", source }.into());
        }
        let free_bytes = disk::free_bytes(&self.data).doing("ask for the free space of", &self.data)?;
        Ok(SinkReport { place: self.to_string(), free_bytes })
    }
}

impl Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.data.display())
    }
}

impl Sink for Folder {
    fn folder(&self) -> &Path {
        &self.data
    }

    fn create_run<'a>(&'a self, manifest: &'a RunManifest) -> SinkReply<'a, RunDir> {
        let manifest = manifest.clone();
        self.blocking(move |folder| Ok(RunDir::create(&folder.data, &manifest)?))
    }

    fn runs(&self) -> SinkReply<'_, Vec<FoundRun>> {
        self.blocking(|folder| Ok(RunDir::list(&folder.data)?))
    }

    fn existing<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, RunDir> {
        let run = run.clone();
        self.blocking(move |folder| folder.find(&run))
    }

    fn read<'a>(&'a self, file: &'a str) -> SinkReply<'a, Option<Bytes>> {
        let path = self.data.join(file);
        self.blocking(move |_| Ok(read(&path)?.map(Bytes::from)))
    }

    fn replace<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, ()> {
        let file = file.to_owned();
        self.blocking(move |folder| replace(&folder.to_write(&file)?, &content))
    }

    fn create<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        let file = file.to_owned();
        self.blocking(move |folder| create(&folder.to_write(&file)?, &content))
    }

    fn remove<'a>(&'a self, file: &'a str) -> SinkReply<'a, ()> {
        let path = self.data.join(file);
        self.blocking(move |_| Ok(if_there(disk::remove_file(&path)).doing("remove", path).map(drop)?))
    }

    fn list<'a>(&'a self, folder: &'a str) -> SinkReply<'a, Vec<String>> {
        let path = self.data.join(folder);
        self.blocking(move |_| {
            let names = if_there(disk::names(&path)).doing("list", path)?.unwrap_or_default();
            let mut names: Vec<String> =
                names.into_iter().filter_map(|name| name.into_string().ok()).collect();
            names.sort_unstable();
            Ok(names)
        })
    }

    fn write_seal<'a>(&'a self, run: &'a RunId, name: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        let (run, name) = (run.clone(), name.to_owned());
        self.blocking(move |folder| {
            let log = folder.run_dir(&run)?.log();
            // The records that the seal names must survive a power cut, even if the writer of a segment died before syncing.
            for segment in SegmentId::list(&log)? {
                let path = segment.path(&log);
                DiskFile::open(&path).and_then(|file| file.sync_data()).doing("sync", path)?;
            }
            create(&log.join(name), &content)
        })
    }

    fn remove_run<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, ()> {
        let run = run.clone();
        self.blocking(move |folder| {
            let dir = folder.find(&run)?;
            let lock = dir.lock_shared()?;
            Ok(dir.remove(&lock)?)
        })
    }

    fn open_log<'a>(&'a self, run: &'a RunId, options: LogOptions) -> SinkReply<'a, OpenLog> {
        let run = run.clone();
        self.blocking(move |folder| OpenLog::start(LogWriter::open(&folder.find(&run)?.log(), options)?))
    }

    fn check(&self) -> SinkReply<'_, SinkReport> {
        self.blocking(Self::probe)
    }
}

/// The content of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, SinkError> {
    Ok(if_there(disk::read(path)).doing("read", path)?)
}

fn create(path: &Path, content: &[u8]) -> Result<bool, SinkError> {
    Ok(files::create_shared(path, content).doing("write", path)?)
}

pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), SinkError> {
    Ok(files::replace_shared(path, content).doing("write", path)?)
}

/// A unique name for a check.
pub(super) fn probe_name() -> String {
    format!("probe-{:016x}", machine::random(|| OsRng.next_u64()))
}
