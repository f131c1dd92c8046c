//! The content of a sink and its format.

use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::control::HistoryEntry;
use domain::{RunId, machine};
use futures::{StreamExt, TryStreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Sink, SinkError, blocking};
use crate::log::epochs;
use crate::run_dir::{GENERATIONS, MANIFEST, STATE, highest_generation, removed_generation, revision_name};
use crate::{RunDir, RunManifest};

/// The file with the identity of a sink.
const IDENTITY_FILE: &str = "store.json";

/// Length of the hash of a pack, in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// Maximum number of entries of a history that are read, the newest ones.
pub const ENTRIES_READ_MAX: usize = 1_000;

/// Maximum number of files read concurrently.
const READS_MAX: usize = 8;

/// The identity of a sink.
#[derive(Serialize, Deserialize)]
struct Identity {
    /// A random name.
    store: String,
}

impl Sink {
    /// The folder of a run, which may not exist.
    pub fn run_dir(&self, run: &RunId) -> Result<RunDir, SinkError> {
        Ok(RunDir::of(self.folder(), run)?)
    }

    /// The name of a file of a run.
    pub(super) fn file_of(&self, run: &RunId, name: &str) -> Result<String, SinkError> {
        self.run_dir(run)?; // Checks the name.
        Ok(format!("runs/{run}/{name}"))
    }

    /// The manifest of a run.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is none of this name.
    pub async fn manifest(&self, run: &RunId) -> Result<RunManifest, SinkError> {
        let dir = self.existing(run).await?;
        blocking(move || Ok(dir.manifest()?)).await
    }

    /// Writes a revision of the manifest of a run. Returns whether this call wrote it; if not, another process has
    /// written a revision of this number, which must be read first.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] where there is no run of this name.
    pub async fn revise_run(&self, manifest: &RunManifest) -> Result<bool, SinkError> {
        let file = self.file_of(&manifest.run, &revision_name(MANIFEST, manifest.revision))?;
        let content = manifest.to_json().map_err(|source| json(&file, source))?;
        self.existing(&manifest.run).await?;
        self.create(&file, content.into()).await
    }

    /// The newest epoch that was claimed of the log of a run, 0 before the first; `None` where the run has no log.
    pub async fn epoch(&self, run: &RunId) -> Result<Option<u32>, SinkError> {
        let log = self.run_dir(run)?.log();
        blocking(move || Ok(if log.is_dir() { Some(epochs::newest(&log)?) } else { None })).await
    }

    /// The newest revision of a document, with its number; `None` if there is none. `known` is a revision that the
    /// caller knows to exist, or 0; it saves reads. Revisions are never changed, and are removed only together with the
    /// document.
    ///
    /// Old revisions are kept: each records a command or an end, and has a few hundred bytes.
    pub async fn newest(&self, document: &str, known: u32) -> Result<Option<(u32, Bytes)>, SinkError> {
        let read = |revision| async move { self.read(&revision_name(document, revision)).await };
        let mut found = None;
        if known > 0 {
            let (there, later) = futures::future::try_join(read(known), read(known + 1)).await?;
            // Where it is not there, the document was removed and perhaps made anew.
            match (there, later) {
                (Some(there), None) => return Ok(Some((known, there))),
                (Some(_), Some(later)) => found = Some((known + 1, later)),
                (None, _) => {}
            }
        }
        // There are no gaps, so the last one of very many is found in leaps.
        let mut leap = 1;
        loop {
            let at = found.as_ref().map_or(0, |(revision, _)| *revision);
            match read(at + leap).await? {
                Some(content) => {
                    found = Some((at + leap, content));
                    leap = ((at + leap) / 4).max(1);
                }
                None if leap == 1 => return Ok(found),
                None => leap /= 2,
            }
        }
    }

    /// Writes a revision of a document. Returns whether this call wrote it; if not, another process has written a
    /// revision of this number, which must be read first. The revision before it must exist.
    pub async fn revise(&self, document: &str, revision: u32, content: Bytes) -> Result<bool, SinkError> {
        self.create(&revision_name(document, revision), content).await
    }

    /// Like [`newest`](Self::newest), read as JSON.
    pub async fn newest_json<S: DeserializeOwned>(
        &self,
        document: &str,
        known: u32,
    ) -> Result<Option<(u32, S)>, SinkError> {
        let Some((revision, content)) = self.newest(document, known).await? else { return Ok(None) };
        let place = || format!("{self}/{}", revision_name(document, revision));
        let parsed = serde_json::from_slice(&content).map_err(|source| json(&place(), source))?;
        Ok(Some((revision, parsed)))
    }

    /// Like [`revise`](Self::revise), as JSON.
    pub async fn revise_json<S: Serialize + Sync>(
        &self,
        document: &str,
        revision: u32,
        content: &S,
    ) -> Result<bool, SinkError> {
        let content = serde_json::to_vec_pretty(content).map_err(|source| json(document, source))?;
        self.revise(document, revision, content.into()).await
    }

    /// What was last written of the state of a run; `None` if nothing was. The coordinator defines its format.
    pub async fn state<S: DeserializeOwned>(&self, run: &RunId) -> Result<Option<S>, SinkError> {
        self.read_json(&self.file_of(run, STATE)?).await
    }

    /// Replaces what is written of the state of a run.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is no run of this name.
    pub async fn put_state<S: Serialize + Sync>(&self, run: &RunId, state: &S) -> Result<(), SinkError> {
        let file = self.file_of(run, STATE)?;
        let content = serde_json::to_vec_pretty(state).map_err(|source| json(&file, source))?;
        self.existing(run).await?;
        self.replace(&file, content.into()).await
    }

