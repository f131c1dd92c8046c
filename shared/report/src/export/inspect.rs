//! Logs of [Inspect](https://inspect.aisi.org.uk), the evaluation framework of the UK AI Security Institute: a folder
//! with an `.eval` file for each model and task. Such a file is a zip archive of JSON: `_journal/start.json` says what
//! was evaluated, `samples/` has a member for each dialogue, `summaries.json` a row for each, and `header.json` the
//! results.
//!
//! | there | here |
//! |---|---|
//! | eval | one task for one model |
//! | sample | a dialogue: its id is the case, its epoch the repetition of that case, from 1 |
//! | score | the headline, by the scorer [`SCORER`]; the other scores are its metadata |
//! | sample with an error | a failed dialogue, which has no score |
//! | status `success` | every planned dialogue has a record |
//!
//! Of one model and task the summaries are held, of its dialogues one at a time. Equal runs give equal bytes.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use domain::redaction::{Texts, redact};
use domain::text::hex;
use domain::{
    Answer, DialogueKey, DialogueTime, FinishReason, Iteration, ModelLabel, Outcome, Record, Sampling,
    Scores, TaskLabel, Usage,
};
use jiff::Timestamp;
use results::files;
use results::log::LogError;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

use super::table::score_at;
use super::{ExportError, TableOptions};
use crate::stats::SampleSummary;

/// The name under which the headline stands among the scores of a sample.
pub const SCORER: &str = "kgfleet";

/// Version of the log format.
const LOG_VERSION: u32 = 2;

/// Maximum length of the input in a summary, in characters. The sample has all of it.
const SUMMARY_INPUT_CHARS_MAX: usize = 1_000;

/// Maximum length of a label in the name of a file, in characters: file systems take 255 bytes.
const LABEL_CHARS_MAX: usize = 100;

/// Length of the id of an eval, in hexadecimal digits: 88 bits.
const EVAL_ID_DIGITS: usize = 22;

/// The reasoning efforts that a log may name. Any other word would make it unreadable.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// The number of cases of a task; `None` if the pack is not there.
pub type CaseCounts<'a> = &'a dyn Fn(&TaskLabel) -> Option<usize>;

/// An `.eval` file that is being written.
type EvalArchive = ZipWriter<BufWriter<File>>;

/// Writes a log for each model and task with a record into a folder, which is made. `planned` are all dialogues of the
/// run or, where its plan is not known, those with a record; `records` have the same order.
///
/// # Errors
/// A record cannot be read, or a file cannot be written. Logs that were complete by then stay.
pub fn write(
    folder: &Path,
    options: TableOptions<'_>,
    cases: CaseCounts<'_>,
    planned: impl Iterator<Item = DialogueKey>,
    mut records: impl Iterator<Item = Result<Record, LogError>>,
) -> Result<u64, ExportError> {
    fs::create_dir_all(folder).map_err(|error| of_file(folder, error.into()))?;
    let mut dialogues: HashMap<(ModelLabel, TaskLabel), u64> = HashMap::new();
    for key in planned {
        *dialogues.entry((key.model, key.task)).or_default() += 1;
    }
    let is_plan_known = dialogues.values().sum::<u64>() >= options.manifest.planned_dialogues;
    let mut names = LogNames::default();
    let mut recorded = 0;
    let mut next = records.next().transpose()?;
    while let Some(first) = next.take() {
        let of = (first.key.model.clone(), first.key.task.clone());
        let extent = Extent {
            planned: dialogues.get(&of).copied().unwrap_or_default(),
            is_plan_known,
            cases: cases(&of.1).map(|cases| cases as u64).filter(|cases| *cases > 0),
        };
        let mut log = EvalLog::new(options, &first, extent);
        archived(&folder.join(names.file_name(&first.key)), |archive| {
            log.begin(archive)?;
            log.add(archive, first)?;
            for read in records.by_ref() {
                let record = read?;
                if (&record.key.model, &record.key.task) != (&of.0, &of.1) {
                    next = Some(record);
                    break;
                }
                log.add(archive, record)?;
            }
            log.end(archive)
        })?;
        recorded += log.recorded;
    }
    Ok(recorded)
}

