//! Remembers batches on disk, so that a process finds those of the one before it.
//!
//! Each batch has a document: where it was asked, the provider's id of it, and the ids of its questions, which are
//! hashes. It holds no text and no key. It is written before the provider is asked for the batch, and again when its id
//! is known.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::RunId;
use domain::ids::BatchName;
use domain::machine;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How long a batch is remembered after its creation. A dialogue of three rounds may take three days, and after a
/// restart begins anew: it then finds its earlier answers at the provider, which keeps them for longer than this.
const NOTE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Largest document that is read. One of 100 000 questions has a third of it.
const NOTE_BYTES_MAX: u64 = 16 << 20;

/// The version of documents.
const NOTE_VERSION: u32 = 1;

/// What others may do with a document: nothing.
const PRIVATE: u32 = 0o600;

/// For what a batch was asked, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct BatchScope {
    pub run: RunId,
    pub connector: String,
    pub endpoint: Option<String>,
    pub model: String,
}

/// What is remembered of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BatchNote {
    version: u32,
    pub scope: BatchScope,
    pub name: BatchName,
    /// The provider's id; `None` until it has said it.
    pub id: Option<String>,
    created_at: Timestamp,
    /// The ids of its questions.
    pub requests: Vec<String>,
}

impl BatchNote {
    /// A batch that no provider knows yet.
    pub(super) fn new(scope: BatchScope, requests: Vec<String>, created_at: Timestamp) -> Self {
        let name = BatchName::random();
        Self { version: NOTE_VERSION, scope, name, id: None, created_at, requests }
    }
}

/// A folder of documents, or none: then batches are remembered as long as this process lives. What cannot be written is
/// logged: batches go on without it, and are asked again after a restart.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchLedger {
    folder: Option<PathBuf>,
}

impl BatchLedger {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// The batches that were asked for this, the earliest first. Those that are too old are removed.
    pub(super) async fn read(&self, scope: &BatchScope) -> Vec<BatchNote> {
        let scope = scope.clone();
        self.read_where(move |found| *found == scope).await
    }

    /// The same of all that is remembered.
    pub(super) async fn read_all(&self) -> Vec<BatchNote> {
        self.read_where(|_| true).await
    }

    async fn read_where(&self, wanted: impl Fn(&BatchScope) -> bool + Send + 'static) -> Vec<BatchNote> {
        let Some(folder) = self.folder.clone() else { return Vec::new() };
        let now = machine::now();
        let read = aside::run(move || notes_in(&folder, wanted, now)).await;
        match read.map_err(io::Error::other).flatten() {
            Ok(notes) => notes,
            Err(error) => {
                tracing::warn!(%error, "batches of earlier processes cannot be looked for");
                Vec::new()
            }
        }
    }

    pub(super) async fn write(&self, note: &BatchNote) {
        let Some(folder) = self.folder.clone() else { return };
        let (name, json) = (note.name.clone(), serde_json::to_vec(note));
        let written = aside::run(move || write_note(&folder, &name, &json?)).await;
        if let Err(error) = written.map_err(io::Error::other).flatten() {
            tracing::warn!(batch = %note.name, %error, "a batch is not remembered: after a restart it is asked again");
        }
    }

    pub(super) async fn remove(&self, name: &BatchName) {
        let Some(folder) = self.folder.clone() else { return };
        let path = note_path(&folder, name);
        let removed =
            aside::run(move || std::fs::remove_file(path)).await.map_err(io::Error::other).flatten();
        if let Err(error) = removed.or_else(if_gone) {
            tracing::warn!(batch = %name, %error, "a batch cannot be forgotten");
        }
    }
}

fn if_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn note_path(folder: &Path, name: &BatchName) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Writes a document so that it is there as a whole or not at all, also after a power cut.
fn write_note(folder: &Path, name: &BatchName, json: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = note_path(folder, name);
    let part = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&part)?;
    file.write_all(json)?;
    file.sync_all()?;
    std::fs::rename(&part, &path)?;
    // Without it, a synced file can be lost with its name.
    File::open(folder)?.sync_all()
}

fn notes_in(
    folder: &Path,
    wanted: impl Fn(&BatchScope) -> bool,
    now: Timestamp,
) -> io::Result<Vec<BatchNote>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut notes = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        match read_note(&path) {
            Ok(note) if is_old(&note, now) => std::fs::remove_file(&path).or_else(if_gone)?,
            Ok(note) if wanted(&note.scope) => notes.push(note),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "no document of a batch that is known here");
            }
        }
    }
    notes.sort_by_key(|note: &BatchNote| note.created_at);
    Ok(notes)
}

fn read_note(path: &Path) -> io::Result<BatchNote> {
    let note: BatchNote = serde_json::from_slice(&named_files::read(path, NOTE_BYTES_MAX)?)?;
    let is_named_so = path.file_stem().is_some_and(|stem| stem == note.name.as_str());
    if note.version == NOTE_VERSION && is_named_so {
        return Ok(note);
    }
    Err(io::Error::other("it has another version or another name"))
}

fn is_old(note: &BatchNote, now: Timestamp) -> bool {
    let seconds = now.as_second().saturating_sub(note.created_at.as_second());
    u64::try_from(seconds).is_ok_and(|seconds| seconds > NOTE_KEPT.as_secs())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn scope(run: &str) -> BatchScope {
        BatchScope { run: run.into(), connector: "c".to_owned(), endpoint: None, model: "m".to_owned() }
    }

    fn note(run: &str, created_at: Timestamp) -> BatchNote {
        BatchNote::new(scope(run), vec!["a".to_owned(), "b".to_owned()], created_at)
    }

    #[tokio::test]
    async fn a_batch_is_remembered_for_its_run_until_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("work/batches");
        let ledger = BatchLedger::in_folder(folder.clone());
        assert!(ledger.read(&scope("r")).await.is_empty(), "no folder");
        let now = machine::now();
        let before = |seconds: i64| Timestamp::from_second(now.as_second() - seconds).unwrap();
        let mut later = note("r", now);
        let (earlier, other) = (note("r", before(3600)), note("s", now));
        let old = note("r", before(8 * 24 * 3600));
        for note in [&later, &earlier, &other, &old] {
            ledger.write(note).await;
        }
        later.id = Some("batch_1".to_owned());
        ledger.write(&later).await;
        std::fs::write(folder.join("torn.json"), "{").unwrap();
        assert_eq!(ledger.read(&scope("r")).await, [earlier.clone(), later.clone()]);
        assert_eq!(ledger.read_all().await.len(), 3, "of both runs");
        assert!(!note_path(&folder, &old.name).exists());
        let mode = std::fs::metadata(note_path(&folder, &later.name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        ledger.remove(&earlier.name).await;
        ledger.remove(&earlier.name).await;
        assert_eq!(ledger.read(&scope("r")).await, [later]);
    }

    #[tokio::test]
    async fn without_a_folder_nothing_is_remembered() {
        let ledger = BatchLedger::default();
        ledger.write(&note("r", machine::now())).await;
        assert!(ledger.read(&scope("r")).await.is_empty());
    }
}
