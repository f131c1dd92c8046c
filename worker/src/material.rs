//! Opens the pack of a run and builds its tasks, here and in the evaluation processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::TaskLabel;
use packs::{Pack, PackError, published_password};
use serde::{Deserialize, Serialize};
use tasks::{Compat, GraphLibrary, Task, TaskData, Wording};

use crate::evaluate::TaskList;

/// Name of the built-in pack.
pub const CORE: &str = "core";

/// The hidden command that starts an evaluation process.
pub const EVALUATOR_COMMAND: &str = "evaluation-process";

/// The tasks that a process needs, as a parent tells its evaluation processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MaterialRequest {
    /// `core` or the path of a pack file.
    pub pack: String,
    /// Labels within the pack, in the desired order.
    pub tasks: Vec<String>,
    /// Tasks of judges as JSON, instead of those of a pack. Each has one case only, because the verdict on a judge's
    /// reply does not depend on the case. So one process can judge the replies of any number of runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<String>,
}

impl MaterialRequest {
    /// The request for the tasks of a pack; for tasks of judges, a request that does not name the pack.
    pub fn of(pack: &str, tasks: &[Arc<Task>]) -> Self {
        if !tasks.is_empty() && tasks.iter().all(|task| task.class.judges) {
            let judges = tasks.iter().map(|task| stand_in(task)).collect();
            return Self { pack: CORE.to_owned(), tasks: Vec::new(), judges };
        }
        let tasks = tasks.iter().map(|task| task.label.to_string()).collect();
        Self { pack: pack.to_owned(), tasks, judges: Vec::new() }
    }

    /// Whether the tasks are those of judges, with one case each.
    pub fn is_of_judges(&self) -> bool {
        !self.judges.is_empty()
    }
}

/// A task of judges as JSON, with one empty case in place of its cases.
fn stand_in(task: &Task) -> String {
    let data = TaskData {
        label: TaskLabel::new(task.class.name()),
        class: task.class_name.clone(),
        version: task.version.clone(),
        parameters: task.parameters.clone(),
        wording: Wording::default(),
        cases: vec![Arc::default()],
    };
    serde_json::to_string(&data).unwrap_or_default()
}

