//! Writers that follow each other in one folder: together they are one log, of which every reader sees the same.

use super::*;

/// Small segments, each group one or more of them.
fn small() -> LogOptions {
    LogOptions { segment_bytes: 1, ..LogOptions::default() }
}

/// A writer in the next epoch that has committed records of these numbers.
fn writer(folder: &Path, numbers: std::ops::Range<u64>) -> LogWriter {
    let mut writer = LogWriter::open(folder, small()).unwrap();
    commit(&mut writer, numbers).unwrap();
    writer
}

fn commit(writer: &mut LogWriter, numbers: std::ops::Range<u64>) -> Result<(), LogError> {
    for number in numbers {
        writer.append(&record(number))?;
        writer.commit()?;
    }
    Ok(())
}

#[test]
fn who_is_followed_acknowledges_nothing_and_adds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = writer(folder.path(), 0..2);
    // It has synced this one, and is stopped before it can look whether it was followed.
    first.append(&record(2)).unwrap();
    let mut second = writer(folder.path(), 10..11);
    let followed = first.commit().unwrap_err();
    assert!(matches!(followed, LogError::Followed { .. }), "{followed}");
    assert!(matches!(commit(&mut first, 3..4), Err(LogError::Stopped { .. })));
    commit(&mut second, 11..12).unwrap();
    let (numbers, damages) = read(folder.path());
    assert_eq!(numbers, [0, 1, 10, 11]);
    assert!(damages.iter().all(|damage| !damage.is_loss()), "{damages:?}");
    let report = verify(folder.path(), None, None).unwrap();
    assert_eq!((report.epochs, report.is_sound()), (2, true));
    assert!(report.torn_bytes > 0, "what was never acknowledged is told");
}

#[test]
fn what_was_acknowledged_stays_however_many_write_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut former: Vec<LogWriter> = Vec::new();
    for epoch in 0..5 {
        let next = writer(folder.path(), epoch * 10..epoch * 10 + 3);
        // Every earlier one goes on as if it did not know.
        for former in &mut former {
            commit(former, 900..901).unwrap_err();
        }
        former.push(next);
        let expected = (0..=epoch).flat_map(|epoch| epoch * 10..epoch * 10 + 3);
        assert_eq!(read(folder.path()).0, expected.collect::<Vec<_>>());
    }
    let of_kind = |extension: &str| {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|other| other == extension)).count()
    };
    assert_eq!((of_kind("claim"), of_kind("ends")), (1, 2), "those of before are removed");
}

#[test]
fn of_many_who_claim_at_once_each_has_an_epoch_and_the_last_one_writes() {
    let folder = tempfile::tempdir().unwrap();
    let claim = || {
        std::thread::spawn({
            let folder = folder.path().to_owned();
            move || Claim::take(&folder).unwrap()
        })
    };
    let claims: Vec<Claim> =
        (0..8).map(|_| claim()).collect::<Vec<_>>().into_iter().map(|claim| claim.join().unwrap()).collect();
    let mut epochs: Vec<u32> = claims.iter().map(Claim::epoch).collect();
    epochs.sort_unstable();
    epochs.dedup();
    assert_eq!(epochs.len(), 8);
    let holds: Vec<u32> = claims.iter().filter(|claim| claim.check().is_ok()).map(Claim::epoch).collect();
    assert_eq!(holds, [epochs[7]]);
}

#[test]
fn a_claim_whose_folder_is_another_one_or_gone_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let claim = Claim::take(folder.path()).unwrap();
    claim.check().unwrap();
    keep_only(&path(folder.path(), 1));
    assert!(matches!(claim.check(), Err(LogError::Followed { .. })), "the folder was restored from before");
    let other = Claim::take(folder.path()).unwrap();
    assert_eq!(other.epoch(), claim.epoch());
    assert!(
        matches!(claim.check(), Err(LogError::Followed { .. })),
        "the same number, claimed by somebody else"
    );
    fs::remove_dir_all(folder.path()).unwrap();
    assert!(other.check().is_err());
}

#[test]
fn tears_and_gaps_are_told_in_every_epoch_and_by_every_later_one() {
    let folder = tempfile::tempdir().unwrap();
    drop(writer(folder.path(), 0..5));
    let segment = |epoch, number| SegmentId { epoch, number };
    let append = |id: SegmentId, bytes: &[u8]| {
        let path = id.path(folder.path());
        io::Write::write_all(&mut File::options().append(true).open(path).unwrap(), bytes).unwrap();
    };
    append(segment(1, 5), b"torn");
    drop(writer(folder.path(), 5..8));
    append(segment(2, 3), b"torn as well");
    append(segment(1, 1), b"behind its end");
    let damages = || {
        let mut damages = Vec::new();
        WinnerIndex::build(folder.path(), None, 0, |damage| damages.push((damage.path, damage.kind)))
            .unwrap();
        damages
    };
    let told = [
        (segment(1, 1), DamageKind::TornTail { bytes: 14 }),
        (segment(1, 5), DamageKind::TornTail { bytes: 4 }),
        (segment(2, 3), DamageKind::TornTail { bytes: 12 }),
    ]
    .map(|(id, kind)| (id.path(folder.path()), kind));
    assert_eq!(damages(), told);
    drop(writer(folder.path(), 8..9));
    assert_eq!(damages(), told);
    fs::remove_file(segment(1, 3).path(folder.path())).unwrap();
    let report = verify(folder.path(), None, None).unwrap();
    assert_eq!((report.losses, report.torn_bytes, report.epochs), (1, 30, 3));
    assert_eq!(damages()[1].1, DamageKind::MissingSegments { count: 1 });
}

