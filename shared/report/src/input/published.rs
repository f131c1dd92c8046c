//! Reads result files of LLM-KG-Bench, and this project's own exports in that format, into the dialogues of a report.
//!
//! A file or a record that cannot be used stops nothing: it is told, and the rest is read. A record that an earlier file has too
//! counts once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use domain::Oddity;
use jiff::tz::TimeZone;
use results::llmkgbench::python_time::{parse_duration, parse_local_time};
use results::llmkgbench::{Document, ResultRecord};
use tasks::ComparedAnswer;

use super::{class_of, sorted, with};
use crate::details::{Details, DialogueDetail};
use crate::dialogues::{
    Column, ColumnId, Dialogues, Exercises, Origin, ReportedDialogue, SetupFact, SourceInfo, TaskId,
    published_name,
};

/// The result of reading files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReading {
    pub dialogues: u64,
    /// Files that could not be read to their end, each with the reason.
    pub file_errors: Vec<String>,
    /// Records that could not be used, each with the reason, the first [`ERRORS_TOLD_MAX`] of all files. A record with scores
    /// outside of the range of its class is told here too, although its dialogue counts.
    pub record_errors: Vec<String>,
    /// Records that could not be used, beyond those told.
    pub untold_errors: usize,
}

/// Maximum number of records that are told each with its reason. A small archive may hold millions, in thousands of files.
pub const ERRORS_TOLD_MAX: usize = 1_000;

impl FileReading {
    fn note_record(&mut self, error: impl FnOnce() -> String) {
        if self.record_errors.len() < ERRORS_TOLD_MAX {
            self.record_errors.push(error());
        } else {
            self.untold_errors += 1;
        }
    }

    fn bad_records(&self) -> usize {
        self.record_errors.len() + self.untold_errors
    }
}

/// Adds the records of result files, and their texts to `details`, if given. `compare` says what a dialogue expected and what was
/// extracted; it is asked only where texts may be shown.
pub fn read_documents(
    all: &mut Dialogues,
    documents: &[Document],
    mut details: Option<&mut Details>,
    compare: &dyn Fn(&ResultRecord) -> Result<ComparedAnswer, String>,
) -> FileReading {
    let mut reading = FileReading::default();
    let mut seen = HashMap::new();
    for (place, document) in documents.iter().enumerate() {
        let mut file =
            File { all, next: HashMap::new(), started: None, scorers: BTreeSet::new(), exported: false };
        let (mut added, before, mut repeated) = (0, reading.bad_records(), BTreeMap::<usize, u64>::new());
        let (protected, mut failed) = (document.is_protected(), None);
        let read = document.read(|read| {
            let (index, record) = match read {
                Ok(read) => (read.index, read.record),
                Err(error) => {
                    reading.note_record(|| error.to_string());
                    return ControlFlow::Continue(());
                }
            };
            if let Some(first) = earlier(&mut seen, place, &record) {
                *repeated.entry(first).or_default() += 1;
                return ControlFlow::Continue(());
            }
            let in_record = |problem: String| format!("{}: record {index}: {problem}", document.name());
            match file.add(&record) {
                Ok(task) => {
                    let checked = file.all.tasks[task].check(record.scores());
                    if let Err(error) = checked {
                        reading.note_record(|| in_record(error.to_string()));
                    }
                }
                Err(problem) => {
                    reading.note_record(|| in_record(problem));
                    return ControlFlow::Continue(());
                }
            }
            added += 1;
            let kept = details.as_deref_mut().map(|details| {
                let compared = details.is_clear(protected).then(|| compare(&record));
                details.push(with(DialogueDetail::of_result(&record), compared), protected)
            });
            failed = kept.and_then(Result::err);
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        reading.file_errors.extend(read.err().map(|error| error.to_string()));
        reading.file_errors.extend(failed.map(|error| format!("{}: {error}", document.name())));
        let File { started, scorers, exported, .. } = file;
        if added > 0 {
            all.sources.push(SourceInfo {
                name: document.file_name(),
                exercises: if exported { Exercises::Unknown } else { Exercises::Published },
                dialogues: added,
                planned: None,
                scorers: sorted(scorers),
                started,
                configuration: None,
                protected,
            });
        }
        let unused = reading.bad_records() - before;
        if unused > 0 {
            let file = document.file_name();
            all.warnings.push(format!("{unused} records of {file} could not be used"));
        }
        for (first, count) in repeated {
            let (again, first) = (document.name(), documents[first].name());
            all.warnings.push(format!("{count} dialogues of {again} are also in {first}; they count once"));
        }
        reading.dialogues += added;
    }
    reading
}

struct File<'a> {
    all: &'a mut Dialogues,
    /// The next iteration of a model on a task: files contain iterations in order and without numbers.
    next: HashMap<(ColumnId, TaskId), u32>,
    started: Option<jiff::Timestamp>,
    /// Commits of the programs that scored.
    scorers: BTreeSet<String>,
    exported: bool,
}

impl File<'_> {
    fn add(&mut self, record: &ResultRecord) -> Result<TaskId, String> {
        let class = class_of(record.task_id(), record.task_version()).map_err(|error| error.to_string())?;
        let commit = record.fields().get("taskInfo").and_then(|info| info.get("gitCommit")?.as_str());
        let commit = commit.unwrap_or("unknown");
        // This project's own files name their program there.
        let exported = commit.starts_with("kgfleet ");
        self.exported |= exported;
        let (origin, exercises) = match exported {
            true => (Origin::Exported, Exercises::Unknown),
            false => (Origin::Published, Exercises::Published),
        };
        let model = record.model();
        let requested = model.requested;
        let column = self.all.column(Column::of(requested, published_name(requested), origin, exercises));
        for (fact, value) in [
            (SetupFact::Requested, requested),
            (SetupFact::Reported, model.reported),
            (SetupFact::Connector, model.connector),
        ] {
            self.all.setup_of(column).note(fact, value);
        }
        let task = self.all.task(record.task_label(), record.task_id(), class.headline);
        let iteration = match self.next.get_mut(&(column, task)) {
            Some(next) => {
                *next += 1;
                *next - 1
            }
            None => {
                // Further files of a model go on counting.
                let there = self.all.of(column, task).count() as u32;
                self.next.insert((column, task), there + 1);
                there
            }
        };
        // A file has local times without a zone. Read as UTC, they are right to within a day, and the same on every machine.
        let zone = TimeZone::UTC;
        let started = record.start_time().and_then(|time| parse_local_time(time, &zone));
        self.started = self.started.into_iter().chain(started).min();
        self.scorers.insert(format!("LLM-KG-Bench {}", commit.get(..8).unwrap_or(commit)));
        let mut dialogue = ReportedDialogue::of(column, task, iteration);
        dialogue.rounds = record.answers().count() as u32;
        dialogue.seconds = record.duration().and_then(parse_duration).map(|length| length.as_secs_f64());
        dialogue.odd =
            record.answers().filter(|text| text.trim().is_empty()).map(|_| Oddity::Empty).collect();
        self.all.add(dialogue, &case_of(record), Ok(record.scores()));
        Ok(task)
    }
}

