//! Numbers the dialogues of a plan.
//!
//! Tables of a run with a million dialogues are arrays indexed by this number, which avoids a million keys and labels. The
//! numbers follow the order of the plan: model, task, iteration.

use std::collections::HashMap;
use std::ops::Range;

use domain::{DialogueKey, Iteration, ModelLabel, TaskLabel};

use crate::plan::Plan;

/// The number of a dialogue in its plan, from 0.
pub type Slot = usize;

/// The numbering of a plan's dialogues.
#[derive(Clone, Debug)]
pub struct Layout {
    models: Vec<OfModel>,
    model_numbers: HashMap<ModelLabel, usize>,
    tasks: Vec<TaskLabel>,
    task_numbers: HashMap<TaskLabel, usize>,
    slots: usize,
}

#[derive(Clone, Debug)]
struct OfModel {
    label: ModelLabel,
    first: Slot,
    iterations: Iteration,
}

impl Layout {
    /// The numbering of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut slots = 0;
        let mut models = Vec::with_capacity(plan.models.len());
        for model in &plan.models {
            models.push(OfModel { label: model.label.clone(), first: slots, iterations: model.iterations });
            slots += plan.tasks.len() * model.iterations as usize;
        }
        let tasks: Vec<TaskLabel> = plan.tasks.iter().map(|task| task.label.clone()).collect();
        Self {
            model_numbers: models.iter().enumerate().map(|(n, model)| (model.label.clone(), n)).collect(),
            task_numbers: tasks.iter().enumerate().map(|(n, task)| (task.clone(), n)).collect(),
            models,
            tasks,
            slots,
        }
    }

    /// Number of dialogues.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The index of a model in the plan.
    pub fn model(&self, label: &ModelLabel) -> Option<usize> {
        self.model_numbers.get(label).copied()
    }

    /// The dialogue with these indexes; `None` if the plan has none.
    pub fn slot(&self, model: usize, task: usize, iteration: Iteration) -> Option<Slot> {
        let of_model = self.models.get(model)?;
        let planned = task < self.tasks.len() && iteration < of_model.iterations;
        planned.then(|| of_model.first + task * of_model.iterations as usize + iteration as usize)
    }

    /// The dialogue with this key; `None` if it is not planned.
    pub fn slot_of(&self, key: &DialogueKey) -> Option<Slot> {
        self.slot(self.model(&key.model)?, *self.task_numbers.get(&key.task)?, key.iteration)
    }

    /// The dialogues of one model on one task.
    pub fn cell(&self, model: usize, task: usize) -> Range<Slot> {
        let OfModel { first, iterations, .. } = self.models[model];
        let start = first + task * iterations as usize;
        start..start + iterations as usize
    }

    /// Indexes of model and task, and the iteration, of a dialogue below [`slots`](Self::slots).
    pub fn place(&self, slot: Slot) -> (usize, usize, Iteration) {
        let model = self.models.partition_point(|model| model.first <= slot) - 1;
        // Models without dialogues share their first slot with the next one; `partition_point` skips them.
        let OfModel { first, iterations, .. } = self.models[model];
        let (within, iterations) = (slot - first, iterations.max(1) as usize);
        (model, within / iterations, (within % iterations) as Iteration)
    }

    /// The key of a dialogue.
    pub fn key(&self, slot: Slot) -> DialogueKey {
        let (model, task, iteration) = self.place(slot);
        DialogueKey { model: self.models[model].label.clone(), task: self.tasks[task].clone(), iteration }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlannedModel, PlannedTask};

    #[test]
    fn numbers_follow_the_order_of_the_plan_and_lead_back_to_keys() {
        let model = |label: &str, iterations| PlannedModel { label: label.into(), iterations };
        let task = |label: &str, index| PlannedTask { label: label.into(), index, cases: 1, weight: 1 };
        let plan = Plan {
            models: vec![model("a", 3), model("b", 0), model("c", 5)],
            tasks: vec![task("s", 0), task("t", 1)],
        };
        let layout = Layout::of(&plan);
        assert_eq!(layout.slots() as u64, plan.dialogues());
        for (slot, key) in plan.keys().enumerate() {
            assert_eq!(layout.slot_of(&key), Some(slot), "{key}");
            assert_eq!(layout.key(slot), key);
        }
        assert_eq!(layout.cell(2, 1), 11..16);
        let absent = |model: &str, task: &str, iteration| {
            layout.slot_of(&DialogueKey { model: model.into(), task: task.into(), iteration }).is_none()
        };
        assert!(absent("a", "s", 3) && absent("b", "s", 0) && absent("z", "s", 0) && absent("a", "z", 0));
    }
}
