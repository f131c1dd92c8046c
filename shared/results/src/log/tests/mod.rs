//! The log after cuts at any byte, flipped bits, full and failing disks, and with many callers at once.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use domain::Record;
use proptest::prelude::*;

use super::writer::{FRAME_ENTRIES_MAX, SegmentFile};
use super::*;
use crate::files;
use crate::testing;

mod durable;
mod epochs;

/// A segment of the first epoch.
fn path(folder: &Path, number: u32) -> PathBuf {
    SegmentId { epoch: 1, number }.path(folder)
}

/// The record of this number.
fn record(number: u64) -> Record {
    testing::record("m", number as u32, true)
}

/// Writes groups of records, numbered from 0; returns the length of the first segment after each group.
fn write_groups(folder: &Path, groups: &[u64], options: LogOptions) -> Vec<u64> {
    let mut writer = LogWriter::open(folder, options).unwrap();
    let mut number = 0;
    groups
        .iter()
        .map(|&records| {
            for _ in 0..records {
                writer.append(&record(number)).unwrap();
                number += 1;
            }
            assert_eq!(writer.commit().unwrap().len() as u64, records);
            fs::metadata(path(folder, 1)).unwrap().len()
        })
        .collect()
}

/// The numbers and the damages of a log. Every record must be exactly what was written.
fn read(folder: &Path) -> (Vec<u64>, Vec<Damage>) {
    let (mut numbers, mut damages) = (Vec::new(), Vec::new());
    for item in LogReader::open(folder, None).unwrap() {
        match item.unwrap() {
            LogItem::Record { record: read, .. } => {
                assert_eq!(*read, record(testing::number(&read)));
                numbers.push(testing::number(&read));
            }
            LogItem::Event { .. } => {}
            LogItem::Damage(damage) => damages.push(damage),
        }
    }
    (numbers, damages)
}

/// Removes everything but one file.
fn keep_only(path: &Path) {
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let other = entry.unwrap().path();
        if other != path {
            fs::remove_file(other).unwrap();
        }
    }
}

/// What a crash of the machine may take: how far was synced.
fn forget_marks(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "synced") {
            fs::remove_file(path).unwrap();
        }
    }
}

fn sum(groups: &[u64]) -> u64 {
    groups.iter().sum()
}

#[test]
fn records_come_back_in_order_over_many_segments() {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions { segment_bytes: 700, frame_bytes: 1500, ..LogOptions::default() };
    write_groups(folder.path(), &[3, 0, 1, 5, 2, 4], options);
    assert!(SegmentId::list(folder.path()).unwrap().len() > 2);
    let (numbers, damages) = read(folder.path());
    assert_eq!(numbers, (0..15).collect::<Vec<_>>());
    assert!(damages.is_empty());
    let report = verify(folder.path(), None, Some(16)).unwrap();
    assert!(report.is_sound());
    assert_eq!((report.records, report.scored, report.missing()), (15, 15, Some(1)));
}

#[test]
fn winners_are_read_by_key_and_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(folder.path(), LogOptions::default()).unwrap();
    for (number, iteration, scored) in
        [(1, 0, false), (2, 1, true), (3, 0, true), (4, 1, true), (5, 2, false)]
    {
        writer.append(&testing::numbered(number, "m", iteration, scored)).unwrap();
        writer.commit().unwrap();
    }
    let index = WinnerIndex::build(folder.path(), None, 0, |damage| panic!("{damage}")).unwrap();
    let streamed: Vec<u64> =
        index.records(folder.path(), None).unwrap().map(|record| testing::number(&record.unwrap())).collect();
    assert_eq!(streamed, [2, 3, 5]);
    let read = |iteration| {
        index
            .read(folder.path(), None, &testing::key("m", iteration))
            .unwrap()
            .map(|record| testing::number(&record))
    };
    assert_eq!([read(0), read(1), read(2), read(3)], [Some(3), Some(2), Some(5), None]);
    let report = verify(folder.path(), None, None).unwrap();
    assert_eq!((report.dialogues, report.scored, report.superseded), (3, 2, 2));
    assert_eq!(report.failed.into_iter().collect::<Vec<_>>(), [("timeout".to_owned(), 1)]);
}

