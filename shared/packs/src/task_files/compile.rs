//! Compiles a task file into a pack: reads the file, refuses what is wrong in it, and gives each task to `declaration`. All
//! files are read here, and they must lie in the folder of the task file or below, so that a file from somebody else cannot make
//! a pack of what lies elsewhere on this machine. Their sizes are limited.

use std::cell::Cell;
use std::path::{Component, Path};
use std::rc::Rc;
use std::time::Duration;

use crate::{GraphSource, GraphSpec, Group, Header, Pack, Parts};
use domain::TaskLabel;
use rdf::{PrefixTable, RdfFormat};
use tasks::{Compat, EvaluationLimits};
use toml::de::DeTable;

use crate::task_files::compiled_task::CompiledTask;
use crate::task_files::context::FileContext;
use crate::task_files::declaration;
use crate::task_files::expected::ReferenceResults;
use crate::task_files::graphs::{FileGraph, usual_prefixes};
use crate::task_files::mistake::{Mistake, MistakeList, Mistakes};
use crate::task_files::proof::{self, Proof};
use crate::task_files::schema::schema;
use crate::task_files::table::{self, FileSection};

/// The version of the format that is read.
const FORMAT: usize = 1;

/// Longest file beside a task file, and longest task file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// All files of a task file together, in bytes.
const FILES_BYTES_MAX: u64 = 256 << 20;

/// Path of the task file among the entries of its pack.
const SOURCE_PATH: &str = "task-file.toml";

/// A compiled task file.
#[derive(Debug)]
pub struct CompiledFile {
    /// Its pack, as it is sealed.
    pub pack: Pack,
    pub tasks: Vec<CompiledTask>,
    /// How often each case is asked.
    pub repeats: u32,
}

impl CompiledFile {
    /// Proves every task.
    ///
    /// # Errors
    /// A task cannot be built.
    pub fn prove(&self) -> Result<Vec<Proof>, crate::PackError> {
        self.tasks.iter().map(|task| proof::prove(task, &self.pack)).collect()
    }

    /// What the file lacks to be published.
    pub fn lacks(&self) -> Vec<&'static str> {
        let header = self.pack.header();
        let given = [("licence", &header.licence), ("canary", &header.canary)];
        given.into_iter().filter(|(_, value)| value.is_empty()).map(|(key, _)| key).collect()
    }
}

/// Whether a path leads to a file that says it is a task file. What cannot be read is none: its reader says why.
pub fn is_task_file(path: &Path) -> bool {
    let marks = |line: &str| {
        line.strip_prefix("task_file").is_some_and(|rest| rest.trim_start().starts_with(['=', ':']))
    };
    path.is_file()
        && service_kit::named_files::read_text(path, FILE_BYTES_MAX).is_ok_and(|text| text.lines().any(marks))
}

/// Compiles a task file: the same file and data give the same pack.
///
/// # Errors
/// All mistakes of the file that can be told at once.
pub fn compile(path: &Path) -> Result<CompiledFile, Mistakes> {
    let name = path.display().to_string();
    let whole = |message: String| Mistakes {
        file: name.clone(),
        list: vec![Mistake { line: 1, column: 1, message }],
        untold: 0,
    };
    let source = service_kit::named_files::read_text(path, FILE_BYTES_MAX)
        .map_err(|error| whole(error.to_string()))?;
    let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    if is_yaml {
        return Err(whole("a task file is TOML; data may be YAML: `cases.file`".to_owned()));
    }
    let mistakes = MistakeList::new(&name, &source);
    let (table, errors) = DeTable::parse_recoverable(&source);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        mistakes.add(at, explained(error, &source, at));
    }
    mistakes.none_yet()?;
    let file = FileSection::new(table.get_ref(), 0..0);
    version(&file, &mistakes)?;
    table::check(table.get_ref(), schema(), "the file", &mistakes);
    mistakes.none_yet()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = Beside { folder, bytes: Cell::new(source.len() as u64) };
    let read_text = |file: &str| beside.read_text(file);
    let compiled = whole_file(&file, &source, &read_text, &mistakes)?;
    mistakes.none_yet()?;
    compiled.map_err(whole)
}

/// A syntax error; for a key that is given twice with the line of the first.
fn explained(error: &toml::de::Error, source: &str, at: usize) -> String {
    if !error.message().contains("duplicate key") {
        return error.message().to_owned();
    }
    let key: String = source[at..]
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '"' | '\''))
        .collect();
    let given = |line: &str| {
        let rest = line.trim_start().strip_prefix(&key)?;
        rest.trim_start().starts_with(['=', '.']).then_some(())
    };
    let before: Vec<&str> = source[..at].rsplit_once('\n').map_or("", |(whole, _)| whole).lines().collect();
    let in_table =
        before.iter().enumerate().rev().take_while(|(_, line)| !line.trim_start().starts_with('['));
    let first = in_table.filter(|(_, line)| given(line).is_some()).last();
    match first {
        Some((number, _)) => format!("the key `{key}` is given twice; the first is in line {}", number + 1),
        None => format!("the key `{key}` is given twice"),
    }
}

