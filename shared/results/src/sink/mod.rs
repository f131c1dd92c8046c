//! The common storage of coordinators: a data folder, perhaps on a file system that several machines share.
//!
//! **What is kept.** Of each run: its manifest, in revisions that are written once; its record log, with what happened to it; the
//! state that the log says, once more for lists; the generations of its queue; and its history, which only grows. Of judged
//! benchmarks: their documents and histories. Packs, by their hash. The identity of this sink, a random name made once. Who
//! leads the fleet over it. The names of runs that were removed. Everything else that a cluster needs is computed from these. [`run_dir`](crate::run_dir)
//! has the names of the files.
//!
//! **Durability.** A call that writes returns when its content survives a power cut: a synced file under its name.
//!
//! **Concurrency.** If several coordinators create a run of the same name, or write the same revision of a document, one
//! succeeds. A log has one writer: who [opens](Sink::open_log) it last.
//!
//! Calls do not block the threads of the async runtime. A dropped call may or may not have taken effect. What is made of
//! these calls, and the format of it, is in `contents`.

mod contents;
mod error;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::{RunId, machine};
use futures::future::BoxFuture;

pub use contents::{ENTRIES_READ_MAX, history_file, random_name};
pub use error::SinkError;

use crate::files::{self, Doing, IoError, if_there};
use crate::log::{Claim, CommitQueue, CommitThread, LogError, LogOptions, LogWriter};
use crate::run_dir::{FoundRun, RunDirError};
use crate::{RunDir, RunManifest};

/// The folder with the claim of who leads a fleet over a sink.
const LEAD: &str = "lead";

/// Stands between a sink and its disk in tests, where calls wait for each other and fail.
pub trait Interposed: Send + Sync {
    /// Comes before a call of this name about a run or a file. Returns whether the answer gets lost although the call is
    /// carried out.
    ///
    /// # Errors
    /// The call is not carried out.
    fn before<'a>(&'a self, call: &'static str, about: &'a str) -> BoxFuture<'a, Result<bool, SinkError>>;

    /// How a log is opened.
    fn log_options(&self, options: LogOptions) -> LogOptions {
        options
    }

    /// Comes after a call that was carried out.
    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The place of all runs: `DATA/runs/RUN/…` and `DATA/packs/…`. Names of files are relative to it, with `/` between their
/// parts. Clones share it.
#[derive(Clone)]
pub struct Sink {
    data: Arc<Path>,
    interposed: Option<Arc<dyn Interposed>>,
}

/// The log of a run, open for writing.
#[derive(Debug)]
pub struct OpenLog {
    /// Takes records and events.
    pub queue: CommitQueue,
    /// The writer's thread, which ends after the last clone of the queue.
    pub thread: CommitThread,
    /// The epoch in which it writes.
    pub epoch: u32,
}

/// What a [check](Sink::check) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkReport {
    /// The folder.
    pub place: String,
    /// Bytes that are free on its disk.
    pub free_bytes: u64,
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.data.display())
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sink({self})")
    }
}

