//! The retries of a run, as the sink keeps them.
//!
//! A dialogue is pending as long as the record that counts is a failure and none of its records has a higher ticket than the
//! retry. So pending retries follow from sink and log alone: a lost queue loses no retry, a retry requested twice is done
//! once, and a dialogue that failed again may be retried again.

use domain::{Iteration, ModelLabel, TaskLabel};
use serde::{Deserialize, Serialize};

use crate::plan::numbering::{Numbering, Slot};
use crate::records::dialogues::DialogueTable;

/// A retry of failed dialogues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retry {
    /// A ticket drawn for it: earlier records have lower ones.
    pub asked: u64,
    /// The dialogues.
    pub units: Vec<RetryUnit>,
}

/// Dialogues of a retry, of one model and task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetryUnit {
    pub model: ModelLabel,
    /// Its label: an extension of the run may put other tasks before it.
    pub task: TaskLabel,
    pub iterations: Vec<Iteration>,
}

impl Retry {
    /// Its name in the sink; names are in the order of tickets.
    pub(crate) fn name(&self) -> String {
        format!("{:020}", self.asked)
    }
}

/// What of a run is to be asked again although it has a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rework {
    /// Nothing.
    #[default]
    Nothing,
    /// Something: its retries have not been read since it was asked for.
    Unread,
    /// These dialogues, each with the ticket of its retry, according to this revision of the run's state.
    Read { revision: u32, asked: Vec<(Slot, u64)> },
}

impl Rework {
    /// What is pending according to a revision of the state.
    pub(crate) fn read(revision: u32, pending: &[u64]) -> Self {
        let asked = pending.iter().copied().enumerate().filter(|(_, asked)| *asked > 0).collect();
        Self::Read { revision, asked }
    }

    /// Whether this is what the revision of the state says.
    pub(crate) fn is_of(&self, state: u32) -> bool {
        matches!(self, Self::Read { revision, .. } if *revision == state)
    }
}

/// For every dialogue, the ticket of its pending retry; 0 if none is pending.
pub(crate) fn pending(retries: &[Retry], layout: &Numbering, table: &DialogueTable) -> Vec<u64> {
    let mut asked = vec![0; layout.slots()];
    for retry in retries {
        for unit in &retry.units {
            let model = layout.model(&unit.model);
            let task = layout.task(&unit.task);
            let slot = |iteration: &Iteration| layout.slot(model?, task?, *iteration);
            for slot in unit.iterations.iter().filter_map(slot) {
                asked[slot] = asked[slot].max(retry.asked);
            }
        }
    }
    for (slot, asked) in asked.iter_mut().enumerate() {
        if !table.is_to_ask_again(slot, *asked) {
            *asked = 0;
        }
    }
    asked
}
