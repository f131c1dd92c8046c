//! The report of an import.

use std::fmt;

use domain::{PromptKind, TaskLabel};
use serde::Serialize;

use super::Located;

/// Maximum number of findings kept; further ones are only counted.
const FINDINGS_MAX: usize = 1_000;

/// What was imported, and what did not fit.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportReport {
    /// Name of the pack.
    pub name: String,
    pub files: Vec<FileLine>,
    /// The tasks imported, in order.
    pub tasks: Vec<TaskReport>,
    pub findings: Findings,
}

/// A file that was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileLine {
    /// Its name, without folders.
    pub name: String,
    /// SHA-256 of its content as it is on disk, in lower-case hexadecimal.
    pub sha256: String,
}

/// A task that was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskReport {
    pub task: TaskLabel,
    pub class: String,
    /// Version of the class.
    pub version: String,
    /// Cases found.
    pub cases: usize,
    /// Records that were compared with the task.
    pub dialogues: usize,
    /// Records whose first prompt is one of the pack's. Fewer if prompts were rendered anew for every run.
    pub asked_alike: usize,
    /// First prompts kept: one per case, or one per iteration if the case was rendered anew each time.
    pub first_prompts: usize,
    /// The follow-ups that the task can send.
    pub follow_ups: Vec<FollowUpLine>,
}

/// The follow-ups of one kind of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FollowUpLine {
    pub kind: PromptKind,
    /// Origin of its template.
    pub origin: TemplateOrigin,
    /// Follow-ups of this kind in the records.
    pub recorded: usize,
    /// Those that the template reproduces exactly.
    pub equal: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "kebab-case")]
pub enum TemplateOrigin {
    /// Derived from the task's own records.
    Learnt,
    /// Taken from a related task, because this one never sent this kind and all related ones agree.
    Borrowed {
        /// The task it was derived from.
        from: TaskLabel,
    },
    /// Our own wording: no record contains it.
    Own,
}

/// The findings of an import: the first ones in full, and the total number.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    kept: Vec<ImportFinding>,
    total: usize,
    input: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportFinding {
    /// The file; `None` for a task as a whole.
    pub file: Option<String>,
    /// Position of the record in it, from 0; `None` for the file as a whole.
    pub record: Option<usize>,
    /// The task, as far as known.
    pub task: Option<TaskLabel>,
    pub problem: Problem,
}

/// A problem. It names cases and kinds and never quotes their texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Problem {
    /// The file or record cannot be read.
    #[error("{message}")]
    Unreadable { message: String },
    /// The record can be read but not imported.
    #[error("cannot be imported: {message}")]
    Unusable { message: String },
    /// The task is unusable, and is not part of the pack.
    #[error("the task is left out: {message}")]
    TaskLeftOut { message: String },
    /// The label appeared before with another class, version or parameters; the first one is imported.
    #[error("has another class, version or parameters than the first record of this label; it is left out")]
    OtherTask,
    /// The case appeared before with other data; the first one is imported.
    #[error("the case `{case}` has other data than in the first record of it")]
    CaseDiffers { case: String },
    /// The cases of a model are out of order. Replayed answers of this model would get another case.
    #[error("the case `{case}` comes out of turn, `{expected}` is next; reported once per model and task")]
    OutOfTurn {
        /// The case of the record.
        case: String,
        /// The expected case.
        expected: String,
    },
    /// A prompt after the first that is not a follow-up of the task.
    #[error("the prompt after answer {} is not a known follow-up of this task", round + 1)]
    UnknownFollowUp {
        /// The round of the answer before, from 0.
        round: usize,
    },
    /// The template does not reproduce the follow-up.
    #[error("the `{kind}` follow-up after answer {} differs from the pack's", round + 1)]
    FollowUpDiffers {
        /// The round of the answer before, from 0.
        round: usize,
        kind: PromptKind,
    },
}

impl Problem {
    /// Whether something was left out because of it. The other problems concern something that was imported.
    fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { .. } | Self::Unusable { .. } | Self::TaskLeftOut { .. } | Self::OtherTask
        )
    }
}

impl Findings {
    /// The first finding.
    pub fn first(&self) -> Option<&ImportFinding> {
        self.kept.first()
    }

    /// The findings that were kept, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ImportFinding> {
        self.kept.iter()
    }

    /// Number of findings, including those that were not kept.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Number of findings because of which something was left out.
    pub fn not_imported(&self) -> usize {
        self.input
    }

    /// Number of findings about something that was imported.
    pub fn doubts(&self) -> usize {
        self.total - self.input
    }

    pub(super) fn file(&mut self, file: &str, problem: Problem) {
        self.add(ImportFinding { file: Some(file.to_owned()), record: None, task: None, problem });
    }

    pub(super) fn task(&mut self, task: &TaskLabel, problem: Problem) {
        self.add(ImportFinding { file: None, record: None, task: Some(task.clone()), problem });
    }

    pub(super) fn unreadable_record(&mut self, file: &str, index: usize, message: String) {
        let problem = Problem::Unreadable { message };
        self.add(ImportFinding { file: Some(file.to_owned()), record: Some(index), task: None, problem });
    }

    pub(super) fn record(&mut self, located: &Located<'_>, problem: Problem) {
        let task = TaskLabel::new(located.record.task_label());
        let file = Some(located.file.to_owned());
        self.add(ImportFinding { file, record: Some(located.index), task: Some(task), problem });
    }

    fn add(&mut self, finding: ImportFinding) {
        self.total += 1;
        self.input += usize::from(finding.problem.is_input());
        if self.kept.len() < FINDINGS_MAX {
            self.kept.push(finding);
        }
    }
}

impl fmt::Display for ImportFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(record) = self.record {
            write!(f, "record {record}: ")?;
        }
        if let Some(task) = &self.task {
            write!(f, "{task}: ")?;
        }
        write!(f, "{}", self.problem)
    }
}
