//! Opens files that a configuration or a manifest names.
//!
//! The configuration may come from somebody else, and a name in it may be a pipe without a writer, a terminal, or a
//! device without end. So only regular files are opened, opening never waits, and reading has a limit.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    /// A folder, a pipe, a device, a socket.
    NoFile,
    /// Longer than so many bytes.
    TooLong(u64),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("is not a regular file"),
            Self::TooLong(most) => write!(f, "is longer than the {most} bytes that are read"),
        }
    }
}

impl std::error::Error for Unfit {}

/// Opens a regular file for reading. Never waits for a writer.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can already do something, so it is looked at first; then what was opened, which may be another.
    check(&fs::metadata(path)?)?;
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(without_waiting).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// It cannot be read, is not a regular file, or is longer.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, Unfit::TooLong(bytes_max));
    if file.metadata()?.len() > bytes_max {
        return Err(too_long());
    }
    // It may grow while it is read, and files of the kernel do not say how long they are.
    let mut content = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max { Err(too_long()) } else { Ok(content) }
}

/// Like [`read`], for text.
///
/// # Errors
/// As for [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn check(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    // Reading a folder says so too, and callers have advice for it.
    let kind = if found.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
    Err(io::Error::new(kind, Unfit::NoFile))
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [&pipe, &link, folder.path(), Path::new("/dev/zero"), Path::new("/dev/tty")] {
            let refused = read(path, 10).unwrap_err();
            assert!(refused.to_string().contains("is not a regular file"), "{}: {refused}", path.display());
        }
        assert_eq!(open(Path::new("/no/such")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn no_more_is_read_than_is_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "twelve bytes").unwrap();
        assert_eq!(read_text(&path, 12).unwrap(), "twelve bytes");
        assert!(read(&path, 11).unwrap_err().to_string().contains("longer than the 11 bytes"));
        // It says that it is empty, and is not.
        assert!(read(Path::new("/proc/self/status"), 10).is_err());
    }
}
