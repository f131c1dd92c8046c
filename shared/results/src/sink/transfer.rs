//! Copies a run from one sink to another, and verifies the copy.
//!
//! Every file is read back after it was written and compared by its SHA-256. The manifest is written last: without it,
//! a partial copy is not a run yet, and repeating the copy completes it. If the destination has the same run already,
//! it is brought up to date; another run of that name is never changed. This works because segments of a log only grow,
//! and everything else in a run, except its state, is written once.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::RunId;
use domain::text::hex;
use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::{Sink, SinkError};
use crate::RunManifest;
use crate::log::{Seals, SegmentId};
use crate::run_dir::{MANIFEST, REVISIONS_MAX, STATE, revision_name};

/// Files copied at the same time from an object store, whose segments have at most a few megabytes. From a folder, where
/// a segment can have hundreds, they are copied one by one.
const COPIES_MAX: usize = 8;

/// Folders of a run whose files are written once.
const FOLDERS: [&str; 3] = ["retries", "history", "generations"];

/// Summary of a copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Transferred {
    /// The newest manifest.
    pub manifest: RunManifest,
    /// Files of the run and packs, all of which were compared.
    pub files: u64,
    /// Those that were not there before.
    pub copied: u64,
    /// Their size.
    pub bytes: u64,
    /// SHA-256 of the names and hashes of the log's files, hexadecimal: equal for equal logs in any sink.
    pub log_hash: String,
}

/// Why a run was not copied.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The destination has another run of this name.
    #[error("{place} has a different run {run}: {what} differs; nothing of it was changed")]
    Different { place: String, run: RunId, what: String },
    /// The destination has records that the source lacks.
    #[error("{place} has records of run {run} that are missing here ({file}); copy it the other way first")]
    Ahead { place: String, run: RunId, file: String },
    /// A file that was read back differs from what was written.
    #[error("{place}: {file} is not what was written; its disk or store cannot be trusted")]
    Unequal { place: String, file: String },
}

/// One copy in progress.
struct Copy<'a> {
    from: &'a dyn Sink,
    to: &'a dyn Sink,
    run: &'a RunId,
    /// Files copied at the same time.
    at_once: usize,
}

/// A file that is there, perhaps since just now.
struct Copied {
    name: String,
    hash: String,
    /// Bytes written; `None` if it was there.
    written: Option<u64>,
}

/// Copies a run.
///
/// # Errors
/// There is no such run; the destination has another one of this name, or more of this one; a sink cannot be read or
/// written.
pub async fn transfer(from: &dyn Sink, to: &dyn Sink, run: &RunId) -> Result<Transferred, TransferError> {
    let at_once = if from.has_locks() { 1 } else { COPIES_MAX };
    Copy { from, to, run, at_once }.run().await
}

