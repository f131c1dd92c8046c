//! Takes deeds and writes them, on a thread of its own that writes what came together with one sync.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::entry::{AuditEntry, Deed};
use crate::repeats::Repeats;
use crate::series::{FILE_BYTES_MAX, Series};

/// Deeds that wait for the thread. An act beyond them is refused; a call beyond them is not counted.
const WAITING_MAX: usize = 1_024;

/// Deeds that are written with one sync.
const TOGETHER_MAX: usize = 256;

/// Time for which repetitions of an act are counted together, for those that may be.
const ACT_WINDOW: Duration = Duration::from_secs(600);

/// Time for which refusals of the same kind are counted together.
const REFUSAL_WINDOW: Duration = Duration::from_secs(60);

/// Time for which calls of an identity from one machine are counted together.
const CALL_WINDOW: Duration = Duration::from_secs(3_600);

/// How often windows are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The series of acts, and that of calls that are only counted.
const ACTS: &str = "acts";
const CALLS: &str = "calls";

/// Why an act cannot be noted, and must not be done therefore.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be written.
    #[error("nothing was done, because the audit log in {} cannot be written: {why}", folder.display())]
    Unwritable {
        /// Its folder.
        folder: PathBuf,
        why: String,
    },
    /// More acts come than can be written.
    #[error("nothing was done, because too many acts wait for the audit log; try again")]
    Busy,
}

/// The audit log of a coordinator. Clones share it; one made by [`none`](Self::none) notes nothing.
#[derive(Clone, Debug, Default)]
pub struct AuditLog(Option<Arc<Desk>>);

#[derive(Debug)]
struct Desk {
    folder: PathBuf,
    orders: SyncSender<Order>,
}

/// What the thread is asked to do.
enum Order {
    /// Writes an act, or counts it if it may be counted and was written lately.
    Act { deed: Deed, counted: bool, done: oneshot::Sender<Result<(), String>> },
    /// Counts a call that needs no answer.
    Call { deed: Deed, window: Duration },
    /// Writes all that is counted.
    Flush { done: oneshot::Sender<Result<(), String>> },
}

impl AuditLog {
    /// Notes nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Goes on with the files in a folder, which is created if needed, for its owner alone.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let acts = Series::open(folder, ACTS, FILE_BYTES_MAX)?;
        let calls = Series::open(folder, CALLS, FILE_BYTES_MAX)?;
        let (orders, waiting) = sync_channel(WAITING_MAX);
        let writer = Writer { acts, calls, repeats: Repeats::default(), began: Instant::now() };
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&waiting))?;
        Ok(Self(Some(Arc::new(Desk { folder: folder.to_owned(), orders }))))
    }

    /// Notes an act. It is on the disk when this returns, and may be done then.
    ///
    /// # Errors
    /// It is not on the disk.
    pub async fn act(&self, deed: Deed) -> Result<(), AuditError> {
        self.order(|done| Order::Act { deed, counted: false, done }).await
    }

    /// The same for an act that repeats itself, such as looking at the same run again and again: the first of ten minutes is
    /// on the disk when this returns, and the others are counted.
    ///
    /// # Errors
    /// It is not on the disk.
    pub async fn repeated_act(&self, deed: Deed) -> Result<(), AuditError> {
        self.order(|done| Order::Act { deed, counted: true, done }).await
    }

    /// Counts a refused attempt. The first of a minute is written soon.
    pub fn refused(&self, deed: Deed) {
        self.count(deed, REFUSAL_WINDOW);
    }

    /// Counts a call of a known identity. The first of an hour is written soon.
    pub fn called(&self, deed: Deed) {
        self.count(deed, CALL_WINDOW);
    }

    /// Writes all that is counted, before the process ends.
    ///
    /// # Errors
    /// It is not on the disk.
    pub async fn flush(&self) -> Result<(), AuditError> {
        self.order(|done| Order::Flush { done }).await
    }

    async fn order(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<(), String>>) -> Order,
    ) -> Result<(), AuditError> {
        let Some(desk) = &self.0 else { return Ok(()) };
        let unwritable = |why| AuditError::Unwritable { folder: desk.folder.clone(), why };
        let (done, is_done) = oneshot::channel();
        match desk.orders.try_send(order(done)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(AuditError::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(unwritable("its thread has ended".to_owned())),
        }
        let written = is_done.await.unwrap_or_else(|_| Err("its thread has ended".to_owned()));
        written.map_err(unwritable)
    }

    fn count(&self, deed: Deed, window: Duration) {
        if let Some(desk) = &self.0 {
            // A flood that leaves no room is not counted to the last call.
            let _ = desk.orders.try_send(Order::Call { deed, window });
        }
    }
}

/// The thread's own state.
struct Writer {
    acts: Series,
    calls: Series,
    repeats: Repeats,
    began: Instant,
}

/// Lines for one series, and who waits for them.
#[derive(Default)]
struct Page {
    lines: Vec<u8>,
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
    /// Counted deeds whose first line is among these.
    first: Vec<Deed>,
}

impl Page {
    fn add(&mut self, deed: Deed, at: Timestamp, times: u64) {
        // A value of texts and numbers is always written.
        if serde_json::to_writer(&mut self.lines, &AuditEntry { at, deed, times }).is_ok() {
            self.lines.push(b'\n');
        }
    }

