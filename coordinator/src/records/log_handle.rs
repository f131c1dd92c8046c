//! What a loaded run holds of its open log. Only the commit path opens it and sends records to it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::exchange::Receipt;
use results::Summary;
use results::log::CommitThread;
use results::run_dir::RunLock;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::errors::Result;
use crate::plan::numbering::Slot;
use crate::records::lag::WaitingRecord;

/// The commit path of a run's log, if opened.
#[derive(Default)]
pub(crate) struct LogHandle {
    pub committer: Option<Committer>,
    /// Its thread, which closes the log after the last record.
    pub thread: Option<CommitThread>,
    /// Whether it was opened before: a writer of a fleet opens once.
    pub reopened: bool,
    /// The lock, if there is only one writer.
    pub lock: Option<RunLock>,
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

/// The commit path of one run's log.
pub(crate) struct Committer {
    /// Bounded by the permits that each of them holds.
    pub checked: mpsc::UnboundedSender<Checked>,
    /// Set when the log has ended and must be reopened.
    pub broken: Arc<AtomicBool>,
}
