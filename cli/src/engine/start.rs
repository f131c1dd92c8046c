//! What `run`, `resume`, `retry` and `judge` share: their options, and starting, showing and ending a benchmark on this
//! machine.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use domain::FailureCause;
use halu::Weights;
use report::hallucination::{ModelFacts, Study};
use report::views::hallucination;
use stages::kinds::kghalubench;

use crate::engine::ending::RunSummary;
use crate::engine::judged;
use crate::engine::notify::{Notifier, Notify};
use crate::engine::session::{Session, WantedRun};
use crate::engine::worker::Options;
use crate::files::export::{self, ExportForm, ExportFormat, ExportSource};
use crate::files::kghalubench as found;
use crate::kit::arguments::{Concurrency, concurrency};
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::runtime::block_on;
use crate::kit::view;
use crate::place::disclosure::{Disclosure, TextForm};
use crate::place::remote::{MaybeRemote, Remote};
use crate::place::{local, names};

/// Options of every command that holds dialogues.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    pub data_dir: PathBuf,
    /// Dialogues in flight per model: a number, or `auto` to adapt to the server.
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = concurrency)]
    concurrency: Concurrency,
    /// Number of evaluation processes. Default: one per CPU.
    #[arg(long, value_name = "N")]
    evaluators: Option<NonZeroUsize>,
    /// Judge answers in this process: faster, but without protection from hostile answers.
    #[arg(long)]
    no_sandbox: bool,
    /// Password of encrypted recordings, for replayed models, and of the result-json archive of a run on protected
    /// exercises.
    #[arg(long, value_name = "P", env = "KGFLEET_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Write texts of protected exercises in plaintext into the files at the end.
    #[arg(long)]
    plaintext: bool,
    /// Go on with a run from elsewhere: contact the addresses and read the keys that its manifest names. It is yours from then
    /// on. Without this, they are only listed.
    #[arg(long)]
    pub trust_endpoints: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    notify: Notify,
    /// Formats of the files written at the end, into the run's folder. Default: result-json and csv; for protected
    /// exercises without --password and --plaintext, only csv.
    #[arg(long = "export", value_name = "FORMAT", value_delimiter = ',')]
    exports: Option<Vec<ExportFormat>>,
}

/// The coordinator, if one is named. `--trust-endpoints` is then refused, because in a fleet the workers decide what is
/// contacted.
pub fn named(remote: &MaybeRemote, common: &Common) -> anyhow::Result<Option<Remote>> {
    let named = remote.named();
    if named.is_some() && common.trust_endpoints {
        return Err(usage!(
            "--trust-endpoints is for runs of this machine; in a fleet, `kgfleet worker --keys` and --allow-endpoint say \
             what may be contacted"
        ));
    }
    Ok(named)
}

/// Continues a run or a judged benchmark of this machine.
pub fn go_on(run: &str, common: Common, retry: Option<Vec<FailureCause>>) -> anyhow::Result<ExitCode> {
    let run = names::of_folder(run, &common.data_dir)?;
    if block_on(local::find(&run, &common.data_dir))?.is_some() {
        return hold_judged(judged::WantedPipeline::Named(run), common, retry, true);
    }
    hold(WantedRun::Named(run), common, retry)
}

/// Carries out a judged benchmark, shows it, and prints its results.
pub fn hold_judged(
    wanted: judged::WantedPipeline,
    common: Common,
    retry: Option<Vec<FailureCause>>,
    waits: bool,
) -> anyhow::Result<ExitCode> {
    let options = options(&common, retry);
    let data_dir = common.data_dir.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let outcome = judged::run(wanted, common.data_dir, &options, waits).await?;
        if !common.notify.targets.is_empty() {
            Notifier::new(common.notify).look_last(&outcome.view).await;
        }
        anyhow::Ok(outcome)
    })?;
    let mut out = io::stdout().lock();
    if common.json {
        writeln!(out, "{}", serde_json::to_string(&outcome.view)?)?;
    } else {
        view::scores(&outcome.view, |_| None, &mut out)?;
        if outcome.kind == kghalubench::KIND.name {
            let reading = found::expect(outcome.view.run.as_str(), &data_dir, &mut |_, _, _, _| ())?;
            let study = Study::of(&reading.found, &Weights::simulated()?, &ModelFacts::default());
            writeln!(out)?;
            hallucination::main(&[study]).write(&mut out)?;
        }
    }
    drop(out);
    judged::tell(&outcome);
    Ok(outcome.exit_code())
}

fn options(common: &Common, retry: Option<Vec<FailureCause>>) -> Options {
    Options {
        concurrency: common.concurrency.0,
        no_sandbox: common.no_sandbox,
        evaluators: common
            .evaluators
            .or_else(|| std::thread::available_parallelism().ok())
            .unwrap_or(NonZeroUsize::MIN),
        retry,
        password: common.password.clone(),
        notify: common.notify.clone(),
        trusts_endpoints: common.trust_endpoints,
    }
}

/// Carries out a run, shows it, and writes its files.
pub fn hold(wanted: WantedRun, common: Common, retry: Option<Vec<FailureCause>>) -> anyhow::Result<ExitCode> {
    let options = options(&common, retry);
    let disclosure = Disclosure { plaintext: common.plaintext, password: common.password };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let summary = runtime.block_on(async {
        let session = Session::open(wanted, common.data_dir, options.trusts_endpoints).await?;
        // Fail now rather than after hours of work.
        for format in common.exports.iter().flatten() {
            export::check(*format, session.manifest(), &disclosure)?;
        }
        session.run(&options).await
    })?;
    let mut out = io::stdout().lock();
    if common.json {
        writeln!(out, "{}", serde_json::to_string(&summary.view)?)?;
    } else {
        view::scores(&summary.view, |task| summary.score_of(task), &mut out)?;
    }
    drop(out);
    tell(&summary);
    if summary.is_complete() {
        write_exports(&summary, common.exports, &disclosure)?;
    }
    Ok(summary.exit_code())
}

fn tell(summary: &RunSummary) {
    let run = &summary.manifest.run;
    eprintln!(
        "run {run}: {} dialogues scored, {} failed; {}",
        summary.view.scored,
        summary.view.failed,
        summary.pace()
    );
    view::warn(&summary.view);
    for (model, reason) in &summary.parked {
        eprintln!("model `{model}` could not be asked any more: {reason}");
    }
    if !summary.is_complete() {
        let why = if summary.parked.is_empty() { "interrupted" } else { "stopped; what was stored is kept" };
        eprintln!("{why}; `kgfleet resume {run}` goes on");
    } else if summary.view.failed > 0 {
        eprintln!("`kgfleet retry {run}` asks the failed ones again");
    }
}

fn write_exports(
    summary: &RunSummary,
    formats: Option<Vec<ExportFormat>>,
    disclosure: &Disclosure,
) -> anyhow::Result<()> {
    let formats = formats.unwrap_or_else(|| match disclosure.form(&summary.manifest) {
        TextForm::Redacted => vec![ExportFormat::Csv],
        TextForm::Clear | TextForm::Encrypted(_) => vec![ExportFormat::ResultJson, ExportFormat::Csv],
    });
    let source = ExportSource::open(summary.dir.clone(), summary.manifest.clone())?;
    for format in formats {
        let path =
            summary.dir.exports().join(format.file_name(ExportForm::Long, &summary.manifest, disclosure));
        export::tell(&path, source.write(format, ExportForm::Long, &path, disclosure)?);
    }
    Ok(())
}
