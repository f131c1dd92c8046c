//! Runs in a folder of this machine, or of a file system that several machines share. Everything here blocks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use domain::RunId;

use super::{SinkError, SinkReport};
use crate::log::{LogOptions, LogWriter, Recovery, SegmentId};
use crate::run_dir::FoundRun;
use crate::{RunDir, RunManifest, files};

/// Length of the hash of a pack, in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// A data folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    data: PathBuf,
}

impl Folder {
    pub(super) fn new(data: PathBuf) -> Self {
        Self { data }
    }

    pub(super) fn path(&self) -> &Path {
        &self.data
    }

    pub(super) fn create_run(&self, manifest: &RunManifest) -> Result<RunDir, SinkError> {
        Ok(RunDir::create(&self.data, manifest)?)
    }

    pub(super) fn runs(&self) -> Result<Vec<FoundRun>, SinkError> {
        Ok(RunDir::list(&self.data)?)
    }

    pub(super) fn run_dir(&self, run: &RunId) -> Result<RunDir, SinkError> {
        Ok(RunDir::of(&self.data, run)?)
    }

    pub(super) fn existing(&self, run: &RunId) -> Result<RunDir, SinkError> {
        let dir = self.run_dir(run)?;
        if dir.manifest_path().is_file() {
            Ok(dir)
        } else {
            Err(SinkError::NoRun { place: dir.path().display().to_string() })
        }
    }

    pub(super) fn manifest(&self, run: &RunId) -> Result<RunManifest, SinkError> {
        Ok(self.run_dir(run)?.manifest()?)
    }

    pub(super) fn open_writer(
        &self,
        run: &RunId,
        options: LogOptions,
    ) -> Result<(LogWriter, Recovery), SinkError> {
        Ok(LogWriter::open(&self.existing(run)?.log(), options)?)
    }

    pub(super) fn read_state(&self, run: &RunId) -> Result<Option<Vec<u8>>, SinkError> {
        read(&self.run_dir(run)?.state_path())
    }

    pub(super) fn write_state(&self, run: &RunId, state: &[u8]) -> Result<(), SinkError> {
        replace(&self.existing(run)?.state_path(), state)
    }

    pub(super) fn put_retry(&self, run: &RunId, name: &str, content: &[u8]) -> Result<(), SinkError> {
        let folder = self.existing(run)?.retries();
        fs::create_dir_all(&folder).map_err(|error| SinkError::io(&folder, "create", error))?;
        replace(&folder.join(format!("{name}.json")), content)
    }

