//! Finds tasks of which a plan asks only some cases, because it has fewer iterations than the task has cases.

use domain::TaskLabel;

use super::Plan;

/// A task of which a model is not asked all cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnaskedCases {
    pub task: TaskLabel,
    /// How many cases the model with the fewest iterations is asked.
    pub asked: usize,
    /// How many cases the task has.
    pub cases: usize,
}

impl Plan {
    /// The tasks of which some model is asked some cases and not all. A task that is left out for a model (0 iterations) was
    /// left out on purpose.
    pub fn unasked_cases(&self) -> impl Iterator<Item = UnaskedCases> + '_ {
        self.tasks.iter().enumerate().filter_map(|(number, task)| {
            let counts = self.models.iter().map(|model| model.iterations_of(number));
            let fewest = counts.filter(|count| *count > 0).min()?;
            let asked = usize::try_from(fewest).unwrap_or(usize::MAX);
            (asked < task.cases).then(|| UnaskedCases { task: task.label.clone(), asked, cases: task.cases })
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::ModelLabel;

    use super::*;
    use crate::plan::{PlannedModel, PlannedTask};

    #[test]
    fn fewer_iterations_than_cases_are_told_and_a_task_left_out_is_not() {
        let task =
            |label: &str, cases| PlannedTask { label: TaskLabel::new(label), index: 0, cases, weight: 1 };
        let model = |label: &str, of_task: &[(usize, u32)]| PlannedModel {
            label: ModelLabel::new(label),
            iterations: 20,
            of_task: of_task.iter().copied().collect(),
        };
        let plan = Plan {
            models: vec![model("a", &[]), model("b", &[(0, 0), (1, 3)])],
            tasks: vec![task("all", 20), task("some", 5), task("large", 500)],
        };
        let told: Vec<_> = plan.unasked_cases().map(|unasked| (unasked.asked, unasked.cases)).collect();
        assert_eq!(told, [(3, 5), (20, 500)]);
    }
}
