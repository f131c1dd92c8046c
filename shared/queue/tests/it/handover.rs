//! Random sequences of operations at a leader, after which the next leader must know all that the last one has answered.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::{InstanceId, ModelLabel, RunId, WorkerId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use queue::testing::{Bench, block_on};
use queue::{Claim, Fence, LeaseRequest, NewUnit, QueueStore, Reap, RunRef, RunSpec, RunState, UnitId};

/// One step. Numbers select from the items that exist when the step runs, so every sequence is meaningful.
#[derive(Clone, Debug)]
enum Op {
    Create {
        rebuild: bool,
    },
    SetState(RunState),
    Add {
        model: u8,
        dialogues: u8,
        count: u8,
        off_by_one: bool,
    },
    Lease {
        worker: u8,
        models: u8,
        max: u8,
        alone: bool,
    },
    Renew {
        worker: u8,
        models: u8,
        held: Vec<u8>,
    },
    Release(Vec<u8>),
    Finish(Vec<u8>),
    Reap(Option<u8>),
    Requeue(Vec<u8>),
    Heartbeat {
        worker: u8,
        instance: u8,
        follows: u8,
    },
    Drain {
        worker: u8,
    },
    Deregister {
        worker: u8,
        instance: u8,
    },
    /// Twenty-five minutes; a lease lasts an hour, so ten minutes lie between any step and a deadline.
    Advance {
        steps: u8,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let fences = || vec(any::<u8>(), 0..4);
    let state = proptest::sample::select(RunState::ALL.to_vec());
    prop_oneof![
        1 => proptest::bool::weighted(0.3).prop_map(|rebuild| Op::Create { rebuild }),
        2 => prop_oneof![3 => Just(RunState::Active), 1 => state].prop_map(Op::SetState),
        4 => (0..3u8, 1..9u8, 1..5u8, proptest::bool::weighted(0.1))
            .prop_map(|(model, dialogues, count, off_by_one)| Op::Add { model, dialogues, count, off_by_one }),
        12 => (0..3u8, 0..8u8, 0..4u8, proptest::bool::weighted(0.8))
            .prop_map(|(worker, models, max, alone)| Op::Lease { worker, models, max, alone }),
        5 => (0..3u8, 0..8u8, fences()).prop_map(|(worker, models, held)| Op::Renew { worker, models, held }),
        3 => fences().prop_map(Op::Release),
        4 => fences().prop_map(Op::Finish),
        9 => proptest::option::weighted(0.7, 0..3u8).prop_map(Op::Reap),
        2 => vec(any::<u8>(), 1..4).prop_map(Op::Requeue),
        3 => (0..3u8, 0..4u8, 0..4u8)
            .prop_map(|(worker, instance, follows)| Op::Heartbeat { worker, instance, follows }),
        1 => (0..3u8).prop_map(|worker| Op::Drain { worker }),
        1 => (0..3u8, 0..4u8).prop_map(|(worker, instance)| Op::Deregister { worker, instance }),
        5 => (1..4u8).prop_map(|steps| Op::Advance { steps }),
    ]
}

const HOUR: Duration = Duration::from_secs(3_600);
const STEP: Duration = Duration::from_secs(1_500);

/// A leader, and what it has answered.
struct Player {
    bench: Bench,
    at: RunRef,
    fences: Vec<Fence>,
}

fn model(index: u8) -> ModelLabel {
    ModelLabel::new(["alpha", "beta:1", "gamma"][usize::from(index) % 3])
}

fn models(mask: u8) -> Vec<ModelLabel> {
    (0..3).filter(|bit| mask & (1 << bit) != 0).map(model).collect()
}

fn worker(index: u8) -> WorkerId {
    WorkerId::new(["w1", "w2", "w3"][usize::from(index) % 3])
}

/// A process; 0 is one without an id.
fn instance(index: u8) -> InstanceId {
    InstanceId::new(["", "p1", "p2", "p3"][usize::from(index) % 4])
}

impl Player {
    async fn new(bench: Bench) -> Self {
        let at = RunRef { run: RunId::new("run"), generation: 0 };
        let mut player = Self { bench, at, fences: vec![] };
        player.create(true).await;
        player
    }

    async fn create(&mut self, rebuild: bool) {
        let spec = RunSpec {
            run: self.at.run.clone(),
            plan_hash: "plan".into(),
            lease_for: HOUR,
            max_strikes: 2,
            generation: self.at.generation + u64::from(rebuild),
        };
        self.at = self.bench.store.create_run(&spec).await.unwrap().at;
    }

    fn picked(&self, picks: &[u8]) -> Vec<Fence> {
        // The latest fences are the interesting ones; older ones are mostly stale.
        let recent = &self.fences[self.fences.len().saturating_sub(24)..];
        let pick = |pick: &u8| recent.get(usize::from(*pick) % recent.len().max(1));
        picks.iter().filter_map(pick).cloned().collect()
    }

