//! The asynchronous interface of a log: many callers share one sync.
//!
//! A dedicated thread writes and syncs, so that no async thread blocks on the disk. While it syncs one group, the
//! next one gathers in the bounded queue: the slower the disk, the larger the groups. On a fast disk, a short pause
//! between syncs has the same effect.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use domain::machine;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::envelope::{self, LogLine};
use super::error::LogError;
use super::lines::EntryLocation;
use super::writer::{LogWriter, SegmentFile};

/// Maximum number of batches waiting for the writer; further callers wait. Callers bound the bytes.
pub const QUEUE_BATCHES: usize = 1024;

/// Minimum time from the end of one sync to the next group. Without it, groups on a fast disk would have one or two lines, and
/// the syncs, each with a system call and a frame of its own, would cost more than everything else. The first line after a
/// pause does not wait.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a line is not durable. Every caller of a group gets the same error, hence the [`Arc`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// The log failed; see [`LogError`] for what may be retried.
    #[error(transparent)]
    Log(#[from] Arc<LogError>),
    /// The writer has ended.
    #[error("the record log is closed")]
    Closed,
}

impl CommitError {
    /// Whether the disk was full. The same line may be committed later, to the same log; after any other error it may not.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Log(error) if matches!(**error, LogError::DiskFull { .. }))
    }
}

/// The lines of one caller.
struct QueuedLines {
    lines: Vec<LogLine>,
    ack: oneshot::Sender<Result<Vec<EntryLocation>, CommitError>>,
}

/// A handle to the writer's thread; clones share it. The thread ends when the last handle is dropped and all
/// waiting lines are written.
#[derive(Clone, Debug)]
pub struct CommitQueue {
    waiting: mpsc::Sender<QueuedLines>,
}

/// Waits for the writer's thread to end. In a simulation there is none.
#[derive(Debug)]
pub struct CommitThread(Option<JoinHandle<()>>);

impl CommitThread {
    /// Blocks until every handle is dropped and the last group is durable. Call it outside async code.
    pub fn join(self) {
        if let Some(Err(panic)) = self.0.map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl CommitQueue {
    /// Starts the writer's thread.
    pub fn start<F: SegmentFile + Send + 'static>(
        writer: LogWriter<F>,
    ) -> std::io::Result<(Self, CommitThread)> {
        let (sender, receiver) = mpsc::channel(QUEUE_BATCHES);
        let thread = if machine::simulated().is_some() {
            tokio::spawn(write_in_turn(writer, receiver));
            None
        } else {
            let write = move || write(writer, receiver);
            Some(std::thread::Builder::new().name("record-log".into()).spawn(write)?)
        };
        Ok((Self { waiting: sender }, CommitThread(thread)))
    }

    /// Returns when all these lines are durable, and where they are. They must be JSON as written by `serde_json`, and the caller
    /// must know that records are records: [`Summary::parse`](crate::Summary::parse). If the future is dropped before, they may or
    /// may not become durable.
    ///
    /// # Errors
    /// If one line is invalid for the log, the whole batch is refused before any of it is written. After any other
    /// error some lines of the batch may be in the log.
    pub async fn commit_batch(&self, lines: Vec<LogLine>) -> Result<Vec<EntryLocation>, CommitError> {
        for LogLine::Record(json) | LogLine::Event(json) in &lines {
            envelope::check_raw(json).map_err(Arc::new)?;
        }
        let (ack, acknowledged) = oneshot::channel();
        let waiting = QueuedLines { lines, ack };
        self.waiting.send(waiting).await.map_err(|_| CommitError::Closed)?;
        acknowledged.await.map_err(|_| CommitError::Closed)?
    }
}

fn write<F: SegmentFile>(mut writer: LogWriter<F>, mut waiting: mpsc::Receiver<QueuedLines>) {
    let mut synced: Option<Instant> = None;
    while let Some(first) = waiting.blocking_recv() {
        if let Some(pause) = synced.and_then(|synced| PAUSE.checked_sub(synced.elapsed())) {
            std::thread::sleep(pause);
        }
        commit_waiting(&mut writer, first, &mut waiting);
        synced = Some(Instant::now());
    }
}

/// The same as a task of a simulation.
async fn write_in_turn<F: SegmentFile>(mut writer: LogWriter<F>, mut waiting: mpsc::Receiver<QueuedLines>) {
    let mut next = Instant::now();
    while let Some(first) = waiting.recv().await {
        tokio::time::sleep_until(next).await;
        commit_waiting(&mut writer, first, &mut waiting);
        next = Instant::now() + PAUSE;
    }
}

/// Commits what waits as one group, and tells the callers.
fn commit_waiting<F: SegmentFile>(
    writer: &mut LogWriter<F>,
    first: QueuedLines,
    waiting: &mut mpsc::Receiver<QueuedLines>,
) {
    let mut group = vec![first];
    while let Ok(caller) = waiting.try_recv() {
        group.push(caller);
    }
    let written = write_group(writer, &group).map_err(|error| CommitError::Log(Arc::new(error)));
    let mut places = written.map(Vec::into_iter);
    for caller in group {
        let of_caller = match &mut places {
            Ok(places) => Ok(places.by_ref().take(caller.lines.len()).collect()),
            Err(error) => Err(error.clone()),
        };
        // A caller that no longer listens has nothing to be told.
        let _ = caller.ack.send(of_caller);
    }
}

/// Appends and commits. After an error the group is gone from the log: the rest of it must not start another one.
fn write_group<F: SegmentFile>(
    writer: &mut LogWriter<F>,
    group: &[QueuedLines],
) -> Result<Vec<EntryLocation>, LogError> {
    for line in group.iter().flat_map(|caller| &caller.lines) {
        writer.append_checked(line)?;
    }
    writer.commit()
}
