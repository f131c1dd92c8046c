//! `kgfleet simulate`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use coordinator::configuration::{Configuration, Connector, ModelSpec};
use domain::{Iteration, TaskLabel};
use tokio::net::{TcpListener, TcpSocket};
use vllm_sim::{AnswerConfig, ModelConfig, SimConfig, Simulator};

use crate::configure::choose::{self, Selection};
use crate::engine::answer_key::PackKey;
use crate::engine::connect;
use crate::engine::judge_key::WithJudges;
use crate::kit::arguments::share;
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::whole_file;
use crate::place::{folders, packs as material};

/// Number of iterations whose prompts the simulated models recognise exactly, at least. Beyond them they match the first
/// paragraph.
const KNOWN_ITERATIONS: Iteration = 50;

/// Length of the accept queue. A load test opens thousands of connections at once; if the queue overflows, the kernel
/// drops connections, and the client retries after a second, which would distort the measurement.
const BACKLOG: u32 = 16_384;

/// Serve simulated models over vLLM's HTTP interface.
///
/// For demos and load tests: no GPU, no weights. The models know the answers of a task pack and give them with a
/// certain skill; what they say is a function of model name, prompt, seed and round. Runs until interrupted and
/// prints its address on standard output.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file (TOML or YAML) with models, answers, latency and faults. Without it: --model.
    #[arg(value_name = "CONFIG", conflicts_with_all = ["models", "embedders", "classifiers", "skill", "profile", "benchmark"])]
    config: Option<PathBuf>,
    /// Serve the models of this benchmark configuration (`quick` for the bundled one) under their names, with its
    /// skill, pack and seed: the same simulation as in `kgfleet run`, for a fleet.
    #[arg(long, value_name = "CONFIG", conflicts_with_all = ["models", "skill", "pack", "seed"], add = choose::completed())]
    benchmark: Option<PathBuf>,
    /// Name of a served model; repeatable.
    #[arg(long = "model", value_name = "NAME", default_value = "sim")]
    models: Vec<String>,
    /// Also serve an embedder of this name (`/v1/embeddings`), which gives similar vectors to texts that begin with
    /// the same words; repeatable.
    #[arg(long = "embedder", value_name = "NAME")]
    embedders: Vec<String>,
    /// Also serve a classifier of this name (`/classify`), for which a text follows from another one that contains
    /// its words; repeatable.
    #[arg(long = "classifier", value_name = "NAME")]
    classifiers: Vec<String>,
    /// Skill of the models, 0 (knows nothing) to 1 (knows everything).
    #[arg(long, value_name = "X", default_value_t = 0.6, value_parser = share)]
    skill: f64,
    /// How long answers take: zero, h100-8b, h100-70b-tp8 or l40s.
    #[arg(long, value_name = "PROFILE", default_value = "zero")]
    profile: String,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: String,
    /// Pack whose answers the models know: `core` or a file.
    #[arg(long, value_name = "PACK", default_value = material::CORE)]
    pack: String,
    /// Seed of the run that will ask; it determines the order of triples in generated graphs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (config, key) = match &arguments.benchmark {
        Some(path) => of_configuration(&arguments, &Selection::default().configuration(Some(path))?)?,
        None => (config(&arguments)?, key(&arguments.pack, arguments.seed)?),
    };
    let simulator = Simulator::new(config).map_err(Exit::usage)?.answer_key(Arc::new(WithJudges(key)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(&arguments.listen)
            .await
            .with_context(|| format!("cannot listen on {}", arguments.listen))?;
        let handle = simulator.serve(listener)?;
        writeln!(std::io::stdout(), "{}", handle.base_url())?;
        tokio::signal::ctrl_c().await?;
        handle.shutdown().await;
        Ok(ExitCode::Success)
    })
}

/// The iterations of a task to learn: every case once at least.
fn known_iterations(task: &tasks::Task) -> Iteration {
    KNOWN_ITERATIONS.max(Iteration::try_from(task.cases().len()).unwrap_or(Iteration::MAX))
}

/// The knowledge of simulated models, from a whole pack.
fn key(pack: &str, seed: u64) -> anyhow::Result<PackKey> {
    let pack = material::open_pack(pack)?;
    let mut key = PackKey::default();
    for task in pack.build_selected(&pack.graphs()?.build(), |_| true)? {
        let label = TaskLabel::new(task.label.as_str());
        key.learn(&task, &label, seed, known_iterations(&task));
    }
    Ok(key)
}

/// The models of a benchmark, and their knowledge.
fn of_configuration(
    arguments: &Arguments,
    configuration: &Configuration,
) -> anyhow::Result<(SimConfig, PackKey)> {
    let (pack, plan) = folders::plan(configuration)?;
    let mut key = PackKey::default();
    let iterations = plan.most_iterations();
    for (task, planned) in material::build(&pack, &plan)?.iter().zip(&plan.tasks) {
        key.learn(task, &planned.label, configuration.seed, iterations.min(known_iterations(task)));
    }
    let profile = profile(&arguments.profile)?;
    let of_servers =
        |model: &ModelSpec| matches!(model.connector, Connector::OpenaiCompatible | Connector::Simulated);
    let models = connect::simulated_models(configuration, of_servers)?.into_iter().chain(judges(arguments));
    let models = models.map(|model| ModelConfig { profile: Clone::clone(&profile), ..model });
    Ok((SimConfig::new(models.collect()), key))
}

/// The embedders and classifiers named by options.
fn judges(arguments: &Arguments) -> impl Iterator<Item = ModelConfig> {
    let embedder = |name| (name, AnswerConfig::Embedder { unrelated: 0.0 });
    let classifier = |name| (name, AnswerConfig::Classifier { mistaken: 0.0 });
    let named = arguments.embedders.iter().map(embedder).chain(arguments.classifiers.iter().map(classifier));
    named.map(|(name, answers)| ModelConfig { answers, ..ModelConfig::new(name) })
}

fn profile<P: serde::de::DeserializeOwned>(name: &str) -> anyhow::Result<P> {
    serde_json::from_value(name.into()).map_err(|_| usage!("unknown --profile `{name}`"))
}

/// Binds the first usable address of a host name.
async fn listen(address: &str) -> std::io::Result<TcpListener> {
    let mut refused = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As in the standard library: an address is free again as soon as its server has ended.
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn config(arguments: &Arguments) -> anyhow::Result<SimConfig> {
    let Some(path) = &arguments.config else {
        let profile = profile(&arguments.profile)?;
        let answers = AnswerConfig::Skilled { overall: connect::dial(arguments.skill), distinct: false };
        let model = |name| ModelConfig { answers: Clone::clone(&answers), ..ModelConfig::new(name) };
        let models = arguments.models.iter().map(model).chain(judges(arguments));
        let models = models.map(|model| ModelConfig { profile: Clone::clone(&profile), ..model });
        return Ok(SimConfig::new(models.collect()));
    };
    let text = whole_file::read_text(path)?;
    let parsed = if path.extension().is_some_and(|extension| extension == "toml") {
        toml::from_str(&text).map_err(|error| error.to_string())
    } else {
        serde_saphyr::from_str(&text).map_err(|error| error.to_string())
    };
    parsed.map_err(|message| usage!("{}: {message}", path.display()))
}
