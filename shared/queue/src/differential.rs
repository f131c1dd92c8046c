//! Random operation sequences on a store, compared with the memory model step by step.
//!
//! Generations, tickets and times differ between two stores, so they are compared by the order in which they first
//! appeared. Everything else must be equal, including the order of lists.

#![expect(clippy::unwrap_used, reason = "this is a test, compiled as a library so that others can use it")]

use std::fmt::Write as _;
use std::time::Duration;

use domain::{DialogueKey, InstanceId, ModelLabel, RunId, WorkerId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::testing::{Bench, block_on};
use crate::{
    Claim, Commit, CommitEffect, Committed, Fence, Heartbeat, Lease, LeaseRequest, NewUnit, Reap, RunRef,
    RunSpec, RunState, UnitId,
};

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
    Commit(Vec<(u8, bool, u8)>),
    Requeue(Vec<u8>),
    Suspects {
        dead: bool,
        after: Option<u8>,
        limit: u8,
    },
    Park {
        model: u8,
    },
    Unpark {
        model: u8,
    },
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
    NotePools {
        release: u8,
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
        4 => vec((0..12u8, any::<bool>(), any::<u8>()), 1..5).prop_map(Op::Commit),
        2 => vec(any::<u8>(), 1..4).prop_map(Op::Requeue),
        3 => (any::<bool>(), proptest::option::of(0..20u8), 0..4u8)
            .prop_map(|(dead, after, limit)| Op::Suspects { dead, after, limit }),
        1 => (0..3u8).prop_map(|model| Op::Park { model }),
        1 => (0..3u8).prop_map(|model| Op::Unpark { model }),
        3 => (0..3u8, 0..4u8, 0..4u8)
            .prop_map(|(worker, instance, follows)| Op::Heartbeat { worker, instance, follows }),
        1 => (0..3u8).prop_map(|worker| Op::Drain { worker }),
        1 => (0..3u8, 0..4u8).prop_map(|(worker, instance)| Op::Deregister { worker, instance }),
        1 => (0..3u8).prop_map(|release| Op::NotePools { release }),
        5 => (1..4u8).prop_map(|steps| Op::Advance { steps }),
    ]
}

const HOUR: Duration = Duration::from_secs(3_600);
const STEP: Duration = Duration::from_secs(1_500);

/// One store, and the values seen from it.
struct Player {
    bench: Bench,
    at: RunRef,
    generations: Vec<u64>,
    fences: Vec<Fence>,
    tickets: Vec<u64>,
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
    async fn new(bench: Bench, run: &RunId) -> Self {
        let at = RunRef { run: run.clone(), generation: 0 };
        let mut player = Self { bench, at, generations: vec![], fences: vec![], tickets: vec![] };
        player.create(false).await;
        player
    }

    async fn create(&mut self, rebuild: bool) -> String {
        let latest = self.generations.last().copied();
        let spec = RunSpec {
            run: self.at.run.clone(),
            plan_hash: "plan".into(),
            lease_for: HOUR,
            max_strikes: 2,
            generation: latest.unwrap_or(0) + u64::from(rebuild || latest.is_none()),
            ticket_floor: self.tickets.last().copied().unwrap_or(0),
        };
        let status = self.bench.store.create_run(&spec).await.unwrap();
        self.at = status.at;
        if self.generations.last() != Some(&self.at.generation) {
            assert!(self.generations.last().is_none_or(|last| *last < self.at.generation));
            self.generations.push(self.at.generation);
        }
        format!("{} {}", status.state, status.next_unit)
    }

    fn picked(&self, picks: &[u8]) -> Vec<Fence> {
        // The latest fences are the interesting ones; older ones are mostly stale.
        let recent = self.fences.len().saturating_sub(24);
        let recent = &self.fences[recent..];
        picks
            .iter()
            .filter_map(|pick| recent.get(usize::from(*pick) % recent.len().max(1)))
            .cloned()
            .collect()
    }

    fn fence(&self, fence: &Fence) -> String {
        let generation = self.generations.iter().position(|seen| *seen == fence.generation);
        format!("{}#{}/{}/{generation:?} ", fence.model, fence.unit, fence.attempt)
    }

    fn lease(&self, lease: &Lease) -> String {
        let Lease { fence, dialogues, payload, suspect, .. } = lease;
        format!("{}{dialogues}:{payload:?}{} ", self.fence(fence), if *suspect { " suspect" } else { "" })
    }