/// Replaces the file `path` by an archive that `fill` fills. An error leaves the file as it was.
fn archived(
    path: &Path,
    fill: impl FnOnce(&mut EvalArchive) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut failed = None;
    let written = files::replace(path, |file| {
        let mut archive = ZipWriter::new(BufWriter::new(file));
        if let Err(error) = fill(&mut archive) {
            failed = Some(error);
            return Err(io::Error::other("the log is incomplete"));
        }
        archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
    });
    match failed {
        // A record that cannot be read is not an error of this file.
        Some(error @ ExportError::Log(_)) => Err(error),
        Some(error) => Err(of_file(path, error)),
        None => written.map_err(|error| of_file(path, error.into())),
    }
}

fn of_file(path: &Path, error: ExportError) -> ExportError {
    ExportError::File { path: path.to_owned(), source: Box::new(error) }
}

/// Adds a member with this content as JSON, without what is null. Its time is always the same.
fn add_member(archive: &mut EvalArchive, name: &str, content: &mut Value) -> Result<(), ExportError> {
    drop_nulls(content);
    let text = serde_json::to_vec(content).map_err(io::Error::from)?;
    let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
    archive.start_file(name, options).map_err(io::Error::from)?;
    archive.write_all(&text)?;
    Ok(())
}

/// Removes fields that are null, which Inspect does not write either.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// How much of one task for one model there is to be.
#[derive(Clone, Copy)]
struct Extent {
    /// Dialogues planned.
    planned: u64,
    /// Whether the plan is known; without it, `planned` counts those with a record.
    is_plan_known: bool,
    /// Cases of the task, at least one.
    cases: Option<u64>,
}

/// The log of one task for one model, while it is written.
struct EvalLog<'a> {
    options: TableOptions<'a>,
    model: ModelLabel,
    extent: Extent,
    headline: &'static [&'static str],
    /// What is evaluated, and how.
    spec: Value,
    /// The last epoch of each sample id.
    epochs: HashMap<String, u64>,
    summaries: Vec<Value>,
    /// The headlines.
    values: Vec<f64>,
    recorded: u64,
    failed: u64,
    started_at: Timestamp,
    ended_at: Timestamp,
    usage: Usage,
}

impl<'a> EvalLog<'a> {
    /// The log that this record is the first of.
    fn new(options: TableOptions<'a>, first: &Record, extent: Extent) -> Self {
        let headline = (options.headline)(&first.provenance.task);
        Self {
            options,
            model: first.key.model.clone(),
            extent,
            headline,
            spec: spec(options, first, extent, headline),
            epochs: HashMap::new(),
            summaries: Vec::new(),
            values: Vec::new(),
            recorded: 0,
            failed: 0,
            started_at: first.started_at,
            ended_at: first.ended_at,
            usage: Usage::default(),
        }
    }

    fn begin(&self, archive: &mut EvalArchive) -> Result<(), ExportError> {
        let mut start = json!({ "version": LOG_VERSION, "eval": self.spec, "plan": plan() });
        add_member(archive, "_journal/start.json", &mut start)
    }

