//! A whole fleet in one thread, without threads or sockets of its own and with its files in memory, on a clock that moves when nothing else does:
//! two coordinators, one of which leads, three workers, users who submit, extend, pause, resume, cancel, retry and remove, a Redis that
//! is lost, set back, filled up and cut off, and a sink. At each call somebody else may go first. The seed decides everything, so a seed that fails fails again.
//!
//! `KGFLEET_SIM_SEED=N` replays one seed, with `KGFLEET_SIM_TRACE=debug` it tells every call; `KGFLEET_SIM_SEEDS=N` tries so many
//! instead of [`SEEDS`].

#![allow(clippy::unwrap_used, reason = "a failure of a test may panic wherever it happens")]

mod book;
mod check;
mod fleet;
mod model;
mod stores;
mod users;
mod world;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use domain::machine::Simulation;
use tempfile::TempDir;

use fleet::{COORDINATORS, FleetInTurn, WORKERS};
use queue::testing::Omission;
use results::log::LogOmission;
use stores::Omitted;
use world::{Trace, World};

/// Seeds that `make test` tries.
const SEEDS: u64 = 300;

/// The longest time that everything takes to end and to be looked at.
const CHECKED_WITHIN: Duration = Duration::from_secs(3_600);

/// How long Redis is full or away at most, and how old a state is at most to which it goes back.
const LASTS_MS: u64 = 12_000;

/// Seeds of which one in so many is run twice, to see that it is the same both times.
const REPEATED_ONCE_IN: u64 = 50;

thread_local! {
    /// Panics of this thread: those of tasks are caught by the runtime.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Prepares this process: panics are noted, and what happens is told where that was asked for.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(filter) = std::env::var("KGFLEET_SIM_TRACE") {
            let told = tracing_subscriber::fmt().with_env_filter(filter).without_time();
            told.with_writer(std::io::stderr).with_ansi(false).init();
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.with_borrow_mut(|panics| panics.push(info.to_string()));
            before(info);
        }));
    });
}

/// What became of a seed: what happened, and which promises were broken.
struct Outcome {
    trace: Trace,
    broken: Vec<String>,
    virtual_time: Duration,
}

/// The data folder of a seed: in memory where there is such a file system, because nothing here is about power cuts. Whatever
/// names it, names it alike each time.
fn folder(seed: u64, omits: Option<Omitted>) -> TempDir {
    let kind = omits.map_or_else(|| "Simulation".to_owned(), |omits| format!("{omits:?}"));
    let name = format!("kgfleet-{kind}-{}-{seed}", std::process::id());
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(place).unwrap()
}

/// Runs the simulation of a seed; without a sentence of the protocol, if only to see that it is missed.
fn simulate(seed: u64, omits: Option<Omitted>) -> Outcome {
    prepare();
    PANICS.take();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let folder = folder(seed, omits);
    let mut outcome = runtime.block_on(async {
        let world = World::new(seed);
        let simulation = Simulation::begin(world.machine());
        let fleet = FleetInTurn::new(Arc::clone(&world), folder.path(), omits);
        live(&fleet).await;
        drop(simulation);
        Outcome { trace: world.trace(), broken: fleet.book.all_broken(), virtual_time: world.elapsed() }
    });
    outcome.broken.extend(PANICS.take());
    outcome
}

/// The life of a fleet: it starts, users work while things go wrong, things calm down, and all is looked at.
async fn live(fleet: &Arc<FleetInTurn>) {
    let world = Arc::clone(&fleet.world);
    for place in 0..COORDINATORS {
        tokio::spawn(Arc::clone(fleet).keep_coordinator(place));
    }
    for _ in 0..WORKERS {
        fleet.start_worker();
    }
    // Half of the seeds know no faults: what they find is due to the order of things alone.
    let is_rough = world.once_in(2) || fleet.omits.is_some();
    world.rough.store(is_rough, Ordering::Relaxed);
    let trouble = tokio::spawn(trouble(Arc::clone(fleet)));
    users::work(fleet).await;
    trouble.abort();
    let _ = trouble.await;
    world.rough.store(false, Ordering::Relaxed);
    world.redis_away.store(false, Ordering::Relaxed);
    fleet.redis.set_full(false);
    if tokio::time::timeout(CHECKED_WITHIN, check::all(fleet)).await.is_err() {
        fleet.book.broken("the fleet does not come to rest".to_owned());
    }
}

/// What goes wrong.
#[derive(Clone, Copy)]
pub enum Trouble {
    WorkerDies,
    CoordinatorDies,
    LeaderDies,
    RedisLosesAll,
    RedisIsSetBack,
    RedisTakesNothing,
    LeaderStandsStill,
}

