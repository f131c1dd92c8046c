//! The plan of a run: models × tasks × iterations, cut into units. A pure function of its inputs.

use std::collections::BTreeSet;

use domain::text::hex;
use domain::{DialogueKey, Iteration, ModelLabel, TaskLabel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::configuration::{Benchmark, Glob, TaskChoice};

mod outline;
mod units;

pub use outline::outlines;
pub use units::{UNIT_DIALOGUES_MAX, Unit};

/// The properties of a task that a plan needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOutline {
    /// Its label.
    pub label: TaskLabel,
    /// Its class name.
    pub class: String,
    /// Its parameters.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Number of cases; iteration `i` uses case `i` modulo this.
    pub cases: usize,
    /// Expected work of one dialogue, in a unit common to all tasks; the longest are started first.
    pub weight: u64,
    /// Whether it is one of the benchmark's tasks, which a configuration without tasks selects.
    pub standard: bool,
}

/// A planned model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedModel {
    /// Its label.
    pub label: ModelLabel,
    /// Repetitions of every task.
    pub iterations: u32,
}

/// A planned task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// The label in results.
    pub label: TaskLabel,
    /// Index in the list of outlines from which the plan was made.
    pub index: usize,
    /// Number of cases.
    pub cases: usize,
    /// Expected work of one dialogue.
    pub weight: u64,
}

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The models, in the order of the configuration.
    pub models: Vec<PlannedModel>,
    /// The tasks, in the order of the configuration.
    pub tasks: Vec<PlannedTask>,
}

/// Why a configuration cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A task is not in the pack.
    #[error("no task of the pack fits `{choice}`; tasks are: {known}")]
    UnknownTask {
        choice: String,
        /// The labels in the pack.
        known: String,
    },
}

impl Plan {
    /// Plans a configuration over the tasks of a pack.
    pub fn new(benchmark: &Benchmark, outlines: &[TaskOutline]) -> Result<Self, PlanError> {
        let models = benchmark
            .models
            .iter()
            .map(|model| PlannedModel {
                label: model.label.clone(),
                iterations: model.iterations.unwrap_or(benchmark.iterations),
            })
            .collect();
        Ok(Self { models, tasks: choose(&benchmark.tasks, outlines)? })
    }

    /// Number of dialogues.
    pub fn dialogues(&self) -> u64 {
        self.models.iter().map(|model| u64::from(model.iterations) * self.tasks.len() as u64).sum()
    }

    /// All dialogues, model by model and task by task, in the order of result files.
    pub fn keys(&self) -> impl Iterator<Item = DialogueKey> + '_ {
        self.models.iter().flat_map(move |model| {
            self.tasks.iter().flat_map(move |task| {
                (0..model.iterations).map(move |iteration| DialogueKey {
                    model: model.label.clone(),
                    task: task.label.clone(),
                    iteration,
                })
            })
        })
    }

    /// Whether a dialogue is planned.
    pub fn contains(&self, key: &DialogueKey) -> bool {
        self.models.iter().any(|model| model.label == key.model && key.iteration < model.iterations)
            && self.tasks.iter().any(|task| task.label == key.task)
    }

    /// The units, long tasks first, without dialogues for which `is_done` holds.
    pub fn units<'p, F>(&'p self, is_done: F) -> Vec<Unit>
    where
        F: Fn(usize, usize, Iteration) -> bool + Copy + Send + 'p,
    {
        self.units_without(is_done).collect()
    }

    /// Like [`units`](Self::units), but lazily; always in the same order, so that two coordinators that queue a plan agree on
    /// the numbers of its units.
    pub fn units_without<'p, F>(&'p self, is_done: F) -> impl Iterator<Item = Unit> + Send + use<'p, F>
    where
        F: Fn(usize, usize, Iteration) -> bool + Copy + Send + 'p,
    {
        units::cut(self, is_done)
    }

    /// Hash of everything that determines the questions: plan, seed and pack. Hexadecimal SHA-256.
    pub fn hash(&self, seed: u64, pack_hash: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(serde_json::to_vec(self).unwrap_or_default());
        hasher.update(seed.to_le_bytes());
        hasher.update(pack_hash.as_bytes());
        hex(hasher.finalize())
    }
}

