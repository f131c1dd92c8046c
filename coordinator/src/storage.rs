//! The sink as a coordinator uses it.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use domain::control::{HistoryEntry, RunPhase};
use domain::{ErrorCode, FailureCause, RunId, ServiceError};
use queue::RunState;
use results::log::{LogTail, SealEvent, WriterId};
use results::run_dir::{FoundRun, RunLock};
use results::sink::{OpenLog, SinkError};
use results::{RunManifest, Sink};
use serde::{Deserialize, Serialize};

use crate::config::Scope;
use crate::errors::{Result, conflict, internal, not_found};
use crate::protection;
use crate::retries::Retry;
use crate::run::Run;

/// Where a run stands, as the sink keeps it: written before the queue is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunStateFile {
    /// Never [`RunPhase::Preparing`].
    pub phase: RunPhase,
    /// Whether it goes on until no unit is left, because dialogues that have a record are asked again: those of its
    /// retries, and of units that got another chance.
    #[serde(default)]
    pub rework: bool,
    /// Whether it was given to a fleet; the runs of one process are nobody else's.
    #[serde(default)]
    pub fleet: bool,
    /// Dialogues scored when it was over, for lists.
    #[serde(default)]
    pub scored: u64,
    /// Failed ones then, by cause.
    #[serde(default)]
    pub failures: Vec<(FailureCause, u64)>,
}

impl Default for RunStateFile {
    fn default() -> Self {
        Self { phase: RunPhase::Active, rework: false, fleet: false, scored: 0, failures: Vec::new() }
    }
}

impl RunStateFile {
    /// The same for the queue.
    pub(crate) fn queue_state(&self) -> RunState {
        match self.phase {
            RunPhase::Preparing | RunPhase::Active => RunState::Active,
            RunPhase::Paused => RunState::Paused,
            RunPhase::Cancelled => RunState::Cancelled,
            RunPhase::Finished => RunState::Finished,
        }
    }
}

/// The sink.
pub(crate) struct Storage {
    sink: Sink,
    scope: Scope,
}

/// Free space below which a sink is warned of: records of a large run take some gigabytes.
const LITTLE_SPACE_BYTES: u64 = 4 << 30;

impl Storage {
    pub(crate) fn new(sink: Sink, scope: Scope) -> Self {
        Self { sink, scope }
    }

    /// A name for the segments that this coordinator writes of one run. In a fleet it is another one each time, because
    /// nobody appends to the segments of a writer that may be dead.
    pub(crate) fn new_writer(&self) -> WriterId {
        match self.scope {
            Scope::Local => WriterId::LOCK_HOLDER,
            Scope::Fleet => WriterId::random(),
        }
    }

    /// All runs, by name, each with its manifest or why it cannot be read.
    pub(crate) async fn found(&self) -> Result<Vec<(RunId, Result<RunManifest>)>> {
        let named = |found: FoundRun| {
            let manifest = found.manifest.map_err(|error| SinkError::Run(error.into()).into());
            (found.dir.run(), manifest)
        };
        Ok(self.sink.runs().await?.into_iter().map(named).collect())
    }

