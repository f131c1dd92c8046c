//! `kgfleet table`.

use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use report::Dialogues;
use report::analysis::groups::{self as task_groups, TaskGroup};
use report::analysis::scheme::{self, Scheme};
use benchmarks::kinds::kghalubench::show::{tables as hallucination, Study};
use present::table::{printable, Table};
use report::views::{combined, configuration, dialogues, groups, preferences, statistics, Grid, Sort};

use crate::files::inputs::Inputs;
use crate::files::kghalubench::StudyFiles;
use crate::files::tables::{self, TableFormat};
use crate::kit::exit_code::{usage, Exit, ExitCode};

/// Print tables of runs and result files, side by side.
///
/// A name that is a file, a folder or an archive is read as result files of LLM-KG-Bench; anything else names a run.
/// Published models are marked where both occur, and scores on different exercises never share a column. Pipelines of
/// KGHaluBench have tables of their own: `halu`, which is what `scores` shows of them, and those that begin with it.
///
/// Exit codes: 0 done; 2 nothing fits, or the command line is wrong; 3 nothing could be read; 4 some files or records
/// could not be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs (a name, the beginning of one, or `latest`), result files, folders and archives; or pipelines.
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
    #[arg(long = "group", value_name = "NAME=GLOB", value_parser = TaskGroup::parse)]
    groups: Vec<TaskGroup>,
    /// The score that `groups` compares, such as `f1` or `mean.f1measure`. Default: the headline of each task.
    #[arg(long, value_name = "NAME")]
    score: Option<String>,
    /// Categories for `combined`.
    #[arg(long, value_name = "NAME", default_value = "sparql-b")]
    scheme: String,
    /// A TOML file with further schemes.
    #[arg(long, value_name = "FILE")]
    schemes: Option<PathBuf>,
    #[arg(long, value_enum, default_value = "text")]
    format: TableFormat,
    /// Write into a file instead of standard output; `xlsx` needs one, and holds a summary and every table, `dialogues` if
    /// it is the one to show.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    study: StudyFiles,
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
    /// How each model was asked: sampling, server, and what else its records know of it.
    Configuration,
    /// The wide form: one row per dialogue, one column per score.
    Dialogues,
    /// KGHaluBench: weighted accuracy, accuracy, abstentions, Halu_BOK and Halu_DOK of every model.
    Halu,
    /// KGHaluBench: what answers are made of, and how many facts were wrong.
    HaluAnswers,
    /// KGHaluBench: which stage decided how many facts, and how long judges took.
    HaluStages,
    /// KGHaluBench: the types of entities that questions are about.
    HaluTypes,
}

impl Show {
    /// Every table whose size does not grow with the dialogues.
    const SUMMARIES: [Self; 8] = [
        Self::Scores,
        Self::Models,
        Self::Statistics,
        Self::Preferences,
        Self::PreferenceTests,
        Self::Combined,
        Self::Groups,
        Self::Configuration,
    ];

    /// The tables of pipelines.
    const OF_PIPELINES: [Self; 4] = [Self::Halu, Self::HaluAnswers, Self::HaluStages, Self::HaluTypes];
}

/// The order of rows as they are.
const GIVEN: &str = "given";

/// The groups that `groups` compares by default.
const GROUPS_DEFAULT: [&str; 2] = ["Turtle=*-turtle*", "JSON-LD=*-jsonld*"];


/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let schemes = tables::schemes(arguments.schemes.as_deref())?;
    let scheme = scheme::named(&schemes, &arguments.scheme).map_err(Exit::usage)?;
    tables::check(arguments.format, arguments.out.as_deref())?;
    let (pipelines, runs) = arguments.from.pipelines(&arguments.inputs)?;
    if !pipelines.is_empty() {
        if let Some(run) = runs.first() {
            return Err(usage!(
                "{run} is no pipeline of KGHaluBench, and pipelines have tables of their own"
            ));
        }
        return of_pipelines(&arguments, &arguments.study.studies(&pipelines)?);
    }
    let read = arguments.from.read(&arguments.inputs, None)?;
    let all = &read.dialogues;
    let mut shows = vec![arguments.show];
    if arguments.format == TableFormat::Xlsx {
        let others = Show::SUMMARIES.into_iter().filter(|show| *show != arguments.show);
        shows.extend(others);
    }
    let tables = shows.into_iter().map(|show| table(all, show, &scheme, &arguments));
    let tables = tables.collect::<anyhow::Result<Vec<_>>>()?;
    tables::print(Some(all), &tables, arguments.format, arguments.out.as_deref())?;
    Ok(read.exit_code())
}

