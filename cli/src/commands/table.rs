//! `kgfleet table`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use report::Dialogues;
use report::analysis::groups::Group;
use report::analysis::scheme::{self, Scheme};
use report::table::{Table, printable, write_workbook};
use report::views::{Grid, Sort, combined, dialogues, groups, preferences, sources, statistics};

use super::inputs::Inputs;
use crate::exit_code::{Exit, ExitCode};

/// Print tables of runs and result files, side by side.
///
/// A name that is a file, a folder or an archive is read as result files of LLM-KG-Bench; anything else names a run.
/// Published models are marked where both occur, and scores on different exercises never share a column.
///
/// Exit codes: 0 done; 2 nothing fits, or the command line is wrong; 3 nothing could be read; 4 some files or records
/// could not be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs (a name, the beginning of one, or `latest`), result files, folders and archives.
    #[arg(required = true, value_name = "RUN|FILE")]
    inputs: Vec<String>,
    /// What to show.
    #[arg(long, value_enum, default_value = "scores")]
    show: Show,
    /// Order. Of `scores`: `mean`, `name`, `given`, or the label of a task, the best model first. Of other tables the name
    /// of a column: numbers from the highest, texts from A.
    #[arg(long, value_name = "BY", default_value = GIVEN)]
    sort: String,
    /// The other way round.
    #[arg(long)]
    reverse: bool,
    /// A group of tasks for `groups`: NAME=GLOB, or several globs with commas; repeatable. Every two groups are compared.
    /// Default: Turtle and JSON-LD.
    #[arg(long = "group", value_name = "NAME=GLOB", value_parser = Group::parse)]
    groups: Vec<Group>,
    /// The score that `groups` compares, such as `mean.f1` or `f1`. Default: the headline of each task.
    #[arg(long, value_name = "NAME")]
    score: Option<String>,
    /// Categories for `combined`.
    #[arg(long, value_name = "NAME", default_value = "sparql-b")]
    scheme: String,
    /// A TOML file with further schemes.
    #[arg(long, value_name = "FILE")]
    schemes: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write into a file instead of standard output; `xlsx` needs one, and holds a summary and every table, `dialogues` if
    /// it is the one to show.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    from: Inputs,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    /// Mean headline score of every model on every task.
    Scores,
    /// Every model over all tasks: mean with interval, dialogues, rounds, tokens, time.
    Models,
    /// Every model on every task: n, mean, deviation, median, interval, what is not scored, rounds, tokens, time.
    Statistics,
    /// Turtle or JSON-LD, in the layout of the published `modelPreferences.csv`.
    Preferences,
    /// The tests behind the preferences, with effect sizes.
    PreferenceTests,
    /// Combined scores of a scheme, with the leading group.
    Combined,
    /// Welch's tests between groups of tasks on one score, over all models together.
    Groups,
    /// The wide form: one row per dialogue, one column per score.
    Dialogues,
}

impl Show {
    /// Every table whose size does not grow with the dialogues.
    const SUMMARIES: [Self; 7] = [
        Self::Scores,
        Self::Models,
        Self::Statistics,
        Self::Preferences,
        Self::PreferenceTests,
        Self::Combined,
        Self::Groups,
    ];
}

/// The order in which rows come.
const GIVEN: &str = "given";

/// What `groups` compares if nothing else is named.
const GROUPS_DEFAULT: [&str; 2] = ["Turtle=*-turtle*", "JSON-LD=*-jsonld*"];

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Md,
    Csv,
    Json,
    Xlsx,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let schemes = schemes(arguments.schemes.as_deref())?;
    let scheme = scheme::named(&schemes, &arguments.scheme).map_err(Exit::usage)?;
    check(arguments.format, arguments.out.as_deref())?;
    let read = arguments.from.read(&arguments.inputs, None)?;
    let all = &read.dialogues;
    let mut shows = vec![arguments.show];
    if arguments.format == Format::Xlsx {
        let others = Show::SUMMARIES.into_iter().filter(|show| *show != arguments.show);
        shows.extend(others);
    }
    let tables = shows.into_iter().map(|show| table(all, show, &scheme, &arguments));
    print(all, &tables.collect::<anyhow::Result<Vec<_>>>()?, arguments.format, arguments.out.as_deref())?;
    Ok(read.exit_code())
}