impl Copy<'_> {
    async fn run(&self) -> Result<Transferred, TransferError> {
        let first = self.manifest_of(self.from).await?;
        let Some((first, _)) = first else {
            return Err(SinkError::NoRun { place: format!("{}/runs/{}", self.from, self.run) }.into());
        };
        let there = self.manifest_of(self.to).await?;
        // One that lacks the names of keys is the same run; what is there keeps its own.
        if there.as_ref().is_some_and(|(there, _)| !there.is_same_as(&first)) {
            return Err(self.different("the manifest"));
        }
        let mut copied = self.packs(&first).await?;
        // Seals name segments, so they come behind them.
        let (seals, segments): (Vec<String>, Vec<String>) =
            self.log_files().await?.into_iter().partition(|name| Seals::of_file_name(name).is_some());
        let in_log = |names: Vec<String>| names.into_iter().map(|name| format!("log/{name}")).collect();
        let mut log = self.files(in_log(segments)).await?;
        log.extend(self.files(in_log(seals)).await?);
        for folder in FOLDERS {
            let names = self.from.list(&self.file(folder)?).await?;
            let names = names.into_iter().filter(|name| name.ends_with(".json"));
            copied.extend(self.files(names.map(|name| format!("{folder}/{name}")).collect()).await?);
        }
        if there.is_none() {
            match self.to.create_run(&first).await {
                // Another copy of the same run was faster, or of another one.
                Ok(_) | Err(SinkError::Exists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Some((_, content)) =
            self.manifest_of(self.to).await?.filter(|(there, _)| there.is_same_as(&first))
        else {
            return Err(self.different("the manifest"));
        };
        copied.push(Copied { name: revision_name(MANIFEST, 1), hash: sha256(&content), written: None });
        let mut newest = first;
        for revision in 2..=REVISIONS_MAX {
            let name = revision_name(MANIFEST, revision);
            let Some(content) = self.from.read(&self.file(&name)?).await? else { break };
            newest = self.parsed(&name, &content)?;
            let there = self.to.read(&self.file(&name)?).await?;
            copied.push(match there {
                Some(there) if self.parsed(&name, &there)?.is_same_as(&newest) => {
                    Copied { name, hash: sha256(&there), written: None }
                }
                _ => self.copy(name).await?,
            });
        }
        copied.extend(self.state().await?);
        // A run that was removed here once is back.
        self.to.remove(&format!("removed/{}", self.run)).await?;
        let log_hash = log_hash(&log);
        copied.extend(log);
        let written = copied.iter().filter_map(|file| file.written);
        Ok(Transferred {
            manifest: newest,
            files: copied.len() as u64,
            copied: written.clone().count() as u64,
            bytes: written.sum(),
            log_hash,
        })
    }

    /// The first manifest of the run in a sink.
    async fn manifest_of(&self, sink: &dyn Sink) -> Result<Option<(RunManifest, Bytes)>, TransferError> {
        let name = revision_name(MANIFEST, 1);
        let Some(content) = sink.read(&self.file(&name)?).await? else { return Ok(None) };
        Ok(Some((self.parsed(&name, &content)?, content)))
    }

    fn parsed(&self, name: &str, content: &[u8]) -> Result<RunManifest, TransferError> {
        let parsed = RunManifest::from_json(name.as_ref(), content);
        Ok(parsed.map_err(|error| SinkError::Run(error.into()))?)
    }

    /// Segments and seals of the source, in order.
    async fn log_files(&self) -> Result<Vec<String>, TransferError> {
        let mut names = self.from.list(&self.file("log")?).await?;
        names.retain(|name| SegmentId::of_file_name(name).is_some() || Seals::of_file_name(name).is_some());
        Ok(names)
    }

    /// The packs of the run, as far as the source keeps them.
    async fn packs(&self, manifest: &RunManifest) -> Result<Vec<Copied>, TransferError> {
        let mut copied = Vec::new();
        for used in &manifest.packs {
            let content = match self.from.pack(&used.hash).await {
                // Manifests of early versions name packs otherwise; nothing is kept under such a name.
                Err(SinkError::PackHash(_)) | Ok(None) => continue,
                Ok(Some(content)) => content,
                Err(error) => return Err(error.into()),
            };
            let name = format!("packs/{}", used.hash);
            // Sealing is randomised: another file of the same hash is the same pack.
            if let Some(there) = self.to.pack(&used.hash).await? {
                copied.push(Copied { name, hash: sha256(&there), written: None });
                continue;
            }
            self.to.put_pack(&used.hash, content.clone()).await?;
            let there = self.to.pack(&used.hash).await?;
            let hash = self.proven(&name, &content, there)?;
            copied.push(Copied { name, hash, written: Some(content.len() as u64) });
        }
        Ok(copied)
    }

    async fn files(&self, names: Vec<String>) -> Result<Vec<Copied>, TransferError> {
        futures::stream::iter(names).map(|name| self.copy(name)).buffered(self.at_once).try_collect().await
    }

    /// Copies a file that is written once, or that only grows if it is a segment.
    async fn copy(&self, name: String) -> Result<Copied, TransferError> {
        let file = self.file(&name)?;
        let Some(content) = self.from.read(&file).await? else {
            return Err(SinkError::NoRun { place: format!("{}/{file}", self.from) }.into());
        };
        let grows = name.strip_prefix("log/").and_then(SegmentId::of_file_name).is_some();
        match self.to.read(&file).await? {
            Some(there) if there == content => {
                return Ok(Copied { name, hash: sha256(&there), written: None });
            }
            Some(there) if grows && content.starts_with(&there) => {
                self.to.replace(&file, content.clone()).await?;
            }
            Some(there) if grows && there.starts_with(&content) => {
                return Err(TransferError::Ahead {
                    place: self.to.to_string(),
                    run: self.run.clone(),
                    file: name,
                });
            }
            Some(_) => return Err(self.different(&name)),
            None => {
                self.to.create(&file, content.clone()).await?;
            }
        }
        let hash = self.proven(&name, &content, self.to.read(&file).await?)?;
        Ok(Copied { name, hash, written: Some(content.len() as u64) })
    }

    /// Copies the newest state, as the next one of the destination.
    async fn state(&self) -> Result<Option<Copied>, TransferError> {
        let document = self.file(STATE)?;
        let Some((_, content)) = self.from.newest(&document, 0).await? else { return Ok(None) };
        let (known, there) = self.to.newest(&document, 0).await?.unzip();
        let known = known.unwrap_or_default();
        let written = if there.as_ref() == Some(&content) {
            None
        } else {
            self.to.revise(&document, known + 1, content.clone()).await?;
            Some(content.len() as u64)
        };
        let there = self.to.newest(&document, known).await?.map(|(_, there)| there);
        let hash = self.proven(STATE, &content, there)?;
        Ok(Some(Copied { name: STATE.to_owned(), hash, written }))
    }

    /// The hash of a file, if what was read back has the hash of what was written.
    fn proven(&self, name: &str, written: &[u8], read: Option<Bytes>) -> Result<String, TransferError> {
        let hash = sha256(written);
        if read.is_some_and(|read| sha256(&read) == hash) {
            return Ok(hash);
        }
        Err(TransferError::Unequal { place: self.to.to_string(), file: name.to_owned() })
    }

    fn file(&self, name: &str) -> Result<String, SinkError> {
        self.from.file_of(self.run, name)
    }

    fn different(&self, what: &str) -> TransferError {
        TransferError::Different { place: self.to.to_string(), run: self.run.clone(), what: what.to_owned() }
    }
}

fn sha256(content: &[u8]) -> String {
    hex(Sha256::digest(content))
}

fn log_hash(log: &[Copied]) -> String {
    let sorted: BTreeMap<&str, &str> = log.iter().map(|file| (&*file.name, &*file.hash)).collect();
    let lines: String = sorted.into_iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect();
    sha256(lines.as_bytes())
}
