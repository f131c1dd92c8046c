//! `kgfleet fleet audit`: who did what at the coordinators whose audit logs are here.

use coordinator::audit::Deed;
use jiff::{SignedDuration, Timestamp};

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, printable};
use crate::kit::screen::print_all;
use crate::place::audit_dir::AuditDirs;

/// Show who did what: logins, commands, reads of protected texts, changes of identities, refused attempts.
///
/// Reads the audit log that each coordinator keeps, by default in the folder `audit` of its --data-dir, on the machine of the
/// coordinator. An act stands there before it is done. Of refusals of the same kind in a minute, and of calls of an identity from
/// one machine in an hour, the first stands there.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    audit: AuditDirs,
    /// Only what this identity did.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only this kind, such as `refused`, `remove` or `login`.
    #[arg(long, value_name = "ACT")]
    act: Option<String>,
    /// Only of the last so many hours.
    #[arg(long, value_name = "HOURS")]
    hours: Option<u32>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
}

/// `kgfleet fleet audit`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Some(reading) = arguments.audit.read()? else {
        return Err(usage!(
            "there is no audit log in {}; name its folder with --audit-dir",
            arguments.audit.usual().display()
        ));
    };
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
