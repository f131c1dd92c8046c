//! Keeps undelivered records on disk, so that they survive the death of the worker's process.
//!
//! Append-only segments, `00000001.spool` and up. Each begins with eight bytes that identify the format. Then follow
//! frames of length, CRC-32 (both little-endian, four bytes) and two lines of JSON: whose record it is, and the
//! record. Nothing is synced: a power failure may take the last records, whose dialogues are then held again. A
//! segment is deleted when all its records are acknowledged. Acknowledgements are not written down, so after a
//! restart the acknowledged records of a segment are sent again, and the coordinator counts them once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use domain::RunId;
use domain::exchange::Delivery;
use rustix::fs::{FlockOperation, flock};

pub use super::segment::SpoolError;
use super::segment::{FRAME_HEAD_BYTES, FrameHead, MAGIC, PRIVATE, at, frames, segments_in};

/// Size at which a new segment is started. Small, because acknowledged records of a segment are sent again after a
/// restart.
const SEGMENT_BYTES_MAX: u64 = 1 << 20;

/// Size from which a segment without unacknowledged records is deleted; a smaller one is reused, because creating a
/// file costs more than writing to one.
const SEGMENT_BYTES_KEPT: u64 = 64 << 10;

/// How long to wait for a spool in use: a worker that starts briefly locks those of others.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(500);
/// Time between two attempts.
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// Creates the folder of a spool, and the folder of all spools, for their owner alone. The folder around them may hold
/// other things.
fn private_folder(dir: &Path) -> io::Result<()> {
    if let Some(around) = dir.parent().and_then(Path::parent) {
        std::fs::create_dir_all(around)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolLocation {
    segment: u64,
    offset: u64,
    bytes: u32,
}

impl SpoolLocation {
    /// Bytes of the record.
    pub fn bytes(self) -> u64 {
        u64::from(self.bytes)
    }
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Unacknowledged records.
    live: u64,
    /// Whether nothing more may be written: half a frame stands at its end, and would hide what comes after it.
    is_torn: bool,
}

/// A folder of segments, locked for this process. Its methods block.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    segments: BTreeMap<u64, Segment>,
    next_segment: u64,
    bytes: u64,
    _lock: File,
}

/// The recovered content of a spool.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Records that may be undelivered, with their runs, oldest first.
    pub records: Vec<(RunId, SpoolLocation)>,
    /// Bytes cut off: a torn write of a killed process, or damage.
    pub torn_bytes: u64,
}

