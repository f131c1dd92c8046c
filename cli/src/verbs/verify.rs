//! `kgfleet verify`: checks a run's record log.

use std::io::{self, Write};

use results::log::verify::LISTED_DAMAGES_MAX;
use results::log::{VerifyReport, verify as verify_log};
use results::manifest::Alteration;
use results::{RunDir, RunManifest};
use serde_json::json;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::explain;
use crate::place::{PlaceOptions, completing, disclosure, folders, names};

/// Check a run's record log: every frame, and whether every planned dialogue has its record; and whether its manifest is as
/// it was written. Of a judged benchmark, those of all its runs. Of a fleet come the records that count.
///
/// Exit codes: 0 sound and complete; 1 damaged, altered or incomplete.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP_OF_READERS, add = completing::runs())]
    run: String,
    /// Print JSON, a line for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceOptions,
}

/// `kgfleet verify`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let opened = arguments.place.place()?.open_altered(&arguments.run)?;
    let mut code = ExitCode::Success;
    for (dir, manifest) in &opened.runs {
        if opened.is_judged && !arguments.json {
            writeln!(io::stdout(), "run {}", manifest.run)?;
        }
        if !is_right(&arguments, dir, manifest)? {
            code = ExitCode::Unsatisfied;
        }
    }
    Ok(code)
}

/// Checks a run and prints what was found; returns whether it is sound and complete.
fn is_right(arguments: &Arguments, dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<bool> {
    // Checksums can be verified without the key.
    let cipher = disclosure::cipher(manifest).unwrap_or_else(|error| {
        eprintln!("kgfleet: {}", explain(&error.into()));
        None
    });
    let report = verify_log(&dir.log(), cipher.as_ref(), Some(manifest.planned_dialogues))?;
    let missing = report.missing();
    let complete = missing == Some(0);
    // In an unfinished run most dialogues have no record yet; in a damaged one it matters which.
    let (planned, altered) = match folders::plan_unless_altered(dir, manifest) {
        Ok(planned) => (planned, manifest.alteration()),
        Err(altered) => (Err(altered.clone().into()), manifest.alteration().or(Some(altered.alteration))),
    };
    let lost = match &planned {
        Ok((_, plan)) if !report.is_sound() && !complete && report.unopened == 0 => {
            let missing = plan.keys().filter(|key| report.winners.get(key).is_none());
            missing.take(LISTED_DAMAGES_MAX).map(|key| key.to_string()).collect()
        }
        _ => Vec::new(),
    };
    let mut not_checked = Vec::new();
    if let Some(why) = planned.err().filter(|_| altered.is_none()) {
        not_checked.push(format!(
            "whether the records are those that were planned, because the plan cannot be made: {}",
            explain(&why)
        ));
    }
    let sound = report.is_sound() && altered.is_none();
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(
            out,
            "{}",
            json!({
                "run": manifest.run, "sound": sound, "altered": altered.map(Alteration::what), "missing": missing, "without_record": lost,
                "not_checked": not_checked, "report": report,
            })
        )?;
    } else {
        print_report(&report, &lost, &mut out)?;
        if let Some(altered) = altered {
            writeln!(out, "the manifest {altered}")?;
        }
        for not_checked in &not_checked {
            writeln!(out, "not checked: {not_checked}")?;
        }
    }
    Ok(sound && complete)
}

fn print_report(report: &VerifyReport, lost: &[String], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} records in {} segments, {} bytes", report.records, report.segments, report.bytes)?;
    let failed: u64 = report.failed.values().sum();
    writeln!(
        out,
        "{} dialogues: {} scored, {failed} failed; {} records superseded",
        report.dialogues, report.scored, report.superseded
    )?;
    for damage in &report.damages {
        writeln!(out, "{damage}")?;
    }
    if report.unopened > 0 {
        writeln!(
            out,
            "{} lines are encrypted and intact; nothing else is known without their key",
            report.unopened
        )?;
    }
    if let Some(missing) = report.missing().filter(|missing| *missing > 0) {
        writeln!(out, "{missing} planned dialogues have no record yet")?;
    }
    for key in lost {
        writeln!(out, "no record: {key}")?;
    }
    writeln!(out, "{}", if report.is_sound() { "the log is sound" } else { "the log is damaged" })
}
