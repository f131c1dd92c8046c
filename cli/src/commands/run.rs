//! `kgfleet run`, `kgfleet resume`, `kgfleet retry`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use coordinator::configuration::{Configuration, Connector, ModelSpec, TaskChoice};
use domain::FailureCause;
use domain::control::BenchmarkCommand;
use halu::Weights;
use report::hallucination::{ModelFacts, Study};
use report::views::hallucination;
use stages::kinds::kghalubench;

use crate::arguments::{Concurrency, concurrency};
use crate::commands::fleet::{MaybeRemote, Remote, block_on, steer, submit, view};
use crate::commands::halu::found;
use crate::exit_code::{Exit, ExitCode, usage};
use crate::notify::{Notifier, Notify};
use crate::run::export::{self, ExportForm, ExportFormat, ExportSource};
use crate::run::protection::{Disclosure, TextForm};
use crate::run::session::{Options, Session, WantedRun};
use crate::run::summary::RunSummary;
use crate::run::{endpoints, judged};
use crate::run_name;

/// The bundled configurations by their names; the first is that of a run without arguments.
const BUNDLED: [(&str, &str); 3] = [
    (QUICK_NAME, include_str!("../../../task-data/configurations/quick.toml")),
    ("judged-demo", include_str!("../../../task-data/configurations/judged-demo.toml")),
    ("halu-quick", include_str!("../../../task-data/configurations/halu-quick.toml")),
];

/// Run a benchmark on this machine.
///
/// Without arguments: a quick configuration over all 26 tasks against the built-in simulator; no network, no GPU. With
/// --endpoint and --model: a real server with OpenAI's API, such as vLLM. With CONFIG: a configuration in TOML or
/// YAML, or LLM-KG-Bench's configuration.yml.
///
/// Every finished dialogue is durable. Interrupt once to finish the dialogues in flight, twice to drop them; the same
/// command again continues the run.
///
/// If a server refuses the first dialogues of a model all in the same words, the model is not asked any more: these
/// dialogues get no records, and the run stops with the server's message.
///
/// Exit codes: 0 done; 1 done, but some dialogues failed; 2 invalid command line or configuration; 3 server, key,
/// disk or other failure, before or during the run; 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct RunArguments {
    /// Configuration file, or the name of a bundled one: `quick`, `judged-demo`, `halu-quick`.
    #[arg(value_name = "CONFIG", conflicts_with_all = ["endpoint", "model"])]
    config: Option<PathBuf>,
    /// Base URL of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1.
    #[arg(long, value_name = "URL", requires = "model")]
    endpoint: Option<String>,
    /// Name of the model, as the server knows it.
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    model: Option<String>,
    /// Environment variable with the server's key.
    #[arg(long, value_name = "VAR", requires = "endpoint")]
    key_env: Option<String>,
    #[command(flatten)]
    selection: Selection,
    /// Continue this run.
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
    /// With --resume: add the models, tasks and iterations that are new in the configuration; to a judged benchmark, models.
    #[arg(long, requires = "resume")]
    extend: bool,
    /// Of a judged benchmark: end where a judge cannot be reached, instead of waiting for it. `kgfleet resume` goes on.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    common: Common,
}

/// Options that restrict or override a configuration.
#[derive(Debug, Default, clap::Args)]
pub struct Selection {
    /// Only tasks whose label matches; `*` stands for any text. Repeatable.
    #[arg(long = "task", value_name = "GLOB")]
    tasks: Vec<String>,
    /// Repetitions of every task for every model.
    #[arg(long, value_name = "N")]
    iterations: Option<u32>,
    /// Seed of everything random.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Stands in for the file in errors if there is none.
const COMMAND_LINE: &str = "command line";

/// Name of the bundled quick configuration.
const QUICK_NAME: &str = "quick";

impl Selection {
    /// The configuration of a file, or the bundled one, with these overrides.
    pub fn configuration(&self, config: Option<&Path>) -> anyhow::Result<Configuration> {
        let name = config.map_or(Some(QUICK_NAME), Path::to_str);
        let bundled = BUNDLED.iter().find(|(bundled, _)| Some(*bundled) == name);
        let (configuration, file) = match (bundled, config) {
            (None, Some(path)) => {
                (Configuration::read(path).map_err(Exit::usage)?, path.display().to_string())
            }
            (bundled, _) => {
                let (name, text) = bundled.unwrap_or(&BUNDLED[0]);
                let file = format!("{name}.toml");
                (Configuration::parse(text, &file).map_err(Exit::usage)?, file)
            }
        };
        self.apply(configuration, &file)
    }

