//! `kgfleet verify`: checks a run's record log and the event log of its coordinators.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use coordinator::plan::Plan;
use domain::RunId;
use history::{Events, FindingKind, Kept};
use results::log::verify::LISTED_DAMAGES_MAX;
use results::log::{
    LogCipher, LogError, LogItem, LogReader, VerifyReport, WinnerIndex, verify as verify_log,
};
use results::manifest::Alteration;
use results::{RunDir, RunManifest};
use serde_json::json;

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::explain;
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::{completing, disclosure, folders, names};

/// Check a run's record log: every frame, and whether every planned dialogue has its record; and whether its manifest is as
/// it was written. Of a judged benchmark, those of all its runs.
///
/// Exit codes: 0 sound and complete; 1 damaged, altered or incomplete, or, with --history, something was lost, doubled or changed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP, add = completing::runs_here())]
    run: String,
    /// Also compare the record log with the events that coordinators wrote with --event-log: finds lost acknowledged
    /// records, dialogues counted twice, stale fences accepted, units leased to two workers at once, winners that changed. A
    /// queue that lost its latest writes, in a failover or a restart without `appendfsync always`, shows here too.
    #[arg(long)]
    history: bool,
    /// Print JSON, a line for each run.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet verify`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let OpenedBenchmark { runs, is_judged, .. } = arguments.data.open_all_altered(&arguments.run)?;
    let mut code = ExitCode::Success;
    for (dir, manifest) in runs {
        if is_judged && !arguments.json {
            writeln!(io::stdout(), "run {}", manifest.run)?;
        }
        if !is_right(&arguments, &dir, &manifest)? {
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
        Ok((_, plan)) if !report.is_sound() && !complete => unrecorded(dir, plan, cipher.as_ref())?,
        _ => Vec::new(),
    };
    let mut not_checked = Vec::new();
    if let Some(why) = planned.err().filter(|_| altered.is_none()) {
        not_checked.push(format!(
            "whether the records are those that were planned, because the plan cannot be made: {}",
            explain(&why)
        ));
    }
    if manifest.configuration_hash.is_empty() || manifest.plan_hash.is_empty() {
        not_checked
            .push("whether the manifest is as it was written, because it holds no hash of it".to_owned());
    }
    let sound = report.is_sound() && altered.is_none();
    let history = match arguments.history {
        true => Some(history_of(
            &manifest.run,
            &arguments.data.path().join(folders::EVENTS),
            dir,
            cipher.as_ref(),
        )?),
        false => None,
    };
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(
            out,
            "{}",
            json!({
                "run": manifest.run, "sound": sound, "altered": altered.map(Alteration::what), "missing": missing, "without_record": lost,
                "not_checked": not_checked, "report": report, "history": history,
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
        if let Some(history) = &history {
            print_history(history, &mut out)?;
        }
    }
    Ok(sound && complete && history.is_none_or(|history| history.is_right()))
}

/// Compares the events of a run with its log.
fn history_of(
    run: &RunId,
    folder: &Path,
    dir: &RunDir,
    cipher: Option<&LogCipher>,
) -> anyhow::Result<history::CheckReport> {
    let events = Events::read(folder, run).with_context(|| {
        format!("cannot read events in {}; coordinators write them with --event-log", folder.display())
    })?;
    if events.noted.is_empty() {
        bail!(usage!("{} has no events of run {run}", folder.display()));
    }
    let mut log = Vec::new();
    for item in LogReader::open(&dir.log(), cipher)? {
        if let LogItem::Entry { entry, late, .. } = item? {
            let (record, ticket) = (entry.record, entry.ticket);
            let scored = record.outcome.is_scored();
            log.push(Kept { record: record.attempt.id, key: record.key, ticket, scored, late });
        }
    }
    Ok(history::check(&events.noted, &log))
}

fn print_history(report: &history::CheckReport, out: &mut dyn Write) -> io::Result<()> {
    let history::CheckReport { events, grants, acknowledged, superseded, .. } = report;
    writeln!(
        out,
        "{events} events: {grants} leases, {acknowledged} records acknowledged, {superseded} of them superseded"
    )?;
    for kind in FindingKind::ALL {
        writeln!(out, "{kind}: {}", report.count(kind))?;
    }
    if report.excused > 0 {
        let excused = report.excused;
        writeln!(
            out,
            "{excused} contradictions come from writes that the queue or the log was made to lose"
        )?;
    }
    for excused in &report.excuses {
        writeln!(out, "  {}: {}", excused.kind, excused.what)?;
    }
    if report.cut {
        writeln!(out, "the event log of a coordinator is cut off; what it did afterwards was not checked")?;
    }
    for finding in &report.findings {
        writeln!(out, "{}: {}", finding.kind, finding.what)?;
    }
    Ok(())
}

/// The first [`LISTED_DAMAGES_MAX`] planned dialogues without a record; none if the log cannot be read.
fn unrecorded(dir: &RunDir, plan: &Plan, cipher: Option<&LogCipher>) -> anyhow::Result<Vec<String>> {
    let index = match WinnerIndex::build(&dir.log(), cipher, 0, |_| {}) {
        Err(LogError::KeyNeeded { .. }) => return Ok(Vec::new()),
        index => index?,
    };
    let missing = plan.keys().filter(|key| index.get(key).is_none());
    Ok(missing.take(LISTED_DAMAGES_MAX).map(|key| key.to_string()).collect())
}

fn print_report(report: &VerifyReport, lost: &[String], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} records in {} segments, {} bytes", report.entries, report.segments, report.bytes)?;
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
            "{} records are encrypted and intact; nothing else is known without their key",
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
