//! `kgfleet table`.

use std::path::PathBuf;

use benchmarks::kinds;
use benchmarks::showing::Showing;
use clap::builder::{PossibleValue, PossibleValuesParser};
use report::analysis::scheme;
use report::table::printable;
use report::views;
use report::views::groups::TaskGroup;
use report::views::{RowOrder, ViewError, ViewOptions};

use crate::files::inputs::Inputs;
use crate::files::judged::{KindBenchmarks, KindInputs};
use crate::files::tables::PriceTable;
use crate::files::tables::{self, TableFormat};
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::place::completing;

/// Print tables of runs and result files, side by side.
///
/// A name that no run has and that is a file, a folder or an archive is read as result files of LLM-KG-Bench; so is a path such
/// as `./NAME`.
/// Published models are marked where both occur, and scores on different exercises never share a column. Judged benchmarks
/// have the tables of their kind; the first of these is what `scores` shows of them.
///
/// Exit codes: 0 done; 2 nothing fits, or the command line is wrong; 3 nothing could be read; 4 some files or records
/// could not be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs (a name, the beginning of one, or `latest`), result files, folders and archives; or judged benchmarks of one kind.
    #[arg(required = true, value_name = "RUN|FILE", add = completing::runs_or_files())]
    inputs: Vec<String>,
    /// What to show.
    #[arg(long, value_parser = PossibleValuesParser::new(shown()), default_value = DEFAULT)]
    show: String,
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
    prices: PriceTable,
    #[command(flatten)]
    extras: KindInputs,
    #[command(flatten)]
    from: Inputs,
}

/// What can be shown: the tables of dialogues, and those of each kind of judged benchmarks.
fn shown() -> Vec<PossibleValue> {
    let views = views::ALL.into_iter().map(|view| PossibleValue::new(view.name).help(view.about));
    let shows = kinds::shows().into_iter();
    views.chain(shows.map(|(_, show)| PossibleValue::new(show.name).help(show.about))).collect()
}

/// The table that is shown if none is named; of judged benchmarks, the first of their kind.
const DEFAULT: &str = "scores";

/// The order of rows as they are.
const GIVEN: &str = "given";

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let schemes = tables::schemes(arguments.schemes.as_deref())?;
    let scheme = scheme::named(&schemes, &arguments.scheme).map_err(Exit::usage)?;
    tables::check(arguments.format, arguments.out.as_deref())?;
    let prices = arguments.prices.read()?;
    let (judged, runs) = arguments.from.judged(&arguments.inputs, &arguments.extras)?;
    if let [first, others @ ..] = judged.as_slice() {
        if let Some(run) = runs.first() {
            let title = first.showing.title;
            return Err(usage!(
                "{} is no pipeline of {title}, and pipelines have tables of their own",
                run.name
            ));
        }
        if let Some(other) = others.first() {
            return Err(usage!(
                "{} is of kind {} and {} of kind {}: they have no table in common",
                first.shown[0].name,
                first.kind,
                other.shown[0].name,
                other.kind
            ));
        }
        return of_kind(&arguments, first);
    }
    let Some(wanted) = views::ALL.into_iter().find(|view| view.name == arguments.show) else {
        let shows = kinds::shows();
        let of_kind = shows.iter().find(|(_, show)| show.name == arguments.show);
        let (main, title) = of_kind.map_or(("", ""), |(of, _)| (of.shows[0].name, of.title));
        return Err(usage!("--show {main} is for pipelines of {title}; none is named"));
    };
    let mut read = arguments.from.read(&runs, None)?;
    read.dialogues.prices = prices.into();
    let all = &read.dialogues;
    let mut shown = vec![wanted];
    if arguments.format == TableFormat::Xlsx {
        let others = views::SUMMARIES.iter().filter(|view| view.name != wanted.name);
        shown.extend(others);
    }
    let mut tables = Vec::with_capacity(shown.len());
    for (number, view) in shown.into_iter().enumerate() {
        let options = ViewOptions {
            scheme: &scheme,
            groups: &arguments.groups,
            score: arguments.score.as_deref(),
            order: if number == 0 { arguments.order() } else { RowOrder::default() },
            is_wanted: number == 0,
            is_for_programs: matches!(arguments.format, TableFormat::Csv | TableFormat::Json),
        };
        tables.push((view.table)(all, &options).map_err(explained)?);
    }
    tables::print(Some(all), &tables, arguments.format, arguments.out.as_deref())?;
    Ok(read.exit_code())
}

impl Arguments {
    fn order(&self) -> RowOrder<'_> {
        let column = Some(self.sort.as_str()).filter(|column| *column != GIVEN);
        RowOrder { column, is_reversed: self.reverse }
    }
}

/// An error of a table, with the option that it is about.
fn explained(error: ViewError) -> anyhow::Error {
    match error {
        ViewError::Order(why) => usage!("--sort: {why}"),
        ViewError::Reverse => usage!("--reverse of this table needs --sort COLUMN"),
        ViewError::Group(name) => usage!("--group {}: no task fits", printable(&name)),
        ViewError::Score(name) => {
            usage!("--score: no dialogue of these groups has a score `{}`", printable(&name))
        }
    }
}

/// The tables of judged benchmarks of one kind.
fn of_kind(arguments: &Arguments, benchmarks: &KindBenchmarks) -> anyhow::Result<ExitCode> {
    let shows = benchmarks.showing.shows;
    let name = arguments.show.as_str();
    let wanted = match shows.iter().find(|show| show.name == name) {
        Some(show) => show,
        None if name == DEFAULT => &shows[0],
        None => {
            let names: Vec<&str> = shows.iter().map(|show| show.name).collect();
            let known = match names.split_last() {
                Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
                _ => names.concat(),
            };
            return Err(usage!("--show of pipelines is {known}"));
        }
    };
    let mut tables = vec![Showing::table(wanted, &benchmarks.shown)];
    if arguments.format == TableFormat::Xlsx {
        let others = shows.iter().filter(|show| show.name != wanted.name);
        tables.extend(others.map(|show| Showing::table(show, &benchmarks.shown)));
    }
    arguments.order().apply(&mut tables[0]).map_err(explained)?;
    tables::print(None, &tables, arguments.format, arguments.out.as_deref())?;
    Ok(ExitCode::Success)
}

#[cfg(test)]
mod tests {
    use benchmarks::testing::{EmptyReader, FIXTURE};

    use super::*;

    #[test]
    fn a_kind_of_a_test_is_among_the_tables_by_its_line_in_the_list_of_kinds_alone() {
        kinds::add_for_test(&FIXTURE);
        assert!(shown().iter().any(|shown| shown.get_name() == "fixture-answers"));
        let mut all = Vec::new();
        let inputs = KindInputs::default();
        KindBenchmarks::add(&mut all, &mut EmptyReader::default(), &inputs).unwrap();
        KindBenchmarks::add(&mut all, &mut EmptyReader::default(), &inputs).unwrap();
        let [benchmarks] = all.as_slice() else { panic!("they are of one kind") };
        let page = benchmarks.showing.page(&benchmarks.shown);
        assert_eq!((page.tables[0].table.rows().len(), page.figures.len()), (2, 2));
    }

    #[test]
    fn no_two_tables_have_one_name() {
        let shown = shown();
        let names: std::collections::BTreeSet<&str> = shown.iter().map(PossibleValue::get_name).collect();
        assert_eq!(names.len(), shown.len(), "{names:?}");
        assert!(names.contains(DEFAULT));
    }
}
