//! `kgfleet report`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use benchmarks::showing::{Figure, ShownBenchmark};
use report::Dialogues;
use report::analysis::scheme::{self, Scheme};
use report::details::Details;
use report::dialogues::distinct;
use report::draw::{Breadth, Svg};
use report::figures;
use report::html::KindPage;
use report::html::{self, ReportPage};
use report::tables::card;

use crate::files::inputs::Inputs;
use crate::files::judged::{KindBenchmarks, KindInputs};
use crate::files::tables::PriceTable;
use crate::files::tables::{create, schemes};
use crate::kit::exit_code::{Exit, ExitCode};
use crate::kit::output::note;
use crate::place::completing;

/// Write a report: one HTML file with tables, plots and every dialogue, that needs no network.
///
/// Reads runs and result files as `kgfleet table` does. Texts of protected exercises are replaced by their lengths, unless
/// --plaintext is given.
///
/// Exit codes: 0 done; 2 nothing fits, or the command line is wrong; 3 nothing could be read or written; 4 some files or
/// records could not be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Runs (a name, the beginning of one, or `latest`), result files, folders and archives; also judged benchmarks.
    #[arg(required = true, value_name = "RUN|FILE", add = completing::runs_or_files())]
    inputs: Vec<String>,
    /// The file.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Title of the report; without it, the names of what was read and the days on which it was made.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Categories of the combined scores.
    #[arg(long, value_name = "NAME", default_value = "sparql-b")]
    scheme: String,
    /// Categories of the compasses.
    #[arg(long, value_name = "NAME", default_value = "semantic")]
    compass: String,
    /// A TOML file with further schemes.
    #[arg(long, value_name = "FILE")]
    schemes: Option<PathBuf>,
    /// Write every plot as an SVG file into this folder as well.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write a card of every model, in Markdown, into this folder as well.
    #[arg(long, value_name = "DIR")]
    cards: Option<PathBuf>,
    /// Leave out the texts of dialogues.
    #[arg(long)]
    no_texts: bool,
    /// Keep texts of protected exercises readable.
    #[arg(long, conflicts_with = "no_texts")]
    plaintext: bool,
    #[command(flatten)]
    prices: PriceTable,
    #[command(flatten)]
    extras: KindInputs,
    #[command(flatten)]
    from: Inputs,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let known = schemes(arguments.schemes.as_deref())?;
    let combined = scheme::named(&known, &arguments.scheme).map_err(Exit::usage)?;
    let compass = scheme::named(&known, &arguments.compass).map_err(Exit::usage)?;
    let prices = arguments.prices.read()?;
    let mut details = Details::new(arguments.plaintext);
    let (kinds, runs) = arguments.from.judged(&arguments.inputs, &arguments.extras)?;
    let judged: Vec<KindPage> = kinds.iter().map(|kind| kind.showing.page(&kind.shown)).collect();
    let mut read = arguments.from.read(&runs, (!arguments.no_texts).then_some(&mut details))?;
    read.dialogues.prices = prices.into();
    let all = &read.dialogues;
    let shown = || kinds.iter().flat_map(|kind| &kind.shown).map(|shown| shown.name.as_str());
    let (title, judged) = (&arguments.title.clone().unwrap_or_else(|| all.title(shown())), &judged);
    let page = ReportPage { title, dialogues: all, judged, combined: &combined, compass: &compass };
    let out = create(&arguments.out)?;
    html::write(&page, details, out).with_context(|| format!("cannot write {}", arguments.out.display()))?;
    let judged: Vec<String> = kinds
        .iter()
        .flat_map(|kind| &kind.shown)
        .map(|shown| format!("pipeline {} with {} models", shown.name, shown.models))
        .collect();
    let dialogues = (!all.is_empty() || judged.is_empty())
        .then(|| format!("{} dialogues of {} models", all.len(), all.columns.len()));
    let content: Vec<String> = judged.into_iter().chain(dialogues).collect();
    note!("wrote {} ({})", arguments.out.display(), content.join(", "));
    if let Some(folder) = &arguments.plots {
        let mut plots = if all.is_empty() { Vec::new() } else { plots(all, &compass) };
        plots.extend(kinds.iter().flat_map(figures_of));
        let count = plots.len();
        for (name, svg) in plots {
            write(folder, &format!("{name}.svg"), svg.document().as_bytes())?;
        }
        note!("wrote {count} plots into {}", folder.display());
    }
    if let Some(folder) = &arguments.cards {
        let names = distinct(all.headings().iter().map(|heading| file_name(heading)));
        for (column, name) in names.iter().enumerate() {
            let mut text = Vec::new();
            card::write(all, column, &[&combined, &compass], &mut text)?;
            write(folder, &format!("{name}.md"), &text)?;
        }
        note!("wrote {} model cards into {}", all.columns.len(), folder.display());
    }
    Ok(read.exit_code())
}

/// Every plot of dialogues, with the name of its file.
fn plots(all: &Dialogues, compass: &Scheme) -> Vec<(String, Svg)> {
    let drawn = figures::ALL.iter().flat_map(|plot| (plot.draw)(all, compass, Breadth::Wide));
    drawn.map(|plot| (file_name(&plot.file), plot.svg)).collect()
}

/// The figures of judged benchmarks, with the names of their files.
fn figures_of(kind: &KindBenchmarks) -> Vec<(String, Svg)> {
    let of = |shown: &ShownBenchmark| {
        let named = |figure: &Figure| {
            (
                format!("{}_{}", file_name(&shown.name), figure.file),
                (figure.draw)(&*shown.numbers, Breadth::Wide),
            )
        };
        kind.showing.figures.iter().map(named).collect::<Vec<_>>()
    };
    kind.shown.iter().flat_map(of).collect()
}

/// A name that every file system takes.
fn file_name(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    text.chars().map(safe).collect::<String>().trim_start_matches('.').to_owned()
}

fn write(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(name);
    create(&path)?.write_all(content).with_context(|| format!("cannot write {}", path.display()))
}
