//! A Redis in memory: what its scripts do, one step at a time, for queues whose processes are simulated. It can be emptied, set back,
//! filled up and cut off, and can leave out what a real one checks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::keeper::{Applied, BackingStore, Claimed, EpochClaim, Round};
use crate::kept::{Change, KeptEntries};
use crate::leader::NamedLeader;
use crate::memory_store::MemoryStore;
use crate::owner::QueueOwner;

const ADDRESS: &str = "simulated:6379/0";

/// What a simulated Redis leaves out, for a test that sees what breaks without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omission {
    /// It applies rounds of any epoch.
    Epochs,
    /// It applies rounds of any number.
    RoundNumbers,
}

/// How a process reaches the server: its calls wait for their turn and may fail.
pub trait RedisLine: Send + Sync {
    /// Before a call. Whether its answer is lost.
    ///
    /// # Errors
    /// The call does not arrive.
    fn before(&self, call: &'static str) -> BoxFuture<'_, Result<bool>>;

    /// After a call.
    fn after(&self) -> BoxFuture<'_, ()>;
}

/// The server.
#[derive(Default)]
pub struct SimulatedRedis {
    kept: Mutex<Kept>,
    omits: Option<Omission>,
}

#[derive(Clone, Default)]
struct Kept {
    is_full: bool,
    owner: Option<String>,
    leader: Option<Leader>,
    runs: BTreeMap<String, Vec<u8>>,
    units: BTreeMap<String, BTreeMap<u64, Vec<u8>>>,
    workers: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone)]
struct Leader {
    named: NamedLeader,
    round: u64,
    is_whole: bool,
}

/// What a server held at some time.
#[derive(Clone)]
pub struct RedisCopy(Kept);

impl SimulatedRedis {
    /// An empty server.
    pub fn new(omits: Option<Omission>) -> Arc<Self> {
        Arc::new(Self { kept: Mutex::default(), omits })
    }

    /// The queue that it keeps, for the process with this name that reaches it by this line. With `is_checked`, the rules of a
    /// queue are checked after every operation.
    pub fn store(
        self: &Arc<Self>,
        name: &str,
        line: Arc<dyn RedisLine>,
        clock: Arc<dyn Clock>,
        is_checked: bool,
    ) -> MemoryStore {
        let store = if is_checked { MemoryStore::checked_by_state(clock) } else { MemoryStore::new(clock) };
        store.kept_by(Box::new(Reached { server: Arc::clone(self), line }), name)
    }

    /// What it holds now.
    pub fn copy(&self) -> RedisCopy {
        RedisCopy(self.kept().clone())
    }

    /// Goes back to what it held before, but for its owner: with an earlier one, coordinators wait for an operator.
    pub fn go_back_to(&self, then: &RedisCopy) {
        let mut kept = self.kept();
        *kept = Kept { is_full: kept.is_full, owner: kept.owner.take(), ..then.0.clone() };
    }

    /// Loses everything.
    pub fn lose_all(&self) {
        *self.kept() = Kept::default();
    }

    /// Has no room for writes, or has it again.
    pub fn set_full(&self, is_full: bool) {
        self.kept().is_full = is_full;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn expect_room(&self) -> Result<()> {
        match self.is_full {
            true => Err(Error::Unwritable { message: "the simulated Redis is full".to_owned() }),
            false => Ok(()),
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Clear => {
                self.runs.clear();
                self.units.clear();
                self.workers.clear();
                self.set_whole(false);
            }
            Change::Whole => self.set_whole(true),
            Change::Run(run, entry) => drop(self.runs.insert(run.to_string(), entry.clone())),
            Change::RunGone(run) => {
                self.runs.remove(run.as_str());
                self.units.remove(run.as_str());
            }
            Change::Unit(run, id, entry) => {
                self.units.entry(run.to_string()).or_default().insert(id.0, entry.clone());
            }
            Change::UnitGone(run, id) => {
                self.units.entry(run.to_string()).or_default().remove(&id.0);
            }
            Change::Worker(worker, entry) => drop(self.workers.insert(worker.to_string(), entry.clone())),
            Change::WorkerGone(worker) => drop(self.workers.remove(worker.as_str())),
            Change::Probe => {}
        }
    }

    fn set_whole(&mut self, is_whole: bool) {
        if let Some(leader) = &mut self.leader {
            leader.is_whole = is_whole;
        }
    }
}

/// The server as a process reaches it.
struct Reached {
    server: Arc<SimulatedRedis>,
    line: Arc<dyn RedisLine>,
}

impl Reached {
    async fn call<T>(&self, name: &'static str, work: impl FnOnce(&mut Kept) -> Result<T>) -> Result<T> {
        let is_answer_lost = self.line.before(name).await?;
        let answer = work(&mut self.server.kept());
        self.line.after().await;
        match is_answer_lost {
            true => {
                Err(Error::Unavailable { message: "the answer of the simulated Redis was lost".to_owned() })
            }
            false => answer,
        }
    }
}

#[async_trait::async_trait]
impl BackingStore for Reached {
    fn place(&self) -> &str {
        ADDRESS
    }

