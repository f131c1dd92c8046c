//! `kgfleet compare`.

use std::path::PathBuf;

use anyhow::bail;
use domain::spelling;
use report::Dialogues;
use report::analysis::compare::compare;
use report::analysis::compare::{self as comparison, Compared};
use report::dialogues::ColumnId;
use report::stats::Estimate;
use report::words;

use crate::files::inputs::Inputs;
use crate::files::tables::{self, TableFormat};
use crate::kit::arguments::share;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::say;
use crate::place::completing;

/// Compare two runs, or two models, dialogue by dialogue.
///
/// --a and --b name two models. Without them, every model that occurs twice, such as in two runs, is compared with itself.
/// Only dialogues on the same exercises can be compared.
///
/// Exit codes: 0 done, and the gate holds; 1 the gate does not hold; 2 there is nothing to compare; 3 nothing could be read;
/// 4 some files or records could not be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs, result files, folders and archives: those that are compared with first.
    #[arg(required = true, value_name = "RUN|FILE", add = completing::runs_or_files())]
    inputs: Vec<String>,
    /// The model that is compared with.
    #[arg(long, value_name = "MODEL", add = completing::models())]
    a: Option<String>,
    /// The model that is looked at.
    #[arg(long, value_name = "MODEL", add = completing::models())]
    b: Option<String>,
    /// Fail (exit code 1) where the second is worse than the first by more than this, at 95 % confidence: where the whole
    /// interval of the mean difference of the tasks lies below -X. Says so where there are too few exercises to tell.
    #[arg(long, value_name = "X", value_parser = share)]
    gate: Option<f64>,
    /// Say what it takes to know every difference this well: half the width of its interval.
    #[arg(long, value_name = "X", value_parser = share)]
    within: Option<f64>,
    #[arg(long, value_enum, default_value = "text")]
    format: TableFormat,
    /// Write into a file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    from: Inputs,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    tables::check(arguments.format, arguments.out.as_deref())?;
    let read = arguments.from.read_named(&arguments.inputs)?;
    let all = &read.dialogues;
    let pairs = pairs(all, arguments.a.as_deref(), arguments.b.as_deref())?;
    let headings = all.headings();
    let mut compared = Vec::new();
    for &(a, b) in &pairs {
        let found = compare(all, a, b);
        if found.all.n == 0 {
            bail!(usage!("`{}` and `{}` have no dialogue on the same question", headings[a], headings[b]));
        }
        compared.push(Compared { names: (&headings[a], &headings[b]), found });
    }
    print(all, &compared, &arguments)?;
    let mut holds = true;
    for pair in &compared {
        let Some(estimate) = &pair.found.all.estimate else { continue };
        let (low, high) = (estimate.interval.low, estimate.interval.high);
        if let Some(gate) = arguments.gate {
            if high < -gate {
                let title = pair.title();
                say(&format!("{title}: the mean difference is below -{gate}: {low:.3} to {high:.3}"));
                holds = false;
            } else if low < -gate {
                tell_need(pair, estimate, gate);
            }
        }
        if let Some(within) = arguments.within.filter(|_| arguments.within != arguments.gate) {
            tell_need(pair, estimate, within);
        }
    }
    if !holds {
        return Ok(ExitCode::Unsatisfied);
    }
    Ok(read.exit_code())
}

/// Says how well a difference is known, and what it takes to know it within `reach`.
fn tell_need(pair: &Compared<'_>, estimate: &Estimate, reach: f64) {
    let known = words::known(estimate, pair.found.all.n as u64, " for each model", reach);
    say(&format!("{}: the mean difference is {known}", pair.title()));
}

/// Writes one table per pair for people, and one of all pairs for programs, which cannot tell where a table ends.
fn print(all: &Dialogues, compared: &[Compared<'_>], arguments: &Arguments) -> anyhow::Result<()> {
    let tables = match arguments.format {
        TableFormat::Csv | TableFormat::Json => vec![comparison::long(all, compared)],
        TableFormat::Text | TableFormat::Md | TableFormat::Xlsx => {
            compared.iter().map(|pair| comparison::table(all, pair)).collect()
        }
    };
    tables::print(Some(all), &tables, arguments.format, arguments.out.as_deref())
}

/// What is compared with what.
fn pairs(all: &Dialogues, a: Option<&str>, b: Option<&str>) -> anyhow::Result<Vec<(ColumnId, ColumnId)>> {
    let headings = all.headings();
    let same_exercises = |a: ColumnId, b: ColumnId| all.columns[a].exercises == all.columns[b].exercises;
    let found: Vec<(ColumnId, ColumnId)> = match (a, b) {
        (Some(a), Some(b)) => {
            let fits = |name: &str| {
                let named = |id: &ColumnId| {
                    let column = &all.columns[*id];
                    [&column.model, &column.name, &headings[*id]].into_iter().any(|known| known == name)
                };
                (0..all.columns.len()).filter(named).collect::<Vec<_>>()
            };
            let (first, second) = (fits(a), fits(b));
            for (name, found) in [(a, &first), (b, &second)] {
                if found.is_empty() {
                    let offered = spelling::offer(name, headings.iter().map(String::as_str));
                    bail!(usage!("there is no model `{name}`; {offered}"));
                }
                let is_namesake =
                    |a: &&ColumnId| found.iter().any(|b| all.columns[**a].is_namesake_of(&all.columns[*b]));
                let meant: Vec<_> =
                    found.iter().filter(is_namesake).map(|&id| headings[id].as_str()).collect();
                if !meant.is_empty() {
                    bail!(usage!("`{name}` may be any of {}", meant.join(", ")));
                }
            }
            // The first of the first, and the last of the second: with one model in two runs these are different columns.
            first.first().copied().zip(second.last().copied()).into_iter().collect()
        }
        (None, None) => {
            let ids = || 0..all.columns.len();
            let twins = |&(a, b): &(ColumnId, ColumnId)| {
                let (a, b) = (&all.columns[a], &all.columns[b]);
                a.name == b.name && !a.is_namesake_of(b)
            };
            ids().flat_map(|a| ids().filter(move |b| a < *b).map(move |b| (a, b))).filter(twins).collect()
        }
        _ => bail!(usage!("--a and --b belong together")),
    };
    if found.is_empty() {
        bail!(usage!("no model occurs twice; --a and --b name two of {}", headings.join(", ")));
    }
    match found.iter().find(|(a, b)| !same_exercises(*a, *b)) {
        Some((a, b)) => Err(usage!(
            "`{}` and `{}` answered different exercises: {} and {}",
            headings[*a],
            headings[*b],
            all.columns[*a].exercises,
            all.columns[*b].exercises
        )),
        None => Ok(found),
    }
}
