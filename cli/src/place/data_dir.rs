//! The option for the folder of runs.

use std::path::{Path, PathBuf};

use domain::RunId;
use results::{RunDir, RunManifest};

use crate::kit::exit_code::usage;
use crate::place::{folders, local, names};

#[derive(Debug, clap::Args)]
pub struct DataDir {
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
}

impl DataDir {
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
                "{name} is a pipeline: name the run of one of its stages, such as {stage} (`kgfleet runs --stages` lists them)"
            ));
        }
        opened
    }
}
