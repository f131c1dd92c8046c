//! `kgfleet dlq`: units that were set aside because their workers died of them.

use std::io::{self, Write};

use anyhow::anyhow;
use domain::control::{Control, DeadLetterView};

use super::{Remote, block_on, explained};
use crate::exit_code::{Exit, ExitCode};
use crate::output::{Align, Table, printable};
use crate::run_name;

/// Look at units that were set aside, and give them another chance.
///
/// A worker that dies, or lets its leases expire, makes the units it held suspects; these run alone from then on. A unit
/// with which a worker died three times more (`kgfleet coordinator --strikes`) while it ran alone is set aside. Its
/// dialogues count as failed with the cause `poisoned` until it is requeued and scored.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List a run's units that were set aside, then its suspects.
    Ls {
        /// Name of the run.
        run: String,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Show one of them: its dialogues and the deaths on its account.
    Show {
        /// Name of the run.
        run: String,
        /// Number of the unit.
        unit: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Give units another chance, with a clean slate.
    Requeue {
        /// Name of the run.
        run: String,
        /// Numbers of the units; --all for all of them.
        #[arg(required_unless_present = "all")]
        units: Vec<u64>,
        /// All units that were set aside.
        #[arg(long, conflicts_with = "units")]
        all: bool,
        #[command(flatten)]
        remote: Remote,
    },
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Ls { run, json, remote } => list(&remote, &run, json),
        Command::Show { run, unit, json, remote } => show(&remote, &run, unit, json),
        Command::Requeue { run, units, remote, .. } => block_on(async {
            let client = remote.client()?;
            let run = run_name::of_coordinator(&run, &client).await?;
            let count = client.requeue(&run, &units).await.map_err(explained)?;
            eprintln!("{count} units of run {run} are queued again");
            Ok(ExitCode::Success)
        }),
    }
}

fn letters(remote: &Remote, run: &str, unit: Option<u64>) -> anyhow::Result<Vec<DeadLetterView>> {
    block_on(async {
        let client = remote.client()?;
        let run = run_name::of_coordinator(run, &client).await?;
        client.dead_letters(&run, unit).await.map_err(explained)
    })
}

fn list(remote: &Remote, run: &str, json: bool) -> anyhow::Result<ExitCode> {
    let letters = letters(remote, run, None)?;
    let mut out = io::stdout().lock();
    let mut table = Table::new(&[
        ("unit", Align::Right),
        ("dialogues", Align::Right),
        ("first", Align::Left),
        ("state", Align::Left),
        ("deaths", Align::Right),
        ("last cause", Align::Left),
        ("last worker", Align::Left),
    ]);
    for letter in &letters {
        if json {
            writeln!(out, "{}", serde_json::to_string(letter)?)?;
            continue;
        }
        let last = letter.strikes.last();
        table.row(vec![
            letter.unit.to_string(),
            letter.dialogues.len().to_string(),
            letter.dialogues.first().map(ToString::to_string).unwrap_or_default(),
            state(letter).to_owned(),
            letter.strikes.len().to_string(),
            last.map(|strike| printable(&strike.cause)).unwrap_or_default(),
            last.map(|strike| strike.worker.to_string()).unwrap_or_default(),
        ]);
    }
    if !json {
        table.write(&mut out)?;
    }
    Ok(ExitCode::Success)
}

fn show(remote: &Remote, run: &str, unit: u64, json: bool) -> anyhow::Result<ExitCode> {
    let letters = letters(remote, run, Some(unit))?;
    let Some(letter) = letters.first() else {
        return Err(Exit::usage(anyhow!(
            "no worker died with unit {unit} of run {run}; `kgfleet dlq ls {run}` lists"
        )));
    };
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(letter)?)?;
    } else {
        write_letter(letter, &mut out)?;
    }
    Ok(ExitCode::Success)
}

fn state(letter: &DeadLetterView) -> &'static str {
    if letter.suspect { "suspect, runs alone" } else { "set aside" }
}

fn write_letter(letter: &DeadLetterView, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "unit {}: {}", letter.unit, state(letter))?;
    for strike in &letter.strikes {
        writeln!(
            out,
            "  attempt {} at {} by worker {}: {}",
            strike.attempt,
            strike.at,
            strike.worker,
            printable(&strike.cause)
        )?;
    }
    writeln!(out, "dialogues")?;
    letter.dialogues.iter().try_for_each(|key| writeln!(out, "  {key}"))
}
