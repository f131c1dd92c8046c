//! A compiled task, and the answers of known score that its file states.

use std::sync::Arc;

use tasks::TaskData;
use tasks::families::declared::spec::{CheckSpec, JudgeSpec};

/// A compiled task with what proves it.
#[derive(Clone, Debug)]
pub struct CompiledTask {
    pub data: TaskData,
    /// The preset that completes it.
    pub preset: Option<&'static str>,
    /// Answers of known score that the file states.
    pub tests: Vec<KnownAnswer>,
    pub checks: Vec<Arc<CheckSpec>>,
    /// Where it stands in the file.
    pub line: usize,
}

impl CompiledTask {
    /// What a judge is asked about its first case; nothing where no answer is graded.
    pub fn judge(&self) -> Option<JudgeSpec> {
        self.data.cases.iter().find_map(|case| JudgeSpec::of_case(&case.data))
    }
}

/// An answer with its scores.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownAnswer {
    /// Its number among the tests of its task, from 1.
    pub number: usize,
    /// Its line in the file.
    pub line: usize,
    /// The identifier of its case.
    pub case: String,
    pub answer: String,
    /// Names and values of the scores that it must get.
    pub scores: Vec<(String, f64)>,
}
