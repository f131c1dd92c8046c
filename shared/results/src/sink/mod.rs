//! Where coordinators keep runs, together: a [folder](Sink::folder) or an [object store](Sink::objects).
//!
//! **What is kept.** For each run its manifest, which is written once; its record log; its state, which is replaced as a
//! whole; what was asked again, one file or object each time; and its history, to which is only added. Packs, by their
//! hash. Documents of pipelines: revisions of their manifests, which are written once, and their states. A random name that tells this sink from others, made once; and the names of runs that were removed. Nothing else:
//! whatever a cluster needs besides can be
//! made of these.
//!
//! **What durable means.** A call that writes returns when its content survives a power cut: a synced file under its
//! name, or a complete object.
//!
//! **Who may write.** Any number of coordinators at once. Of several that make a run of the same name one succeeds; each
//! appends to [segments of its own](crate::log::WriterId); of several that [seal](Sink::seal) a run one does; the last
//! who writes a state wins.
//!
//! Calls do not block the threads of the async runtime. Dropping one leaves open what it did.

mod error;
mod folder;
mod history;
mod object_segment;
mod objects;
mod store;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::RunId;
use object_store::ObjectStore;
use object_store::path::Path;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use error::SinkError;

use self::folder::Folder;
use self::objects::Objects;
use crate::log::writer::SegmentFile;
use crate::log::{
    CommitPolicy, CommitQueue, CommitThread, LogCipher, LogOptions, LogTail, LogWriter, Recovery, SealEvent,
    Seals, WriterId,
};
use crate::run_dir::FoundRun;
use crate::{RunDir, RunManifest};

/// The file, or object, that tells one sink from another.
const IDENTITY_FILE: &str = "store.json";

/// The folder, or prefix, of pipelines.
const PIPELINES: &str = "pipelines";

/// What it holds.
#[derive(Serialize, Deserialize)]
struct Identity {
    /// Random.
    store: String,
}

/// Where runs live. Clones share it.
#[derive(Clone, Debug)]
pub struct Sink(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Folder(Folder),
    Objects(Objects),
}

/// The log of a run, open for writing.
#[derive(Debug)]
pub struct OpenLog {
    /// Where to hand records in.
    pub queue: CommitQueue,
    /// Ends after the last clone of the queue. With an object store the async runtime must live until then.
    pub thread: CommitThread,
    /// What an earlier process of this writer had left unfinished.
    pub recovery: Recovery,
}

/// What a [check](Sink::check) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkReport {
    /// The folder, or the store and the prefix.
    pub place: String,
    /// Bytes that are free on the disk of the folder or of the mirror.
    pub free_bytes: u64,
}

impl Sink {
    /// A data folder, perhaps on a file system that several machines share: `DATA/runs/RUN/…` and `DATA/packs/…`, see
    /// [`run_dir`](crate::run_dir).
    pub fn folder(data: impl Into<PathBuf>) -> Self {
        Self(Kind::Folder(Folder::new(data.into())))
    }

    /// A prefix of an object store: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `file:///FOLDER`, with a folder for the
    /// mirror that no other process uses. Credentials and settings come from the environment, under the names that
    /// the `object_store` library gives them (`AWS_…`, `GOOGLE_…`). Nothing is asked of the store yet.
    ///
    /// # Errors
    /// The address or the settings cannot be used.
    pub fn objects(url: &str, mirror: impl Into<PathBuf>) -> Result<Self, SinkError> {
        let (store, prefix) = store::open(url)?;
        Ok(Self::store(store, prefix, mirror))
    }

    /// Like [`objects`](Self::objects), in a store that is open already.
    pub fn store(store: Arc<dyn ObjectStore>, prefix: Path, mirror: impl Into<PathBuf>) -> Self {
        Self(Kind::Objects(Objects::new(store, prefix, Folder::new(mirror.into()))))
    }

    /// Whether it is a folder, where writers hold locks.
    pub fn is_folder(&self) -> bool {
        matches!(self.0, Kind::Folder(_))
    }

