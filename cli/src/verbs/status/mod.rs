//! `kgfleet status`; `shown` prints one benchmark.

mod shown;

use std::io;

use domain::control::{BenchmarkView, Control};
use serde::Serialize;

use crate::engine::notify::Notify;
use crate::engine::watch;
use crate::files::tables::PriceTable;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::output::print_json;
use crate::kit::runtime::block_on;
use crate::kit::screen::print_all;
use crate::kit::view;
use crate::place::disk::{self, DiskForecast};
use crate::place::opened::is_archive;
use crate::place::{Place, PlaceOptions, completing, names};

/// Show the runs of this machine or of a fleet, or one of them.
///
/// Without a name: all runs and pipelines by their age, the oldest first. With a name: models, scores and failures, and what was
/// spent where prices or GPU-hours are known. Of an unfinished run of this machine also how many bytes its records take, how many
/// more are to come, and how many are free.
///
/// With --follow: a line every ten seconds, and at once when something begins to keep the run from going on; at the end, its
/// scores. The run continues without a follower. A coordinator that does not answer is asked again. Exit codes with --follow: 0
/// finished; 1 finished with failed dialogues; 130 cancelled, or interrupted.
#[derive(Debug, clap::Args)]
#[command(mut_args(with_follow))]
pub struct Arguments {
    /// Name of a run or pipeline, its beginning if no other one begins like it, or `latest` for the newest one. Default: all, one
    /// line each; with --follow, the newest one.
    #[arg(add = completing::runs())]
    run: Option<String>,
    /// Follow it until it ends.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    notify: Notify,
    /// Print JSON: one object, or one line for each run or, with --follow, for each change.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    prices: PriceTable,
    #[command(flatten)]
    place: PlaceOptions,
}

/// Lets nobody be told of a run that is not followed.
fn with_follow(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "on_end" | "webhook" => option.requires("follow"),
        _ => option,
    }
}

/// `kgfleet status`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { run, follow, notify, json, prices, place } = arguments;
    let prices = prices.read()?;
    let place = place.place()?;
    let archive = run.as_deref().filter(|run| is_archive(run));
    // What was unpacked is read before it is removed.
    let unpacked = archive.map(|archive| place.open(archive)).transpose()?;
    let (place, run) = match &unpacked {
        Some(unpacked) => (Place::Here(unpacked.data_dir().to_owned()), Some(unpacked.name.to_string())),
        None => (place, run),
    };
    if follow {
        let run = run.as_deref().unwrap_or(names::LATEST);
        return place.about(run, async |control, run| watch::follow(control, run, json, &notify).await);
    }
    let Some(run) = run else { return block_on(async { list(&*place.control()?, json).await }) };
    let view = place.about(&run, async |control, run| control.view(run).await.map_err(explained))?;
    let disk = place.folder().map(|folder| disk::forecast(&view, folder)).transpose()?.flatten();
    if json {
        print_json(&StatedBenchmark::of(&view, disk))?;
        return Ok(ExitCode::Success);
    }
    // What judges are to be asked follows from what was answered.
    let open_end = if view.runs.is_empty() { "" } else { "; stages that have not begun come on top" };
    let records = disk.map(|forecast| format!("records: {forecast}{open_end}"));
    let sentences =
        [view::share(&view), view::limits(&view), records, view::spent(&view, &prices)].into_iter().flatten();
    let sentences = std::iter::once(view::headline(&view)).chain(sentences);
    shown::show(&view, sentences, &mut io::stdout().lock())?;
    if let (Some(forecast), Some(folder)) = (disk.filter(|forecast| !forecast.fits()), place.folder()) {
        eprintln!("warning: the records to come do not fit on the disk of {}: {forecast}", folder.display());
    }
    Ok(ExitCode::Success)
}

/// A benchmark as JSON, with its state in one word.
#[derive(Serialize)]
struct StatedBenchmark<'a> {
    #[serde(flatten)]
    view: &'a BenchmarkView,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<DiskForecast>,
}

impl<'a> StatedBenchmark<'a> {
    fn of(view: &'a BenchmarkView, disk: Option<DiskForecast>) -> Self {
        Self { view, state: view.state(), disk }
    }
}

async fn list(control: &dyn Control, json: bool) -> anyhow::Result<ExitCode> {
    let listed = control.list().await.map_err(explained)?;
    let stated: Vec<_> = listed.iter().map(|view| StatedBenchmark::of(view, None)).collect();
    print_all(&stated, json, |_| view::runs(&listed))?;
    Ok(ExitCode::Success)
}