    pub(super) fn retries(&self, run: &RunId) -> Result<Vec<Vec<u8>>, SinkError> {
        let folder = self.run_dir(run)?.retries();
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.and_then(|entries| {
                entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()
            }),
        };
        let mut paths = entries.map_err(|error| SinkError::io(&folder, "list", error))?;
        // Others are half written.
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        paths.iter().map(|path| Ok(read(path)?.unwrap_or_default())).collect()
    }

    pub(super) fn seal(&self, run: &RunId, name: &str, content: &[u8]) -> Result<bool, SinkError> {
        let folder = self.existing(run)?.log();
        // What the seal says is to be there after a power cut, also where the writer of a segment died before it synced.
        for segment in SegmentId::list(&folder)? {
            let path = segment.path(&folder);
            fs::File::open(&path)
                .and_then(|file| file.sync_data())
                .map_err(|error| SinkError::io(path, "sync", error))?;
        }
        let path = folder.join(name);
        files::create_shared(&path, content).map_err(|error| SinkError::io(path, "write", error))
    }

    pub(super) fn put_pack(&self, hash: &str, sealed: &[u8]) -> Result<(), SinkError> {
        let path = self.pack_path(hash)?;
        let folder = self.data.join("packs");
        fs::create_dir_all(&folder).map_err(|error| SinkError::io(folder, "create", error))?;
        replace(&path, sealed)
    }

    pub(super) fn pack(&self, hash: &str) -> Result<Option<Vec<u8>>, SinkError> {
        read(&self.pack_path(hash)?)
    }

    fn pack_path(&self, hash: &str) -> Result<PathBuf, SinkError> {
        Ok(self.data.join("packs").join(pack_name(hash)?))
    }

    /// The folder of a pipeline, by a name that is one of a run, too.
    fn pipeline(&self, pipeline: &RunId) -> Result<PathBuf, SinkError> {
        self.run_dir(pipeline)?;
        Ok(self.data.join(super::PIPELINES).join(pipeline.as_str()))
    }

    fn document_path(&self, pipeline: &RunId, name: &str) -> Result<PathBuf, SinkError> {
        self.run_dir(&RunId::new(name))?;
        Ok(self.pipeline(pipeline)?.join(name))
    }

    pub(super) fn create_document(
        &self,
        pipeline: &RunId,
        name: &str,
        content: &[u8],
    ) -> Result<bool, SinkError> {
        let (folder, path) = (self.pipeline(pipeline)?, self.document_path(pipeline, name)?);
        fs::create_dir_all(&folder).map_err(|error| SinkError::io(&folder, "create", error))?;
        files::create_shared(&path, content).map_err(|error| SinkError::io(path, "write", error))
    }

    pub(super) fn put_document(&self, pipeline: &RunId, name: &str, content: &[u8]) -> Result<(), SinkError> {
        let (folder, path) = (self.pipeline(pipeline)?, self.document_path(pipeline, name)?);
        fs::create_dir_all(&folder).map_err(|error| SinkError::io(&folder, "create", error))?;
        replace(&path, content)
    }

    pub(super) fn document(&self, pipeline: &RunId, name: &str) -> Result<Option<Vec<u8>>, SinkError> {
        read(&self.document_path(pipeline, name)?)
    }

    pub(super) fn pipelines(&self) -> Result<Vec<RunId>, SinkError> {
        let folder = self.data.join(super::PIPELINES);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.and_then(|entries| entries.collect::<io::Result<Vec<_>>>()),
        };
        let entries = entries.map_err(|error| SinkError::io(&folder, "list", error))?;
        let mut names: Vec<RunId> =
            entries.iter().map(|entry| RunId::new(entry.file_name().to_string_lossy())).collect();
        names.sort();
        Ok(names)
    }

    pub(super) fn remove_documents(&self, pipeline: &RunId) -> Result<(), SinkError> {
        let folder = self.pipeline(pipeline)?;
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SinkError::io(folder, "remove", error))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn remove_run(&self, run: &RunId) -> Result<(), SinkError> {
        let dir = self.existing(run)?;
        let lock = dir.lock_shared()?;
        Ok(dir.remove(&lock)?)
    }

    pub(super) fn is_removed(&self, run: &RunId) -> Result<bool, SinkError> {
        let Some(mark) = self.run_dir(run)?.removed_path() else { return Ok(false) };
        mark.try_exists().map_err(|error| SinkError::io(mark, "look for", error))
    }

    pub(super) fn identity(&self) -> Result<Option<Vec<u8>>, SinkError> {
        read(&self.data.join(super::IDENTITY_FILE))
    }

    pub(super) fn identify(&self, content: &[u8]) -> Result<(), SinkError> {
        fs::create_dir_all(&self.data).map_err(|error| SinkError::io(&self.data, "create", error))?;
        let path = self.data.join(super::IDENTITY_FILE);
        let made = files::create_shared(&path, content);
        made.map(|_| ()).map_err(|error| SinkError::io(path, "write", error))
    }

    /// Writes, reads and removes a file, and asks for the space that is left.
    pub(super) fn check(&self) -> Result<SinkReport, SinkError> {
        fs::create_dir_all(&self.data).map_err(|error| SinkError::io(&self.data, "create", error))?;
        let probe = self.data.join(super::probe_name());
        let content = b"kgfleet was here";
        replace(&probe, content)?;
        let found = read(&probe)?;
        fs::remove_file(&probe).map_err(|error| SinkError::io(&probe, "remove", error))?;
        if found.as_deref() != Some(content) {
            let error = io::Error::other("what was written is not what is there");
            return Err(SinkError::io(probe, "read", error));
        }
        let space = rustix::fs::statvfs(&self.data)
            .map_err(|error| SinkError::io(&self.data, "ask for the free space of", error.into()))?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        Ok(SinkReport { place: self.data.display().to_string(), free_bytes })
    }
}

/// File name of a pack.
pub(super) fn pack_name(hash: &str) -> Result<String, SinkError> {
    if hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(format!("{hash}.kgpack"))
    } else {
        Err(SinkError::PackHash(hash.to_owned()))
    }
}

/// The content of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, SinkError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SinkError::io(path, "read", error)),
    }
}

pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), SinkError> {
    files::replace_shared(path, content).map_err(|error| SinkError::io(path, "write", error))
}
