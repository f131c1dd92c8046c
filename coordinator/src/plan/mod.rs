//! The plan of a run: models × tasks × iterations, cut into units. A pure function of its inputs.

use std::collections::{BTreeMap, BTreeSet};

use benchmarks::kinds;
use domain::spelling;
use domain::text::{hex, label_problem};
use domain::{DialogueKey, Iteration, ModelLabel, ModelSpec, TaskLabel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::plan::configuration::{Configuration, Glob, ITERATIONS_DEFAULT, ITERATIONS_MAX, TaskChoice};

pub mod configuration;
pub(crate) mod difference;
pub(crate) mod numbering;
mod outline;
pub mod planned;
pub mod protection;
mod unasked;
mod units;

pub use outline::outlines;
pub use unasked::UnaskedCases;
pub use units::Unit;

/// The properties of a task that a plan needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOutline {
    pub label: TaskLabel,
    /// Its class name.
    pub class: String,
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Number of cases; iteration `i` uses case `i` modulo this.
    pub cases: usize,
    /// How often each case is asked where a configuration does not say how often; nothing where the task does not say either.
    pub repeats: Option<u32>,
    /// Expected work of one dialogue, in a unit common to all tasks; the longest are started first.
    pub weight: u64,
    /// Whether it is one of the benchmark's tasks, which a configuration without tasks selects.
    pub standard: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedModel {
    pub label: ModelLabel,
    /// Repetitions of every task of which [`of_task`](Self::of_task) says nothing.
    pub iterations: u32,
    /// Repetitions of single tasks, by their index in the plan. Only what differs, so that the hash of a plan without it is
    /// what it always was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of_task: BTreeMap<usize, u32>,
}

impl PlannedModel {
    /// Repetitions of a task, by its index in the plan.
    pub fn iterations_of(&self, task: usize) -> u32 {
        self.of_task.get(&task).copied().unwrap_or(self.iterations)
    }

    /// The most repetitions of any of so many tasks.
    pub fn most_iterations(&self, tasks: usize) -> u32 {
        (0..tasks).map(|task| self.iterations_of(task)).max().unwrap_or(0)
    }

    /// Dialogues over so many tasks.
    pub fn dialogues(&self, tasks: usize) -> u64 {
        (0..tasks).map(|task| u64::from(self.iterations_of(task))).sum()
    }
}

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
    #[error("no task of the pack fits `{choice}`; {offered}")]
    UnknownTask {
        choice: String,
        /// Labels in the pack that may be meant.
        offered: String,
    },
    /// A task has a label that cannot be shown and queued.
    #[error("the label of a task {problem}")]
    Label { problem: String },
}

impl Plan {
    /// Plans a configuration over the tasks of a pack.
    pub fn new(configuration: &Configuration, outlines: &[TaskOutline]) -> Result<Self, PlanError> {
        let tasks = choose(&configuration.tasks, outlines)?;
        let configuration = &with_iterations(configuration.clone(), &tasks, outlines);
        let models =
            configuration.models.iter().map(|model| planned_model(configuration, model, &tasks)).collect();
        unmatched(configuration, &tasks, outlines)?;
        if let Some(problem) = tasks.iter().find_map(|task| label_problem(task.label.as_str())) {
            return Err(PlanError::Label { problem });
        }
        Ok(Self { models, tasks })
    }

    /// Number of dialogues.
    pub fn dialogues(&self) -> u64 {
        self.models.iter().map(|model| model.dialogues(self.tasks.len())).sum()
    }

    /// The most repetitions of any task for any model.
    pub fn most_iterations(&self) -> u32 {
        self.models.iter().map(|model| model.most_iterations(self.tasks.len())).max().unwrap_or(0)
    }