/// Why there are no tasks.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// The pack cannot be used.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The pack lacks a task.
    #[error("the pack {pack} has no task `{task}`")]
    NoTask {
        /// Name of the pack.
        pack: String,
        task: String,
    },
    /// A file of the pack folder cannot be used.
    #[error("the pack folder: {path}: {source}")]
    Folder {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The pack has another hash.
    #[error("pack {wanted} was requested, but {from} is {found}")]
    OtherPack {
        /// Requested hash.
        wanted: String,
        /// Actual hash.
        found: String,
        /// Its origin.
        from: String,
    },
    /// A task of judges cannot be built.
    #[error(transparent)]
    Task(#[from] tasks::task::TaskError),
    /// The request of a parent is invalid.
    #[error("the request for tasks cannot be read: {0}")]
    Request(#[from] serde_json::Error),
}

/// Opens a pack by its name in configurations: `core`, one that comes with the program, or a path.
///
/// # Errors
/// The file cannot be read or opened.
pub fn open_pack(name: &str) -> Result<Arc<Pack>, MaterialError> {
    if name == CORE {
        return Ok(Pack::shared_builtin()?);
    }
    let password = published_password();
    Ok(Arc::new(match packs::bundled(name) {
        Some(sealed) => Pack::open_bytes(name, sealed, &password)?,
        None => Pack::open(Path::new(name), &password)?,
    }))
}

/// Builds the tasks of these labels, in order. Loading large graphs is deferred to the evaluation processes: this
/// process starts sooner and stays small.
///
/// # Errors
/// A task is missing, or cannot be built.
pub fn build_to_ask<'a>(
    pack: &Pack,
    labels: impl IntoIterator<Item = &'a TaskLabel>,
) -> Result<TaskList, MaterialError> {
    let labels: Vec<&str> = labels.into_iter().map(TaskLabel::as_str).collect();
    Ok(build(pack, &pack.graphs()?.build_deferred(), &labels)?.into())
}

fn build(pack: &Pack, graphs: &GraphLibrary, labels: &[&str]) -> Result<Vec<Arc<Task>>, MaterialError> {
    let built = pack.build_selected(graphs, |task| labels.contains(&task.label.as_str()))?;
    let built: Vec<Arc<Task>> = built.into_iter().map(Arc::new).collect();
    let in_order = labels.iter().map(|label| {
        let task = built.iter().find(|task| task.label.as_str() == *label);
        task.cloned().ok_or_else(|| MaterialError::NoTask {
            pack: pack.header().name.clone(),
            task: (*label).to_owned(),
        })
    });
    in_order.collect()
}

/// Loads the tasks of a [`MaterialRequest`] including large graphs: the loader of evaluation processes.
///
/// # Errors
/// The pack or a task cannot be used.
pub fn load(request: &serde_json::Value) -> Result<Vec<Arc<Task>>, String> {
    let load = || -> Result<Vec<Arc<Task>>, MaterialError> {
        let request = MaterialRequest::deserialize(request)?;
        if request.is_of_judges() {
            let read = |json: &String| -> Result<Arc<Task>, MaterialError> {
                let data: TaskData = serde_json::from_str(json)?;
                Ok(Arc::new(Task::build(data, &GraphLibrary::default(), Compat::default())?))
            };
            return request.judges.iter().map(read).collect();
        }
        if request.tasks.is_empty() {
            // Of a process that judges by what it is given.
            return Ok(Vec::new());
        }
        let labels: Vec<&str> = request.tasks.iter().map(String::as_str).collect();
        let pack = open_pack(&request.pack)?;
        build(&pack, &pack.graphs()?.build(), &labels)
    };
    load().map_err(|error| error.to_string())
}

/// Opens a fetched pack after checking its hash.
///
/// # Errors
/// The hash differs, or it cannot be opened.
pub fn open_fetched(hash: &str, sealed: &[u8]) -> Result<Arc<Pack>, MaterialError> {
    let name = format!("pack {hash} as sent by the coordinator");
    let pack = Pack::open_bytes(&name, sealed, &published_password())?;
    if pack.hash().as_str() != hash {
        return Err(MaterialError::OtherPack {
            wanted: hash.to_owned(),
            found: pack.hash().as_str().to_owned(),
            from: "the coordinator".to_owned(),
        });
    }
    Ok(Arc::new(pack))
}

/// A folder of packs by hash, `HASH.kgpack`: a cache of downloaded packs.
#[derive(Clone, Debug)]
pub struct PackFolder(PathBuf);

impl PackFolder {
    /// A folder, created at the first write.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The pack of this hash, and the name by which [`open_pack`] opens it; `None` if it must be fetched. A file that
    /// cannot be opened, or is another pack, counts as missing.
    pub fn find(&self, hash: &str) -> Option<(String, Arc<Pack>)> {
        let path = self.path(hash);
        if !path.exists() {
            return None;
        }
        match open_pack(&path.to_string_lossy()) {
            Ok(pack) if pack.hash().as_str() == hash => Some((path.to_string_lossy().into_owned(), pack)),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a cached pack cannot be used and is fetched again");
                None
            }
        }
    }

    /// Stores a fetched pack after checking its hash.
    ///
    /// # Errors
    /// The hash differs, or the file cannot be written.
    pub fn keep(&self, hash: &str, sealed: &[u8]) -> Result<(String, Arc<Pack>), MaterialError> {
        let pack = open_fetched(hash, sealed)?;
        let path = self.path(hash);
        let at = |source| MaterialError::Folder { path: path.clone(), source };
        std::fs::create_dir_all(&self.0).map_err(at)?;
        // Written under another name first: several workers may share the folder, and one may be killed here.
        let new = self.0.join(format!("{hash}.{}.new", std::process::id()));
        std::fs::write(&new, sealed).and_then(|()| std::fs::rename(&new, &path)).map_err(at)?;
        Ok((path.to_string_lossy().into_owned(), pack))
    }

    fn path(&self, hash: &str) -> PathBuf {
        // A valid hash is hexadecimal; anything else could leave the folder.
        let name: String = hash.chars().filter(char::is_ascii_hexdigit).take(64).collect();
        self.0.join(format!("{name}.kgpack"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_leads_to_the_same_tasks_in_its_order() {
        let pack = open_pack(CORE).unwrap();
        let labels: Vec<TaskLabel> = pack.tasks().iter().rev().take(2).map(|t| t.label.clone()).collect();
        let asked = build_to_ask(&pack, &labels).unwrap();
        let tasks = labels.iter().map(ToString::to_string).collect();
        let request =
            serde_json::to_value(MaterialRequest { pack: CORE.to_owned(), tasks, judges: Vec::new() })
                .unwrap();
        let judged = load(&request).unwrap();
        let names = |tasks: &[Arc<Task>]| tasks.iter().map(|t| t.class_name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&asked), names(&judged));
        let error = build_to_ask(&pack, &["no-such-task".into()]).err().unwrap().to_string();
        assert!(error.contains("no task `no-such-task`"), "{error}");
    }

    #[test]
    fn a_fetched_pack_is_kept_if_it_is_the_one_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = PackFolder::new(dir.path().join("packs"));
        let builtin = Pack::shared_builtin().unwrap();
        let hash = builtin.hash().as_str();
        let sealed = packs::seal(builtin.parts(), &published_password()).unwrap();
        assert!(folder.find(hash).is_none());
        let (name, pack) = folder.keep(hash, &sealed).unwrap();
        assert_eq!((pack.hash(), open_pack(&name).unwrap().hash()), (builtin.hash(), builtin.hash()));
        assert!(folder.find(hash).is_some());
        std::fs::write(dir.path().join(format!("packs/{hash}.kgpack")), &sealed[..100]).unwrap();
        assert!(folder.find(hash).is_none(), "a damaged file is fetched again");
        let error = folder.keep(&"0".repeat(64), &sealed).unwrap_err();
        assert!(matches!(error, MaterialError::OtherPack { .. }), "{error}");
        assert!(folder.path("../../etc").ends_with("packs/ec.kgpack"));
    }
}
