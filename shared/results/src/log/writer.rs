//! Appends to a log, group by group.
//!
//! A group is everything appended between two commits. A commit is all or nothing: either every entry of the group is
//! on disk, synced, or the log is as before the group (or, after a failed sync, stopped). The writer takes no lock:
//! [`run_dir`](crate::run_dir) ensures that only one process is [`WriterId::LOCK_HOLDER`], and the other writers have
//! their own segments.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::cipher::{FramePlace, LogCipher};
use super::envelope::{self, LogEntry};
use super::error::LogError;
use super::frame::{Encoder, FrameHeader};
use super::seal::Seals;
use super::segment::{Part, Segment};
use super::segment_id::{SegmentId, WriterId};
use super::synced::{Position, SegmentEnd, Synced, SyncedMark};
use crate::files::{self, Doing, IoError};

/// Maximum number of records in a frame. A frame is read as a whole or not at all, so one flipped bit costs at most
/// this many. Smaller frames compress worse; docs/performance.md has the figures.
pub const FRAME_ENTRIES_MAX: u32 = 32;

/// Sizes and protection of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Who writes.
    pub writer: WriterId,
    /// Segment size after which no further group is added, in bytes.
    pub segment_bytes: u64,
    /// Size of a group's lines, in bytes, from which it is split into several frames: bounds the memory of writer and
    /// readers.
    pub frame_bytes: usize,
    /// Entries of a group from which it is split into several frames: [`FRAME_ENTRIES_MAX`], less for tests.
    pub frame_entries: u32,
    /// Encrypts every new frame. Existing frames stay as they are: each says for itself whether it is encrypted.
    pub cipher: Option<LogCipher>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            writer: WriterId::LOCK_HOLDER,
            segment_bytes: 256 << 20,
            frame_bytes: 4 << 20,
            frame_entries: FRAME_ENTRIES_MAX,
            cipher: None,
        }
    }
}

/// Findings of opening a log for writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Bytes of a group that was being written when a writer died. They stay at the end of their segment.
    pub torn_bytes: u64,
    pub torn_segment: Option<PathBuf>,
}

/// A segment file as the writer needs it: the interface where tests substitute a failing disk.
pub trait SegmentFile {
    /// Appends.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything appended, up to this end of the segment, would survive a power cut.
    fn sync(&mut self, end: SegmentEnd) -> io::Result<()>;
    /// Truncates the file; the next append goes there.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl SegmentFile for File {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        Write::write_all(self, bytes)
    }

    /// Never retry: after a failure the kernel may have dropped the pages and would report success (Rebello et al.,
    /// "Can Applications Recover from fsync Failures?", USENIX ATC 2020). A removed file keeps its content only as
    /// long as it is open, so it is not durable.
    fn sync(&mut self, _end: SegmentEnd) -> io::Result<()> {
        self.sync_data()?;
        match self.metadata()?.nlink() {
            0 => Err(io::Error::new(io::ErrorKind::NotFound, "the file was removed while it was written")),
            _ => Ok(()),
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(|_| ())
    }
}

/// A segment on a disk that others may read, with its synced position for them.
#[derive(Debug)]
pub struct MarkedFile {
    file: File,
    mark: SyncedMark,
}

impl SegmentFile for MarkedFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        SegmentFile::write_all(&mut self.file, bytes)
    }

    fn sync(&mut self, end: SegmentEnd) -> io::Result<()> {
        self.file.sync(end)?;
        // The records are durable. If this update fails once, readers that follow the log wait for the next one.
        let _ = self.mark.set(end);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }
}

/// Opens segment files for appending: new ones, or existing ones that end here.
type OpenSegment<F> = Box<dyn FnMut(&Path, SegmentId, SegmentEnd) -> io::Result<F> + Send>;

pub struct LogWriter<F = MarkedFile> {
    folder: PathBuf,
    options: LogOptions,
    open_segment: OpenSegment<F>,
    encoder: Encoder,
    /// The current or last segment; number 0 before the first.
    segment: SegmentId,
    /// Its file; `None` before the first entry of a new writer, so that a writer without entries leaves nothing
    /// behind.
    file: Option<F>,
    /// End of the segment that is known to be synced.
    synced: SegmentEnd,
    /// End of what is written, synced or not.
    written: SegmentEnd,
    /// Lines of the group that are not yet in a frame.
    lines: Vec<u8>,
    line_count: u32,
    /// Entries of the group.
    entries: usize,
    /// Message of the failed sync, after which nothing more is written.
    stopped: Option<String>,
}

