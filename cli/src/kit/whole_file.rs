//! Replaces a small file as a whole: whoever reads it meanwhile gets the old one or the new one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Permissions of a file for its owner alone.
pub const OWN: u32 = 0o600;

/// Permissions of a file for all whom the umask lets.
pub const FOR_ALL: u32 = 0o666;

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