    /// The manifest of a run, `None` where there is none.
    pub(crate) async fn manifest(&self, run: &RunId) -> Result<Option<RunManifest>> {
        match self.sink.manifest(run).await.map_err(ServiceError::from) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the run was removed on purpose.
    pub(crate) async fn is_removed(&self, run: &RunId) -> Result<bool> {
        Ok(self.sink.is_removed(run).await?)
    }

    pub(crate) async fn create(&self, manifest: &RunManifest) -> Result<()> {
        Ok(self.sink.create_run(manifest).await.map(|_| ())?)
    }

    /// Gives a run of one process another manifest.
    pub(crate) async fn replace_manifest(&self, manifest: &RunManifest) -> Result<()> {
        let lock = self.lock(&manifest.run)?;
        let (path, manifest) = (self.sink.run_dir(&manifest.run)?.manifest_path(), manifest.clone());
        let write = move || {
            let _lock = lock;
            manifest.write(&path)
        };
        tokio::task::spawn_blocking(write)
            .await
            .map_err(internal)?
            .map_err(|error| SinkError::Run(error.into()).into())
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

    /// What was asked of a run again, oldest first.
    pub(crate) async fn retries(&self, run: &RunId) -> Result<Vec<Retry>> {
        let read = |content: Bytes| {
            serde_json::from_slice(&content)
                .map_err(|error| internal(format!("run {run}: what was asked again cannot be read: {error}")))
        };
        self.sink.retries(run).await?.into_iter().map(read).collect()
    }

    /// Writes a seal of a run; `false` where another coordinator has written one of this number.
    pub(crate) async fn seal(&self, run: &RunId, number: u32, event: SealEvent) -> Result<bool> {
        Ok(self.sink.seal(run, number, event).await?)
    }

    /// Who did what to a run, oldest first.
    pub(crate) async fn history(&self, run: &RunId) -> Result<Vec<HistoryEntry>> {
        Ok(self.sink.history(run).await?)
    }

    /// Notes what somebody did to a run.
    pub(crate) async fn note(&self, run: &RunId, entry: &HistoryEntry) -> Result<()> {
        Ok(self.sink.append_history(run, entry).await?)
    }

    pub(crate) async fn pack(&self, hash: &str) -> Result<Option<Arc<[u8]>>> {
        match self.sink.pack(hash).await.map_err(ServiceError::from) {
            Ok(pack) => Ok(pack.map(|sealed| Arc::from(&*sealed))),
            // What is no hash names no pack.
            Err(error) if error.code == ErrorCode::Invalid => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn put_pack(&self, hash: &str, sealed: Arc<[u8]>) -> Result<()> {
        Ok(self.sink.put_pack(hash, Bytes::from_owner(sealed)).await?)
    }

    /// Keeps a document of a pipeline, unless there is one of this name; says whether this call did.
    pub(crate) async fn create_document(
        &self,
        pipeline: &RunId,
        name: &str,
        content: Vec<u8>,
    ) -> Result<bool> {
        Ok(self.sink.create_document(pipeline, name, content.into()).await?)
    }

    pub(crate) async fn put_document(&self, pipeline: &RunId, name: &str, content: Vec<u8>) -> Result<()> {
        Ok(self.sink.put_document(pipeline, name, content.into()).await?)
    }

    /// A document of a pipeline; `None` where there is none, or no pipeline can have the name.
    pub(crate) async fn document<D: serde::de::DeserializeOwned>(
        &self,
        pipeline: &RunId,
        name: &str,
    ) -> Result<Option<D>> {
        let content = match self.sink.document(pipeline, name).await.map_err(ServiceError::from) {
            Err(error) if error.code == ErrorCode::Invalid => None,
            content => content?,
        };
        let read = |content: Bytes| {
            serde_json::from_slice(&content)
                .map_err(|error| internal(format!("pipeline {pipeline}: {name} cannot be read: {error}")))
        };
        content.map(read).transpose()
    }

    pub(crate) async fn pipelines(&self) -> Result<Vec<RunId>> {
        Ok(self.sink.pipelines().await?)
    }

    pub(crate) async fn remove_documents(&self, pipeline: &RunId) -> Result<()> {
        Ok(self.sink.remove_documents(pipeline).await?)
    }

    /// Fetches what others have written into a run's log.
    pub(crate) async fn refresh(&self, run: &RunId) -> Result<()> {
        Ok(self.sink.refresh(run).await.map(|_| ())?)
    }

    pub(crate) fn log_folder(&self, run: &RunId) -> Result<PathBuf> {
        Ok(self.sink.run_dir(run)?.log())
    }

    /// Follows a run's log: what others write, and, for the one process of a local run, what was there before.
    pub(crate) fn tail(&self, run: &Run) -> Result<LogTail> {
        let except = (self.scope == Scope::Fleet).then_some(run.writer);
        Ok(self.sink.tail(run.id(), run.cipher.as_ref(), except)?)
    }

    /// The right to write a run, for as long as it is held: of one process alone, or of the coordinators of a fleet
    /// together. In an object store nobody can hold it.
    ///
    /// # Errors
    /// Somebody else writes the run, or it is not there any more.
    pub(crate) fn lock(&self, run: &RunId) -> Result<Option<RunLock>> {
        let dir = self.sink.run_dir(run)?;
        let lock = match self.scope {
            Scope::Fleet if !self.sink.is_folder() => return Ok(None),
            Scope::Fleet => dir.lock_shared(),
            Scope::Local => dir.lock(),
        };
        match lock {
            Err(_) if !dir.manifest_path().is_file() => {
                Err(not_found(format!("run {run} is not there any more")))
            }
            lock => lock.map(Some).map_err(|error| SinkError::from(error).into()),
        }
    }

    /// Removes a run.
    pub(crate) async fn remove(&self, run: &RunId) -> Result<()> {
        Ok(self.sink.remove_run(run).await?)
    }

    /// The identity of the sink, `None` where it has none yet.
    pub(crate) async fn identity(&self) -> Result<Option<String>> {
        Ok(self.sink.identity().await?)
    }

    /// The same, made where there is none.
    pub(crate) async fn identify(&self) -> Result<String> {
        Ok(self.sink.identify().await?)
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        self.sink.to_string()
    }

    /// Whether to look at it costs nothing.
    pub(crate) fn is_near(&self) -> bool {
        self.sink.is_folder()
    }

    pub(crate) async fn open_log(&self, run: &Run, writer: WriterId) -> Result<OpenLog> {
        let cipher =
            protection::writing_cipher(&run.manifest).map_err(|error| conflict(error.to_string()))?;
        let log = self.sink.open_log(run.id(), writer, cipher, self.sink.commit_policy()).await?;
        if log.recovery.torn_bytes > 0 {
            let (run, bytes) = (run.id(), log.recovery.torn_bytes);
            tracing::warn!(%run, "passing over {bytes} bytes that a killed process had not finished writing");
        }
        Ok(log)
    }

    /// What is wrong with the sink, or will be soon.
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