    /// Writes the lines, and tells those who wait.
    fn close(self, series: &mut Series, repeats: &mut Repeats) {
        let written = if self.lines.is_empty() { Ok(()) } else { series.append(&self.lines) };
        if let Err(error) = &written {
            tracing::error!(%error, "the audit log cannot be written");
            self.first.iter().for_each(|deed| repeats.forget(deed));
        }
        for done in self.waiting {
            // Who asked may have gone.
            let _ = done.send(match &written {
                Ok(()) => Ok(()),
                Err(error) => Err(error.to_string()),
            });
        }
    }
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Order>) {
        let mut ends = false;
        while !ends {
            let mut orders = Vec::new();
            match waiting.recv_timeout(LOOK_EVERY) {
                Ok(order) => orders.push(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => ends = true,
            }
            orders.extend(waiting.try_iter().take(TOGETHER_MAX));
            self.write(orders, ends);
        }
    }

    fn write(&mut self, orders: Vec<Order>, ends: bool) {
        let (now, at) = (self.began.elapsed(), Timestamp::now());
        let (mut acts, mut calls) = (Page::default(), Page::default());
        let mut flushes = ends;
        for order in orders {
            match order {
                Order::Act { deed, counted, done } => {
                    self.act(&mut acts, deed.bounded(), counted, now, at);
                    acts.waiting.push(done);
                }
                Order::Call { deed, window } => {
                    if let Some(deed) = self.repeats.hear(deed.bounded(), window, now, at) {
                        tracing::info!(who = deed.who, from = deed.from, about = deed.about, "{}", deed.act);
                        calls.first.push(deed.clone());
                        calls.add(deed, at, 1);
                    }
                }
                Order::Flush { done } => {
                    flushes = true;
                    acts.waiting.push(done);
                }
            }
        }
        for (deed, last, times) in self.repeats.due(now, flushes) {
            calls.add(deed, last, times);
        }
        calls.close(&mut self.calls, &mut self.repeats);
        acts.close(&mut self.acts, &mut self.repeats);
    }

    fn act(&mut self, page: &mut Page, deed: Deed, counted: bool, now: Duration, at: Timestamp) {
        let deed = if counted { self.repeats.hear(deed, ACT_WINDOW, now, at) } else { Some(deed) };
        let Some(deed) = deed else { return };
        tracing::info!(who = deed.who, from = deed.from, about = deed.about, "{}", deed.act);
        if counted {
            page.first.push(deed.clone());
        }
        page.add(deed, at, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::read::read_all;

    fn deed(who: &str, act: &str, about: &str) -> Deed {
        Deed { who: who.to_owned(), act: act.to_owned(), about: about.to_owned(), ..Deed::default() }
    }

    fn said(folder: &Path) -> Vec<(String, String, u64)> {
        let entries = read_all(folder).unwrap().entries;
        entries.into_iter().map(|entry| (entry.deed.who, entry.deed.act, entry.times)).collect()
    }

    fn line(who: &str, act: &str, times: u64) -> (String, String, u64) {
        (who.to_owned(), act.to_owned(), times)
    }

    #[tokio::test]
    async fn an_act_is_on_the_disk_before_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::open(folder.path()).unwrap();
        log.act(deed("alice", "remove", "run")).await.unwrap();
        assert_eq!(said(folder.path()), [line("alice", "remove", 1)]);
        for _ in 0..10 {
            log.repeated_act(deed("alice", "read", "run")).await.unwrap();
        }
        assert_eq!(said(folder.path())[1..], [line("alice", "read", 1)]);
        log.flush().await.unwrap();
        assert_eq!(said(folder.path())[1..], [line("alice", "read", 1), line("alice", "read", 9)]);
    }

    #[tokio::test]
    async fn a_flood_of_refusals_is_counted_and_pushes_out_no_act() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::open(folder.path()).unwrap();
        log.act(deed("alice", "remove", "run")).await.unwrap();
        for _ in 0..100_000 {
            log.refused(deed("", "refused", "get_run"));
        }
        loop {
            // The thread may be behind.
            match log.flush().await {
                Ok(()) => break,
                Err(AuditError::Busy) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        }
        let acts = fs::read_to_string(folder.path().join("acts-00000001.jsonl")).unwrap();
        assert_eq!(acts.lines().count(), 1);
        let calls = fs::read_to_string(folder.path().join("calls-00000001.jsonl")).unwrap();
        // A line for the first, and one for those of each window that a test's machine needs.
        assert!((2..10).contains(&calls.lines().count()), "{calls}");
    }

    #[tokio::test]
    async fn what_cannot_be_written_must_not_be_done() {
        // Every write to it fails as on a full disk.
        if !Path::new("/dev/full").exists() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("acts-00000001.jsonl")).unwrap();
        let log = AuditLog::open(folder.path()).unwrap();
        let read = || log.repeated_act(deed("alice", "read", "run"));
        let refused = read().await.unwrap_err().to_string();
        assert!(refused.contains("nothing was done") && refused.contains("No space left"), "{refused}");
        fs::remove_file(folder.path().join("acts-00000001.jsonl")).unwrap();
        read().await.unwrap();
        assert_eq!(
            said(folder.path()),
            [line("alice", "read", 1)],
            "it was tried again, where there is room"
        );
    }
}
