//! The audit log: who did what at a coordinator, in a file that outlives the runs it is about.
//!
//! An act is appended and synced before it is done; one that cannot be written is not done. Refused attempts are in the log of
//! the process only ([`service_kit::telemetry::refused`]), so that a flood of them never pushes out an act.

mod read;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::text::one_line;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::read::{AuditReading, read_all};

/// The file that acts are appended to.
const FILE: &str = "acts.jsonl";

/// The file before it.
const EARLIER_FILE: &str = "acts-earlier.jsonl";

/// Size in bytes beyond which a file becomes the earlier one, and the earlier one goes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Longest text of a line in bytes; names are shorter, and what a stranger sends is cut.
const TEXT_BYTES_MAX: usize = 300;

/// The act of looking at protected texts.
pub(crate) const LOOK: &str = "read";

/// Who did what, without the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// Name of the identity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// Address of its machine, without port; empty for acts of the coordinator's own machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// What was done, in one word, such as `remove`.
    pub act: String,
    /// What it was done to: a run, a worker, a pack.
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
    /// The same with texts of bounded length that steer nobody's terminal.
    fn bounded(mut self) -> Self {
        for text in [&mut self.who, &mut self.from, &mut self.act, &mut self.about] {
            *text = one_line(text, TEXT_BYTES_MAX);
        }
        self
    }

    /// Its line, which is logged too: a look at debug level, because an export of a judged benchmark looks hundreds of times.
    fn line(self) -> Vec<u8> {
        if self.act == LOOK {
            tracing::debug!(who = self.who, from = self.from, about = self.about, "{}", self.act);
        } else {
            tracing::info!(who = self.who, from = self.from, about = self.about, "{}", self.act);
        }
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
pub struct AuditLog(Option<Arc<AuditFolder>>);

#[derive(Debug)]
struct AuditFolder {
    folder: PathBuf,
    /// Held while a line is appended.
    appending: Mutex<()>,
}

impl AuditLog {
    /// Notes nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Goes on with the file in a folder, which is created if needed, for its owner alone.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        open_file(&folder.join(FILE))?;
        Ok(Self(Some(Arc::new(AuditFolder { folder: folder.to_owned(), appending: Mutex::default() }))))
    }

    /// Notes an act. It is on the disk when this returns, and may be done then.
    ///
    /// # Errors
    /// It is not on the disk.
    pub async fn act(&self, deed: Deed) -> Result<(), AuditError> {
        let Some(audit) = &self.0 else { return Ok(()) };
        let writes = Arc::clone(audit);
        let appended = tokio::task::spawn_blocking(move || {
            // It is logged before: a log that nobody reads on holds up only whom it is about.
            let line = deed.bounded().line();
            let _alone = writes.appending.lock().unwrap_or_else(PoisonError::into_inner);
            append(&writes.folder, line, FILE_BYTES_MAX)
        });
        appended.await.unwrap_or_else(|panicked| Err(panicked.into())).map_err(|error| {
            tracing::error!(%error, "the audit log cannot be written");
            AuditError { folder: audit.folder.clone(), why: error.to_string() }
        })
    }
}

/// Appends a line to the file in a folder and syncs it. After an error it does not count.
fn append(folder: &Path, line: Vec<u8>, file_bytes_max: u64) -> io::Result<()> {
    let path = folder.join(FILE);
    let mut file = open_file(&path)?;
    let mut bytes = file.metadata()?.len();
    if bytes > 0 && bytes + line.len() as u64 > file_bytes_max {
        fs::rename(&path, folder.join(EARLIER_FILE))?;
        file = open_file(&path)?;
        bytes = 0;
    }
    let mut last = [b'\n'];
    match bytes.checked_sub(1) {
        None => File::open(folder)?.sync_all()?,
        Some(at) => file.read_exact_at(&mut last, at)?,
    }
    // A process that was killed may have left half a line. It gets no other half.
    let line = if last == *b"\n" { line } else { [b"\n", &line[..]].concat() };
    let written = file.write_all(&line).and_then(|()| file.sync_data());
    if written.is_err() {
        // What cannot be taken back is half a line, or an act that was not done.
        let _ = file.set_len(bytes);
    }
    written
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn deed(who: &str, act: &str, about: &str) -> Deed {
        Deed { who: who.to_owned(), act: act.to_owned(), about: about.to_owned(), ..Deed::default() }
    }

    fn acts(folder: &Path) -> Vec<String> {
        read_all(folder).unwrap().entries.into_iter().map(|entry| entry.deed.act).collect()
    }

    #[test]
    fn a_line_names_what_is_known_and_no_more() {
        let long = Deed { act: "submit".to_owned(), about: "ü".repeat(TEXT_BYTES_MAX), ..Deed::default() };
        let deed = long.bounded();
        assert!(deed.about.len() <= TEXT_BYTES_MAX && deed.about.ends_with('…'), "{deed:?}");
        let entry = AuditEntry { at: "2026-01-02T03:04:05Z".parse().unwrap(), deed };
        let line = serde_json::to_string(&entry).unwrap();
        assert!(line.starts_with(r#"{"at":"2026-01-02T03:04:05Z","act":"submit","about":"ü"#), "{line}");
        assert_eq!(serde_json::from_str::<AuditEntry>(&line).unwrap(), entry);
    }

    #[test]
    fn files_are_bounded_in_number_and_size_and_private() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..1_000 {
            append(folder.path(), format!("{number:09}\n").into_bytes(), 100).unwrap();
        }
        let mut files: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert_eq!(files, [folder.path().join(EARLIER_FILE), folder.path().join(FILE)]);
        for path in &files {
            assert!(fs::metadata(path).unwrap().len() <= 100);
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_to_string(&files[1]).unwrap().lines().last(), Some("000000999"));
        let home = folder.path().join("audit");
        AuditLog::open(&home).unwrap();
        assert_eq!(fs::metadata(home).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[tokio::test]
    async fn an_act_is_on_the_disk_before_it_is_done_and_half_a_line_gets_no_other_half() {
        let folder = tempfile::tempdir().unwrap();
        for act in ["submit", "remove"] {
            AuditLog::open(folder.path()).unwrap().act(deed("alice", act, "run")).await.unwrap();
        }
        assert_eq!(acts(folder.path()), ["submit", "remove"]);
        let path = folder.path().join(FILE);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        AuditLog::open(folder.path()).unwrap().act(deed("alice", "pause", "run")).await.unwrap();
        assert_eq!(acts(folder.path()), ["submit", "pause"]);
        assert_eq!(read_all(folder.path()).unwrap().broken, 1);
    }

    #[tokio::test]
    async fn what_cannot_be_written_must_not_be_done() {
        // Every write to it fails as on a full disk.
        if !Path::new("/dev/full").exists() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        symlink("/dev/full", folder.path().join(FILE)).unwrap();
        let log = AuditLog::open(folder.path()).unwrap();
        let remove = || log.act(deed("alice", "remove", "run"));
        let refused = remove().await.unwrap_err().to_string();
        assert!(refused.contains("nothing was done") && refused.contains("No space left"), "{refused}");
        fs::remove_file(folder.path().join(FILE)).unwrap();
        remove().await.unwrap();
        assert_eq!(acts(folder.path()), ["remove"], "it was tried again, where there is room");
    }
}
