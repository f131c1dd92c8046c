//! Runs in an object store, under the names that they have in a [folder](super::folder): who copies the prefix has a data
//! folder.
//!
//! A mirror on this machine's disk holds what was written here or fetched, so that the log is read as on a disk. It can
//! be thrown away at any time. Manifests, segments, seals and packs are written once and never change; only states do, and they
//! are not mirrored.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::future::ready;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use domain::RunId;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::Handle;

use super::folder::{self, Folder};
use super::history::newest;
use super::object_segment::ObjectSegment;
use super::{SinkError, SinkReport, blocking};
use crate::log::{LogOptions, LogWriter, Recovery, Seals, SegmentId, WriterId};
use crate::run_dir::FoundRun;
use crate::{RunDir, RunManifest};

/// Objects that are fetched at the same time. Segments are a few megabytes at most.
const FETCHES_MAX: usize = 8;

/// A prefix of an object store, and the mirror.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    mirror: Folder,
}

impl Objects {
    pub(super) fn new(store: Arc<dyn ObjectStore>, prefix: Path, mirror: Folder) -> Self {
        Self { store, prefix, mirror }
    }

    pub(super) fn mirror(&self) -> &Folder {
        &self.mirror
    }

    pub(super) async fn create_run(&self, manifest: &RunManifest) -> Result<RunDir, SinkError> {
        let dir = self.mirror.run_dir(&manifest.run)?;
        let path = self.manifest_path(&manifest.run);
        let content = Bytes::from(manifest.to_json().map_err(|source| self.json_error(&path, source))?);
        match self.put(&path, content.clone(), PutMode::Create).await {
            Err(SinkError::Store { source: StoreError::AlreadyExists { .. }, .. }) => {
                return Err(SinkError::Exists { place: self.place(&self.run_path(&manifest.run)) });
            }
            put => put?,
        }
        keep_manifest(dir.clone(), content).await?;
        Ok(dir)
    }

