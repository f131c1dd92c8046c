//! Queues that forget, or remember what is over: whatever comes back, nobody holds a lease of before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::RunId;
use domain::control::Control;
use queue::{ManualClock, MemoryStore, QueueStore};
use tokio::sync::Notify;

use super::ground::*;
use super::worker::*;

/// A worker that holds some of a run.
async fn busy(name: &str, coordinator: &Started) -> Worker {
    let mut worker = Worker::new(name);
    worker.exchange(coordinator, 3).await;
    assert!(!worker.held.is_empty());
    worker
}

/// A run, its first worker, and the generation under which that one holds something.
async fn begun(coordinator: &Started) -> (RunId, Worker, u64) {
    let run = coordinator.submit(submission(8)).await.unwrap().run;
    let worker = busy("first", coordinator).await;
    let generation = worker.held[0].lease.generation;
    (run, worker, generation)
}

/// A queue that can be set back, and the ground that it serves.
fn ground_of_a_copied_queue() -> (Ground, MemoryStore) {
    let mut ground = Ground::new();
    let store = MemoryStore::new(ground.clock.clone());
    ground.queue = Arc::new(store.clone());
    (ground, store)
}

async fn assert_stale(worker: &mut Worker, coordinator: &Started) {
    let held = worker.held.len();
    assert!(held > 0);
    assert_eq!(
        worker.exchange(coordinator, 0).await.lost.len(),
        held,
        "{} holds nothing any more",
        worker.id
    );
}

#[tokio::test]
async fn a_lost_queue_is_rebuilt_above_every_generation_whatever_its_clock_says_and_who_is_left() {
    for back_ms in [0, 1, 3_600_000] {
        let mut ground = Ground::new();
        let coordinator = ground.coordinator();
        let (_, mut first, before) = begun(&coordinator).await;
        // Nobody is left who knows the generation, no record tells of it, and the clock is that of before.
        drop(coordinator);
        ground.queue = Arc::new(MemoryStore::checked(Arc::new(ManualClock::at(START_MS - back_ms))));

        let coordinator = ground.coordinator();
        coordinator.tend().await.unwrap();
        let second = busy("second", &coordinator).await;
        assert!(second.held[0].lease.generation > before, "set back by {back_ms} ms");
        assert_stale(&mut first, &coordinator).await;
    }
}

#[tokio::test]
async fn a_queue_that_comes_back_from_an_older_state_is_rebuilt() {
    for fresh_coordinator in [false, true] {
        let (ground, store) = ground_of_a_copied_queue();
        let mut coordinator = ground.coordinator();
        let (run, mut first, one) = begun(&coordinator).await;
        let older = store.copy();
        store.forget_run(&run).await.unwrap();
        coordinator.tend().await.unwrap();
        let mut second = busy("second", &coordinator).await;
        let two = second.held[0].lease.generation;
        assert!(two > one);

        store.go_back_to(&older);
        if fresh_coordinator {
            drop(coordinator);
            coordinator = ground.coordinator();
        }
        coordinator.tend().await.unwrap();
        assert!(coordinator.view(&run).await.unwrap().generation > two);
        assert_stale(&mut first, &coordinator).await;
        assert_stale(&mut second, &coordinator).await;
    }
}

#[tokio::test]
async fn nothing_is_leased_in_a_generation_that_cannot_be_written_down() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let (run, mut first, before) = begun(&coordinator).await;
    let generations = ground.data.path().join("runs").join(run.as_str()).join("generations");
    let aside = ground.data.path().join("aside");
    std::fs::rename(&generations, &aside).unwrap();
    std::fs::write(&generations, "in the way").unwrap();
    ground.queue.forget_run(&run).await.unwrap();
    coordinator.tend().await.unwrap();
    assert!(
        coordinator.view(&run).await.unwrap().trouble.is_some_and(|trouble| trouble.contains("generations"))
    );
    assert!(ground.queue.run(&run).await.unwrap().is_none());

    std::fs::remove_file(&generations).unwrap();
    std::fs::rename(&aside, &generations).unwrap();
    coordinator.tend().await.unwrap();
    let second = busy("second", &coordinator).await;
    assert!(second.held[0].lease.generation > before);
    assert_stale(&mut first, &coordinator).await;
}

#[tokio::test]
async fn a_queue_that_is_lost_with_its_claim_gets_a_number_that_nobody_holds() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    let (run, mut first, one) = begun(&coordinator).await;
    ground.queue.forget_run(&run).await.unwrap();
    coordinator.tend().await.unwrap();
    let mut second = busy("second", &coordinator).await;
    let two = second.held[0].lease.generation;
    coordinator.close_logs().await;
    drop(coordinator);

    // The records are those of before, as an older copy has them: the second claim is gone.
    let claims = ground.data.path().join("runs").join(run.as_str()).join("generations");
    let mut names: Vec<_> = std::fs::read_dir(&claims).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert_eq!(names.len(), 2);
    std::fs::remove_file(&names[1]).unwrap();
    // And nobody has seen the queue since.
    ground.lose_queue();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    let third = busy("third", &coordinator).await;
    let three = third.held[0].lease.generation;
    assert!(three != two && three != one, "{one}, {two}, {three}");
    assert_stale(&mut first, &coordinator).await;
    assert_stale(&mut second, &coordinator).await;
}

/// A queue that carries out what it is asked and, while it is mute, does not say that it has built a run.
struct MuteQueue {
    queue: Arc<dyn QueueStore>,
    is_mute: AtomicBool,
    has_built: Notify,
}

macro_rules! perhaps_mute {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for MuteQueue {
            fn address(&self) -> Option<&str> {
                self.queue.address()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                let answer = self.queue.$call($($argument),*).await;
                if stringify!($call) == "create_run" && self.is_mute.load(Ordering::Relaxed) {
                    self.has_built.notify_one();
                    std::future::pending::<()>().await;
                }
                answer
            })+
        }
    };
}

queue::for_each_call!(perhaps_mute);

#[tokio::test]
async fn who_is_cut_off_before_hearing_that_a_queue_is_built_builds_the_next_one_above_it() {
    let mut ground = Ground::new();
    let queue = Arc::clone(&ground.queue);
    let mute = Arc::new(MuteQueue { queue, is_mute: AtomicBool::new(false), has_built: Notify::new() });
    ground.queue = Arc::clone(&mute) as Arc<dyn QueueStore>;
    let (one, two) = ground.two_users();
    let (run, mut first, before) = begun(&one).await;
    ground.queue.forget_run(&run).await.unwrap();
    mute.is_mute.store(true, Ordering::Relaxed);
    tokio::select! {
        answer = one.tend() => panic!("it cannot know that the queue is built: {answer:?}"),
        () = mute.has_built.notified() => {}
    }
    mute.is_mute.store(false, Ordering::Relaxed);
    two.tend().await.unwrap();
    let mut second = busy("second", &two).await;
    let unheard = second.held[0].lease.generation;
    assert!(unheard > before);

    ground.queue.forget_run(&run).await.unwrap();
    one.tend().await.unwrap();
    let third = busy("third", &one).await;
    assert!(third.held[0].lease.generation > unheard, "two queues of generation {unheard}");
    assert_stale(&mut first, &one).await;
    assert_stale(&mut second, &one).await;
}
