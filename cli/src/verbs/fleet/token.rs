//! `kgfleet fleet token`: the identities in a file that coordinators read, and their tokens.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use domain::caller::CallerRole;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proto::server::{Identities, ListedIdentity};

use super::identity::{self, NewIdentity};
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::{Table, printable};
use crate::kit::screen::Screen;
use crate::kit::whole_file;

/// Create, list and revoke the tokens of a cluster.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(New),
    List(List),
    Revoke(Revoke),
}

/// Create a token. It is printed once and stored nowhere else.
///
/// The token is printed on standard output or, with --out, written to a file that only its owner can read. The entry for
/// the coordinators' identity file (--tokens), which holds only the token's hash, is printed on standard error or, with
/// --append, appended to that file.
#[derive(Debug, clap::Args)]
struct New {
    /// Name of the identity, as shown in the history of runs.
    #[arg(long)]
    name: String,
    /// Role: reader, operator, worker or conductor; repeatable.
    #[arg(long = "role", required = true, value_parser = role)]
    roles: Vec<CallerRole>,
    /// Pattern of the worker names that it may use, such as `gpu-*`. Default: all.
    #[arg(long, value_name = "PATTERN")]
    workers: Option<String>,
    /// How many dialogues its benchmarks may have without a record, over all that are not finished or cancelled. What
    /// exceeds that is refused when it is submitted. Default: any number.
    #[arg(long, value_name = "N")]
    open_dialogues: Option<u64>,
    /// When its rights end: a time from now such as `12h` or `90d`, or a date such as 2027-01-31 (its beginning, UTC).
    /// Default: never.
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Timestamp>,
    /// Append the identity to this file; coordinators reload it by themselves.
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,
    /// Write the token to this new file, for its owner alone, instead of printing it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The file of identities that coordinators read.
#[derive(Debug, clap::Args)]
struct IdentityFile {
    /// File of identities, as for `kgfleet coordinator`.
    #[arg(long, value_name = "FILE", env = "KGFLEET_TOKENS", default_value = "tokens.toml")]
    tokens: PathBuf,
}

/// List identities: their roles, and when their rights end.
#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    file: IdentityFile,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
}

/// Take an identity's rights. Its name is not given to anybody else, because histories name it.
///
/// Every coordinator that reads this file knows within two seconds, without a restart, and ends calls in progress. A copy
/// of the file, such as a Secret of Kubernetes, has to be replaced as well.
#[derive(Debug, clap::Args)]
struct Revoke {
    /// Name of the identity.
    name: String,
    #[command(flatten)]
    file: IdentityFile,
}

fn role(text: &str) -> Result<CallerRole, String> {
    CallerRole::ALL
        .into_iter()
        .find(|role| role.as_str() == text)
        .ok_or_else(|| "expected reader, operator, worker or conductor".to_owned())
}

/// A time at which rights end, in the future.
fn expiry(text: &str) -> Result<Timestamp, String> {
    let now = Timestamp::now();
    let at = expiry_from(text, now).ok_or("expected a time such as 12h, 90d or 2027-01-31")?;
    if at > now { Ok(at) } else { Err("this time is over".to_owned()) }
}

fn expiry_from(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if let Ok(date) = text.parse::<Date>() {
        return date.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
    }
    let unit = text.chars().next_back()?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return None,
    };
    let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
    now.checked_add(SignedDuration::try_from_hours(number.checked_mul(hours)?)?).ok()
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::New(new) => create(&new)?,
        Command::List(list) => show(&list)?,
        Command::Revoke(revoke) => take_rights(&revoke)?,
    }
    Ok(ExitCode::Success)
}

fn create(new: &New) -> anyhow::Result<()> {
    let token = identity::token()?;
    let New { name, roles, workers, open_dialogues, expires, .. } = new;
    let (workers, open_dialogues, expires) = (workers.as_deref(), *open_dialogues, *expires);
    let entry = NewIdentity { name, roles, workers, open_dialogues, expires }.entry(&token);
    // Never write an entry that cannot be parsed.
    Identities::parse(&entry).map_err(Exit::usage)?;
    // A file that is there already is found before the identity is appended.
    let out = new.out.as_deref().map(new_file).transpose()?;
    let appended = match &new.append {
        None => {
            eprintln!("add this to the file that coordinators get as --tokens:\n\n{entry}");
            Ok(())
        }
        Some(path) => append(path, &entry),
    };
    if let (Err(_), Some((path, _))) = (&appended, &out) {
        // It is empty, and ours.
        let _ = std::fs::remove_file(path);
    }
    appended?;
    match out {
        Some((path, mut file)) => {
            let written = writeln!(file, "{token}").and_then(|()| file.sync_all());
            written.with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(writeln!(io::stdout(), "{token}")?),
    }
}

/// Creates a file for its owner alone.
fn new_file(path: &Path) -> anyhow::Result<(&Path, File)> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("cannot create {}", path.display())).map_err(Exit::usage)?;
    Ok((path, file))
}