    /// The highest generation claimed for the queue of a run, or that up to which all belong to runs of this name that were
    /// removed, if it is higher: a claim for one of these may come when it is removed already. `None` if there is neither.
    pub async fn generation(&self, run: &RunId) -> Result<Option<u64>, SinkError> {
        let claimed = highest_generation(&self.list(&self.file_of(run, GENERATIONS)?).await?);
        let removed = Some(self.removed_generation(run).await?).filter(|last| *last > 0);
        Ok(claimed.max(removed))
    }

    /// The generation up to which leases and records belong to runs of this name that were removed; 0 if there was none.
    pub async fn removed_generation(&self, run: &RunId) -> Result<u64, SinkError> {
        let mark = self.read(&format!("removed/{run}")).await?;
        Ok(mark.map_or(0, |mark| removed_generation(&mark)))
    }

    /// Claims a generation for the queue of a run permanently. Returns whether this call claimed it; of several, one does.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] if there is no run of this name.
    pub async fn claim_generation(&self, run: &RunId, generation: u64) -> Result<bool, SinkError> {
        let file = self.file_of(run, &format!("{GENERATIONS}/{generation:020}.json"))?;
        self.existing(run).await?;
        // The name of the file says everything.
        self.create(&file, Bytes::from_static(b"{}\n")).await
    }

    /// Adds an entry to the history of a run.
    ///
    /// # Errors
    /// No such run; the sink cannot be written.
    pub async fn append_history(&self, run: &RunId, entry: &HistoryEntry) -> Result<(), SinkError> {
        let file = self.file_of(run, &format!("history/{}", history_file(entry)))?;
        let content = serde_json::to_vec(entry).map_err(|source| json(&file, source))?;
        self.existing(run).await?;
        self.create(&file, content.into()).await.map(|_| ())
    }

    /// The last [`ENTRIES_READ_MAX`] entries of a run's history, oldest first. Unreadable entries are left out.
    pub async fn history(&self, run: &RunId) -> Result<Vec<HistoryEntry>, SinkError> {
        let found = self.read_all(&self.file_of(run, "history")?, ENTRIES_READ_MAX).await?;
        Ok(found.iter().filter_map(|entry| serde_json::from_slice(entry).ok()).collect())
    }

    /// Stores a pack as a sealed file, by the hash of its manifest (64 hexadecimal digits). Storing it again changes
    /// nothing.
    pub async fn put_pack(&self, hash: &str, sealed: Bytes) -> Result<(), SinkError> {
        self.replace(&pack_file(hash)?, sealed).await
    }

    /// A pack; `None` if it is not stored.
    pub async fn pack(&self, hash: &str) -> Result<Option<Bytes>, SinkError> {
        self.read(&pack_file(hash)?).await
    }

    /// Whether a run of this name was removed by a user, and not begun anew.
    pub async fn is_removed(&self, run: &RunId) -> Result<bool, SinkError> {
        self.run_dir(run)?; // Checks the name.
        if self.read(&format!("removed/{run}")).await?.is_none() {
            return Ok(false);
        }
        Ok(self.read(&self.file_of(run, &revision_name(MANIFEST, 1))?).await?.is_none())
    }

    /// The identity of the sink; `None` if it has none yet.
    pub async fn identity(&self) -> Result<Option<String>, SinkError> {
        Ok(self.read_json::<Identity>(IDENTITY_FILE).await?.map(|identity| identity.store))
    }

    /// The identity of the sink. A sink without one gets a random one; if several processes do this at once, they agree.
    pub async fn identify(&self) -> Result<String, SinkError> {
        if let Some(identity) = self.identity().await? {
            return Ok(identity);
        }
        let fresh = Identity { store: random_name() };
        let content = serde_json::to_vec(&fresh).map_err(|source| json(IDENTITY_FILE, source))?;
        self.create(IDENTITY_FILE, content.into()).await?;
        Ok(self.identity().await?.unwrap_or(fresh.store))
    }

    async fn read_json<S: DeserializeOwned>(&self, file: &str) -> Result<Option<S>, SinkError> {
        let content = self.read(file).await?;
        let parsed = content.map(|content| serde_json::from_slice(&content)).transpose();
        parsed.map_err(|source| json(&format!("{self}/{file}"), source))
    }

    /// The last `most` JSON files of a folder, ordered by name.
    async fn read_all(&self, folder: &str, most: usize) -> Result<Vec<Bytes>, SinkError> {
        let mut names = self.list(folder).await?;
        // Other files are incomplete.
        names.retain(|name| name.ends_with(".json"));
        let names = names.split_off(names.len().saturating_sub(most));
        let read = |name: String| async move { self.read(&format!("{folder}/{name}")).await };
        let found = futures::stream::iter(names).map(read).buffered(READS_MAX);
        found.try_filter_map(|found| std::future::ready(Ok(found))).try_collect().await
    }
}

/// A name that is never drawn again.
pub fn random_name() -> String {
    let draw = || machine::random(|| OsRng.next_u64());
    format!("{:016x}{:016x}", draw(), draw())
}

/// The name of a history entry's file. Names sort by time and contain a random part, so that any number of coordinators
/// can append at once and no entry is overwritten.
pub fn history_file(entry: &HistoryEntry) -> String {
    format!(
        "{:020}-{:08x}.json",
        entry.at.as_microsecond().max(0),
        machine::random(|| u64::from(OsRng.next_u32())) as u32
    )
}

fn json(place: &str, source: serde_json::Error) -> SinkError {
    SinkError::Json { place: place.to_owned(), source }
}

fn pack_file(hash: &str) -> Result<String, SinkError> {
    if hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(format!("packs/{hash}.kgpack"))
    } else {
        Err(SinkError::PackHash(hash.to_owned()))
    }
}