    fn address(&self) -> &str {
        ADDRESS
    }

    async fn owner(&self) -> Result<Option<QueueOwner>> {
        self.call("owner", |kept| Ok(kept.owner.as_deref().map(QueueOwner::of))).await
    }

    async fn bind(&self, from: Option<&QueueOwner>, to: &QueueOwner) -> Result<QueueOwner> {
        let from = from.map(QueueOwner::text);
        self.call("bind", |kept| {
            if kept.owner == from {
                kept.expect_room()?;
                kept.owner = Some(to.text());
            }
            Ok(QueueOwner::of(kept.owner.as_deref().unwrap_or_default()))
        })
        .await
    }

    async fn check(&self) -> Result<Vec<String>> {
        self.call("check", |_| Ok(Vec::new())).await
    }

    async fn named(&self) -> Result<Option<NamedLeader>> {
        self.call("named", |kept| Ok(kept.leader.as_ref().map(|leader| leader.named.clone()))).await
    }

    async fn claim(&self, claim: EpochClaim<'_>) -> Result<Option<Claimed>> {
        let EpochClaim { after, seen, id, name } = claim;
        self.call("claim", |kept| {
            let named = kept.leader.as_ref().map(|leader| &leader.named);
            if named.map_or((0, ""), |named| (named.epoch, named.id.as_str())) != after {
                return Ok(None);
            }
            kept.expect_room()?;
            let (epoch, beat) = (after.0.max(seen) + 1, named.map_or(0, |named| named.beat) + 1);
            let is_whole = kept.leader.as_ref().is_some_and(|leader| leader.is_whole);
            let named =
                NamedLeader { epoch, id: id.to_owned(), name: name.to_owned(), beat, has_left: false };
            kept.leader = Some(Leader { named, round: 0, is_whole });
            Ok(Some(Claimed { epoch, is_whole }))
        })
        .await
    }

    async fn load(&self) -> Result<KeptEntries> {
        self.call("load", |kept| {
            let Kept { runs, units, workers, .. } = kept.clone();
            let of_run = |run: &String| {
                units.get(run).map(|units| units.clone().into_iter().collect()).unwrap_or_default()
            };
            let units = runs.keys().map(of_run).collect();
            Ok(KeptEntries {
                units,
                runs: runs.into_iter().collect(),
                workers: workers.into_iter().collect(),
            })
        })
        .await
    }

    fn apply(&self, round: Round<'_>) -> BoxFuture<'_, Result<Applied>> {
        let Round { epoch, number, .. } = round;
        let (id, changes) = (round.id.to_owned(), round.changes.to_vec());
        let omits = self.server.omits;
        let apply = move |kept: &mut Kept| {
            let Some(leader) = &kept.leader else {
                return Ok(Applied::Other { epoch: 0, id: String::new(), name: String::new() });
            };
            let is_other = (leader.named.epoch, &leader.named.id) != (epoch, &id);
            let is_next = leader.round + 1 == number || omits == Some(Omission::RoundNumbers);
            if leader.round == number && !is_other {
                return Ok(Applied::Done);
            }
            if (is_other && omits != Some(Omission::Epochs)) || (!is_other && !is_next) {
                let NamedLeader { epoch, id, name, .. } = leader.named.clone();
                return Ok(Applied::Other { epoch, id, name });
            }
            for change in changes {
                // What makes room is done first; nothing else is while there is none.
                if !matches!(change, Change::RunGone(_)) {
                    kept.expect_room()?;
                }
                kept.apply(&change);
            }
            kept.expect_room()?;
            if let Some(leader) = &mut kept.leader {
                leader.round = number;
                leader.named.beat += 1;
            }
            Ok(Applied::Done)
        };
        Box::pin(self.call("round", apply))
    }

    async fn leave(&self, epoch: u64, id: &str) -> Result<()> {
        self.call("leave", |kept| {
            if let Some(Leader { named, .. }) = &mut kept.leader
                && (named.epoch, named.id.as_str()) == (epoch, id)
            {
                named.has_left = true;
            }
            Ok(())
        })
        .await
    }
}
