//! The common storage of coordinators: a [folder](folder()).
//!
//! **What is kept.** Of each run: its manifest and its state, in revisions that are written once; its record log; its
//! retries; the generations of its queue; and its history, which only grows. Of judged benchmarks: their documents and
//! histories. Packs, by their hash. The identity of this sink, a random name made once. The names of runs that were
//! removed. Everything else that a cluster needs is computed from these. [`run_dir`](crate::run_dir) has the names of
//! the files.
//!
//! **Durability.** A call that writes returns when its content survives a power cut: a synced file under its name.
//!
//! **Concurrency.** Any number of coordinators may write at once. If several create a run of the same name, one succeeds;
//! each appends to [segments of its own](crate::log::WriterId); if several seal a run, or write the same revision of a
//! document, one succeeds.
//!
//! **Structure.** The trait [`Sink`] has the operations at which a disk can fail, so that tests put failures in their place. Content
//! and format are methods of `dyn Sink`.
//!
//! Calls do not block the threads of the async runtime. A dropped call may or may not have taken effect.

mod contents;
mod error;
mod folder;
#[cfg(test)]
mod tests;

use std::fmt::{Debug, Display};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use domain::RunId;
use futures::future::BoxFuture;

pub use contents::{ENTRIES_READ_MAX, history_file, random_name};
pub use error::SinkError;

use self::folder::Folder;
use crate::files::Doing;
use crate::log::writer::SegmentFile;
use crate::log::{CommitQueue, CommitThread, LogOptions, LogWriter, Recovery};
use crate::run_dir::FoundRun;
use crate::{RunDir, RunManifest};

/// The result of a call.
pub type SinkReply<'a, T> = BoxFuture<'a, Result<T, SinkError>>;

/// The place of all runs. Names of files are relative to it, with `/` between their parts.
pub trait Sink: Debug + Display + Send + Sync + 'static {
    /// The folder in which logs are read.
    fn folder(&self) -> &Path;

    /// Creates a run.
    ///
    /// # Errors
    /// [`SinkError::Exists`] if there is one of this name.
    fn create_run<'a>(&'a self, manifest: &'a RunManifest) -> SinkReply<'a, RunDir>;

    /// All runs, by name.
    fn runs(&self) -> SinkReply<'_, Vec<FoundRun>>;

    /// The folder of a run, with its manifest in it.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is none of this name.
    fn existing<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, RunDir>;

    /// The content of a file; `None` if there is none.
    fn read<'a>(&'a self, file: &'a str) -> SinkReply<'a, Option<Bytes>>;

    /// Replaces a file as a whole, or creates it. Creates its folder, unless it is the folder of a run.
    fn replace<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, ()>;

    /// Creates a file that never changes; returns whether this call did. Creates its folder as
    /// [`replace`](Self::replace) does.
    fn create<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, bool>;

    /// Removes a file, if it exists.
    fn remove<'a>(&'a self, file: &'a str) -> SinkReply<'a, ()>;

    /// Names of the files in a folder, in order; none if there is no such folder.
    fn list<'a>(&'a self, folder: &'a str) -> SinkReply<'a, Vec<String>>;

    /// Writes a seal into the log of a run, after making everything in it durable. Returns whether this call wrote it;
    /// if not, there is one of this name.
    fn write_seal<'a>(&'a self, run: &'a RunId, name: &'a str, content: Bytes) -> SinkReply<'a, bool>;

    /// Removes a run and everything in it, and leaves a mark that says so. Coordinators notice the removal.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is none of this name; an error if a process without a cluster writes the run.
    fn remove_run<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, ()>;

    /// Opens the log of a run for a writer. One that writes nothing leaves nothing behind.
    ///
    /// # Errors
    /// No such run; the writer has written before ([`LogError::Taken`](crate::log::LogError::Taken)).
    fn open_log<'a>(&'a self, run: &'a RunId, options: LogOptions) -> SinkReply<'a, OpenLog>;

    /// Checks that the sink can be written and read, with a small file or object that is removed again.
    fn check(&self) -> SinkReply<'_, SinkReport>;
}

/// The log of a run, open for writing.
#[derive(Debug)]
pub struct OpenLog {
    /// Takes records.
    pub queue: CommitQueue,
    /// The writer's thread, which ends after the last clone of the queue.
    pub thread: CommitThread,
    /// What an earlier process of this writer had left unfinished.
    pub recovery: Recovery,
}

impl OpenLog {
    fn start<F: SegmentFile + Send + 'static>(
        (writer, recovery): (LogWriter<F>, Recovery),
    ) -> Result<Self, SinkError> {
        let path = writer.segment_path();
        let (queue, thread) = CommitQueue::start(writer).doing("start a thread for writing", path)?;
        Ok(Self { queue, thread, recovery })
    }
}

/// What a [check](Sink::check) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkReport {
    /// The folder.
    pub place: String,
    /// Bytes that are free on its disk.
    pub free_bytes: u64,
}

/// A data folder, perhaps on a file system that several machines share: `DATA/runs/RUN/…` and `DATA/packs/…`, see
/// [`run_dir`](crate::run_dir).
pub fn folder(data: impl Into<PathBuf>) -> Arc<dyn Sink> {
    Arc::new(Folder::new(data.into()))
}

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SinkError> + Send + 'static,
) -> Result<T, SinkError> {
    match aside::run(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(SinkError::Ended),
        },
    }
}