#[test]
fn a_cut_at_any_byte_loses_no_committed_group_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let groups = [2, 1, 3];
    let ends = write_groups(folder.path(), &groups, LogOptions::default());
    let path = path(folder.path(), 1);
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        keep_only(&path);
        fs::write(&path, &whole[..cut]).unwrap();
        let complete = ends.iter().filter(|&&end| end <= cut as u64).count();
        let expected = sum(&groups[..complete]);
        let good = complete.checked_sub(1).map_or(0, |last| ends[last]);
        let (numbers, damages) = read(folder.path());
        assert_eq!(numbers, (0..expected).collect::<Vec<_>>(), "cut at {cut}");
        let torn = cut as u64 - good;
        assert_eq!(damages.len(), usize::from(torn > 0), "cut at {cut}");
        assert!(damages.iter().all(|damage| !damage.is_loss() && damage.offset == good));
        // The next writer leaves the tear where it is and goes on behind it. Its syncs take their time: every byte
        // around the ends of frames and some in between.
        if cut % 16 != 0 && ends.iter().all(|&end| end.abs_diff(cut as u64) > 30) {
            continue;
        }
        let mut writer = LogWriter::open(folder.path(), LogOptions::default()).unwrap();
        writer.append(&record(expected)).unwrap();
        writer.commit().unwrap();
        let (numbers, damages) = read(folder.path());
        assert_eq!(numbers, (0..=expected).collect::<Vec<_>>(), "cut at {cut}");
        assert_eq!(damages.len(), usize::from(torn > 0), "cut at {cut}");
        assert!(damages.iter().all(|damage| !damage.is_loss() && damage.offset == good));
        assert!(fs::read(&path).unwrap().starts_with(&whole[..cut]), "cut at {cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flipped_bytes_are_found_and_spoil_only_their_frames(
        groups in prop::collection::vec(1..4_u64, 1..6),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let ends = write_groups(folder.path(), &groups, LogOptions::default());
        let path = path(folder.path(), 1);
        let mut bytes = fs::read(&path).unwrap();
        let whole = bytes.clone();
        for (at, mask) in &flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        fs::write(&path, &bytes).unwrap();
        let mut expected = Vec::new();
        let (mut start, mut number) = (0, 0);
        for (&end, &entries) in ends.iter().zip(&groups) {
            if bytes[start as usize..end as usize] == whole[start as usize..end as usize] {
                expected.extend(number..number + entries);
            }
            (start, number) = (end, number + entries);
        }
        let (numbers, damages) = read(folder.path());
        prop_assert_eq!(damages.is_empty(), bytes == whole);
        prop_assert_eq!(numbers, expected);
    }

    #[test]
    fn garbage_between_and_behind_frames_is_passed(
        garbage in prop::collection::vec(any::<u8>(), 1..200),
        magic in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let ends = write_groups(folder.path(), &[1, 2], LogOptions::default());
        let path = path(folder.path(), 1);
        let whole = fs::read(&path).unwrap();
        let garbage = if magic { [frame::MAGIC.as_slice(), &garbage].concat() } else { garbage };
        let split = ends[0] as usize;
        fs::write(&path, [&whole[..split], &garbage, &whole[split..], &garbage].concat()).unwrap();
        forget_marks(folder.path());
        let torn = garbage.len() < frame::HEADER_BYTES || garbage.iter().all(|byte| *byte == 0);
        let (numbers, damages) = read(folder.path());
        prop_assert_eq!(numbers, [0, 1, 2]);
        prop_assert_eq!(damages.iter().map(Damage::is_loss).collect::<Vec<_>>(), [true, !torn]);
        prop_assert_eq!(damages[0].offset, ends[0]);
    }
}

