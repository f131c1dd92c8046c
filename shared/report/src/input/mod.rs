//! Fills [`Dialogues`] from runs and from result files.

mod published;
mod run;

pub use published::{ERRORS_TOLD_MAX, FileReading, read_documents};
pub use run::{ReadError, RunSource, read_run};

use std::collections::BTreeSet;

use domain::Scores;
use tasks::{ComparedAnswer, TaskClass, UnknownClass};

use crate::details::DialogueDetail;

/// The score that stands for a dialogue of a recorded class: its key, or its group and key; empty if the class is unknown.
pub fn headline(name: &str, version: &str) -> &'static [&'static str] {
    class_of(name, version).map_or(&[], |class| class.headline)
}

/// That score of a dialogue of a recorded class; `None` if the class is unknown, or the dialogue has no such score.
pub fn headline_score(name: &str, version: &str, scores: &Scores) -> Option<f64> {
    class_of(name, version).ok()?.headline_of(scores)
}

/// The class behind a recorded name and version. A later or earlier version of a known class has the same headline.
fn class_of(name: &str, version: &str) -> Result<TaskClass, UnknownClass> {
    TaskClass::resolve(name, version).or_else(|error| match TaskClass::version_of(name) {
        Some(known) => TaskClass::resolve(name, known),
        None => Err(error),
    })
}

/// A dialogue with what was expected and extracted, if anybody looked.
fn with(detail: DialogueDetail, compared: Option<Result<ComparedAnswer, String>>) -> DialogueDetail {
    match compared {
        Some(compared) => detail.compared(compared),
        None => detail,
    }
}

/// Sorted without repetitions.
fn sorted(texts: BTreeSet<String>) -> Vec<String> {
    texts.into_iter().collect()
}
