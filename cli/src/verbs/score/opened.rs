//! The packs that lines have named, each with its tasks and its evaluation processes.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use domain::TaskLabel;
use packs::Pack;
use tasks::EvaluationLimits;
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};
use worker::material::{self, CORE, MaterialRequest, PackFolder};
use worker::{EVALUATOR_COMMAND, Sandbox, SandboxConfig, SandboxLimits, TaskList, scorer};

use crate::kit::output::explain;
use crate::place::{packs as material_of, task_files};

/// Most packs that a process has opened, each with its evaluation processes.
const PACKS_MAX: usize = 16;

/// A pack whose answers can be judged.
pub(super) struct OpenedPack {
    pub(super) pack: Arc<Pack>,
    pub(super) tasks: TaskList,
    pub(super) places: HashMap<TaskLabel, usize>,
    config: SandboxConfig,
    /// Started when the first answer comes: who only lists tasks or asks for prompts needs none.
    sandbox: OnceCell<Sandbox>,
    /// The version of the scoring rules with their limits, as records name it.
    pub(super) scorer: String,
}

impl OpenedPack {
    /// What judges answers.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) async fn sandbox(&self) -> Result<&Sandbox, String> {
        started(&self.sandbox, &self.config).await
    }
}

async fn started<'s>(sandbox: &'s OnceCell<Sandbox>, config: &SandboxConfig) -> Result<&'s Sandbox, String> {
    let start = || async { Sandbox::start_without_recall(config.clone()) };
    sandbox.get_or_try_init(start).await.map_err(|error| error.to_string())
}

type Opening = Arc<OnceCell<Result<Arc<OpenedPack>, String>>>;

/// Opens packs when they are first named.
pub(super) struct OpenedPacks {
    program: PathBuf,
    children: NonZeroUsize,
    /// Task files are compiled into packs here, from where evaluation processes read them.
    folder: TempDir,
    opened: Mutex<HashMap<String, Opening>>,
    /// Judges by what lines give.
    given: OnceCell<Sandbox>,
}

impl OpenedPacks {
    /// None yet.
    ///
    /// # Errors
    /// This program's own file or a folder for temporary files is missing.
    pub(super) fn new(children: NonZeroUsize) -> anyhow::Result<Self> {
        Ok(Self {
            program: std::env::current_exe().context("cannot find this program's own file")?,
            children,
            folder: tempfile::tempdir().context("cannot make a folder for packs of task files")?,
            opened: Mutex::default(),
            given: OnceCell::new(),
        })
    }

    /// The pack of a name: `core`, one that comes with the program, a pack file or a task file. It stays what it was when it was
    /// first named.
    ///
    /// # Errors
    /// It cannot be used, or is one too many.
    pub(super) async fn of(self: &Arc<Self>, name: &str) -> Result<Arc<OpenedPack>, String> {
        let opening = {
            let mut opened = self.opened.lock().await;
            if !opened.contains_key(name) && opened.len() >= PACKS_MAX {
                return Err(format!("{PACKS_MAX} packs are open, which are the most; start another process"));
            }
            Arc::clone(opened.entry(name.to_owned()).or_default())
        };
        let open = || async {
            let (packs, name) = (Arc::clone(self), name.to_owned());
            let opened = tokio::task::spawn_blocking(move || packs.open(&name)).await;
            let opened = opened.unwrap_or_else(|_| Err(anyhow!("the thread that opens the pack ended")));
            opened.map(Arc::new).map_err(|error| explain(&error))
        };
        let result = opening.get_or_init(open).await.clone();
        if result.is_err() {
            // A file that is written later is found then.
            self.opened.lock().await.remove(name);
        }
        result
    }

    /// Judges by what lines give, within the usual limits.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) async fn given(&self) -> Result<&Sandbox, String> {
        let request = MaterialRequest { pack: CORE.to_owned(), tasks: Vec::new(), judges: Vec::new() };
        let config = self.config(&request, EvaluationLimits::default()).map_err(|error| explain(&error))?;
        started(&self.given, &config).await
    }

    fn open(&self, name: &str) -> anyhow::Result<OpenedPack> {
        let pack = material_of::open_pack(name)?;
        let place = match task_files::sealed(name)? {
            None => name.to_owned(),
            Some(sealed) => PackFolder::new(self.folder.path()).keep(pack.hash().as_str(), &sealed)?.0,
        };
        let tasks = material::build_to_ask(&pack, pack.tasks().iter().map(|task| &task.label))?;
        let labels = tasks.iter().map(|task| task.label.to_string()).collect();
        let limits = pack.header().limits;
        // Unlike a run, this never takes the tasks of judges for one.
        let request = MaterialRequest { pack: place, tasks: labels, judges: Vec::new() };
        Ok(OpenedPack {
            config: self.config(&request, limits)?,
            sandbox: OnceCell::new(),
            places: tasks.iter().enumerate().map(|(place, task)| (task.label.clone(), place)).collect(),
            scorer: scorer(limits, Some(SandboxLimits::of(&limits))),
            tasks,
            pack,
        })
    }

    fn config(&self, request: &MaterialRequest, limits: EvaluationLimits) -> anyhow::Result<SandboxConfig> {
        Ok(SandboxConfig {
            program: self.program.clone(),
            arguments: vec![EVALUATOR_COMMAND.to_owned()],
            tasks: serde_json::to_value(request)?,
            children: self.children,
            evaluation: limits,
            limits: SandboxLimits::of(&limits),
        })
    }
}
