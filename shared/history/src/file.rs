//! The event log: a file of JSON lines for each coordinator process, in the folder `events` beside the runs. `--event-log` turns
//! it on; nothing here deletes files.
//!
//! A thread writes the lines and does not sync them. They serve to find faults of processes that were killed, and what such a
//! process wrote survives in the kernel's page cache. If a write fails or the file is full, events are missing from then on, and
//! an event that says so ([`Event::Cut`]) takes their place as soon as it can be written. The coordinator works on either way.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::RunId;
use tokio::sync::{mpsc, oneshot};

use crate::event::{Event, Noted};

/// Maximum number of events waiting for the thread. Further callers wait for it, so a slow disk slows the coordinator down.
const WAITING: usize = 4_096;

/// Maximum size of a file, in bytes: some two million events. Later events are not noted.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// An event, and the channel to a caller that waits until it is written.
type Note = (Noted, Option<oneshot::Sender<()>>);

/// Takes events; one made by [`none`](Self::none) drops them.
#[derive(Clone, Debug, Default)]
pub struct EventLog(Option<mpsc::Sender<Note>>);

impl EventLog {
    /// Drops all events.
    pub fn none() -> Self {
        Self(None)
    }

    /// Creates a file for this process in a folder, which is created if needed.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}-{}.jsonl", now_ms(), std::process::id()));
        let file = File::create_new(&path)?;
        let (notes, waiting) = mpsc::channel(WAITING);
        std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || write_all(&path, file, waiting))?;
        Ok(Self(Some(notes)))
    }

    /// Whether events are noted.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes an event. An event about something that is about to happen is written when this returns.
    pub async fn write(&self, run: &RunId, event: Event) {
        let Some(notes) = &self.0 else { return };
        let is_about_to_happen = matches!(
            event,
            Event::Ending { .. } | Event::Reaping { .. } | Event::Acknowledged { .. } | Event::Removed { .. }
        );
        let noted = Noted { at_ms: now_ms(), run: run.clone(), event };
        let (written, until_written) = oneshot::channel();
        // Sending fails only if the thread has panicked. The event is dropped then: no call may fail for want of its history.
        if notes.send((noted, is_about_to_happen.then_some(written))).await.is_ok() && is_about_to_happen {
            let _ = until_written.await;
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn write_all(path: &Path, mut file: File, mut waiting: mpsc::Receiver<Note>) {
    let (mut length, mut line, mut cut) = (0, Vec::new(), false);
    while let Some((noted, written)) = waiting.blocking_recv() {
        line.clear();
        let run = noted.run.clone();
        let event = if cut || length > FILE_BYTES_MAX { Event::Cut {} } else { noted.event };
        // The gap is noted once. If that write fails too, it is tried again in place of the next event.
        let is_cut = matches!(event, Event::Cut {});
        if is_cut && cut && length > FILE_BYTES_MAX {
            continue;
        }
        let fits = serde_json::to_writer(&mut line, &Noted { at_ms: noted.at_ms, run, event }).is_ok();
        line.push(b'\n');
        match fits.then(|| file.write_all(&line)) {
            Some(Ok(())) => {
                length = if is_cut { u64::MAX } else { length + line.len() as u64 };
                cut |= is_cut;
            }
            Some(Err(error)) => {
                if !cut {
                    tracing::warn!(path = %path.display(), %error, "events are not noted any more");
                }
                cut = true;
            }
            None => {}
        }
        if let Some(written) = written {
            let _ = written.send(());
        }
    }
}

/// The events of a run, of all coordinators.
#[derive(Debug, Default)]
pub struct Events {
    /// Ordered by file name, then in the order in which they were noted.
    pub noted: Vec<Noted>,
    /// Number of files.
    pub files: usize,
    /// Number of lines that cannot be read; the last line of a killed process may be incomplete.
    pub unreadable: u64,
}

impl Events {
    /// Reads all files of a folder.
    ///
    /// # Errors
    /// The folder or a file of it cannot be read.
    pub fn read(folder: &Path, run: &RunId) -> io::Result<Self> {
        let mut of_run = Vec::new();
        let read = each(folder, |noted| {
            if noted.run == *run {
                of_run.push(noted);
            }
        })?;
        Ok(Self { noted: of_run, ..read })
    }

    /// The events of all runs, read in one pass.
    ///
    /// # Errors
    /// The folder or a file of it cannot be read.
    pub fn by_run(folder: &Path) -> io::Result<BTreeMap<RunId, Vec<Noted>>> {
        let mut events: BTreeMap<RunId, Vec<Noted>> = BTreeMap::new();
        each(folder, |noted| events.entry(noted.run.clone()).or_default().push(noted))?;
        Ok(events)
    }
}

/// Hands on every event of a folder; returns what was read, without the events.
fn each(folder: &Path, mut take: impl FnMut(Noted)) -> io::Result<Events> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let mut read = Events { files: paths.len(), ..Events::default() };
    for path in paths {
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            match serde_json::from_slice::<Noted>(&line?) {
                Ok(noted) => take(noted),
                Err(_) => read.unreadable += 1,
            }
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_back_by_run() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let log = EventLog::create(folder.path()).unwrap();
        let event =
            |record: &str| Event::Acknowledged { record: domain::RecordId::new(record), generation: 1 };
        runtime.block_on(async {
            log.write(&"a".into(), event("1")).await;
            log.write(&"b".into(), event("2")).await;
            log.write(&"a".into(), event("3")).await;
            EventLog::none().write(&"a".into(), event("4")).await;
        });
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        File::options().append(true).open(path).unwrap().write_all(b"{\"at_ms\":1,\"ru").unwrap();
        let events = Events::read(folder.path(), &"a".into()).unwrap();
        let found: Vec<Event> = events.noted.into_iter().map(|noted| noted.event).collect();
        assert_eq!(found, [event("1"), event("3")]);
        assert_eq!((events.files, events.unreadable), (1, 1));
        let all = Events::by_run(folder.path()).unwrap();
        assert_eq!(all.values().map(Vec::len).collect::<Vec<_>>(), [2, 1], "of run a, of run b");
    }
}
