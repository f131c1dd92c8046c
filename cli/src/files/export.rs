//! Writes a run's winning records as files for people and tools.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::ValueEnum;
use coordinator::plan::Plan;
use domain::redaction::Texts;
use domain::{DialogueKey, Record, TaskLabel, TaskProvenance};
use packs::Pack;
use report::Dialogues;
use report::details::Details;
use report::dialogues::Exercises;
use report::export::{self, TableOptions, Written};
use report::input::{RunSource, read_run};
use results::llmkgbench::{Archive, TaskMeta};
use results::log::LogError;
use results::{RunDir, RunManifest};
use serde_json::Value;
use tasks::{Compat, Task};

use crate::files::compared::{ComparedTasks, on_large_stack};
use crate::kit::exit_code::usage;
use crate::kit::output::{explain, note, say};
use crate::place::disclosure::{self, Disclosure, TextForm};
use crate::place::{folders, packs as material};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// LLM-KG-Bench's `*_result.json`, key for key.
    ResultJson,
    /// A table: see --form.
    Csv,
    /// A spreadsheet with both tables, a summary first.
    Xlsx,
    /// Whole records, one JSON object per line.
    Jsonl,
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// A row per dialogue and score.
    #[default]
    Long,
    /// A row per dialogue, a column per score.
    Wide,
}

impl From<ExportForm> for export::table::Form {
    fn from(form: ExportForm) -> Self {
        match form {
            ExportForm::Long => Self::Long,
            ExportForm::Wide => Self::Wide,
        }
    }
}

impl ExportFormat {
    /// The file's name for a run.
    pub fn file_name(self, form: ExportForm, run: &RunManifest, disclosure: &Disclosure) -> String {
        let wide = if form == ExportForm::Wide { ".wide" } else { "" };
        match self {
            Self::ResultJson if matches!(disclosure.form(run), TextForm::Encrypted(_)) => {
                format!("{}_result.zip", run.run)
            }
            Self::ResultJson => format!("{}_result.json", run.run),
            Self::Csv => format!("{}{wide}.csv", run.run),
            Self::Xlsx => format!("{}.xlsx", run.run),
            Self::Jsonl => format!("{}.jsonl", run.run),
        }
    }
}

/// Checks whether a run may be written in a format.
///
/// # Errors
/// The format consists of texts, and these may not be written in any form.
pub fn check(format: ExportFormat, run: &RunManifest, disclosure: &Disclosure) -> anyhow::Result<()> {
    if format == ExportFormat::ResultJson && disclosure.form(run) == TextForm::Redacted {
        bail!(usage!(
            "run {} holds protected exercises, and result-json holds their texts; pass --password P to write an \
             archive encrypted with it, or --plaintext to write the texts in the clear",
            run.run
        ));
    }
    Ok(())
}

/// A run to read from.
pub struct ExportSource {
    records: export::Source,
    manifest: RunManifest,
    /// Its pack and plan, or why they are missing. Tables do not need them.
    planned: anyhow::Result<(Arc<Pack>, Plan)>,
}

impl ExportSource {
    /// Reads the index of winning records.
    pub fn open(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<Self> {
        let records = export::Source {
            run: manifest.run.clone(),
            log: dir.log(),
            cipher: disclosure::cipher(manifest)?,
            index: folders::recorded(dir, manifest)?,
        };
        let planned = folders::plan_unless_altered(dir, manifest)?;
        Ok(Self { records, manifest: manifest.clone(), planned })
    }

    /// The dialogues in the order of the plan. Without the pack, those that have a record.
    fn keys(&self) -> Box<dyn Iterator<Item = DialogueKey> + Send + '_> {
        match &self.planned {
            Ok((_, plan)) => Box::new(plan.keys()),
            Err(_) => Box::new(self.recorded_keys().into_iter()),
        }
    }

    /// The dialogues that have a record: models in the order of the configuration, then tasks by name.
    fn recorded_keys(&self) -> Vec<DialogueKey> {
        let models = self.manifest.configuration.get("models").and_then(Value::as_array);
        let labels = models.into_iter().flatten().filter_map(|model| model.get("label")?.as_str());
        let places: HashMap<&str, usize> = labels.enumerate().map(|(place, label)| (label, place)).collect();
        let mut keys: Vec<DialogueKey> = self.records.index.iter().map(|(key, _)| key).collect();
        keys.sort_by(|a, b| {
            let place = |key: &DialogueKey| places.get(key.model.as_str()).copied().unwrap_or(usize::MAX);
            (place(a), &a.task, a.iteration).cmp(&(place(b), &b.task, b.iteration))
        });
        keys
    }

