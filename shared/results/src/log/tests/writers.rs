//! Several writers in one folder: together they are one log.

use std::collections::BTreeMap;

use super::*;

/// The options of the n-th writer, with small segments; 0 is the one that holds the lock.
fn options(writer: u32, cipher: Option<&LogCipher>) -> LogOptions {
    let writer = WriterId::from_number(writer);
    LogOptions { writer, segment_bytes: 900, cipher: cipher.cloned(), ..LogOptions::default() }
}

/// What a step of a test does: who appends, which iteration, scored or not, and whether it commits then.
type Step = (u32, u32, bool, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..4_u32, 0..6_u32, any::<bool>(), any::<bool>()), 0..40)
}

/// Does the steps, tickets counted from 0, with a writer for each number that `place` gives.
fn write_steps(folder: &Path, steps: &[Step], cipher: Option<&LogCipher>, place: impl Fn(u32) -> u32) {
    let mut writers: BTreeMap<u32, LogWriter> = BTreeMap::new();
    for (ticket, &(writer, iteration, scored, commit)) in (0..).zip(steps) {
        let number = place(writer);
        let writer = writers
            .entry(number)
            .or_insert_with(|| LogWriter::open(folder, options(number, cipher)).unwrap().0);
        writer.append(&testing::entry(ticket, "m", iteration, scored)).unwrap();
        if commit {
            writer.commit().unwrap();
        }
    }
    for writer in writers.values_mut() {
        writer.commit().unwrap();
    }
}

fn winning_tickets(folder: &Path, cipher: Option<&LogCipher>) -> Vec<(u32, u64, bool)> {
    let index = WinnerIndex::build(folder, cipher, 0, |damage| panic!("{damage}")).unwrap();
    let mut winners: Vec<_> = index
        .records(folder, cipher)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.record.key.iteration, entry.ticket, entry.record.outcome.is_scored()))
        .collect();
    for (iteration, ticket, _) in &winners {
        let read = index.read(folder, cipher, &testing::key("m", *iteration)).unwrap();
        assert_eq!(read.map(|entry| entry.ticket), Some(*ticket));
    }
    winners.sort_unstable();
    winners
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_same_records_win_however_many_writers_wrote_them(steps in steps(), encrypted: bool) {
        let cipher = encrypted.then(LogCipher::generate);
        let (one, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_steps(one.path(), &steps, cipher.as_ref(), |_| 0);
        write_steps(many.path(), &steps, cipher.as_ref(), |writer| writer);
        let winners = winning_tickets(one.path(), cipher.as_ref());
        prop_assert_eq!(&winning_tickets(many.path(), cipher.as_ref()), &winners);
        let [one, many] = [&one, &many].map(|folder| verify(folder.path(), cipher.as_ref(), Some(6)).unwrap());
        prop_assert!(one.is_sound() && many.is_sound());
        prop_assert_eq!(many.entries, steps.len() as u64);
        prop_assert_eq!(
            (one.dialogues, one.scored, one.superseded, one.failed),
            (many.dialogues, many.scored, many.superseded, many.failed)
        );
    }
}

#[test]
fn a_writer_without_entries_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    for writer in [0, 1] {
        let (mut writer, _) = LogWriter::open(folder.path(), options(writer, None)).unwrap();
        assert_eq!(writer.commit().unwrap(), 0);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn only_the_lock_holder_goes_on_in_segments_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    for writer in [0, 9] {
        let (mut writer, _) = LogWriter::open(folder.path(), options(writer, None)).unwrap();
        writer.append(&testing::entry(0, "m", 0, true)).unwrap();
        writer.commit().unwrap();
    }
    LogWriter::open(folder.path(), options(0, None)).unwrap();
    let taken = LogWriter::open(folder.path(), options(9, None)).err();
    assert!(matches!(&taken, Some(LogError::Taken { path }) if path.ends_with("00000009-00000001.kglog")));
    assert_ne!(WriterId::random(), WriterId::random());
}

