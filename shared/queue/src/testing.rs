//! Support for tests of any store: a store whose time the test controls. Real Redis servers are started by `tests/harness`.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};

use crate::clock::ManualClock;
use crate::memory_store::MemoryStore;
use crate::redis::RedisOptions;
use crate::store::QueueStore;

/// The client of Redis, for tests that talk to a server themselves: no other crate names it.
pub use ::redis;

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
}

impl Bench {
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
