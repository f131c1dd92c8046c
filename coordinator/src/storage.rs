//! Access to the sink by the rules of a single process, which writes a run alone, or of a fleet, whose coordinators share
//! it.

use std::sync::Arc;

use bytes::Bytes;
use domain::control::RunPhase;
use domain::{ErrorCode, FailureCause, RunId, ServiceError};
use futures::{StreamExt, stream};
use queue::RunState;
use results::log::{LogOptions, LogTail, WriterId};
use results::run_dir::{FoundRun, RunLock};
use results::sink::{OpenLog, SinkError};
use results::{RunManifest, Sink};
use serde::{Deserialize, Serialize};

use crate::config::Scope;
use crate::errors::{Result, conflict, internal, not_found};
use crate::protection;
use crate::retries::Retry;
use crate::run::Run;

/// The state of a run in the sink, written before the queue is updated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunStateFile {
    /// Never [`RunPhase::Preparing`].
    pub phase: RunPhase,
    /// Whether the run continues until no unit is left, because dialogues with a record are asked again: those of retries and
    /// of requeued dead letters.
    #[serde(default)]
    pub rework: bool,
    /// Whether it was submitted to a fleet; runs of a single process belong to it alone.
    #[serde(default)]
    pub fleet: bool,
    /// Number of scored dialogues when it was over, for lists.
    #[serde(default)]
    pub scored: u64,
    /// Number of failed dialogues then, by cause.
    #[serde(default)]
    pub failures: Vec<(FailureCause, u64)>,
}

impl RunStateFile {
    /// The state for the queue.
    pub(crate) fn queue_state(&self) -> RunState {
        match self.phase {
            RunPhase::Preparing | RunPhase::Active => RunState::Active,
            RunPhase::Paused => RunState::Paused,
            RunPhase::Cancelled => RunState::Cancelled,
            RunPhase::Finished => RunState::Finished,
        }
    }
}

/// The sink, by the rules of a single process or of a fleet.
pub(crate) struct Storage {
    /// For operations that are the same for both.
    pub sink: Arc<dyn Sink>,
    scope: Scope,
}

/// The folder of pipelines: a document is a file `PIPELINE.DOCUMENT`.
const PIPELINES: &str = "pipelines";

fn document_path(name: &RunId, document: &str) -> String {
    format!("{PIPELINES}/{name}.{document}")
}

/// Maximum number of manifests that a list of runs asks an object store for at once.
const MANIFESTS_AT_ONCE: usize = 16;

/// Free space below which there is a warning: the records of a large run take some gigabytes.
const LITTLE_SPACE_BYTES: u64 = 4 << 30;

impl Storage {
    pub(crate) fn new(sink: Arc<dyn Sink>, scope: Scope) -> Self {
        Self { sink, scope }
    }

    /// Whether other coordinators may write the same runs.
    pub(crate) fn is_shared(&self) -> bool {
        self.scope == Scope::Fleet
    }

    /// The writer name for this coordinator's segments of a run. In a fleet it is new each time, because nobody appends to the
    /// segments of a writer that may be dead.
    pub(crate) fn new_writer(&self) -> WriterId {
        match self.scope {
            Scope::Local => WriterId::LOCK_HOLDER,
            Scope::Fleet => WriterId::random(),
        }
    }

    /// All runs by name, each with its newest manifest or the reason why it cannot be read.
    pub(crate) async fn found(&self) -> Result<Vec<(RunId, Result<RunManifest>)>> {
        let named = |found: FoundRun| async move {
            let run = found.dir.run();
            let manifest = found.manifest.map_err(|error| SinkError::Run(error.into()).into());
            if self.sink.has_locks() || manifest.is_err() {
                return Some((run, manifest));
            }
            // The mirror of an object store has the revisions that were read here; others may have written more.
            match self.sink.manifest(&run).await.map_err(ServiceError::from) {
                Err(error) if error.code == ErrorCode::NotFound => None, // It is being removed.
                newest => Some((run, newest)),
            }
        };
        let found = stream::iter(self.sink.runs().await?).map(named).buffered(MANIFESTS_AT_ONCE);
        Ok(found.filter_map(std::future::ready).collect().await)
    }

    /// The names of all runs.
    pub(crate) async fn names(&self) -> Result<Vec<RunId>> {
        Ok(self.sink.runs().await?.into_iter().map(|found| found.dir.run()).collect())
    }

