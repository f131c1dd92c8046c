//! A task assembled from data: its cases and its wording. [`Task::next_prompt`] is the benchmark in one function.

use std::sync::Arc;

use domain::{Iteration, Prompt, PromptKind, TaskLabel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dialogue::{Dialogue, Next};
use crate::exercise::{CaseError, CaseInput, Compat, Exercise, FollowUp, ReadOnce};
use crate::families::{self, TaskClass};
use crate::graphs::GraphLibrary;
use crate::wording::{TemplateError, Wording};

/// A task as stored in packs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskData {
    /// The published label, such as `RdfFriendCount-turtle-1`.
    pub label: TaskLabel,
    /// Class name, see [`TaskClass::resolve`].
    pub class: String,
    /// Version of the class.
    pub version: String,
    /// Parameters, such as `graphFormat`.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Templates by prompt kind.
    pub wording: Wording,
    /// The cases, in order: iteration `i` uses case `i` modulo their number. Tasks that are built share them.
    pub cases: Vec<Arc<CaseData>>,
}

/// A case as stored in packs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaseData {
    /// Identifier, unique within the task.
    pub uid: String,
    /// The data for evaluation, with the field names of `condensedTaskData`. Result files contain them.
    pub data: Map<String, Value>,
    /// Texts that are used only in prompts, by placeholder name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub prompt: Map<String, Value>,
    /// Recorded first prompts of imported packs: repetition `r` of the case uses entry `r` modulo their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_prompts: Vec<String>,
    /// An answer that scores full marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_answer: Option<String>,
    /// An answer that does not score full marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_answer: Option<String>,
    /// An unreadable answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed_answer: Option<String>,
}

impl CaseData {
    /// Gives back the room that reading left in its fields: a file may have thousands of cases, held for as long as a run.
    pub fn shrink_to_fit(&mut self) {
        shrink_fields(&mut self.data);
        shrink_fields(&mut self.prompt);
        self.uid.shrink_to_fit();
        self.first_prompts.shrink_to_fit();
        let answers = [&mut self.reference_answer, &mut self.wrong_answer, &mut self.malformed_answer];
        answers.into_iter().flatten().chain(&mut self.first_prompts).for_each(String::shrink_to_fit);
    }
}

fn shrink_fields(fields: &mut Map<String, Value>) {
    for (_, value) in fields.iter_mut() {
        shrink_value(value);
    }
    // A map has no such call; one that is made of as many fields as it gets has no more room than these.
    *fields = std::mem::take(fields).into_iter().collect();
}

