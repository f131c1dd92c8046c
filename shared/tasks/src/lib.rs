//! The benchmark itself: what is asked, how an answer is judged, when a dialogue ends.
//!
//! Everything here is a pure function of its inputs: no clock, no files, no network. Reading order:
//! [`class`] is what is known of a task class, [`exercise`] is the contract each of them fulfils,
//! [`families`] holds one folder per class, [`dialogue`] folds verdicts into the scores of a dialogue,
//! [`wording`] turns prompts into text, [`task`] puts a task together from data.
//!
//! The scoring rules are those of LLM-KG-Bench 3 (Meyer et al., ESWC 2025); [`text`] owns the places where they
//! lean on the semantics of Python's standard library.

pub mod aggregate;
pub mod class;
pub mod dialogue;
pub mod exercise;
pub mod families;
pub mod graphs;
pub mod limits;
pub mod task;
pub mod text;
pub mod wording;

pub use class::{AnswerForm, ClassSpec, Marks, Published, Repair, TaskClass, UnknownClass};
pub use dialogue::{Dialogue, Evaluation, Next, Replayed, replay};
pub use exercise::{
    CaseError, CaseInput, Compat, Effort, EvaluationLimits, Exercise, FollowUp, Limit, Shots, Stage, Verdict,
};
pub use graphs::{GraphLibrary, LoadedGraph};
pub use limits::FixedLimits;
pub use task::{Case, CaseData, Task, TaskData};
pub use wording::{Fields, Template, TemplateError, Wording};