impl Trouble {
    /// What chance draws from: a leader stands still twice as often as anything else happens.
    const DRAWN: [Self; 8] = [
        Self::WorkerDies,
        Self::CoordinatorDies,
        Self::LeaderDies,
        Self::RedisLosesAll,
        Self::RedisIsSetBack,
        Self::RedisTakesNothing,
        Self::LeaderStandsStill,
        Self::LeaderStandsStill,
    ];
}

/// Now and then a process dies, who leads stands still, or Redis loses something. Others start in the place of those that ended.
async fn trouble(fleet: Arc<FleetInTurn>) {
    let world = Arc::clone(&fleet.world);
    let while_it_lasts = || tokio::time::sleep(Duration::from_millis(world.below(LASTS_MS)));
    while world.rough.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(1_000 + world.below(9_000))).await;
        // A sentence that is left out is missed in trouble of its kind.
        let of_kind = fleet.omits.filter(|_| !world.once_in(4)).map(Omitted::is_missed_in);
        let drawn = || Trouble::DRAWN[world.below(Trouble::DRAWN.len() as u64) as usize];
        match of_kind.unwrap_or_else(drawn) {
            Trouble::WorkerDies => {
                fleet.kill_worker();
                fleet.start_worker();
            }
            Trouble::CoordinatorDies => fleet.kill_coordinator(world.below(COORDINATORS as u64) as usize),
            Trouble::LeaderDies => fleet.kill_leader(),
            Trouble::RedisLosesAll => {
                fleet.redis.lose_all();
                if world.once_in(2) {
                    fleet.kill_leader();
                }
            }
            Trouble::RedisIsSetBack => {
                let older = fleet.redis.copy();
                while_it_lasts().await;
                fleet.redis.go_back_to(&older);
                // A failover often takes more with it.
                if world.once_in(2) {
                    fleet.kill_leader();
                }
            }
            Trouble::RedisTakesNothing if world.once_in(2) => {
                fleet.redis.set_full(true);
                while_it_lasts().await;
                fleet.redis.set_full(false);
            }
            Trouble::RedisTakesNothing => {
                world.redis_away.store(true, Ordering::Relaxed);
                while_it_lasts().await;
                world.redis_away.store(false, Ordering::Relaxed);
            }
            Trouble::LeaderStandsStill => fleet.stall_leader(),
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[test]
fn no_order_of_things_breaks_a_promise() {
    let (first, end) = match number("KGFLEET_SIM_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("KGFLEET_SIM_SEEDS").unwrap_or(SEEDS)),
    };
    let begun = Instant::now();
    let (next, outcomes) = (AtomicU64::new(first), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let outcome = simulate(seed, None);
            if !outcome.broken.is_empty() {
                println!("KGFLEET_SIM_SEED={seed} breaks promises:\n  {}", outcome.broken.join("\n  "));
            }
            if seed % REPEATED_ONCE_IN == 0 {
                assert_eq!(simulate(seed, None).trace, outcome.trace, "seed {seed} is not the same twice");
            }
            outcomes.lock().unwrap().insert(seed, outcome);
        }
    };
    // Each simulation has one thread; different ones have nothing in common.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZeroUsize::get) {
            scope.spawn(work);
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    let orders: HashSet<u64> = outcomes.values().map(|outcome| outcome.trace.order).collect();
    let calls: u64 = outcomes.values().map(|outcome| outcome.trace.calls).sum();
    let lived: Duration = outcomes.values().map(|outcome| outcome.virtual_time).sum();
    let broken = outcomes.iter().filter(|(_, outcome)| !outcome.broken.is_empty());
    let failed: Vec<u64> = broken.map(|(seed, _)| *seed).collect();
    println!(
        "{} seeds, {} distinct orders of {calls} calls, {:.1} h simulated in {:.0} s",
        outcomes.len(),
        orders.len(),
        lived.as_secs_f64() / 3600.0,
        begun.elapsed().as_secs_f64(),
    );
    assert!(failed.is_empty(), "seeds {failed:?} break promises; KGFLEET_SIM_SEED=N replays one");
}

/// That no promise is broken says little unless broken ones are found: each sentence of the protocol, left out, is missed.
#[test]
fn every_sentence_of_the_protocol_is_missed_when_it_is_left_out() {
    let sentences = [
        Omitted::Redis(Omission::RoundNumbers),
        Omitted::Redis(Omission::Epochs),
        Omitted::Log(LogOmission::ClaimChecks),
        Omitted::Log(LogOmission::Ends),
    ];
    let mut unmissed = Vec::new();
    for omitted in sentences {
        let broken = |seed| Some((seed, simulate(seed, Some(omitted)).broken.into_iter().next()?));
        match (0..SEEDS).find_map(broken) {
            Some((seed, broken)) => println!("without {omitted:?}, seed {seed}: {broken}"),
            None => unmissed.push(omitted),
        }
    }
    assert!(unmissed.is_empty(), "nothing breaks in {SEEDS} seeds without {unmissed:?}");
}