    fn apply(&self, mut configuration: Configuration, file: &str) -> anyhow::Result<Configuration> {
        endpoints::normalise(&mut configuration, file)?;
        if !self.tasks.is_empty() {
            configuration.tasks = self.tasks.iter().cloned().map(TaskChoice::Label).collect();
        }
        if let Some(iterations) = self.iterations {
            configuration.iterations = iterations;
            configuration.task_iterations.clear();
            for model in &mut configuration.models {
                model.iterations = None;
                model.task_iterations.clear();
            }
        }
        if let Some(seed) = self.seed {
            configuration.seed = seed;
        }
        configuration.validate(COMMAND_LINE).map_err(Exit::usage)?;
        Ok(configuration)
    }
}

/// Options of every command that holds dialogues.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
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
    trust_endpoints: bool,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    notify: Notify,
    /// Formats of the files written at the end, into the run's folder. Default: result-json and csv; for protected
    /// exercises without --password and --plaintext, only csv.
    #[arg(long = "export", value_name = "FORMAT", value_delimiter = ',')]
    exports: Option<Vec<ExportFormat>>,
}

/// Continue an interrupted run, on this machine or, with --coordinator, in its fleet.
///
/// Dialogues with a durable record are not asked again. A run that you did not start on this machine contacts nothing and
/// reads no key unless --trust-endpoints is given. Exit codes as for `kgfleet run`; with --coordinator 0 if the run
/// continues.
#[derive(Debug, clap::Args)]
pub struct ResumeArguments {
    #[arg(help = run_name::HELP)]
    run: String,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// Ask failed dialogues of a run again, on this machine or, with --coordinator, in its fleet.
///
/// A scored record replaces a failed one, never the other way round. Exit codes as for `kgfleet run`; with
/// --coordinator 0 if the dialogues are queued.
#[derive(Debug, clap::Args)]
pub struct RetryArguments {
    #[arg(help = run_name::HELP)]
    run: String,
    /// Only failures with this cause; repeatable. Default: all.
    #[arg(long = "cause", value_name = "CAUSE")]
    causes: Vec<FailureCause>,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// `kgfleet run`.
pub fn run(arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let configuration = configuration(&arguments)?;
    let file = arguments.config.as_deref().map_or(COMMAND_LINE.into(), Path::to_string_lossy);
    configuration.validate_local(&file).map_err(Exit::usage)?;
    if configuration.pipeline.is_some() {
        let wanted = match (arguments.resume, arguments.extend) {
            (None, _) => judged::WantedPipeline::Configured(configuration),
            (Some(name), true) => {
                let name = run_name::of_folder(&name, &arguments.common.data_dir)?;
                judged::WantedPipeline::Extended(name, configuration)
            }
            (Some(_), false) => {
                return Err(usage!(
                    "a judged benchmark goes on with `kgfleet resume`; with --extend it gets more models"
                ));
            }
        };
        return hold_judged(wanted, arguments.common, None, !arguments.no_wait);
    }
    let wanted = match arguments.resume {
        Some(run) => WantedRun::Changed {
            run: run_name::of_folder(&run, &arguments.common.data_dir)?,
            configuration,
            extend: arguments.extend,
        },
        None => WantedRun::Configured(configuration),
    };
    hold(wanted, arguments.common, None)
}

/// `kgfleet resume`.
pub fn resume(arguments: ResumeArguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = named(&arguments.remote, &arguments.common)? {
        return steer::command(&remote, arguments.run, BenchmarkCommand::Resume, arguments.common.json);
    }
    go_on(&arguments.run, arguments.common, None)
}

/// `kgfleet retry`.
pub fn retry(arguments: RetryArguments) -> anyhow::Result<ExitCode> {
    if let Some(remote) = named(&arguments.remote, &arguments.common)? {
        return steer::retry(&remote, &arguments.run, &arguments.causes, arguments.common.json);
    }
    go_on(&arguments.run, arguments.common, Some(arguments.causes))
}

/// The coordinator, if one is named. What its workers may contact is theirs to say.
fn named(remote: &MaybeRemote, common: &Common) -> anyhow::Result<Option<Remote>> {
    let named = remote.named();
    if named.is_some() && common.trust_endpoints {
        return Err(usage!(
            "--trust-endpoints is for runs of this machine; in a fleet, `kgfleet worker --keys` and --allow-endpoint say \
             what may be contacted"
        ));
    }
    Ok(named)
}

/// Continues a run or a pipeline of this machine.
fn go_on(run: &str, common: Common, retry: Option<Vec<FailureCause>>) -> anyhow::Result<ExitCode> {
    let run = run_name::of_folder(run, &common.data_dir)?;
    if block_on(judged::find(&run, &common.data_dir))?.is_some() {
        return hold_judged(judged::WantedPipeline::Named(run), common, retry, true);
    }
    hold(WantedRun::Named(run), common, retry)
}

/// Judge the answers of a pipeline again, with other judges.
///
/// The configuration is that of the pipeline, with other judges in it. The answers are taken over, and so is every verdict
/// that the same judge gave to the same question; only the rest is asked. The result is a pipeline of its own.
///
/// Exit codes as for `kgfleet run`.
#[derive(Debug, clap::Args)]
pub struct JudgeArguments {
    #[arg(help = run_name::HELP)]
    pipeline: String,
    /// The configuration with other judges.
    #[arg(long = "with", value_name = "CONFIG")]
    config: PathBuf,
    /// End where a judge cannot be reached, instead of waiting for it.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    remote: MaybeRemote,
    #[command(flatten)]
    common: Common,
}

/// `kgfleet judge`.
pub fn judge(arguments: JudgeArguments) -> anyhow::Result<ExitCode> {
    let configuration = Selection::default().configuration(Some(&arguments.config))?;
    let remote = named(&arguments.remote, &arguments.common)?;
    let name = match &remote {
        None => {
            let Common { data_dir, trust_endpoints, .. } = &arguments.common;
            let name = run_name::of_folder(&arguments.pipeline, data_dir)?;
            block_on(judged::expect_own(&name, data_dir, *trust_endpoints))?;
            name
        }
        Some(remote) => remote.about(&arguments.pipeline, async |_, name| Ok(name.clone()))?,
    };
    let configuration = judged::again(&name, configuration)?;
    if let Some(remote) = remote {
        return submit::configuration(&remote, &configuration, arguments.common.json);
    }
    hold_judged(judged::WantedPipeline::Configured(configuration), arguments.common, None, !arguments.no_wait)
}

fn hold_judged(
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

fn hold(wanted: WantedRun, common: Common, retry: Option<Vec<FailureCause>>) -> anyhow::Result<ExitCode> {
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

/// The configuration that the arguments describe.
fn configuration(arguments: &RunArguments) -> anyhow::Result<Configuration> {
    let selection = &arguments.selection;
    match (&arguments.config, &arguments.endpoint, &arguments.model) {
        (None, Some(endpoint), Some(model)) => {
            let base = models::http::api_base(endpoint).map_err(|error| usage!("--endpoint: {error}"))?;
            selection.apply(of_server(base.as_str(), model, arguments.key_env.clone()), COMMAND_LINE)
        }
        (config, None, None) => selection.configuration(config.as_deref()),
        _ => Err(usage!("--endpoint and --model belong together")),
    }
}

fn of_server(endpoint: &str, model: &str, key_env: Option<String>) -> Configuration {
    Configuration {
        pipeline: None,
        judges: BTreeMap::new(),
        settings: BTreeMap::new(),
        reuse: None,
        name: format!("{model} at {endpoint}"),
        seed: 0,
        pack: crate::run::material::CORE.to_owned(),
        iterations: coordinator::configuration::ITERATIONS_DEFAULT,
        task_iterations: BTreeMap::new(),
        tasks: Vec::new(),
        models: vec![ModelSpec {
            endpoint: Some(endpoint.to_owned()),
            key_env,
            ..ModelSpec::new(model, Connector::OpenaiCompatible)
        }],
    }
}
