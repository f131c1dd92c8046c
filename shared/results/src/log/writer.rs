//! Appends to a log, group by group.
//!
//! A group is everything appended between two commits. A commit is all or nothing: either every entry of the
//! group is on disk, synced, or the log is as it was before the group (or, after a failed sync, stopped). The
//! writer takes no lock; one process per log is the business of [`run_dir`](crate::run_dir).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::cipher::{LogCipher, Place};
use super::envelope::{self, LogEntry};
use super::error::LogError;
use super::frame::{Encoder, MAX_ENTRY_BYTES};
use super::segment::{self, Part, Segment};
use crate::files;

/// Sizes and protection of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A segment longer than this gets no further group, in bytes.
    pub segment_bytes: u64,
    /// A group with more lines than this, in bytes, is spread over several frames: bounds the memory of
    /// writer and readers.
    pub frame_bytes: usize,
    /// Encrypts every frame from now on. Frames that are there already stay as they are: each says for itself whether it is
    /// encrypted.
    pub cipher: Option<LogCipher>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_bytes: 256 << 20, frame_bytes: 4 << 20, cipher: None }
    }
}

/// What opening a log for writing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes cut off the end of the last segment: a group that was being written when a writer died.
    pub torn_bytes: u64,
    /// The segment they were cut off from.
    pub torn_segment: Option<PathBuf>,
}

/// A segment file as the writer needs it: the seam where tests put a disk that fails.
pub trait SegmentFile {
    /// Appends.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything appended would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file to this length; the next append goes there.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl SegmentFile for File {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Write::write_all(self, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

/// Opens segment files, new or existing, for appending.
type OpenSegment<F> = Box<dyn FnMut(&Path) -> io::Result<F> + Send>;

/// The only writer of a log.
pub struct LogWriter<F = File> {
    folder: PathBuf,
    options: LogOptions,
    open_segment: OpenSegment<F>,
    encoder: Encoder,
    segment: u32,
    file: F,
    /// Length of the segment that is known to be synced.
    synced: u64,
    /// Length written, synced or not.
    written: u64,
    /// Lines of the group that are in no frame yet.
    lines: Vec<u8>,
    line_count: u32,
    /// Entries of the group.
    entries: usize,
    /// Message of the failed sync, after which nothing is written any more.
    stopped: Option<String>,
}

impl LogWriter<File> {
    /// Opens the log in `folder`, which must exist, and continues behind its last intact frame. A torn tail is
    /// cut; damage elsewhere stays as it is for [`verify`](super::verify()) to tell.
    pub fn open(folder: &Path, options: LogOptions) -> Result<(Self, Recovery), LogError> {
        let open =
            |path: &Path| OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        Self::open_with(folder, options, Box::new(open))
    }
}

impl<F: SegmentFile> LogWriter<F> {
    /// Like [`LogWriter::open`], with another way to open segments.
    pub fn open_with(
        folder: &Path,
        options: LogOptions,
        mut open_segment: OpenSegment<F>,
    ) -> Result<(Self, Recovery), LogError> {
        let number = segment::list(folder)?.last().copied().unwrap_or(1);
        let path = segment::path(folder, number);
        let (good, torn) = if path.exists() { measure(&path)? } else { (0, 0) };
        let mut file = open_segment(&path).map_err(|error| LogError::io(&path, "open", error))?;
        file.truncate(good).map_err(|error| LogError::io(&path, "cut the torn end of", error))?;
        file.sync().map_err(|error| LogError::io(&path, "sync", error))?;
        files::sync_folder(folder).map_err(|error| LogError::io(folder, "sync", error))?;
        let encoder = Encoder::new().map_err(|error| LogError::io(&path, "start compressing", error))?;
        let writer = Self {
            folder: folder.to_owned(),
            options,
            open_segment,
            encoder,
            segment: number,
            file,
            synced: good,
            written: good,
            lines: Vec::new(),
            line_count: 0,
            entries: 0,
            stopped: None,
        };
        let torn_segment = (torn > 0).then_some(path);
        Ok((writer, Recovery { torn_bytes: torn, torn_segment }))
    }