    /// Adds a dialogue.
    fn add(&mut self, archive: &mut EvalArchive, mut record: Record) -> Result<(), ExportError> {
        if self.options.texts == Texts::Redact {
            redact(&mut record);
        }
        let id = sample_id(&record.provenance.task.case);
        let epoch = self.epoch(&id, record.key.iteration);
        let mut usage = Usage::default();
        record.rounds.iter().for_each(|round| add_usage(&mut usage, &round.answer.usage));
        let answered = record.rounds.iter().map(|round| round.answered_at);
        let took = DialogueTime::of(record.started_at, answered, record.ended_at);
        let (value, error) = match &record.outcome {
            Outcome::Scored { scores, .. } => (score_at(scores, self.headline), None),
            Outcome::Unscored { .. } => (None, None),
            Outcome::Failed { cause, message } => (None, Some(format!("{cause}: {message}"))),
        };
        let failure = |message: &String| json!({ "message": message, "traceback": "", "traceback_ansi": "" });
        let messages = messages(&record);
        let mut sample = json!({
            "id": id,
            "epoch": epoch,
            "input": record.rounds.first().map_or("", |round| round.prompt.text.as_str()),
            // Records hold no reference, and logs are made to be shown around.
            "target": "",
            "messages": messages,
            "scores": value.map(|value| self.scores(value, &record.outcome)),
            "metadata": metadata(&record, value.is_some()),
            "model_usage": by_model(&self.model, &usage),
            "started_at": time(record.started_at),
            "completed_at": time(record.ended_at),
            "total_time": took.dialogue_s + took.evaluation_s,
            "uuid": record.attempt.id,
            "error": error.as_ref().map(failure),
            "turn_count": record.rounds.len(),
        });
        if let (Some(round), Some(message)) = (record.rounds.last(), messages.last()) {
            let asked = DialogueTime::of(round.prompted_at, [round.answered_at], round.answered_at);
            sample["output"] = json!({
                "model": self.model,
                "choices": [{ "message": message, "stop_reason": stop_reason(&round.answer) }],
                "completion": round.answer.text,
                "usage": tokens(&round.answer.usage),
                "time": asked.dialogue_s,
            });
        }
        add_member(archive, &format!("samples/{id}_epoch_{epoch}.json"), &mut sample)?;

        self.recorded += 1;
        self.failed += u64::from(error.is_some());
        self.values.extend(value);
        self.started_at = self.started_at.min(record.started_at);
        self.ended_at = self.ended_at.max(record.ended_at);
        add_usage(&mut self.usage, &usage);
        self.summaries.push(summary(sample, messages.len(), value, error));
        Ok(())
    }

    /// Which repetition of its case an iteration is. Every dialogue of a case has an epoch of its own.
    fn epoch(&mut self, id: &str, iteration: Iteration) -> u64 {
        // Without the number of cases, repetitions are counted.
        let by_plan = self.extent.cases.map_or(0, |cases| u64::from(iteration) / cases + 1);
        let last = self.epochs.entry(id.to_owned()).or_default();
        *last = by_plan.max(*last + 1);
        *last
    }

    /// The headline as a score, with all others.
    fn scores(&self, value: f64, outcome: &Outcome) -> Value {
        let mut others = match outcome {
            Outcome::Scored { scores, .. } => flat(scores),
            Outcome::Unscored { .. } | Outcome::Failed { .. } => Map::new(),
        };
        others.shift_remove(&self.headline.join("."));
        json!({ SCORER: { "value": value, "metadata": others } })
    }

    fn end(&mut self, archive: &mut EvalArchive) -> Result<(), ExportError> {
        let summaries = std::mem::take(&mut self.summaries);
        add_member(archive, "summaries.json", &mut Value::Array(summaries))?;
        let is_complete = self.extent.is_plan_known && self.recorded >= self.extent.planned;
        let (answered, scored) = (self.recorded - self.failed, self.values.len() as u64);
        let mut header = json!({
            "version": LOG_VERSION,
            "status": if is_complete { "success" } else { "cancelled" },
            "eval": self.spec,
            "plan": plan(),
            "results": {
                "total_samples": self.extent.planned.max(self.recorded),
                "completed_samples": answered,
                "scores": [{
                    "name": SCORER,
                    "scorer": SCORER,
                    "scored_samples": scored,
                    "unscored_samples": answered - scored,
                    "metrics": metrics(&self.values),
                    "metadata": { "score": self.headline.join(".") },
                }],
            },
            "stats": {
                "started_at": time(self.started_at),
                "completed_at": time(self.ended_at),
                "model_usage": by_model(&self.model, &self.usage),
            },
        });
        add_member(archive, "header.json", &mut header)
    }
}

