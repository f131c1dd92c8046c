//! `kgfleet run`.

use std::path::{Path, PathBuf};

use crate::configure::at_endpoint::AtEndpoint;
use crate::configure::choose::{self, COMMAND_LINE, Selection};
use crate::engine::session::WantedBenchmark;
use crate::engine::start::{self, Common};
use crate::kit::exit_code::{Exit, ExitCode};
use crate::place::{completing, names};

/// Run a benchmark on this machine.
///
/// Without arguments: a quick configuration over all 26 tasks against the built-in simulator; no network, no GPU. With
/// --endpoint and --model: a real server with OpenAI's API, such as vLLM. With CONFIG: a configuration in TOML or
/// YAML, LLM-KG-Bench's configuration.yml, or a task file with tasks of your own.
///
/// Every finished dialogue is durable. Interrupt once to give up the calls that no server has accepted and to wait for the others,
/// 60 s at most, twice to drop them; the same command again continues the run.
///
/// The first question of a model is asked alone. If the server does not answer it, or refuses the first ones all in the
/// same words, the model is not asked any more: these dialogues get no records, and the run stops with the server's
/// message.
///
/// Exit codes: 0 done; 1 done, but some dialogues failed; 2 invalid command line or configuration; 3 server, key,
/// disk or other failure, before or during the run, or its cap is reached; 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file, or the name of a bundled one: `quick`, `judged-demo`, `halu-quick`; or a task file, whose cases are
    /// then asked of --model, or of simulated models that know some answers.
    #[arg(value_name = "CONFIG", add = choose::completed())]
    config: Option<PathBuf>,
    #[command(flatten)]
    server: AtEndpoint,
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

/// `kgfleet run`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let configuration = arguments.server.configuration(&arguments.selection, arguments.config.as_deref())?;
    let file = arguments.config.as_deref().map_or(COMMAND_LINE.into(), Path::to_string_lossy);
    configuration.validate_local(&file).map_err(Exit::usage)?;
    let wanted = match arguments.resume {
        Some(name) => WantedBenchmark::Changed {
            name: names::of_folder(&name, &arguments.common.data.data_dir)?,
            configuration,
            extend: arguments.extend,
        },
        None => WantedBenchmark::Configured(configuration),
    };
    if arguments.dry_run {
        return start::outline(wanted, &arguments.common);
    }
    start::hold(wanted, arguments.common, !arguments.no_wait)
}
