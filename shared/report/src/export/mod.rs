//! Winning records as files for people and tools.
//!
//! [`rows`] writes a [`table`] as CSV, one row per dialogue and score or one per dialogue, without texts of prompts and answers,
//! and whole records as lines; [`xlsx`] writes both tables into a workbook. [`llmkgbench`](results::llmkgbench) writes the result
//! files of LLM-KG-Bench. A further format is a module here and a variant of [`Format`]; those that other programs own are made by
//! the Python package from the lines.
//!
//! Every writer takes an iterator over the parts of the winning records that it needs, and keeps a bounded number of
//! them in memory. [`Source`] reads them in the order of the plan and writes files; errors name the file.

pub mod rows;
pub mod table;
#[cfg(test)]
mod tests;
pub mod xlsx;

use std::fs::File;
use std::io;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use domain::redaction::Texts;
use domain::{DialogueKey, Record, RunId};
use jiff::tz::TimeZone;
use results::llmkgbench::{Archive, TaskMeta, WriteError, from_record, writer};
use results::log::{LogCipher, LogError, Ordered, PARTS_AT_ONCE, RECORDS_AT_ONCE, WinnerIndex};
use results::{RunManifest, Summary};
use serde_json::value::RawValue;

use crate::export::rows::Provenances;
use crate::export::table::{Form, Headline, Layout, ScoreNames, disclosed};

pub use table::score_at;

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

/// Creates the file at `path` and fills it with `write`. Errors name the file; without an error it is complete and flushed.
pub fn to_file<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    let of_file = |error| ExportError::File { path: path.to_owned(), source: Box::new(error) };
    let mut file = BufWriter::new(File::create(path).map_err(|error| of_file(error.into()))?);
    let written = write(&mut file).and_then(|counted| {
        file.flush()?;
        Ok(counted)
    });
    match written {
        // A record that cannot be read is not an error of this file.
        Err(error @ ExportError::Log(_)) => Err(error),
        other => other.map_err(of_file),
    }
}

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
    /// A table as comma-separated values.
    Csv(Form),
    /// Both tables as a spreadsheet.
    Xlsx,
    /// Whole records as JSON lines.
    Jsonl,
    /// LLM-KG-Bench's `*_result.json`.
    ResultJson {
        /// The task metadata of a record in its files.
        metas: &'a dyn Fn(&Record) -> Option<TaskMeta>,
        /// The archive that contains the file, if any.
        archive: Option<Archive<'a>>,
    },
}

/// What tables and lines need besides the records.
#[derive(Clone, Copy)]
pub struct TableOptions<'a> {
    /// The run.
    pub manifest: &'a RunManifest,
    /// The score that stands for a dialogue.
    pub headline: Headline<'a>,
    /// How to write what comes from exercises and models.
    pub texts: Texts,
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
    /// The winning records of `keys`.
    pub fn records(
        &self,
        keys: impl Iterator<Item = DialogueKey>,
    ) -> impl Iterator<Item = Result<Record, LogError>> {
        // Those that wait for their turn are held as text, which takes half the room of what it is parsed to.
        let read = Ordered::new(&self.index, &self.log, self.cipher.as_ref(), keys, RECORDS_AT_ONCE);
        let record = |json: Box<RawValue>| serde_json::from_str(json.get()).ok();
        read.filter_map(move |read| read.map(record).transpose())
    }

    /// The same without their texts: more of them are held at once.
    pub fn summaries(
        &self,
        keys: impl Iterator<Item = DialogueKey>,
    ) -> impl Iterator<Item = Result<Summary, LogError>> {
        Ordered::new(&self.index, &self.log, self.cipher.as_ref(), keys, PARTS_AT_ONCE)
    }

    /// Writes the records of `keys` to a file, and beside a CSV file its [provenances](provenance).
    pub fn write<K: Iterator<Item = DialogueKey>>(
        &self,
        format: Format<'_>,
        path: &Path,
        keys: impl Fn() -> K,
        options: TableOptions<'_>,
    ) -> Result<Written, ExportError> {
        let TableOptions { headline, texts, .. } = options;
        let dialogues = match format {
            Format::Csv(form) => self.table(path, form, &keys, options, |file, layout, provenances| {
                rows::csv(file, layout, provenances, self.table_records(keys(), texts))
            })?,
            Format::Xlsx => {
                let layouts =
                    [self.layout(Form::Wide, &keys, options)?, self.layout(Form::Long, &keys, options)?];
                to_file(path, |file| {
                    xlsx::write(file, options.manifest, &layouts, self.table_records(keys(), texts))
                })?
            }
            Format::Jsonl => {
                to_file(path, |file| rows::jsonl(file, &self.run, texts, headline, self.records(keys())))?
            }
            Format::ResultJson { metas, archive } => return self.result_json(path, keys(), metas, archive),
        };
        Ok(Written { dialogues, left_out: 0 })
    }

    /// Writes a table and, unless it goes to a device or through a link, its provenances beside it.
    fn table<K: Iterator<Item = DialogueKey>>(
        &self,
        path: &Path,
        form: Form,
        keys: impl Fn() -> K,
        options: TableOptions<'_>,
        write: impl FnOnce(&mut BufWriter<File>, &Layout<'_>, &mut Provenances) -> Result<u64, ExportError>,
    ) -> Result<u64, ExportError> {
        let layout = self.layout(form, keys, options)?;
        let mut provenances = Provenances::default();
        let dialogues = to_file(path, |file| write(file, &layout, &mut provenances))?;
        if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
            to_file(&rows::path_beside(path), |file| {
                Ok(provenances.write(file, options.manifest, layout.columns())?)
            })?;
        }
        Ok(dialogues)
    }

    fn layout<'a, K: Iterator<Item = DialogueKey>>(
        &'a self,
        form: Form,
        keys: impl Fn() -> K,
        options: TableOptions<'a>,
    ) -> Result<Layout<'a>, ExportError> {
        let headline = options.headline;
        match form {
            Form::Long => Ok(Layout::long(&self.run, headline)),
            Form::Wide => {
                // The columns must be known before the first row.
                let mut names = ScoreNames::default();
                for read in self.summaries(keys()) {
                    names.learn(&read?.outcome);
                }
                Ok(Layout::wide(&self.run, headline, &names))
            }
        }
    }

    fn table_records(
        &self,
        keys: impl Iterator<Item = DialogueKey>,
        texts: Texts,
    ) -> impl Iterator<Item = Result<Summary, LogError>> {
        self.summaries(keys).map(move |read| read.map(|record| disclosed(record, texts)))
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
            for read in self.records(keys) {
                let record = read?;
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
