//! What everything in a simulation shares: time, chance, the order of things, and the trace of what happened.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::machine::SimulatedMachine;
use domain::seed::SplitMix64;
use jiff::Timestamp;
use queue::Clock;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The time of day when a simulation begins.
const START: Duration = Duration::from_secs(1_800_000_000);

/// The world of one seed.
pub struct World {
    began: Instant,
    /// Where the parts draw random numbers from.
    drawn: Mutex<SplitMix64>,
    /// Where the order of things comes from.
    order: Mutex<SplitMix64>,
    /// Whether calls may fail and processes may die.
    pub rough: AtomicBool,
    /// Whether nobody reaches Redis.
    pub redis_away: AtomicBool,
    events: AtomicU64,
    trace: Mutex<GrowingTrace>,
}

/// What happened, as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Which process made which call of the queue, the sink or a coordinator, in their order.
    pub order: u64,
    /// The same with names and times, which differ where anything differs.
    pub all: u64,
    pub calls: u64,
}

/// A trace that goes on.
#[derive(Default)]
struct GrowingTrace {
    order: DefaultHasher,
    all: DefaultHasher,
    calls: u64,
}

impl World {
    /// Must be made on a runtime with a paused clock.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            drawn: Mutex::new(SplitMix64::new(seed ^ 0x5eed_0001)),
            order: Mutex::new(SplitMix64::new(seed ^ 0x5eed_0002)),
            rough: AtomicBool::new(true),
            redis_away: AtomicBool::new(false),
            events: AtomicU64::new(0),
            trace: Mutex::default(),
        })
    }

    /// The machine that the code under test asks.
    pub fn machine(self: &Arc<Self>) -> Rc<dyn SimulatedMachine> {
        Rc::new(Machine(Arc::clone(self)))
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// A number below this one, for the order of things.
    pub fn below(&self, limit: u64) -> u64 {
        self.order.lock().unwrap().next_u64() % limit
    }

    /// True once in so many times.
    pub fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Numbers what happens.
    pub fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    pub fn trace(&self) -> Trace {
        let trace = self.trace.lock().unwrap();
        Trace { order: trace.order.finish(), all: trace.all.finish(), calls: trace.calls }
    }

    fn note(&self, process: &Process, call: &str, about: &str) {
        let mut trace = self.trace.lock().unwrap();
        trace.calls += 1;
        (process.name(), call).hash(&mut trace.order);
        // Of names only what does not depend on chance.
        for piece in about.split(|letter: char| !letter.is_ascii_alphabetic()) {
            trace.order.write(piece.as_bytes());
        }
        (process.name(), call, about, self.elapsed()).hash(&mut trace.all);
        tracing::debug!("{:.3} {} {call} {about}", self.elapsed().as_secs_f64(), process.name);
    }

    /// Lets others go first before a call of this process, for a while that chance decides. A process that has died never
    /// goes on.
    pub async fn before(&self, process: &Process, call: &str, about: &str) {
        process.alive().await;
        self.pass().await;
        process.alive().await;
        self.note(process, call, about);
    }

    /// The same after a call.
    pub async fn after(&self, process: &Process) {
        self.pass().await;
        process.alive().await;
    }

    async fn pass(&self) {
        match self.below(16) {
            0..9 => {}
            9..13 => {
                for _ in 0..=self.below(3) {
                    tokio::task::yield_now().await;
                }
            }
            13..15 => tokio::time::sleep(Duration::from_millis(1 + self.below(20))).await,
            _ => tokio::time::sleep(Duration::from_millis(20 + self.below(400))).await,
        }
    }
}

/// A process: a coordinator, a worker, or the network between them.
pub struct Process {
    name: String,
    dead: AtomicBool,
    died: Notify,
    /// Until when it stands still.
    held: Mutex<Option<Instant>>,
}

impl Process {
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        let (dead, died, held) = (AtomicBool::new(false), Notify::new(), Mutex::default());
        Arc::new(Self { name: name.into(), dead, died, held })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// It never speaks again: each of its calls hangs from now on.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_waiters();
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// It stands still for a while, and goes on with what it was doing.
    pub fn hold(&self, length: Duration) {
        *self.held.lock().unwrap() = Some(Instant::now() + length);
    }

    /// Returns while it lives and does not stand still, and never once it is dead.
    async fn alive(&self) {
        let held = *self.held.lock().unwrap();
        if let Some(end) = held {
            tokio::time::sleep_until(end).await;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when it dies.
    pub async fn death(&self) {
        let died = self.died.notified();
        if !self.is_dead() {
            died.await;
        }
    }
}

struct Machine(Arc<World>);

impl SimulatedMachine for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + START + self.0.elapsed()
    }

    fn random(&self) -> u64 {
        self.0.drawn.lock().unwrap().next_u64()
    }

    fn yields(&self) -> u32 {
        self.0.below(3) as u32
    }
}

/// The clock of the simulated queue.
pub struct WorldClock(pub Arc<World>);

impl Clock for WorldClock {
    fn now_ms(&self) -> u64 {
        (START + self.0.elapsed()).as_millis() as u64
    }
}
