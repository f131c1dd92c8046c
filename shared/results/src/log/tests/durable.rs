//! Acknowledged records survive flipped bits and cuts, and readers beside a living writer see nothing else.

use super::*;
use crate::Summary;

/// The bytes of every segment, by file name.
fn segments(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let segments = SegmentId::list(folder).unwrap().into_iter();
    segments.map(|id| (id.to_string(), fs::read(id.path(folder)).unwrap())).collect()
}

#[test]
fn a_flip_anywhere_in_the_last_frame_is_damage_and_nothing_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let ends = write_groups(folder.path(), &[2, 1], LogOptions::default());
    let path = path(folder.path(), 1);
    let whole = fs::read(&path).unwrap();
    for at in ends[0] as usize..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).unwrap();
        let report = verify(folder.path(), None, Some(3)).unwrap();
        assert!(!report.is_sound(), "flipped at {at}: {report:?}");
        assert_eq!((report.torn_bytes, report.missing()), (0, Some(1)), "flipped at {at}");
        assert_eq!(read(folder.path()).0, [0, 1]);
        // The next writer goes on beside it.
        drop(LogWriter::open(folder.path(), LogOptions::default()).unwrap());
        assert!(!verify(folder.path(), None, Some(3)).unwrap().is_sound(), "flipped at {at}");
        assert_eq!(segments(folder.path()), [("00000001-00000001.kglog".to_owned(), flipped)]);
    }
}

#[test]
fn a_log_that_ends_before_what_was_acknowledged_is_damaged_wherever_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    write_groups(folder.path(), &[2, 1, 1], LogOptions::default());
    let path = path(folder.path(), 1);
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..cut]).unwrap();
        let report = verify(folder.path(), None, Some(4)).unwrap();
        assert!(!report.is_sound() && report.torn_bytes == 0, "cut at {cut}: {report:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_reader_beside_the_writer_is_given_what_was_synced_and_nothing_else(
        steps in prop::collection::vec((any::<bool>(), any::<bool>()), 1..30),
        segment_bytes in 1..3_000_u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        // Every record is a frame, written before its group is synced.
        let options = LogOptions { segment_bytes, frame_bytes: 1, ..LogOptions::default() };
        let mut writer = LogWriter::open(folder.path(), options).unwrap();
        let mut position = None;
        let mut read_on = || {
            let mut reader = LogReader::<Summary>::from(folder.path(), None, position).unwrap();
            let read: Vec<u64> = reader.by_ref().map(|item| match item.unwrap() {
                LogItem::Record { record, .. } => record.key.iteration.into(),
                other => panic!("{other:?}"),
            }).collect();
            position = Some(reader.position());
            read
        };
        let (mut given, mut synced) = (Vec::new(), 0);
        let mut written = 0;
        for (commit, look) in steps {
            writer.append(&record(written)).unwrap();
            written += 1;
            if commit {
                writer.commit().unwrap();
                synced = written;
            }
            if look {
                given.extend(read_on());
                prop_assert_eq!(&given, &(0..synced).collect::<Vec<_>>());
                prop_assert_eq!(read(folder.path()), ((0..synced).collect(), Vec::new()));
            }
        }
        // Its process ends: what it has written is all there is now, and is not going to change.
        drop(writer);
        given.extend(read_on());
        prop_assert_eq!(given, (0..written).collect::<Vec<_>>());
    }
}
