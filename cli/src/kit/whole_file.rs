//! Files that are read and written as a whole: those that somebody named, which must be regular files, and small ones that are
//! replaced, so that whoever reads one meanwhile gets the old one or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use service_kit::named_files;

use crate::kit::exit_code::usage;

/// Longest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Permissions of a file for its owner alone.
pub const OWN: u32 = 0o600;

/// Permissions of a file for all whom the umask lets.
pub const FOR_ALL: u32 = 0o666;

/// Reads a file that a command line names. A pipe without a writer would be waited for, so it is refused.
///
/// # Errors
/// It cannot be read, or is no regular file.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    named_files::read(path, BYTES_MAX).with_context(|| format!("cannot read {}", path.display()))
}

/// The same for text.
///
/// # Errors
/// As for [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    named_files::read_text(path, BYTES_MAX).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file that must not be there, so that nothing of anybody is lost.
///
/// # Errors
/// It is there already (exit code 2); it cannot be written.
pub fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let shown = path.display();
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => usage!("{shown} is there already; name another file"),
        _ => anyhow::Error::from(error).context(format!("cannot write {shown}")),
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {shown}"))
}

/// Writes `path` + `.part` and renames it. For one writer at a time; the file need not outlive a power cut. A new file has these
/// permissions, but for those that the umask takes away.
pub fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&part);
    let written = file.and_then(|mut file| file.write_all(text)).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}
