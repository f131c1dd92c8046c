//! The queue and the sink of a simulation as one process sees them: every call waits its turn, and may fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use queue::QueueStore;
use results::sink::{Interposed, SinkError};

use crate::world::{Process, World};

/// One call of so many fails while times are rough: half of these before they were carried out, half afterwards.
const FAILS_ONCE_IN: u64 = 400;

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

/// The queue as a process reaches it.
pub struct QueueInTurn {
    pub world: Arc<World>,
    pub process: Arc<Process>,
    pub queue: Arc<dyn QueueStore>,
}

impl QueueInTurn {
    async fn turn<T>(&self, name: &str, call: impl Future<Output = queue::Result<T>>) -> queue::Result<T> {
        let fault = self.world.fault();
        let lost = || queue::Error::Unavailable { message: "the simulation cut the line".into() };
        self.world.before(&self.process, name, "").await;
        if fault == Fault::Before {
            return Err(lost());
        }
        let result = call.await;
        self.world.after(&self.process).await;
        if fault == Fault::After { Err(lost()) } else { result }
    }
}

/// Passes calls on in their turn.
macro_rules! in_turn {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for QueueInTurn {
            fn address(&self) -> Option<&str> {
                self.queue.address()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                self.turn(stringify!($call), self.queue.$call($($argument),*)).await
            })+
        }
    };
}

queue::for_each_call!(in_turn);

/// Lets the calls of a process to its sink wait for their turn.
pub struct SinkInTurn {
    pub world: Arc<World>,
    pub process: Arc<Process>,
}

impl Interposed for SinkInTurn {
    fn before<'a>(&'a self, call: &'static str, about: &'a str) -> BoxFuture<'a, Result<bool, SinkError>> {
        Box::pin(async move {
            let fault = self.world.fault();
            self.world.before(&self.process, call, about).await;
            if fault == Fault::Before { Err(SinkError::Ended) } else { Ok(fault == Fault::After) }
        })
    }

    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.world.after(&self.process))
    }
}