fn choose(choices: &[TaskChoice], outlines: &[TaskOutline]) -> Result<Vec<PlannedTask>, PlanError> {
    let planned = |index: usize, label: &TaskLabel| PlannedTask {
        label: label.clone(),
        index,
        cases: outlines[index].cases,
        weight: outlines[index].weight,
    };
    let mut tasks = Vec::new();
    if choices.is_empty() {
        let standard = outlines.iter().enumerate().filter(|(_, outline)| outline.standard);
        tasks.extend(standard.map(|(index, outline)| planned(index, &outline.label)));
    }
    for choice in choices {
        let before = tasks.len();
        match choice {
            TaskChoice::Label(pattern) => {
                let glob = Glob::new(pattern);
                let fits = |outline: &TaskOutline| {
                    glob.matches(outline.label.as_str()) && (outline.standard || pattern != "*")
                };
                let found = outlines.iter().enumerate().filter(|(_, outline)| fits(outline));
                tasks.extend(found.map(|(index, outline)| planned(index, &outline.label)));
            }
            TaskChoice::Class(wanted) => {
                let fits = |outline: &TaskOutline| {
                    outline.class == wanted.class
                        && wanted.parameters.iter().all(|(name, value)| {
                            outline.parameters.get(name).is_some_and(|ours| plain(ours) == plain(value))
                        })
                };
                let label = TaskLabel::new(wanted.label.as_str());
                let found = outlines.iter().position(fits);
                tasks.extend(found.map(|index| planned(index, &label)));
            }
        }
        if tasks.len() == before {
            let choice = match choice {
                TaskChoice::Label(pattern) => pattern.clone(),
                TaskChoice::Class(wanted) => {
                    format!("{} {}", wanted.class, serde_json::Value::Object(wanted.parameters.clone()))
                }
            };
            let known = outlines.iter().map(|outline| outline.label.as_str()).collect::<Vec<_>>().join(", ");
            return Err(PlanError::UnknownTask { choice, known });
        }
    }
    let mut seen = BTreeSet::new();
    tasks.retain(|task| seen.insert(task.label.clone()));
    Ok(tasks)
}

/// A parameter as text, so that `1` equals `"1"`.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::ClassChoice;

    fn outline(label: &str, weight: u64, standard: bool) -> TaskOutline {
        let mut parameters = serde_json::Map::new();
        parameters.insert("n".into(), 1.into());
        let class = label.split('-').next().unwrap_or_default().to_owned();
        TaskOutline { label: label.into(), class, parameters, cases: 5, weight, standard }
    }

    fn benchmark(tasks: Vec<TaskChoice>) -> Benchmark {
        let text = "name: t\niterations: 20\nmodels:\n  - {label: a, connector: simulated}\n  - {label: b, connector: simulated, iterations: 50}\n";
        Benchmark { tasks, ..Benchmark::parse(text, "t.yaml").unwrap() }
    }

    fn outlines() -> Vec<TaskOutline> {
        vec![outline("A-x", 10, true), outline("A-y", 30, true), outline("B", 20, false)]
    }

    #[test]
    fn dialogues_are_models_times_tasks_times_iterations() {
        let plan = Plan::new(&benchmark(Vec::new()), &outlines()).unwrap();
        assert_eq!(plan.dialogues(), 2 * 20 + 2 * 50, "without a choice the standard tasks run");
        let keys: BTreeSet<_> = plan.keys().collect();
        assert_eq!(keys.len() as u64, plan.dialogues());
        assert!(keys.iter().all(|key| plan.contains(key)));
    }

    #[test]
    fn tasks_are_found_by_pattern_or_by_class_and_parameters() {
        let label = |text: &str| TaskChoice::Label(text.into());
        let of = |choices| {
            Plan::new(&benchmark(choices), &outlines())
                .map(|plan| plan.tasks.iter().map(|task| task.label.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(of(vec![label("*-y"), label("A-*")]).unwrap(), ["A-y", "A-x"]);
        assert_eq!(of(vec![label("B")]).unwrap(), ["B"]);
        let mut parameters = serde_json::Map::new();
        parameters.insert("n".into(), "1".into());
        let choice = ClassChoice { label: "mine".into(), class: "B".into(), parameters };
        assert_eq!(of(vec![TaskChoice::Class(choice)]).unwrap(), ["mine"]);
        assert!(of(vec![label("C*")]).unwrap_err().to_string().contains("A-x"));
    }

    #[test]
    fn the_hash_follows_everything_that_decides_a_question() {
        let plan = Plan::new(&benchmark(Vec::new()), &outlines()).unwrap();
        let base = plan.hash(1, "p");
        assert_eq!(base.len(), 64);
        assert_ne!(base, plan.hash(2, "p"));
        assert_ne!(base, plan.hash(1, "q"));
        let mut other = plan.clone();
        other.models[0].iterations += 1;
        assert_ne!(base, other.hash(1, "p"));
    }
}
