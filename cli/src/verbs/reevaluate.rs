//! `kgfleet reevaluate`: its options and its table. [`crate::reevaluate`] does the work.

use std::io::{self, Write};

use anyhow::bail;

use crate::kit::arguments::share;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::{Table, percent};
use crate::kit::screen::Screen;
use crate::reevaluate::{self, AgreementCounts, Options, Reevaluation};

/// Judge recorded answers again and compare every value with the recorded one.
///
/// Reads LLM-KG-Bench result files: JSON files, folders of them, and zip archives, also with a password (decrypted in
/// memory). Numbers count as equal within 1e-9. Values that are not comparable, such as the wording of another
/// parser, are counted separately.
///
/// Exit codes: 0 done; 1 the agreement is below --require-agreement; 3 nothing could be read or written; 4 some files
/// or records could not be used, the rest was evaluated.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Fail unless at least this share of the score values (0 to 1) is equal.
    #[arg(long, value_name = "X", value_parser = share)]
    require_agreement: Option<f64>,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let summary = reevaluate::run(&arguments.options)?;
    let nothing = summary.total.dialogues == 0 && summary.file_errors + summary.record_errors > 0;
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer(&mut out, &summary)?;
        writeln!(out)?;
    } else if !nothing {
        print(&summary, &mut out)?;
    }
    if nothing {
        bail!(
            "nothing was judged: {} files and {} records could not be used (see above); give result files of \
             LLM-KG-Bench, folders of them, or archives with their --password",
            summary.file_errors,
            summary.record_errors
        );
    }
    if arguments.require_agreement.is_some_and(|required| summary.score_agreement < required) {
        eprintln!(
            "score agreement {} is below the required {}",
            percent(summary.score_agreement),
            percent(arguments.require_agreement.unwrap_or_default())
        );
        return Ok(ExitCode::Unsatisfied);
    }
    if summary.file_errors + summary.record_errors > 0 {
        return Ok(ExitCode::BadInput);
    }
    Ok(ExitCode::Success)
}

fn print(summary: &Reevaluation, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default()
        .left(["task"])
        .right(["dialogues", "scores equal", "of", "agreement"])
        .right(["values equal", "of", "agreement", "steps equal", "of"]);
    for task in &summary.tasks {
        table.row(row(&task.task, &task.counts));
    }
    table.total(row("total", &summary.total));
    Screen::here().table(&table, out)?;
    let total = &summary.total;
    writeln!(out)?;
    for (reason, count) in &total.not_comparable {
        writeln!(out, "not comparable: {count} values ({reason})")?;
    }
    writeln!(
        out,
        "{} of {} dialogues have all scores equal; {:.2} s, {:.0} dialogues/s",
        total.dialogues_score_equal, total.dialogues, summary.elapsed_seconds, summary.dialogues_per_second
    )?;
    if summary.file_errors + summary.record_errors > 0 {
        writeln!(
            out,
            "could not be used: {} records, {} files (see above)",
            summary.record_errors, summary.file_errors
        )?;
    }
    Ok(())
}

fn row(name: &str, counts: &AgreementCounts) -> Vec<String> {
    let agreement = |equal: u64, all: u64| {
        if all == 0 { "-".to_owned() } else { percent(equal as f64 / all as f64) }
    };
    vec![
        name.to_owned(),
        counts.dialogues.to_string(),
        counts.score_equal.to_string(),
        counts.score_values.to_string(),
        agreement(counts.score_equal, counts.score_values),
        counts.equal.to_string(),
        counts.values.to_string(),
        agreement(counts.equal, counts.values),
        counts.steps_equal.to_string(),
        counts.steps.to_string(),
    ]
}
