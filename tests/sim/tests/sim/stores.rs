//! The queue and the sink of a simulation as one process sees them: every call waits its turn, and may fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::BoxFuture;
use queue::testing::{Omission, RedisLine};
use queue::{LeaderFence, MemoryStore, QueueStore};
use results::log::{LogOmission, LogOptions};
use results::sink::{Interposed, SinkError};

use crate::Trouble;
use crate::world::{Process, World};

/// One call of so many fails while times are rough: half of these before they were carried out, half afterwards.
const FAILS_ONCE_IN: u64 = 400;

/// One call to the sink of so many hangs for a while, at most so long, while times are rough.
const HANGS_ONCE_IN: u64 = 500;
const HANGS_FOR_MS: u64 = 8_000;

/// A sentence of the protocol that is left out, to see that what it promises is missed then.
#[derive(Clone, Copy, Debug)]
pub enum Omitted {
    Log(LogOmission),
    Redis(Omission),
}

impl Omitted {
    /// The trouble in which it is missed: a Redis that is set back, or a leader that stands still.
    pub fn is_missed_in(self) -> Trouble {
        match self {
            Self::Redis(Omission::RoundNumbers) => Trouble::RedisIsSetBack,
            Self::Log(_) | Self::Redis(Omission::Epochs) => Trouble::LeaderStandsStill,
        }
    }

    pub fn of_redis(self) -> Option<Omission> {
        match self {
            Self::Redis(omission) => Some(omission),
            Self::Log(_) => None,
        }
    }
}

/// Whether a call fails.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    Before,
    After,
}

impl World {
    fn fault(&self) -> Fault {
        match self.below(2 * FAILS_ONCE_IN) {
            0 if self.rough.load(Ordering::Relaxed) => Fault::Before,
            1 if self.rough.load(Ordering::Relaxed) => Fault::After,
            _ => Fault::None,
        }
    }
}

/// The line of a process to Redis.
pub struct ToRedis {
    pub world: Arc<World>,
    pub process: Arc<Process>,
}

impl RedisLine for ToRedis {
    fn before(&self, call: &'static str) -> BoxFuture<'_, queue::Result<bool>> {
        Box::pin(async move {
            let fault = self.world.fault();
            self.world.before(&self.process, call, "").await;
            match fault == Fault::Before || self.world.redis_away.load(Ordering::Relaxed) {
                true => Err(queue::Error::Unavailable { message: "the simulation cut the line".into() }),
                false => Ok(fault == Fault::After),
            }
        })
    }

    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.world.after(&self.process))
    }
}

/// The queue as a process reaches it: at every call others may go first.
pub struct QueueInTurn {
    pub world: Arc<World>,
    pub process: Arc<Process>,
    pub queue: MemoryStore,
}

/// Passes calls on in their turn.
macro_rules! in_turn {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for QueueInTurn {
            fn address(&self) -> Option<&str> {
                self.queue.address()
            }

            fn leads(&self) -> queue::Result<()> {
                self.queue.leads()
            }

            fn set_fence(&self, fence: Arc<dyn LeaderFence>) {
                self.queue.set_fence(fence);
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                self.world.before(&self.process, stringify!($call), "").await;
                let answer = self.queue.$call($($argument),*).await;
                self.world.after(&self.process).await;
                answer
            })+
        }
    };
}

queue::for_each_call!(in_turn);

/// Lets the calls of a process to its sink wait for their turn.
pub struct SinkInTurn {
    pub world: Arc<World>,
    pub process: Arc<Process>,
    pub omits: Option<Omitted>,
}

impl Interposed for SinkInTurn {
    fn before<'a>(&'a self, call: &'static str, about: &'a str) -> BoxFuture<'a, Result<bool, SinkError>> {
        Box::pin(async move {
            let fault = self.world.fault();
            if self.world.rough.load(Ordering::Relaxed) && self.world.once_in(HANGS_ONCE_IN) {
                tokio::time::sleep(Duration::from_millis(self.world.below(HANGS_FOR_MS))).await;
            }
            self.world.before(&self.process, call, about).await;
            if fault == Fault::Before { Err(SinkError::Ended) } else { Ok(fault == Fault::After) }
        })
    }

    fn log_options(&self, options: LogOptions) -> LogOptions {
        let omits = match self.omits {
            Some(Omitted::Log(omission)) => Some(omission),
            _ => None,
        };
        LogOptions { omits, ..options }
    }

    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.world.after(&self.process))
    }
}
