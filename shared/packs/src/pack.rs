//! An opened pack: its tasks with all texts in place, and the graphs they refer to.

mod listing;

use std::path::Path;
use std::sync::Arc;

use domain::TaskLabel;
use results::password::Password;
use serde_json::Value;
use tasks::graphs::GraphLibraryBuilder;
use tasks::{GraphLibrary, Task, TaskData};

use crate::bestiary;
use crate::error::PackError;
use crate::header::{Generator, GraphSource, HEADER_PATH, Header};
use crate::include;
use crate::manifest::{Manifest, PackHash, sha256_hex};
use crate::parts::{Parts, io};
use crate::sealed;

pub use listing::TaskLine;

/// Longest label of a task, in characters: labels stand in tables and in metrics.
const LABEL_CHARS_MAX: usize = 1_000;

/// The published password, in one line.
const PUBLISHED_PASSWORD: &str = include_str!("../../../task-data/password.txt");

/// The password of the project's own packs. It is in the repository, keeps out crawlers, and is not a secret.
pub fn published_password() -> Password {
    Password::new(PUBLISHED_PASSWORD.trim())
}

/// The built-in pack, sealed as in the repository.
const BUILTIN: &[u8] = include_bytes!("../../../task-data/kgfleet-core.kgpack");

/// Packs that come with the program beside the built-in one, by their names in configurations.
const BUNDLED: [(&str, &[u8]); 1] = [("halu-demo", include_bytes!("../../../task-data/halu-demo.kgpack"))];

/// The sealed pack of a name, if it comes with the program.
pub fn bundled(name: &str) -> Option<&'static [u8]> {
    BUNDLED.iter().find(|(bundled, _)| *bundled == name).map(|(_, sealed)| *sealed)
}

/// A set of tasks, cases, wording and graphs, decrypted in memory.
#[derive(Clone, Debug)]
pub struct Pack {
    manifest: Manifest,
    hash: PackHash,
    parts: Parts,
    tasks: Vec<TaskData>,
}

impl Pack {
    /// Opens a sealed pack.
    ///
    /// # Errors
    /// The file is invalid; the error names the file and the entry.
    pub fn open(path: &Path, password: &Password) -> Result<Self, PackError> {
        let sealed = service_kit::named_files::read(path, sealed::SEALED_BYTES_MAX).map_err(io(path))?;
        Self::open_bytes(&path.display().to_string(), &sealed, password)
    }

    /// Opens a sealed pack from memory; `name` appears in errors.
    ///
    /// # Errors
    /// The bytes are invalid; the error names the entry.
    pub fn open_bytes(name: &str, sealed: &[u8], password: &Password) -> Result<Self, PackError> {
        let (manifest, parts) = sealed::open(name, sealed, password)?;
        Self::of(manifest, parts)
    }

    /// A pack from its unsealed files.
    ///
    /// # Errors
    /// A file is invalid.
    pub fn from_parts(parts: Parts) -> Result<Self, PackError> {
        Self::of(Manifest::of(&parts)?, parts)
    }

    /// The built-in pack.
    ///
    /// # Errors
    /// None in a program that passed its tests.
    pub fn builtin() -> Result<Self, PackError> {
        Self::open_bytes("built-in pack", BUILTIN, &published_password())
    }

    /// [`Pack::builtin`], opened once per process.
    ///
    /// # Errors
    /// As [`Pack::builtin`]; errors are not kept.
    pub fn shared_builtin() -> Result<Arc<Self>, PackError> {
        static SHARED: std::sync::OnceLock<Arc<Pack>> = std::sync::OnceLock::new();
        if let Some(pack) = SHARED.get() {
            return Ok(pack.clone());
        }
        let pack = Arc::new(Self::builtin()?);
        Ok(SHARED.get_or_init(|| pack).clone())
    }

    fn of(manifest: Manifest, parts: Parts) -> Result<Self, PackError> {
        let labels = manifest.header.groups.iter().flat_map(|group| &group.tasks);
        let tasks = labels.map(|label| read_task(label, &parts)).collect::<Result<Vec<_>, _>>()?;
        for (index, task) in tasks.iter().enumerate() {
            let chars = task.label.as_str().chars().count();
            if chars > LABEL_CHARS_MAX {
                return Err(parts.invalid(
                    HEADER_PATH,
                    format_args!(
                        "the label of a task is {chars} characters long; it may have {LABEL_CHARS_MAX}"
                    ),
                ));
            }
            if tasks[..index].iter().any(|earlier| earlier.label == task.label) {
                return Err(
                    parts.invalid(HEADER_PATH, format_args!("the task `{}` is listed twice", task.label))
                );
            }
        }
        Ok(Self { hash: manifest.hash(), manifest, parts, tasks })
    }

