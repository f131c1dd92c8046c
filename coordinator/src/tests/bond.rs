//! Which queue and which records belong together.

use std::pin::pin;
use std::sync::Arc;

use domain::control::Control;
use futures::poll;
use queue::MemoryStore;

use super::ground::*;
use super::worker::*;
use crate::options::Adopt;

/// The start of a coordinator and its first round of tending both look, on an empty folder.
#[test]
fn who_looks_for_the_store_while_it_gets_its_name_finds_it() {
    // Files are read and written one after another, so the first look reads the name before the second one gives it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.unwrap().block_on(async {
        let coordinator = Ground::new().coordinator();
        let mut first = pin!(coordinator.bind(Adopt::NOTHING));
        assert!(poll!(&mut first).is_pending(), "it reads the name of the store");
        coordinator.bind(Adopt::NOTHING).await.unwrap();
        first.await.unwrap();
    });
}

/// Queues at two addresses and the records that both are to serve.
fn two_queues() -> (Ground, Ground) {
    let mut here = Ground::new();
    here.queue = Arc::new(MemoryStore::checked(here.clock.clone()).at("redis:6379/0"));
    let mut there = Ground::new();
    there.queue = Arc::new(MemoryStore::checked(there.clock.clone()).at("redis:6379/1"));
    (here, there)
}

const ADOPT: Adopt = Adopt { store: false, queue: true };

#[tokio::test]
async fn records_are_served_with_one_queue_only() {
    let (here, there) = two_queues();
    let first = here.coordinator();
    first.bind(Adopt::NOTHING).await.unwrap();
    here.coordinator().bind(Adopt::NOTHING).await.unwrap();
    let run = first.submit(submission(8)).await.unwrap().run;

    let second = start(config(), Arc::clone(&there.queue), here.data.path());
    let refused = second.bind(Adopt::NOTHING).await.unwrap_err();
    for part in ["redis:6379/0", "redis:6379/1", "--adopt-queue"] {
        assert!(refused.message.contains(part), "{refused}");
    }
    assert_eq!(there.queue.owner().await.unwrap(), None, "it marks nothing");
    assert!(second.view(&run).await.unwrap_err().message.contains("redis:6379/0"));

    // Redis was moved: the run goes on there, and what is left of the old fleet stops.
    second.bind(ADOPT).await.unwrap();
    second.tend().await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&second, 3).await;
    assert!(worker.held[0].lease.generation > 1);
    first.tend().await.unwrap_err();
    assert!(first.ready().unwrap_err().message.contains("redis:6379/1"));
    let refused = here.coordinator().bind(Adopt::NOTHING).await.unwrap_err();
    assert!(refused.message.contains("are served with the queue at redis:6379/1"), "{refused}");
    second.tend().await.unwrap();
    second.bind(ADOPT).await.unwrap();
    assert_eq!(there.queue.owner().await.unwrap().unwrap().generation, 2, "it is adopted once");
}

#[tokio::test]
async fn a_queue_that_forgot_everything_is_bound_anew_and_its_old_state_is_refused() {
    let (mut here, _) = two_queues();
    let coordinator = here.coordinator();
    coordinator.bind(Adopt::NOTHING).await.unwrap();
    let run = coordinator.submit(submission(8)).await.unwrap().run;
    drop(coordinator);
    let before = Arc::clone(&here.queue);
    here.queue = Arc::new(MemoryStore::checked(here.clock.clone()).at("redis:6379/0"));

    let (one, two) = (here.coordinator(), here.coordinator());
    let (first, second) = tokio::join!(one.bind(Adopt::NOTHING), two.bind(Adopt::NOTHING));
    first.and(second).unwrap();
    assert_eq!(here.queue.owner().await.unwrap().unwrap().generation, 2);
    one.tend().await.unwrap();
    assert!(one.view(&run).await.unwrap().generation > 1);

    // The server of before is back under its old address.
    let old = start(config(), before, here.data.path());
    let refused = old.bind(Adopt::NOTHING).await.unwrap_err();
    assert!(refused.message.contains("is number 1") && refused.message.contains("number 2"), "{refused}");
    old.bind(ADOPT).await.unwrap();
    one.tend().await.unwrap_err();
}