    /// The manifest of a run; `None` if there is none.
    pub(crate) async fn manifest(&self, run: &RunId) -> Result<Option<RunManifest>> {
        match self.sink.manifest(run).await.map_err(ServiceError::from) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the next manifest of a run.
    ///
    /// # Errors
    /// Somebody else writes the run by the rules of the other scope; another command was quicker.
    pub(crate) async fn revise_manifest(&self, manifest: &RunManifest) -> Result<()> {
        let _lock = self.lock(&manifest.run)?;
        if self.sink.revise_run(manifest).await? {
            return Ok(());
        }
        Err(conflict(format!("run {} was extended by another command just now; ask again", manifest.run)))
    }

    pub(crate) async fn state(&self, run: &RunId) -> Result<Option<RunStateFile>> {
        Ok(self.sink.read_state(run).await?)
    }

    pub(crate) async fn set_state(&self, run: &RunId, state: &RunStateFile) -> Result<()> {
        Ok(self.sink.write_state(run, state).await?)
    }

    pub(crate) async fn put_retry(&self, run: &RunId, retry: &Retry) -> Result<()> {
        let content = serde_json::to_vec(retry).map_err(internal)?;
        Ok(self.sink.put_retry(run, &retry.name(), content.into()).await?)
    }

    /// The retries of a run, oldest first.
    pub(crate) async fn retries(&self, run: &RunId) -> Result<Vec<Retry>> {
        let read = |content: Bytes| {
            serde_json::from_slice(&content)
                .map_err(|error| internal(format!("run {run}: a retry cannot be read: {error}")))
        };
        self.sink.retries(run).await?.into_iter().map(read).collect()
    }

    /// Stores a document of a pipeline unless one of this name exists; returns whether it was stored.
    pub(crate) async fn create_document(
        &self,
        name: &RunId,
        document: &str,
        content: Vec<u8>,
    ) -> Result<bool> {
        Ok(self.sink.create(&document_path(name, document), content.into()).await?)
    }

    pub(crate) async fn put_document(&self, name: &RunId, document: &str, content: Vec<u8>) -> Result<()> {
        Ok(self.sink.replace(&document_path(name, document), content.into()).await?)
    }

    pub(crate) async fn remove_document(&self, name: &RunId, document: &str) -> Result<()> {
        Ok(self.sink.remove(&document_path(name, document)).await?)
    }

    /// A document of a pipeline; `None` where there is none.
    pub(crate) async fn document<D: serde::de::DeserializeOwned>(
        &self,
        name: &RunId,
        document: &str,
    ) -> Result<Option<D>> {
        let read = |content: Bytes| {
            serde_json::from_slice(&content)
                .map_err(|error| internal(format!("pipeline {name}: {document} cannot be read: {error}")))
        };
        self.sink.read(&document_path(name, document)).await?.map(read).transpose()
    }

    /// The documents of a pipeline whose names begin so, sorted.
    pub(crate) async fn documents(&self, name: &RunId, beginning: &str) -> Result<Vec<String>> {
        let path = format!("{name}.");
        let document = |file: &String| file.strip_prefix(&path).map(str::to_owned);
        let mut found: Vec<String> = self.sink.list(PIPELINES).await?.iter().filter_map(document).collect();
        // Other files are incomplete.
        found.retain(|document| document.starts_with(beginning) && document.ends_with(".json"));
        Ok(found)
    }

    /// The names of all pipelines, sorted.
    pub(crate) async fn pipelines(&self) -> Result<Vec<RunId>> {
        let first = |file: &String| file.strip_suffix(".manifest-1.json").map(RunId::new);
        Ok(self.sink.list(PIPELINES).await?.iter().filter_map(first).collect())
    }

    /// Follows a run's log: records of other writers and, for the process of a local run, existing ones.
    pub(crate) fn tail(&self, run: &Run) -> Result<LogTail> {
        let except = (self.scope == Scope::Fleet).then_some(run.writer);
        Ok(self.sink.tail(run.id(), run.cipher.as_ref(), except)?)
    }

    /// Locks a run for writing: for a single process alone, or for the coordinators of a fleet together. Object stores have no
    /// locks.
    ///
    /// # Errors
    /// Another process writes the run, or it no longer exists.
    pub(crate) fn lock(&self, run: &RunId) -> Result<Option<RunLock>> {
        let dir = self.sink.run_dir(run)?;
        let lock = match self.scope {
            Scope::Fleet if !self.sink.has_locks() => return Ok(None),
            Scope::Fleet => dir.lock_shared(),
            Scope::Local => dir.lock(),
        };
        match lock {
            Err(_) if !dir.manifest_path().is_file() => Err(not_found(format!("run {run} no longer exists"))),
            lock => lock.map(Some).map_err(|error| SinkError::from(error).into()),
        }
    }

    pub(crate) async fn open_log(&self, run: &Run, writer: WriterId) -> Result<OpenLog> {
        let cipher =
            protection::writing_cipher(&run.manifest).map_err(|error| conflict(error.to_string()))?;
        let options = LogOptions { writer, cipher, ..LogOptions::default() };
        let log = self.sink.open_log(run.id(), options, self.sink.commit_policy()).await?;
        if log.recovery.torn_bytes > 0 {
            let (run, bytes) = (run.id(), log.recovery.torn_bytes);
            tracing::warn!(%run, "skipping {bytes} bytes that a killed process had not finished writing");
        }
        Ok(log)
    }

    /// A current or imminent problem of the sink.
    pub(crate) async fn check(&self) -> Option<String> {
        match self.sink.check().await {
            Ok(report) if report.free_bytes < LITTLE_SPACE_BYTES => {
                let mib = report.free_bytes >> 20;
                Some(format!("{}: {mib} MiB are free; a large run takes some GiB of records", report.place))
            }
            Ok(_) => None,
            Err(error) => Some(format!("records cannot be stored: {error}")),
        }
    }
}