#[test]
fn a_frame_is_found_across_the_border_of_two_search_windows() {
    let folder = tempfile::tempdir().unwrap();
    write_groups(folder.path(), &[1], LogOptions::default());
    let path = path(folder.path(), 1);
    let whole = fs::read(&path).unwrap();
    for garbage in (65_536 - 12)..(65_536 + 12) {
        fs::write(&path, [vec![0x89; garbage].as_slice(), &whole].concat()).unwrap();
        let (numbers, damages) = read(folder.path());
        assert_eq!((numbers, damages.len()), (vec![0], 1), "{garbage} bytes before the frame");
    }
}

#[test]
fn missing_segments_and_torn_older_segments_are_losses() {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions { segment_bytes: 1, ..LogOptions::default() };
    write_groups(folder.path(), &[1, 1, 1, 1], options);
    let numbers = SegmentId::list(folder.path()).unwrap().into_iter().map(|segment| segment.number);
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4]);
    fs::remove_file(path(folder.path(), 2)).unwrap();
    let third = path(folder.path(), 3);
    let bytes = fs::read(&third).unwrap();
    fs::write(&third, &bytes[..bytes.len() - 1]).unwrap();
    let (numbers, damages) = read(folder.path());
    assert_eq!(numbers, [0, 3]);
    assert_eq!(damages[0].kind, DamageKind::MissingSegments { count: 1 });
    assert_eq!(damages[1].kind, DamageKind::Corrupt { bytes: bytes.len() as u64 - 1 });
    let report = verify(folder.path(), None, None).unwrap();
    assert!(!report.is_sound());
    assert_eq!(report.losses, 2);
}

/// A disk with so much room, whose syncs may fail.
struct Disk {
    room: Arc<AtomicU64>,
    fail_sync: Arc<Mutex<bool>>,
    file: File,
}

impl SegmentFile for Disk {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.room.load(Ordering::SeqCst);
        // A full disk takes what still fits, as real ones do.
        let fits = &bytes[..bytes.len().min(room as usize)];
        self.room.fetch_sub(fits.len() as u64, Ordering::SeqCst);
        SegmentFile::write_all(&mut self.file, fits)?;
        if fits.len() < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self, end: SegmentEnd) -> io::Result<()> {
        if *self.fail_sync.lock().unwrap() {
            Err(io::Error::other("lost page writes"))
        } else {
            self.file.sync(end)
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }
}

type Faults = (Arc<AtomicU64>, Arc<Mutex<bool>>);

fn on_disk(folder: &Path, room: u64) -> (LogWriter<Disk>, Faults) {
    let faults: Faults = (Arc::new(AtomicU64::new(room)), Arc::default());
    let (room, fail_sync) = faults.clone();
    let open = move |path: &Path, _| {
        let file = files::open_or_create(path)?;
        Ok(Disk { room: room.clone(), fail_sync: fail_sync.clone(), file })
    };
    let writer = LogWriter::open_with(folder, LogOptions::default(), Box::new(open)).unwrap();
    (writer, faults)
}

