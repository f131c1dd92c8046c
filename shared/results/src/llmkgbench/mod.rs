//! LLM-KG-Bench result files: `*_result.json`, a list with one object per iteration, in execution order (model
//! outermost, then task, then iteration).
//!
//! | file | what it does |
//! |---|---|
//! | [`source`] | finds result files in paths, directories and (encrypted) zip archives, and streams their records |
//! | [`archive`] | opens zip archives and converts their errors |
//! | [`elements`] | splits a JSON list into its elements without keeping the list in memory |
//! | [`repair`] | makes the text of a damaged record readable, and reports it |
//! | [`record`] | one record of any version of the format; lenient, and lossless when written back |
//! | [`export`] | kgfleet's records in this format |
//! | [`writer`] | writes a list of records, byte for byte as Python's `json.dump(indent=2)` does |
//! | [`python_json`], [`python_time`] | numbers, texts, times and durations as written by Python |
//!
//! Reading takes a few times the size of the largest record in memory, whatever the size of the file.

pub mod archive;
pub mod elements;
pub mod error;
pub mod export;
pub mod python_json;
pub mod python_time;
pub mod record;
pub mod repair;
pub mod source;
pub mod writer;

pub use error::{FileError, FileProblem, RecordError, RecordProblem};
pub use export::{TaskMeta, from_record};
pub use record::{Interaction, ResultRecord, Speaker};
pub use repair::FileRepair;
pub use source::{Document, ReadCounts, ReadRecord, discover};
pub use writer::{Archive, ResultFile, ResultWriter, WriteError};
