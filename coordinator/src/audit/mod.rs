//! The audit log: who did what at a coordinator, in files that outlive the runs they are about.
//!
//! An act is written and synced before it is done; one that cannot be written is not done. Calls, and refused attempts at
//! them, stand in files of their own, so that a flood of them never pushes out an act. Of what repeats itself, the first
//! of a while is written.

mod read;
mod series;

use std::collections::HashMap;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::read::{AuditReading, read_all};
use self::series::{FILE_BYTES_MAX, Series};

/// Longest text of a line in bytes; names are shorter, and what a stranger sends is cut.
const TEXT_BYTES_MAX: usize = 300;

/// Time for which an act that repeats itself is not written again.
const ACT_AGAIN: Duration = Duration::from_secs(600);

/// Time for which equal refusals are not.
const REFUSAL_AGAIN: Duration = Duration::from_secs(60);

/// Time for which calls of an identity from one machine are not.
const CALL_AGAIN: Duration = Duration::from_secs(3_600);

/// Different deeds that are remembered. What comes beyond them is one deed of many.
const DEEDS_MAX: usize = 1_024;

/// Who does what is beyond [`DEEDS_MAX`].
const OTHERS: &str = "others";

/// Who did what, without the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deed {
    /// Name of the identity; empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// Address of its machine, without port; empty for acts of the coordinator's own machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// What was done, in one word, such as `remove` or `refused`.
    pub act: String,
    /// What it was done to, and why where that is known: a run, a worker, a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// A line of an audit file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub at: Timestamp,
    #[serde(flatten)]
    pub deed: Deed,
}

impl Deed {
    /// The same with texts of bounded length.
    fn bounded(mut self) -> Self {
        for text in [&mut self.who, &mut self.from, &mut self.act, &mut self.about] {
            if text.len() > TEXT_BYTES_MAX {
                let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                text.truncate(end);
            }
        }
        self
    }

    /// Its line, which is logged too.
    fn line(self) -> Vec<u8> {
        tracing::info!(who = self.who, from = self.from, about = self.about, "{}", self.act);
        // A value of texts is always written.
        let entry = AuditEntry { at: Timestamp::now(), deed: self };
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Why an act cannot be noted, and must not be done therefore.
#[derive(Clone, Debug, thiserror::Error)]
#[error("nothing was done, because the audit log in {} cannot be written: {why}", folder.display())]
pub struct AuditError {
    /// Its folder.
    folder: PathBuf,
    why: String,
}

/// The audit log of a coordinator. Clones share it; one made by [`none`](Self::none) notes nothing.
#[derive(Clone, Debug, Default)]
pub struct AuditLog(Option<Arc<AuditFiles>>);

#[derive(Debug)]
struct AuditFiles {
    folder: PathBuf,
    acts: Mutex<Series>,
    calls: Mutex<Series>,
    /// Lines of calls that nobody has written yet.
    called: Mutex<Vec<u8>>,
    /// Until when a deed that repeats itself is not written again.
    lately: Mutex<HashMap<Deed, Instant>>,
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
        let open = |name| Ok::<_, io::Error>(Mutex::new(Series::open(folder, name, FILE_BYTES_MAX)?));
        let (acts, calls) = (open("acts")?, open("calls")?);
        let (called, lately) = (Mutex::default(), Mutex::default());
        Ok(Self(Some(Arc::new(AuditFiles { folder: folder.to_owned(), acts, calls, called, lately }))))
    }

    /// Notes an act. It is on the disk when this returns, and may be done then.
    ///
    /// # Errors
    /// It is not on the disk.
    pub async fn act(&self, deed: Deed) -> Result<(), AuditError> {
        self.write(move |files| lock(&files.acts).append(&deed.bounded().line())).await
    }

    /// The same for an act that repeats itself, such as looking at the same run again and again, of which the first of ten
    /// minutes is noted.
    ///
    /// # Errors
    /// It is not on the disk.
    pub async fn repeated_act(&self, deed: Deed) -> Result<(), AuditError> {
        let Some(files) = &self.0 else { return Ok(()) };
        let deed = deed.bounded();
        if files.is_noted(&deed) {
            return Ok(());
        }
        self.act(deed.clone()).await?;
        files.note(deed, ACT_AGAIN);
        Ok(())
    }

    /// Notes a refused attempt, soon.
    pub fn refused(&self, deed: Deed) {
        self.call(deed, REFUSAL_AGAIN);
    }

    /// Notes a call of a known identity, soon.
    pub fn called(&self, deed: Deed) {
        self.call(deed, CALL_AGAIN);
    }

    /// Writes the calls that are to be written soon, before the process ends.
    ///
    /// # Errors
    /// They are not on the disk.
    pub async fn flush(&self) -> Result<(), AuditError> {
        self.write(AuditFiles::write_calls).await
    }

    fn call(&self, deed: Deed, again: Duration) {
        let Some(files) = &self.0 else { return };
        if let Some(deed) = files.note(deed.bounded(), again) {
            lock(&files.called).extend(deed.line());
            let files = Arc::clone(files);
            tokio::task::spawn_blocking(move || {
                if let Err(error) = files.write_calls() {
                    tracing::error!(%error, "the audit log cannot be written");
                }
            });
        }
    }

    async fn write(
        &self,
        write: impl FnOnce(&AuditFiles) -> io::Result<()> + Send + 'static,
    ) -> Result<(), AuditError> {
        let Some(files) = &self.0 else { return Ok(()) };
        let writes = Arc::clone(files);
        let written = tokio::task::spawn_blocking(move || write(&writes)).await;
        let unwritable = |why: String| {
            tracing::error!(why, "the audit log cannot be written");
            AuditError { folder: files.folder.clone(), why }
        };
        match written {
            Ok(written) => written.map_err(|error| unwritable(error.to_string())),
            Err(error) => Err(unwritable(error.to_string())),
        }
    }
}

impl AuditFiles {
    fn write_calls(&self) -> io::Result<()> {
        // Whoever has the file first takes what there is by then.
        let mut calls = lock(&self.calls);
        let lines = mem::take(&mut *lock(&self.called));
        if lines.is_empty() { Ok(()) } else { calls.append(&lines) }
    }

