//! A run's winning records in the order of its plan. Readers of result files depend on this order: the i-th record of a
//! model on a task counts as iteration i.

use std::path::{Path, PathBuf};

use domain::{DialogueKey, Record, RunId};
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;

use super::table::TableRecord;
use super::{ExportError, csv, jsonl, to_file, xlsx};
use crate::llmkgbench::{Archive, TaskMeta, from_record, writer};
use crate::log::{LogCipher, LogEntry, LogError, WinnerIndex};

/// The source of exports and reports of a run.
pub struct Source {
    pub run: RunId,
    /// Folder of its record log.
    pub log: PathBuf,
    /// The cipher of an encrypted log.
    pub cipher: Option<LogCipher>,
    /// The records that count.
    pub index: WinnerIndex,
}

/// A file format, with the data that it needs besides the records.
#[derive(Clone, Copy)]
pub enum Format<'a> {
    /// The table as comma-separated values.
    Csv,
    /// The table as a spreadsheet.
    Xlsx,
    /// The table as Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Whole records as JSON lines.
    Jsonl(jsonl::Texts),
    /// LLM-KG-Bench's `*_result.json`.
    ResultJson {
        /// The task metadata of a record in its files.
        metas: &'a dyn Fn(&Record) -> Option<TaskMeta>,
        /// The archive that contains the file, if any.
        archive: Option<Archive<'a>>,
    },
}

/// Numbers of dialogues written and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Dialogues in the file.
    pub dialogues: u64,
    /// Dialogues left out because the format cannot represent one without scores.
    pub left_out: u64,
}

impl Source {
    /// The winning records of `keys`, read as `R`, with their tickets.
    pub fn records<R: DeserializeOwned>(
        &self,
        keys: impl Iterator<Item = DialogueKey>,
    ) -> impl Iterator<Item = Result<(u64, R), LogError>> {
        self.index.ordered(&self.log, self.cipher.as_ref(), keys)
    }

    /// Writes the records of `keys` to a file.
    pub fn write(
        &self,
        format: Format<'_>,
        path: &Path,
        keys: impl Iterator<Item = DialogueKey>,
    ) -> Result<Written, ExportError> {
        let run = &self.run;
        let written = match format {
            Format::Csv => to_file(path, |file| csv::write(file, run, self.table(keys)))?,
            Format::Xlsx => to_file(path, |file| xlsx::write(file, run, self.table(keys)))?,
            #[cfg(feature = "parquet")]
            Format::Parquet => to_file(path, |file| super::parquet::write(file, run, self.table(keys)))?,
            Format::Jsonl(texts) => {
                let entry = |(ticket, record)| LogEntry { ticket, record };
                let entries = self.records(keys).map(|read| read.map(entry));
                to_file(path, |file| jsonl::write(file, run, texts, entries))?
            }
            Format::ResultJson { metas, archive } => return self.result_json(path, keys, metas, archive),
        };
        Ok(Written { dialogues: written.dialogues, left_out: 0 })
    }

    fn table(
        &self,
        keys: impl Iterator<Item = DialogueKey>,
    ) -> impl Iterator<Item = Result<TableRecord, LogError>> {
        self.records(keys).map(|read| read.map(|(_, record)| record))
    }

    fn result_json(
        &self,
        path: &Path,
        keys: impl Iterator<Item = DialogueKey>,
        metas: &dyn Fn(&Record) -> Option<TaskMeta>,
        archive: Option<Archive<'_>>,
    ) -> Result<Written, ExportError> {
        let mut written = Written::default();
        writer::write(path, archive, |list| {
            for read in self.records::<Record>(keys) {
                let (_, record) = read?;
                match metas(&record).and_then(|meta| from_record(&record, &meta, &TimeZone::UTC)) {
                    Some(result) => {
                        list.write(&result)?;
                        written.dialogues += 1;
                    }
                    None => written.left_out += 1,
                }
            }
            Ok::<(), ExportError>(())
        })?;
        Ok(written)
    }
}
