//! `kgfleet dlq`: dead letters, units that are not handed out any more because workers died while they ran alone.

use std::io::{self, Write};

use domain::control::{Control, DeadLetterView};

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{Table, note, printable};
use crate::kit::screen::Screen;
use crate::place::remote::Remote;
use crate::place::{completing, names};

/// List dead letters, and give them another chance.
///
/// When workers died twice, or lost their leases, while they held a unit, it becomes a suspect and runs alone from then on. A
/// suspect becomes a dead letter when workers died three more times while it ran alone (`kgfleet coordinator --strikes`).
/// Its dialogues fail with the cause `poisoned` until it is requeued and they are scored.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the dead letters of a run, or of all runs of a judged benchmark, then the suspects.
    Ls {
        #[arg(help = names::HELP, add = completing::runs_of_fleet())]
        run: String,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Show a dead letter or suspect: its dialogues and the deaths counted against it.
    Show {
        #[arg(help = names::HELP, add = completing::runs_of_fleet())]
        run: String,
        /// Number of the unit.
        unit: u64,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Requeue dead letters with a clean slate. Of a judged benchmark: all of them, or name the run of the units.
    Requeue {
        #[arg(help = names::HELP, add = completing::runs_of_fleet())]
        run: String,
        /// Numbers of the units, or --all.
        #[arg(required_unless_present = "all")]
        units: Vec<u64>,
        /// All dead letters.
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
        Command::Requeue { run, units, remote, .. } => remote.about(&run, async |client, run| {
            let count = client.requeue(run, &units).await.map_err(explained)?;
            note!("{count} units of run {run} are queued again");
            Ok(ExitCode::Success)
        }),
    }
}

fn letters(remote: &Remote, run: &str, unit: Option<u64>) -> anyhow::Result<Vec<DeadLetterView>> {
    remote.about(run, async |client, run| client.dead_letters(run, unit).await.map_err(explained))
}

fn list(remote: &Remote, run: &str, json: bool) -> anyhow::Result<ExitCode> {
    let letters = letters(remote, run, None)?;
    let mut out = io::stdout().lock();
    let mut table = Table::default()
        .left(["run"])
        .right(["unit", "dialogues"])
        .left(["first", "state"])
        .right(["deaths"])
        .left(["last cause", "last worker"]);
    for letter in &letters {
        if json {
            writeln!(out, "{}", serde_json::to_string(letter)?)?;
            continue;
        }
        let last = letter.strikes.last();
        table.row(vec![
            letter.run.to_string(),
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
        Screen::here().table(&table, &mut out)?;
    }
    Ok(ExitCode::Success)
}

fn show(remote: &Remote, run: &str, unit: u64, json: bool) -> anyhow::Result<ExitCode> {
    let letters = letters(remote, run, Some(unit))?;
    if letters.is_empty() {
        return Err(usage!("no worker died with unit {unit} of run {run}; `kgfleet dlq ls {run}` lists"));
    }
    let mut out = io::stdout().lock();
    // Runs of a judged benchmark number their units each by itself.
    for letter in &letters {
        if json {
            writeln!(out, "{}", serde_json::to_string(letter)?)?;
        } else {
            write_letter(letter, &mut out)?;
        }
    }
    Ok(ExitCode::Success)
}

fn state(letter: &DeadLetterView) -> &'static str {
    if letter.suspect { "suspect, runs alone" } else { "dead letter" }
}

fn write_letter(letter: &DeadLetterView, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "run {}, unit {}: {}", letter.run, letter.unit, state(letter))?;
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
