//! A sink whose calls can be made to fail.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use domain::RunId;
use results::log::LogOptions;
use results::run_dir::FoundRun;
use results::sink::{OpenLog, SinkError, SinkReply, SinkReport};
use results::{RunDir, RunManifest, Sink};

/// Whether a call of this name fails.
type Fails = Box<dyn FnMut(&'static str) -> bool + Send>;

/// A folder whose calls fail, as those of a network disk may, when a test says so.
pub(super) struct FailingSink {
    sink: Arc<dyn Sink>,
    fails: Mutex<Option<Fails>>,
}

impl FailingSink {
    /// A folder whose calls do not fail.
    pub(super) fn new(folder: &Path) -> Arc<Self> {
        Arc::new(Self { sink: results::sink::folder(folder), fails: Mutex::default() })
    }

    /// Lets the calls fail that this says so of, from now on.
    pub(super) fn fail(&self, fails: impl FnMut(&'static str) -> bool + Send + 'static) {
        *self.fails.lock().unwrap() = Some(Box::new(fails));
    }

    /// Lets no call fail.
    pub(super) fn recover(&self) {
        *self.fails.lock().unwrap() = None;
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        call: impl FnOnce() -> SinkReply<'a, T>,
    ) -> SinkReply<'a, T> {
        if self.fails.lock().unwrap().as_mut().is_some_and(|fails| fails(name)) {
            return Box::pin(std::future::ready(Err(SinkError::Ended)));
        }
        call()
    }
}

impl std::fmt::Debug for FailingSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sink.fmt(f)
    }
}

impl std::fmt::Display for FailingSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sink.fmt(f)
    }
}

impl Sink for FailingSink {
    fn folder(&self) -> &Path {
        self.sink.folder()
    }

    fn create_run<'a>(&'a self, manifest: &'a RunManifest) -> SinkReply<'a, RunDir> {
        self.answer("create_run", || self.sink.create_run(manifest))
    }

    fn runs(&self) -> SinkReply<'_, Vec<FoundRun>> {
        self.answer("runs", || self.sink.runs())
    }

    fn existing<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, RunDir> {
        self.answer("existing", || self.sink.existing(run))
    }

    fn read<'a>(&'a self, file: &'a str) -> SinkReply<'a, Option<Bytes>> {
        self.answer("read", || self.sink.read(file))
    }

    fn replace<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, ()> {
        self.answer("replace", || self.sink.replace(file, content))
    }

    fn create<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        self.answer("create", || self.sink.create(file, content))
    }

    fn remove<'a>(&'a self, file: &'a str) -> SinkReply<'a, ()> {
        self.answer("remove", || self.sink.remove(file))
    }

    fn list<'a>(&'a self, folder: &'a str) -> SinkReply<'a, Vec<String>> {
        self.answer("list", || self.sink.list(folder))
    }

    fn write_seal<'a>(&'a self, run: &'a RunId, name: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        self.answer("write_seal", || self.sink.write_seal(run, name, content))
    }

    fn remove_run<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, ()> {
        self.answer("remove_run", || self.sink.remove_run(run))
    }

    fn open_log<'a>(&'a self, run: &'a RunId, options: LogOptions) -> SinkReply<'a, OpenLog> {
        self.answer("open_log", || self.sink.open_log(run, options))
    }

    fn check(&self) -> SinkReply<'_, SinkReport> {
        self.answer("check", || self.sink.check())
    }
}