/// A table, in the order that was asked for if it is the one to show.
fn table(all: &Dialogues, show: Show, scheme: &Scheme, arguments: &Arguments) -> anyhow::Result<Table> {
    let wanted = if show == arguments.show { arguments.sort.as_str() } else { GIVEN };
    let reverse = arguments.reverse && show == arguments.show;
    let unknown = |error| Exit::usage(anyhow!("--sort: {error}"));
    let mut table = match show {
        Show::Scores => {
            let sort = match wanted {
                GIVEN => Sort::Given,
                "mean" => Sort::Mean,
                "name" => Sort::Name,
                task => Sort::Task(task.to_owned()),
            };
            return Ok(Grid::of(all).sorted(&sort, reverse).map_err(unknown)?.table());
        }
        Show::Models => statistics::by_model(all),
        Show::Statistics => statistics::by_task(all),
        Show::Preferences => preferences::published_layout(all),
        Show::PreferenceTests => preferences::tests(all),
        Show::Combined => combined::table(all, scheme),
        Show::Groups if arguments.groups.is_empty() => {
            let groups: Result<Vec<_>, _> = GROUPS_DEFAULT.into_iter().map(Group::parse).collect();
            groups::table(all, &groups.map_err(anyhow::Error::msg)?, arguments.score.as_deref())
        }
        Show::Groups => groups::table(all, &arguments.groups, arguments.score.as_deref()),
        Show::Dialogues => dialogues::wide(all),
    };
    match wanted {
        GIVEN if !reverse => {}
        GIVEN => bail!(Exit::usage(anyhow!("--reverse of this table needs --sort COLUMN"))),
        column => table.sort_by(column, reverse).map_err(unknown)?,
    }
    Ok(table)
}

/// Checks whether a format can be written there.
///
/// # Errors
/// A workbook without a file.
pub fn check(format: Format, out: Option<&Path>) -> anyhow::Result<()> {
    if format == Format::Xlsx && out.is_none() {
        bail!(Exit::usage(anyhow!("--format xlsx needs --out FILE")));
    }
    Ok(())
}

/// The schemes that come with the program, and those of a file.
pub fn schemes(file: Option<&Path>) -> anyhow::Result<Vec<Scheme>> {
    let mut schemes = Vec::new();
    if let Some(path) = file {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let own =
            scheme::parse(&text).map_err(|error| Exit::usage(anyhow!("{}: {error}", path.display())))?;
        schemes.extend(own);
    }
    schemes.extend(scheme::bundled());
    Ok(schemes)
}

/// Writes tables to a file or to standard output. A workbook begins with where the numbers come from.
pub fn print(all: &Dialogues, tables: &[Table], format: Format, out: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = out else { return Ok(write(tables, format, &mut io::stdout().lock())?) };
    let mut file = create(path)?;
    let written = if format == Format::Xlsx {
        let sheets: Vec<Table> = std::iter::once(sources::table(all)).chain(tables.iter().cloned()).collect();
        write_workbook(&sheets, file).map_err(anyhow::Error::from)
    } else {
        write(tables, format, &mut file).and_then(|()| file.flush()).map_err(anyhow::Error::from)
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn write(tables: &[Table], format: Format, out: &mut dyn Write) -> io::Result<()> {
    for (number, table) in tables.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        match format {
            Format::Text | Format::Xlsx => {
                // One table is what was asked for; of several, each says what it is.
                if tables.len() > 1 {
                    writeln!(out, "{}\n", printable(&table.title))?;
                }
                table.write(out)?;
            }
            Format::Md => table.write_markdown(out)?,
            Format::Csv => table.write_csv(out)?,
            Format::Json => writeln!(out, "{}", table.to_json())?,
        }
    }
    Ok(())
}

/// A file to write.
pub fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?))
}
