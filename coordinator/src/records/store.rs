//! Access to the sink by the rules of a single process, which writes a run alone, or of a fleet, whose coordinators share
//! it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use domain::{ErrorCode, RunId, ServiceError};
use results::log::LogOptions;
use results::run_dir::{FoundRun, RunLock};
use results::sink::{OpenLog, SinkError};
use results::{RunManifest, Sink};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors::{Result, conflict, internal, not_found};
use crate::options::Scope;
use crate::plan::protection;
use crate::records::events::RunStateFile;

/// A document that is written in revisions, as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Revised<D> {
    /// Number of the newest revision; 0 where there is none.
    pub revision: u32,
    pub content: Option<D>,
}

/// The sink, by the rules of a single process or of a fleet.
pub(crate) struct Store {
    /// For operations that are the same for both.
    pub sink: Sink,
    scope: Scope,
    /// By document: the newest revision that was seen, from which on a reading looks for newer ones.
    seen: Mutex<HashMap<String, u32>>,
}

/// What the sink's list says of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListedState {
    NeverBegun,
    Known(RunStateFile),
    /// It is damaged, or somebody writes the run since: only the log knows. What the list repeats of it, if that can be read.
    InTheLog(Option<RunStateFile>),
}

/// The folder of pipelines: a document is a file `PIPELINE.DOCUMENT`.
pub(crate) const PIPELINES: &str = "pipelines";

fn document_path(name: &RunId, document: &str) -> String {
    format!("{PIPELINES}/{name}.{document}")
}

/// How often a change is decided anew, because somebody else was quicker, before the caller has to come again.
pub(crate) const CHANGES_MAX: u32 = 16;

/// Free space below which there is a warning: the records of a large run take some gigabytes.
const LITTLE_SPACE_BYTES: u64 = 4 << 30;

impl Store {
    pub(crate) fn new(sink: Sink, scope: Scope) -> Self {
        Self { sink, scope, seen: Mutex::default() }
    }

    /// Whether other coordinators may write the same runs.
    pub(crate) fn is_shared(&self) -> bool {
        self.scope == Scope::Fleet
    }

    /// All runs by name, each with its newest manifest or the reason why it cannot be read.
    pub(crate) async fn found(&self) -> Result<Vec<(RunId, Result<RunManifest>)>> {
        let named = |found: FoundRun| {
            (found.dir.run(), found.manifest.map_err(|error| SinkError::Run(error.into()).into()))
        };
        Ok(self.sink.runs().await?.into_iter().map(named).collect())
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

    /// The newest revision of a document.
    pub(crate) async fn newest<D: DeserializeOwned>(&self, document: &str) -> Result<Revised<D>> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen().get(document).copied().unwrap_or_default();
        match self.sink.newest_json(document, known).await? {
            Some((revision, content)) => {
                if revision != known {
                    seen().insert(document.to_owned(), revision);
                }
                Ok(Revised { revision, content: Some(content) })
            }
            None => {
                seen().remove(document);
                Ok(Revised { revision: 0, content: None })
            }
        }
    }

    /// Writes what follows this revision of a document of the whole store; `false` if there is something already.
    pub(crate) async fn revise<D: Serialize + Sync>(
        &self,
        document: &str,
        after: u32,
        content: &D,
    ) -> Result<bool> {
        Ok(self.sink.revise_json(document, after + 1, content).await?)
    }

    /// The state of a run as the sink has it for lists.
    pub(crate) async fn listed_state(&self, run: &RunId) -> Result<ListedState> {
        let state = match self.sink.state::<RunStateFile>(run).await {
            Ok(None) => return Ok(ListedState::NeverBegun),
            Ok(Some(state)) => state,
            Err(SinkError::Json { .. }) => return Ok(ListedState::InTheLog(None)),
            Err(error) => return Err(error.into()),
        };
        let is_newest = self.sink.epoch(run).await?.is_none_or(|epoch| epoch == state.epoch);
        Ok(if is_newest { ListedState::Known(state) } else { ListedState::InTheLog(Some(state)) })
    }

    pub(crate) async fn put_state(&self, run: &RunId, state: &RunStateFile) -> Result<()> {
        Ok(self.sink.put_state(run, state).await?)
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

    /// The newest revision of a document of a pipeline.
    pub(crate) async fn revised_document<D: DeserializeOwned>(
        &self,
        name: &RunId,
        document: &str,
    ) -> Result<Revised<D>> {
        self.newest(&document_path(name, document)).await
    }

    /// Writes what follows this revision of a document of a pipeline; `false` if there is something already.
    pub(crate) async fn revise_document<D: Serialize + Sync>(
        &self,
        name: &RunId,
        document: &str,
        after: u32,
        content: &D,
    ) -> Result<bool> {
        self.revise(&document_path(name, document), after, content).await
    }

    /// Removes every revision of a document of a pipeline, the newest first: what is there has no gaps at any time. Others that
    /// were written meanwhile are among them.
    pub(crate) async fn remove_revisions(&self, name: &RunId, document: &str) -> Result<()> {
        let mut revisions = self.documents(name, document).await?;
        // By their numbers: the second comes before the tenth.
        revisions.sort_by_key(|revision| (revision.len(), revision.clone()));
        for revision in revisions.iter().rev() {
            self.remove_document(name, revision).await?;
        }
        Ok(())
    }

    pub(crate) async fn remove_document(&self, name: &RunId, document: &str) -> Result<()> {
        Ok(self.sink.remove(&document_path(name, document)).await?)
    }

    /// A document of a pipeline; `None` where there is none.
    pub(crate) async fn document<D: DeserializeOwned>(
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

    /// Locks a run for writing: for a single process alone, or for the coordinators of a fleet together.
    ///
    /// # Errors
    /// Another process writes the run, or it no longer exists.
    pub(crate) fn lock(&self, run: &RunId) -> Result<RunLock> {
        let dir = self.sink.run_dir(run)?;
        let lock = match self.scope {
            Scope::Fleet => dir.lock_shared(),
            Scope::Local => dir.lock(),
        };
        match lock {
            Err(_) if !dir.is_there() => Err(not_found(format!("run {run} no longer exists"))),
            lock => lock.map_err(|error| SinkError::from(error).into()),
        }
    }

    /// Opens the log of a run for writing, in its next epoch.
    pub(crate) async fn open_log(&self, manifest: &RunManifest) -> Result<OpenLog> {
        let cipher = protection::writing_cipher(manifest).map_err(|error| conflict(error.to_string()))?;
        let options = LogOptions { cipher, ..LogOptions::default() };
        Ok(self.sink.open_log(&manifest.run, options).await?)
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