    /// Its records in the order of the plan.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, LogError>> {
        self.records.records(self.keys())
    }

    /// Adds its dialogues to those of a report, and their texts to `details`.
    pub fn read_into(&self, all: &mut Dialogues, details: Option<&mut Details>) -> anyhow::Result<()> {
        let exercises = match &self.planned {
            Ok((pack, _)) if pack.header().compat == Compat::PUBLISHED => Exercises::Published,
            Ok((pack, _)) => {
                Exercises::Pack { name: pack.header().name.clone(), hash: pack.hash().to_string() }
            }
            Err(why) => {
                let run = &self.manifest.run;
                say(&format!(
                    "warning: {}; dialogues of run {run} without a record are not counted",
                    explain(why)
                ));
                let used = self.manifest.packs.first();
                let (name, hash) =
                    used.map(|used| (used.name.clone(), used.hash.clone())).unwrap_or_default();
                Exercises::Pack { name, hash }
            }
        };
        let shows = details.as_ref().is_some_and(|details| details.is_clear(self.manifest.protected));
        let tasks = shows.then(|| {
            let (pack, plan) = self.planned.as_ref().map_err(explain)?;
            ComparedTasks::build(pack, plan, None).map_err(|error| explain(&error))
        });
        let compare = |record: &Record| match &tasks {
            Some(Ok(tasks)) => tasks.compare(record).map_err(|error| explain(&error)),
            Some(Err(why)) => Err(why.clone()),
            None => Err(String::new()),
        };
        let (records, manifest) = (&self.records, &self.manifest);
        let read = || {
            let run = RunSource { records, manifest, exercises, compare: &compare };
            read_run(all, &run, || self.keys(), details)
        };
        if shows {
            on_large_stack(read)??
        } else {
            read()?
        };
        Ok(())
    }

    /// Writes the file. Tables contain no texts except messages of failures; the other formats
    /// contain all texts. Texts of a protected run are written only in the form that `disclosure` allows.
    pub fn write(
        &self,
        format: ExportFormat,
        form: ExportForm,
        path: &Path,
        disclosure: &Disclosure,
    ) -> anyhow::Result<Written> {
        check(format, &self.manifest, disclosure)?;
        let text_form = disclosure.form(&self.manifest);
        let headline = |task: &TaskProvenance| report::input::headline(&task.class, &task.version);
        // Tables and JSON lines have no encrypted form.
        let texts = if text_form == TextForm::Clear { Texts::Keep } else { Texts::Redact };
        let options = TableOptions { manifest: &self.manifest, headline: &headline, texts };
        let write = |format| Ok(self.records.write(format, path, || self.keys(), options)?);
        match format {
            ExportFormat::Csv => write(export::Format::Csv(form.into())),
            ExportFormat::Xlsx => write(export::Format::Xlsx),
            ExportFormat::Jsonl => write(export::Format::Jsonl),
            ExportFormat::ResultJson => {
                let (pack, plan) = self.planned.as_ref().map_err(|why| {
                    anyhow!("{}; result-json holds the tasks' data, which is in the pack; tables and jsonl do without", explain(why))
                })?;
                let metas = Metas::of(pack, plan)?;
                let member = format!("{}_result.json", self.manifest.run);
                let archive = match text_form {
                    TextForm::Encrypted(password) => Some(Archive { member: &member, password }),
                    TextForm::Clear | TextForm::Redacted => None,
                };
                write(export::Format::ResultJson { metas: &|record| metas.of_record(record), archive })
            }
        }
    }
}

/// Task metadata in result files that records do not contain.
struct Metas(HashMap<TaskLabel, Arc<Task>>);

impl Metas {
    fn of(pack: &Pack, plan: &Plan) -> anyhow::Result<Self> {
        let built = material::build(pack, plan)?;
        Ok(Self(plan.tasks.iter().map(|task| task.label.clone()).zip(built.iter().cloned()).collect()))
    }

    fn of_record(&self, record: &Record) -> Option<TaskMeta> {
        let task = self.0.get(&record.key.task)?;
        let mut data = task.case(record.key.iteration).data.data.clone();
        for key in task.class.published.case_keys {
            data.entry(*key).or_insert(Value::Null);
        }
        Some(TaskMeta {
            task_id: task.class_name.clone(),
            task_label: record.key.task.to_string(),
            version: task.version.clone(),
            task_parameter: task.parameters.clone(),
            git_commit: format!("kgfleet {}", record.provenance.kgfleet),
            task_data: data,
            target_size: None,
            estimated_size: task.class.published.estimated_size,
        })
    }
}

/// Prints to standard error what a file contains.
pub fn tell(path: &Path, written: Written) {
    let mut line = format!("wrote {} ({} dialogues", path.display(), written.dialogues);
    if written.left_out > 0 {
        line.push_str(&format!("; {} without scores left out", written.left_out));
    }
    note!("{line})");
}