/// The version comes first, so that a newer file is refused for that reason and not for an unknown key.
fn version(file: &FileSection<'_>, mistakes: &MistakeList<'_>) -> Result<(), Mistakes> {
    match file.whole("task_file") {
        Some(version) if version.value != FORMAT => {
            let message =
                format!("this kgfleet reads version {FORMAT} of task files, and this is {}", version.value);
            mistakes.at(&version.place, message);
        }
        Some(_) => {}
        None => mistakes.add(0, "a task file begins with `task_file = 1`"),
    }
    mistakes.none_yet()
}

/// Reads files beside a task file.
struct Beside<'a> {
    folder: &'a Path,
    /// What was read so far.
    bytes: Cell<u64>,
}

impl Beside<'_> {
    fn read_text(&self, file: &str) -> Result<String, String> {
        let outside = || format!("`{file}` is outside of the folder of this file; put it below");
        let path = Path::new(file);
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(outside());
        }
        let path = self.folder.join(path);
        let unreadable = |error: std::io::Error| format!("`{file}`: {error}");
        // A link may lead out of the folder.
        let real = path.canonicalize().map_err(unreadable)?;
        if !real.starts_with(self.folder.canonicalize().map_err(unreadable)?) {
            return Err(outside());
        }
        let text = service_kit::named_files::read_text(&real, FILE_BYTES_MAX).map_err(unreadable)?;
        let bytes = self.bytes.get() + text.len() as u64;
        self.bytes.set(bytes);
        if bytes > FILES_BYTES_MAX {
            return Err(format!("with `{file}`, the files are larger than 256 MiB together"));
        }
        Ok(text)
    }
}

/// Compiles what the file declares. The inner error is about the pack as a whole.
fn whole_file(
    file: &FileSection<'_>,
    source: &str,
    read_text: &dyn Fn(&str) -> Result<String, String>,
    mistakes: &MistakeList<'_>,
) -> Result<Result<CompiledFile, String>, Mistakes> {
    if file.text("name").is_none_or(|name| name.value.trim().is_empty()) {
        mistakes.add(0, "the file has no `name`");
    }
    let mut prefixes = usual_prefixes();
    for (prefix, namespace) in file.texts_by_name("prefixes") {
        let declared = format!("@prefix {prefix}: <{}> .", namespace.value);
        if rdf::Graph::parse(&declared, RdfFormat::Turtle, None).is_err() {
            mistakes
                .at(&namespace.place, format!("`{prefix}: <{}>` is no prefix with an IRI", namespace.value));
        }
        prefixes.insert(prefix, namespace.value);
    }
    let limits = limits(file, mistakes);
    let graphs = graphs(file, &prefixes, read_text, mistakes);
    for (_, graph) in &graphs {
        prefixes = PrefixTable::layered(&[&graph.prefixes, &prefixes]);
    }
    let repeats = file.whole_within("repeats", 1..=1000, mistakes).unwrap_or(1) as u32;
    let sections = file.sections("task");
    if sections.is_empty() {
        mistakes.add(0, "the file has no `[[task]]`");
    }
    for (number, task) in sections.iter().enumerate() {
        let Some(label) = task.text("label") else { continue };
        let same =
            |other: &&FileSection<'_>| other.text("label").is_some_and(|other| other.value == label.value);
        if let Some(first) = sections[..number].iter().find(same) {
            let line = mistakes.line_of(first.place.start);
            mistakes
                .at(&label.place, format!("the label `{}` is taken by the task in line {line}", label.value));
        }
    }
    let seed = file.whole("seed").map_or(0, |seed| seed.value as u64);
    let context = FileContext {
        mistakes,
        graphs: &graphs,
        prefixes: &prefixes,
        limits: &limits,
        seed,
        repeats,
        read_text,
    };
    let mut results = ReferenceResults::default();
    let tasks: Vec<Option<CompiledTask>> =
        sections.iter().map(|task| declaration::compile(task, &context, &mut results)).collect();
    mistakes.none_yet()?;
    let tasks: Vec<CompiledTask> = tasks.into_iter().flatten().collect();
    let header = header(file, limits, &graphs, &tasks);
    Ok(packed(header, source, &graphs, tasks, repeats))
}

