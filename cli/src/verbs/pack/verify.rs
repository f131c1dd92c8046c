//! `kgfleet pack verify`.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::kit::exit_code::ExitCode;
use crate::kit::output::printable;
use crate::place::packs::PackPassword;

/// Verify a pack: every entry against its hash, every case with answers of known score.
///
/// The reference answer must score full marks, the wrong one must not, the malformed one must be refused; broken
/// documents and queries must be refused by the parser, and their repairs accepted. Cases of imported packs have no
/// such answers; they are only built and asked.
///
/// Exit codes: 0 all checks passed; 1 some failed; 2 not a usable pack; 3 the file cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A sealed pack, the folder of an unsealed one, or `core` for the built-in one.
    #[arg(default_value = crate::place::packs::CORE)]
    pack: PathBuf,
    #[command(flatten)]
    password: PackPassword,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pack = arguments.password.open(&arguments.pack)?;
    let report = packs::verify(&pack);
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        for finding in &report.findings {
            writeln!(out, "{}", printable(&finding.to_string()))?;
        }
        writeln!(
            out,
            "{} {} ({}): {} entries, {} tasks, {} cases; {} checks passed, {} failed",
            pack.header().name,
            pack.header().version,
            report.hash.short(),
            report.entries,
            report.tasks,
            report.cases,
            report.passed,
            report.findings.len()
        )?;
        if report.answers_missing > 0 {
            writeln!(
                out,
                "{} answers of known score are missing and were not tested",
                report.answers_missing
            )?;
        }
    }
    Ok(if report.is_clean() { ExitCode::Success } else { ExitCode::Unsatisfied })
}
