//! The payload of a unit in the queue: indexes into the plan, never texts.

use domain::Iteration;
use queue::NewUnit;
use serde::{Deserialize, Serialize};

use crate::errors::{Result, internal};
use crate::plan::{Plan, Unit};

/// The payload of a unit, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QueuedUnit {
    /// Index of the task in the plan.
    pub task: usize,
    /// The repetitions.
    pub iterations: Vec<Iteration>,
    /// The number of the retry, if it is one: failed dialogues are asked again unless they have a record behind it in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

impl QueuedUnit {
    /// Parses a payload from the queue.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| internal(format!("a unit's payload: {error}")))
    }
}

/// Converts a unit of a plan for the queue.
pub(crate) fn new_unit(plan: &Plan, unit: Unit, asked: Option<u64>) -> Result<NewUnit> {
    let dialogues = unit.iterations.len() as u32;
    let payload = QueuedUnit { task: unit.task, iterations: unit.iterations, asked };
    let payload = serde_json::to_vec(&payload).map_err(internal)?;
    Ok(NewUnit { model: plan.models[unit.model].label.clone(), dialogues, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_reads_back_and_need_be_of_no_retry() {
        let payload = QueuedUnit { task: 3, iterations: vec![0, 5], asked: Some(7) };
        assert_eq!(QueuedUnit::read(&serde_json::to_vec(&payload).unwrap()).unwrap(), payload);
        assert_eq!(QueuedUnit::read(br#"{"task":3,"iterations":[1]}"#).unwrap().asked, None);
        assert!(QueuedUnit::read(b"{}").is_err());
    }
}
