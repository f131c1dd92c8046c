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
pub struct Numbering {
    models: Vec<OfModel>,
    model_numbers: HashMap<ModelLabel, usize>,
    tasks: Vec<TaskLabel>,
    task_numbers: HashMap<TaskLabel, usize>,
    slots: usize,
}

#[derive(Clone, Debug)]
struct OfModel {
    label: ModelLabel,
    /// Where the dialogues of each task begin, and where the last ones end.
    starts: Vec<Slot>,
}

impl OfModel {
    fn cell(&self, task: usize) -> Range<Slot> {
        self.starts[task]..self.starts[task + 1]
    }
}

impl Numbering {
    /// The numbering of a plan.
    pub fn of(plan: &Plan) -> Self {
        let mut slots = 0;
        let mut models = Vec::with_capacity(plan.models.len());
        for model in &plan.models {
            let mut starts = Vec::with_capacity(plan.tasks.len() + 1);
            starts.push(slots);
            for task in 0..plan.tasks.len() {
                slots += model.iterations_of(task) as usize;
                starts.push(slots);
            }
            models.push(OfModel { label: model.label.clone(), starts });
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

    /// The index of a task in the plan.
    pub fn task(&self, label: &TaskLabel) -> Option<usize> {
        self.task_numbers.get(label).copied()
    }

    /// The dialogue of these indexes; `None` where the plan has none.
    pub fn slot(&self, model: usize, task: usize, iteration: Iteration) -> Option<Slot> {
        let of_model = self.models.get(model).filter(|_| task < self.tasks.len())?;
        let cell = of_model.cell(task);
        ((iteration as usize) < cell.len()).then(|| cell.start + iteration as usize)
    }

    /// The dialogue with this key; `None` if it is not planned.
    pub fn slot_of(&self, key: &DialogueKey) -> Option<Slot> {
        self.slot(self.model(&key.model)?, *self.task_numbers.get(&key.task)?, key.iteration)
    }

    /// The dialogues of one model on one task.
    pub fn cell(&self, model: usize, task: usize) -> Range<Slot> {
        self.models[model].cell(task)
    }

    /// Indexes of model and task, and the iteration, of a dialogue below [`slots`](Self::slots).
    pub fn place(&self, slot: Slot) -> (usize, usize, Iteration) {
        // Models and tasks without dialogues share their first slot with the next one, which `partition_point` passes.
        let model = self.models.partition_point(|model| model.starts[0] <= slot) - 1;
        let starts = &self.models[model].starts;
        let task = starts.partition_point(|start| *start <= slot) - 1;
        (model, task, (slot - starts[task]) as Iteration)
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
        let model = |label: &str, iterations, of_first: Option<u32>| PlannedModel {
            label: label.into(),
            iterations,
            of_task: of_first.map(|of_first| (0, of_first)).into_iter().collect(),
        };
        let task = |label: &str, index| PlannedTask { label: label.into(), index, cases: 1, weight: 1 };
        let plan = Plan {
            models: vec![
                model("a", 3, None),
                model("b", 0, None),
                model("c", 5, None),
                model("d", 2, Some(0)),
                model("e", 1, Some(4)),
            ],
            tasks: vec![task("s", 0), task("t", 1)],
        };
        let layout = Numbering::of(&plan);
        assert_eq!(layout.slots() as u64, plan.dialogues());
        for (slot, key) in plan.keys().enumerate() {
            assert_eq!(layout.slot_of(&key), Some(slot), "{key}");
            assert_eq!(layout.key(slot), key);
        }
        assert_eq!((layout.cell(2, 1), layout.cell(3, 0), layout.cell(4, 0)), (11..16, 16..16, 18..22));
        let absent = |model: &str, task: &str, iteration| {
            layout.slot_of(&DialogueKey { model: model.into(), task: task.into(), iteration }).is_none()
        };
        assert!(
            absent("a", "s", 3)
                && absent("b", "s", 0)
                && absent("z", "s", 0)
                && absent("a", "z", 0)
                && absent("d", "s", 0)
        );
    }
}
