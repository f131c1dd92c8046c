//! What several coordinators see of one folder.

use bytes::Bytes;
use domain::control::HistoryEntry;
use domain::{ErrorCode, ServiceError};
use serde_json::{Value, json};

use super::{LogOptions, OpenLog, RunId, RunManifest, Sink, SinkError};
use crate::log::{CommitError, LogError, LogItem, LogReader};
use crate::testing;

/// What several coordinators share: a folder that is removed in the end.
struct Shared(tempfile::TempDir);

impl Shared {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The sink of one more coordinator.
    fn sink(&self) -> Sink {
        Sink::new(self.0.path().join("data"))
    }
}

fn run(name: &str) -> RunId {
    RunId::new(name)
}

#[tokio::test]
async fn a_run_is_made_once_and_seen_by_all() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    assert!(one.runs().await.unwrap().is_empty());
    one.create_run(&testing::manifest("b")).await.unwrap();
    two.create_run(&testing::manifest("a")).await.unwrap();
    for sink in [&one, &two] {
        let error = sink.create_run(&testing::manifest("b")).await.unwrap_err();
        assert!(matches!(error, SinkError::Exists { .. }), "{error}");
        let runs = sink.runs().await.unwrap().into_iter().map(|found| found.manifest.unwrap());
        assert_eq!(runs.collect::<Vec<_>>(), [testing::manifest("a"), testing::manifest("b")]);
        assert_eq!(sink.manifest(&run("a")).await.unwrap(), testing::manifest("a"));
        assert!(matches!(sink.manifest(&run("c")).await, Err(SinkError::NoRun { .. })));
    }
    two.remove_run(&run("b")).await.unwrap();
    let error = one.remove_run(&run("b")).await.unwrap_err();
    assert_eq!(code(error), ErrorCode::NotFound);
    for sink in [&one, &two] {
        assert_eq!(sink.runs().await.unwrap().len(), 1);
        assert!(sink.is_removed(&run("b")).await.unwrap());
        assert!(!sink.is_removed(&run("a")).await.unwrap());
    }
}

#[tokio::test]
async fn of_many_who_revise_a_manifest_one_does_and_all_see_it() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    one.create_run(&testing::manifest("r")).await.unwrap();
    assert_eq!(two.manifest(&run("r")).await.unwrap().revision, 1);
    let revised = |seed| RunManifest { revision: 2, seed, ..testing::manifest("r") };
    let (first, second) = tokio::join!(async { one.revise_run(&revised(10)).await.unwrap() }, async {
        two.revise_run(&revised(20)).await.unwrap()
    });
    assert_ne!(first, second);
    let seed = if first { 10 } else { 20 };
    for sink in [&one, &two, &shared.sink()] {
        let newest = sink.manifest(&run("r")).await.unwrap();
        assert_eq!((newest.revision, newest.seed), (2, seed));
        let listed = sink.runs().await.unwrap().remove(0).manifest.unwrap();
        assert_eq!(listed.revision, 2, "what was read once is in the list");
    }
    let missing = RunManifest { revision: 2, ..testing::manifest("none") };
    assert_eq!(code(one.revise_run(&missing).await.unwrap_err()), ErrorCode::NotFound);
    one.remove_run(&run("r")).await.unwrap();
}

#[tokio::test]
async fn a_place_of_records_has_one_identity_whoever_gives_it() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    assert_eq!(one.identity().await.unwrap(), None);
    let (first, second) = tokio::join!(one.identify(), two.identify());
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(one.identity().await.unwrap(), two.identity().await.unwrap());
}