    /// What the pack declares, with the hashes of its entries.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The author's description.
    pub fn header(&self) -> &Header {
        &self.manifest.header
    }

    /// The hash, which identifies exactly these exercises.
    pub fn hash(&self) -> &PackHash {
        &self.hash
    }

    /// All tasks, in the order of the groups, with included texts in place.
    pub fn tasks(&self) -> &[TaskData] {
        &self.tasks
    }

    /// Whether a task is in the default selection of a run.
    pub fn is_default(&self, label: &TaskLabel) -> bool {
        self.header().groups.iter().any(|group| group.default && group.tasks.contains(label))
    }

    /// The group that lists a task.
    pub fn group_of(&self, label: &TaskLabel) -> Option<&str> {
        let group = self.header().groups.iter().find(|group| group.tasks.contains(label))?;
        Some(&group.name)
    }

    /// The graphs of the pack, as a builder: graphs can be replaced before it is built.
    ///
    /// # Errors
    /// A graph's entry is missing, or its format unknown.
    pub fn graphs(&self) -> Result<GraphLibraryBuilder, PackError> {
        let mut builder = GraphLibrary::builder();
        for graph in &self.header().graphs {
            let format = graph.source.format().map_err(|message| self.parts.invalid(HEADER_PATH, message))?;
            builder = match graph.source.clone() {
                GraphSource::Stored { file, .. } => {
                    self.parts.text(&file)?;
                    // Of all parts this one, so that a deferred graph does not keep the others.
                    let content = self.parts.get(&file).cloned();
                    builder.with(&graph.name, format, move || match &content {
                        Some(content) => Ok(content.to_vec()),
                        None => Err(format!("no entry `{file}`")),
                    })
                }
                GraphSource::Generated { generator: Generator::Bestiary, seed, triples, sha256 } => {
                    builder.with(&graph.name, format, move || generated_bestiary(seed, triples, &sha256))
                }
            };
        }
        Ok(builder)
    }

    /// The tasks of the default selection, ready to run.
    ///
    /// # Errors
    /// The first task or case that cannot be used.
    pub fn build(&self) -> Result<Vec<Task>, PackError> {
        self.build_selected(&self.graphs()?.build(), |task| self.is_default(&task.label))
    }

    /// The selected tasks, ready to run with these graphs.
    ///
    /// # Errors
    /// The first task or case that cannot be used.
    pub fn build_selected(
        &self,
        graphs: &GraphLibrary,
        select: impl Fn(&TaskData) -> bool,
    ) -> Result<Vec<Task>, PackError> {
        let selected = self.tasks.iter().filter(|task| select(task)).cloned();
        selected
            .map(|task| {
                Task::build(task, graphs, self.header().compat).map_err(|source| PackError::Task {
                    pack: self.parts.name().to_owned(),
                    source: Box::new(source),
                })
            })
            .collect()
    }

    /// The files of the pack, for editing; see [`Parts::write_dir`].
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The name of this pack in errors and reports.
    pub fn name(&self) -> &str {
        self.parts.name()
    }
}

/// Parses the task of a label: TOML, written by people, which may refer to files, or JSON, written by programs.
fn read_task(label: &TaskLabel, parts: &Parts) -> Result<TaskData, PackError> {
    let (toml, json) = (format!("tasks/{label}.toml"), format!("tasks/{label}.json"));
    let (path, mut task): (_, TaskData) = if parts.get(&json).is_some() && parts.get(&toml).is_none() {
        let task = serde_json::from_str(parts.text(&json)?).map_err(|e| parts.invalid(&json, e))?;
        (json, task)
    } else {
        let mut value: Value = toml::from_str(parts.text(&toml)?).map_err(|e| parts.invalid(&toml, e))?;
        include::resolve(&mut value, parts)?;
        let task = serde_json::from_value(value).map_err(|e| parts.invalid(&toml, e))?;
        (toml, task)
    };
    for case in task.cases.iter_mut().filter_map(Arc::get_mut) {
        case.shrink_to_fit();
    }
    if task.label != *label {
        return Err(parts.invalid(&path, format_args!("it holds the task `{}`", task.label)));
    }
    Ok(task)
}

/// Generates and checks a graph: a changed generator must not silently change the exercises.
fn generated_bestiary(seed: u64, triples: usize, sha256: &str) -> Result<Vec<u8>, String> {
    let bestiary = bestiary::generate(seed);
    let found = sha256_hex(bestiary.turtle.as_bytes());
    if bestiary.triples != triples || found != sha256 {
        return Err(format!(
            "the generator produced {} triples with SHA-256 {found}, but the pack expects {triples} with {sha256}",
            bestiary.triples
        ));
    }
    Ok(bestiary.turtle.into_bytes())
}
