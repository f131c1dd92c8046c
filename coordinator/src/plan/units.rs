//! Cuts a plan into units.
//!
//! A unit has dialogues of one model, task and case, to benefit from a server's prefix cache. Heavy tasks come first. At
//! the end of a model's work, units are smaller, so that the last worker does not hold ten dialogues while others are
//! idle.

use domain::Iteration;
use domain::exchange::UNIT_DIALOGUES_MAX;
use serde::{Deserialize, Serialize};

use super::Plan;

/// The last 1/`TAIL_DIVISOR` of a model's dialogues are cut into units of one.
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

/// The units of a plan, lazily: the units of a million dialogues are never all in memory. Dialogues for which `is_done`
/// holds are left out.
pub(super) fn cut<'p, F>(plan: &'p Plan, is_done: F) -> impl Iterator<Item = Unit> + Send + use<'p, F>
where
    F: Fn(usize, usize, Iteration) -> bool + Copy + Send + 'p,
{
    let mut by_weight: Vec<usize> = (0..plan.tasks.len()).collect();
    // Stable: equal weights keep the order of the configuration.
    by_weight.sort_by_key(|task| std::cmp::Reverse(plan.tasks[*task].weight));
    (0..plan.models.len()).flat_map(move |model| {
        let planned = &plan.models[model];
        let of_task =
            |task: usize| (0..planned.iterations_of(task)).filter(move |i| !is_done(model, task, *i)).count();
        let mut left: usize = (0..plan.tasks.len()).map(of_task).sum();
        let tail = left / TAIL_DIVISOR;
        of_model(plan, by_weight.clone(), model, is_done).flat_map(move |unit| {
            // The last twentieth of the model's dialogues, in whole units, is cut into units of one.
            let split = left <= tail;
            left -= unit.iterations.len();
            let size = if split { 1 } else { UNIT_DIALOGUES_MAX as usize };
            let parts: Vec<Unit> = unit
                .iterations
                .chunks(size)
                .map(|iterations| Unit {
                    iterations: iterations.to_vec(),
                    model: unit.model,
                    task: unit.task,
                })
                .collect();
            parts
        })
    })
}

/// A model's units before its tail is cut up.
fn of_model<'p, F>(
    plan: &'p Plan,
    by_weight: Vec<usize>,
    model: usize,
    is_done: F,
) -> impl Iterator<Item = Unit> + Send + use<'p, F>
where
    F: Fn(usize, usize, Iteration) -> bool + Copy + Send + 'p,
{
    let planned = &plan.models[model];
    by_weight.into_iter().flat_map(move |task| {
        let cases = plan.tasks[task].cases.max(1);
        (0..cases).flat_map(move |case| {
            let of_case = (0..planned.iterations_of(task)).skip(case).step_by(cases);
            let pending: Vec<Iteration> = of_case.filter(|i| !is_done(model, task, *i)).collect();
            let units: Vec<Unit> = pending
                .chunks(UNIT_DIALOGUES_MAX as usize)
                .map(|iterations| Unit { model, task, iterations: iterations.to_vec() })
                .collect();
            units
        })
    })
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
                    // Every fourth cell is of another size.
                    of_task: (0..tasks.len())
                        .filter(|task| (n + task) % 4 == 3)
                        .map(|task| (task, task as u32))
                        .collect(),
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
            let is_done = move |_: usize, _: usize, iteration: Iteration| iteration % 7 < done;
            let mut seen = BTreeSet::new();
            for unit in plan.units(is_done) {
                prop_assert!(!unit.iterations.is_empty() && unit.iterations.len() <= UNIT_DIALOGUES_MAX as usize);
                let cases = plan.tasks[unit.task].cases;
                let case = unit.iterations[0] as usize % cases;
                for iteration in unit.iterations {
                    prop_assert_eq!(iteration as usize % cases, case);
                    prop_assert!(seen.insert((unit.model, unit.task, iteration)));
                }
            }
            let expected = plan.keys().filter(|key| key.iteration % 7 >= done).count();
            prop_assert_eq!(seen.len(), expected);
        }
    }
}