/// The earlier document that has this record of document `place`; `first` has the document in which each was read first. The same
/// results may lie in an archive and unpacked beside it. Two records are the same if model, task, start, duration and answers are.
fn earlier(first: &mut HashMap<u64, usize>, place: usize, record: &ResultRecord) -> Option<usize> {
    let mut hasher = DefaultHasher::new();
    (record.model().requested, record.task_label(), record.start_time(), record.duration()).hash(&mut hasher);
    record.answers().for_each(|answer| answer.hash(&mut hasher));
    let first = *first.entry(hasher.finish()).or_insert(place);
    (first != place).then_some(first)
}

/// The identity of a record's case: its own identifier, or the hash of its data.
fn case_of(record: &ResultRecord) -> String {
    let data = record.task_data();
    let named = data.and_then(|data| data.get("uid").or_else(|| data.get("taskUid")));
    if let Some(uid) = named.and_then(|uid| uid.as_str()) {
        return uid.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    data.map(|data| serde_json::Value::from(data.clone()).to_string()).hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
}

#[cfg(test)]
mod tests {
    use results::llmkgbench::discover;
    use serde_json::json;

    use super::*;

    #[test]
    fn of_many_records_that_cannot_be_used_the_first_are_told_and_all_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let unknown = |model: &str| {
            json!({
                "modelId": model, "taskInfo": {"taskId": "NoSuchTask", "version": "1"}, "scores": {}, "info": {},
                "interactions": [],
            })
        };
        let files = ["a_result.json", "b_result.json"].map(|name| folder.path().join(name));
        for (file, model) in files.iter().zip(["A--b--c", "D--e--f"]) {
            std::fs::write(file, json!(vec![unknown(model); ERRORS_TOLD_MAX + 7]).to_string()).unwrap();
        }
        let documents: Vec<Document> = discover(&files, None).into_iter().map(Result::unwrap).collect();
        let mut all = Dialogues::default();
        let reading = read_documents(&mut all, &documents, None, &|_| Err(String::new()));
        assert_eq!(
            (reading.record_errors.len(), reading.untold_errors),
            (ERRORS_TOLD_MAX, ERRORS_TOLD_MAX + 14)
        );
        for (warning, file) in all.warnings.iter().zip(["a", "b"]) {
            assert!(warning.starts_with(&format!("1007 records of {file}_result.json")), "{warning:?}");
        }
    }
}
