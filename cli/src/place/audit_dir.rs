//! The option for the folders of audit logs.

use std::path::PathBuf;

use anyhow::Context;
use coordinator::audit::{self, AuditReading};

use crate::kit::exit_code::usage;
use crate::place::folders::AUDIT;

/// Folders in which coordinators note who did what.
#[derive(Debug, clap::Args)]
pub struct AuditDirs {
    /// Folder of the audit log of a coordinator, or of several; repeatable, or a list with commas. Default: `audit` in
    /// --data-dir.
    #[arg(long, value_name = "DIR", env = "KGFLEET_AUDIT_DIR", value_delimiter = ',')]
    audit_dir: Vec<PathBuf>,
    /// Folder of runs of a coordinator.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
}

impl AuditDirs {
    /// What stands in these folders; `None` if none is named and the usual one does not exist.
    pub fn read(&self) -> anyhow::Result<Option<AuditReading>> {
        let usual = self.data_dir.join(AUDIT);
        if self.audit_dir.is_empty() && !usual.exists() {
            return Ok(None);
        }
        let mut all = AuditReading::default();
        for folder in if self.audit_dir.is_empty() { std::slice::from_ref(&usual) } else { &self.audit_dir } {
            if !folder.exists() {
                return Err(usage!("there is no audit log in {}", folder.display()));
            }
            let read = audit::read_all(folder)
                .with_context(|| format!("cannot read the audit log in {}", folder.display()))?;
            all.add(read);
        }
        Ok(Some(all))
    }

    /// The folder that is read if none is named.
    pub fn usual(&self) -> PathBuf {
        self.data_dir.join(AUDIT)
    }
}