    /// How groups of records are best gathered here.
    pub fn commit_policy(&self) -> CommitPolicy {
        match &self.0 {
            Kind::Folder(_) => CommitPolicy::DISK,
            Kind::Objects(_) => CommitPolicy::OBJECTS,
        }
    }

    /// Begins a run.
    ///
    /// # Errors
    /// [`SinkError::Exists`] where there is one of this name.
    pub async fn create_run(&self, manifest: &RunManifest) -> Result<RunDir, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, manifest) = (folder.clone(), manifest.clone());
                blocking(move || folder.create_run(&manifest)).await
            }
            Kind::Objects(objects) => objects.create_run(manifest).await,
        }
    }

    /// All runs, by name.
    pub async fn runs(&self) -> Result<Vec<FoundRun>, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || folder.runs()).await
            }
            Kind::Objects(objects) => objects.runs().await,
        }
    }

    /// The manifest of a run.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] where there is none of this name.
    pub async fn manifest(&self, run: &RunId) -> Result<RunManifest, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.manifest(&run)).await
            }
            Kind::Objects(objects) => objects.manifest(run).await,
        }
    }

    /// The folder of a run, or that of its mirror, which holds what was written here and [fetched](Self::refresh). It need
    /// not exist.
    pub fn run_dir(&self, run: &RunId) -> Result<RunDir, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => folder.run_dir(run),
            Kind::Objects(objects) => objects.mirror().run_dir(run),
        }
    }

    /// Opens the log of a run for a writer. One that writes nothing leaves nothing behind.
    ///
    /// # Errors
    /// No such run; the writer has written before ([`LogError::Taken`](crate::log::LogError::Taken)); the lock holder
    /// in an object store.
    pub async fn open_log(
        &self,
        run: &RunId,
        writer: WriterId,
        cipher: Option<LogCipher>,
        policy: CommitPolicy,
    ) -> Result<OpenLog, SinkError> {
        let options = LogOptions { writer, cipher, ..LogOptions::default() };
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                let (writer, recovery) = blocking(move || folder.open_writer(&run, options)).await?;
                start(writer, policy, recovery)
            }
            Kind::Objects(objects) => {
                let (writer, recovery) = objects.open_writer(run, options).await?;
                start(writer, policy, recovery)
            }
        }
    }

    /// Fetches what others have written into the log of a run; returns how many segments that was. In a folder there is
    /// nothing to fetch.
    pub async fn refresh(&self, run: &RunId) -> Result<usize, SinkError> {
        match &self.0 {
            Kind::Folder(_) => Ok(0),
            Kind::Objects(objects) => objects.refresh(run).await,
        }
    }

    /// Follows the log of a run, past the entries of one writer. What others write into an object store is seen after
    /// a [`refresh`](Self::refresh), which also makes the folder that is followed.
    pub fn tail(
        &self,
        run: &RunId,
        cipher: Option<&LogCipher>,
        except: Option<WriterId>,
    ) -> Result<LogTail, SinkError> {
        Ok(LogTail::new(&self.run_dir(run)?.log(), cipher, except))
    }

    /// Writes the seal of this number into the log of a run: that it was closed with what lies there, or reopened. Returns
    /// whether this call did; else somebody has written a seal of this number before, which is to be read first.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] where there is no run of this name.
    pub async fn seal(&self, run: &RunId, number: u32, event: SealEvent) -> Result<bool, SinkError> {
        let name = Seals::file_name(number);
        let content = Seals::encode(event)
            .map_err(|source| SinkError::Json { place: format!("seal {name} of run {run}"), source })?;
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.seal(&run, &name, &content)).await
            }
            Kind::Objects(objects) => objects.seal(run, name, content).await,
        }
    }

    /// The state of a run as it was written last; `None` before that. Its shape is the coordinator's.
    pub async fn read_state<S: DeserializeOwned>(&self, run: &RunId) -> Result<Option<S>, SinkError> {
        let (state, place) = match &self.0 {
            Kind::Folder(folder) => {
                let place = folder.run_dir(run)?.state_path().display().to_string();
                let (folder, run) = (folder.clone(), run.clone());
                let state = blocking(move || folder.read_state(&run)).await?;
                (state.map(Bytes::from), place)
            }
            Kind::Objects(objects) => {
                (objects.read_state(run).await?, objects.place(&objects.state_path(run)))
            }
        };
        state
            .map(|state| serde_json::from_slice(&state))
            .transpose()
            .map_err(|source| SinkError::Json { place, source })
    }

    /// Replaces the state of a run, as a whole.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] where there is no run of this name.
    pub async fn write_state<S: Serialize>(&self, run: &RunId, state: &S) -> Result<(), SinkError> {
        let state = serde_json::to_vec_pretty(state)
            .map_err(|source| SinkError::Json { place: format!("the state of run {run}"), source })?;
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.write_state(&run, &state)).await
            }
            Kind::Objects(objects) => objects.write_state(run, state).await,
        }
    }

    /// Keeps a pack, as a sealed file, by the hash of its manifest (64 hexadecimal digits). To keep it again changes
    /// nothing.
    pub async fn put_pack(&self, hash: &str, sealed: Bytes) -> Result<(), SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, hash) = (folder.clone(), hash.to_owned());
                blocking(move || folder.put_pack(&hash, &sealed)).await
            }
            Kind::Objects(objects) => objects.put_pack(hash, sealed).await,
        }
    }

    /// Keeps what was asked of a run again, for good, under a name of its own: letters, digits and `-`.
    pub async fn put_retry(&self, run: &RunId, name: &str, content: Bytes) -> Result<(), SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run, name) = (folder.clone(), run.clone(), name.to_owned());
                blocking(move || folder.put_retry(&run, &name, &content)).await
            }
            Kind::Objects(objects) => objects.put_retry(run, name, content).await,
        }
    }

    /// Everything that was asked of a run again, in the order of the names.
    pub async fn retries(&self, run: &RunId) -> Result<Vec<Bytes>, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                Ok(blocking(move || folder.retries(&run)).await?.into_iter().map(Bytes::from).collect())
            }
            Kind::Objects(objects) => objects.retries(run).await,
        }
    }

    /// A pack; `None` if it is not kept here.
    pub async fn pack(&self, hash: &str) -> Result<Option<Bytes>, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, hash) = (folder.clone(), hash.to_owned());
                Ok(blocking(move || folder.pack(&hash)).await?.map(Bytes::from))
            }
            Kind::Objects(objects) => objects.pack(hash).await,
        }
    }

    /// Keeps a document of a pipeline under a name of its own (letters, digits, `-` and `.`), unless there is one of that name.
    /// Says whether this call did: of several that make the same one does.
    ///
    /// # Errors
    /// [`SinkError::Run`] where a name cannot stand in paths.
    pub async fn create_document(
        &self,
        pipeline: &RunId,
        name: &str,
        content: Bytes,
    ) -> Result<bool, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, pipeline, name) = (folder.clone(), pipeline.clone(), name.to_owned());
                blocking(move || folder.create_document(&pipeline, &name, &content)).await
            }
            Kind::Objects(objects) => objects.create_document(pipeline, name, content).await,
        }
    }

    /// Keeps or replaces a document of a pipeline.
    pub async fn put_document(&self, pipeline: &RunId, name: &str, content: Bytes) -> Result<(), SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, pipeline, name) = (folder.clone(), pipeline.clone(), name.to_owned());
                blocking(move || folder.put_document(&pipeline, &name, &content)).await
            }
            Kind::Objects(objects) => objects.put_document(pipeline, name, content).await,
        }
    }

    /// A document of a pipeline; `None` where there is none of this name.
    pub async fn document(&self, pipeline: &RunId, name: &str) -> Result<Option<Bytes>, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, pipeline, name) = (folder.clone(), pipeline.clone(), name.to_owned());
                Ok(blocking(move || folder.document(&pipeline, &name)).await?.map(Bytes::from))
            }
            Kind::Objects(objects) => objects.document(pipeline, name).await,
        }
    }

    /// The names of all pipelines, sorted.
    pub async fn pipelines(&self) -> Result<Vec<RunId>, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || folder.pipelines()).await
            }
            Kind::Objects(objects) => objects.pipelines().await,
        }
    }

    /// Removes the documents of a pipeline; its runs stay.
    pub async fn remove_documents(&self, pipeline: &RunId) -> Result<(), SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, pipeline) = (folder.clone(), pipeline.clone());
                blocking(move || folder.remove_documents(&pipeline)).await
            }
            Kind::Objects(objects) => objects.remove_documents(pipeline).await,
        }
    }

    /// Removes a run and everything in it, and leaves a mark that says so. Coordinators notice; a process that writes the
    /// run without a cluster prevents it.
    ///
    /// # Errors
    /// [`SinkError::NoRun`] where there is none of this name; a process holds its lock alone.
    pub async fn remove_run(&self, run: &RunId) -> Result<(), SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.remove_run(&run)).await
            }
            Kind::Objects(objects) => objects.remove_run(run).await,
        }
    }

    /// Whether a run of this name was removed on purpose.
    pub async fn is_removed(&self, run: &RunId) -> Result<bool, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let (folder, run) = (folder.clone(), run.clone());
                blocking(move || folder.is_removed(&run)).await
            }
            Kind::Objects(objects) => objects.is_removed(run).await,
        }
    }

    /// The identity of the sink; `None` where it has got none yet.
    pub async fn identity(&self) -> Result<Option<String>, SinkError> {
        let (content, place) = match &self.0 {
            Kind::Folder(folder) => {
                let place = folder.path().join(IDENTITY_FILE).display().to_string();
                let folder = folder.clone();
                (blocking(move || folder.identity()).await?.map(Bytes::from), place)
            }
            Kind::Objects(objects) => (objects.identity().await?, format!("{self}/{IDENTITY_FILE}")),
        };
        content
            .map(|content| serde_json::from_slice::<Identity>(&content).map(|identity| identity.store))
            .transpose()
            .map_err(|source| SinkError::Json { place, source })
    }

    /// The identity of the sink, which gets a random one where it has none. Of several processes that give it one, one does.
    pub async fn identify(&self) -> Result<String, SinkError> {
        if let Some(identity) = self.identity().await? {
            return Ok(identity);
        }
        let fresh = Identity { store: format!("{:016x}{:016x}", OsRng.next_u64(), OsRng.next_u64()) };
        let content = serde_json::to_vec(&fresh)
            .map_err(|source| SinkError::Json { place: IDENTITY_FILE.to_owned(), source })?;
        match &self.0 {
            Kind::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || folder.identify(&content)).await?;
            }
            Kind::Objects(objects) => objects.identify(content).await?,
        }
        Ok(self.identity().await?.unwrap_or(fresh.store))
    }

    /// Sees whether the sink can be written and read, by a small file or object that is removed again.
    pub async fn check(&self) -> Result<SinkReport, SinkError> {
        match &self.0 {
            Kind::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || folder.check()).await
            }
            Kind::Objects(objects) => objects.check().await,
        }
    }
}

impl std::fmt::Display for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Kind::Folder(folder) => write!(f, "{}", folder.path().display()),
            Kind::Objects(objects) => f.write_str(&objects.root()),
        }
    }
}

fn start<F: SegmentFile + Send + 'static>(
    writer: LogWriter<F>,
    policy: CommitPolicy,
    recovery: Recovery,
) -> Result<OpenLog, SinkError> {
    let path = writer.segment_path();
    let (queue, thread) = CommitQueue::start(writer, policy)
        .map_err(|error| SinkError::io(path, "start a thread for writing", error))?;
    Ok(OpenLog { queue, thread, recovery })
}

/// Does something that blocks on a thread that may be blocked.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SinkError> + Send + 'static,
) -> Result<T, SinkError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(SinkError::Ended),
        },
    }
}

/// A name that no two checks share.
fn probe_name() -> String {
    format!("probe-{:016x}", OsRng.next_u64())
}
