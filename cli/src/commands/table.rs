//! `kgfleet table`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use report::Dialogues;
use report::analysis::scheme::{self, Scheme};
use report::hallucination::Study;
use report::table::{Table, write_workbook};
use report::views::{Grid, Sort, combined, dialogues, hallucination, preferences, statistics};

use super::halu::found::WeightsFile;
use super::inputs::Inputs;
use crate::exit_code::{Exit, ExitCode};

/// Print tables of runs and result files, side by side.
///
/// A name that is a file, a folder or an archive is read as result files of LLM-KG-Bench; anything else names a run.
/// Published models are marked where both occur, and scores on different exercises never share a column. Pipelines of
/// KGHaluBench on this machine have tables of their own, `halu` and those that begin with it.
///
/// Exit codes: 0 done; 2 nothing fits, or the command line is wrong; 3 nothing could be read; 4 some files or records
/// could not be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs (a name, the beginning of one, or `latest`), result files, folders and archives; or pipelines.
    #[arg(required = true, value_name = "RUN|FILE")]
    inputs: Vec<String>,
    /// What to show. Default: `scores`; of pipelines `halu`.
    #[arg(long, value_enum)]
    show: Option<Show>,
    /// Order of the models in `scores`: `mean`, `name`, `given`, or the label of a task, the best first.
    #[arg(long, value_name = "BY", default_value = "given")]
    sort: String,
    /// Categories for `combined`.
    #[arg(long, value_name = "NAME", default_value = "sparql-b")]
    scheme: String,
    /// A TOML file with further schemes.
    #[arg(long, value_name = "FILE")]
    schemes: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write into a file instead of standard output; `xlsx` needs one, and holds every table.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    weights: WeightsFile,
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
    /// The wide form: one row per dialogue, one column per score.
    Dialogues,
    /// KGHaluBench: weighted accuracy, accuracy, abstentions, Halu_BOK and Halu_DOK of every model.
    Halu,
    /// What answers are made of, and how many facts were wrong.
    HaluAnswers,
    /// Which stage decided how many facts, and how long judges took.
    HaluStages,
    /// The types of entities that questions are about.
    HaluTypes,
}

impl Show {
    /// The table of pipelines; nothing for tables of runs.
    fn of_pipelines(self) -> Option<fn(&[Study]) -> Table> {
        match self {
            Self::Halu => Some(hallucination::main),
            Self::HaluAnswers => Some(hallucination::distributions),
            Self::HaluStages => Some(hallucination::stages),
            Self::HaluTypes => Some(hallucination::types),
            _ => None,
        }
    }
}

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
    if arguments.format == Format::Xlsx && arguments.out.is_none() {
        bail!(Exit::usage(anyhow!("--format xlsx needs --out FILE")));
    }
    let (pipelines, runs) = arguments.from.pipelines(&arguments.inputs)?;
    if !pipelines.is_empty() {
        if let Some(run) = runs.first() {
            return Err(Exit::usage(anyhow!(
                "{run} is no pipeline of KGHaluBench, and pipelines have tables of their own"
            )));
        }
        return of_pipelines(&arguments, &arguments.weights.studies(&pipelines)?);
    }
    let show = arguments.show.unwrap_or(Show::Scores);
    if show.of_pipelines().is_some() {
        return Err(Exit::usage(anyhow!(
            "--show halu is for pipelines of KGHaluBench on this machine; none is named"
        )));
    }
    let read = arguments.from.read(&arguments.inputs, None)?;
    let all = &read.dialogues;
    let sort = match arguments.sort.as_str() {
        "given" => Sort::Given,
        "mean" => Sort::Mean,
        "name" => Sort::Name,
        task => Sort::Task(task.to_owned()),
    };
    let scores = |all: &Dialogues| -> anyhow::Result<Table> {
        let grid = Grid::of(all).sorted(&sort).map_err(|error| Exit::usage(anyhow!("--sort: {error}")))?;
        Ok(grid.table())
    };
    if arguments.format == Format::Xlsx {
        let mut tables = vec![scores(all)?, statistics::by_model(all), statistics::by_task(all)];
        tables.extend([
            preferences::published_layout(all),
            preferences::tests(all),
            combined::table(all, &scheme),
        ]);
        if let Some(path) = &arguments.out {
            let file = create(path)?;
            write_workbook(&tables, file).with_context(|| format!("cannot write {}", path.display()))?;
        }
        return Ok(read.exit_code());
    }
    let table = match show {
        Show::Scores => scores(all)?,
        Show::Models => statistics::by_model(all),
        Show::Statistics => statistics::by_task(all),
        Show::Preferences => preferences::published_layout(all),
        Show::PreferenceTests => preferences::tests(all),
        Show::Combined => combined::table(all, &scheme),
        Show::Dialogues => dialogues::wide(all),
        // Refused above.
        Show::Halu | Show::HaluAnswers | Show::HaluStages | Show::HaluTypes => hallucination::main(&[]),
    };
    print(&table, arguments.format, arguments.out.as_deref())?;
    Ok(read.exit_code())
}

/// The tables of pipelines.
fn of_pipelines(arguments: &Arguments, studies: &[Study]) -> anyhow::Result<ExitCode> {
    let show = arguments.show.unwrap_or(Show::Halu);
    let Some(table) = show.of_pipelines() else {
        return Err(Exit::usage(anyhow!(
            "--show of pipelines is halu, halu-answers, halu-stages or halu-types"
        )));
    };
    if let (Format::Xlsx, Some(path)) = (arguments.format, &arguments.out) {
        let all = [Show::Halu, Show::HaluAnswers, Show::HaluStages, Show::HaluTypes];
        let tables: Vec<Table> =
            all.into_iter().filter_map(Show::of_pipelines).map(|table| table(studies)).collect();
        write_workbook(&tables, create(path)?).with_context(|| format!("cannot write {}", path.display()))?;
        return Ok(ExitCode::Success);
    }
    print(&table(studies), arguments.format, arguments.out.as_deref())?;
    Ok(ExitCode::Success)
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

/// Writes a table to a file or to standard output.
pub fn print(table: &Table, format: Format, out: Option<&Path>) -> anyhow::Result<()> {
    match out {
        Some(path) => {
            let mut file = create(path)?;
            write(table, format, &mut file)
                .and_then(|()| file.flush())
                .with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(write(table, format, &mut io::stdout().lock())?),
    }
}

fn write(table: &Table, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text | Format::Xlsx => table.write(out),
        Format::Md => table.write_markdown(out),
        Format::Csv => table.write_csv(out),
        Format::Json => writeln!(out, "{}", table.to_json()),
    }
}

/// A file to write.
pub fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?))
}
