//! A run's winning records as files for people and tools.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::ValueEnum;
use coordinator::plan::Plan;
use domain::TaskLabel;
use jiff::tz::TimeZone;
use packs::Pack;
use results::export::table::TableRecord;
use results::export::{csv, jsonl, parquet, to_file, xlsx};
use results::llmkgbench::{TaskMeta, from_record, writer};
use results::log::{LogCipher, LogEntry, LogError, WinnerIndex};
use results::{RunDir, RunManifest};
use serde::de::DeserializeOwned;
use tasks::Task;

use super::ordered::Ordered;
use super::protection::{self, Disclosure, Form};
use super::{material, session};
use crate::exit_code::Exit;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// LLM-KG-Bench's `*_result.json`, key for key.
    ResultJson,
    /// One row per dialogue and score.
    Csv,
    /// The same as a spreadsheet.
    Xlsx,
    /// The same as Apache Parquet.
    Parquet,
    /// Whole records, one JSON object per line.
    Jsonl,
}

impl Format {
    /// The file's name for a run.
    pub fn file_name(self, run: &RunManifest, disclosure: &Disclosure) -> String {
        match self {
            Self::ResultJson if matches!(disclosure.form(run), Form::Encrypted(_)) => {
                format!("{}_result.zip", run.run)
            }
            Self::ResultJson => format!("{}_result.json", run.run),
            Self::Csv => format!("{}.csv", run.run),
            Self::Xlsx => format!("{}.xlsx", run.run),
            Self::Parquet => format!("{}.parquet", run.run),
            Self::Jsonl => format!("{}.jsonl", run.run),
        }
    }
}

/// Whether a format can be written of a run.
///
/// # Errors
/// It is made of texts, and those may not be written in any form.
pub fn check(format: Format, run: &RunManifest, disclosure: &Disclosure) -> anyhow::Result<()> {
    if format == Format::ResultJson && disclosure.form(run) == Form::Redacted {
        bail!(Exit::usage(anyhow::anyhow!(
            "run {} holds protected exercises, and result-json holds their texts; pass --password P to write an \
             archive encrypted with it, or --plaintext to write the texts in the clear",
            run.run
        )));
    }
    Ok(())
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Dialogues in the file.
    pub dialogues: u64,
    /// Dialogues left out because the format has no place for one without scores.
    pub left_out: u64,
}

/// A run to read from.
pub struct Source {
    log: PathBuf,
    manifest: RunManifest,
    cipher: Option<LogCipher>,
    index: WinnerIndex,
    pack: Arc<Pack>,
    plan: Plan,
}

impl Source {
    /// Reads which records count.
    pub fn open(dir: RunDir, manifest: RunManifest) -> anyhow::Result<Self> {
        let index = session::recorded(&dir, &manifest)?;
        let cipher = protection::cipher(&manifest)?;
        let benchmark = serde_json::from_value(manifest.configuration.clone())
            .with_context(|| format!("the configuration in {}", dir.manifest_path().display()))?;
        let (pack, plan) = session::plan(&benchmark)?;
        Ok(Self { log: dir.log(), manifest, cipher, index, pack, plan })
    }

    /// What is needed of every winning record, in the order of the plan.
    fn ordered<R: DeserializeOwned>(&self) -> impl Iterator<Item = Result<(u64, R), LogError>> {
        Ordered::new(&self.index, &self.log, self.cipher.as_ref(), self.plan.keys())
    }

    fn entries(&self) -> impl Iterator<Item = Result<LogEntry, LogError>> + '_ {
        self.ordered().map(|read| read.map(|(ticket, record)| LogEntry { ticket, record }))
    }

    fn table(&self) -> impl Iterator<Item = Result<TableRecord, LogError>> + '_ {
        self.ordered().map(|read| read.map(|(_, record)| record))
    }

    /// Writes the file. The tables hold no texts; the other formats hold those of a protected run only in the form that
    /// `disclosure` allows.
    pub fn write(&self, format: Format, path: &Path, disclosure: &Disclosure) -> anyhow::Result<Written> {
        check(format, &self.manifest, disclosure)?;
        let form = disclosure.form(&self.manifest);
        let run = &self.manifest.run;
        let written = match format {
            Format::ResultJson => return self.result_json(path, form),
            Format::Csv => to_file(path, |file| csv::write(file, run, self.table()))?,
            Format::Xlsx => to_file(path, |file| xlsx::write(file, run, self.table()))?,
            Format::Parquet => to_file(path, |file| parquet::write(file, run, self.table()))?,
            Format::Jsonl => {
                // Lines are for tools that stream them: there is no encrypted form of this format.
                let texts = if form == Form::Clear { jsonl::Texts::Keep } else { jsonl::Texts::Redact };
                to_file(path, |file| jsonl::write(file, run, texts, self.entries()))?
            }
        };
        Ok(Written { dialogues: written.dialogues, left_out: 0 })
    }

    fn result_json(&self, path: &Path, form: Form<'_>) -> anyhow::Result<Written> {
        let run = &self.manifest.run;
        let metas = Metas::of(&self.pack, &self.plan)?;
        let zone = TimeZone::UTC;
        let mut written = Written { dialogues: 0, left_out: 0 };
        let mut failed = None;
        let fill = |list: &mut writer::ResultWriter<&mut dyn Write>| {
            let mut all = || -> anyhow::Result<()> {
                for entry in self.entries() {
                    let record = entry?.record;
                    match metas.of_record(&record).and_then(|meta| from_record(&record, &meta, &zone)) {
                        Some(result) => {
                            list.write(&result)?;
                            written.dialogues += 1;
                        }
                        None => written.left_out += 1,
                    }
                }
                Ok(())
            };
            all().map_err(|error| {
                let message = io::Error::other(format!("{error:#}"));
                failed = Some(error);
                message
            })
        };
        let outcome = match form {
            Form::Encrypted(password) => {
                writer::write_encrypted(path, &format!("{run}_result.json"), password, fill)
            }
            Form::Clear | Form::Redacted => writer::write_file(path, fill),
        };
        match failed {
            Some(error) => Err(error),
            None => outcome.map(|()| written).map_err(Into::into),
        }
    }
}

/// What result files say about tasks and records do not hold.
struct Metas(HashMap<TaskLabel, Arc<Task>>);

impl Metas {
    fn of(pack: &Pack, plan: &Plan) -> anyhow::Result<Self> {
        let built = material::build(pack, plan)?;
        Ok(Self(plan.tasks.iter().map(|task| task.label.clone()).zip(built.iter().cloned()).collect()))
    }

    fn of_record(&self, record: &domain::Record) -> Option<TaskMeta> {
        let task = self.0.get(&record.key.task)?;
        let data = &task.case(record.key.iteration).data.data;
        Some(TaskMeta {
            task_id: task.class_name.clone(),
            task_label: record.key.task.to_string(),
            version: task.version.clone(),
            task_parameter: task.parameters.clone(),
            git_commit: format!("kgfleet {}", record.provenance.kgfleet),
            task_data: data.clone(),
            target_size: None,
            estimated_size: task.class.published.estimated_size,
        })
    }
}

/// Tells on standard error what a file holds.
pub fn tell(path: &Path, written: Written) {
    let mut line = format!("wrote {} ({} dialogues", path.display(), written.dialogues);
    if written.left_out > 0 {
        line.push_str(&format!("; {} without scores left out", written.left_out));
    }
    let _ = writeln!(io::stderr(), "{line})");
}
