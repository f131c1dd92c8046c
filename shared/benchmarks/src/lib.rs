//! The kinds of benchmarks; of judged ones, as small graphs of ordinary runs: which questions judges are asked, what came of
//! them, and what is shown of it.
//!
//! Everything here is a pure function of what the sink holds: no clock, no files, no network. Whoever derives a pipeline, at
//! whatever time and however often, gets the same runs; so no state of a pipeline needs to be kept beside its runs.
//!
//! Reading order: [`kind`] is what a kind says of itself, [`judging`] how its answers are judged, [`kinds`] registers them,
//! [`names`] names their runs, [`verdicts`] says which verdict of a question counts, [`derive`] which questions are open,
//! [`report`] what comes out. [`wordings`] are what a configuration words otherwise.
//! [`reading`] is what records say of a benchmark, [`showing`] what its kind makes of that for people; [`results`] is what kinds show that bring nothing of their own.

pub mod derive;
pub mod judging;
pub mod kind;
pub mod kinds;
pub mod names;
mod questions;
pub mod reading;
pub mod report;
pub mod results;
pub mod showing;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod verdicts;
pub mod wordings;

pub use derive::{Asked, Derivation, NewRun, StageRecords};
pub use judging::{JudgeQuestion, Judgements, Judging, Setting, Settings, Stage, StageInput, Subject};
pub use kind::Kind;
pub use names::RunName;
pub use reading::{BenchmarkFacts, BenchmarkReader, ModelReading};
pub use report::{JudgedDialogue, ModelReport, NotJudged};
pub use verdicts::{Ruling, Verdicts};
pub use wordings::JudgeWordings;