impl Spool {
    /// Opens a folder, creating it if needed, and recovers the records of an earlier process. Before that, it takes
    /// over records from spools of workers that are gone, up to `adopted_bytes_max` bytes.
    ///
    /// # Errors
    /// The folder is inaccessible, in use, or contains invalid files.
    pub fn open(dir: &Path, adopted_bytes_max: u64) -> Result<(Self, Recovered), SpoolError> {
        private_folder(dir).map_err(at(dir))?;
        let lock_path = dir.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(PRIVATE)
            .open(&lock_path)
            .map_err(at(&lock_path))?;
        let began = Instant::now();
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if began.elapsed() > LOCK_WAIT_MAX {
                return Err(SpoolError::InUse(dir.to_owned()));
            }
            std::thread::sleep(LOCK_WAIT);
        }
        let mut spool =
            Self { dir: dir.to_owned(), segments: BTreeMap::new(), next_segment: 1, bytes: 0, _lock: lock };
        let next = segments_in(dir)?.last().map_or(1, |(number, _)| number + 1);
        super::spools::adopt(dir, next, adopted_bytes_max);
        let mut recovered = Recovered::default();
        for (number, path) in segments_in(dir)? {
            spool.recover(number, path, &mut recovered)?;
        }
        Ok((spool, recovered))
    }

    fn recover(&mut self, number: u64, path: PathBuf, recovered: &mut Recovered) -> Result<(), SpoolError> {
        let mut file = OpenOptions::new().read(true).append(true).open(&path).map_err(at(&path))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(at(&path))?;
        self.next_segment = number + 1;
        let start = MAGIC.len().min(content.len());
        if !MAGIC.starts_with(&content[..start]) {
            return Err(SpoolError::Format(path));
        }
        let mut offset = start;
        let mut live = 0;
        for frame in frames(&content) {
            let location = SpoolLocation {
                segment: number,
                offset: offset as u64 + FRAME_HEAD_BYTES,
                bytes: frame.record.len() as u32, // It was read from as many bits.
            };
            recovered.records.push((frame.run(), location));
            offset += frame.whole.len();
            live += 1;
        }
        recovered.torn_bytes += (content.len() - offset) as u64;
        if live == 0 {
            return std::fs::remove_file(&path).map_err(at(&path));
        }
        file.set_len(offset as u64).map_err(at(&path))?;
        self.bytes += offset as u64;
        self.segments.insert(number, Segment { path, file, bytes: offset as u64, live, is_torn: false });
        Ok(())
    }

    /// Adds records, in one write.
    ///
    /// # Errors
    /// None of the records is certain to be on disk, for example because it is full.
    pub fn append(&mut self, deliveries: &[Delivery]) -> io::Result<Vec<SpoolLocation>> {
        let number = match self.segments.last_key_value() {
            Some((number, segment)) if segment.bytes < SEGMENT_BYTES_MAX && !segment.is_torn => *number,
            _ => self.begin_segment()?,
        };
        let Some(segment) = self.segments.get_mut(&number) else {
            return Err(io::Error::other("the segment just begun is not there"));
        };
        let (mut frames, mut locations) = (Vec::new(), Vec::with_capacity(deliveries.len()));
        for Delivery { run, key, failure, json } in deliveries {
            let head = frames.len();
            frames.extend_from_slice(&[0; FRAME_HEAD_BYTES as usize]);
            let whose = FrameHead { run: Cow::Borrowed(run), key: Cow::Borrowed(key), failure: *failure };
            serde_json::to_writer(&mut frames, &whose)?;
            frames.push(b'\n');
            frames.extend_from_slice(json.as_bytes());
            let record = head + FRAME_HEAD_BYTES as usize;
            let bytes = u32::try_from(frames.len() - record).map_err(io::Error::other)?;
            let crc = crc32fast::hash(&frames[record..]);
            frames[head..head + 4].copy_from_slice(&bytes.to_le_bytes());
            frames[head + 4..record].copy_from_slice(&crc.to_le_bytes());
            locations.push(SpoolLocation { segment: number, offset: segment.bytes + record as u64, bytes });
        }
        if let Err(error) = segment.file.write_all(&frames) {
            segment.is_torn = segment.file.set_len(segment.bytes).is_err();
            return Err(error);
        }
        segment.bytes += frames.len() as u64;
        segment.live += deliveries.len() as u64;
        self.bytes += frames.len() as u64;
        Ok(locations)
    }

    fn begin_segment(&mut self) -> io::Result<u64> {
        let number = self.next_segment;
        // Whatever comes of this one, the next has another name: a full disk has room for a name, but not for the
        // first bytes, and a file of that name may be left.
        self.next_segment += 1;
        let path = self.path(number);
        let mut file =
            OpenOptions::new().read(true).append(true).create_new(true).mode(PRIVATE).open(&path)?;
        if let Err(error) = file.write_all(MAGIC) {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        let bytes = MAGIC.len() as u64;
        self.bytes += bytes;
        self.segments.insert(number, Segment { path, file, bytes, live: 0, is_torn: false });
        Ok(number)
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// It is gone or damaged.
    pub fn read(&self, location: SpoolLocation) -> io::Result<Delivery> {
        let gone = || io::Error::other("the segment of the record was deleted");
        let segment = self.segments.get(&location.segment).ok_or_else(gone)?;
        let mut record = vec![0; location.bytes as usize];
        segment.file.read_exact_at(&mut record, location.offset)?;
        let record = String::from_utf8(record).map_err(io::Error::other)?;
        let (head, json) = record.split_once('\n').ok_or_else(|| io::Error::other("a frame of one line"))?;
        let FrameHead { run, key, failure } = serde_json::from_str(head)?;
        Ok(Delivery { run: run.into_owned(), key: key.into_owned(), failure, json: json.into() })
    }

    /// Marks records as acknowledged, and deletes segments without others.
    pub fn forget(&mut self, locations: impl IntoIterator<Item = SpoolLocation>) {
        for location in locations {
            let Some(segment) = self.segments.get_mut(&location.segment) else { continue };
            segment.live = segment.live.saturating_sub(1);
            if segment.live == 0 && segment.bytes >= SEGMENT_BYTES_KEPT {
                self.delete(location.segment);
            }
        }
        let older: Vec<u64> = self.segments.keys().rev().skip(1).copied().collect();
        for number in older {
            if self.segments[&number].live == 0 {
                self.delete(number);
            }
        }
    }

    fn delete(&mut self, number: u64) {
        let Some(segment) = self.segments.remove(&number) else { return };
        self.bytes -= segment.bytes;
        if let Err(error) = std::fs::remove_file(&segment.path) {
            // Its records are sent again after a restart, and counted once.
            tracing::warn!(path = %segment.path.display(), %error, "cannot delete a spool segment");
        }
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that will be free once all pending records are acknowledged. 0 if nothing is pending: the current
    /// segment may stay, and no acknowledgement would ever make room.
    pub fn waiting_bytes(&self) -> u64 {
        if self.segments.values().any(|segment| segment.live > 0) { self.bytes } else { 0 }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:08}.spool"))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let done = self.segments.iter().filter(|(_, segment)| segment.live == 0);
        let done: Vec<u64> = done.map(|(number, _)| *number).collect();
        done.into_iter().for_each(|number| self.delete(number));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use domain::{DialogueKey, FailureCause};
    use proptest::prelude::*;

    use super::*;

    fn delivery(iteration: u32, text: &str) -> Delivery {
        Delivery {
            run: "run".into(),
            key: DialogueKey { model: "m".into(), task: "t".into(), iteration },
            failure: iteration.is_multiple_of(2).then_some(FailureCause::Timeout),
            json: serde_json::json!({ "text": text }).to_string().into(),
        }
    }

    fn all(spool: &Spool, recovered: &Recovered) -> Vec<Delivery> {
        recovered.records.iter().map(|(_, location)| spool.read(*location).unwrap()).collect()
    }

    #[test]
    fn records_survive_the_process_until_they_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let sent: Vec<_> = (0..5).map(|n| delivery(n, "with \"quotes\" and ünïcode\n")).collect();
        let (mut spool, recovered) = Spool::open(dir.path(), 0).unwrap();
        assert!(recovered.records.is_empty());
        let locations = spool.append(&sent[..3]).unwrap();
        spool.append(&sent[3..]).unwrap();
        assert_eq!(spool.read(locations[1]).unwrap(), sent[1]);
        assert!(matches!(Spool::open(dir.path(), 0), Err(SpoolError::InUse(_))));
        drop(spool);

        let (mut spool, recovered) = Spool::open(dir.path(), 0).unwrap();
        assert_eq!((all(&spool, &recovered), recovered.torn_bytes), (sent, 0));
        spool.forget(recovered.records.into_iter().map(|(_, location)| location));
        drop(spool);
        let (spool, recovered) = Spool::open(dir.path(), 0).unwrap();
        assert_eq!((recovered.records.len(), spool.bytes()), (0, 0));
    }

    #[test]
    fn a_spool_is_for_its_owner_alone() {
        let work = tempfile::tempdir().unwrap();
        let dir = work.path().join("work/spool/worker");
        let (mut spool, _) = Spool::open(&dir, 0).unwrap();
        spool.append(&[delivery(0, "an answer")]).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(dir.parent().unwrap())), (0o700, 0o700));
        assert_eq!((mode(&spool.path(1)), mode(&dir.join("lock"))), (0o600, 0o600));
    }

    #[test]
    fn segments_end_and_vanish_when_all_their_records_are_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(dir.path(), 0).unwrap();
        let text = "x".repeat(SEGMENT_BYTES_MAX as usize / 4);
        let locations: Vec<_> = (0..20).flat_map(|n| spool.append(&[delivery(n, &text)]).unwrap()).collect();
        let files = || std::fs::read_dir(dir.path()).unwrap().count() - 1;
        assert!(files() > 3);
        let bytes = spool.bytes();
        spool.forget(locations[..10].iter().copied());
        assert!(spool.bytes() < bytes);
        for location in &locations[10..] {
            assert!(spool.read(*location).is_ok());
        }
        spool.forget(locations[10..].iter().copied());
        assert_eq!((spool.bytes(), files()), (0, 0));
    }

    #[test]
    fn what_a_full_disk_left_does_not_stop_the_records_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(dir.path(), 0).unwrap();
        std::fs::write(spool.path(1), &MAGIC[..3]).unwrap();
        assert!(spool.append(&[delivery(0, "on the full disk")]).is_err());
        let later = delivery(1, "when there is room again");
        spool.append(std::slice::from_ref(&later)).unwrap();
        spool.segments.last_entry().unwrap().get_mut().is_torn = true;
        let after = delivery(2, "after half a frame");
        spool.append(std::slice::from_ref(&after)).unwrap();
        drop(spool);
        let (spool, recovered) = Spool::open(dir.path(), 0).unwrap();
        assert_eq!(all(&spool, &recovered), [later, after]);
    }

    #[test]
    fn a_file_of_another_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("00000001.spool"), b"kgspool2....").unwrap();
        assert!(matches!(Spool::open(dir.path(), 0), Err(SpoolError::Format(_))));
    }

    proptest! {
        #[test]
        fn a_torn_or_damaged_tail_is_cut(records in 1..6_u32, at in any::<prop::sample::Index>(), flip in any::<bool>()) {
            let dir = tempfile::tempdir().unwrap();
            let sent: Vec<_> = (0..records).map(|n| delivery(n, "some text")).collect();
            let (mut spool, _) = Spool::open(dir.path(), 0).unwrap();
            let locations = spool.append(&sent).unwrap();
            drop(spool);
            let path = dir.path().join("00000001.spool");
            let mut content = std::fs::read(&path).unwrap();
            let at = MAGIC.len() + at.index(content.len() - MAGIC.len());
            if flip { content[at] ^= 1 } else { content.truncate(at) }
            std::fs::write(&path, &content).unwrap();
            let whole = locations.iter().take_while(|l| l.offset + l.bytes() <= at as u64).count();

            let (mut spool, recovered) = Spool::open(dir.path(), 0).unwrap();
            prop_assert_eq!(all(&spool, &recovered), &sent[..whole]);
            let later = delivery(99, "after the cut");
            spool.append(std::slice::from_ref(&later)).unwrap();
            drop(spool);
            let (spool, recovered) = Spool::open(dir.path(), 0).unwrap();
            prop_assert_eq!(all(&spool, &recovered).pop(), Some(later));
            prop_assert_eq!(recovered.records.len(), whole + 1);
        }
    }
}
