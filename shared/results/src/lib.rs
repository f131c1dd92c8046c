//! What a benchmark leaves behind: reading and writing of dialogues that were held.
//!
//! [`llmkgbench`] reads and writes the result files of LLM-KG-Bench, whoever made them. [`log`] is the durable
//! memory of a run, [`manifest`] says what was planned, [`run_key`] opens the log of a protected run, [`run_dir`] says
//! where all of it lies, and [`sink`] keeps it there or in an object store for coordinators. [`export`] turns the winning
//! records into files for people and tools.

pub mod export;
pub mod files;
pub mod llmkgbench;
pub mod log;
pub mod manifest;
pub mod run_dir;
pub mod run_key;
pub mod sink;
#[cfg(test)]
mod testing;

pub use manifest::RunManifest;
pub use run_dir::RunDir;
pub use sink::Sink;
