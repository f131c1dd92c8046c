//! Support for tests of any store: a store whose time the test controls, and whose invariants are checked after every operation.
//! Real Redis servers are started by `tests/harness`.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, ready};

use crate::clock::Clock;
use crate::limits::{RATE_BUCKETS_MAX, WORKERS_MAX};
use crate::memory::{MemoryQueue, MemoryRun, UnitPlace};
use crate::memory_store::MemoryStore;
use crate::redis::RedisOptions;
use crate::store::QueueStore;
use crate::unit::{FREE_DEATHS, UnitId};

pub use crate::redis::testing::{Omission, RedisCopy, RedisLine, SimulatedRedis};

/// The client of Redis, for tests that talk to a server themselves: no other crate names it.
pub use ::redis;

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicU64,
}

impl ManualClock {
    /// A clock set to `now_ms`.
    pub fn at(now_ms: u64) -> Self {
        Self { now_ms: AtomicU64::new(now_ms) }
    }

    /// Moves it forward.
    pub fn advance_ms(&self, by: u64) {
        self.now_ms.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

/// Time controlled by a test.
pub trait Time: Send + Sync {
    /// Makes the store believe that this much more time has passed.
    fn advance(&self, by: Duration) -> BoxFuture<'_, ()>;
}

impl Time for ManualClock {
    fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.advance_ms(crate::clock::millis(by));
        Box::pin(ready(()))
    }
}

/// A fresh store for a test.
pub struct Bench {
    pub store: Arc<dyn QueueStore>,
    pub time: Arc<dyn Time>,
    /// Kept alive as long as the store: a server, a folder.
    pub guard: Box<dyn Any + Send>,
}

impl Bench {
    /// The memory model, with its invariants checked after every operation.
    pub fn memory() -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let store = MemoryStore::checked(clock.clone());
        Self { store: Arc::new(store), time: clock, guard: Box::new(()) }
    }

    /// A queue that this Redis keeps, for a process of this name.
    pub fn kept_in(url: &str, name: &str, guard: Box<dyn Any + Send>) -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let store = MemoryStore::kept_in(&RedisOptions::new(url), name, clock.clone());
        Self { store: Arc::new(store.expect("an address of Redis")), time: clock, guard }
    }
}

/// Start of manual clocks: a day in 2026, so that times have a realistic size.
const START_MS: u64 = 1_780_000_000_000;

/// Runs a test to its end on a runtime of its own.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test)
}

impl MemoryStore {
    /// An empty store, with every rule of [`RULES`] checked after every operation.
    ///
    /// # Panics
    /// Operations panic if a rule is violated.
    pub fn checked(clock: Arc<dyn Clock>) -> Self {
        let mut before = MemoryQueue::default();
        Self::new(clock).inspected(move |now| {
            let checked = check(now).and_then(|()| check_step(&before, now));
            before = now.clone();
            checked
        })
    }

    /// An empty store that may begin anew with what another process kept: only the rules about single states are checked.
    pub(crate) fn checked_by_state(clock: Arc<dyn Clock>) -> Self {
        Self::new(clock).inspected(check)
    }

    fn inspected(self, mut rules: impl FnMut(&MemoryQueue) -> Result<(), Broken> + Send + 'static) -> Self {
        self.lock().inspect = Some(Box::new(move |now| {
            if let Err(broken) = rules(now) {
                panic!("{broken}");
            }
        }));
        self
    }

