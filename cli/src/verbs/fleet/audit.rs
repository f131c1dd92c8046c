//! `kgfleet fleet audit`: who did what at the coordinators whose audit logs are here.

use std::path::PathBuf;

use anyhow::Context;
use coordinator::audit::{AuditReading, Deed};
use jiff::{SignedDuration, Timestamp};

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, printable};
use crate::kit::screen::print_all;
use crate::place::folders::AUDIT;

/// Show who did what: logins, commands, reads of protected texts, changes of identities.
///
/// Reads the audit log that each coordinator keeps, by default in the folder `audit` of its --data-dir, on the machine of the
/// coordinator. An act stands there before it is done. Refused attempts are in the log of the coordinator.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder of the audit log of a coordinator, or of several; repeatable, or a list with commas. Default: `audit` in
    /// --data-dir.
    #[arg(long, value_name = "DIR", env = "KGFLEET_AUDIT_DIR", value_delimiter = ',')]
    audit_dir: Vec<PathBuf>,
    /// Folder of runs of a coordinator.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
    /// Only what this identity did.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only this kind, such as `submit`, `remove` or `login`.
    #[arg(long, value_name = "ACT")]
    act: Option<String>,
    /// Only of the last so many hours.
    #[arg(long, value_name = "HOURS")]
    hours: Option<u32>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What stands in the folders that are named, or in the usual one.
    fn read(&self) -> anyhow::Result<AuditReading> {
        let usual = [self.data_dir.join(AUDIT)];
        let (folders, hint) = match self.audit_dir.as_slice() {
            [] => (&usual[..], "; name its folder with --audit-dir"),
            named => (named, ""),
        };
        let mut all = AuditReading::default();
        for folder in folders {
            if !folder.exists() {
                return Err(usage!("there is no audit log in {}{hint}", folder.display()));
            }
            let read = coordinator::audit::read_all(folder)
                .with_context(|| format!("cannot read the audit log in {}", folder.display()))?;
            all.add(read);
        }
        Ok(all)
    }
}

/// `kgfleet fleet audit`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let reading = arguments.read()?;
    let hours = arguments.hours.map(|hours| SignedDuration::from_hours(hours.into()));
    let since = hours.and_then(|hours| Timestamp::now().checked_sub(hours).ok());
    let is_asked =
        |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let found = reading.entries.iter().filter(|entry| {
        is_asked(&arguments.who, &entry.deed.who)
            && is_asked(&arguments.act, &entry.deed.act)
            && since.is_none_or(|since| entry.at >= since)
    });
    print_all(&found.collect::<Vec<_>>(), arguments.json, |found| {
        let mut table = Table::default().left(["at", "who", "from", "act", "about"]);
        for entry in found {
            let Deed { who, from, act, about } = &entry.deed;
            let at = entry.at.strftime("%Y-%m-%d %H:%M:%S").to_string();
            table.row([at].into_iter().chain([who, from, act, about].map(|text| printable(text))));
        }
        table
    })?;
    if reading.broken > 0 {
        eprintln!(
            "warning: {} lines of the audit log cannot be read, such as the last one of a process that was killed",
            reading.broken
        );
    }
    Ok(ExitCode::Success)
}