    pub(super) async fn runs(&self) -> Result<Vec<FoundRun>, SinkError> {
        let runs = self.prefix.clone().join("runs");
        let listed = self.store.list_with_delimiter(Some(&runs)).await;
        let listed = listed.map_err(|source| self.store_error(&runs, "list", source))?;
        let names = listed.common_prefixes.into_iter().filter_map(|path| path.filename().map(RunId::new));
        let mut found: Vec<FoundRun> = futures::stream::iter(names)
            .map(|run| async move {
                match self.fetch_manifest(&run).await {
                    Ok(dir) => {
                        blocking(move || {
                            Ok(Some(FoundRun { manifest: RunManifest::read(&dir.manifest_path()), dir }))
                        })
                        .await
                    }
                    // Being removed, or not ours.
                    Err(SinkError::NoRun { .. } | SinkError::Run(_)) => Ok(None),
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(FETCHES_MAX)
            .try_filter_map(|found| ready(Ok(found)))
            .try_collect()
            .await?;
        found.sort_by(|a, b| a.dir.path().cmp(b.dir.path()));
        Ok(found)
    }

    pub(super) async fn manifest(&self, run: &RunId) -> Result<RunManifest, SinkError> {
        let dir = self.fetch_manifest(run).await?;
        blocking(move || Ok(dir.manifest()?)).await
    }

    /// Makes the run's folder in the mirror, with the manifest.
    async fn fetch_manifest(&self, run: &RunId) -> Result<RunDir, SinkError> {
        let dir = self.mirror.run_dir(run)?;
        let manifest = dir.manifest_path();
        if !blocking(move || Ok(manifest.is_file())).await? {
            let Some(content) = self.get(&self.manifest_path(run)).await? else {
                return Err(SinkError::NoRun { place: self.place(&self.run_path(run)) });
            };
            keep_manifest(dir.clone(), content).await?;
        }
        Ok(dir)
    }

    /// A writer whose groups become objects, each its own.
    pub(super) async fn open_writer(
        &self,
        run: &RunId,
        options: LogOptions,
    ) -> Result<(LogWriter<ObjectSegment>, Recovery), SinkError> {
        if options.writer == WriterId::LOCK_HOLDER {
            return Err(SinkError::NoLock { place: self.place(&self.run_path(run)) });
        }
        let dir = self.fetch_manifest(run).await?;
        let (store, log, runtime) = (Arc::clone(&self.store), self.log_path(run), Handle::current());
        blocking(move || {
            dir.make_folders()?;
            let open = move |path: &std::path::Path, _, _| {
                let name = path.file_name().and_then(|name| name.to_str());
                let name = name.ok_or(io::ErrorKind::InvalidFilename)?;
                Ok(ObjectSegment {
                    store: Arc::clone(&store),
                    location: log.clone().join(name),
                    mirror: path.to_owned(),
                    runtime: runtime.clone(),
                    content: Vec::new(),
                })
            };
            let options = LogOptions { segment_bytes: 0, ..options };
            Ok(LogWriter::open_with(&dir.log(), options, Box::new(open))?)
        })
        .await
    }

    /// Fetches the segments and seals that the mirror lacks; returns how many. The list of objects need not be in any order.
    pub(super) async fn refresh(&self, run: &RunId) -> Result<usize, SinkError> {
        let dir = self.fetch_manifest(run).await?;
        let folder = dir.log();
        let mirrored = blocking(move || {
            dir.make_folders()?;
            let folder = dir.log();
            let names = fs::read_dir(&folder).and_then(|entries| {
                entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<HashSet<_>>>()
            });
            names.map_err(|error| SinkError::io(folder, "list", error))
        })
        .await?;
        let log = self.log_path(run);
        let listed = self.store.list(Some(&log)).try_filter_map(|object| {
            let name = object.location.filename().filter(|name| !mirrored.contains(OsStr::new(name)));
            ready(Ok(name.and_then(|name| Some((order(name)?, name.to_owned())))))
        });
        let listed = listed.try_collect::<Vec<_>>().await;
        let mut lacking = listed.map_err(|source| self.store_error(&log, "list", source))?;
        lacking.sort_unstable();
        let count = lacking.len();
        // In order, so that a mirror that was filled in part has no gaps.
        let (log, folder) = (&log, &folder);
        let mut fetched = futures::stream::iter(lacking)
            .map(|(_, name)| async move {
                let content = self.get(&log.clone().join(&*name)).await?;
                Ok::<_, SinkError>((folder.join(name), content))
            })
            .buffered(FETCHES_MAX);
        while let Some((path, content)) = fetched.try_next().await? {
            // An object that was listed and is gone belongs to a run that is being removed.
            if let Some(content) = content {
                blocking(move || folder::replace(&path, &content)).await?;
            }
        }
        Ok(count)
    }

    pub(super) async fn seal(&self, run: &RunId, name: String, content: Vec<u8>) -> Result<bool, SinkError> {
        let content = Bytes::from(content);
        match self.put(&self.log_path(run).join(&*name), content.clone(), PutMode::Create).await {
            Err(SinkError::Store { source: StoreError::AlreadyExists { .. }, .. }) => return Ok(false),
            put => put?,
        }
        let path = self.mirror.run_dir(run)?.log().join(name);
        blocking(move || folder::replace(&path, &content)).await?;
        Ok(true)
    }

    pub(super) async fn read_state(&self, run: &RunId) -> Result<Option<Bytes>, SinkError> {
        self.mirror.run_dir(run)?;
        self.get(&self.state_path(run)).await
    }

    pub(super) async fn write_state(&self, run: &RunId, state: Vec<u8>) -> Result<(), SinkError> {
        self.fetch_manifest(run).await?;
        self.put(&self.state_path(run), state.into(), PutMode::Overwrite).await
    }

    pub(super) async fn append_history(
        &self,
        run: &RunId,
        name: &str,
        content: Bytes,
    ) -> Result<(), SinkError> {
        self.fetch_manifest(run).await?;
        self.put(&self.history_path(run).join(name), content, PutMode::Create).await
    }

    pub(super) async fn history(&self, run: &RunId) -> Result<Vec<Bytes>, SinkError> {
        self.mirror.run_dir(run)?;
        let path = self.history_path(run);
        let listed =
            self.store.list(Some(&path)).map_ok(|object| object.location.filename().map(str::to_owned));
        let listed = listed.try_collect::<Vec<Option<String>>>().await;
        let names = listed.map_err(|source| self.store_error(&path, "list", source))?;
        let names = newest(names.into_iter().flatten().collect());
        let path = &path;
        let found =
            futures::stream::iter(names).map(|name| async move { self.get(&path.clone().join(name)).await });
        found.buffered(FETCHES_MAX).try_filter_map(|found| ready(Ok(found))).try_collect().await
    }

    pub(super) async fn put_retry(&self, run: &RunId, name: &str, content: Bytes) -> Result<(), SinkError> {
        self.fetch_manifest(run).await?;
        let path = self.retries_path(run).join(format!("{name}.json"));
        self.put(&path, content, PutMode::Create).await
    }

    pub(super) async fn retries(&self, run: &RunId) -> Result<Vec<Bytes>, SinkError> {
        let path = self.retries_path(run);
        let listed = self.store.list(Some(&path)).map_ok(|object| object.location).try_collect::<Vec<_>>();
        let mut places = listed.await.map_err(|source| self.store_error(&path, "list", source))?;
        places.sort();
        let mut retries = Vec::with_capacity(places.len());
        for place in places {
            retries.extend(self.get(&place).await?);
        }
        Ok(retries)
    }

    pub(super) async fn put_pack(&self, hash: &str, sealed: Bytes) -> Result<(), SinkError> {
        self.put(&self.pack_path(hash)?, sealed, PutMode::Overwrite).await
    }

    pub(super) async fn pack(&self, hash: &str) -> Result<Option<Bytes>, SinkError> {
        let path = self.pack_path(hash)?;
        let (mirror, name) = (self.mirror.clone(), hash.to_owned());
        if let Some(sealed) = blocking(move || mirror.pack(&name)).await? {
            return Ok(Some(sealed.into()));
        }
        let sealed = self.get(&path).await?;
        if let Some(sealed) = sealed.clone() {
            let (mirror, name) = (self.mirror.clone(), hash.to_owned());
            blocking(move || mirror.put_pack(&name, &sealed)).await?;
        }
        Ok(sealed)
    }

    fn document_path(&self, pipeline: &RunId, name: &str) -> Result<Path, SinkError> {
        self.mirror.run_dir(pipeline)?;
        self.mirror.run_dir(&RunId::new(name))?;
        Ok(self.prefix.clone().join(super::PIPELINES).join(pipeline.as_str()).join(name))
    }

    pub(super) async fn create_document(
        &self,
        pipeline: &RunId,
        name: &str,
        content: Bytes,
    ) -> Result<bool, SinkError> {
        match self.put(&self.document_path(pipeline, name)?, content, PutMode::Create).await {
            Err(SinkError::Store { source: StoreError::AlreadyExists { .. }, .. }) => Ok(false),
            put => put.map(|()| true),
        }
    }

    pub(super) async fn put_document(
        &self,
        pipeline: &RunId,
        name: &str,
        content: Bytes,
    ) -> Result<(), SinkError> {
        self.put(&self.document_path(pipeline, name)?, content, PutMode::Overwrite).await
    }

    pub(super) async fn document(&self, pipeline: &RunId, name: &str) -> Result<Option<Bytes>, SinkError> {
        self.get(&self.document_path(pipeline, name)?).await
    }

    pub(super) async fn pipelines(&self) -> Result<Vec<RunId>, SinkError> {
        let path = self.prefix.clone().join(super::PIPELINES);
        let listed = self.store.list_with_delimiter(Some(&path)).await;
        let listed = listed.map_err(|source| self.store_error(&path, "list", source))?;
        let mut names: Vec<RunId> =
            listed.common_prefixes.iter().filter_map(|found| found.filename().map(RunId::new)).collect();
        names.sort();
        Ok(names)
    }

    pub(super) async fn remove_documents(&self, pipeline: &RunId) -> Result<(), SinkError> {
        self.mirror.run_dir(pipeline)?;
        let path = self.prefix.clone().join(super::PIPELINES).join(pipeline.as_str());
        let objects = self.store.list(Some(&path)).map_ok(|object| object.location).boxed();
        let removed = self.store.delete_stream(objects).try_for_each(|_| ready(Ok(()))).await;
        removed.map_err(|source| self.store_error(&path, "remove", source))
    }

    pub(super) async fn remove_run(&self, run: &RunId) -> Result<(), SinkError> {
        let (dir, path) = (self.mirror.run_dir(run)?, self.run_path(run));
        let manifest = self.manifest_path(run);
        if self.get(&manifest).await?.is_none() {
            return Err(SinkError::NoRun { place: self.place(&path) });
        }
        let mark = self.removed_path(run);
        self.put(&mark, Bytes::from_static(crate::run_dir::REMOVED_MARK), PutMode::Overwrite).await?;
        // The manifest first: from then on it is no run any more, whatever stops the rest.
        let removed = self.store.delete(&manifest).await;
        removed.map_err(|source| self.store_error(&manifest, "remove", source))?;
        let objects = self.store.list(Some(&path)).map_ok(|object| object.location).boxed();
        let removed = self.store.delete_stream(objects).try_for_each(|_| ready(Ok(()))).await;
        removed.map_err(|source| self.store_error(&path, "remove", source))?;
        blocking(move || match fs::remove_dir_all(dir.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SinkError::io(dir.path(), "remove", error))
            }
            _ => Ok(()),
        })
        .await
    }

    pub(super) async fn is_removed(&self, run: &RunId) -> Result<bool, SinkError> {
        self.mirror.run_dir(run)?;
        Ok(self.get(&self.removed_path(run)).await?.is_some())
    }

    pub(super) async fn identity(&self) -> Result<Option<Bytes>, SinkError> {
        self.get(&self.identity_path()).await
    }

    pub(super) async fn identify(&self, content: Vec<u8>) -> Result<(), SinkError> {
        match self.put(&self.identity_path(), content.into(), PutMode::Create).await {
            Err(SinkError::Store { source: StoreError::AlreadyExists { .. }, .. }) => Ok(()),
            put => put,
        }
    }

    /// Writes, reads and removes an object, and sees that the store makes none that is there already.
    pub(super) async fn check(&self) -> Result<SinkReport, SinkError> {
        let mirror = self.mirror.clone();
        let report = blocking(move || mirror.check()).await?;
        let probe = self.prefix.clone().join(super::probe_name());
        let content = Bytes::from_static(b"kgfleet was here");
        self.put(&probe, content.clone(), PutMode::Create).await?;
        let again = self.put(&probe, content.clone(), PutMode::Create).await;
        let found = self.get(&probe).await;
        let removed = self.store.delete(&probe).await;
        removed.map_err(|source| self.store_error(&probe, "remove", source))?;
        match again {
            Err(SinkError::Store { source: StoreError::AlreadyExists { .. }, .. }) => {}
            Err(error) => return Err(error),
            Ok(()) => return Err(SinkError::NoConditions { place: self.root() }),
        }
        if found?.as_ref() != Some(&content) {
            let source = io::Error::other("what was written is not what is there").into();
            let source = StoreError::Generic { store: "probe", source };
            return Err(self.store_error(&probe, "read", source));
        }
        Ok(SinkReport { place: self.root(), ..report })
    }

    async fn put(&self, path: &Path, content: Bytes, mode: PutMode) -> Result<(), SinkError> {
        let put = self.store.put_opts(path, PutPayload::from(content), PutOptions::from(mode)).await;
        put.map(|_| ()).map_err(|source| self.store_error(path, "write", source))
    }

    /// The content of an object; `None` if there is none.
    async fn get(&self, path: &Path) -> Result<Option<Bytes>, SinkError> {
        let got = match self.store.get(path).await {
            Ok(object) => object.bytes().await,
            Err(error) => Err(error),
        };
        match got {
            Ok(content) => Ok(Some(content)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(source) => Err(self.store_error(path, "read", source)),
        }
    }

    fn run_path(&self, run: &RunId) -> Path {
        self.prefix.clone().join("runs").join(run.as_str())
    }

    fn removed_path(&self, run: &RunId) -> Path {
        self.prefix.clone().join("removed").join(run.as_str())
    }

    fn identity_path(&self) -> Path {
        self.prefix.clone().join(super::IDENTITY_FILE)
    }

    fn manifest_path(&self, run: &RunId) -> Path {
        self.run_path(run).join("manifest.json")
    }

    pub(super) fn state_path(&self, run: &RunId) -> Path {
        self.run_path(run).join("state.json")
    }

    fn retries_path(&self, run: &RunId) -> Path {
        self.run_path(run).join("retries")
    }

    fn log_path(&self, run: &RunId) -> Path {
        self.run_path(run).join("log")
    }

    fn history_path(&self, run: &RunId) -> Path {
        self.run_path(run).join("history")
    }

    fn pack_path(&self, hash: &str) -> Result<Path, SinkError> {
        Ok(self.prefix.clone().join("packs").join(folder::pack_name(hash)?))
    }

    /// The store and the prefix.
    pub(super) fn root(&self) -> String {
        self.place(&self.prefix)
    }

    /// For messages.
    pub(super) fn place(&self, path: &Path) -> String {
        format!("{}: {path}", self.store)
    }

    fn store_error(&self, path: &Path, doing: &'static str, source: StoreError) -> SinkError {
        SinkError::Store { place: self.place(path), doing, source }
    }

    fn json_error(&self, path: &Path, source: serde_json::Error) -> SinkError {
        SinkError::Json { place: self.place(path), source }
    }
}

/// In which order the files of a log are fetched; `None` for what belongs to none. Seals last: they tell of segments.
fn order(name: &str) -> Option<(Option<u32>, Option<SegmentId>)> {
    let (seal, segment) = (Seals::of_file_name(name), SegmentId::of_file_name(name));
    (seal.is_some() || segment.is_some()).then_some((seal, segment))
}

/// Writes a manifest into the mirror.
async fn keep_manifest(dir: RunDir, content: Bytes) -> Result<(), SinkError> {
    blocking(move || {
        dir.make_folders()?;
        folder::replace(&dir.manifest_path(), &content)
    })
    .await
}