    /// Whether a deed was noted so lately that it is not written again.
    fn is_noted(&self, deed: &Deed) -> bool {
        lock(&self.lately).get(deed).is_some_and(|until| Instant::now() < *until)
    }

    /// Remembers a deed for a while. Returns what to write of it; `None` if it is remembered already.
    fn note(&self, mut deed: Deed, again: Duration) -> Option<Deed> {
        let (mut lately, now) = (lock(&self.lately), Instant::now());
        if !lately.contains_key(&deed) && lately.len() >= DEEDS_MAX {
            lately.retain(|_, until| now < *until);
            if lately.len() >= DEEDS_MAX {
                deed = Deed { act: deed.act, who: OTHERS.to_owned(), ..Deed::default() };
            }
        }
        let is_noted = lately.get(&deed).is_some_and(|until| now < *until);
        if is_noted {
            return None;
        }
        lately.insert(deed.clone(), now + again);
        Some(deed)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn deed(who: &str, act: &str, about: &str) -> Deed {
        Deed { who: who.to_owned(), act: act.to_owned(), about: about.to_owned(), ..Deed::default() }
    }

    fn said(folder: &Path) -> Vec<(String, String)> {
        let entries = read_all(folder).unwrap().entries;
        entries.into_iter().map(|entry| (entry.deed.who, entry.deed.act)).collect()
    }

    fn line(who: &str, act: &str) -> (String, String) {
        (who.to_owned(), act.to_owned())
    }

    #[test]
    fn a_line_names_what_is_known_and_no_more() {
        let long = Deed { act: "refused".to_owned(), about: "ü".repeat(TEXT_BYTES_MAX), ..Deed::default() };
        let deed = long.bounded();
        assert_eq!(deed.about.len(), TEXT_BYTES_MAX);
        let entry = AuditEntry { at: "2026-01-02T03:04:05Z".parse().unwrap(), deed };
        let line = serde_json::to_string(&entry).unwrap();
        assert!(line.starts_with(r#"{"at":"2026-01-02T03:04:05Z","act":"refused","about":"ü"#), "{line}");
        assert_eq!(serde_json::from_str::<AuditEntry>(&line).unwrap(), entry);
    }

    #[tokio::test]
    async fn an_act_is_on_the_disk_before_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::open(folder.path()).unwrap();
        log.act(deed("alice", "remove", "run")).await.unwrap();
        assert_eq!(said(folder.path()), [line("alice", "remove")]);
        for _ in 0..10 {
            log.repeated_act(deed("alice", "read", "run")).await.unwrap();
            assert_eq!(said(folder.path())[1..], [line("alice", "read")]);
        }
        log.repeated_act(deed("alice", "read", "another run")).await.unwrap();
        assert_eq!(said(folder.path()).len(), 3);
    }

    #[tokio::test]
    async fn a_flood_of_refusals_is_one_line_and_pushes_out_no_act() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::open(folder.path()).unwrap();
        log.act(deed("alice", "remove", "run")).await.unwrap();
        let lines = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap().lines().count();
        for _ in 0..100_000 {
            log.refused(deed("", "refused", "get_run"));
        }
        log.flush().await.unwrap();
        assert_eq!((lines("acts-00000001.jsonl"), lines("calls-00000001.jsonl")), (1, 1));
        // What is remembered is bounded, however many different ones there are.
        for number in 0..10 * DEEDS_MAX {
            log.refused(deed("", "refused", &number.to_string()));
        }
        log.flush().await.unwrap();
        assert_eq!(lines("calls-00000001.jsonl"), DEEDS_MAX + 1);
        assert_eq!(said(folder.path()).last(), Some(&line(OTHERS, "refused")));
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
        assert_eq!(said(folder.path()), [line("alice", "read")], "it was tried again, where there is room");
    }
}
