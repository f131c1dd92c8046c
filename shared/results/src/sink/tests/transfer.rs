//! Runs are copied between folders and object stores, whole or not at all.

use super::*;
use crate::sink::transfer::{TransferError, transfer};

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn manifest() -> RunManifest {
    let mut manifest = testing::manifest("r");
    manifest.packs[0].hash = HASH.to_owned();
    manifest
}

/// A finished run with everything that a run can have.
async fn make_run(sink: &Arc<dyn Sink>) -> WriterId {
    let writer = WriterId::random();
    sink.create_run(&manifest()).await.unwrap();
    write(sink, "r", writer, 1..4).await;
    sink.put_pack(HASH, Bytes::from_static(b"sealed")).await.unwrap();
    sink.put_retry(&run("r"), "one", Bytes::from_static(b"{}")).await.unwrap();
    sink.claim_generation(&run("r"), 3).await.unwrap();
    for (revision, phase) in [(1, "active"), (2, "finished")] {
        assert!(sink.revise_state(&run("r"), revision, &json!({ "phase": phase })).await.unwrap());
    }
    let revised = RunManifest { revision: 2, ..manifest() };
    assert!(sink.revise_run(&revised).await.unwrap());
    writer
}

/// Tickets of the run as somebody sees it who comes afterwards.
async fn seen(shared: &Shared) -> Vec<u64> {
    let sink = shared.sink();
    let dir = sink.existing(&run("r")).await.unwrap();
    sink.refresh(&run("r")).await.unwrap();
    tickets(&dir)
}

#[tokio::test]
async fn a_run_is_copied_whole_between_all_kinds_of_places_and_again_without_effect() {
    for kind in 0..Shared::all().len() {
        for to in Shared::all() {
            let from = Shared::all().remove(kind);
            let (source, target) = (from.sink(), to.sink());
            make_run(&source).await;
            let first = transfer(&*source, &*target, &run("r")).await.unwrap();
            assert_eq!((first.manifest.revision, seen(&to).await), (2, vec![1, 2, 3]));
            assert!(first.copied >= 6 && first.bytes > 0, "{first:?}");
            assert_eq!(target.pack(HASH).await.unwrap().unwrap(), "sealed");
            assert_eq!(target.generation(&run("r")).await.unwrap(), Some(3));
            assert_eq!(target.retries(&run("r")).await.unwrap().len(), 1);
            // Only the newest one is copied.
            assert_eq!(state(&target, "r", 0).await, Some((1, json!({ "phase": "finished" }))));
            let again = transfer(&*source, &*target, &run("r")).await.unwrap();
            assert_eq!((again.copied, again.files, again.log_hash), (0, first.files, first.log_hash.clone()));
            // And what came back is what went.
            let back = Shared::all().remove(0);
            let returned = transfer(&*target, &*back.sink(), &run("r")).await.unwrap();
            assert_eq!((returned.log_hash, seen(&back).await), (first.log_hash, vec![1, 2, 3]));
        }
    }
}

#[tokio::test]
async fn what_an_interrupted_copy_left_is_no_run_and_is_completed() {
    for to in Shared::all() {
        let from = Shared::all().remove(0);
        let (source, target) = (from.sink(), to.sink());
        make_run(&source).await;
        let segments = source.list("runs/r/log").await.unwrap();
        let segment = segments.iter().find(|name| name.ends_with("kglog")).unwrap();
        let file = format!("runs/r/log/{segment}");
        let content = source.read(&file).await.unwrap().unwrap();
        // The segment as it was when the copy was interrupted, before more was written to it.
        target.create(&file, content.slice(..content.len() / 2)).await.unwrap();
        assert!(target.runs().await.unwrap().is_empty());
        transfer(&*source, &*target, &run("r")).await.unwrap();
        assert_eq!(seen(&to).await, [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_run_that_went_on_is_brought_up_to_date_in_one_direction_only() {
    let (from, to) = (Shared::all().remove(0), Shared::all().remove(1));
    let (source, target) = (from.sink(), to.sink());
    make_run(&source).await;
    transfer(&*source, &*target, &run("r")).await.unwrap();
    write(&source, "r", WriterId::random(), 4..6).await;
    let more = transfer(&*source, &*target, &run("r")).await.unwrap();
    assert_eq!((more.copied, seen(&to).await), (1, vec![1, 2, 3, 4, 5]));
    // One of the segments grew there.
    let segments = target.list("runs/r/log").await.unwrap();
    let file = format!("runs/r/log/{}", segments.iter().find(|name| name.ends_with("kglog")).unwrap());
    let mut grown = target.read(&file).await.unwrap().unwrap().to_vec();
    grown.extend(b"more");
    target.replace(&file, grown.clone().into()).await.unwrap();
    let error = transfer(&*source, &*target, &run("r")).await.unwrap_err();
    assert!(matches!(error, TransferError::Ahead { .. }), "{error}");
    assert_eq!(target.read(&file).await.unwrap().unwrap(), grown);
}

#[tokio::test]
async fn a_different_run_of_the_same_name_is_never_changed() {
    for to in Shared::all() {
        let from = Shared::all().remove(0);
        let (source, target) = (from.sink(), to.sink());
        make_run(&source).await;
        let other = RunManifest { seed: 8, ..manifest() };
        target.create_run(&other).await.unwrap();
        write(&target, "r", WriterId::random(), 9..10).await;
        let error = transfer(&*source, &*target, &run("r")).await.unwrap_err();
        assert!(matches!(error, TransferError::Different { .. }), "{error}");
        assert_eq!((seen(&to).await, target.manifest(&run("r")).await.unwrap()), (vec![9], other));
        let error = transfer(&*source, &*target, &run("nothing")).await.unwrap_err();
        assert!(matches!(error, TransferError::Sink(SinkError::NoRun { .. })), "{error}");
        // Records of the same run cannot differ either.
        let clash = Shared::all().remove(1);
        let clash = clash.sink();
        let segments = source.list("runs/r/log").await.unwrap();
        let file = format!("runs/r/log/{}", segments.iter().find(|name| name.ends_with("kglog")).unwrap());
        clash.create(&file, Bytes::from_static(b"something else")).await.unwrap();
        let error = transfer(&*source, &*clash, &run("r")).await.unwrap_err();
        assert!(matches!(error, TransferError::Different { .. }), "{error}");
        assert!(clash.runs().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_run_that_was_removed_can_come_back() {
    for shared in Shared::all() {
        let from = Shared::all().remove(0);
        let (source, target) = (from.sink(), shared.sink());
        make_run(&source).await;
        transfer(&*source, &*target, &run("r")).await.unwrap();
        target.remove_run(&run("r")).await.unwrap();
        transfer(&*source, &*target, &run("r")).await.unwrap();
        assert!(!target.is_removed(&run("r")).await.unwrap());
        assert_eq!(seen(&shared).await, [1, 2, 3]);
    }
}
