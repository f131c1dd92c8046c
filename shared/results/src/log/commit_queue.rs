//! The asynchronous front of a log: many callers, one sync for all who wait.
//!
//! A thread of its own writes and syncs, so that no async thread ever blocks on the disk. While it syncs one
//! group, the next one gathers in the bounded channel: the slower the disk, the larger the groups. On a fast disk a
//! short pause between syncs does the same.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::envelope::LogEntry;
use super::error::LogError;
use super::writer::{LogWriter, SegmentFile};

/// Entries waiting for the writer; callers beyond that wait for room.
pub const QUEUE_ENTRIES: usize = 1024;

/// Entries of one group at most, so that the first caller of a group does not wait for ever more of them.
pub const GROUP_ENTRIES: usize = 1024;

/// Time from the end of one sync to the next group at least. On a fast disk groups would otherwise hold an entry or
/// two, and the syncs, each with a system call to the device and a frame of its own, would cost more than
/// everything else about an entry. An entry after a quiet moment does not wait.
const SYNC_PAUSE: Duration = Duration::from_millis(5);

/// Why an entry is not durable. Every caller of a group gets the same error, hence the [`Arc`].
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// The log refused, see [`LogError`] for what may be tried again.
    #[error(transparent)]
    Log(#[from] Arc<LogError>),
    /// The writer has ended.
    #[error("the record log is closed")]
    Closed,
}

impl CommitError {
    /// Whether the same entry may be committed later: there was no room on the disk.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Log(error) if matches!(**error, LogError::DiskFull { .. }))
    }
}

struct Waiting {
    entry: LogEntry,
    ack: oneshot::Sender<Result<(), CommitError>>,
}

/// A handle to the writer's thread; clones share it. The thread ends when the last handle is dropped and all
/// waiting entries are written.
#[derive(Clone)]
pub struct CommitQueue {
    waiting: mpsc::Sender<Waiting>,
}

/// Waits for the writer's thread to end.
pub struct CommitThread(JoinHandle<()>);

impl CommitThread {
    /// Blocks until every handle is dropped and the last group is durable. Call it outside of async code.
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
    ) -> std::io::Result<(Self, CommitThread)> {
        let (sender, receiver) = mpsc::channel(QUEUE_ENTRIES);
        let thread =
            std::thread::Builder::new().name("record-log".into()).spawn(move || write(writer, receiver))?;
        Ok((Self { waiting: sender }, CommitThread(thread)))
    }

    /// Returns when the entry is durable. Dropping the future before leaves open whether it will be.
    pub async fn commit(&self, entry: LogEntry) -> Result<(), CommitError> {
        let (ack, acknowledged) = oneshot::channel();
        self.waiting.send(Waiting { entry, ack }).await.map_err(|_| CommitError::Closed)?;
        acknowledged.await.map_err(|_| CommitError::Closed)?
    }
}

fn write<F: SegmentFile>(mut writer: LogWriter<F>, mut waiting: mpsc::Receiver<Waiting>) {
    let mut group = Vec::with_capacity(GROUP_ENTRIES);
    let mut synced: Option<Instant> = None;
    while waiting.blocking_recv_many(&mut group, GROUP_ENTRIES) > 0 {
        let pause = synced.and_then(|synced| SYNC_PAUSE.checked_sub(synced.elapsed()));
        if let Some(pause) = pause.filter(|_| group.len() < GROUP_ENTRIES) {
            std::thread::sleep(pause);
            while group.len() < GROUP_ENTRIES
                && let Ok(more) = waiting.try_recv()
            {
                group.push(more);
            }
        }
        let result = write_group(&mut writer, &mut group).map_err(|error| CommitError::Log(Arc::new(error)));
        for caller in group.drain(..) {
            // A caller that no longer listens has nothing to be told.
            let _ = caller.ack.send(result.clone());
        }
        synced = Some(Instant::now());
    }
}

/// Appends and commits. Callers whose own entry is at fault are answered and taken out of the group; what is
/// returned concerns all who stay in it.
fn write_group<F: SegmentFile>(writer: &mut LogWriter<F>, group: &mut Vec<Waiting>) -> Result<(), LogError> {
    let mut failure = None;
    for caller in std::mem::replace(group, Vec::with_capacity(GROUP_ENTRIES)) {
        // After a failure the group is gone from the log: the rest of it must not start another one.
        let appended = if failure.is_none() { writer.append(&caller.entry) } else { Ok(()) };
        match appended {
            Ok(()) => group.push(caller),
            Err(error @ (LogError::EntryTooLong { .. } | LogError::Encode { .. })) => {
                let _ = caller.ack.send(Err(CommitError::Log(Arc::new(error))));
            }
            Err(error) => {
                failure = Some(error);
                group.push(caller);
            }
        }
    }
    match failure {
        Some(error) => Err(error),
        None => writer.commit().map(|_| ()),
    }
}
