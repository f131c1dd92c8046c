//! `kgfleet token new`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::Context;
use domain::caller::CallerRole;
use domain::text::hex;
use proto::server::{hash_of_token, Identities};
use rustix::rand::{getrandom, GetRandomFlags};

use crate::kit::exit_code::{usage, Exit, ExitCode};

/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// Prefix of tokens, so that leaked ones can be recognised.
const PREFIX: &str = "kgfleet_";

/// Create tokens for the identities of a cluster.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(New),
}

/// Create a token. It is printed once and stored nowhere.
///
/// The token is printed on standard output. The entry for the coordinators' identity file (--tokens), which holds
/// only the token's hash, is printed on standard error or, with --append, appended to that file.
#[derive(Debug, clap::Args)]
struct New {
    /// Name of the identity, as shown in the history of runs.
    #[arg(long)]
    name: String,
    /// Role: reader, operator or worker; repeatable.
    #[arg(long = "role", required = true, value_parser = role)]
    roles: Vec<CallerRole>,
    /// Pattern of the worker names that it may use, such as `gpu-*`. Default: all.
    #[arg(long, value_name = "PATTERN")]
    workers: Option<String>,
    /// Append the identity to this file; coordinators reload it by themselves.
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,
}

fn role(text: &str) -> Result<CallerRole, String> {
    CallerRole::ALL
        .into_iter()
        .find(|role| role.as_str() == text)
        .ok_or_else(|| "expected reader, operator or worker".to_owned())
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Command::New(new) = arguments.command;
    let token = random()?;
    let entry = entry(&new, &token);
    // Never write an entry that cannot be parsed.
    Identities::parse(&entry).map_err(Exit::usage)?;
    match &new.append {
        None => eprintln!("add this to the file that coordinators get as --tokens:\n\n{entry}"),
        Some(path) => {
            let before = match std::fs::read_to_string(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                text => {
                    text.with_context(|| format!("cannot read {}", path.display())).map_err(Exit::usage)?
                }
            };
            let whole = format!("{before}\n{entry}");
            Identities::parse(&whole).map_err(|error| {
                usage!("with this identity {} could not be used: {error}", path.display())
            })?;
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
            file.and_then(|mut file| file.write_all(format!("\n{entry}").as_bytes()))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    writeln!(io::stdout(), "{token}")?;
    Ok(ExitCode::Success)
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let got = getrandom(&mut bytes, GetRandomFlags::empty()).context("the system gives no random numbers")?;
    // The kernel returns this few bytes at once, or fails.
    anyhow::ensure!(got == TOKEN_BYTES, "the system gave too few random numbers");
    Ok(format!("{PREFIX}{}", hex(bytes)))
}

fn entry(new: &New, token: &str) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let roles: Vec<String> = new.roles.iter().map(|role| text(role.as_str())).collect();
    let mut entry = format!("[[identity]]\nname = {}\nroles = [{}]\n", text(&new.name), roles.join(", "));
    if let Some(workers) = &new.workers {
        entry.push_str(&format!("workers = {}\n", text(workers)));
    }
    entry.push_str(&format!("sha256 = \"{}\"\n", hash_of_token(token)));
    entry
}