fn limits(file: &FileSection<'_>, mistakes: &MistakeList<'_>) -> EvaluationLimits {
    let usual = EvaluationLimits::default();
    let Some(given) = file.section("limits") else { return usual };
    let whole = |key: &str, most: usize| given.whole_within(key, 1..=most, mistakes).unwrap_or(most);
    let query_time = match given.number("query_seconds") {
        Some(limit) if limit.value <= 0.0 || limit.value > usual.query_time.as_secs_f64() => {
            let most = usual.query_time.as_secs_f64();
            mistakes.at(
                &limit.place,
                format!("`query_seconds` is {}; it must be above 0, and {most} at most", limit.value),
            );
            usual.query_time
        }
        Some(limit) => Duration::try_from_secs_f64(limit.value).unwrap_or(usual.query_time),
        None => usual.query_time,
    };
    EvaluationLimits {
        query_time,
        answer_bytes_max: whole("answer_bytes", usual.answer_bytes_max),
        nesting_max: whole("nesting", usual.nesting_max),
        rows_max: whole("rows", usual.rows_max),
    }
}

fn graphs(
    file: &FileSection<'_>,
    prefixes: &PrefixTable,
    read_text: &dyn Fn(&str) -> Result<String, String>,
    mistakes: &MistakeList<'_>,
) -> Vec<(String, Rc<FileGraph>)> {
    let mut graphs = Vec::new();
    let Some(named) = file.section("graphs") else { return graphs };
    for (name, value) in file.by_name("graphs") {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > 100 || !name.chars().all(good) {
            mistakes
                .at(&value.place, format!("the name `{name}` of a graph may have letters, digits and `_-`"));
            continue;
        }
        let Some(given) = named.section(name) else { continue };
        let (text, path) = match (given.text("file"), given.text("text")) {
            (Some(path), None) => match read_text(path.value) {
                Ok(text) => (text, path.value),
                Err(message) => {
                    mistakes.at(&path.place, message);
                    continue;
                }
            },
            (None, Some(text)) => (text.value.to_owned(), ""),
            _ => {
                mistakes.at(&value.place, format!("the graph `{name}` needs one of: file, text"));
                continue;
            }
        };
        let format = format_of(given.text("format").map(|format| format.value), path);
        match FileGraph::read(&text, format, prefixes) {
            Ok(graph) => graphs.push((name.to_owned(), Rc::new(graph))),
            Err(message) => mistakes.at(&value.place, format!("graph `{name}`, {message}")),
        }
    }
    graphs
}

/// The syntax of a graph by what is said of it, or else by the ending of its file.
pub(crate) fn format_of(said: Option<&str>, path: &str) -> RdfFormat {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match said.unwrap_or(ending) {
        "json" => RdfFormat::JsonLd,
        name => RdfFormat::of_ending(name).unwrap_or(RdfFormat::Turtle),
    }
}

/// The path of a graph among the entries of a pack.
fn entry_of(name: &str) -> String {
    format!("graphs/{name}")
}

fn header(
    file: &FileSection<'_>,
    limits: EvaluationLimits,
    graphs: &[(String, Rc<FileGraph>)],
    tasks: &[CompiledTask],
) -> Header {
    let text = |key: &str| file.text(key).map_or_else(String::new, |text| text.value.to_owned());
    let labels: Vec<TaskLabel> = tasks.iter().map(|task| task.data.label.clone()).collect();
    let graph = |(name, graph): &(String, Rc<FileGraph>)| GraphSpec {
        name: name.clone(),
        source: GraphSource::Stored { file: entry_of(name), format: graph.format.to_string() },
    };
    Header {
        name: text("name"),
        version: file.text("version").map_or("1", |version| version.value).to_owned(),
        licence: text("licence"),
        description: text("description"),
        provenance: text("provenance"),
        canary: text("canary"),
        protected: file.flag("protected"),
        compat: Compat::default(),
        limits,
        groups: vec![Group { name: "tasks".to_owned(), default: true, tasks: labels }],
        graphs: graphs.iter().map(graph).collect(),
    }
}

/// The pack of the tasks, with answers of known score.
fn packed(
    header: Header,
    source: &str,
    graphs: &[(String, Rc<FileGraph>)],
    mut tasks: Vec<CompiledTask>,
    repeats: u32,
) -> Result<CompiledFile, String> {
    let pack = |tasks: &[CompiledTask]| -> Result<Pack, crate::PackError> {
        let mut parts = Parts::new(&header.name);
        parts.insert_header(&header)?;
        parts.insert(SOURCE_PATH, source.as_bytes())?;
        for (name, graph) in graphs {
            parts.insert(&entry_of(name), graph.document.as_bytes())?;
        }
        for task in tasks {
            parts.insert_task(&task.data)?;
        }
        Pack::from_parts(parts)
    };
    let without = pack(&tasks).map_err(|error| error.to_string())?;
    for task in &mut tasks {
        proof::complete(task, &without).map_err(|error| error.to_string())?;
    }
    let pack = pack(&tasks).map_err(|error| error.to_string())?;
    Ok(CompiledFile { pack, tasks, repeats })
}