    fn record(&self, record: Committed) -> String {
        let ticket = self.tickets.iter().position(|seen| *seen == record.ticket);
        format!("{}@{ticket:?} ", record.scored)
    }

    /// Runs the step and describes the result in terms that are equal for two stores.
    async fn take(&mut self, op: &Op) -> String {
        let store = self.bench.store.clone();
        let at = self.at.clone();
        match op {
            Op::Create { rebuild } => {
                // Where it is there still, it is replaced.
                if *rebuild && at.generation.is_multiple_of(2) {
                    store.forget_run(&at.run).await.unwrap();
                }
                self.create(*rebuild).await
            }
            Op::SetState(to) => {
                store.set_state(&at, *to).await.map_or_else(|e| e.to_string(), |from| from.to_string())
            }
            Op::Add { model: m, dialogues, count, off_by_one } => {
                let next = store.run(&at.run).await.unwrap().unwrap().next_unit;
                let first = UnitId(next.0 + u64::from(*off_by_one));
                let unit =
                    |i| NewUnit { model: model(*m), dialogues: u32::from(*dialogues), payload: vec![*m, i] };
                let units: Vec<_> = (0..*count).map(unit).collect();
                format!("{:?}", store.add_units(&at, first, &units).await.unwrap())
            }
            Op::Lease { worker: w, models: mask, max, alone } => {
                let ask = LeaseRequest {
                    worker: worker(*w),
                    models: models(*mask),
                    max_units: u32::from(*max),
                    alone: *alone,
                };
                let leases = store.lease(&at, &ask).await.unwrap();
                self.fences.extend(leases.iter().map(|lease| lease.fence.clone()));
                leases.iter().map(|lease| self.lease(lease)).collect()
            }
            Op::Renew { worker: w, models: mask, held } => {
                let renewal =
                    store.renew(&at, &worker(*w), &models(*mask), &self.picked(held)).await.unwrap();
                let lost: String = renewal.lost.iter().map(|fence| self.fence(fence)).collect();
                let unreported: String = renewal.unreported.iter().map(|lease| self.lease(lease)).collect();
                format!("{} lost {lost} unreported {unreported} {}", renewal.state, renewal.holds_suspect)
            }
            Op::Release(picks) => format!("{:?}", store.release(&at, &self.picked(picks)).await.unwrap()),
            Op::Finish(picks) => format!("{:?}", store.finish(&at, &self.picked(picks)).await.unwrap()),
            Op::Reap(dead) => {
                let whose = dead.map_or(Reap::Expired, |dead| Reap::Worker(worker(dead)));
                format!("{:?}", store.reap(&at, &whose).await.unwrap())
            }
            Op::Commit(records) => self.commit(records).await,
            Op::Requeue(picks) => {
                let units: Vec<_> = self.picked(picks).into_iter().map(|fence| fence.unit).collect();
                store.requeue(&at, &units).await.unwrap().to_string()
            }
            Op::Suspects { dead, after, limit } => {
                let after = after.map(|after| UnitId(u64::from(after)));
                let suspects = store.suspects(&at, *dead, after, u32::from(*limit)).await.unwrap();
                let mut seen = String::new();
                for suspect in suspects {
                    assert_eq!(store.suspect(&at, suspect.unit).await.unwrap().as_ref(), Some(&suspect));
                    assert_eq!(suspect.dead, *dead);
                    write!(seen, "{}#{} {:?}", suspect.model, suspect.unit, suspect.payload).unwrap();
                    for death in suspect.deaths {
                        write!(seen, " {}/{}/{}", death.worker, death.attempt, death.cause).unwrap();
                    }
                }
                seen
            }
            Op::Park { model: m } => {
                format!("{:?}", store.park(&at, &model(*m), HOUR, "quota").await.unwrap())
            }
            Op::Unpark { model: m } => format!("{:?}", store.unpark(&at, &model(*m)).await.unwrap()),
            Op::Heartbeat { worker: w, instance: i, follows } => {
                let claim = Claim {
                    instance: instance(*i),
                    predecessors: vec![instance(*follows)],
                    identity: String::new(),
                };
                match store.heartbeat(&worker(*w), &claim, &[*w], HOUR).await.unwrap() {
                    Heartbeat::Registered(orders) => format!("{orders:?}"),
                    Heartbeat::Taken(by) => format!("taken by {} {:?}", by.instance, by.info),
                }
            }
            Op::Drain { worker: w } => store.drain_worker(&worker(*w)).await.unwrap().to_string(),
            Op::Deregister { worker: w, instance: i } => {
                store.deregister(&worker(*w), &instance(*i)).await.unwrap().to_string()
            }
            Op::NotePools { release } => {
                let name = format!("release-{release}");
                format!("{:?}", store.note_pools(&name, &[*release], HOUR).await.unwrap())
            }
            Op::Advance { steps } => {
                self.bench.time.advance(STEP * u32::from(*steps)).await;
                String::new()
            }
        }
    }