    async fn take(&mut self, op: &Op) {
        let (store, at) = (self.bench.store.clone(), self.at.clone());
        match op {
            Op::Create { rebuild } => {
                // Where it is there still, it is replaced.
                if *rebuild && at.generation.is_multiple_of(2) {
                    store.forget_run(&at.run).await.unwrap();
                }
                self.create(*rebuild).await;
            }
            Op::SetState(to) => drop(store.set_state(&at, *to).await),
            Op::Add { model: m, dialogues, count, off_by_one } => {
                let next = store.run(&at.run).await.unwrap().unwrap().next_unit;
                let first = UnitId(next.0 + u64::from(*off_by_one));
                let unit = |i| NewUnit {
                    model: model(*m),
                    dialogues: u32::from(*dialogues),
                    payload: vec![*m, b'\n', i],
                };
                let units: Vec<_> = (0..*count).map(unit).collect();
                store.add_units(&at, first, &units).await.unwrap();
            }
            Op::Lease { worker: w, models: mask, max, alone } => {
                let ask = LeaseRequest {
                    worker: worker(*w),
                    models: models(*mask),
                    max_units: u32::from(*max),
                    alone: *alone,
                };
                let leases = store.lease(&at, &ask).await.unwrap();
                self.fences.extend(leases.into_iter().map(|lease| lease.fence));
            }
            Op::Renew { worker: w, models: mask, held } => {
                store.renew(&at, &worker(*w), &models(*mask), &self.picked(held)).await.unwrap();
            }
            Op::Release(picks) => drop(store.release(&at, &self.picked(picks)).await.unwrap()),
            Op::Finish(picks) => drop(store.finish(&at, &self.picked(picks)).await.unwrap()),
            Op::Reap(dead) => {
                let whose = dead.map_or(Reap::Expired, |dead| Reap::Worker(worker(dead)));
                store.reap(&at, &whose).await.unwrap();
            }
            Op::Requeue(picks) => {
                let units: Vec<_> = self.picked(picks).into_iter().map(|fence| fence.unit).collect();
                store.requeue(&at, &units).await.unwrap();
            }
            Op::Heartbeat { worker: w, instance: i, follows } => {
                let claim = Claim {
                    instance: instance(*i),
                    predecessors: vec![instance(*follows)],
                    identity: String::new(),
                };
                store.heartbeat(&worker(*w), &claim, &[*w], HOUR).await.unwrap();
            }
            Op::Drain { worker: w } => drop(store.drain_worker(&worker(*w)).await.unwrap()),
            Op::Deregister { worker: w, instance: i } => {
                store.deregister(&worker(*w), &instance(*i)).await.unwrap();
            }
            Op::Advance { steps } => self.bench.time.advance(STEP * u32::from(*steps)).await,
        }
    }
}

/// All that a leader knows and the next one must: units at their places with their deaths, who holds them, and the workers.
async fn known(store: &dyn QueueStore, at: &RunRef) -> String {
    let status = store.run(&at.run).await.unwrap().unwrap();
    let mut seen = format!("{status:?}\n");
    for counts in store.counts(at).await.unwrap() {
        writeln!(seen, "{counts:?}").unwrap();
    }
    for dead in [false, true] {
        writeln!(seen, "{:?}", store.suspects(at, dead, None, 256).await.unwrap()).unwrap();
    }
    for index in 0..3 {
        let renewal = store.renew(at, &worker(index), &models(7), &[]).await.unwrap();
        let held: Vec<_> = renewal.unreported.into_iter().map(|lease| (lease.fence, lease.payload)).collect();
        writeln!(seen, "{} {} {held:?}", renewal.state, renewal.holds_suspect).unwrap();
    }
    for known in store.workers().await.unwrap() {
        writeln!(seen, "{} {} {:?} {}", known.worker, known.instance, known.info, known.draining).unwrap();
    }
    seen
}

/// Runs `cases` sequences of up to 60 steps, the same ones every time, each at a leader of its own from `open`, and compares what it
/// knows then with what the `next` leader finds.
///
/// # Panics
/// At the first difference, with the shortest sequence that shows it.
pub fn compare_with_the_next_leader(
    cases: u32,
    open: impl Fn() -> Bench,
    next: impl Fn(&Bench) -> Arc<dyn QueueStore>,
) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let played = TestRunner::new_with_rng(config, rng).run(&vec(op(), 1..60), |ops| {
        block_on(async {
            let mut player = Player::new(open()).await;
            for op in &ops {
                player.take(op).await;
            }
            let expected = known(&*player.bench.store, &player.at).await;
            let next = next(&player.bench);
            let seen = known(&*next, &player.at).await;
            prop_assert_eq!(expected, seen);
            Ok(())
        })
    });
    if let Err(difference) = played {
        panic!("{difference}");
    }
}