/// What is evaluated, and how. The name of the model is its label, so that it is that of tables.
fn spec(options: TableOptions<'_>, first: &Record, extent: Extent, headline: &[&str]) -> Value {
    let run = options.manifest;
    let (task, model) = (&first.provenance.task, &first.provenance.model);
    let DialogueKey { model: model_label, task: task_label, .. } = &first.key;
    let mut id = hex(Sha256::digest(format!("{}\n{model_label}\n{task_label}", run.run)));
    id.truncate(EVAL_ID_DIGITS);
    json!({
        "eval_id": id,
        "run_id": run.run,
        "created": time(run.created_at),
        "task": task_label,
        "task_id": id,
        "task_version": task.version,
        "dataset": {
            "name": task.pack,
            "samples": extent.cases.map(|cases| cases.min(extent.planned)),
        },
        "model": model_label,
        "model_generate_config": generate_config(&first.provenance.sampling),
        "model_base_url": model.endpoint,
        "model_args": {
            "connector": model.connector,
            "requested": model.requested,
            "reported": model.reported,
        },
        "config": {
            "epochs": extent.cases.map(|cases| extent.planned.div_ceil(cases)),
            "fail_on_error": false,
        },
        "packages": { "kgfleet": first.provenance.kgfleet },
        "metadata": {
            "class": task.class,
            "pack_hash": task.pack_hash,
            "scorer": task.scorer,
            "score": headline.join("."),
            "sampling": first.provenance.sampling,
            "seed": run.seed,
            "configuration_hash": run.configuration_hash,
        },
        "scorers": [{ "name": SCORER, "metrics": [{ "name": "mean" }, { "name": "stderr" }] }],
    })
}

fn plan() -> Value {
    json!({ "name": "plan", "steps": [{ "solver": "kgfleet", "params": {} }] })
}

/// The sampling parameters that Inspect has too.
fn generate_config(sampling: &Sampling) -> Value {
    json!({
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "max_tokens": sampling.max_tokens,
        "stop_seqs": (!sampling.stop.is_empty()).then_some(&sampling.stop),
        "reasoning_effort": sampling.reasoning_effort.as_deref().filter(|effort| EFFORTS.contains(effort)),
    })
}

/// The whole dialogue. The ids of messages differ between dialogues too.
fn messages(record: &Record) -> Vec<Value> {
    let id = |number: usize| format!("{}-{number}", record.attempt.id);
    let mut messages = Vec::new();
    if let Some(system) = &record.system {
        messages.push(json!({ "id": id(0), "role": "system", "content": system }));
    }
    for round in &record.rounds {
        let kind = json!({ "kind": round.prompt.kind });
        messages.push(json!({
            "id": id(messages.len()), "role": "user", "content": round.prompt.text, "metadata": kind
        }));
        let content = match &round.answer.reasoning {
            None => json!(round.answer.text),
            Some(reasoning) => json!([
                { "type": "reasoning", "reasoning": reasoning },
                { "type": "text", "text": round.answer.text },
            ]),
        };
        messages.push(json!({
            "id": id(messages.len()), "role": "assistant", "content": content, "source": "generate",
            "model": record.key.model
        }));
    }
    messages
}

/// What else is known of a dialogue, and its scores if none of them is the headline.
fn metadata(record: &Record, has_headline: bool) -> Value {
    let mut outcome = json!(record.outcome);
    let mut metadata = json!({
        "iteration": record.key.iteration,
        "case": record.provenance.task.case,
        "state": outcome["state"].take(),
        "failure": outcome["cause"].take(),
        "infos": outcome["infos"].take(),
    });
    // Of a failed dialogue the message is its error.
    if matches!(record.outcome, Outcome::Unscored { .. }) {
        metadata["message"] = outcome["message"].take();
    }
    if !has_headline {
        metadata["scores"] = outcome["scores"].take();
    }
    metadata
}

