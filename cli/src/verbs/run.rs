//! `kgfleet run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coordinator::configuration::{Configuration, Connector, ModelSpec};
use domain::Sampling;

use crate::configure::choose::{self, COMMAND_LINE, Selection};
use crate::engine::session::WantedBenchmark;
use crate::engine::start::{self, Common};
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::place::{completing, names, task_files};

/// Run a benchmark on this machine.
///
/// Without arguments: a quick configuration over all 26 tasks against the built-in simulator; no network, no GPU. With
/// --endpoint and --model: a real server with OpenAI's API, such as vLLM. With CONFIG: a configuration in TOML or
/// YAML, LLM-KG-Bench's configuration.yml, or a task file with tasks of your own.
///
/// Every finished dialogue is durable. Interrupt once to finish the dialogues in flight, twice to drop them; the same
/// command again continues the run.
///
/// If a server refuses the first dialogues of a model all in the same words, the model is not asked any more: these
/// dialogues get no records, and the run stops with the server's message.
///
/// Exit codes: 0 done; 1 done, but some dialogues failed; 2 invalid command line or configuration; 3 server, key,
/// disk or other failure, before or during the run, or its cap is reached; 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file, or the name of a bundled one: `quick`, `judged-demo`, `halu-quick`; or a task file, whose cases are
    /// then asked of --model, or of simulated models that know some answers.
    #[arg(value_name = "CONFIG", add = choose::completed())]
    config: Option<PathBuf>,
    /// Base URL of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1.
    #[arg(long, value_name = "URL", requires = "models")]
    endpoint: Option<String>,
    /// Name of a model, as the server knows it. Repeatable.
    #[arg(long = "model", value_name = "NAME", requires = "endpoint")]
    models: Vec<String>,
    /// Environment variable with the server's key.
    #[arg(long, value_name = "VAR", requires = "endpoint")]
    key_env: Option<String>,
    #[command(flatten)]
    sampling: SamplingOptions,
    #[command(flatten)]
    selection: Selection,
    /// Continue this run.
    #[arg(long, value_name = "RUN", add = completing::runs_here())]
    resume: Option<String>,
    /// With --resume: add the models, tasks and iterations that are new in the configuration; to a judged benchmark, models.
    #[arg(long, requires = "resume")]
    extend: bool,
    /// Of a judged benchmark: end where a judge cannot be reached, instead of waiting for it. `kgfleet resume` goes on.
    #[arg(long)]
    no_wait: bool,
    /// Check everything that can be checked here, say what would be run and whom it would ask, and stop.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: Common,
}

/// How the models at --endpoint draw tokens. What is not said is the server's choice, but for the length of answers.
#[derive(Debug, clap::Args)]
struct SamplingOptions {
    /// Softmax temperature of the models at --endpoint, 0 to 2. Default: the server's.
    #[arg(long, value_name = "T", requires = "endpoint")]
    temperature: Option<f64>,
    /// Nucleus probability of the models at --endpoint, 0 to 1. Default: the server's.
    #[arg(long, value_name = "P", requires = "endpoint")]
    top_p: Option<f64>,
    /// Maximum number of tokens of an answer of the models at --endpoint.
    #[arg(long, value_name = "N", requires = "endpoint")]
    max_tokens: Option<u32>,
}

/// `kgfleet run`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let configuration = configuration(&arguments)?;
    let file = arguments.config.as_deref().map_or(COMMAND_LINE.into(), Path::to_string_lossy);
    configuration.validate_local(&file).map_err(Exit::usage)?;
    let wanted = match arguments.resume {
        Some(name) => WantedBenchmark::Changed {
            name: names::of_folder(&name, &arguments.common.data_dir)?,
            configuration,
            extend: arguments.extend,
        },
        None => WantedBenchmark::Configured(configuration),
    };
    if arguments.dry_run {
        return start::outline(wanted, &arguments.common);
    }
    start::hold(wanted, arguments.common, None, !arguments.no_wait)
}

/// The configuration that the arguments describe.
fn configuration(arguments: &Arguments) -> anyhow::Result<Configuration> {
    let selection = &arguments.selection;
    match (&arguments.config, &arguments.endpoint) {
        (config, None) => selection.configuration(config.as_deref()),
        (None, Some(endpoint)) => selection.apply(of_server(endpoint, arguments)?, COMMAND_LINE),
        (Some(config), Some(endpoint)) if task_files::is_task_file(config) => {
            let server = of_server(endpoint, arguments)?;
            selection.apply(choose::of_task_file(config, server.models)?, COMMAND_LINE)
        }
        (Some(config), Some(_)) => Err(usage!(
            "{} is a configuration, which names its models itself; --endpoint and --model are for task files, and for runs \
             without a configuration",
            config.display()
        )),
    }
}

/// The configuration of models at a server.
fn of_server(endpoint: &str, arguments: &Arguments) -> anyhow::Result<Configuration> {
    let base = models::http::api_base(endpoint).map_err(|error| usage!("--endpoint: {error}"))?;
    let SamplingOptions { temperature, top_p, max_tokens } = arguments.sampling;
    let model = |name: &String| ModelSpec {
        endpoint: Some(base.to_string()),
        key_env: arguments.key_env.clone(),
        sampling: Sampling { temperature, top_p, max_tokens, ..Sampling::default() },
        ..ModelSpec::new(name, Connector::OpenaiCompatible)
    };
    Ok(Configuration {
        pipeline: None,
        judges: BTreeMap::new(),
        settings: BTreeMap::new(),
        edition: None,
        wordings: BTreeMap::new(),
        reuse: None,
        priority: None,
        cap: None,
        name: format!("{} at {}", arguments.models.join(", "), base.as_str()),
        seed: 0,
        pack: crate::place::packs::CORE.to_owned(),
        iterations: None,
        task_iterations: BTreeMap::new(),
        tasks: Vec::new(),
        models: arguments.models.iter().map(model).collect(),
    })
}
