//! The option for the folder of runs.

use std::path::{Path, PathBuf};

use coordinator::BenchmarkCopy;
use domain::RunId;
use results::{RunDir, RunManifest};

use crate::kit::exit_code::usage;
use crate::kit::runtime::block_on;
use crate::place::{folders, local, names};

#[derive(Debug, clap::Args)]
pub struct DataDir {
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
}

/// A benchmark of this machine.
pub struct OpenedBenchmark {
    pub name: RunId,
    /// Its runs: one, unless it is judged.
    pub runs: Vec<(RunDir, RunManifest)>,
    /// Whether it has documents beside its runs.
    pub is_judged: bool,
}

impl OpenedBenchmark {
    /// The documents of a judged benchmark in a data folder, with every run whose records belong to it: those that it takes
    /// answers from too. `None` for a run.
    pub fn documents(&mut self, data_dir: &Path) -> anyhow::Result<Option<BenchmarkCopy>> {
        if !self.is_judged {
            return Ok(None);
        }
        let documents = block_on(local::documents(&self.name, data_dir))?;
        if let Some(documents) = &documents {
            self.runs =
                documents.runs().map(|run| folders::open(run, data_dir)).collect::<anyhow::Result<_>>()?;
        }
        Ok(documents)
    }
}

impl DataDir {
    /// The folder at this path.
    pub fn at(path: &Path) -> Self {
        Self { data_dir: path.to_owned() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.data_dir
    }

    /// A run in it, by its name.
    pub fn open(&self, run: &str) -> anyhow::Result<(RunDir, RunManifest)> {
        self.open_by(run, folders::open)
    }

    /// As [`open`](Self::open), for a run whose manifest may have been altered: to report that, or to remove the run.
    pub fn open_altered(&self, run: &str) -> anyhow::Result<(RunDir, RunManifest)> {
        self.open_by(run, folders::open_altered)
    }

    /// A benchmark in it, by its name.
    pub fn open_all(&self, name: &str) -> anyhow::Result<OpenedBenchmark> {
        self.open_all_by(name, folders::open)
    }

    /// The same for runs whose manifests may have been altered: to say so.
    pub fn open_all_altered(&self, name: &str) -> anyhow::Result<OpenedBenchmark> {
        self.open_all_by(name, folders::open_altered)
    }

    fn open_all_by(
        &self,
        name: &str,
        open: fn(&RunId, &Path) -> anyhow::Result<(RunDir, RunManifest)>,
    ) -> anyhow::Result<OpenedBenchmark> {
        let name = names::of_folder(name, &self.data_dir)?;
        let runs = local::runs_in(&name, &self.data_dir)?;
        if runs.is_empty() {
            let run = open(&name, &self.data_dir)?;
            return Ok(OpenedBenchmark { name, runs: vec![run], is_judged: false });
        }
        let runs = runs.iter().map(|run| open(run, &self.data_dir)).collect::<anyhow::Result<_>>()?;
        Ok(OpenedBenchmark { name, runs, is_judged: true })
    }

    fn open_by(
        &self,
        run: &str,
        open: fn(&RunId, &Path) -> anyhow::Result<(RunDir, RunManifest)>,
    ) -> anyhow::Result<(RunDir, RunManifest)> {
        let name = names::of_folder(run, &self.data_dir)?;
        let opened = open(&name, &self.data_dir);
        // Runs are listed only where this is none.
        if opened.is_err()
            && let Some(stage) = local::runs_in(&name, &self.data_dir)?.first()
        {
            return Err(usage!(
                "{name} is judged: name one of its runs, such as {stage} (`kgfleet status --fleet here {name}` lists them)"
            ));
        }
        opened
    }
}
