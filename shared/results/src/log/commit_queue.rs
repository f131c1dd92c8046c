//! The asynchronous interface of a log: many callers share one sync.
//!
//! A dedicated thread writes and syncs, so that no async thread blocks on the disk. While it syncs one group, the
//! next one gathers in the bounded queue: the slower the disk, the larger the groups. On a fast disk, a short pause
//! between syncs has the same effect.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::envelope::{self, LogEntry};
use super::error::LogError;
use super::writer::{LogWriter, Position, SegmentFile};

/// Maximum number of batches waiting for the writer; further callers wait.
pub const QUEUE_BATCHES: usize = 1024;

/// Maximum of JSON waiting for the writer or being written, in KiB; further callers wait. A larger batch waits until
/// it is alone.
pub const QUEUE_KIB: u32 = 32 << 10;

/// Maximum time between two checks whether a group is full.
const SLICE: Duration = Duration::from_millis(10);

/// How entries are grouped; each group is synced once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPolicy {
    /// Minimum time from the end of one sync to the next group. The first entry after a pause does not wait.
    pub pause: Duration,
    /// A group with this many entries is written at once, so that its first caller does not wait for ever more of
    /// them.
    pub group_entries: usize,
    /// A group with this many bytes of JSON is written at once.
    pub group_bytes: usize,
}

impl CommitPolicy {
    /// For a disk. Without the pause, groups on a fast disk would have one or two entries, and the syncs, each with a
    /// system call and a frame of its own, would cost more than everything else.
    pub const DISK: Self =
        Self { pause: Duration::from_millis(5), group_entries: 1024, group_bytes: 4 << 20 };

    /// For a store where every sync creates an object and takes a round trip. Objects cost money each, and readers
    /// time: a few per minute and writer are enough.
    pub const OBJECTS: Self =
        Self { pause: Duration::from_secs(2), group_entries: 16 << 10, group_bytes: 16 << 20 };
}

/// Why an entry is not durable. Every caller of a group gets the same error, hence the [`Arc`].
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
    /// Whether the disk was full. The same entry may be committed later.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Log(error) if matches!(**error, LogError::DiskFull { .. }))
    }

    /// Whether the same entry may be committed later, to the same log.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Log(error) if matches!(**error, LogError::DiskFull { .. } | LogError::Unavailable { .. }))
    }
}

/// The records of one caller as JSON, each with its ticket.
struct Waiting {
    records: Vec<(u64, Arc<str>)>,
    bytes: usize,
    ack: oneshot::Sender<Result<Position, CommitError>>,
    /// Released when the caller is answered.
    _room: OwnedSemaphorePermit,
}

/// A handle to the writer's thread; clones share it. The thread ends when the last handle is dropped and all
/// waiting entries are written.
#[derive(Clone, Debug)]
pub struct CommitQueue {
    waiting: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// Waits for the writer's thread to end.
#[derive(Debug)]
pub struct CommitThread(JoinHandle<()>);

impl CommitThread {
    /// Blocks until every handle is dropped and the last group is durable. Call it outside async code.
    pub fn join(self) {
        if let Err(panic) = self.0.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl CommitQueue {
    /// Starts the writer's thread.
    pub fn start<F: SegmentFile + Send + 'static>(
        writer: LogWriter<F>,
        policy: CommitPolicy,
    ) -> std::io::Result<(Self, CommitThread)> {
        let (sender, receiver) = mpsc::channel(QUEUE_BATCHES);
        let thread = std::thread::Builder::new()
            .name("record-log".into())
            .spawn(move || write(writer, receiver, policy))?;
        let room = Arc::new(Semaphore::new(QUEUE_KIB as usize));
        Ok((Self { waiting: sender, room }, CommitThread(thread)))
    }

    /// Returns when the entry is durable. If the future is dropped before, the entry may or may not become durable.
    pub async fn commit(&self, entry: LogEntry) -> Result<Position, CommitError> {
        let json = serde_json::to_string(&entry.record)
            .map_err(|source| Arc::new(LogError::Encode { key: entry.record.key.to_string(), source }))?;
        self.commit_batch(vec![(entry.ticket, json.into())]).await
    }

    /// Returns when all these records, each with its ticket, are durable, with an end position that covers them. They
    /// must be JSON as written by `serde_json`, and the caller must know that they are records:
    /// [`RecordHead::parse`](super::RecordHead::parse). If the future is dropped before, they may or may not become
    /// durable.
    ///
    /// # Errors
    /// If one record is invalid for the log, the whole batch is refused before any of it is written. After any other
    /// error some records of the batch may be in the log.
    pub async fn commit_batch(&self, records: Vec<(u64, Arc<str>)>) -> Result<Position, CommitError> {
        for (_, record) in &records {
            envelope::check_raw(record).map_err(Arc::new)?;
        }
        let bytes = records.iter().map(|(_, record)| record.len()).sum::<usize>();
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).saturating_add(1).min(QUEUE_KIB);
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| CommitError::Closed)?;
        let (ack, acknowledged) = oneshot::channel();
        let waiting = Waiting { records, bytes, ack, _room: room };
        self.waiting.send(waiting).await.map_err(|_| CommitError::Closed)?;
        acknowledged.await.map_err(|_| CommitError::Closed)?
    }
}

/// The records written with one sync.
#[derive(Default)]
struct Group {
    callers: Vec<Waiting>,
    entries: usize,
    bytes: usize,
}

impl Group {
    fn push(&mut self, caller: Waiting) {
        self.entries += caller.records.len();
        self.bytes += caller.bytes;
        self.callers.push(caller);
    }

    fn is_full(&self, policy: &CommitPolicy) -> bool {
        self.entries >= policy.group_entries || self.bytes >= policy.group_bytes
    }

    /// Takes waiting batches until the group is full. Returns whether more may come.
    fn take_waiting(&mut self, waiting: &mut mpsc::Receiver<Waiting>, policy: &CommitPolicy) -> bool {
        while !self.is_full(policy) {
            match waiting.try_recv() {
                Ok(caller) => self.push(caller),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        false
    }
}

fn write<F: SegmentFile>(
    mut writer: LogWriter<F>,
    mut waiting: mpsc::Receiver<Waiting>,
    policy: CommitPolicy,
) {
    let mut synced: Option<Instant> = None;
    while let Some(first) = waiting.blocking_recv() {
        let mut group = Group::default();
        group.push(first);
        let mut may_grow = group.take_waiting(&mut waiting, &policy);
        while may_grow
            && let Some(pause) = synced.and_then(|synced| policy.pause.checked_sub(synced.elapsed()))
        {
            std::thread::sleep(pause.min(SLICE));
            may_grow = group.take_waiting(&mut waiting, &policy);
        }
        let result = write_group(&mut writer, &group).map_err(|error| CommitError::Log(Arc::new(error)));
        for caller in group.callers {
            // The caller may have gone away.
            let _ = caller.ack.send(result.clone());
        }
        synced = Some(Instant::now());
    }
}

/// Appends and commits. After an error the group is gone from the log, and the rest of it must not start another one.
fn write_group<F: SegmentFile>(writer: &mut LogWriter<F>, group: &Group) -> Result<Position, LogError> {
    for (ticket, record) in group.callers.iter().flat_map(|caller| &caller.records) {
        writer.append_checked(*ticket, record)?;
    }
    writer.commit().map(|_| writer.position())
}
