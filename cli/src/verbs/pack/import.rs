//! `kgfleet pack import`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use packs::import::{FollowUpLine, ImportError, ImportReport, ImportSource, TemplateOrigin};
use packs::{PackHash, seal_file};
use serde_json::{Value, json};

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, printable, spinner};
use crate::kit::screen::Screen;
use crate::place::packs::{PackPassword, as_exit};
use crate::reevaluate::Recordings;

/// Findings that are printed one by one; the rest is counted.
const FINDINGS_PRINTED_MAX: usize = 20;

/// Create a pack from published LLM-KG-Bench result files, to ask a new model exactly the published exercises.
///
/// Cases and first prompts are taken from the records; if the recorded prompts of a case differ, from the first file.
/// Follow-up templates are derived from the recorded follow-ups and checked against every one of them. The pack is
/// protected: its texts leave this machine encrypted or redacted only. Graphs given with --graph are stored in it.
///
/// Exit codes: 0 everything fits; 1 the pack is written, but some records differ from what it would ask; 2 the
/// arguments cannot be used; 3 nothing could be read or written; 4 the pack is written, but without some files,
/// records or tasks.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    recordings: Recordings,
    /// The pack file to write, such as `published.kgpack`. An existing file is replaced.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Name of the pack. Default: the name of the file without its extension.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    pack_password: PackPassword,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let password = arguments.pack_password.get();
    let name = name(arguments.name, &arguments.out)?;
    let progress = spinner("{spinner} reading, comparing and sealing");
    let recordings = arguments.recordings;
    let graphs = recordings.graphs()?;
    let source = ImportSource {
        name: &name,
        paths: &recordings.paths,
        password: recordings.password.as_deref(),
        graphs: &graphs,
    };
    let imported = packs::import(&source).map_err(|error| match error {
        ImportError::Pack(error) => as_exit(error),
        error => error.into(),
    })?;
    let pack = seal_file(&imported.parts, &password, &arguments.out).map_err(as_exit)?;
    progress.finish_and_clear();

    let report = imported.report;
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json(&report, pack.hash())?)?;
    } else {
        print(&report, pack.hash(), &mut out)?;
    }
    for finding in report.findings.iter().take(FINDINGS_PRINTED_MAX) {
        eprintln!("{}", printable(&finding.to_string()));
    }
    if report.findings.total() > FINDINGS_PRINTED_MAX {
        eprintln!("… and {} more findings", report.findings.total() - FINDINGS_PRINTED_MAX);
    }
    Ok(match (report.findings.not_imported(), report.findings.doubts()) {
        (0, 0) => ExitCode::Success,
        (0, _) => ExitCode::Unsatisfied,
        _ => ExitCode::BadInput,
    })
}

fn name(given: Option<String>, out: &Path) -> anyhow::Result<String> {
    given
        .or_else(|| Some(out.file_stem()?.to_str()?.to_owned()))
        .ok_or_else(|| usage!("--out {}: not a file name", out.display()))
}

fn json(report: &ImportReport, hash: &PackHash) -> anyhow::Result<Value> {
    let mut object = json!({ "hash": hash });
    if let (Some(object), Value::Object(report)) = (object.as_object_mut(), serde_json::to_value(report)?) {
        object.extend(report);
    }
    Ok(object)
}

fn print(report: &ImportReport, hash: &PackHash, out: &mut dyn Write) -> io::Result<()> {
    let numbers = ["cases", "first prompts", "same prompt", "of", "same follow-up", "of"];
    let mut table = Table::default().left(["task", "version"]).right(numbers);
    let sums = |lines: &[FollowUpLine]| {
        lines.iter().fold((0, 0), |(equal, all), line| (equal + line.equal, all + line.recorded))
    };
    let mut total = [0; 6];
    for task in &report.tasks {
        let (equal, all) = sums(&task.follow_ups);
        let figures = [task.cases, task.first_prompts, task.asked_alike, task.dialogues, equal, all];
        total.iter_mut().zip(figures).for_each(|(total, figure)| *total += figure);
        let mut row = vec![task.task.to_string(), task.version.clone()];
        row.extend(figures.map(|figure| figure.to_string()));
        table.row(row);
    }
    let mut row = vec!["total".to_owned(), String::new()];
    row.extend(total.map(|figure| figure.to_string()));
    table.total(row);
    Screen::here().table(&table, out)?;
    writeln!(out)?;
    for task in &report.tasks {
        for line in &task.follow_ups {
            match &line.origin {
                TemplateOrigin::Learnt => {}
                TemplateOrigin::Borrowed { from } => {
                    writeln!(
                        out,
                        "{}: no `{}` follow-up is recorded; worded as in {from}",
                        task.task, line.kind
                    )?;
                }
                TemplateOrigin::Own => {
                    writeln!(
                        out,
                        "{}: no `{}` follow-up is recorded; in our own words",
                        task.task, line.kind
                    )?;
                }
            }
        }
    }
    writeln!(out, "{} ({})", report.name, hash.short())
}
