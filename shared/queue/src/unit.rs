//! Units, leases and dead letters.

use std::fmt;

use domain::{ModelLabel, WorkerId};
use serde::{Deserialize, Serialize};

use crate::run_state::RunState;

/// The number of a unit in its run, from 0, without gaps, in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnitId(pub u64);

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A unit to be added. Its position determines its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUnit {
    /// Only workers that serve this model get the unit.
    pub model: ModelLabel,
    /// Number of dialogues in it, from 1.
    pub dialogues: u32,
    /// Opaque data for the worker.
    pub payload: Vec<u8>,
}

/// Result of `add_units`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Whether the units were added: only if the first of them was the next one expected.
    pub applied: bool,
    /// Id of the next unit.
    pub next: UnitId,
}

/// Identifies one lease: `domain::exchange::LeaseId` without the run, which calls of the queue name anyway. It is stale as
/// soon as the unit changes hands in any way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fence {
    /// Generation of the run when the lease was given.
    pub generation: u64,
    /// The unit's model.
    pub model: ModelLabel,
    pub unit: UnitId,
    /// How many times the unit has been leased, including this one: from 1, rising.
    pub attempt: u32,
}

/// A unit leased to a worker, as the queue knows it. The worker gets a `domain::exchange::Grant` instead: the dialogues that
/// are left to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub fence: Fence,
    /// Number of dialogues in the unit.
    pub dialogues: u32,
    /// Opaque data for the worker.
    pub payload: Vec<u8>,
    /// Whether it is a suspect: its worker may hold nothing else.
    pub suspect: bool,
    /// When it may be taken over, milliseconds since the Unix epoch by the store's clock. A worker measures the run's
    /// lease duration by its own monotonic clock instead, from before its request.
    pub deadline_ms: u64,
}

/// A worker's request for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    pub worker: WorkerId,
    /// The models it serves, in its order of preference.
    pub models: Vec<ModelLabel>,
    /// Maximum number of units.
    pub max_units: u32,
    /// Whether the worker holds nothing of any other run, as far as the caller knows. Otherwise it gets no suspect.
    pub alone: bool,
}

/// Result of a renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// The state of the run: a worker drops the units of a cancelled one.
    pub state: RunState,
    /// Stale fences: the unit has another holder, is finished, is a dead letter, or has another generation.
    pub lost: Vec<Fence>,
    /// Leases of this worker that it did not report, because the answer that granted them was lost. They are renewed
    /// too, so that the caller grants them again or releases them.
    pub unreported: Vec<Lease>,
    /// Whether the worker holds a suspect of this run. Then it gets nothing else, of any run.
    pub holds_suspect: bool,
    /// The new deadline of every renewed lease, by the store's clock.
    pub deadline_ms: u64,
}

/// Result for one fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The fence was valid and the unit changed.
    Applied,
    /// The fence was stale and nothing changed. A repetition after a lost answer also gets this.
    Stale,
}

/// Whose leases `reap` ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reap {
    /// All leases past their deadline.
    Expired,
    /// All leases of one worker that is known to be dead.
    Worker(WorkerId),
}

impl Reap {
    /// Cause of death, stored with the unit.
    pub(crate) fn cause(&self) -> &'static str {
        match self {
            Self::Expired => "lease expired",
            Self::Worker(_) => "worker died",
        }
    }
}

/// Deaths of workers that say nothing about a unit which they held: many workers may die at once, and not because of it.
pub(crate) const FREE_DEATHS: usize = 1;

/// Result of `reap`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Units with which a worker died for the first time, pending as before; by model, then by id.
    pub returned: Vec<UnitId>,
    /// Units that became suspects, in the same order.
    pub suspected: Vec<UnitId>,
    /// Suspects that got a strike and are pending again, in the same order.
    pub struck: Vec<UnitId>,
    /// Units that became dead letters, in the same order. Their dialogues need failed records.
    pub dead: Vec<UnitId>,
    /// Whether a model had more than [`crate::limits::REAPED_PER_MODEL_MAX`] such leases: call again.
    pub more: bool,
}

impl Reaped {
    /// Whether no lease was ended.
    pub fn is_empty(&self) -> bool {
        self.returned.is_empty()
            && self.suspected.is_empty()
            && self.struck.is_empty()
            && self.dead.is_empty()
    }
}

/// A worker's death counted against a unit. The first one is free, the second one makes the unit a suspect; each later one is
/// a strike, because the unit ran alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// The worker that died.
    pub worker: WorkerId,
    /// The attempt that ended with it.
    pub attempt: u32,
    /// Why, for people.
    pub cause: String,
    /// When, milliseconds since the Unix epoch by the store's clock.
    pub at_ms: u64,
}

/// A suspect or dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub unit: UnitId,
    pub model: ModelLabel,
    /// Number of dialogues in it.
    pub dialogues: u32,
    /// Opaque data for the worker.
    pub payload: Vec<u8>,
    /// The deaths counted against it, oldest first.
    pub deaths: Vec<Death>,
    /// Whether it is a dead letter.
    pub dead: bool,
}
