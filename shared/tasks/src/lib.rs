//! The benchmark itself: what is asked, how an answer is judged, when a dialogue ends.
//!
//! Everything here is a pure function of its inputs: no clock, no files, no network. Reading order:
//! [`class`] declares task classes, [`exercise`] is the trait that each of them implements, [`families`] has one folder
//! per family, [`dialogue`] combines verdicts into the scores of a dialogue, [`wording`] fills prompt templates, [`task`]
//! assembles a task from data.
//!
//! The scoring rules are those of LLM-KG-Bench 3 (Meyer et al., ESWC 2025); [`text`] has the rules of
//! Python's standard library on which they depend.

pub mod aggregate;
pub mod class;
pub mod compared;
mod compared_answer;
pub mod dialogue;
pub mod exercise;
pub mod families;
pub mod given;
pub mod graphs;
pub mod limits;
pub mod task;
pub mod text;
pub mod wording;

pub use class::{AnswerForm, ClassSpec, Marks, Published, Repair, ScoreOutOfRange};
pub use compared::ComparedPart;
pub use compared_answer::ComparedAnswer;
pub use dialogue::{Dialogue, Evaluation, Next, Replayed, headline_answer, infos_of_answer, replay};
pub use exercise::{
    CaseError, CaseInput, Compat, Effort, EvaluationLimits, EvaluationStage, Exercise, FollowUp, Limit,
    ReadOnce, Shots, UnknownClass, Verdict,
};
pub use families::TaskClass;
pub use given::{GivenExercise, GivenExercises};
pub use graphs::{ExerciseGraph, GraphLibrary};
pub use limits::FixedLimits;
pub use task::{Case, CaseData, Task, TaskData};
pub use wording::{Fields, Template, TemplateError, Wording};
