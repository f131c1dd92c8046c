//! What workers are told that end when nothing is left: nobody leaves too early, and nobody stays for ever.

use std::sync::Arc;

use domain::control::{BenchmarkCommand, Control, RunPhase};
use domain::exchange::{Outlook, Receipt, WorkExchange};
use domain::{FailureCause, RunId};
use proptest::prelude::*;

use super::ground::{Ground, Started, submission};
use super::pipelines::{self, Asked};
use super::worker::*;

/// What a worker of this model is told that holds nothing.
async fn told(coordinator: &Started, model: &str) -> Outlook {
    Worker::until("asks", &[model]).exchange(coordinator, 0).await.outlook.unwrap()
}

/// Answers one unit, with scores or not.
async fn answer_one(coordinator: &Started, worker: &mut Worker, fails: bool) -> bool {
    let Some(grant) = worker.held.pop() else { return false };
    let of = |key: &_| match fails {
        true => failed(&grant.lease, key, FailureCause::Timeout),
        false => scored(&grant.lease, key),
    };
    let records = keys(&grant).iter().map(of).collect();
    let receipts = coordinator.deliver(records).await.unwrap();
    assert!(receipts.iter().all(|receipt| *receipt == Receipt::Stored));
    worker.finished.push(grant.lease);
    true
}

#[tokio::test]
async fn a_worker_is_told_what_its_models_have_left() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Unknown, "no round is over");
    coordinator.tend().await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Later, "nobody has named it");
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Work);
    coordinator.command(&run, BenchmarkCommand::Pause).await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Held);
    coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();

    let mut holder = Worker::until("holds", &["org/a"]);
    assert_eq!(holder.exchange(&coordinator, 99).await.outlook, Some(Outlook::Work), "it was granted some");
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Surplus);
    assert_eq!(holder.exchange(&coordinator, 9).await.outlook, Some(Outlook::Work), "one always remains");
    // A grant that was lost on the way: the worker does not know that it holds something.
    let held = std::mem::take(&mut holder.held);
    assert_eq!(holder.exchange(&coordinator, 0).await.outlook, Some(Outlook::Work));
    assert_eq!(holder.held.len(), held.len());
    // It dies, and whoever is left gets what it held.
    ground.expire_leases();
    coordinator.tend().await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Work);
    assert_eq!(told(&coordinator, "b").await, Outlook::Work);
    let mut worker = Worker::until("works", &["org/a"]);
    worker.work_off(&coordinator, &mut Vec::new()).await;
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Done, "whatever others have to do");
    assert_eq!(told(&coordinator, "b").await, Outlook::Work);
    assert_eq!(told(&coordinator, "c").await, Outlook::Later);
    // Another coordinator, before and after it has looked.
    let other = ground.coordinator();
    assert_eq!(told(&other, "org/a").await, Outlook::Unknown);
    // Without `until` nothing is said.
    assert_eq!(Worker::new("old").exchange(&coordinator, 0).await.outlook, None);

    let needs = coordinator.needs(&[]).await.unwrap();
    let need = |name: &str| needs.iter().find(|need| need.model == name).unwrap();
    assert_eq!((need("org/a").outlook, need("org/a").dialogues), (Outlook::Done, 0));
    assert_eq!((need("b").outlook, need("b").dialogues), (Outlook::Work, 4));
    let named = coordinator.needs(&["c".to_owned()]).await.unwrap();
    assert_eq!((named.len(), named[0].outlook), (1, Outlook::Later));
}

#[tokio::test]
async fn what_is_asked_again_calls_its_own_model_only_and_a_cancelled_run_nobody() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let mut worker = Worker::until("w", &["org/a"]);
    worker.exchange(&coordinator, 99).await;
    while answer_one(&coordinator, &mut worker, true).await {}
    worker.exchange(&coordinator, 0).await;
    Worker::until("v", &["b"]).work_off(&coordinator, &mut Vec::new()).await;
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Done, "a finished run is over, failed or not");

    assert_eq!(coordinator.retry(&run, &[]).await.unwrap(), 4);
    coordinator.tend().await.unwrap();
    drop(coordinator);
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Work);
    assert_eq!(told(&coordinator, "b").await, Outlook::Done);
    coordinator.command(&run, BenchmarkCommand::Cancel).await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Done);
}