#[test]
fn a_full_disk_drops_the_group_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, (room, _)) = on_disk(folder.path(), u64::MAX);
    writer.append(&record(0)).unwrap();
    writer.commit().unwrap();
    room.store(100, Ordering::SeqCst);
    writer.append(&record(1)).unwrap();
    assert!(matches!(writer.commit(), Err(LogError::DiskFull { .. })));
    let (numbers, damages) = read(folder.path());
    assert_eq!((numbers, damages.len()), (vec![0], 0));
    room.store(u64::MAX, Ordering::SeqCst);
    writer.append(&record(1)).unwrap();
    assert_eq!(writer.commit().unwrap().len(), 1);
    assert_eq!(read(folder.path()).0, [0, 1]);
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, (_, fail_sync)) = on_disk(folder.path(), u64::MAX);
    writer.append(&record(0)).unwrap();
    *fail_sync.lock().unwrap() = true;
    assert!(matches!(writer.commit(), Err(LogError::Stopped { .. })));
    *fail_sync.lock().unwrap() = false;
    assert!(matches!(writer.append(&record(1)), Err(LogError::Stopped { .. })));
    assert!(matches!(writer.commit(), Err(LogError::Stopped { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_queue_acknowledged_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, (room, _)) = on_disk(folder.path(), u64::MAX);
    let (queue, thread) = CommitQueue::start(writer).unwrap();
    let commit = |numbers: std::ops::Range<u64>| {
        let calls = numbers.map(|number| {
            let queue = queue.clone();
            let line = testing::line(&record(number));
            tokio::spawn(async move { queue.commit_batch(vec![line]).await })
        });
        calls.collect::<Vec<_>>()
    };
    for call in commit(0..300) {
        call.await.unwrap().unwrap();
    }
    let mut numbers = read(folder.path()).0;
    numbers.sort_unstable();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());

    room.store(0, Ordering::SeqCst);
    for call in commit(300..310) {
        assert!(call.await.unwrap().unwrap_err().is_disk_full());
    }
    assert_eq!(read(folder.path()).0.len(), 300);
    room.store(u64::MAX, Ordering::SeqCst);
    for call in commit(300..310) {
        call.await.unwrap().unwrap();
    }
    drop(queue);
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap();
    assert_eq!(read(folder.path()).0.len(), 310);
    assert!(verify(folder.path(), None, None).unwrap().is_sound());
}

#[test]
fn one_flipped_bit_costs_no_more_than_the_records_of_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    // A single group, as when many dialogues end at once.
    let bytes = write_groups(folder.path(), &[390], LogOptions::default())[0];
    for at in [40, bytes / 2, bytes - 3] {
        let whole = fs::read(path(folder.path(), 1)).unwrap();
        let mut flipped = whole.clone();
        flipped[at as usize] ^= 1;
        fs::write(path(folder.path(), 1), flipped).unwrap();
        let (numbers, damages) = read(folder.path());
        assert!(!damages.is_empty());
        let lost = 390 - numbers.len();
        assert!(
            (1..=FRAME_ENTRIES_MAX as usize).contains(&lost),
            "{lost} records are lost by the bit at {at}"
        );
        fs::write(path(folder.path(), 1), whole).unwrap();
    }
}

/// Every byte of a log's segments.
fn bytes_of(folder: &Path) -> Vec<u8> {
    let segments = SegmentId::list(folder).unwrap();
    segments.into_iter().flat_map(|segment| fs::read(segment.path(folder)).unwrap()).collect()
}

fn encrypting(cipher: &LogCipher, segment_bytes: u64) -> LogOptions {
    LogOptions { segment_bytes, cipher: Some(cipher.clone()), ..LogOptions::default() }
}

#[test]
fn an_encrypted_log_gives_its_records_for_its_key_only() {
    let folder = tempfile::tempdir().unwrap();
    let cipher = LogCipher::generate();
    write_groups(folder.path(), &[2, 3], encrypting(&cipher, 1));
    // A writer that opens the log again goes on in the right place.
    let mut writer = LogWriter::open(folder.path(), encrypting(&cipher, 1 << 20)).unwrap();
    for number in 5..7 {
        writer.append(&record(number)).unwrap();
        writer.commit().unwrap();
    }
    let index = WinnerIndex::build(folder.path(), Some(&cipher), 0, |damage| panic!("{damage}")).unwrap();
    let streamed: Vec<Record> =
        index.records(folder.path(), Some(&cipher)).unwrap().map(|record| record.unwrap()).collect();
    assert_eq!(streamed, (0..7).map(record).collect::<Vec<_>>());
    let key = testing::key("m", 6);
    assert_eq!(index.read(folder.path(), Some(&cipher), &key).unwrap(), Some(record(6)));

    // Without the key: what to do about it, and what checksums and headers say.
    let error = index.read(folder.path(), None, &key).unwrap_err().to_string();
    assert!(error.contains("`log_key` in the run's manifest.json"), "{error}");
    let mut reader = LogReader::open(folder.path(), None).unwrap();
    assert!(matches!(reader.next(), Some(Err(LogError::KeyNeeded { .. }))));
    assert!(reader.next().is_none());
    let report = verify(folder.path(), None, Some(7)).unwrap();
    assert_eq!((report.unopened, report.records, report.is_sound(), report.missing()), (7, 0, true, None));
    let report = verify(folder.path(), Some(&cipher), Some(7)).unwrap();
    assert_eq!((report.unopened, report.records, report.is_sound(), report.missing()), (0, 7, true, Some(0)));
    let report = verify(folder.path(), Some(&LogCipher::generate()), None).unwrap();
    assert_eq!((report.losses, report.records), (4, 0), "with another key");
}