#[test]
fn a_segment_that_is_gone_is_missed_where_something_says_how_long_it_was() {
    let folder = tempfile::tempdir().unwrap();
    drop(writer(folder.path(), 0..2));
    for gone in [2, 1] {
        fs::remove_file(path(folder.path(), gone)).unwrap();
        // The next writer begins after it was lost.
        drop(writer(folder.path(), 5..6));
        let losses = read(folder.path()).1.into_iter().filter(Damage::is_loss);
        assert!(losses.map(|damage| damage.path).any(|lost| lost == path(folder.path(), gone)));
    }
}

#[test]
fn of_damaged_ends_the_ones_before_count_and_the_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for epoch in 0..3 {
        drop(writer(folder.path(), epoch..epoch + 1));
    }
    let newest = folder.path().join("00000003.ends");
    let whole = fs::read(&newest).unwrap();
    for at in (0..whole.len()).step_by(3) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 1;
        fs::write(&newest, spoilt).unwrap();
        let (numbers, damages) = read(folder.path());
        assert_eq!(numbers, [0, 1, 2], "spoilt at {at}");
        assert_eq!(damages, [Damage { path: newest.clone(), offset: 0, kind: DamageKind::BadEnds }]);
    }
    let later = String::from_utf8(whole).unwrap().replace("\"v\":1", "\"v\":2");
    let line = later.lines().next().unwrap();
    fs::write(&newest, format!("{line}\n{:08x}\n", crc32fast::hash(line.as_bytes()))).unwrap();
    assert!(matches!(LogReader::open(folder.path(), None), Err(LogError::Newer { found: 2, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_same_records_win_however_many_epochs_they_were_written_in(
        steps in prop::collection::vec((any::<bool>(), 0..6_u32, any::<bool>()), 0..40),
        encrypted: bool,
    ) {
        let cipher = encrypted.then(LogCipher::generate);
        let options = || LogOptions { segment_bytes: 900, cipher: cipher.clone(), ..LogOptions::default() };
        let winners = |in_one: bool| {
            let folder = tempfile::tempdir().unwrap();
            let mut writer = LogWriter::open(folder.path(), options()).unwrap();
            for (number, &(ends, iteration, scored)) in (0..).zip(&steps) {
                writer.append(&testing::numbered(number, "m", iteration, scored)).unwrap();
                if ends && !in_one {
                    writer.commit().unwrap();
                    writer = LogWriter::open(folder.path(), options()).unwrap();
                }
            }
            writer.commit().unwrap();
            let index = WinnerIndex::build(folder.path(), cipher.as_ref(), 0, |damage| panic!("{damage}")).unwrap();
            let winners: Vec<Record> =
                index.records(folder.path(), cipher.as_ref()).unwrap().map(|record| record.unwrap()).collect();
            for winner in &winners {
                let read = index.read(folder.path(), cipher.as_ref(), &winner.key).unwrap();
                assert_eq!(read.as_ref(), Some(winner));
            }
            let report = verify(folder.path(), cipher.as_ref(), Some(6)).unwrap();
            assert_eq!((report.records, report.is_sound()), (steps.len() as u64, true));
            (winners, report.dialogues, report.scored, report.superseded)
        };
        prop_assert_eq!(winners(true), winners(false));
    }
}

#[test]
fn a_segment_that_was_renamed_for_another_epoch_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let cipher = LogCipher::generate();
    write_groups(folder.path(), &[1], LogOptions { cipher: Some(cipher.clone()), ..LogOptions::default() });
    for other in [SegmentId { epoch: 1, number: 2 }, SegmentId::first(2)] {
        fs::copy(path(folder.path(), 1), other.path(folder.path())).unwrap();
    }
    let report = verify(folder.path(), Some(&cipher), None).unwrap();
    assert_eq!((report.records, report.losses), (1, 2));
}

#[tokio::test]
async fn a_batch_is_acknowledged_once_and_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let writer = LogWriter::open(folder.path(), small()).unwrap();
    let (queue, thread) = CommitQueue::start(writer).unwrap();
    let line = |number| testing::line(&record(number));
    let places = queue.commit_batch((0..5).map(line).collect()).await.unwrap();
    let mut reader = PlaceReader::new(folder.path(), None);
    for (number, place) in (0..5).zip(places) {
        let (read, _) = reader.read::<Record>(place).unwrap().unwrap();
        assert_eq!(testing::number(&read), number);
    }
    assert_eq!(queue.commit_batch(Vec::new()).await.unwrap(), []);
    let LogLine::Record(json) = line(6) else { panic!("a record") };
    let broken = vec![line(5), LogLine::Record(format!("{json}\n").into())];
    let refused = queue.commit_batch(broken).await.unwrap_err();
    assert!(matches!(&refused, CommitError::Log(error) if matches!(**error, LogError::NotALine { .. })));
    assert!(!refused.is_disk_full());
    let event: LogLine = LogLine::Event("{\"paused\":true}".into());
    let place = queue.commit_batch(vec![event, line(7)]).await.unwrap()[0];
    assert!(reader.read::<Record>(place).unwrap().is_none(), "an event is no record");
    drop(queue);
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap();
    assert_eq!(read(folder.path()), (vec![0, 1, 2, 3, 4, 7], vec![]));
    let events = LogReader::open(folder.path(), None).unwrap().filter_map(|item| match item.unwrap() {
        LogItem::Event { json, .. } => Some(json),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), ["{\"paused\":true}"]);
}
