//! Files that appear under their name only when complete, and stay there after a power cut.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;

/// Replaces (or makes) the file `path` with what `write` writes and gives back. Until everything is synced the
/// content lies in `path` + `.part`; after an error the old file is still there. For one writer at a time.
pub fn replace(path: &Path, write: impl FnOnce(File) -> io::Result<File>) -> io::Result<()> {
    replace_by(path, ".part", write)
}

/// Like [`replace`], for files that several processes may replace at the same time, perhaps on several machines: one of
/// their contents is there in the end, as a whole. What a crash leaves behind is not overwritten by the next writer, hence
/// for small files.
pub fn replace_shared(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_by(path, &unique_ending(), |mut file| {
        file.write_all(content)?;
        Ok(file)
    })
}

/// Makes a small file that several processes may make at the same time: the first one does, and it never changes. Returns
/// whether this call did.
pub fn create_shared(path: &Path, content: &[u8]) -> io::Result<bool> {
    let part = part_of(path, &unique_ending());
    let linked = File::create(&part)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| match fs::hard_link(&part, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // A file system without links: of two at the very same time the last one wins.
            Err(_) if !path.exists() => fs::rename(&part, path).map(|()| true),
            linked => linked.map(|()| true),
        })
        .and_then(|made| sync_folder(folder_of(path)).map(|()| made));
    // That it may already be gone is no second error.
    let _ = fs::remove_file(&part);
    linked
}

/// Replaces a file by one that was prepared, and stays open. Nothing is synced.
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

/// Process numbers do not tell processes of several containers apart.
fn unique_ending() -> String {
    format!(".{:016x}.part", OsRng.next_u64())
}

fn part_of(path: &Path, ending: &str) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(ending);
    PathBuf::from(part)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn replace_by(path: &Path, ending: &str, write: impl FnOnce(File) -> io::Result<File>) -> io::Result<()> {
    let part = part_of(path, ending);
    let written = File::create(&part)
        .and_then(write)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&part, path))
        .and_then(|()| sync_folder(folder_of(path)));
    if written.is_err() {
        // The unfinished file is worthless; that it may already be gone is no second error.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Makes the names in a folder durable: a synced file whose name is not synced is lost all the same.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}