/// The row of a sample in the list of all: the same without what is long.
fn summary(mut sample: Value, messages: usize, value: Option<f64>, error: Option<String>) -> Value {
    if let Some(fields) = sample.as_object_mut() {
        fields.shift_remove("messages");
        fields.shift_remove("output");
    }
    if let Some(metadata) = sample["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_object());
    }
    let input = sample["input"].as_str().unwrap_or_default();
    let input: String = input.chars().take(SUMMARY_INPUT_CHARS_MAX).collect();
    sample["input"] = json!(input);
    sample["scores"] = json!(value.map(|value| json!({ SCORER: { "value": value } })));
    sample["error"] = json!(error);
    sample["completed"] = json!(true);
    sample["message_count"] = json!(messages);
    sample
}

/// Scores by their full names, such as `max.combined`.
fn flat(scores: &Scores) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in scores {
        match value.as_object() {
            Some(group) => {
                let named = |(score, value): (&String, &Value)| (format!("{name}.{score}"), value.clone());
                flat.extend(group.iter().map(named));
            }
            None => {
                flat.insert(name.clone(), value.clone());
            }
        }
    }
    flat
}

/// The mean and its standard error, every dialogue counting the same; nothing without a value.
fn metrics(values: &[f64]) -> Value {
    let Some(SampleSummary { n, mean, sd, .. }) = SampleSummary::of(values.iter().copied()) else {
        return json!({});
    };
    // Of a single value Inspect says 0.
    let stderr = sd.map_or(0.0, |sd| sd / (n as f64).sqrt());
    json!({ "mean": { "name": "mean", "value": mean }, "stderr": { "name": "stderr", "value": stderr } })
}

fn add_usage(sum: &mut Usage, more: &Usage) {
    let plus = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
    *sum = Usage {
        prompt_tokens: plus(sum.prompt_tokens, more.prompt_tokens),
        completion_tokens: plus(sum.completion_tokens, more.completion_tokens),
        cached_tokens: plus(sum.cached_tokens, more.cached_tokens),
        reasoning_tokens: plus(sum.reasoning_tokens, more.reasoning_tokens),
    };
}

/// Tokens as Inspect counts them: those from a cache are not among the input. `None` if the server counted none.
fn tokens(usage: &Usage) -> Option<Value> {
    if usage.prompt_tokens.is_none() && usage.completion_tokens.is_none() {
        return None;
    }
    let prompt = usage.prompt_tokens.unwrap_or_default();
    let completion = usage.completion_tokens.unwrap_or_default();
    Some(json!({
        "input_tokens": prompt.saturating_sub(usage.cached_tokens.unwrap_or_default()),
        "output_tokens": completion,
        "total_tokens": prompt.saturating_add(completion),
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }))
}

fn by_model(model: &ModelLabel, usage: &Usage) -> Value {
    match tokens(usage) {
        Some(tokens) => json!({ (model.as_str()): tokens }),
        None => json!({}),
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    match &answer.finish_reason {
        Some(FinishReason::Stop) => "stop",
        Some(FinishReason::Length) => "max_tokens",
        Some(FinishReason::ContentFilter) => "content_filter",
        Some(FinishReason::Repetition | FinishReason::Other(_)) | None => "unknown",
    }
}

/// A time in UTC, to the microsecond: older Pythons read no more digits.
fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// A case as the id of a sample. The id is also a part of a name in the archive, in which some characters would name a
/// folder or nothing; these are written as in URLs.
fn sample_id(case: &str) -> String {
    let mut id = String::with_capacity(case.len());
    for character in case.chars() {
        if matches!(character, '/' | '\\' | '%') || character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                id.push_str(&format!("%{byte:02X}"));
            }
        } else {
            id.push(character);
        }
    }
    id
}

/// The names of the files of one folder. No two are the same, even where upper and lower case are.
#[derive(Default)]
struct LogNames(HashSet<String>);

impl LogNames {
    fn file_name(&mut self, key: &DialogueKey) -> String {
        let base = format!("{}_{}", file_part(key.model.as_str()), file_part(key.task.as_str()));
        let mut name = base.clone();
        let mut number = 1_u32;
        while !self.0.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{base}-{number}");
        }
        name + ".eval"
    }
}

/// A label as a part of a name that every file system takes.
fn file_part(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let part: String = label.chars().take(LABEL_CHARS_MAX).map(plain).collect();
    part.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
