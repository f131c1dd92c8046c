//! Appends to a log, group by group, in one [epoch](super::epochs).
//!
//! A group is everything appended between two commits. A commit is all or nothing: either every line of the group is on disk,
//! synced, and nobody else had begun to write the log by then; or the log is as before the group (or, after a failed sync or where
//! somebody else writes since, stopped).

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use domain::Record;

use super::cipher::{FramePlace, LogCipher};
use super::envelope::{self, LogLine};
use super::epochs::Claim;
use super::error::LogError;
use super::frame::{Encoder, FrameHeader};
use super::lines::EntryLocation;
use super::segment_id::SegmentId;
use super::synced::{SegmentEnd, SyncedMark};
use crate::files::{self, Doing, IoError};

/// Maximum number of lines in a frame. A frame is read as a whole or not at all, so one flipped bit costs at most
/// this many. Smaller frames compress worse; docs/performance.md has the figures.
pub const FRAME_ENTRIES_MAX: u32 = 32;

/// Sizes and protection of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// Segment size after which no further group is added, in bytes.
    pub segment_bytes: u64,
    /// Size of a group's lines, in bytes, from which it is split into several frames: bounds the memory of writer and
    /// readers.
    pub frame_bytes: usize,
    /// Lines of a group from which it is split into several frames: [`FRAME_ENTRIES_MAX`], less for tests.
    pub frame_entries: u32,
    /// Encrypts every new frame. Existing frames stay as they are: each says for itself whether it is encrypted.
    pub cipher: Option<LogCipher>,
    /// A sentence of the protocol that is left out; only in the test that shows what it is for.
    pub omits: Option<LogOmission>,
}

/// A sentence of [the protocol](super::epochs) that a log may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOmission {
    /// The claim is checked after every sync.
    ClaimChecks,
    /// Whoever claims an epoch fixes the ends of the earlier ones.
    Ends,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 256 << 20,
            frame_bytes: 4 << 20,
            frame_entries: FRAME_ENTRIES_MAX,
            cipher: None,
            omits: None,
        }
    }
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

/// Creates segment files.
type CreateSegment<F> = Box<dyn FnMut(&Path, SegmentId) -> io::Result<F> + Send>;

pub struct LogWriter<F = MarkedFile> {
    folder: PathBuf,
    options: LogOptions,
    claim: Claim,
    create_segment: CreateSegment<F>,
    encoder: Encoder,
    /// The current or last segment; number 0 before the first.
    segment: SegmentId,
    /// Its file; `None` before the first line.
    file: Option<F>,
    /// End of the segment that is known to be synced.
    synced: SegmentEnd,
    /// End of what is written, synced or not.
    written: SegmentEnd,
    /// Lines of the group that are not yet in a frame.
    lines: Vec<u8>,
    line_count: u32,
    /// Where the lines of the group are that are in frames.
    places: Vec<EntryLocation>,
    /// Message of the failed sync, after which nothing more is written.
    stopped: Option<String>,
}

impl LogWriter<MarkedFile> {
    /// Begins the next epoch of the log in `folder`, which must exist: fixes how much of the earlier ones counts, and writes new
    /// segments.
    pub fn open(folder: &Path, options: LogOptions) -> Result<Self, LogError> {
        let create = |path: &Path, segment: SegmentId| {
            // The synced file first: a new segment is never without one.
            let folder = path.parent().unwrap_or(Path::new("."));
            let mark = SyncedMark::begin(folder, segment, SegmentEnd::default())?;
            Ok(MarkedFile { file: File::options().create_new(true).read(true).write(true).open(path)?, mark })
        };
        Self::open_with(folder, options, Box::new(create))
    }
}

