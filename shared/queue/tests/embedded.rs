//! The SQLite store under the conformance suite, against the memory model, and through what only a file goes through.

#![expect(clippy::unwrap_used, reason = "the helpers below are test code as well")]

use std::sync::Arc;
use std::time::Duration;

use queue::testing::{Bench, block_on};
use queue::{
    Error, LeaseRequest, LocalStore, ManualClock, NewUnit, QueueStore, RunRef, RunSpec, Transition, UnitId,
};

async fn open() -> Option<Bench> {
    Some(Bench::embedded())
}

queue::conformance_suite!(open);

#[test]
fn random_sequences_agree_with_the_memory_model() {
    queue::differential::compare_with_the_model(60, Bench::embedded);
}

async fn filled(store: &dyn QueueStore) -> RunRef {
    let spec = RunSpec {
        run: "r".into(),
        plan_hash: "plan".into(),
        lease_for: Duration::from_secs(60),
        max_strikes: 3,
        generation_floor: 0,
        ticket_floor: 0,
    };
    let at = store.create_run(&spec).await.unwrap().at;
    let unit = |i| NewUnit { model: "m".into(), dialogues: 10, payload: vec![i] };
    let units: Vec<_> = (0..4).map(unit).collect();
    store.add_units(&at, UnitId(0), &units).await.unwrap();
    at
}

fn ask() -> LeaseRequest {
    LeaseRequest { worker: "w".into(), models: vec!["m".into()], max_units: 2 }
}

#[test]
fn a_reopened_file_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.sqlite");
    block_on(async {
        let store = LocalStore::open(&file, Arc::new(ManualClock::at(1_000))).unwrap();
        let at = filled(&store).await;
        let held = store.lease(&at, &ask()).await.unwrap();
        // Opened while the first one is still at work, as a second process would.
        let second = LocalStore::open(&file, Arc::new(ManualClock::at(2_000))).unwrap();
        drop(store);
        let fence = std::slice::from_ref(&held[0].fence);
        assert_eq!(second.finish(&at, fence).await.unwrap(), [Transition::Applied]);
        let next = second.lease(&at, &ask()).await.unwrap();
        assert_eq!(next.iter().map(|lease| lease.fence.unit.0).collect::<Vec<_>>(), [2, 3]);
    });
}

#[test]
fn two_stores_on_one_file_never_share_a_unit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.sqlite");
    block_on(async {
        let clock = Arc::new(ManualClock::at(1_000));
        let stores = [0, 1].map(|_| LocalStore::open(&file, clock.clone()).unwrap());
        let at = filled(&stores[0]).await;
        let (ours, theirs) = (ask(), ask());
        let (a, b) = futures::future::join(stores[0].lease(&at, &ours), stores[1].lease(&at, &theirs)).await;
        let mut ids: Vec<_> =
            a.unwrap().into_iter().chain(b.unwrap()).map(|lease| lease.fence.unit.0).collect();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2, 3]);
    });
}

#[test]
fn a_file_that_is_no_queue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let clock = || Arc::new(ManualClock::at(1_000));
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "These are notes, and rather long ones, so that they look like a page. ".repeat(20),
    )
    .unwrap();
    assert!(matches!(LocalStore::open(&text, clock()), Err(Error::Corrupt { .. })));
    assert!(matches!(LocalStore::open(folder.path(), clock()), Err(Error::Unfit { .. })));
    let missing = folder.path().join("no/such/folder/queue.sqlite");
    assert!(matches!(LocalStore::open(&missing, clock()), Err(Error::Unfit { .. })));
}
