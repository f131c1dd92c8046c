//! The winner of each dialogue, in memory.

use std::collections::BTreeMap;

use domain::{DialogueKey, Iteration, ModelLabel, TaskLabel};

use crate::commit::Committed;

/// The winner of each dialogue. Labels are stored once, not once per dialogue: the winners of a million dialogues take
/// about 40 MB.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommittedWinners(BTreeMap<ModelLabel, BTreeMap<TaskLabel, BTreeMap<Iteration, Committed>>>);

impl CommittedWinners {
    /// The winner of a dialogue.
    pub(crate) fn get(&self, key: &DialogueKey) -> Option<Committed> {
        self.0.get(&key.model)?.get(&key.task)?.get(&key.iteration).copied()
    }

    /// Sets the winner of a dialogue.
    pub(crate) fn insert(&mut self, key: &DialogueKey, record: Committed) {
        let of_cell = self.0.get_mut(&key.model).and_then(|tasks| tasks.get_mut(&key.task));
        match of_cell {
            Some(iterations) => iterations.insert(key.iteration, record),
            None => {
                let tasks = self.0.entry(key.model.clone()).or_default();
                tasks.entry(key.task.clone()).or_default().insert(key.iteration, record)
            }
        };
    }

    /// Every dialogue with its winner, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (DialogueKey, Committed)> + '_ {
        self.0.iter().flat_map(|(model, tasks)| {
            tasks.iter().flat_map(move |(task, iterations)| {
                iterations.iter().map(move |(iteration, record)| {
                    let (model, task) = (model.clone(), task.clone());
                    (DialogueKey { model, task, iteration: *iteration }, *record)
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_last_is_found_under_its_key_alone() {
        let key = |model: &str, iteration| DialogueKey { model: model.into(), task: "t".into(), iteration };
        let mut winners = CommittedWinners::default();
        winners.insert(&key("a", 0), Committed { scored: false, ticket: 1 });
        winners.insert(&key("a", 0), Committed { scored: true, ticket: 2 });
        winners.insert(&key("b", 7), Committed { scored: true, ticket: 3 });
        assert_eq!(winners.get(&key("a", 0)), Some(Committed { scored: true, ticket: 2 }));
        assert_eq!(winners.get(&key("a", 7)), None);
        let all: Vec<(DialogueKey, u64)> = winners.iter().map(|(key, record)| (key, record.ticket)).collect();
        assert_eq!(all, [(key("a", 0), 2), (key("b", 7), 3)]);
    }
}