#[tokio::test]
async fn a_run_that_cannot_be_loaded_may_have_work_for_its_models() {
    let ground = Ground::new();
    let run = ground.coordinator().submit(submission(1)).await.unwrap().run;
    let manifest = ground.data.path().join("runs").join(run.as_str()).join("manifest.json");
    let whole = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, "{").unwrap();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Unknown);
    assert_eq!(told(&coordinator, "c").await, Outlook::Unknown, "it may name this one, too");
    std::fs::write(&manifest, whole).unwrap();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert_eq!(told(&coordinator, "org/a").await, Outlook::Work);
}

#[tokio::test]
async fn judges_wait_until_their_benchmark_is_over_and_models_under_test_do_not() {
    let ground = Ground::new();
    let (coordinator, other) = ground.two_users();
    coordinator.tend().await.unwrap();
    let name = coordinator.submit(pipelines::submission(&["m", "n"])).await.unwrap().run;
    other.tend().await.unwrap();
    for coordinator in [&coordinator, &other] {
        assert_eq!(told(coordinator, "m").await, Outlook::Work);
        assert_eq!(told(coordinator, "grader").await, Outlook::Later);
    }
    coordinator.command(&name, BenchmarkCommand::Pause).await.unwrap();
    assert_eq!(told(&coordinator, "m").await, Outlook::Held);
    assert_eq!(told(&coordinator, "grader").await, Outlook::Held);
    coordinator.command(&name, BenchmarkCommand::Resume).await.unwrap();
    let mut asked = Asked::default();
    let mut seen = Vec::new();
    for _ in 0..pipelines::ROUNDS_MAX {
        pipelines::work_off(&coordinator, &mut asked).await;
        // Everything is answered, and what follows is not derived yet.
        seen.push(told(&coordinator, "reviewer").await);
        coordinator.tend().await.unwrap();
        if coordinator.view(&name).await.unwrap().phase == RunPhase::Finished {
            break;
        }
        let expected = [Outlook::Work, Outlook::Later];
        assert!(expected.contains(&told(&coordinator, "reviewer").await));
    }
    assert!(seen.iter().all(|outlook| *outlook == Outlook::Later), "{seen:?}");
    assert!(seen.len() > 2, "it took several rounds: {seen:?}");
    other.tend().await.unwrap();
    for coordinator in [&coordinator, &other] {
        for model in ["m", "n", "grader", "reviewer"] {
            assert_eq!(told(coordinator, model).await, Outlook::Done, "{model}");
        }
    }
    // Also for one that was not there.
    let late = ground.coordinator();
    late.tend().await.unwrap();
    assert_eq!(told(&late, "reviewer").await, Outlook::Done);
}

#[tokio::test]
async fn a_model_that_has_answered_does_not_wait_for_judges_or_other_models() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    coordinator.submit(pipelines::submission(&["m", "n"])).await.unwrap();
    let mut worker = Worker::until("w", &["m"]);
    worker.work_off(&coordinator, &mut Vec::new()).await;
    for _ in 0..3 {
        coordinator.tend().await.unwrap();
    }
    assert_eq!(told(&coordinator, "m").await, Outlook::Done);
    assert_eq!(told(&coordinator, "n").await, Outlook::Work);
    assert_ne!(told(&coordinator, "grader").await, Outlook::Done);
}

/// Something that happens to a fleet.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Submit(u32),
    /// A worker takes what it gets.
    Take(u32),
    Answer {
        fails: bool,
    },
    GiveBack,
    Expire,
    Command(BenchmarkCommand),
    Retry,
    LoseQueue,
    Tend,
}

fn happening() -> impl Strategy<Value = Happening> {
    use BenchmarkCommand::{Cancel, Pause, Resume};
    prop_oneof![
        2 => (1..4_u32).prop_map(Happening::Submit),
        4 => (1..30_u32).prop_map(Happening::Take),
        6 => any::<bool>().prop_map(|fails| Happening::Answer { fails }),
        1 => Just(Happening::GiveBack),
        1 => Just(Happening::Expire),
        2 => prop_oneof![3 => Just(Pause), 5 => Just(Resume), 1 => Just(Cancel)].prop_map(Happening::Command),
        2 => Just(Happening::Retry),
        1 => Just(Happening::LoseQueue),
        3 => Just(Happening::Tend),
    ]
}