/// What a caller over the wire gets.
fn code(error: SinkError) -> ErrorCode {
    ServiceError::from(error).code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_make_a_run_one_does() {
    let shared = Shared::new();
    let calls = (0..16).map(|seed| {
        let sink = shared.sink();
        let manifest = RunManifest { seed, ..testing::manifest("contested") };
        tokio::spawn(async move { sink.create_run(&manifest).await.map(|_| seed) })
    });
    let results = futures::future::join_all(calls).await.into_iter().map(Result::unwrap);
    let (mut made, mut refused) = (Vec::new(), 0);
    for result in results {
        match result {
            Ok(seed) => made.push(seed),
            Err(SinkError::Exists { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((made.len(), refused), (1, 15));
    assert_eq!(shared.sink().manifest(&run("contested")).await.unwrap().seed, made[0]);
}

#[tokio::test]
async fn who_opens_a_log_last_writes_it() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    one.create_run(&testing::manifest("r")).await.unwrap();
    assert_eq!(two.epoch(&run("r")).await.unwrap(), Some(0));
    let commit = |log: &OpenLog, number: u32| {
        let (queue, line) = (log.queue.clone(), testing::line(&testing::record("m", number, true)));
        async move { queue.commit_batch(vec![line]).await }
    };
    let first = one.open_log(&run("r"), LogOptions::default()).await.unwrap();
    commit(&first, 0).await.unwrap();
    let second = two.open_log(&run("r"), LogOptions::default()).await.unwrap();
    assert_eq!((first.epoch, second.epoch, one.epoch(&run("r")).await.unwrap()), (1, 2, Some(2)));
    let followed = commit(&first, 1).await.unwrap_err();
    assert!(matches!(&followed, CommitError::Log(error) if matches!(**error, LogError::Followed { .. })));
    commit(&second, 2).await.unwrap();
    let items = LogReader::open(&one.run_dir(&run("r")).unwrap().log(), None).unwrap();
    let numbers = items.filter_map(|item| match item.unwrap() {
        LogItem::Record { record, .. } => Some(testing::number(&record)),
        LogItem::Event { .. } | LogItem::Damage(_) => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 2]);
    let missing = one.open_log(&run("none"), LogOptions::default()).await;
    assert_eq!(code(missing.unwrap_err()), ErrorCode::NotFound);
}

#[tokio::test]
async fn a_state_is_what_was_written_last_and_goes_with_its_run() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    let r = run("r");
    assert!(matches!(one.put_state(&r, &1).await, Err(SinkError::NoRun { .. })));
    one.create_run(&testing::manifest("r")).await.unwrap();
    assert_eq!(two.state::<Value>(&r).await.unwrap(), None);
    for content in ["paused", "active"] {
        one.put_state(&r, &content).await.unwrap();
        assert_eq!(two.state::<Value>(&r).await.unwrap(), Some(json!(content)));
    }
    let other_shape = two.state::<Vec<u8>>(&r).await.unwrap_err().to_string();
    assert!(other_shape.contains("runs/r/state.json"), "{other_shape}");
    one.remove_run(&r).await.unwrap();
    one.create_run(&testing::manifest("r")).await.unwrap();
    assert_eq!(two.state::<Value>(&r).await.unwrap(), None);
    for bad in ["../x", "a/b", ""] {
        assert_eq!(code(one.state::<Value>(&run(bad)).await.unwrap_err()), ErrorCode::Invalid);
    }
}

/// The newest revision of a document, for somebody who knows this one.
async fn newest(sink: &Sink, known: u32) -> Option<(u32, Value)> {
    sink.newest_json("pipelines/p.state", known).await.unwrap()
}

#[tokio::test]
async fn a_document_is_the_newest_of_its_revisions_each_of_which_one_writes() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    assert_eq!(newest(&two, 0).await, None);
    for revision in 1..=30 {
        let content = |by: &str| json!({ "phase": format!("{revision} by {by}") });
        let (ones, twos) = (content("one"), content("two"));
        let document = "pipelines/p.state";
        let (first, second) = tokio::join!(
            one.revise_json(document, revision, &ones),
            two.revise_json(document, revision, &twos)
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(first != second, "one of two writes revision {revision}");
        let written = Some((revision, if first { ones } else { twos }));
        for known in 0..=revision {
            assert_eq!(newest(&two, known).await, written, "for who knows {known}");
        }
    }
}

#[tokio::test]
async fn packs_are_what_was_written_last() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    let hash = "0123456789abcdef".repeat(4);
    assert_eq!(two.pack(&hash).await.unwrap(), None);
    one.put_pack(&hash, Bytes::from_static(b"sealed")).await.unwrap();
    one.put_pack(&hash, Bytes::from_static(b"sealed")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(two.pack(&hash).await.unwrap().as_deref(), Some(b"sealed".as_slice()));
    }
    for bad in ["../../etc/passwd", "", "ab"] {
        assert!(matches!(one.pack(bad).await, Err(SinkError::PackHash(_))), "{bad}");
    }
}

#[tokio::test]
async fn a_check_leaves_nothing_behind() {
    let shared = Shared::new();
    let sink = shared.sink();
    let report = sink.check().await.unwrap();
    assert!(report.free_bytes > 0 && report.place == sink.to_string(), "{report:?}");
    let folder = sink.run_dir(&run("r")).unwrap();
    let data = folder.path().ancestors().nth(2).unwrap();
    assert_eq!(std::fs::read_dir(data).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(sink.folder()).unwrap().count(), 0);
    // A file stands where the folder should be.
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Sink::new(file.path()).check().await.unwrap_err().to_string();
    assert!(error.contains(file.path().to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_generation_is_claimed_once_and_the_highest_is_known_to_all() {
    let shared = Shared::new();
    let (one, two) = (shared.sink(), shared.sink());
    let a = run("a");
    assert!(matches!(one.claim_generation(&a, 1).await, Err(SinkError::NoRun { .. })));
    assert_eq!(one.generation(&a).await.unwrap(), None);
    one.create_run(&testing::manifest("a")).await.unwrap();
    assert_eq!(two.generation(&a).await.unwrap(), None);
    // The order of the names is that of the numbers, and nothing depends on it.
    for generation in [9, 1_780_000_000_000, 10] {
        let (first, second) =
            tokio::join!(one.claim_generation(&a, generation), two.claim_generation(&a, generation));
        assert!(first.unwrap() != second.unwrap(), "one of two claims {generation}");
        assert!(!two.claim_generation(&a, generation).await.unwrap());
    }
    for sink in [&one, &two] {
        assert_eq!(sink.generation(&a).await.unwrap(), Some(1_780_000_000_000));
    }
}

#[tokio::test]
async fn what_was_noted_stays_in_its_order_wherever_it_is_kept() {
    let shared = Shared::new();
    let sink = shared.sink();
    let run = RunId::new("a");
    let entry = |second: i64, what: &str| HistoryEntry {
        at: jiff::Timestamp::from_second(second).unwrap(),
        who: "alice".to_owned(),
        what: what.to_owned(),
    };
    assert!(sink.append_history(&run, &entry(1, "submitted")).await.is_err(), "no such run");
    sink.create_run(&testing::manifest("a")).await.unwrap();
    assert_eq!(sink.history(&run).await.unwrap(), []);
    let entries = [entry(1, "submitted"), entry(2, "paused"), entry(2, "cancelled"), entry(10, "resumed")];
    for entry in [&entries[3], &entries[0], &entries[1], &entries[2]] {
        sink.append_history(&run, entry).await.unwrap();
    }
    let mut found = sink.history(&run).await.unwrap();
    assert_eq!((&found[0], &found[3]), (&entries[0], &entries[3]));
    found.retain(|entry| entry.at == entries[1].at);
    assert_eq!(found.len(), 2, "two of the same moment are both there");
}
