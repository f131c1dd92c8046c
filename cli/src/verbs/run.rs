//! `kgfleet run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coordinator::configuration::{Configuration, Connector, ModelSpec};

use crate::configure::choose::{self, COMMAND_LINE, Selection};
use crate::engine::session::WantedBenchmark;
use crate::engine::start::{self, Common};
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::place::{names, task_files};

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
/// disk or other failure, before or during the run; 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file, or the name of a bundled one: `quick`, `judged-demo`, `halu-quick`; or a task file, whose cases are
    /// then asked of --model, or of simulated models that know some answers.
    #[arg(value_name = "CONFIG")]
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
    start::hold(wanted, arguments.common, None, !arguments.no_wait)
}

/// The configuration that the arguments describe.
fn configuration(arguments: &Arguments) -> anyhow::Result<Configuration> {
    let selection = &arguments.selection;
    match (&arguments.config, &arguments.endpoint, &arguments.model) {
        (None, Some(endpoint), Some(model)) => {
            let base = models::http::api_base(endpoint).map_err(|error| usage!("--endpoint: {error}"))?;
            selection.apply(of_server(base.as_str(), model, arguments.key_env.clone()), COMMAND_LINE)
        }
        (config, None, None) => selection.configuration(config.as_deref()),
        (Some(config), Some(endpoint), Some(model)) if task_files::is_task_file(config) => {
            let base = models::http::api_base(endpoint).map_err(|error| usage!("--endpoint: {error}"))?;
            let server = of_server(base.as_str(), model, arguments.key_env.clone());
            selection.apply(choose::of_task_file(config, server.models)?, COMMAND_LINE)
        }
        (Some(config), ..) => Err(usage!(
            "{} is a configuration, which names its models itself; --endpoint and --model are for task files, and for runs \
             without a configuration",
            config.display()
        )),
        _ => Err(usage!("--endpoint and --model belong together")),
    }
}

fn of_server(endpoint: &str, model: &str, key_env: Option<String>) -> Configuration {
    Configuration {
        pipeline: None,
        judges: BTreeMap::new(),
        settings: BTreeMap::new(),
        edition: None,
        wordings: BTreeMap::new(),
        reuse: None,
        priority: None,
        name: format!("{model} at {endpoint}"),
        seed: 0,
        pack: crate::place::packs::CORE.to_owned(),
        iterations: None,
        task_iterations: BTreeMap::new(),
        tasks: Vec::new(),
        models: vec![ModelSpec {
            endpoint: Some(endpoint.to_owned()),
            key_env,
            ..ModelSpec::new(model, Connector::OpenaiCompatible)
        }],
    }
}
