//! A series of files to which lines are appended, of bounded size: the oldest file goes when a new one is begun.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Size of a file at which the next one is begun, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;

/// Files of a series.
const FILES_MAX: usize = 8;

/// The ending of audit files.
const ENDING: &str = ".jsonl";

#[derive(Debug)]
pub(super) struct Series {
    folder: PathBuf,
    name: &'static str,
    number: u64,
    file: File,
    bytes: u64,
    /// Whether half a line may stand at the end, so that the next one goes to another file.
    is_torn: bool,
    file_bytes_max: u64,
}

impl Series {
    /// Goes on with the newest file of a series in a folder, which is created for its owner alone.
    pub(super) fn open(folder: &Path, name: &'static str, file_bytes_max: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let newest = files_of(folder, name)?.pop();
        let number = newest.as_ref().map_or(1, |(number, _)| *number);
        let file = append_to(&folder.join(file_name(name, number)))?;
        let bytes = file.metadata()?.len();
        let mut series =
            Self { folder: folder.to_owned(), name, number, file, bytes, is_torn: false, file_bytes_max };
        // A process that was killed may have left half a line.
        series.is_torn = bytes > 0 && !ends_with_line(&series.path())?;
        sync_folder(folder)?;
        Ok(series)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(file_name(self.name, self.number))
    }

    /// Appends whole lines and syncs them. After an error none of them counts.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn || (self.bytes > 0 && self.bytes + lines.len() as u64 > self.file_bytes_max) {
            self.begin_file()?;
        }
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.bytes += lines.len() as u64,
            Err(_) => self.is_torn = self.file.set_len(self.bytes).is_err(),
        }
        written
    }

    fn begin_file(&mut self) -> io::Result<()> {
        let number = self.number + 1;
        let file = append_to(&self.folder.join(file_name(self.name, number)))?;
        let bytes = file.metadata()?.len();
        sync_folder(&self.folder)?;
        (self.file, self.number, self.bytes, self.is_torn) = (file, number, bytes, false);
        let files = files_of(&self.folder, self.name)?;
        for (_, path) in files.iter().rev().skip(FILES_MAX) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

fn file_name(series: &str, number: u64) -> String {
    format!("{series}-{number:08}{ENDING}")
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn ends_with_line(path: &Path) -> io::Result<bool> {
    Ok(fs::read(path)?.last() == Some(&b'\n'))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The files of a series, oldest first.
fn files_of(folder: &Path, series: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| {
            name.strip_suffix(ENDING)?.strip_prefix(series)?.strip_prefix('-')?.parse::<u64>().ok()
        });
        files.extend(number.map(|number| (number, path)));
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_bounded_in_number_and_size_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("audit");
        let mut series = Series::open(&home, "acts", 100).unwrap();
        for number in 0..1_000 {
            series.append(format!("{number:09}\n").as_bytes()).unwrap();
        }
        let files = files_of(&home, "acts").unwrap();
        assert_eq!(files.len(), FILES_MAX);
        assert_eq!(fs::read_to_string(&files.last().unwrap().1).unwrap().lines().last(), Some("000000999"));
        for (_, path) in &files {
            assert!(fs::metadata(path).unwrap().len() <= 100);
            assert_eq!(mode(path), 0o600);
        }
        assert_eq!(mode(&home), 0o700);
    }

    #[test]
    fn lines_of_an_earlier_process_stay_and_half_a_line_gets_no_other_half() {
        let folder = tempfile::tempdir().unwrap();
        Series::open(folder.path(), "acts", 100).unwrap().append(b"one\n").unwrap();
        Series::open(folder.path(), "acts", 100).unwrap().append(b"two\n").unwrap();
        let first = folder.path().join(file_name("acts", 1));
        assert_eq!(fs::read_to_string(&first).unwrap(), "one\ntwo\n");
        fs::write(&first, "one\nhal").unwrap();
        Series::open(folder.path(), "acts", 100).unwrap().append(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&first).unwrap(), "one\nhal");
        assert_eq!(fs::read_to_string(folder.path().join(file_name("acts", 2))).unwrap(), "three\n");
    }
}
