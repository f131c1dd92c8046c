//! A seal that cannot be written, such as on a full disk: nobody takes a run for sealed that is not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use domain::FailureCause;
use domain::RunId;
use domain::control::{Control, RunPhase};
use domain::exchange::WorkExchange;
use results::log::{CommitPolicy, LogOptions, Seals};
use results::run_dir::FoundRun;
use results::sink::{OpenLog, SinkError, SinkReply, SinkReport};
use results::{RunDir, RunManifest, Sink};

use super::ground::*;
use super::worker::*;

/// A folder on which no seal can be written while it is full.
#[derive(Debug)]
struct FullDisk {
    sink: Arc<dyn Sink>,
    is_full: AtomicBool,
}

impl std::fmt::Display for FullDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sink.fmt(f)
    }
}

impl Sink for FullDisk {
    fn folder(&self) -> &Path {
        self.sink.folder()
    }

    fn has_locks(&self) -> bool {
        self.sink.has_locks()
    }

    fn commit_policy(&self) -> CommitPolicy {
        self.sink.commit_policy()
    }

    fn create_run<'a>(&'a self, manifest: &'a RunManifest) -> SinkReply<'a, RunDir> {
        self.sink.create_run(manifest)
    }

    fn runs(&self) -> SinkReply<'_, Vec<FoundRun>> {
        self.sink.runs()
    }

    fn existing<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, RunDir> {
        self.sink.existing(run)
    }

    fn read<'a>(&'a self, file: &'a str) -> SinkReply<'a, Option<Bytes>> {
        self.sink.read(file)
    }

    fn replace<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, ()> {
        self.sink.replace(file, content)
    }

    fn create<'a>(&'a self, file: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        self.sink.create(file, content)
    }

    fn remove<'a>(&'a self, file: &'a str) -> SinkReply<'a, ()> {
        self.sink.remove(file)
    }

    fn list<'a>(&'a self, folder: &'a str) -> SinkReply<'a, Vec<String>> {
        self.sink.list(folder)
    }

    fn write_seal<'a>(&'a self, run: &'a RunId, name: &'a str, content: Bytes) -> SinkReply<'a, bool> {
        if self.is_full.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(SinkError::Ended)));
        }
        self.sink.write_seal(run, name, content)
    }

    fn remove_run<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, ()> {
        self.sink.remove_run(run)
    }

    fn open_log<'a>(
        &'a self,
        run: &'a RunId,
        options: LogOptions,
        policy: CommitPolicy,
    ) -> SinkReply<'a, OpenLog> {
        self.sink.open_log(run, options, policy)
    }

    fn refresh<'a>(&'a self, run: &'a RunId) -> SinkReply<'a, usize> {
        self.sink.refresh(run)
    }

    fn check(&self) -> SinkReply<'_, SinkReport> {
        self.sink.check()
    }
}

#[tokio::test]
async fn a_run_whose_seal_could_not_be_written_finishes_with_the_next_round_that_can() {
    let ground = Ground::new();
    let sink = Arc::new(FullDisk {
        sink: results::sink::folder(ground.data.path()),
        is_full: AtomicBool::new(false),
    });
    let one = Started::of(config(), Arc::clone(&ground.queue), Arc::clone(&sink) as Arc<dyn Sink>);
    let run = one.submit(submission(1)).await.unwrap().run;
    let log = ground.data.path().join("runs").join(run.as_str()).join("log");
    let seals = || Seals::read(&log).unwrap().0;
    let full = |is_full| sink.is_full.store(is_full, Ordering::Relaxed);
    let mut worker = Worker::new("w");
    worker.exchange(&one, 50).await;
    for grant in std::mem::take(&mut worker.held) {
        let fail = |key| failed(&grant.lease, key, FailureCause::Timeout);
        one.deliver(keys(&grant).iter().map(fail).collect()).await.unwrap();
        worker.finished.push(grant.lease);
    }
    worker.exchange(&one, 0).await;
    full(true);
    for _ in 0..3 {
        let _ = one.tend().await;
        assert!(!seals().is_closed());
        assert_ne!(one.view(&run).await.unwrap().phase, RunPhase::Finished, "its winners are not fixed");
    }
    full(false);
    one.tend().await.unwrap();
    assert_eq!(one.view(&run).await.unwrap().phase, RunPhase::Finished);
    assert!(seals().is_closed());

    // The same where it is opened again.
    full(true);
    assert!(one.retry(&run, &[]).await.is_err());
    full(false);
    one.retry(&run, &[]).await.unwrap();
    one.tend().await.unwrap();
    assert!(!seals().is_closed());
    let mut asked = Vec::new();
    worker.work_off(&one, &mut asked).await;
    assert_eq!(asked.len(), 4);
    one.tend().await.unwrap();
    one.tend().await.unwrap();
    let view = one.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 4));
    assert!(seals().is_closed());
    assert_eq!(view, recomputed(&one, &view).await);
}
