//! Reads and writes the results of benchmarks.
//!
//! [`llmkgbench`] reads and writes the result files of LLM-KG-Bench. [`log`] is the record log of a run, [`manifest`]
//! its plan, [`run_key`] the key of a protected run's log, [`run_dir`] its folder, [`run_lock`] the right to write it, and
//! [`sink`] stores runs in a folder for coordinators. [`Summary`] is a record without its texts. [`archive`] is a run as one file.

pub mod archive;
pub mod files;
pub mod llmkgbench;
pub mod log;
pub mod manifest;
pub mod names;
pub mod password;
pub mod run_dir;
pub mod run_key;
pub mod run_lock;
pub mod sink;
mod summary;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;

pub use manifest::RunManifest;
pub use run_dir::RunDir;
pub use sink::Sink;
pub use summary::{AnswerSummary, CallSummary, OutcomeSummary, RoundSummary, Summary};
