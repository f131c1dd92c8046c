//! Writes files that appear under their name only when complete and that survive a power cut; and errors of the
//! operating system with the path.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::machine;

/// What the operating system refused to do.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {doing}: {source}", path.display())]
pub struct IoError {
    /// The file or folder.
    pub path: PathBuf,
    /// What was tried, such as `read`.
    pub doing: &'static str,
    /// Why not.
    #[source]
    pub source: io::Error,
}

/// Adds to an error of the operating system what was tried, and where.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T, IoError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T, IoError> {
        self.map_err(|source| IoError { path: path.into(), doing, source: source.into() })
    }
}

/// The result of a file operation; `None` if the file does not exist.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Replaces (or creates) the file `path` with the output of `write`. Until everything is synced, the content is in
/// `path` + `.part`; after an error the old file is still there. For one writer at a time.
pub fn replace(path: &Path, write: impl FnOnce(File) -> io::Result<File>) -> io::Result<()> {
    let part = part_of(path, ".part");
    let written = File::create(&part)
        .and_then(write)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&part, path))
        .and_then(|()| sync_folder(folder_of(path)));
    if written.is_err() {
        // The unfinished file is worthless, and may already be gone.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Like [`replace`], for files that several processes may replace at the same time, perhaps on several machines: in
/// the end the file has one of their contents, complete. A crash leaves a file that no later writer replaces, so use it
/// for small files only.
pub fn replace_shared(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = part_of(path, &unique_ending());
    let written = write_synced(&part, content)
        .and_then(|()| fs::rename(&part, path))
        .and_then(|()| sync_folder(folder_of(path)));
    if written.is_err() {
        // The unfinished file is worthless, and may already be gone.
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Creates a small file that several processes may create at the same time: the first one succeeds, and the file
/// never changes. Returns whether this call did.
pub fn create_shared(path: &Path, content: &[u8]) -> io::Result<bool> {
    let part = part_of(path, &unique_ending());
    let linked = write_synced(&part, content)
        .and_then(|()| match fs::hard_link(&part, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // On a file system without links, the last of two simultaneous calls wins.
            Err(_) if !path.is_file() => fs::rename(&part, path).map(|()| true),
            linked => linked.map(|()| true),
        })
        .and_then(|made| sync_folder(folder_of(path)).map(|()| made));
    // It may already be gone.
    let _ = fs::remove_file(&part);
    linked
}

/// Replaces a file by a prepared one that stays open. Nothing is synced.
pub(crate) fn replace_with(path: &Path, prepare: impl FnOnce(&File) -> io::Result<()>) -> io::Result<File> {
    let part = part_of(path, &unique_ending());
    let written = File::create(&part)
        .and_then(|file| prepare(&file).map(|()| file))
        .and_then(|file| fs::rename(&part, path).map(|()| file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Process ids are not unique across containers.
fn unique_ending() -> String {
    format!(".{:016x}.part", machine::random(|| OsRng.next_u64()))
}

fn part_of(path: &Path, ending: &str) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(ending);
    PathBuf::from(part)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable: without it, a synced file can be lost with its name.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()
}

/// The names in a folder, in no particular order.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Opens a file for reading and writing as it is, or creates it.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).read(true).write(true).open(path)
}

/// Bytes that are free where a folder lies.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(folder)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}