/// A table; if it is the one to show, in the order asked for.
fn table(all: &Dialogues, show: Show, scheme: &Scheme, arguments: &Arguments) -> anyhow::Result<Table> {
    let wanted = if show == arguments.show { arguments.sort.as_str() } else { GIVEN };
    let reverse = arguments.reverse && show == arguments.show;
    let unknown = |error| usage!("--sort: {error}");
    let mut table = match show {
        Show::Scores => {
            let sort = match wanted {
                GIVEN => Sort::Given,
                "mean" => Sort::Mean,
                "name" => Sort::Name,
                task => Sort::Task(task.to_owned()),
            };
            let grid = Grid::of(all).sorted(&sort, reverse).map_err(unknown)?;
            return Ok(match arguments.format {
                TableFormat::Csv | TableFormat::Json => grid.long(),
                TableFormat::Text | TableFormat::Md | TableFormat::Xlsx => grid.table(),
            });
        }
        Show::Models => statistics::by_model(all),
        Show::Statistics => statistics::by_task(all),
        Show::Preferences => preferences::published_layout(all),
        Show::PreferenceTests => preferences::tests(all),
        Show::Combined => combined::table(all, scheme),
        Show::Groups => compared(all, arguments)?,
        Show::Configuration => configuration::table(all),
        Show::Dialogues => dialogues::wide(all),
        Show::Halu | Show::HaluAnswers | Show::HaluStages | Show::HaluTypes => {
            bail!(usage!("--show halu is for pipelines of KGHaluBench; none is named"))
        }
    };
    order(&mut table, wanted, reverse)?;
    Ok(table)
}

/// Compares groups of tasks.
fn compared(all: &Dialogues, arguments: &Arguments) -> anyhow::Result<Table> {
    let (mut groups, score) = (arguments.groups.clone(), arguments.score.as_deref());
    if groups.is_empty() {
        let usual: Result<Vec<_>, _> = GROUPS_DEFAULT.into_iter().map(TaskGroup::parse).collect();
        groups = usual.map_err(anyhow::Error::msg)?;
    }
    if let Some(empty) = groups.iter().find(|group| group.tasks(all).is_empty())
        && !arguments.groups.is_empty()
    {
        bail!(usage!("--group {}: no task fits", printable(&empty.name)));
    }
    if let Some(score) = score.filter(|score| !task_groups::is_there(all, &groups, score))
        && arguments.show == Show::Groups
    {
        bail!(usage!("--score: no dialogue of these groups has a score `{}`", printable(score)));
    }
    Ok(groups::table(all, &groups, score))
}

/// Sorts a table by a column.
fn order(table: &mut Table, wanted: &str, reverse: bool) -> anyhow::Result<()> {
    match wanted {
        GIVEN if !reverse => Ok(()),
        GIVEN => bail!(usage!("--reverse of this table needs --sort COLUMN")),
        column => table.sort_by(column, reverse).map_err(|error| usage!("--sort: {error}")),
    }
}

/// The tables of pipelines.
fn of_pipelines(arguments: &Arguments, studies: &[Study]) -> anyhow::Result<ExitCode> {
    let wanted = if arguments.show == Show::Scores { Show::Halu } else { arguments.show };
    let mut shows = vec![wanted];
    if arguments.format == TableFormat::Xlsx {
        shows.extend(Show::OF_PIPELINES.into_iter().filter(|show| *show != wanted));
    }
    let mut tables = Vec::with_capacity(shows.len());
    for show in shows {
        tables.push(match show {
            Show::Halu => hallucination::main(studies),
            Show::HaluAnswers => hallucination::distributions(studies),
            Show::HaluStages => hallucination::stages(studies),
            Show::HaluTypes => hallucination::types(studies),
            _ => bail!(usage!("--show of pipelines is halu, halu-answers, halu-stages or halu-types")),
        });
    }
    if let Some(table) = tables.first_mut() {
        order(table, &arguments.sort, arguments.reverse)?;
    }
    tables::print(None, &tables, arguments.format, arguments.out.as_deref())?;
    Ok(ExitCode::Success)
}
