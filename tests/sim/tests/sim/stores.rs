//! The queue and the sink of a simulation as one process sees them: every call waits its turn, and may fail.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use queue::QueueStore;
use results::log::LogOptions;
use results::sink::{Interposed, SinkError};

use crate::world::{Process, World};

/// One call of so many fails while times are rough: half of these before they were carried out, half afterwards.
const FAILS_ONCE_IN: u64 = 400;

/// One call to the sink of so many hangs for a while, at most so long, while times are rough.
const HANGS_ONCE_IN: u64 = 500;
const HANGS_FOR_MS: u64 = 8_000;

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

/// Who leads the fleet, as the queue's server knows.
#[derive(Default)]
pub struct Leader(Mutex<Option<Arc<Process>>>);

impl Leader {
    /// Whether this process leads. One of which nobody knows begins to lead where nobody does.
    fn is(&self, process: &Arc<Process>, role: Role) -> bool {
        let mut leader = self.0.lock().unwrap();
        if role == Role::Waiting && leader.as_ref().is_none_or(|leader| leader.is_dead()) {
            *leader = Some(Arc::clone(process));
        }
        leader.as_ref().is_some_and(|leader| Arc::ptr_eq(leader, process))
    }

    /// This process leads from now on, whoever did so before.
    pub fn set(&self, process: &Arc<Process>) {
        *self.0.lock().unwrap() = Some(Arc::clone(process));
    }
}

/// What a process knows of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Waiting,
    /// Perhaps no more: it learns that from its next call.
    Leading,
    Followed,
}

/// How long a process that finds itself followed goes on with other things, at most, before it has ended.
const ENDS_WITHIN_MS: u64 = 1_500;

/// Calls that are answered to whoever does not lead, too.
const FOR_ALL: [&str; 3] = ["owner", "bind", "check"];

/// The queue as a process reaches it.
pub struct QueueInTurn {
    world: Arc<World>,
    process: Arc<Process>,
    leader: Arc<Leader>,
    queue: Arc<dyn QueueStore>,
    role: Mutex<Role>,
}

impl QueueInTurn {
    pub fn new(
        world: Arc<World>,
        process: Arc<Process>,
        leader: Arc<Leader>,
        queue: Arc<dyn QueueStore>,
    ) -> Self {
        Self { world, process, leader, queue, role: Mutex::new(Role::Waiting) }
    }

    fn role(&self) -> Role {
        *self.role.lock().unwrap()
    }

    /// Sees that this process leads. One that did and finds another one leading ends soon.
    fn lead(&self) -> queue::Result<()> {
        let before = self.role();
        let is_leader = self.leader.is(&self.process, before);
        let now = match before {
            Role::Waiting | Role::Leading if is_leader => Role::Leading,
            Role::Waiting => Role::Waiting,
            Role::Leading | Role::Followed => Role::Followed,
        };
        *self.role.lock().unwrap() = now;
        if (before, now) == (Role::Leading, Role::Followed) {
            let (process, within) = (Arc::clone(&self.process), self.world.below(ENDS_WITHIN_MS));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(within)).await;
                process.kill();
            });
        }
        match now {
            Role::Leading => Ok(()),
            _ => Err(self.not_leading()),
        }
    }

    fn not_leading(&self) -> queue::Error {
        queue::Error::NotLeader { leader: format!("{} does not lead", self.process.name()) }
    }

    async fn turn<T>(&self, name: &str, call: impl Future<Output = queue::Result<T>>) -> queue::Result<T> {
        let fault = self.world.fault();
        let lost = || queue::Error::Unavailable { message: "the simulation cut the line".into() };
        self.world.before(&self.process, name, "").await;
        if fault == Fault::Before {
            return Err(lost());
        }
        if !FOR_ALL.contains(&name) {
            self.lead()?;
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

            fn leads(&self) -> queue::Result<()> {
                match self.role() {
                    Role::Leading => Ok(()),
                    _ => Err(self.not_leading()),
                }
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
    /// Whether logs check that nobody else writes them.
    pub checks_claims: bool,
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
        LogOptions { checks_claim: self.checks_claims, ..options }
    }

    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.world.after(&self.process))
    }
}