    async fn commit(&mut self, records: &[(u8, bool, u8)]) -> String {
        let store = &self.bench.store;
        let drawn = store.tickets(&self.at, 2).await.unwrap();
        assert!(self.tickets.last().is_none_or(|last| *last < drawn.start), "tickets fell");
        self.tickets.extend(drawn);
        let recent = &self.tickets[self.tickets.len().saturating_sub(6)..];
        let commit = |(cell, scored, ticket): &(u8, bool, u8)| Commit {
            key: DialogueKey {
                model: model(cell % 3),
                task: "task".into(),
                iteration: u32::from(cell / 3) * 77,
            },
            record: Committed { scored: *scored, ticket: recent[usize::from(*ticket) % recent.len()] },
        };
        let commits: Vec<_> = records.iter().map(commit).collect();
        let verdicts = store.commit(&self.at, &commits).await.unwrap();
        let keys: Vec<_> = commits.into_iter().map(|commit| commit.key).collect();
        let standing = store.committed(&self.at, &keys).await.unwrap();
        let verdict = |verdict: &CommitEffect| match verdict {
            CommitEffect::Supersedes(other) => format!("supersedes {}", self.record(*other)),
            CommitEffect::Loses(other) => format!("loses to {}", self.record(*other)),
            plain => format!("{plain:?} "),
        };
        let mut seen: String = verdicts.iter().map(verdict).collect();
        seen.extend(standing.into_iter().flatten().map(|record| self.record(record)));
        seen
    }

    /// Everything that can be read without changing it.
    async fn snapshot(&self) -> String {
        let store = &self.bench.store;
        let status = store.run(&self.at.run).await.unwrap().unwrap();
        let mut seen = format!("{} {} ", status.state, status.next_unit);
        for mut counts in store.counts(&self.at).await.unwrap() {
            if let Some(parked) = &mut counts.parked {
                parked.until_ms = 0;
            }
            write!(seen, "{counts:?} ").unwrap();
        }
        for worker in store.workers().await.unwrap() {
            write!(seen, "{} {} {:?} {} ", worker.worker, worker.instance, worker.info, worker.draining)
                .unwrap();
        }
        for pools in store.pools().await.unwrap() {
            write!(seen, "{pools:?} ").unwrap();
        }
        seen
    }
}

/// Runs `cases` sequences of up to 60 steps, the same ones every time, on fresh benches from `open` and on the memory
/// model.
///
/// # Panics
/// At the first difference, with the shortest sequence that shows it.
pub fn compare_with_the_model(cases: u32, open: impl Fn() -> Bench) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let played = TestRunner::new_with_rng(config, rng).run(&vec(op(), 1..60), |ops| {
        block_on(async {
            let run = RunId::new("run");
            let mut model = Player::new(Bench::memory(), &run).await;
            let mut subject = Player::new(open(), &run).await;
            for (index, op) in ops.iter().enumerate() {
                let expected = model.take(op).await;
                let seen = subject.take(op).await;
                if expected != seen {
                    let report =
                        format!("step {index} {op:?}: the model says `{expected}`, the store `{seen}`");
                    return Err(TestCaseError::fail(report));
                }
                let (expected, seen) = (model.snapshot().await, subject.snapshot().await);
                if expected != seen {
                    let report = format!("after step {index} {op:?}:\nmodel {expected}\nstore {seen}");
                    return Err(TestCaseError::fail(report));
                }
            }
            Ok(())
        })
    });
    if let Err(difference) = played {
        panic!("{difference}");
    }
}