fn shrink_value(value: &mut Value) {
    match value {
        Value::String(text) => text.shrink_to_fit(),
        Value::Array(items) => {
            items.iter_mut().for_each(shrink_value);
            items.shrink_to_fit();
        }
        Value::Object(fields) => shrink_fields(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A case with its exercise.
pub struct Case {
    pub data: Arc<CaseData>,
    exercise: Arc<dyn Exercise>,
}

impl Case {
    pub fn exercise(&self) -> &Arc<dyn Exercise> {
        &self.exercise
    }
}

/// A task ready to be run.
pub struct Task {
    /// The published label.
    pub label: TaskLabel,
    /// Class name as published.
    pub class_name: String,
    pub class: TaskClass,
    /// Version of the class.
    pub version: String,
    pub parameters: Map<String, Value>,
    wording: Wording,
    cases: Vec<Case>,
}

impl Task {
    /// Builds a task. All cases are parsed and checked here, so that no dialogue gets a broken one.
    pub fn build(data: TaskData, graphs: &GraphLibrary, compat: Compat) -> Result<Self, TaskError> {
        let in_task = |case: &str, source: CaseError| TaskError {
            task: data.label.clone(),
            case: case.to_owned(),
            source,
        };
        let class =
            TaskClass::resolve(&data.class, &data.version).map_err(|e| in_task("-", CaseError::Class(e)))?;
        if data.cases.is_empty() {
            return Err(in_task("-", CaseError::Field { field: "cases", expected: "at least one case" }));
        }
        let mut cases = Vec::with_capacity(data.cases.len());
        let once = ReadOnce::default();
        for case in data.cases {
            let input = CaseInput {
                class: &data.class,
                version: &data.version,
                parameters: &data.parameters,
                data: &case.data,
                first_prompt: case.first_prompts.first().map(String::as_str),
                once: &once,
            };
            match families::exercise(&input, graphs, compat) {
                Ok(exercise) => cases.push(Case { data: case, exercise: exercise.into() }),
                Err(error) => {
                    return Err(TaskError { task: data.label, case: case.uid.clone(), source: error });
                }
            }
        }
        Ok(Self {
            label: data.label,
            class_name: data.class,
            class,
            version: data.version,
            parameters: data.parameters,
            wording: data.wording,
            cases,
        })
    }

    /// [Prepares](Exercise::prepare) every case for judging.
    ///
    /// # Errors
    /// The first case that cannot be prepared.
    pub fn prepare(&self) -> Result<(), TaskError> {
        self.cases.iter().try_for_each(|case| {
            case.exercise.prepare().map_err(|source| TaskError {
                task: self.label.clone(),
                case: case.data.uid.clone(),
                source,
            })
        })
    }

    /// The cases, in order.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The case of an iteration: round robin.
    pub fn case(&self, iteration: Iteration) -> &Case {
        &self.cases[self.case_index(iteration)]
    }

    /// The index of an iteration's case.
    pub fn case_index(&self, iteration: Iteration) -> usize {
        iteration as usize % self.cases.len()
    }

    /// The first prompt of an iteration, a pure function of the question seed and the iteration.
    pub fn first_prompt(&self, iteration: Iteration, question_seed: u64) -> Result<Prompt, TemplateError> {
        let case = self.case(iteration);
        let text = if case.data.first_prompts.is_empty() {
            let opening = case.exercise.opening(question_seed);
            let drawn = |name: &str| opening.get(name).map(String::as_str);
            self.wording
                .render(PromptKind::First, |name| drawn(name).or_else(|| self.field(&case.data, name)))?
        } else {
            let repetition = iteration as usize / self.cases.len();
            case.data.first_prompts[repetition % case.data.first_prompts.len()].clone()
        };
        Ok(Prompt { kind: PromptKind::First, text })
    }

    /// The system prompt, if the wording has one.
    pub fn system(&self, iteration: Iteration) -> Result<Option<String>, TemplateError> {
        let value = |name: &str| self.field(&self.case(iteration).data, name);
        self.wording.get(PromptKind::System).map(|template| template.fill(value)).transpose()
    }

    fn field<'a>(&'a self, case: &'a CaseData, name: &str) -> Option<&'a str> {
        let fields = [&case.prompt, &case.data, &self.parameters];
        fields.iter().find_map(|fields| fields.get(name)?.as_str())
    }

    /// The text of a follow-up.
    pub fn follow_up(&self, follow_up: &FollowUp) -> Result<Prompt, TemplateError> {
        let found = |name: &str| follow_up.fields.get(name).map(String::as_str);
        let text = self
            .wording
            .render(follow_up.kind, |name| found(name).or_else(|| self.parameters.get(name)?.as_str()))?;
        Ok(Prompt { kind: follow_up.kind, text })
    }

    /// The next prompt after the answers judged so far; `None` when the dialogue is over.
    pub fn next_prompt(
        &self,
        iteration: Iteration,
        question_seed: u64,
        dialogue: &Dialogue,
    ) -> Result<Option<Prompt>, TemplateError> {
        match dialogue.next() {
            Next::First => self.first_prompt(iteration, question_seed).map(Some),
            Next::FollowUp(follow_up) => self.follow_up(follow_up).map(Some),
            Next::Done => Ok(None),
        }
    }
}

/// Why a task cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("task `{task}`, case `{case}`: {source}")]
pub struct TaskError {
    pub task: TaskLabel,
    pub case: String,
    /// Why.
    pub source: CaseError,
}
