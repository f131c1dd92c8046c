//! Exercises of recorded cases: built once per case, shared by all threads.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use results::llmkgbench::ResultRecord;
use serde_json::{Map, Value};
use tasks::{CaseError, CaseInput, Compat, Exercise, GraphLibrary, ReadOnce, TaskClass, families};

/// Replaces a missing map.
pub static EMPTY_MAP: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Maximum number of exercises kept. Published runs have about 130 cases with a few prompts each; further exercises are
/// built for each record, which is slower.
const EXERCISES_MAX: usize = 4096;

/// A case with its exercise.
pub struct BuiltExercise {
    pub class: TaskClass,
    pub exercise: Box<dyn Exercise>,
}

/// Builds and keeps exercises.
pub struct BuiltExercises {
    graphs: GraphLibrary,
    compat: Compat,
    known: RwLock<HashMap<String, Arc<BuiltExercise>>>,
}

impl BuiltExercises {
    /// Of cases that refer to these graphs.
    pub fn new(graphs: GraphLibrary, compat: Compat) -> Self {
        Self { graphs, compat, known: RwLock::default() }
    }

    /// The exercise of a record's case.
    ///
    /// # Errors
    /// The record does not hold its case, or a graph is missing.
    pub fn of(&self, record: &ResultRecord) -> Result<Arc<BuiltExercise>, CaseError> {
        let input = CaseInput {
            class: record.task_id(),
            version: record.task_version(),
            parameters: record.task_parameter().unwrap_or(&EMPTY_MAP),
            data: record.task_data().unwrap_or(&EMPTY_MAP),
            first_prompt: record.prompts().next(),
            once: &ReadOnce::default(),
        };
        let key = key(&input);
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(known));
        }
        let built = Arc::new(BuiltExercise {
            class: TaskClass::resolve(input.class, input.version)?,
            exercise: families::exercise(&input, &self.graphs, self.compat)?,
        });
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < EXERCISES_MAX {
            // If two threads built the same case, keep the first.
            return Ok(Arc::clone(known.entry(key).or_insert(built)));
        }
        Ok(built)
    }
}

/// Everything that determines an exercise, as text.
fn key(input: &CaseInput<'_>) -> String {
    let parts = (input.class, input.version, input.parameters, input.data, input.first_prompt);
    serde_json::to_string(&parts).unwrap_or_default()
}
