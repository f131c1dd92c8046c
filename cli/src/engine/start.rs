//! What `run`, `resume`, `retry` and `rejudge` share: their options, and starting, showing and ending a benchmark on this
//! machine.

use std::io::{self, Write};
use std::path::Path;

use benchmarks::Kind;
use benchmarks::kinds;
use benchmarks::showing::{Extras, Showing, ShownBenchmark};
use domain::FailureCause;
use domain::control::BenchmarkCommand;

use crate::engine::ending::LocalEnding;
use crate::engine::session::{Session, WantedBenchmark};
use crate::engine::steer;
use crate::engine::worker::Options;
use crate::files::export::{self, ExportForm, ExportFormat, ExportSource};
use crate::files::judged::{self, FolderReader};
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{note, print_json};
use crate::kit::screen::Screen;
use crate::kit::view;
use crate::place::disclosure::{Disclosure, TextForm};
use crate::place::remote::MaybeRemote;
use crate::place::{DataDir, Place, completing, folders, names};

/// Options of every command that holds dialogues.
#[derive(Debug, clap::Args)]
pub struct Common {
    #[command(flatten)]
    pub data: DataDir,
    #[command(flatten)]
    pub options: Options,
    /// Write texts of protected exercises in plaintext into the files at the end.
    #[arg(long)]
    plaintext: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Formats of the files written at the end, into the run's folder. Default: result-json and csv; for protected
    /// exercises without --password and --plaintext, only csv.
    #[arg(long = "export", value_name = "FORMAT", value_delimiter = ',')]
    exports: Option<Vec<ExportFormat>>,
}

impl Common {
    /// Where a verb acts that goes on with runs here or in a fleet. `--trust-endpoints` is refused in a fleet, where the workers
    /// decide what is contacted.
    pub fn place(&self, remote: &MaybeRemote) -> anyhow::Result<Place> {
        let place = Place::of(remote, &self.data)?;
        if self.options.trust_endpoints && place.folder().is_none() {
            return Err(usage!(
                "--trust-endpoints is for runs of this machine; in a fleet, `kgfleet worker --keys` and --allow-endpoint say \
                 what may be contacted"
            ));
        }
        Ok(place)
    }
}

/// A run that is to go on, on this machine or in a fleet.
#[derive(Debug, clap::Args)]
pub struct GoingOn {
    #[arg(help = names::HELP, add = completing::runs())]
    run: String,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

impl GoingOn {
    /// Resumes it, or asks failed dialogues again: those with one of these causes, or all if there are none.
    pub fn go_on(self, retry: Option<Vec<FailureCause>>) -> anyhow::Result<ExitCode> {
        let Self { run, remote, mut common } = self;
        match (common.place(&remote)?, retry) {
            (Place::Here(folder), retry) => {
                common.options.retry = retry;
                hold(WantedBenchmark::Named(names::of_folder(&run, &folder)?), common, true)
            }
            (fleet, None) => steer::command(&fleet, &run, BenchmarkCommand::Resume, common.json),
            (fleet, Some(causes)) => steer::retry(&fleet, &run, &causes, common.json),
        }
    }
}

/// Works a benchmark off, shows it, and writes its files. Where nothing can be asked, a judged one waits, if `waits` says so.
pub fn hold(wanted: WantedBenchmark, common: Common, waits: bool) -> anyhow::Result<ExitCode> {
    let options = &common.options;
    let disclosure = Disclosure { plaintext: common.plaintext, password: options.password.clone() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ending = runtime.block_on(async {
        let data_dir = common.data.data_dir.clone();
        let session = Session::open(wanted, data_dir, options.trust_endpoints).await?;
        // Fail now rather than after hours of work.
        if let Some(manifest) = session.manifest() {
            for format in common.exports.iter().flatten() {
                export::check(*format, manifest, &disclosure)?;
            }
        }
        session.run(options, waits).await
    })?;
    drop(runtime);
    show(&ending, &common.data.data_dir, common.json)?;
    tell(&ending);
    if ending.view.is_complete() {
        write_exports(&ending, &common.data.data_dir, common.exports, &disclosure)?;
    }
    Ok(ending.exit_code())
}

/// Prints what [`hold`] would do. Nothing is written, and nobody is asked.
pub fn outline(wanted: WantedBenchmark, common: &Common) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outline = runtime.block_on(async {
        let session =
            Session::open(wanted, common.data.data_dir.clone(), common.options.trust_endpoints).await?;
        anyhow::Ok(session.outline())
    })?;
    writeln!(io::stdout().lock(), "{outline}")?;
    Ok(ExitCode::Success)
}

/// Prints the results.
fn show(ending: &LocalEnding, data_dir: &Path, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(&ending.view);
    }
    let (screen, mut out) = (Screen::here(), io::stdout().lock());
    view::scores(&ending.view, |task| ending.score_of(task), screen, &mut out)?;
    let own = kinds::find(ending.configuration.pipeline.as_deref()).and_then(Kind::own_showing);
    if let Some((show, showing)) = own.and_then(|showing| Some((showing.shows.first()?, showing))) {
        let name = ending.view.run.to_string();
        let reader = FolderReader::open(&ending.view.run, data_dir)?;
        let mut reader =
            reader.ok_or_else(|| usage!("there is no benchmark {name} in {}", data_dir.display()))?;
        let numbers = (showing.numbers)(&mut reader, &Extras::default()).map_err(judged::of_showing)?;
        let shown = ShownBenchmark { name, models: ending.view.models.len(), numbers };
        writeln!(out)?;
        screen.table(&Showing::table(show, &[shown]), &mut out)?;
    }
    Ok(())
}

/// Says on standard error how it ended, and what to do.
fn tell(ending: &LocalEnding) {
    let LocalEnding { view, blocked, is_capped, .. } = ending;
    note!("{}: {} dialogues scored, {} failed; {}", view.run, view.scored, view.failed, ending.pace());
    view::warn(view);
    if view.is_complete() {
        if view.failed > 0 {
            note!("`kgfleet retry {}` asks the failed ones again", view.run);
        }
        return;
    }
    blocked.iter().for_each(|why| eprintln!("{why}"));
    if *is_capped {
        note!("stopped; what was stored is kept");
        return;
    }
    let why = if blocked.is_empty() { "interrupted" } else { "stopped; what was stored is kept" };
    note!("{why}; `kgfleet resume {}` goes on", view.run);
}

/// Writes the files of all its runs: of one without judges those that are usual, of a judged one those that were named.
fn write_exports(
    ending: &LocalEnding,
    data_dir: &Path,
    formats: Option<Vec<ExportFormat>>,
    disclosure: &Disclosure,
) -> anyhow::Result<()> {
    let is_judged = !ending.view.runs.is_empty();
    if is_judged && formats.is_none() {
        return Ok(());
    }
    let runs = match is_judged {
        true => ending.view.runs.iter().map(|run| &run.name).collect(),
        false => vec![&ending.view.run],
    };
    for run in runs {
        let (dir, manifest) = folders::open(run, data_dir)?;
        let usual = || match disclosure.form(&manifest) {
            TextForm::Redacted => vec![ExportFormat::Csv],
            TextForm::Clear | TextForm::Encrypted(_) => vec![ExportFormat::ResultJson, ExportFormat::Csv],
        };
        let formats = formats.clone().unwrap_or_else(usual);
        let source = ExportSource::open(&dir, &manifest)?;
        for format in formats {
            let path = dir.make_exports()?.join(format.file_name(ExportForm::Long, &manifest, disclosure));
            export::tell(&path, source.write(format, ExportForm::Long, &path, disclosure)?);
        }
    }
    Ok(())
}
