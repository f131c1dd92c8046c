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
    // Process numbers do not tell processes of several containers apart.
    let part = format!(".{:016x}.part", OsRng.next_u64());
    replace_by(path, &part, |mut file| {
        file.write_all(content)?;
        Ok(file)
    })
}

fn replace_by(path: &Path, ending: &str, write: impl FnOnce(File) -> io::Result<File>) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(ending);
    let part = PathBuf::from(part);
    let written = File::create(&part)
        .and_then(write)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&part, path))
        .and_then(|()| sync_folder(path.parent().unwrap_or(Path::new("."))));
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
