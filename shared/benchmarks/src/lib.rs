//! Judged benchmarks as small graphs of ordinary runs: which questions judges are asked, and what came of them.
//!
//! Everything here is a pure function of what the sink holds: no clock, no files, no network. Whoever derives a pipeline, at
//! whatever time and however often, gets the same runs; so no state of a pipeline needs to be kept beside its runs.
//!
//! Reading order: [`kind`] is what a judged benchmark says of itself, [`kinds`] registers them, [`names`] names their runs,
//! [`verdicts`] says which verdict of a question counts, [`derive`] which questions are open, [`report`] what comes out.

pub mod derive;
mod judging;
pub mod kind;
pub mod kinds;
pub mod names;
pub mod report;
pub mod verdicts;

pub use derive::{Asked, Derivation, NewRun, StageRecords};
pub use kind::{JudgeQuestion, Judgements, Judging, Kind, Setting, Settings, Stage, StageInput, Subject};
pub use names::RunName;
pub use report::{JudgedDialogue, ModelReport, NotJudged};
pub use verdicts::{Ruling, Verdicts};
