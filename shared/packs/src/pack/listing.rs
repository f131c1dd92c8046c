//! The content of a pack, as data for tables and for `show`.

use domain::TaskLabel;
use domain::spelling;
use serde::Serialize;
use tasks::{CaseData, TaskData};

use super::Pack;
use crate::error::PackError;

/// One row of a pack's table of contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskLine {
    pub label: TaskLabel,
    pub class: String,
    /// Version of the class.
    pub version: String,
    /// The group that lists it.
    pub group: String,
    /// Whether it is in the default selection of a run.
    pub default: bool,
    /// The identifiers of its cases, in order.
    pub cases: Vec<String>,
}

impl Pack {
    /// The table of contents, in the order of the tasks.
    pub fn list(&self) -> Vec<TaskLine> {
        let line = |task: &TaskData| TaskLine {
            label: task.label.clone(),
            class: task.class.clone(),
            version: task.version.clone(),
            group: self.group_of(&task.label).unwrap_or_default().to_owned(),
            default: self.is_default(&task.label),
            cases: task.cases.iter().map(|case| case.uid.clone()).collect(),
        };
        self.tasks().iter().map(line).collect()
    }

    /// Finds a case, with its task: `TASK/UID`, or `UID` alone if it is unique.
    ///
    /// # Errors
    /// There is no such case, or several.
    pub fn show(&self, wanted: &str) -> Result<(&TaskData, &CaseData), PackError> {
        let all = || self.tasks().iter().flat_map(|task| task.cases.iter().map(move |case| (task, &**case)));
        let full = |(task, case): &(&TaskData, &CaseData)| format!("{}/{}", task.label, case.uid);
        let found: Vec<_> = all().filter(|pair| pair.1.uid == wanted || full(pair) == wanted).collect();
        let hint = match found.as_slice() {
            [found] => return Ok(*found),
            [] => {
                let names: Vec<_> = all().flat_map(|pair| [pair.1.uid.clone(), full(&pair)]).collect();
                let question = spelling::question(wanted, names.iter().map(String::as_str));
                question.map_or_else(String::new, |question| format!("; {question}"))
            }
            several => {
                let names: Vec<_> = several.iter().map(full).collect();
                format!(" of that name alone; there are {}", names.join(", "))
            }
        };
        Err(PackError::UnknownCase { pack: self.name().to_owned(), wanted: wanted.to_owned(), hint })
    }
}