struct Fleet {
    ground: Ground,
    coordinator: Arc<Started>,
    worker: Worker,
    runs: Vec<RunId>,
}

impl Fleet {
    fn start() -> Self {
        let ground = Ground::new();
        let coordinator = ground.coordinator();
        Self { ground, coordinator, worker: Worker::new("w"), runs: Vec::new() }
    }

    async fn happens(&mut self, at: usize, what: Happening) {
        let coordinator = Arc::clone(&self.coordinator);
        let run = self.runs.get(at % self.runs.len().max(1)).cloned();
        match what {
            Happening::Submit(iterations) => {
                let mut submission = submission(iterations);
                submission.configuration["name"] = format!("run {}", self.runs.len()).into();
                self.runs.push(coordinator.submit(submission).await.unwrap().run);
            }
            Happening::Take(room) => drop(self.worker.exchange(&coordinator, room).await),
            Happening::Answer { fails } => drop(answer_one(&coordinator, &mut self.worker, fails).await),
            Happening::GiveBack => {
                let held = std::mem::take(&mut self.worker.held);
                self.worker.released.extend(held.into_iter().map(|grant| grant.lease));
                self.worker.exchange(&coordinator, 0).await;
            }
            Happening::Expire => {
                self.worker.held.clear();
                self.worker.finished.clear();
                self.ground.expire_leases();
            }
            Happening::Command(command) => {
                if let Some(run) = run {
                    // Some are refused, of runs that are over.
                    let _ = coordinator.command(&run, command).await;
                }
            }
            Happening::Retry => {
                if let Some(run) = run {
                    let _ = coordinator.retry(&run, &[]).await;
                }
            }
            Happening::LoseQueue => {
                self.worker.held.clear();
                self.worker.finished.clear();
                self.ground.lose_queue();
                self.coordinator = self.ground.coordinator();
                self.tend().await;
            }
            Happening::Tend => self.tend().await,
        }
    }

    async fn tend(&self) {
        self.coordinator.tend().await.unwrap();
    }

    async fn any_phase(&self, phases: &[RunPhase]) -> bool {
        let views = self.coordinator.list().await.unwrap();
        views.iter().any(|view| phases.contains(&view.phase))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn done_means_that_nothing_is_granted_without_a_command_and_everybody_is_told_so_in_the_end(
        happenings in proptest::collection::vec((any::<usize>(), happening()), 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut fleet = Fleet::start();
            fleet.happens(0, Happening::Submit(2)).await;
            for (at, what) in &happenings {
                fleet.happens(*at, *what).await;
                fleet.tend().await;
                for model in ["org/a", "b"] {
                    if told(&fleet.coordinator, model).await == Outlook::Done {
                        let mut late = Worker::until("late", &[model]);
                        let orders = late.exchange(&fleet.coordinator, 9).await;
                        assert_eq!((orders.grants.len(), orders.outlook), (0, Some(Outlook::Done)), "{model} {what:?}");
                    }
                }
            }
            // From here on nobody commands: whoever is told that nothing is left never gets anything.
            fleet.worker.held.clear();
            let mut done: Vec<&str> = Vec::new();
            for _ in 0..8 {
                for model in ["org/a", "b"] {
                    let mut worker = Worker::until("last", &[model]);
                    let outlook = told(&fleet.coordinator, model).await;
                    if outlook == Outlook::Done {
                        done.push(model);
                    }
                    let mut asked = Vec::new();
                    worker.work_off(&fleet.coordinator, &mut asked).await;
                    assert!(asked.is_empty() || !done.contains(&model), "{model} was done and had {asked:?}");
                }
                fleet.ground.expire_leases();
                fleet.tend().await;
            }
            let is_paused = fleet.any_phase(&[RunPhase::Paused]).await;
            assert!(!fleet.any_phase(&[RunPhase::Active, RunPhase::Preparing]).await, "everything was worked off");
            for model in ["org/a", "b"] {
                let outlook = told(&fleet.coordinator, model).await;
                assert!(outlook == Outlook::Done || (is_paused && outlook == Outlook::Held), "{model}: {outlook}");
            }
        });
    }
}
