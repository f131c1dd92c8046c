//! Winning records as files for people and tools.
//!
//! [`rows`] writes a [`table`] as CSV or Parquet, one row per dialogue and score or one per dialogue, without texts of
//! prompts and answers; [`xlsx`] writes both into a workbook. [`provenance`] is the list of values that many dialogues
//! share, written once beside a table. [`jsonl`] writes whole records, [`inspect`] logs of Inspect with whole
//! dialogues. [`llmkgbench`](results::llmkgbench) writes the result files of LLM-KG-Bench. A further format is a module
//! here and a variant of [`Format`].
//!
//! Every writer takes an iterator over the parts of the winning records that it needs, and keeps a bounded number of
//! them in memory. [`Source`] reads them in the order of the plan and writes files; errors name the file.

mod file;
pub mod inspect;
pub mod jsonl;
pub mod provenance;
pub mod rows;
mod source;
pub mod table;
pub mod xlsx;

use std::io;
use std::path::PathBuf;

pub use file::to_file;
pub use source::{Format, Source, TableOptions, Written};
pub use table::score_at;

use results::llmkgbench::WriteError;
use results::log::LogError;

/// Why an export failed. A partly written file is not usable.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The records could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The result file could not be written.
    #[error(transparent)]
    Result(#[from] WriteError),
    /// The output could not be written.
    #[error("the export cannot be written: {0}")]
    Io(#[from] io::Error),
    /// The file could not be written.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: Box<ExportError>,
    },
    /// The writer of the file format failed.
    #[error("the {format} export cannot be written: {message}")]
    Format {
        format: &'static str,
        /// The writer's message.
        message: String,
    },
}

#[cfg(test)]
mod tests;