    /// Adds an entry to the group. Nothing is durable before [`commit`](Self::commit).
    ///
    /// # Errors
    /// An entry that cannot be encoded or is too long is left out; the group stays as it was. A disk error
    /// drops the whole group, see [`commit`](Self::commit).
    pub fn append(&mut self, entry: &LogEntry) -> Result<(), LogError> {
        self.check_running()?;
        let start = self.lines.len();
        if let Err(source) = envelope::encode(entry, &mut self.lines) {
            self.lines.truncate(start);
            return Err(LogError::Encode { key: entry.record.key.to_string(), source });
        }
        let bytes = self.lines.len() - start;
        if bytes > MAX_ENTRY_BYTES {
            self.lines.truncate(start);
            let key = entry.record.key.to_string();
            return Err(LogError::EntryTooLong { key, bytes, limit: MAX_ENTRY_BYTES });
        }
        self.line_count += 1;
        self.entries += 1;
        if self.lines.len() >= self.options.frame_bytes {
            self.write_frame()?;
        }
        Ok(())
    }

    /// Makes the group durable with one sync. Returns the number of its entries.
    ///
    /// # Errors
    /// [`LogError::DiskFull`] and other write errors: the group is gone from the log, as if never appended;
    /// its entries may be appended again. [`LogError::Stopped`]: a sync failed; whether the group is on disk is
    /// unknown, and this writer does nothing more. The sync is not repeated: after a failure the kernel may
    /// have dropped the pages and would report success (Rebello et al., "Can Applications Recover from fsync
    /// Failures?", USENIX ATC 2020).
    pub fn commit(&mut self) -> Result<usize, LogError> {
        self.check_running()?;
        if !self.lines.is_empty() {
            self.write_frame()?;
        }
        if self.written > self.synced {
            if let Err(error) = self.file.sync() {
                return Err(self.stop(&error));
            }
            self.synced = self.written;
        }
        Ok(std::mem::take(&mut self.entries))
    }

    /// Entries appended since the last commit.
    pub fn group_entries(&self) -> usize {
        self.entries
    }

    /// The segment written to.
    pub fn segment_path(&self) -> PathBuf {
        segment::path(&self.folder, self.segment)
    }

    fn write_frame(&mut self) -> Result<(), LogError> {
        // Only between groups: a group that fails is cut off one file.
        if self.written == self.synced
            && self.synced >= self.options.segment_bytes
            && let Err(error) = self.rotate()
        {
            return Err(self.drop_group(error));
        }
        let place = Place { segment: self.segment, offset: self.written };
        let written = self
            .encoder
            .encode(&self.lines, self.line_count, self.options.cipher.as_ref().map(|cipher| (cipher, place)))
            .and_then(|frame| self.file.write_all(&frame).map(|()| frame.len() as u64));
        match written {
            Ok(bytes) => {
                self.written += bytes;
                self.lines.clear();
                self.line_count = 0;
                Ok(())
            }
            Err(error) => Err(self.drop_group(error)),
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = self.segment + 1;
        let file = (self.open_segment)(&segment::path(&self.folder, next))?;
        // Without this the file may be gone after a power cut although its content was synced.
        files::sync_folder(&self.folder)?;
        self.file = file;
        self.segment = next;
        self.synced = 0;
        self.written = 0;
        Ok(())
    }

    /// Takes the log back to where it was before the group.
    fn drop_group(&mut self, error: io::Error) -> LogError {
        self.lines.clear();
        self.line_count = 0;
        self.entries = 0;
        self.written = self.synced;
        if let Err(cut) = self.file.truncate(self.synced) {
            // Half a frame in the middle of the file would look like corruption later.
            return self.stop(&cut);
        }
        let path = self.segment_path();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::DiskFull { path },
            _ => LogError::io(path, "write", error),
        }
    }

    fn stop(&mut self, error: &io::Error) -> LogError {
        let message = error.to_string();
        self.stopped = Some(message.clone());
        LogError::Stopped { path: self.segment_path(), message }
    }

    fn check_running(&self) -> Result<(), LogError> {
        match &self.stopped {
            None => Ok(()),
            Some(message) => Err(LogError::Stopped { path: self.segment_path(), message: message.clone() }),
        }
    }
}

/// Length of a segment up to its last intact frame, and of what is torn behind it.
fn measure(path: &Path) -> Result<(u64, u64), LogError> {
    let mut segment = Segment::open(path)?;
    let mut good = 0;
    while let Some(part) = segment.next_part().map_err(|error| LogError::io(path, "read", error))? {
        match part {
            Part::Frame { offset, header, .. } => good = offset + header.frame_bytes(),
            Part::Corrupt { .. } => {}
            Part::Torn { bytes, .. } => return Ok((good, bytes)),
        }
    }
    Ok((good, 0))
}
