//! Cutting a plan into units.
//!
//! A unit holds dialogues of one model, one task and one case, so that a server's prefix cache helps. Heavy tasks come
//! first; towards the end of a model's work units shrink, so that its last worker does not hold ten dialogues while
//! the others are idle.

use domain::Iteration;
use serde::{Deserialize, Serialize};

use super::Plan;

/// Most dialogues of a unit.
pub const UNIT_DIALOGUES_MAX: usize = 10;

/// Share of a model's dialogues, at the end of its order, that are cut into units of one.
const TAIL_DIVISOR: usize = 20;

/// Dialogues handed out together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Index of the model in the plan.
    pub model: usize,
    /// Index of the task in the plan.
    pub task: usize,
    /// The repetitions, ascending; all of one case.
    pub iterations: Vec<Iteration>,
}

pub(super) fn cut(plan: &Plan, is_done: impl Fn(usize, usize, Iteration) -> bool) -> Vec<Unit> {
    let mut by_weight: Vec<usize> = (0..plan.tasks.len()).collect();
    // Stable: equal weights keep the order of the configuration.
    by_weight.sort_by_key(|task| std::cmp::Reverse(plan.tasks[*task].weight));
    let mut units = Vec::new();
    for (model, planned) in plan.models.iter().enumerate() {
        let of_model = units.len();
        let mut dialogues = 0;
        for &task in &by_weight {
            let cases = plan.tasks[task].cases.max(1);
            for case in 0..cases {
                let pending: Vec<Iteration> = (0..planned.iterations)
                    .skip(case)
                    .step_by(cases)
                    .filter(|iteration| !is_done(model, task, *iteration))
                    .collect();
                dialogues += pending.len();
                units.extend(pending.chunks(UNIT_DIALOGUES_MAX).map(|iterations| Unit {
                    model,
                    task,
                    iterations: iterations.to_vec(),
                }));
            }
        }
        shrink_tail(&mut units, of_model, dialogues / TAIL_DIVISOR);
    }
    units
}

/// Cuts the last `tail` dialogues into units of one.
fn shrink_tail(units: &mut Vec<Unit>, from: usize, tail: usize) {
    let mut left = tail;
    let mut split = units.len();
    while split > from && left >= units[split - 1].iterations.len() {
        split -= 1;
        left -= units[split].iterations.len();
    }
    let last = units.split_off(split);
    units.extend(last.into_iter().flat_map(|unit| {
        unit.iterations.into_iter().map(move |iteration| Unit {
            model: unit.model,
            task: unit.task,
            iterations: vec![iteration],
        })
    }));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::{ModelLabel, TaskLabel};
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{PlannedModel, PlannedTask};

    fn plan(models: &[u32], tasks: &[(usize, u64)]) -> Plan {
        Plan {
            models: models
                .iter()
                .enumerate()
                .map(|(n, iterations)| PlannedModel {
                    label: ModelLabel::new(format!("m{n}")),
                    iterations: *iterations,
                })
                .collect(),
            tasks: tasks
                .iter()
                .enumerate()
                .map(|(index, (cases, weight))| PlannedTask {
                    label: TaskLabel::new(format!("t{index}")),
                    index,
                    cases: *cases,
                    weight: *weight,
                })
                .collect(),
        }
    }

    #[test]
    fn twenty_iterations_of_five_cases_make_units_of_four() {
        let units = plan(&[20], &[(5, 1)]).units(|_, _, _| false);
        assert_eq!(units[0].iterations, [0, 5, 10, 15]);
        assert!(units[..4].iter().all(|unit| unit.iterations.len() == 4));
    }

    #[test]
    fn heavy_tasks_come_first_and_the_tail_is_small() {
        let units = plan(&[50], &[(1, 1), (1, 9)]).units(|_, _, _| false);
        assert_eq!((units[0].task, units[0].iterations.len()), (1, 10));
        assert_eq!(units.last().map(|unit| (unit.task, unit.iterations.len())), Some((0, 10)));
        let units = plan(&[200], &[(1, 1), (1, 9)]).units(|_, _, _| false);
        let ones = units.iter().rev().take_while(|unit| unit.iterations.len() == 1).count();
        assert_eq!(ones, 20, "a twentieth of 400 dialogues");
    }

    proptest! {
        #[test]
        fn every_pending_dialogue_is_in_exactly_one_unit_of_its_case(
            models in proptest::collection::vec(0_u32..60, 1..4),
            tasks in proptest::collection::vec((1_usize..7, 0_u64..5), 1..5),
            done in 0_u32..7,
        ) {
            let plan = plan(&models, &tasks);
            let is_done = |_: usize, _: usize, iteration: Iteration| iteration % 7 < done;
            let mut seen = BTreeSet::new();
            for unit in plan.units(is_done) {
                prop_assert!(!unit.iterations.is_empty() && unit.iterations.len() <= UNIT_DIALOGUES_MAX);
                let cases = plan.tasks[unit.task].cases;
                let case = unit.iterations[0] as usize % cases;
                for iteration in unit.iterations {
                    prop_assert_eq!(iteration as usize % cases, case);
                    prop_assert!(seen.insert((unit.model, unit.task, iteration)));
                }
            }
            let expected: usize = models
                .iter()
                .map(|iterations| (0..*iterations).filter(|i| i % 7 >= done).count() * tasks.len())
                .sum();
            prop_assert_eq!(seen.len(), expected);
        }
    }
}
