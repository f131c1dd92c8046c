//! Where runs are: in a folder of this machine, or in a fleet.
//!
//! [`Place`] is the one or the other, by its [`PlaceOptions`] and by the `login` of the user: `here` shows a folder as a coordinator
//! shows a fleet, and `names` resolves abbreviated names in both. What a verb reads is [`opened`] from either, or from an archive:
//! `fetch` copies records of a fleet, and `folders` reads runs in a folder. `local` is a coordinator in this process, `disk` says
//! what records take and whether there is room for more, `live` what is under way in the process that writes them,
//! `queue_login` is the password of Redis. `packs` opens packs with their passwords, `task_files` compiles those
//! of task files, `disclosure` decides how their texts may be written; `targets` lists what a configuration contacts, `trust` checks
//! that its user agreed to that. `kubernetes` is the namespace of a pod. `completing` offers names for the line that is typed.

pub mod completing;
pub mod disclosure;
pub mod disk;
pub mod fetch;
pub mod folders;
pub mod here;
pub mod kubernetes;
pub mod live;
pub mod local;
pub mod login;
pub mod names;
pub mod opened;
pub mod packs;
pub mod queue_login;
pub mod remote;
pub mod targets;
pub mod task_files;
pub mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::RunId;
use domain::control::Control;

use crate::kit::runtime::block_on;
use crate::place::here::Folder;
use crate::place::opened::{OpenRun, OpenedBenchmark};
use crate::place::remote::{MaybeRemote, Remote};

/// The option for the folder of runs.
#[derive(Clone, Debug, clap::Args)]
pub struct DataDir {
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    pub data_dir: PathBuf,
}

/// Options for verbs that act in a fleet or on the runs of this machine.
#[derive(Clone, Debug, clap::Args)]
pub struct PlaceOptions {
    #[command(flatten)]
    pub remote: MaybeRemote,
    #[command(flatten)]
    pub data: DataDir,
}

impl PlaceOptions {
    /// The place that they name.
    ///
    /// # Errors
    /// What is kept of a login cannot be used.
    pub fn place(&self) -> anyhow::Result<Place> {
        Place::of(&self.remote, &self.data)
    }
}

/// Where a verb acts.
pub enum Place {
    Fleet(Remote),
    /// The data folder at this path.
    Here(PathBuf),
}

impl Place {
    /// The place that the options name.
    ///
    /// # Errors
    /// What is kept of a login cannot be used.
    pub fn of(remote: &MaybeRemote, data: &DataDir) -> anyhow::Result<Self> {
        Ok(remote.named()?.map_or_else(|| Self::Here(data.data_dir.clone()), Self::Fleet))
    }

    /// Its folder, if it is one of this machine.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Fleet(_) => None,
            Self::Here(folder) => Some(folder),
        }
    }

    /// Whom to ask there. Requires a runtime.
    pub fn control(&self) -> anyhow::Result<Arc<dyn Control>> {
        Ok(match self {
            Self::Fleet(remote) => Arc::new(remote.client()?),
            Self::Here(folder) => Arc::new(Folder::at(folder)?),
        })
    }

    /// Makes calls about a run or judged benchmark, whose name may be abbreviated.
    pub fn about<T>(
        &self,
        name: &str,
        calls: impl AsyncFnOnce(&dyn Control, &RunId) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        block_on(async {
            let control = self.control()?;
            calls(&*control, &names::resolve(name, &*control).await?).await
        })
    }

    /// The files of a run or judged benchmark, whose name may be abbreviated, or of an archive.
    ///
    /// # Errors
    /// There is none of this name; it cannot be fetched or unpacked; its manifest was altered.
    pub fn open(&self, name: &str) -> anyhow::Result<OpenedBenchmark> {
        self.open_by(name, folders::open)
    }

    /// As [`open`](Self::open), where manifests may have been altered: to say so.
    pub fn open_altered(&self, name: &str) -> anyhow::Result<OpenedBenchmark> {
        self.open_by(name, folders::open_altered)
    }

    fn open_by(&self, name: &str, open: OpenRun) -> anyhow::Result<OpenedBenchmark> {
        match self {
            _ if opened::is_archive(name) => OpenedBenchmark::unpacked(Path::new(name), open),
            Self::Fleet(remote) => OpenedBenchmark::copied(open, |folder| fetch::fetch(remote, name, folder)),
            Self::Here(folder) => OpenedBenchmark::in_folder(name, folder, open),
        }
    }
}
