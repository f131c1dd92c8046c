//! What a loaded run holds of its open log. Only [`RecordLogs`](crate::runs::commit::RecordLogs) opens it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::exchange::Receipt;
use results::Summary;
use results::log::{CommitQueue, CommitThread};
use results::run_dir::RunLock;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::errors::Result;
use crate::plan::numbering::Slot;
use crate::records::lag::WaitingRecord;

/// A run's log, if it is open for writing.
#[derive(Default)]
pub(crate) struct LogHandle {
    pub open: Option<WritableLog>,
    /// Its thread, which closes the log after the last record.
    pub thread: Option<CommitThread>,
    /// The right to write the run.
    pub lock: Option<RunLock>,
    /// Whether the run is forgotten or loaded anew: nobody opens its log here any more.
    pub is_retired: bool,
}

/// An open log.
#[derive(Clone)]
pub(crate) struct WritableLog {
    /// The epoch in which it is written.
    pub epoch: u32,
    /// Takes records. Bounded by the permits that each of them holds.
    pub checked: mpsc::UnboundedSender<Checked>,
    /// Takes events, one at a time.
    pub queue: CommitQueue,
    /// Set when the log has ended and must be reopened.
    pub broken: Arc<AtomicBool>,
}

/// A checked delivery on its way to the log.
pub(crate) struct Checked {
    pub slot: Slot,
    pub summary: Summary,
    pub json: Arc<str>,
    pub receipt: oneshot::Sender<Result<Receipt>>,
    /// The space that it takes up until it is stored.
    #[expect(dead_code, reason = "held until the record is dropped")]
    pub room: OwnedSemaphorePermit,
    /// Its age, until it is stored.
    #[expect(dead_code, reason = "held until the record is dropped")]
    pub waiting: WaitingRecord,
}

impl LogHandle {
    /// The log, if it can be written.
    pub(crate) fn writable(&self) -> Option<&WritableLog> {
        self.open.as_ref().filter(|open| !open.broken.load(Ordering::Acquire))
    }

    /// Closes the log, after the records on their way.
    pub(crate) async fn close(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            let _ = service_kit::aside::run(|| thread.join()).await;
        }
    }
}