    /// All dialogues, model by model and task by task, in the order of result files.
    pub fn keys(&self) -> impl Iterator<Item = DialogueKey> + '_ {
        self.models.iter().flat_map(move |model| {
            self.tasks.iter().enumerate().flat_map(move |(number, task)| {
                (0..model.iterations_of(number)).map(move |iteration| DialogueKey {
                    model: model.label.clone(),
                    task: task.label.clone(),
                    iteration,
                })
            })
        })
    }

    /// Whether a dialogue is planned.
    pub fn contains(&self, key: &DialogueKey) -> bool {
        let Some(task) = self.tasks.iter().position(|task| task.label == key.task) else { return false };
        self.models.iter().any(|model| model.label == key.model && key.iteration < model.iterations_of(task))
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

/// A configuration that says how often tasks are asked. Where it did not, a task of a task file is asked every case as often as
/// that file says, a kind that asks every case asks each once, and others have [their default](ITERATIONS_DEFAULT).
pub(crate) fn with_iterations(
    mut configuration: Configuration,
    tasks: &[PlannedTask],
    outlines: &[TaskOutline],
) -> Configuration {
    if configuration.iterations.is_some() {
        return configuration;
    }
    let judging = kinds::find(configuration.pipeline.as_deref()).and_then(|kind| kind.judging);
    let of_kind = judging.and_then(|judging| judging.every_case.then_some(1));
    let usual = |task: &PlannedTask| {
        let Some(repeats) = outlines[task.index].repeats.or(of_kind) else { return ITERATIONS_DEFAULT };
        let cases = u32::try_from(task.cases).unwrap_or(u32::MAX);
        cases.saturating_mul(repeats).clamp(1, ITERATIONS_MAX)
    };
    let most = tasks.iter().map(usual).max().unwrap_or(ITERATIONS_DEFAULT);
    for task in tasks.iter().filter(|task| usual(task) < most) {
        if of_pattern(&configuration.task_iterations, &task.label).is_none() {
            configuration.task_iterations.insert(task.label.to_string(), usual(task));
        }
    }
    configuration.iterations = Some(most);
    configuration
}

/// How often a model is asked. What is said nearer to it and to the task counts: what the model says of the task, then of all
/// tasks, then what the configuration says of the task, then of all.
fn planned_model(configuration: &Configuration, model: &ModelSpec, tasks: &[PlannedTask]) -> PlannedModel {
    let iterations = model.iterations.or(configuration.iterations).unwrap_or(ITERATIONS_DEFAULT);
    let said = |task: &PlannedTask| {
        let own = of_pattern(&model.task_iterations, &task.label);
        let of_all = || of_pattern(&configuration.task_iterations, &task.label);
        own.or(model.iterations).or_else(of_all).unwrap_or(iterations)
    };
    let of_task = tasks.iter().map(said).enumerate().filter(|(_, said)| *said != iterations).collect();
    PlannedModel { label: model.label.clone(), iterations, of_task }
}

/// What is said of a label: by itself, else by the first pattern that fits, in the order of their texts.
fn of_pattern(said: &BTreeMap<String, u32>, label: &TaskLabel) -> Option<u32> {
    let fitting = || said.iter().find(|(pattern, _)| Glob::new(pattern).matches(label.as_str()));
    said.get(label.as_str()).copied().or_else(|| Some(*fitting()?.1))
}

/// Finds iterations of tasks that are not there: a name that is misspelt is no choice. Tasks that were left out on purpose may
/// be named.
fn unmatched(
    configuration: &Configuration,
    tasks: &[PlannedTask],
    outlines: &[TaskOutline],
) -> Result<(), PlanError> {
    let labels = || tasks.iter().map(|task| &task.label).chain(outlines.iter().map(|outline| &outline.label));
    let of_models = configuration.models.iter().flat_map(|model| model.task_iterations.keys());
    for pattern in configuration.task_iterations.keys().chain(of_models) {
        let glob = Glob::new(pattern);
        if !labels().any(|label| glob.matches(label.as_str())) {
            let known: BTreeSet<&str> = labels().map(TaskLabel::as_str).collect();
            return Err(unknown_task(pattern.clone(), pattern, &Vec::from_iter(known)));
        }
    }
    Ok(())
}

/// The error of a choice that no task fits, by the pattern or class that it names.
fn unknown_task(choice: String, name: &str, known: &[&str]) -> PlanError {
    let offered = spelling::offer(&name.replace('*', ""), known.iter().copied());
    PlanError::UnknownTask { choice, offered }
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
            let (choice, name) = match choice {
                TaskChoice::Label(pattern) => (pattern.clone(), pattern),
                TaskChoice::Class(wanted) => {
                    let parameters = serde_json::Value::Object(wanted.parameters.clone());
                    (format!("{} {parameters}", wanted.class), &wanted.class)
                }
            };
            let known: Vec<&str> = outlines.iter().map(|outline| outline.label.as_str()).collect();
            return Err(unknown_task(choice, name, &known));
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
    use crate::plan::configuration::ClassChoice;

    fn outline(label: &str, weight: u64, standard: bool) -> TaskOutline {
        let mut parameters = serde_json::Map::new();
        parameters.insert("n".into(), 1.into());
        let class = label.split('-').next().unwrap_or_default().to_owned();
        TaskOutline { label: label.into(), class, parameters, cases: 5, repeats: None, weight, standard }
    }

    fn configuration(tasks: Vec<TaskChoice>) -> Configuration {
        let text = "name: t\niterations: 20\nmodels:\n  - {label: a, connector: simulated}\n  - {label: b, connector: simulated, iterations: 50}\n";
        Configuration { tasks, ..Configuration::parse(text, "t.yaml").unwrap() }
    }

    fn outlines() -> Vec<TaskOutline> {
        vec![outline("A-x", 10, true), outline("A-y", 30, true), outline("B", 20, false)]
    }

    #[test]
    fn dialogues_are_models_times_tasks_times_iterations() {
        let plan = Plan::new(&configuration(Vec::new()), &outlines()).unwrap();
        assert_eq!(plan.dialogues(), 2 * 20 + 2 * 50, "without a choice the standard tasks run");
        let keys: BTreeSet<_> = plan.keys().collect();
        assert_eq!(keys.len() as u64, plan.dialogues());
        assert!(keys.iter().all(|key| plan.contains(key)));
    }

    #[test]
    fn counts_may_differ_by_task_and_model_and_a_rectangle_hashes_as_it_always_did() {
        let square = Plan::new(&configuration(Vec::new()), &outlines()).unwrap();
        assert_eq!(
            serde_json::to_value(&square.models).unwrap(),
            serde_json::json!([{"label": "a", "iterations": 20}, {"label": "b", "iterations": 50}])
        );
        let mut ragged = configuration(Vec::new());
        ragged.task_iterations = BTreeMap::from([("A-*".to_owned(), 3), ("A-x".to_owned(), 7)]);
        ragged.models[1].task_iterations = BTreeMap::from([("A-y".to_owned(), 0)]);
        let plan = Plan::new(&ragged, &outlines()).unwrap();
        let counts =
            |model: usize| (0..2).map(|task| plan.models[model].iterations_of(task)).collect::<Vec<_>>();
        assert_eq!(counts(0), [7, 3], "a label before a pattern");
        assert_eq!(counts(1), [50, 0], "what a model says of itself before what is said of all");
        assert_eq!(plan.dialogues(), 60);
        assert_eq!(plan.keys().filter(|key| plan.contains(key)).count(), 60);
        assert!(!plan.contains(&DialogueKey { model: "a".into(), task: "A-y".into(), iteration: 3 }));
        assert_ne!(plan.hash(1, "p"), square.hash(1, "p"));
        ragged.task_iterations.insert("B".into(), 1);
        assert_eq!(Plan::new(&ragged, &outlines()).unwrap(), plan, "a task that was not chosen");
        ragged.task_iterations.insert("C".into(), 1);
        let unknown = Plan::new(&ragged, &outlines()).unwrap_err().to_string();
        assert!(unknown.contains("`C`") && unknown.contains("A-x, A-y, B"), "{unknown}");
    }

    #[test]
    fn a_kind_that_asks_every_case_asks_each_once_unless_somebody_says_how_often() {
        let mut outlines = outlines();
        outlines[0].cases = 150;
        let mut asked = Configuration { iterations: None, ..configuration(Vec::new()) };
        let counts = |configuration: &Configuration| {
            let plan = Plan::new(configuration, &outlines).unwrap();
            (0..2).map(|task| plan.models[0].iterations_of(task)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&asked), [20, 20]);
        asked.pipeline = Some("kghalubench".to_owned());
        assert_eq!(counts(&asked), [150, 5]);
        asked.task_iterations.insert("A-y".to_owned(), 2);
        assert_eq!(counts(&asked), [150, 2]);
        // What is stored says the same without the kind.
        let tasks = Plan::new(&asked, &outlines).unwrap().tasks;
        let stored = Configuration { pipeline: None, ..with_iterations(asked.clone(), &tasks, &outlines) };
        assert_eq!((stored.iterations, counts(&stored)), (Some(150), vec![150, 2]));
        asked.iterations = Some(3);
        assert_eq!(counts(&asked), [3, 2]);
    }

    #[test]
    fn a_task_that_says_how_often_its_cases_are_asked_is_asked_so_unless_somebody_says_otherwise() {
        let mut outlines = outlines();
        (outlines[0].cases, outlines[0].repeats) = (500, Some(1));
        outlines[1].repeats = Some(3);
        outlines[2].standard = true;
        let mut asked = Configuration { iterations: None, ..configuration(Vec::new()) };
        let counts = |configuration: &Configuration, model: usize| {
            let plan = Plan::new(configuration, &outlines).unwrap();
            (0..3).map(|task| plan.models[model].iterations_of(task)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&asked, 0), [500, 15, 20], "every case, every case three times, the default");
        assert_eq!(counts(&asked, 1), [50, 50, 50], "what a model says of itself");
        asked.task_iterations.insert("A-x".to_owned(), 7);
        assert_eq!(counts(&asked, 0), [7, 15, 20]);
        asked.iterations = Some(2);
        assert_eq!(counts(&asked, 0), [7, 2, 2]);
    }

    #[test]
    fn tasks_are_found_by_pattern_or_by_class_and_parameters() {
        let label = |text: &str| TaskChoice::Label(text.into());
        let of = |choices| {
            Plan::new(&configuration(choices), &outlines())
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
        let plan = Plan::new(&configuration(Vec::new()), &outlines()).unwrap();
        let base = plan.hash(1, "p");
        assert_eq!(base.len(), 64);
        assert_ne!(base, plan.hash(2, "p"));
        assert_ne!(base, plan.hash(1, "q"));
        let mut other = plan.clone();
        other.models[0].iterations += 1;
        assert_ne!(base, other.hash(1, "p"));
    }
}