#[test]
fn an_encrypted_log_holds_no_text_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let holds_texts = |bytes: &[u8]| {
        ["Who is known", "RdfFriendCount", "says m"]
            .iter()
            .any(|text| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    // Wherever a compressed frame may begin. One that is not cut off at its end gives what it can.
    let decompressed = |bytes: &[u8]| -> Vec<u8> {
        const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
        let mut text = Vec::new();
        for at in bytes.windows(4).enumerate().filter(|(_, window)| *window == ZSTD_MAGIC).map(|(at, _)| at) {
            let _ = zstd::stream::copy_decode(&bytes[at..], &mut text);
        }
        text
    };
    write_groups(folder.path(), &[3, 3], LogOptions::default());
    assert!(holds_texts(&decompressed(&bytes_of(folder.path()))), "the search finds what is there");
    keep_only(&path(folder.path(), 0));
    write_groups(folder.path(), &[3, 3], encrypting(&LogCipher::generate(), 1));
    let bytes = bytes_of(folder.path());
    assert!(!holds_texts(&bytes) && !holds_texts(&decompressed(&bytes)));
}

#[test]
fn damage_to_an_encrypted_log_spoils_only_its_frames() {
    let folder = tempfile::tempdir().unwrap();
    let cipher = LogCipher::generate();
    let ends = write_groups(folder.path(), &[1, 1, 1, 1], encrypting(&cipher, 1 << 20));
    let path = path(folder.path(), 1);
    let whole = fs::read(&path).unwrap();
    let frame = |number: usize| {
        let start = if number == 0 { 0 } else { ends[number - 1] as usize };
        start..ends[number] as usize
    };
    let read = || {
        let (mut numbers, mut kinds) = (Vec::new(), Vec::new());
        for item in LogReader::open(folder.path(), Some(&cipher)).unwrap() {
            match item.unwrap() {
                LogItem::Record { record, .. } => numbers.push(testing::number(&record)),
                LogItem::Event { .. } => {}
                LogItem::Damage(damage) => kinds.push(damage.kind),
            }
        }
        (numbers, kinds)
    };
    let length = |number: usize| frame(number).len() as u64;

    let mut flipped = whole.clone();
    flipped[frame(1).end - 1] ^= 1;
    fs::write(&path, &flipped).unwrap();
    assert_eq!(read(), (vec![0, 2, 3], vec![DamageKind::Corrupt { bytes: length(1) }]));

    // A frame played back behind the end has good checksums and is not taken for a record.
    fs::write(&path, [&whole, &whole[frame(0)]].concat()).unwrap();
    assert_eq!(read(), (vec![0, 1, 2, 3], vec![DamageKind::Foreign { bytes: length(0) }]));

    // A torn tail stays, and the log goes on in the next segment.
    fs::write(&path, &whole[..frame(3).end - 1]).unwrap();
    keep_only(&path);
    let mut writer = LogWriter::open(folder.path(), encrypting(&cipher, 1 << 20)).unwrap();
    writer.append(&record(9)).unwrap();
    writer.commit().unwrap();
    assert_eq!(read(), (vec![0, 1, 2, 9], vec![DamageKind::TornTail { bytes: length(3) - 1 }]));
}
