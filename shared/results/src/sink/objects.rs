//! Runs in an object store, under the same names as in a [folder](super::folder): a copy of the prefix is a data
//! folder.
//!
//! A mirror on the local disk contains what was written here or fetched, so that the log is read as from a disk. It can
//! be deleted at any time. Only files that never change are mirrored: manifests, segments, seals and packs.
//! mirrored.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::fs;
use std::future::ready;
use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;

use bytes::Bytes;
use domain::RunId;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::Handle;

use super::folder::{self, Folder, probe_name};
use super::object_segment::ObjectSegment;
use super::{OpenLog, Sink, SinkError, SinkReply, SinkReport, blocking};
use crate::disk;
use crate::files::{Doing, if_there};
use crate::log::{CommitPolicy, LogOptions, LogWriter, Recovery, Seals, SegmentId, WriterId};
use crate::run_dir::{FoundRun, GENERATIONS, removed_generation, removed_mark};
use crate::{RunDir, RunManifest};

/// Maximum number of objects fetched concurrently. Segments have at most a few megabytes.
const FETCHES_MAX: usize = 8;

/// A prefix of an object store, and its mirror.
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

    async fn make_run(&self, manifest: &RunManifest) -> Result<RunDir, SinkError> {
        let dir = self.mirror.run_dir(&manifest.run)?;
        let path = self.run_path(&manifest.run).join("manifest.json");
        let content = Bytes::from(manifest.to_json().map_err(|source| self.json_error(&path, source))?);
        if !self.put_new(&path, content.clone()).await? {
            return Err(SinkError::Exists { place: self.place(&self.run_path(&manifest.run)) });
        }
        keep_manifest(dir.clone(), content).await?;
        Ok(dir)
    }

    async fn find_runs(&self) -> Result<Vec<FoundRun>, SinkError> {
        let runs = self.prefix.clone().join("runs");
        let listed = self.store.list_with_delimiter(Some(&runs)).await;
        let listed = listed.map_err(|source| self.store_error(&runs, "list", source))?;
        let names = listed.common_prefixes.into_iter().filter_map(|path| path.filename().map(RunId::new));
        let mut found: Vec<FoundRun> = futures::stream::iter(names)
            .map(|run| async move {
                match self.fetch_manifest(&run).await {
                    Ok(dir) => {
                        blocking(move || Ok(Some(FoundRun { manifest: dir.newest_manifest(), dir }))).await
                    }
                    // A run that is being removed, or not a run.
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

    /// Creates the run's folder in the mirror, with the manifest.
    async fn fetch_manifest(&self, run: &RunId) -> Result<RunDir, SinkError> {
        let dir = self.mirror.run_dir(run)?;
        let manifest = dir.manifest_path();
        if !blocking(move || Ok(manifest.is_file())).await? {
            let Some(content) = self.get(&self.run_path(run).join("manifest.json")).await? else {
                return Err(SinkError::NoRun { place: self.place(&self.run_path(run)) });
            };
            keep_manifest(dir.clone(), content).await?;
        }
        Ok(dir)
    }

    /// A writer that stores each group as an object.
    async fn open_writer(
        &self,
        run: &RunId,
        options: LogOptions,
    ) -> Result<(LogWriter<ObjectSegment>, Recovery), SinkError> {
        if options.writer == WriterId::LOCK_HOLDER {
            return Err(SinkError::NoLock { place: self.place(&self.run_path(run)) });
        }
        let dir = self.fetch_manifest(run).await?;
        let (store, log, runtime) =
            (Arc::clone(&self.store), self.run_path(run).join("log"), Handle::current());
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

    /// Fetches the segments and seals that the mirror lacks; returns their number. The store may list objects in any order.
    async fn fetch_log(&self, run: &RunId) -> Result<usize, SinkError> {
        let dir = self.fetch_manifest(run).await?;
        let folder = dir.log();
        let mirrored = blocking(move || {
            dir.make_folders()?;
            let folder = dir.log();
            Ok(HashSet::<OsString>::from_iter(disk::names(&folder).doing("list", folder)?))
        })
        .await?;
        let log = self.run_path(run).join("log");
        let listed = self.store.list(Some(&log)).try_filter_map(|object| {
            let name = object.location.filename().filter(|name| !mirrored.contains(OsStr::new(name)));
            ready(Ok(name.and_then(|name| Some((order(name)?, name.to_owned())))))
        });
        let listed = listed.try_collect::<Vec<_>>().await;
        let mut lacking = listed.map_err(|source| self.store_error(&log, "list", source))?;
        lacking.sort_unstable();
        let count = lacking.len();
        // In order, so that a partly filled mirror has no gaps.
        let (log, folder) = (&log, &folder);
        let mut fetched = futures::stream::iter(lacking)
            .map(|(_, name)| async move {
                let content = self.get(&log.clone().join(&*name)).await?;
                Ok::<_, SinkError>((folder.join(name), content))
            })
            .buffered(FETCHES_MAX);
        while let Some((path, content)) = fetched.try_next().await? {
            // A listed object that is gone belongs to a run that is being removed.
            if let Some(content) = content {
                blocking(move || folder::replace(&path, &content)).await?;
            }
        }
        Ok(count)
    }

    async fn remove_whole(&self, run: &RunId) -> Result<(), SinkError> {
        let (dir, path) = (self.mirror.run_dir(run)?, self.run_path(run));
        let manifest = path.clone().join("manifest.json");
        if self.get(&manifest).await?.is_none() {
            return Err(SinkError::NoRun { place: self.place(&path) });
        }
        let mark = self.path(&format!("removed/{run}"));
        let claimed = self.list(&format!("runs/{run}/{GENERATIONS}")).await?;
        let before = self.get(&mark).await?.unwrap_or_default();
        let content = removed_mark(&claimed, removed_generation(&before));
        self.put(&mark, content.into(), PutMode::Overwrite).await?;
        // The manifest first: without it this is no longer a run, even if removing the rest fails.
        let removed = self.store.delete(&manifest).await;
        removed.map_err(|source| self.store_error(&manifest, "remove", source))?;
        let objects = self.store.list(Some(&path)).map_ok(|object| object.location).boxed();
        let removed = self.store.delete_stream(objects).try_for_each(|_| ready(Ok(()))).await;
        removed.map_err(|source| self.store_error(&path, "remove", source))?;
        blocking(move || {
            Ok(if_there(fs::remove_dir_all(dir.path())).doing("remove", dir.path()).map(drop)?)
        })
        .await
    }

    /// Writes, reads and removes an object, and checks that the store does not create one that exists already.
    async fn probe(&self) -> Result<SinkReport, SinkError> {
        let report = self.mirror.check().await?;
        let probe = self.prefix.clone().join(probe_name());
        let content = Bytes::from_static(b"kgfleet was here");
        self.put_new(&probe, content.clone()).await?;
        let again = self.put_new(&probe, content.clone()).await;
        let found = self.get(&probe).await;
        let removed = self.store.delete(&probe).await;
        removed.map_err(|source| self.store_error(&probe, "remove", source))?;
        if again? {
            return Err(SinkError::NoConditions { place: self.to_string() });
        }
        if found?.as_ref() != Some(&content) {
            let source = io::Error::other("what was written is not what is there").into();
            let source = StoreError::Generic { store: "probe", source };
            return Err(self.store_error(&probe, "read", source));
        }
        Ok(SinkReport { place: self.to_string(), ..report })
    }

    async fn put(&self, path: &Path, content: Bytes, mode: PutMode) -> Result<(), SinkError> {
        let put = self.store.put_opts(path, PutPayload::from(content), PutOptions::from(mode)).await;
        put.map(|_| ()).map_err(|source| self.store_error(path, "write", source))
    }

    /// Creates an object; returns false if it exists already.
    async fn put_new(&self, path: &Path, content: Bytes) -> Result<bool, SinkError> {
        match self.put(path, content, PutMode::Create).await {
            Err(SinkError::Store { source: StoreError::AlreadyExists { .. }, .. }) => Ok(false),
            put => put.map(|()| true),
        }
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

    /// The object of a name.
    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), Path::join)
    }

    fn run_path(&self, run: &RunId) -> Path {
        self.prefix.clone().join("runs").join(run.as_str())
    }

    /// For messages.
    fn place(&self, path: &Path) -> String {
        format!("{}: {path}", self.store)
    }

    fn store_error(&self, path: &Path, doing: &'static str, source: StoreError) -> SinkError {
        SinkError::Store { place: self.place(path), doing, source }
    }

    fn json_error(&self, path: &Path, source: serde_json::Error) -> SinkError {
        SinkError::Json { place: self.place(path), source }
    }
}

impl Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place(&self.prefix))
    }
}

