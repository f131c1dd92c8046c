//! Following a log gives what reading it gives.

use std::collections::BTreeMap;

use super::*;
use crate::Summary;

/// Everything that is new, as (location, ticket); records are checked against their lines.
fn poll(tail: &mut LogTail) -> (Vec<(EntryLocation, u64)>, Vec<DamageKind>) {
    let (mut entries, mut damages) = (Vec::new(), Vec::new());
    while let Some(part) = tail.poll().unwrap() {
        match part {
            TailPart::Damage(damage) => damages.push(damage.kind),
            TailPart::Sealed(seals) => panic!("{seals:?}"),
            TailPart::Lines(mut lines) => {
                while let Some(line) = lines.next() {
                    let head = line.parse::<Summary>().unwrap();
                    let whole = line.parse::<domain::Record>().unwrap();
                    assert_eq!(head.record, Summary::of(&whole.record));
                    assert_eq!(head.json, serde_json::to_string(&whole.record).unwrap());
                    entries.push((line.location(), head.ticket));
                }
            }
        }
    }
    (entries, damages)
}

fn read_all(folder: &Path, cipher: Option<&LogCipher>) -> Vec<(EntryLocation, u64)> {
    let items = LogReader::open(folder, cipher).unwrap().map(|item| item.unwrap());
    items
        .filter_map(|item| match item {
            LogItem::Entry { location, entry, .. } => Some((location, entry.ticket)),
            LogItem::Damage(_) => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_tail_gives_what_a_reader_gives_and_nothing_twice(
        steps in prop::collection::vec((0..4_u32, any::<bool>(), any::<bool>()), 0..40),
        except in 0..4_u32,
        encrypted: bool,
        segment_bytes in 1..3_000_u64,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let cipher = encrypted.then(LogCipher::generate);
        let except = WriterId::from_number(except);
        let mut tail = LogTail::new(folder.path(), cipher.as_ref(), Some(except));
        let mut writers: BTreeMap<u32, LogWriter> = BTreeMap::new();
        let mut given = Vec::new();
        for (ticket, (number, commit, poll_now)) in (0..).zip(steps) {
            let writer = writers.entry(number).or_insert_with(|| {
                let writer = WriterId::from_number(number);
                let options =
                    LogOptions { writer, segment_bytes, cipher: cipher.clone(), ..LogOptions::default() };
                LogWriter::open(folder.path(), options).unwrap().0
            });
            writer.append(&testing::entry(ticket, "m", ticket as u32, true)).unwrap();
            if commit {
                writer.commit().unwrap();
            }
            if poll_now {
                let (entries, damages) = poll(&mut tail);
                prop_assert!(damages.is_empty());
                given.extend(entries);
            }
        }
        for writer in writers.values_mut() {
            writer.commit().unwrap();
        }
        given.extend(poll(&mut tail).0);
        prop_assert!(poll(&mut tail).0.is_empty());
        given.sort_unstable();
        let mut places = PlaceReader::new(folder.path(), cipher.as_ref());
        for &(location, ticket) in given.iter().rev().chain(&given) {
            let parsed = places.read::<domain::Record>(location).unwrap().unwrap();
            let entry = testing::entry(ticket, "m", ticket as u32, true);
            prop_assert_eq!(&*parsed.json, serde_json::to_string(&entry.record).unwrap());
            prop_assert_eq!((parsed.ticket, parsed.record), (ticket, entry.record));
            let behind = EntryLocation { line: location.line + 1000, ..location };
            prop_assert!(places.read::<Summary>(behind).unwrap().is_none());
        }
        let mut expected = read_all(folder.path(), cipher.as_ref());
        expected.retain(|(location, _)| location.segment.writer != except);
        prop_assert_eq!(given, expected);
    }

    #[test]
    fn a_file_that_grows_by_any_pieces_gives_every_entry_once(
        groups in prop::collection::vec(1..4_u64, 1..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (source, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_groups(source.path(), &groups, LogOptions::default());
        let bytes = fs::read(path(source.path(), 1)).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut tail = LogTail::new(folder.path(), None, None);
        let mut tickets = Vec::new();
        for cut in cuts {
            fs::write(path(folder.path(), 1), &bytes[..cut]).unwrap();
            let (entries, damages) = poll(&mut tail);
            prop_assert!(damages.is_empty(), "{:?}", damages);
            tickets.extend(entries.into_iter().map(|(_, ticket)| ticket));
        }
        prop_assert_eq!(tickets, (0..sum(&groups)).collect::<Vec<_>>());
    }
}

#[test]
fn damage_is_told_once_and_a_gap_only_when_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    write_groups(folder.path(), &[1, 1, 1, 1], LogOptions { segment_bytes: 1, ..LogOptions::default() });
    forget_marks(folder.path());
    let second = fs::read(path(folder.path(), 2)).unwrap();
    fs::remove_file(path(folder.path(), 2)).unwrap();
    let third = fs::read(path(folder.path(), 3)).unwrap();
    fs::write(path(folder.path(), 3), [b"junk".as_slice(), &third].concat()).unwrap();
    let tickets = |tail: &mut LogTail| {
        let (entries, damages) = poll(tail);
        (entries.into_iter().map(|(_, ticket)| ticket).collect::<Vec<_>>(), damages)
    };
    let mut tail = LogTail::new(folder.path(), None, None);
    assert_eq!(tickets(&mut tail), (vec![0], vec![]), "it waits for the second segment");
    let mut patient = LogTail::new(folder.path(), None, None);
    assert_eq!(tickets(&mut patient).0, [0]);
    let (missing, junk) = (DamageKind::MissingSegments { count: 1 }, DamageKind::Corrupt { bytes: 4 });
    assert_eq!(tickets(&mut tail), (vec![2, 3], vec![missing, junk.clone()]));
    assert_eq!(tickets(&mut tail), (vec![], vec![]));
    // It came late.
    fs::write(path(folder.path(), 2), second).unwrap();
    assert_eq!(tickets(&mut patient), (vec![1, 2, 3], vec![junk]));
}

#[test]
fn what_a_writer_took_back_does_not_hide_what_it_writes_instead() {
    let folder = tempfile::tempdir().unwrap();
    let ends = write_groups(folder.path(), &[1, 3], LogOptions::default());
    let mut tail = LogTail::new(folder.path(), None, None);
    assert_eq!(poll(&mut tail).0.len(), 4);
    // A writer of a version before cuts the second group off, and others are written in its place.
    forget_marks(folder.path());
    File::options().write(true).open(path(folder.path(), 1)).unwrap().set_len(ends[0]).unwrap();
    let (mut writer, _) = LogWriter::open(folder.path(), LogOptions::default()).unwrap();
    for ticket in 10..20 {
        writer.append(&testing::entry(ticket, "m", ticket as u32, true)).unwrap();
        writer.commit().unwrap();
    }
    let tickets: Vec<u64> = poll(&mut tail).0.into_iter().map(|(_, ticket)| ticket).collect();
    assert_eq!(tickets, [0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    assert!(poll(&mut tail).0.is_empty());
}

#[test]
fn an_encrypted_log_is_not_followed_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    write_groups(folder.path(), &[1], encrypting(&LogCipher::generate(), 1 << 20));
    let mut tail = LogTail::new(folder.path(), None, None);
    for _ in 0..2 {
        assert!(matches!(tail.poll(), Err(LogError::KeyNeeded { .. })));
    }
}

#[test]
fn a_reader_of_places_reads_what_was_written_after_it_opened_the_segment() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = LogWriter::open(folder.path(), LogOptions::default()).unwrap();
    let mut tail = LogTail::new(folder.path(), None, None);
    let mut places = PlaceReader::in_order(folder.path(), None);
    for ticket in 0..3 {
        writer.append(&testing::entry(ticket, "m", ticket as u32, true)).unwrap();
        writer.commit().unwrap();
        let (location, _) = poll(&mut tail).0[0];
        assert_eq!(places.read::<Summary>(location).unwrap().unwrap().ticket, ticket);
    }
}
