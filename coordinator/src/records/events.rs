//! What happens to a run, as its log keeps it.

use std::collections::BTreeMap;

use domain::control::RunPhase;
use domain::{FailureCause, Iteration, ModelLabel, TaskLabel};
use queue::RunState;
use results::log::EntryLocation;
use serde::{Deserialize, Serialize};

use crate::plan::numbering::{Numbering, Slot};
use crate::records::dialogues::DialogueTable;

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunEvent {
    /// Its state from here on.
    State(RunStateFile),
    /// Failed dialogues are asked again.
    Retried(Vec<RetryUnit>),
}

/// The state of a run. The log has it as an event; for lists of runs that are not loaded, the sink has it once more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunStateFile {
    /// Never [`RunPhase::Preparing`].
    pub phase: RunPhase,
    /// Whether the run continues until no unit is left, because dialogues with a record are asked again: those of retries and
    /// of requeued dead letters.
    #[serde(default)]
    pub rework: bool,
    /// Whether it was submitted to a fleet; runs of a single process belong to it alone.
    #[serde(default)]
    pub fleet: bool,
    /// Number of scored dialogues when it was over, for lists.
    #[serde(default)]
    pub scored: u64,
    /// Number of failed dialogues then, by cause.
    #[serde(default)]
    pub failures: Vec<(FailureCause, u64)>,
    /// The revision of the manifest of which everything was asked when it was finished; 0 where that is not known. Who extends
    /// a finished run may die before the run goes on.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub finished_revision: u32,
    /// In the sink, the epoch of the log that said it. Where a later one was claimed, only the log knows the state.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub epoch: u32,
}

fn is_unknown(number: &u32) -> bool {
    *number == 0
}

impl RunStateFile {
    /// Whether the run was extended to this revision when it was finished already.
    pub(crate) fn is_behind(&self, revision: u32) -> bool {
        self.phase == RunPhase::Finished && (1..revision).contains(&self.finished_revision)
    }

    pub(crate) fn queue_state(&self) -> RunState {
        match self.phase {
            RunPhase::Preparing | RunPhase::Active => RunState::Active,
            RunPhase::Paused => RunState::Paused,
            RunPhase::Cancelled => RunState::Cancelled,
            RunPhase::Finished => RunState::Finished,
        }
    }
}

/// Dialogues of a retry, of one model and task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetryUnit {
    pub model: ModelLabel,
    /// Its label: an extension of the run may put other tasks before it.
    pub task: TaskLabel,
    pub iterations: Vec<Iteration>,
}

/// The retries of a run, numbered from 1 in the order of the log.
///
/// A dialogue is pending as long as the record that counts is a failure and none of its records is behind the retry in the log. So
/// pending retries follow from the log alone: a lost queue loses no retry, a retry requested twice is done once, and a dialogue
/// that failed again may be retried again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retries {
    places: Vec<EntryLocation>,
    /// The number of the last retry of each dialogue that was retried.
    asked: BTreeMap<Slot, u64>,
}

impl Retries {
    /// Takes a retry in; returns its number.
    pub(crate) fn note(&mut self, place: EntryLocation, units: &[RetryUnit], layout: &Numbering) -> u64 {
        // What was read again is known.
        let known = self.places.binary_search(&place);
        let number = known.unwrap_or_else(|end| end) as u64 + 1;
        if let Err(end) = known {
            self.places.insert(end, place);
        }
        for unit in units {
            let (model, task) = (layout.model(&unit.model), layout.task(&unit.task));
            let slot = |iteration: &Iteration| layout.slot(model?, task?, *iteration);
            self.asked.extend(unit.iterations.iter().filter_map(slot).map(|slot| (slot, number)));
        }
        number
    }

    /// Whether this retry of a dialogue is pending.
    pub(crate) fn is_pending(&self, slot: Slot, number: u64, table: &DialogueTable) -> bool {
        let place = number.checked_sub(1).and_then(|before| self.places.get(before as usize));
        place.is_some_and(|place| table.is_to_ask_again(slot, *place))
    }

    /// The dialogues with a pending retry, with its number.
    pub(crate) fn pending(&self, table: &DialogueTable) -> BTreeMap<Slot, u64> {
        let asked = self.asked.iter().map(|(slot, number)| (*slot, *number));
        asked.filter(|(slot, number)| self.is_pending(*slot, *number, table)).collect()
    }
}