#[test]
fn torn_tails_and_gaps_are_told_for_each_writer() {
    let folder = tempfile::tempdir().unwrap();
    let steps: Vec<Step> = (0..15).map(|step| (step % 3, step, true, true)).collect();
    write_steps(folder.path(), &steps, None, |writer| writer);
    let segment = |writer, number| SegmentId { writer: WriterId::from_number(writer), number };
    let last = |writer| {
        let all = SegmentId::list(folder.path()).unwrap();
        all.into_iter().rfind(|id| id.writer.number() == writer).unwrap()
    };
    assert!((0..3).all(|writer| last(writer).number > 2));
    let append = |id: SegmentId, bytes: &[u8]| {
        let path = id.path(folder.path());
        io::Write::write_all(&mut File::options().append(true).open(path).unwrap(), bytes).unwrap();
    };
    append(last(0), b"torn");
    append(last(1), b"torn as well");
    append(segment(2, 1), b"not at the end");
    fs::remove_file(segment(2, 2).path(folder.path())).unwrap();
    let mut damages = Vec::new();
    WinnerIndex::build(folder.path(), None, 0, |damage| damages.push((damage.path, damage.kind))).unwrap();
    let expected = [
        (last(0), DamageKind::TornTail { bytes: 4 }),
        (last(1), DamageKind::TornTail { bytes: 12 }),
        (segment(2, 1), DamageKind::TornTail { bytes: 14 }),
        (segment(2, 2), DamageKind::MissingSegments { count: 1 }),
    ];
    assert_eq!(damages, expected.map(|(id, kind)| (id.path(folder.path()), kind)));
    let report = verify(folder.path(), None, None).unwrap();
    assert_eq!((report.losses, report.torn_bytes, report.writers), (1, 30, 3));
    // The lock holder leaves its own tail where it is, too.
    let (_, recovery) = LogWriter::open(folder.path(), options(0, None)).unwrap();
    assert_eq!(recovery.torn_bytes, 4);
    assert_eq!(verify(folder.path(), None, None).unwrap().torn_bytes, 30);
}

#[test]
fn a_segment_that_was_renamed_for_another_writer_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let cipher = LogCipher::generate();
    write_steps(folder.path(), &[(5, 0, true, true)], Some(&cipher), |writer| writer);
    let from = |writer| SegmentId::first(WriterId::from_number(writer)).path(folder.path());
    fs::copy(from(5), from(6)).unwrap();
    fs::copy(from(5), from(0)).unwrap();
    let report = verify(folder.path(), Some(&cipher), None).unwrap();
    assert_eq!((report.entries, report.losses), (1, 2));
}

#[tokio::test]
async fn a_batch_is_acknowledged_once_and_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = LogWriter::open(folder.path(), options(3, None)).unwrap();
    let (queue, thread) = CommitQueue::start(writer).unwrap();
    let json =
        |ticket| serde_json::to_string(&testing::entry(ticket, "m", ticket as u32, true).record).unwrap();
    queue.commit_batch((0..5).map(|ticket| (ticket, json(ticket).into())).collect()).await.unwrap();
    queue.commit_batch(Vec::new()).await.unwrap();
    let broken = vec![(5, json(5).into()), (6, format!("{}\n", json(6)).into())];
    let refused = queue.commit_batch(broken).await.unwrap_err();
    assert!(matches!(&refused, CommitError::Log(error) if matches!(**error, LogError::NotALine { .. })));
    assert!(!refused.is_disk_full());
    queue.commit_batch(vec![testing::line(&testing::entry(7, "m", 7, true))]).await.unwrap();
    drop(queue);
    tokio::task::spawn_blocking(|| thread.join()).await.unwrap();
    assert_eq!(read(folder.path()), (vec![0, 1, 2, 3, 4, 7], vec![]));
}