    /// The same with the address of a server.
    pub fn at(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// What it holds now, to [go back to](Self::go_back_to).
    pub fn copy(&self) -> Self {
        let copy = Self::new(Arc::clone(&self.clock));
        copy.lock().queue = self.lock().queue.clone();
        copy
    }

    /// Takes on what another store holds, as a server does that is restored from an older copy of itself.
    pub fn go_back_to(&self, then: &Self) {
        let queue = then.lock().queue.clone();
        self.lock().queue = queue;
    }
}

/// A violated rule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} ({rule}) does not hold: {found}")]
struct Broken {
    /// Id of the rule, `Q1`, `Q2`, …
    id: &'static str,
    /// The rule in one sentence.
    rule: &'static str,
    /// What was found.
    found: String,
}

/// The invariants of a queue, checked on the memory model after every operation; the other stores are tested against the
/// model. Id and sentence.
const RULES: [(&str, &str); 7] = [
    ("Q1", "every unit that was added and is not done is in exactly one place: pending, leased or dead"),
    ("Q2", "added = pending + leased + dead + done for every model, and ids are dense"),
    ("Q3", "a leased unit has been leased at least once, and more often than workers died with it"),
    ("Q4", "a unit is dead if and only if it has two deaths more than the strikes that its run allows"),
    ("Q5", "generations, attempts and unit ids never fall"),
    ("Q6", "workers and rate buckets stay within their limits"),
    ("Q7", "a worker that holds a suspect holds nothing else of the run"),
];

fn broken(index: usize, found: String) -> Broken {
    let (id, rule) = RULES[index];
    Broken { id, rule, found }
}

/// Checks the rules about a single state.
///
/// # Errors
/// The first rule that does not hold.
fn check(queue: &MemoryQueue) -> Result<(), Broken> {
    for run in queue.runs.values() {
        check_units(run)?;
    }
    if queue.workers.len() > WORKERS_MAX || queue.rates.len() > RATE_BUCKETS_MAX {
        return Err(broken(5, format!("{} workers, {} buckets", queue.workers.len(), queue.rates.len())));
    }
    Ok(())
}

fn check_units(run: &MemoryRun) -> Result<(), Broken> {
    for (id, unit) in &run.units {
        let model = run.models.get(&unit.content.model);
        let sets = model.map(|model| {
            let suspected = model.suspects.contains(&(unit.deaths.len(), *id));
            [model.pending.contains(id), suspected, model.leased.contains(id), model.dead.contains(id)]
        });
        let expected = match unit.place {
            UnitPlace::Pending => [!unit.is_suspect(), unit.is_suspect(), false, false],
            UnitPlace::Leased { .. } => [false, false, true, false],
            UnitPlace::Dead => [false, false, false, true],
        };
        if sets != Some(expected) {
            return Err(broken(0, format!("unit {id} is {:?}, and in {sets:?}", unit.place)));
        }
        let deaths = unit.deaths.len();
        if let UnitPlace::Leased { worker, .. } = &unit.place {
            if deaths >= unit.attempt as usize {
                return Err(broken(2, format!("unit {id}: attempt {}, {deaths} deaths", unit.attempt)));
            }
            let alone = run.alone.get(worker);
            if alone.is_some_and(|alone| alone != id) || (unit.is_suspect() && alone.is_none()) {
                return Err(broken(6, format!("{worker} holds unit {id}, and alone {alone:?}")));
            }
        }
        if (unit.place == UnitPlace::Dead) != (deaths > FREE_DEATHS + run.status.max_strikes as usize) {
            return Err(broken(3, format!("unit {id} is {:?} with {deaths} deaths", unit.place)));
        }
    }
    let leased =
        |id: &UnitId| run.units.get(id).is_some_and(|unit| matches!(unit.place, UnitPlace::Leased { .. }));
    if let Some((worker, id)) = run.alone.iter().find(|(_, id)| !leased(id)) {
        return Err(broken(6, format!("{worker} is kept for unit {id}, which it does not hold")));
    }
    let mut added = 0;
    for (label, model) in &run.models {
        let here =
            (model.pending.len() + model.suspects.len() + model.leased.len() + model.dead.len()) as u64;
        let known = run.units.values().filter(|unit| unit.content.model == *label).count() as u64;
        if here != known || here > model.added {
            return Err(broken(1, format!("{label}: {here} placed, {known} known, {} added", model.added)));
        }
        let open =
            run.units.values().filter(|unit| unit.content.model == *label && unit.place != UnitPlace::Dead);
        let backlog: u64 = open.map(|unit| u64::from(unit.content.dialogues)).sum();
        if backlog != model.backlog_dialogues {
            let kept = model.backlog_dialogues;
            return Err(broken(1, format!("{label}: {backlog} dialogues wait or are held, {kept} are kept")));
        }
        added += model.added;
    }
    if added != run.status.next_unit.0 {
        return Err(broken(1, format!("{added} added, next is {}", run.status.next_unit)));
    }
    Ok(())
}

/// Checks the rules about two successive states.
///
/// # Errors
/// The first rule that does not hold.
fn check_step(before: &MemoryQueue, after: &MemoryQueue) -> Result<(), Broken> {
    for (id, old) in &before.runs {
        let Some(new) = after.runs.get(id) else { continue };
        if new.status.at.generation != old.status.at.generation {
            if new.status.at.generation < old.status.at.generation {
                return Err(broken(4, format!("generation of `{id}` fell")));
            }
            continue;
        }
        if new.status.next_unit < old.status.next_unit {
            return Err(broken(4, format!("ids of `{id}` fell")));
        }
        for (unit, was) in &old.units {
            if new.units.get(unit).is_some_and(|is| is.attempt < was.attempt) {
                return Err(broken(4, format!("attempts of unit {unit} fell")));
            }
        }
    }
    Ok(())
}