impl<F: SegmentFile> LogWriter<F> {
    /// Like [`LogWriter::open`], with another way to create segments.
    pub fn open_with(
        folder: &Path,
        options: LogOptions,
        create_segment: CreateSegment<F>,
    ) -> Result<Self, LogError> {
        let encoder = Encoder::new().doing("start compressing for", folder)?;
        let claim = Claim::take(folder)?;
        let torn = if options.omits == Some(LogOmission::Ends) { 0 } else { claim.fix_ends()? };
        if torn > 0 {
            let log = folder.display();
            tracing::warn!(%log, "skipping {torn} bytes that a killed process had not finished writing");
        }
        Ok(Self {
            folder: folder.to_owned(),
            segment: SegmentId { epoch: claim.epoch(), number: 0 },
            options,
            claim,
            create_segment,
            encoder,
            file: None,
            synced: SegmentEnd::default(),
            written: SegmentEnd::default(),
            lines: Vec::new(),
            line_count: 0,
            places: Vec::new(),
            stopped: None,
        })
    }

    /// Its epoch.
    pub fn epoch(&self) -> u32 {
        self.claim.epoch()
    }

    /// Adds a record to the group. Nothing is durable before [`commit`](Self::commit).
    ///
    /// # Errors
    /// A record that cannot be encoded or is too long is left out; the group stays as it was. A disk error
    /// drops the whole group, see [`commit`](Self::commit).
    pub fn append(&mut self, record: &Record) -> Result<(), LogError> {
        let json = serde_json::to_string(record)
            .map_err(|source| LogError::Encode { key: record.key.to_string(), source })?;
        self.append_raw(&LogLine::Record(json))
    }

    /// Adds a line whose content was written by `serde_json`. The caller must know that a record is one:
    /// [`Summary::parse`](crate::Summary::parse).
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`LogError::NotALine`] for JSON with line feeds or other control characters.
    pub fn append_raw<T: AsRef<str>>(&mut self, line: &LogLine<T>) -> Result<(), LogError> {
        let (LogLine::Record(json) | LogLine::Event(json)) = line;
        envelope::check_raw(json.as_ref())?;
        self.append_checked(line)
    }

    /// Like [`append_raw`](Self::append_raw), for JSON that was [checked](envelope::check_raw).
    pub(super) fn append_checked<T: AsRef<str>>(&mut self, line: &LogLine<T>) -> Result<(), LogError> {
        self.check_running()?;
        envelope::encode(line, &mut self.lines);
        self.line_count += 1;
        if self.line_count >= self.options.frame_entries || self.lines.len() >= self.options.frame_bytes {
            self.write_frame()?;
        }
        Ok(())
    }

    /// Makes the group durable with one sync. Returns where its lines are, in order.
    ///
    /// # Errors
    /// [`LogError::DiskFull`] and other write errors: the group is gone from the log, as if never appended;
    /// its lines may be appended again. [`LogError::Stopped`]: a sync failed; whether the group is on disk is
    /// unknown, and this writer does nothing more. [`LogError::Followed`]: the same, since somebody else writes the log.
    pub fn commit(&mut self) -> Result<Vec<EntryLocation>, LogError> {
        self.check_running()?;
        if !self.lines.is_empty() {
            self.write_frame()?;
        }
        let places = std::mem::take(&mut self.places);
        self.sync()?;
        Ok(places)
    }

    /// Lines appended since the last commit.
    pub fn group_lines(&self) -> usize {
        self.places.len() + self.line_count as usize
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
                let (segment, offset) = (place.segment, place.offset);
                self.places.extend((0..self.line_count).map(|line| EntryLocation { segment, offset, line }));
                self.line_count = 0;
                Ok(())
            }
            Err(error) => Err(self.drop_group(error)),
        }
    }

    /// Makes written data durable, and sees that nobody else had begun to write by then.
    fn sync(&mut self) -> Result<(), LogError> {
        let Some(file) = self.file.as_mut().filter(|_| self.written != self.synced) else { return Ok(()) };
        if let Err(error) = file.sync(self.written) {
            return Err(self.stop(&error));
        }
        self.synced = self.written;
        if self.options.omits == Some(LogOmission::ClaimChecks) {
            return Ok(());
        }
        self.claim.check().inspect_err(|error| self.stopped = Some(error.to_string()))
    }

    fn rotate(&mut self) -> io::Result<()> {
        let next = self.segment.next();
        let file = (self.create_segment)(&next.path(&self.folder), next)?;
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
        self.places.clear();
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