/// Appends an entry to a file of identities, unless the whole could not be used then.
fn append(path: &Path, entry: &str) -> anyhow::Result<()> {
    let before = match path.exists() {
        true => whole_file::read_text(path).map_err(Exit::usage)?,
        false => String::new(),
    };
    Identities::parse(&format!("{before}\n{entry}"))
        .map_err(|error| usage!("with this identity {} could not be used: {error}", path.display()))?;
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(format!("\n{entry}").as_bytes()).and_then(|()| file.sync_all()))
        .with_context(|| format!("cannot write {}", path.display()))
}

impl IdentityFile {
    fn list(&self) -> anyhow::Result<Vec<ListedIdentity>> {
        let text = whole_file::read_text(&self.tokens).map_err(Exit::usage)?;
        Identities::list(&text)
            .with_context(|| format!("the identities in {}", self.tokens.display()))
            .map_err(Exit::usage)
    }
}

fn take_rights(Revoke { name, file }: &Revoke) -> anyhow::Result<()> {
    let Some(found) = file.list()?.into_iter().find(|identity| identity.name == *name) else {
        return Err(usage!("there is no identity `{name}` in {}", file.tokens.display()));
    };
    if let Some(at) = found.revoked {
        return Err(usage!("the rights of `{name}` were revoked at {at}"));
    }
    append(&file.tokens, &identity::revocation(name, Timestamp::now()))?;
    eprintln!("the rights of `{name}` end within two seconds where {} is read", file.tokens.display());
    Ok(())
}

fn show(list: &List) -> anyhow::Result<()> {
    let identities = list.file.list()?;
    let mut out = io::stdout().lock();
    let mut table = Table::default()
        .left(["name", "roles", "workers"])
        .right(["open dialogues"])
        .left(["rights", "expires"]);
    let now = Timestamp::now();
    for identity in &identities {
        let roles: Vec<&str> = identity.roles.iter().map(|role| role.as_str()).collect();
        if list.json {
            let line = serde_json::json!({
                "name": identity.name, "roles": roles, "workers": identity.workers,
                "expires": identity.expires, "revoked": identity.revoked,
                "open_dialogues": identity.open_dialogues,
            });
            writeln!(out, "{line}")?;
        }
        let text = |text: &Option<String>| printable(text.as_deref().unwrap_or_default());
        table.row(vec![
            printable(&identity.name),
            roles.join(", "),
            text(&identity.workers),
            identity.open_dialogues.map(|open| open.to_string()).unwrap_or_default(),
            state(identity, now),
            identity.expires.map(seen).unwrap_or_default(),
        ]);
    }
    if !list.json {
        Screen::here().table(&table, &mut out)?;
    }
    Ok(())
}

fn state(identity: &ListedIdentity, now: Timestamp) -> String {
    match (identity.revoked, identity.expires) {
        (Some(at), _) => format!("revoked {}", seen(at)),
        (None, Some(at)) if at <= now => "expired".to_owned(),
        _ => "valid".to_owned(),
    }
}

fn seen(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::identity::seconds_of;
    use super::*;

    #[test]
    fn an_expiry_is_a_time_from_now_or_a_date() {
        let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
        let at = |text: &str| expiry_from(text, now).map(seconds_of);
        assert_eq!(at("12h").as_deref(), Some("2026-11-25T00:00:00Z"));
        assert_eq!(at("90d").as_deref(), Some("2027-02-22T12:00:00Z"));
        assert_eq!(at("2w").as_deref(), Some("2026-12-08T12:00:00Z"));
        assert_eq!(at("2027-01-31").as_deref(), Some("2027-01-31T00:00:00Z"));
        assert_eq!(at("2027-01-31T08:30:00Z").as_deref(), Some("2027-01-31T08:30:00Z"));
        for text in
            ["", "d", "90", "90m", "d90", "9999999999999999999d", "999999999999999d", "tomorrow", "9ü"]
        {
            assert_eq!(at(text), None, "{text}");
        }
        assert!(expiry("2020-01-01").is_err());
    }
}
