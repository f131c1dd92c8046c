//! What all records of a run have used, by model: what was paid for, whether a record counts or not.
//!
//! A record may be read more than once, and it stands in the log more than once if a worker delivered it again. It was paid for
//! once.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use domain::{ModelUsage, RecordId};

/// The sums of a run.
#[derive(Debug)]
pub(crate) struct SpendingTable {
    /// Hashes of the records in the sums: names would take five times as much room.
    seen: HashSet<u64>,
    hasher: RandomState,
    models: Vec<ModelUsage>,
}

impl SpendingTable {
    /// For this number of models.
    pub(crate) fn new(models: usize) -> Self {
        Self { seen: HashSet::new(), hasher: RandomState::new(), models: vec![ModelUsage::default(); models] }
    }

    /// Adds what a record of this model used, unless it is in the sums.
    pub(crate) fn add(&mut self, record: &RecordId, model: usize, used: &ModelUsage) {
        let Some(sum) = self.models.get_mut(model) else { return };
        if self.seen.insert(self.hasher.hash_one(record)) {
            *sum += used;
        }
    }

    /// What each model used, in the order of the plan.
    pub(crate) fn of_models(&self) -> &[ModelUsage] {
        &self.models
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_paid_for_once() {
        let used = |prompt_tokens| ModelUsage { dialogues: 1, prompt_tokens, ..ModelUsage::default() };
        let mut table = SpendingTable::new(2);
        let [first, again] = ["first", "again"].map(RecordId::new);
        for _ in 0..3 {
            table.add(&first, 1, &used(700));
            table.add(&again, 1, &used(300));
        }
        table.add(&RecordId::new("of no model"), 2, &used(1));
        let sums: Vec<u64> = table.of_models().iter().map(|sum| sum.prompt_tokens).collect();
        assert_eq!(sums, [0, 1000]);
    }
}
