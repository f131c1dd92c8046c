//! Where runs are: in a folder of this machine, or in a fleet.
//!
//! [`Place`] is the one or the other, by the options `data_dir` and `remote` and by the `login` of the user; `here` shows a folder
//! as a coordinator shows a fleet, and `names` resolves abbreviated names in both. `folders` reads runs in a folder, `local` asks a
//! coordinator in this process about judged benchmarks, `disk` says what records take and whether there is room for more, `live` what
//! is under way in the process that writes them, `steer` sends commands that several verbs share, `audit_dir` reads audit logs,
//! `queue_login` is the password of Redis, `fetch` copies runs of a fleet. `packs` opens packs with their `passwords`, `task_files`
//! compiles those of task files, `disclosure` decides how their texts may be written; `targets` lists what a configuration contacts,
//! `trust` checks that its user agreed to that. `kubernetes` is the namespace of a pod. `completing` offers names for the `line` that
//! is typed.

pub mod audit_dir;
pub mod completing;
pub mod data_dir;
pub mod disclosure;
pub mod disk;
pub mod fetch;
pub mod folders;
pub mod here;
pub mod kubernetes;
pub mod line;
pub mod live;
pub mod local;
pub mod login;
pub mod names;
pub mod packs;
pub mod passwords;
pub mod queue_login;
pub mod remote;
pub mod steer;
pub mod targets;
pub mod task_files;
pub mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::RunId;
use domain::control::Control;

use crate::kit::runtime::block_on;
use crate::place::data_dir::DataDir;
use crate::place::here::Folder;
use crate::place::remote::{MaybeRemote, Remote};

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
        Ok(remote.named()?.map_or_else(|| Self::Here(data.path().to_owned()), Self::Fleet))
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
}
