//! Winning records as files for people and tools.
//!
//! [`csv`], [`xlsx`] and [`parquet`] write the same [`table`]: one row per dialogue and score, no texts of
//! prompts and answers. [`jsonl`] writes whole records. The result files of LLM-KG-Bench are made by
//! [`llmkgbench`](crate::llmkgbench).
//!
//! Every writer takes an iterator of what it needs of the winning records and holds a bounded number of them. [`Source`]
//! reads them in the order of the plan and writes files; errors name the file.

pub mod csv;
mod file;
pub mod jsonl;
#[cfg(feature = "parquet")]
pub mod parquet;
mod source;
pub mod table;
pub mod xlsx;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

pub use file::to_file;
pub use source::{Format, Source, Written};

use crate::llmkgbench::WriteError;
use crate::log::LogError;

/// An export that did not come to its end. What was written so far is not usable.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The records could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The result file could not be written.
    #[error(transparent)]
    Result(#[from] WriteError),
    /// What was made could not be written.
    #[error("the export cannot be written: {0}")]
    Io(#[from] io::Error),
    /// The file could not be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<ExportError>,
    },
    /// The writer of the file format failed.
    #[error("the {format} export cannot be written: {message}")]
    Format {
        format: &'static str,
        /// What its writer said.
        message: String,
    },
}

/// What an export holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Dialogues, failed ones included.
    pub dialogues: u64,
    /// Rows, or lines.
    pub rows: u64,
}

/// A text that no spreadsheet takes for a formula: those that begin like one get an apostrophe in front
/// (OWASP, "CSV Injection"). Model names come from configurations and servers, that is, from anybody.
pub fn guard_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests;