impl LogWriter<MarkedFile> {
    /// Opens the log in `folder`, which must exist. [`WriterId::LOCK_HOLDER`] continues behind its last intact frame;
    /// if anything else follows that, torn or damaged, it stays, and the writer begins the next segment. Any other
    /// writer begins a new log.
    ///
    /// # Errors
    /// [`LogError::Taken`] if a new writer has segments already.
    pub fn open(folder: &Path, options: LogOptions) -> Result<(Self, Recovery), LogError> {
        let open = |path: &Path, segment: SegmentId, end: SegmentEnd| {
            if end.bytes > 0 {
                // Data that a killed process did not sync will now count as synced.
                File::open(path)?.sync_data()?;
            }
            // The synced file first: a new segment is never without one.
            let mark = SyncedMark::begin(path.parent().unwrap_or(Path::new(".")), segment, end)?;
            let mut file = files::open_or_create(path)?;
            file.seek(SeekFrom::Start(end.bytes))?;
            Ok(MarkedFile { file, mark })
        };
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
        let segments = SegmentId::list(folder)?;
        let last = segments.into_iter().rfind(|segment| segment.writer == options.writer);
        let mut recovery = Recovery::default();
        let (mut file, mut end) = (None, SegmentEnd::default());
        if let Some(segment) = last {
            let path = segment.path(folder);
            if options.writer != WriterId::LOCK_HOLDER {
                return Err(LogError::Taken { path });
            }
            match measure(folder, segment)? {
                Measured::Whole(whole) => {
                    let mut opened = open_segment(&path, segment, whole).doing("open", &path)?;
                    opened.sync(whole).doing("sync", &path)?;
                    files::sync_folder(folder).doing("sync", folder)?;
                    (file, end) = (Some(opened), whole);
                }
                Measured::Torn { good, bytes } => {
                    Synced::note(folder, segment, good).doing("note the good part of", &path)?;
                    recovery = Recovery { torn_bytes: bytes, torn_segment: Some(path) };
                }
                Measured::Damaged => {}
            }
        }
        let encoder = Encoder::new().doing("start compressing for", folder)?;
        let writer = Self {
            folder: folder.to_owned(),
            segment: last.unwrap_or(SegmentId { writer: options.writer, number: 0 }),
            options,
            open_segment,
            encoder,
            file,
            synced: end,
            written: end,
            lines: Vec::new(),
            line_count: 0,
            entries: 0,
            stopped: None,
        };
        Ok((writer, recovery))
    }

    /// Adds an entry to the group. Nothing is durable before [`commit`](Self::commit).
    ///
    /// # Errors
    /// An entry that cannot be encoded or is too long is left out; the group stays as it was. A disk error
    /// drops the whole group, see [`commit`](Self::commit).
    pub fn append(&mut self, entry: &LogEntry) -> Result<(), LogError> {
        let record = serde_json::to_string(&entry.record)
            .map_err(|source| LogError::Encode { key: entry.record.key.to_string(), source })?;
        self.append_raw(entry.ticket, &record)
    }

    /// Like [`append`](Self::append), for a record given as JSON written by `serde_json`. The caller must know that
    /// it is a record: [`Summary::parse`](crate::Summary::parse).
    ///
    /// # Errors
    /// The same, and [`LogError::NotALine`] for JSON with line feeds or other control characters.
    pub fn append_raw(&mut self, ticket: u64, record: &str) -> Result<(), LogError> {
        envelope::check_raw(record)?;
        self.append_checked(ticket, record)
    }

    /// Like [`append_raw`](Self::append_raw), for JSON that was [checked](envelope::check_raw).
    pub(super) fn append_checked(&mut self, ticket: u64, record: &str) -> Result<(), LogError> {
        self.check_running()?;
        envelope::encode(ticket, record, &mut self.lines);
        self.line_count += 1;
        self.entries += 1;
        if self.line_count >= self.options.frame_entries || self.lines.len() >= self.options.frame_bytes {
            self.write_frame()?;
        }
        Ok(())
    }

    /// Makes the group durable with one sync. Returns the number of its entries.
    ///
    /// # Errors
    /// [`LogError::DiskFull`] and other write errors: the group is gone from the log, as if never appended;
    /// its entries may be appended again. [`LogError::Stopped`]: a sync failed; whether the group is on disk is
    /// unknown, and this writer does nothing more.
    pub fn commit(&mut self) -> Result<usize, LogError> {
        self.check_running()?;
        if !self.lines.is_empty() {
            self.write_frame()?;
        }
        let entries = std::mem::take(&mut self.entries);
        self.sync()?;
        Ok(entries)
    }

