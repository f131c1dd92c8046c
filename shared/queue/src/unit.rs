//! Units, leases and dead letters.

use std::fmt;

use domain::{ModelLabel, WorkerId};
use serde::{Deserialize, Serialize};

use crate::run::RunState;

/// The number of a unit in its run, from 0, dense, in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u64);

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A unit to be added. Its id follows from its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUnit {
    /// The model asked; only workers that serve it get the unit.
    pub model: ModelLabel,
    /// Number of dialogues in it, from 1.
    pub dialogues: u32,
    /// What the worker needs to know. The queue never looks inside.
    pub payload: Vec<u8>,
}

/// What `add_units` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Whether the units were added: only where the first of them was the next one expected.
    pub applied: bool,
    /// The id that the next unit gets.
    pub next: UnitId,
}

/// The proof of holding a lease: `domain::exchange::LeaseId` without the run, which calls of the queue name apart, with the
/// generation that they are meant for. It is stale as soon as the unit changed hands, however it did.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fence {
    /// Generation of the run when the lease was given.
    pub generation: u64,
    /// The unit's model.
    pub model: ModelLabel,
    /// The unit.
    pub unit: UnitId,
    /// How many times the unit has been leased, this one included: from 1, rising.
    pub attempt: u32,
}

/// A unit in the hands of a worker, as the queue knows it: with a payload that it does not read. What a worker gets of it is a
/// `domain::exchange::Grant`: the dialogues that are left to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The proof of holding it.
    pub fence: Fence,
    /// Number of dialogues in the unit.
    pub dialogues: u32,
    /// What the unit was added with.
    pub payload: Vec<u8>,
    /// Whether a worker died with it before: it is all that its worker may hold.
    pub suspect: bool,
    /// When it may be taken over, milliseconds since the Unix epoch by the store's clock. A worker counts the
    /// run's lease duration by its own monotonic clock instead, from before it asked.
    pub deadline_ms: u64,
}

/// A worker's wish for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// The models it serves, in the order in which it wants them.
    pub models: Vec<ModelLabel>,
    /// Most units to hand out.
    pub max_units: u32,
    /// Whether the worker holds nothing of any other run, as far as the caller knows. Only then it may get a suspect.
    pub alone: bool,
}

/// The answer to a worker's report of what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The state of the run: a worker drops the units of a cancelled one.
    pub state: RunState,
    /// Fences that no longer hold: the unit is somebody else's, finished, set aside or of another generation.
    pub lost: Vec<Fence>,
    /// Leases that the queue knows of this worker and the worker did not report: the answer that brought
    /// them was lost. They are renewed too, so the caller hands them over again or releases them.
    pub unreported: Vec<Lease>,
    /// Whether the worker holds a suspect of this run: it gets nothing else, of any run.
    pub holds_suspect: bool,
    /// The new deadline of every lease that holds, by the store's clock.
    pub deadline_ms: u64,
}

/// What became of one fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The fence held and the unit changed.
    Applied,
    /// The fence was stale and nothing changed. After a call whose answer was lost, this is also how its
    /// repetition ends.
    Stale,
}

/// Whose leases `reap` takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reap {
    /// Those past their deadline.
    Expired,
    /// All of one worker that is known to be dead.
    Worker(WorkerId),
}

impl Reap {
    /// What the account of the unit says.
    pub(crate) fn cause(&self) -> &'static str {
        match self {
            Self::Expired => "lease expired",
            Self::Worker(_) => "worker died",
        }
    }
}

/// What `reap` took over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Units that are suspects from now on, by model, then by id.
    pub suspected: Vec<UnitId>,
    /// Suspects that got a strike and wait again, in the same order.
    pub struck: Vec<UnitId>,
    /// Units set aside, in the same order. Their dialogues need failed records.
    pub dead: Vec<UnitId>,
    /// Whether a model had more than [`crate::limits::MAX_REAPED_PER_MODEL`] of them: call again.
    pub more: bool,
}

impl Reaped {
    /// Whether nothing was taken over.
    pub fn is_empty(&self) -> bool {
        self.suspected.is_empty() && self.struck.is_empty() && self.dead.is_empty()
    }
}

/// One death of a worker on a unit's account. The first one makes it a suspect; each later one came while the unit ran
/// alone, and is a strike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// Who held it.
    pub worker: WorkerId,
    /// The attempt that ended so.
    pub attempt: u32,
    /// Why, for people.
    pub cause: String,
    /// When, milliseconds since the Unix epoch by the store's clock.
    pub at_ms: u64,
}

/// A unit with deaths on its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The unit.
    pub unit: UnitId,
    /// Its model.
    pub model: ModelLabel,
    /// Number of dialogues in it.
    pub dialogues: u32,
    /// What it was added with.
    pub payload: Vec<u8>,
    /// What brought it here, oldest first.
    pub deaths: Vec<Death>,
    /// Whether it was set aside: a dead letter.
    pub dead: bool,
}