impl Sink {
    /// The data folder. It is created when something is written.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into().into(), interposed: None }
    }

    /// The same, with something between it and its disk.
    #[must_use]
    pub fn with(self, interposed: Arc<dyn Interposed>) -> Self {
        Self { interposed: Some(interposed), ..self }
    }

    /// The folder in which logs are read.
    pub fn folder(&self) -> &Path {
        &self.data
    }

    /// Carries out a call of this name about a run or a file, on a thread that may block.
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        about: &str,
        work: impl FnOnce(&Path) -> Result<T, SinkError> + Send + 'static,
    ) -> Result<T, SinkError> {
        let data = Arc::clone(&self.data);
        let done = blocking(move || work(&data));
        let Some(interposed) = &self.interposed else { return done.await };
        let is_lost = interposed.before(name, about).await?;
        let answer = done.await;
        interposed.after().await;
        if is_lost { Err(SinkError::Ended) } else { answer }
    }

    /// Creates a run.
    ///
    /// # Errors
    /// [`SinkError::Exists`] if there is one of this name.
    pub async fn create_run(&self, manifest: &RunManifest) -> Result<RunDir, SinkError> {
        let made = manifest.clone();
        let create = move |data: &Path| Ok(RunDir::create(data, &made)?);
        self.call("create_run", manifest.run.as_str(), create).await
    }

    /// All runs, by name.
    pub async fn runs(&self) -> Result<Vec<FoundRun>, SinkError> {
        self.call("runs", "", |data| Ok(RunDir::list(data)?)).await
    }

    /// The folder of a run, with its manifest in it.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is none of this name.
    pub async fn existing(&self, run: &RunId) -> Result<RunDir, SinkError> {
        let named = run.clone();
        self.call("existing", run.as_str(), move |data| find(data, &named)).await
    }

    /// The content of a file; `None` if there is none.
    pub async fn read(&self, file: &str) -> Result<Option<Bytes>, SinkError> {
        let path = self.data.join(file);
        let read = move |_: &Path| Ok(if_there(fs::read(&path)).doing("read", path)?.map(Bytes::from));
        self.call("read", file, read).await
    }

    /// Replaces a file as a whole, or creates it. Creates its folder, unless it is the folder of a run.
    pub async fn replace(&self, file: &str, content: Bytes) -> Result<(), SinkError> {
        let named = file.to_owned();
        let replace = move |data: &Path| {
            let path = to_write(data, &named)?;
            Ok(files::replace_shared(&path, &content).doing("write", path)?)
        };
        self.call("replace", file, replace).await
    }

    /// Creates a file that never changes; returns whether this call did. Creates its folder as
    /// [`replace`](Self::replace) does.
    pub async fn create(&self, file: &str, content: Bytes) -> Result<bool, SinkError> {
        let named = file.to_owned();
        self.call("create", file, move |data| create(&to_write(data, &named)?, &content)).await
    }

    /// Removes a file, if it exists.
    pub async fn remove(&self, file: &str) -> Result<(), SinkError> {
        let path = self.data.join(file);
        let remove = move |_: &Path| Ok(if_there(fs::remove_file(&path)).doing("remove", path).map(drop)?);
        self.call("remove", file, remove).await
    }

    /// Names of the files in a folder, in order; none if there is no such folder.
    pub async fn list(&self, folder: &str) -> Result<Vec<String>, SinkError> {
        let path = self.data.join(folder);
        let list = move |_: &Path| {
            let names = if_there(files::names(&path)).doing("list", path)?.unwrap_or_default();
            let mut names: Vec<String> =
                names.into_iter().filter_map(|name| name.into_string().ok()).collect();
            names.sort_unstable();
            Ok(names)
        };
        self.call("list", folder, list).await
    }

    /// Removes a run and everything in it, and leaves a mark that says so. Coordinators notice the removal.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is none of this name; an error if a process without a cluster writes the run.
    pub async fn remove_run(&self, run: &RunId) -> Result<(), SinkError> {
        let named = run.clone();
        let remove = move |data: &Path| {
            let dir = find(data, &named)?;
            let lock = dir.lock_shared()?;
            Ok(dir.remove(&lock)?)
        };
        self.call("remove_run", run.as_str(), remove).await
    }

    /// Opens the log of a run for writing, in its next epoch.
    ///
    /// # Errors
    /// No such run.
    pub async fn open_log(&self, run: &RunId, options: LogOptions) -> Result<OpenLog, SinkError> {
        let named = run.clone();
        let options = match &self.interposed {
            Some(interposed) => interposed.log_options(options),
            None => options,
        };
        let open = move |data: &Path| {
            let writer = LogWriter::open(&find(data, &named)?.log(), options)?;
            let (epoch, path) = (writer.epoch(), writer.segment_path());
            let (queue, thread) = CommitQueue::start(writer).doing("start a thread for writing", path)?;
            Ok(OpenLog { queue, thread, epoch })
        };
        self.call("open_log", run.as_str(), open).await
    }

    /// Claims the right to lead a fleet over this sink, from whoever had it.
    pub async fn claim_lead(&self) -> Result<Claim, SinkError> {
        let claim = |data: &Path| {
            let folder = data.join(LEAD);
            fs::create_dir_all(&folder).doing("create", &folder)?;
            Ok(Claim::take(&folder)?)
        };
        self.call("claim_lead", "", claim).await
    }

    /// Whether nobody has claimed that right since.
    pub async fn has_lead(&self, claim: &Arc<Claim>) -> Result<bool, SinkError> {
        let claim = Arc::clone(claim);
        let check = move |_: &Path| match claim.check() {
            Err(LogError::Followed { .. }) => Ok(false),
            checked => Ok(checked.map(|()| true)?),
        };
        self.call("has_lead", "", check).await
    }

    /// Checks that the sink can be written and read, with a small file that is removed again.
    pub async fn check(&self) -> Result<SinkReport, SinkError> {
        self.call("check", "", probe).await
    }
}

fn find(data: &Path, run: &RunId) -> Result<RunDir, SinkError> {
    let dir = RunDir::of(data, run)?;
    dir.expect_manifest().map_err(RunDirError::from)?;
    if dir.is_there() { Ok(dir) } else { Err(SinkError::NoRun { place: dir.path().display().to_string() }) }
}

/// The path of a file to be written. Creates its folder, except that of a run: a run that was just removed must not
/// reappear.
fn to_write(data: &Path, file: &str) -> Result<PathBuf, SinkError> {
    let path = data.join(file);
    let of_run = file.starts_with("runs/") && file.matches('/').count() == 2;
    match path.parent() {
        Some(folder) if !of_run => fs::create_dir_all(folder).doing("create", folder)?,
        _ => {}
    }
    Ok(path)
}

fn create(path: &Path, content: &[u8]) -> Result<bool, SinkError> {
    Ok(files::create_shared(path, content).doing("write", path)?)
}

fn probe(data: &Path) -> Result<SinkReport, SinkError> {
    let content = b"kgfleet was here";
    let probe = to_write(data, &format!("probe-{:016x}", machine::random(|| OsRng.next_u64())))?;
    files::replace_shared(&probe, content).doing("write", &probe)?;
    let found = if_there(fs::read(&probe)).doing("read", &probe)?;
    fs::remove_file(&probe).doing("remove", &probe)?;
    if found.as_deref() != Some(content) {
        let source = io::Error::other("what was written is not what is there");
        return Err(IoError { path: probe, doing: "read", source }.into());
    }
    let free_bytes = files::free_bytes(data).doing("ask for the free space of", data)?;
    Ok(SinkReport { place: data.display().to_string(), free_bytes })
}

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SinkError> + Send + 'static,
) -> Result<T, SinkError> {
    match service_kit::aside::run(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(SinkError::Ended),
        },
    }
}