    /// The synced position. After a commit it is the end of its group.
    pub fn position(&self) -> Position {
        Position { segment: self.segment, end: self.synced }
    }

    /// Entries appended since the last commit.
    pub fn group_entries(&self) -> usize {
        self.entries
    }

    /// The segment written to, now or next.
    pub fn segment_path(&self) -> PathBuf {
        let segment = if self.file.is_some() { self.segment } else { self.segment.next() };
        segment.path(&self.folder)
    }

    fn write_frame(&mut self) -> Result<(), LogError> {
        // Only between groups, so that a failed group is cut off a single file.
        let full = self.written == self.synced && self.synced.bytes >= self.options.segment_bytes.max(1);
        if (full || self.file.is_none())
            && let Err(error) = self.rotate()
        {
            return Err(self.drop_group(error));
        }
        let place = FramePlace { segment: self.segment, offset: self.written.bytes };
        let cipher = self.options.cipher.as_ref().map(|cipher| (cipher, place));
        let written = self.encoder.encode(&self.lines, self.line_count, cipher).and_then(|frame| {
            if let Some(file) = &mut self.file {
                file.write_all(&frame)?;
            }
            let (header, _) = frame.split_first_chunk().ok_or(io::ErrorKind::InvalidData)?;
            let header = FrameHeader::decode(header).ok_or(io::ErrorKind::InvalidData)?;
            Ok(SegmentEnd { bytes: place.offset + frame.len() as u64, crc: header.crc() })
        });
        match written {
            Ok(end) => {
                self.written = end;
                self.lines.clear();
                self.line_count = 0;
                Ok(())
            }
            Err(error) => Err(self.drop_group(error)),
        }
    }

    /// Makes written data durable.
    fn sync(&mut self) -> Result<(), LogError> {
        if let Some(file) = &mut self.file
            && self.written != self.synced
        {
            match file.sync(self.written) {
                Ok(()) => self.synced = self.written,
                Err(error) => return Err(self.stop(&error)),
            }
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = self.segment.next();
        let file = (self.open_segment)(&next.path(&self.folder), next, SegmentEnd::default())?;
        // Without this, the file may be gone after a power cut although its content was synced.
        files::sync_folder(&self.folder)?;
        self.file = Some(file);
        self.segment = next;
        self.synced = SegmentEnd::default();
        self.written = SegmentEnd::default();
        Ok(())
    }

    fn drop_lines(&mut self) {
        self.lines.clear();
        self.line_count = 0;
        self.entries = 0;
    }

    /// Restores the log to its state before the group.
    fn drop_group(&mut self, error: io::Error) -> LogError {
        self.drop_lines();
        self.written = self.synced;
        if let Some(file) = &mut self.file
            && let Err(cut) = file.truncate(self.synced.bytes)
        {
            // Half a frame in the middle of the file would later look like corruption.
            return self.stop(&cut);
        }
        let path = self.segment_path();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => LogError::DiskFull { path },
            _ => IoError { path, doing: "write", source: error }.into(),
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

/// Findings of a writer that continues.
enum Measured {
    /// Intact frames up to the end, perhaps damage between them.
    Whole(SegmentEnd),
    /// A torn tail behind intact frames.
    Torn { good: SegmentEnd, bytes: u64 },
    /// Acknowledged data at the end is missing, or may be.
    Damaged,
}

fn measure(folder: &Path, segment: SegmentId) -> Result<Measured, LogError> {
    // The sealed part of a finished run was synced, but a crash may have taken the synced file.
    let (seals, _) = Seals::read(folder)?;
    let mut reader = Segment::open(folder, segment, seals.end(segment))?;
    let mut good = SegmentEnd::default();
    while let Some(part) = reader.next_part().doing("read", segment.path(folder))? {
        match part {
            Part::Frame { offset, header, .. } => {
                good = SegmentEnd { bytes: offset + header.frame_bytes(), crc: header.crc() };
            }
            Part::Corrupt { offset, bytes } if offset + bytes < reader.length() => {}
            Part::Corrupt { .. } | Part::Lost { .. } => return Ok(Measured::Damaged),
            Part::Torn { bytes, .. } => return Ok(Measured::Torn { good, bytes }),
        }
    }
    Ok(Measured::Whole(good))
}
