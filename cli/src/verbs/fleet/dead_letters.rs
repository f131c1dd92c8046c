//! `kgfleet fleet dead-letters`: units that are not handed out any more because workers died while they ran alone.

use std::io::{self, Write};

use domain::control::DeadLetterView;

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{Table, note, printable};
use crate::kit::screen::print_all;
use crate::place::remote::Remote;
use crate::place::{Place, completing, names};

/// List the dead letters of a run, then the suspects; show some of them, or requeue them with a clean slate.
///
/// When workers died twice, or lost their leases, while they held a unit, it becomes a suspect and runs alone from then on. A
/// suspect becomes a dead letter when workers died three more times while it ran alone (`kgfleet coordinator --strikes`).
/// Its dialogues fail with the cause `poisoned` until it is requeued and they are scored.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs_of_fleet())]
    run: String,
    /// Numbers of units, of which the dialogues and the deaths are shown. Each run of a judged benchmark has its own numbers.
    units: Vec<u64>,
    /// Requeue these dead letters, or without a number all.
    #[arg(long, conflicts_with = "json")]
    requeue: bool,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, units, json, .. } = arguments;
    Place::Fleet(arguments.remote.clone()).about(run, async |control, run| {
        if arguments.requeue {
            let count = control.requeue(run, units).await.map_err(explained)?;
            note!("{count} units of run {run} are queued again");
            return Ok(ExitCode::Success);
        }
        let mut letters = control.dead_letters(run, None).await.map_err(explained)?;
        letters.retain(|letter| units.is_empty() || units.contains(&letter.unit));
        if letters.is_empty() && !units.is_empty() {
            return Err(usage!("no worker died with these units of run {run}"));
        }
        if *json || units.is_empty() {
            print_all(&letters, *json, table)?;
        } else {
            letters.iter().try_for_each(|letter| write_letter(letter, &mut io::stdout().lock()))?;
        }
        Ok(ExitCode::Success)
    })
}

fn table(letters: &[DeadLetterView]) -> Table {
    let mut table = Table::default()
        .left(["run"])
        .right(["unit", "dialogues"])
        .left(["first", "state"])
        .right(["deaths"])
        .left(["last cause", "last worker"]);
    for letter in letters {
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
    table
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
