//! Task files: a person's own tasks in one TOML file, compiled into an ordinary pack.
//!
//! A file names its tasks, the data of their cases, the wording of their prompts and the checks that judge answers. Compiling
//! it ([`compile`]) reads the file ([`table`], by its [`schema`](mod@schema)), completes each task from its preset ([`presets`]),
//! reads the rows of its data ([`rows`]), runs the reference queries ([`expected`]), words the prompts ([`prompts`]) and proves
//! the cases with answers of known score ([`proof`]) and with answers that lack a part ([`mutants`]). What comes out is a [`crate::Pack`]; the rest of the program never sees
//! an author's file.
//!
//! Everything is a function of the file and its data: the same bytes give the same pack. A mistake names its place
//! ([`mistake`]), and all mistakes of a file are told together.

mod answer_form;
mod cases;
mod check;
pub mod compile;
pub mod compiled_task;
mod context;
mod declaration;
mod expected;
mod few_shot;
mod field_path;
mod graphs;
pub mod mistake;
mod mutants;
pub mod presets;
mod prompts;
pub mod proof;
mod rows;
pub mod schema;
mod shown;
pub mod skeleton;
mod table;
mod wording;

pub use compile::{CompiledFile, compile, is_task_file};
pub use compiled_task::CompiledTask;
pub use mistake::{Mistake, Mistakes};
pub use proof::Proof;
