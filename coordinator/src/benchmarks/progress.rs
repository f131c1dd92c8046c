//! How far a judged benchmark is: the runs of its stages, and what is known of each model.

use benchmarks::derive::StageProgress;
use benchmarks::{JudgedDialogue, ModelReport};
use domain::RunId;
use domain::control::RunPhase;

use crate::records::events::RunStateFile;

/// The runs of a stage with their states; a run that was created and not begun has none.
pub(crate) type StageRunStates = Vec<(RunId, Option<RunStateFile>)>;

/// The last known state of a model under test, and the states of its runs on which it is based.
#[derive(Clone, Debug)]
pub(crate) struct ModelProgress {
    /// The runs of each stage, the asking one first.
    pub runs: Vec<StageRunStates>,
    /// The progress of each judging stage.
    pub standings: Vec<StageProgress>,
    /// The results so far.
    pub report: ModelReport,
    /// The result of each dialogue.
    pub judged: Vec<JudgedDialogue>,
}

impl ModelProgress {
    /// Whether nothing is left to ask or to derive.
    pub(crate) fn is_done(&self) -> bool {
        let over = |stage: &StageRunStates| stage.iter().all(|(_, state)| is_finished(state.as_ref()));
        self.runs.iter().all(over) && self.standings.iter().all(|standing| *standing == StageProgress::Done)
    }
}

pub(crate) fn is_finished(state: Option<&RunStateFile>) -> bool {
    state.is_some_and(|state| state.phase == RunPhase::Finished)
}