impl Sink for Objects {
    fn folder(&self) -> &FilePath {
        self.mirror.folder()
    }

    fn has_locks(&self) -> bool {
        false
    }

    fn commit_policy(&self) -> CommitPolicy {
        CommitPolicy::OBJECTS
    }

    fn create_run<'a>(&'a self, manifest: &'a RunManifest) -> SinkReply<'a, RunDir> {
        Box::pin(self.make_run(manifest))
    }

    fn runs(&self) -> SinkReply<'_, Vec<FoundRun>> {
        Box::pin(self.find_runs())
    }

    fn existing<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, RunDir> {
        Box::pin(self.fetch_manifest(run))
    }

    fn read<'a>(&'a self, file: &'a str) -> SinkReply<'a, Option<Bytes>> {
        Box::pin(async move {
            // Packs are large and never change, so read the mirror first.
            let mirrored = file.starts_with("packs/");
            if mirrored && let Some(content) = self.mirror.read(file).await? {
                return Ok(Some(content));
            }
            let content = self.get(&self.path(file)).await?;
            if mirrored && let Some(content) = &content {
                self.mirror.replace(file, content.clone()).await?;
            }
            Ok(content)
        })
    }

    fn replace<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, ()> {
        Box::pin(async move { self.put(&self.path(file), content, PutMode::Overwrite).await })
    }

    fn create<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        Box::pin(async move { self.put_new(&self.path(file), content).await })
    }

    fn remove<'a>(&'a self, file: &'a str) -> SinkReply<'a, ()> {
        Box::pin(async move {
            let path = self.path(file);
            match self.store.delete(&path).await {
                Err(StoreError::NotFound { .. }) | Ok(()) => Ok(()),
                Err(source) => Err(self.store_error(&path, "remove", source)),
            }
        })
    }

    fn list<'a>(&'a self, folder: &'a str) -> SinkReply<'a, Vec<String>> {
        Box::pin(async move {
            let path = self.path(folder);
            let name = |object: object_store::ObjectMeta| object.location.filename().map(str::to_owned);
            let listed = self.store.list(Some(&path)).try_filter_map(|object| ready(Ok(name(object))));
            let mut names: Vec<String> =
                listed.try_collect().await.map_err(|source| self.store_error(&path, "list", source))?;
            names.sort_unstable();
            Ok(names)
        })
    }

    fn write_seal<'a>(&'a self, run: &'a RunId, name: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        Box::pin(async move {
            let made = self.put_new(&self.run_path(run).join("log").join(name), content.clone()).await?;
            if made {
                let path = self.mirror.run_dir(run)?.log().join(name);
                blocking(move || folder::replace(&path, &content)).await?;
            }
            Ok(made)
        })
    }

    fn remove_run<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, ()> {
        Box::pin(self.remove_whole(run))
    }

    fn open_log<'a>(
        &'a self,
        run: &'a RunId,
        options: LogOptions,
        policy: CommitPolicy,
    ) -> SinkReply<'a, OpenLog> {
        Box::pin(async move { OpenLog::start(self.open_writer(run, options).await?, policy) })
    }

    fn refresh<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, usize> {
        Box::pin(self.fetch_log(run))
    }

    fn check(&self) -> SinkReply<'_, SinkReport> {
        Box::pin(self.probe())
    }
}

/// The order in which the files of a log are fetched; `None` for other files. Seals come last: they refer to segments.
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
