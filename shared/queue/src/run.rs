//! Runs as the queue knows them: a name, a plan hash, a generation, a state, and counts.

use std::time::Duration;

use domain::{ModelLabel, RunId};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::run_state::RunState;
use crate::unit::UnitId;

/// A run as its caller last saw it. Every operation on a run takes one, and fails with [`Error::StaleGeneration`]
/// after the queue was rebuilt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    pub run: RunId,
    /// Queue generation: rises each time the queue is rebuilt.
    pub generation: u64,
}

/// Input of `create_run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSpec {
    pub run: RunId,
    /// Hash of its plan: coordinators that create the same run must agree on it.
    pub plan_hash: String,
    /// Duration of a lease without renewal. It is a property of the run, not of the lease, because the idle time of
    /// Redis's pending entries is compared with one number for the whole stream.
    pub lease_for: Duration,
    /// Number of strikes that make a unit a dead letter, from 1: deaths of workers that held it alone.
    pub max_strikes: u32,
    /// The generation of the queue if this call builds it. The caller counts generations: this one must be higher than
    /// any that the run had.
    pub generation: u64,
}

impl RunSpec {
    /// Whether this spec matches the existing run with the plan `existing`.
    pub(crate) fn check_joins(&self, existing: &str) -> Result<(), Error> {
        if existing == self.plan_hash {
            return Ok(());
        }
        let (run, given) = (self.run.clone(), self.plan_hash.clone());
        Err(Error::PlanMismatch { run, existing: existing.to_owned(), given })
    }
}

/// The status of a run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStatus {
    /// The run and its current generation.
    pub at: RunRef,
    pub plan_hash: String,
    pub state: RunState,
    /// The id of the next added unit, which is the number of units ever added.
    pub next_unit: UnitId,
    /// Duration of a lease without renewal.
    pub lease_for: Duration,
    /// Number of strikes that make a unit a dead letter.
    pub max_strikes: u32,
}

/// Counts of units and dialogues of one model of a run. Always `added = pending + leased + dead + done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCounts {
    pub model: ModelLabel,
    /// Units ever added.
    pub added: u64,
    /// Pending units, including suspects.
    pub pending: u64,
    pub suspects_pending: u64,
    pub suspects_leased: u64,
    /// Leased units, including suspects.
    pub leased: u64,
    /// Dead letters.
    pub dead: u64,
    /// Units finished.
    pub done: u64,
    /// Dialogues of the pending and leased units.
    pub backlog_dialogues: u64,
    /// Set while the model is parked.
    pub parked: Option<Parked>,
}

/// Why a model is parked, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// For people: which quota is used up.
    pub reason: String,
    /// When it ends by itself, milliseconds since the Unix epoch by the store's clock.
    pub until_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_leads_back_to_active() {
        for state in RunState::ALL {
            assert!(state.may_become(RunState::Active) && state.may_become(state));
        }
        assert!(!RunState::Finished.may_become(RunState::Paused));
        assert!(!RunState::Cancelled.may_become(RunState::Finished));
    }
}
