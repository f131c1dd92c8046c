//! `kgfleet worker`. `until` says when it ends by itself, `server` starts a server of its own, `part` is what a worker does
//! beside the other nodes of a server, `targets` tells
//! Prometheus where it is, `made_at` records where they are made.

use std::fs::{File, TryLockError};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use coordinator::configuration::Connector;
use domain::ModelHome;
use domain::WorkerId;
use domain::exchange::WorkExchange;
use models::Secret;
use proto::Client;
use service_kit::http::Probes;
use service_kit::metrics::Metrics;
use service_kit::shutdown::{self, Stop, reached};
use worker::evaluate::sandbox::host::SandboxHost;
use worker::{
    Connectors, EVALUATOR_COMMAND, Endpoints, EvaluationMode, Keyring, OwnServer, SpoolConfig, Worker,
    WorkerConfig, WorkerError,
};

use crate::engine::worker::tell_lack;
use crate::kit::arguments::{Concurrency, concurrency, file_to_read, seconds};
use crate::kit::exit_code::{Exit, ExitCode, explained, usage};
use crate::kit::output::say;
use crate::kit::runtime::serve_probes;
use crate::place::remote::{self, Remote};
use crate::verbs::worker::server::ServerOptions;
use crate::verbs::worker::targets::ScrapeTarget;
use crate::verbs::worker::until::{Signalled, UntilOptions};

mod made_at;
mod part;
mod server;
mod targets;
mod until;

/// Take work from a coordinator, ask models, judge the answers.
///
/// Discovers which models its servers serve and asks for work on these. SIGTERM drains: no new dialogues start, those
/// in flight may finish within --grace, the rest is given back. Exit codes: 0 drained; 2 the options cannot be used,
/// or another process has the --name; 3 disk or coordinator failed. With --until-done:
/// 0 nothing is left; 75 no work now, but there may be later; 143 (Ctrl-C: 130) drained with work left; 3 also if no
/// server came or records were not delivered.
#[derive(Debug, clap::Args)]
#[command(mut_args(remote::shown))]
pub struct Arguments {
    /// Name, unique in the fleet. A worker restarted with its name and --work-dir delivers its remaining records and
    /// takes over at once. With another --work-dir, it waits until the other process has been silent for the lease,
    /// at least 30 s, and gives up if that process stays alive. Default: host name and the first number that is free
    /// in --work-dir.
    #[arg(long, value_name = "NAME", env = "KGFLEET_WORKER")]
    name: Option<String>,
    /// Base URL of a server with OpenAI's API, such as http://127.0.0.1:8000/v1; repeatable.
    #[arg(
        long = "endpoint",
        value_name = "URL",
        env = "KGFLEET_ENDPOINTS",
        value_delimiter = ',',
        conflicts_with = "endpoints_file"
    )]
    endpoints: Vec<String>,
    /// File of such URLs, one per line or a JSON list; reloaded while the worker runs.
    #[arg(long, value_name = "FILE", env = "KGFLEET_ENDPOINTS_FILE", value_parser = file_to_read)]
    endpoints_file: Option<PathBuf>,
    /// Environment variable with the key of these servers.
    #[arg(long, value_name = "VAR")]
    key_env: Option<String>,
    /// A model that the servers serve, whether their lists name it or not; repeatable. No others are asked then.
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Also ask models with this connector, at addresses given in configurations or the provider's own:
    /// openai-compatible, anthropic or gemini.
    #[arg(long = "connector", value_name = "CONNECTOR", value_delimiter = ',', value_parser = connector)]
    connectors: Vec<Connector>,
    /// Keys that configurations may name: a TOML file of tables `[NAME]` with `connector`, `env` or `file`, and
    /// `endpoints` that the key may be sent to (default: the provider's own). Default: ANTHROPIC_API_KEY as
    /// `anthropic` and GEMINI_API_KEY as `gemini`, if set.
    #[arg(long, value_name = "FILE", env = "KGFLEET_KEYS")]
    keys: Option<PathBuf>,
    /// An address in configurations that this worker may contact: http[s]://HOST[:PORT][/PATH] for all that begin
    /// with it, or HOST[:PORT]; repeatable. Besides these, it contacts only its --endpoint servers and the providers'
    /// own addresses.
    #[arg(
        long = "allow-endpoint",
        value_name = "ADDRESS",
        env = "KGFLEET_ALLOW_ENDPOINT",
        value_delimiter = ','
    )]
    allow_endpoints: Vec<String>,
    /// Dialogues in flight per server: a number, or `auto` to adapt.
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = concurrency)]
    concurrency: Concurrency,
    /// Number of evaluation processes. Default: one per CPU.
    #[arg(long, value_name = "N")]
    evaluators: Option<NonZeroUsize>,
    /// Folder for undelivered records and downloaded packs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_WORK_DIR", default_value = "kgfleet-work")]
    work_dir: PathBuf,
    /// Megabytes of undelivered records at which no new dialogues start.
    #[arg(long, value_name = "MB", default_value_t = SpoolConfig::BYTES_MAX >> 20)]
    spool_mb: u64,
    /// Seconds that dialogues in flight may take after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value = "25", value_parser = seconds)]
    grace: Duration,
    /// Address for /healthz, /readyz and /metrics. Default: none.
    #[arg(long, value_name = "ADDR", env = "KGFLEET_METRICS")]
    metrics: Option<String>,
    #[command(flatten)]
    until: UntilOptions,
    #[command(flatten)]
    server: ServerOptions,
    #[command(flatten)]
    remote: Remote,
}

/// Parses a connector whose models have addresses of their own.
fn connector(text: &str) -> Result<Connector, String> {
    let has_addresses = |connector: &Connector| connector.provider().home != ModelHome::Process;
    let known: Vec<Connector> = Connector::ALL.into_iter().filter(has_addresses).collect();
    known.iter().find(|connector| connector.as_str() == text).copied().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|connector| connector.as_str()).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

/// `kgfleet worker`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    models::install_crypto();
    let metrics = Metrics::install()?;
    metrics.introduce("worker", env!("CARGO_PKG_VERSION"));
    worker::metrics::begin(&metrics);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let elsewhere = !arguments.endpoints.is_empty() || arguments.endpoints_file.is_some();
    let until_done = arguments.until.rules(&arguments.models)?;
    let own = arguments.server.command(elsewhere)?;
    if !elsewhere && own.is_none() && arguments.connectors.is_empty() {
        return Err(usage!(
            "a worker needs models to ask: --endpoint URL, --endpoints-file FILE, --connector CONNECTOR, or the command \
             of a server after `--`"
        ));
    }
    if arguments.server.rank()? > 0 {
        return part::run(own, arguments.metrics.as_deref(), metrics);
    }
    let (name, _taken) = match &arguments.name {
        Some(name) => (name.clone(), None),
        None => {
            let (name, lock) = free_name(&host, &arguments.work_dir)?;
            (name, Some(lock))
        }
    };
    let endpoints = match &arguments.endpoints_file {
        Some(file) => Endpoints::File(file.clone()),
        None => Endpoints::Listed(arguments.endpoints.clone()),
    };
    let evaluation = EvaluationMode::Sandbox {
        program: std::env::current_exe().context("cannot find this program's own file")?,
        arguments: vec![EVALUATOR_COMMAND.to_owned()],
    };
    let keys = Keyring::read(arguments.keys.as_deref(), &arguments.allow_endpoints).map_err(Exit::usage)?;
    for lacking in keys.lacks() {
        eprintln!("warning: key {lacking}");
    }
    let keys = Arc::new(keys);
    let sandbox = SandboxHost::here();
    eprintln!("sandbox: {}", sandbox.in_force.join(", "));
    tell_lack(&sandbox);
    let usual = WorkerConfig::new(WorkerId::new(&*name), evaluation);
    let made_at = Some(arguments.server.made_at(&host));
    let mut config = WorkerConfig {
        host,
        endpoints,
        expected_models: arguments.models.clone(),
        server_key: arguments.key_env.as_deref().map(Secret::from_env).transpose().map_err(Exit::usage)?,
        connectors: arguments.connectors.clone(),
        connect: Arc::new(Connectors::of_fleet(Arc::clone(&keys))),
        keys: Some(keys),
        sandbox: sandbox.in_force,
        concurrency: arguments.concurrency.0,
        evaluators: arguments.evaluators.unwrap_or(usual.evaluators),
        pack_dir: Some(arguments.work_dir.join("packs")),
        spool: Some(SpoolConfig {
            dir: arguments.work_dir.join("spool"),
            bytes_max: arguments.spool_mb << 20,
        }),
        grace: arguments.grace,
        until_done,
        made_at,
        pool: arguments.server.pool.clone().unwrap_or_default(),
        node: arguments.server.node.clone().unwrap_or_default(),
        gpus: arguments.server.gpus.unwrap_or_default(),
        ..usual
    };
    let client = arguments.remote.config()?;
    let readiness = config.readiness.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Reports a bad address now; each runtime makes its own client later.
        Client::connect_lazy(&client).map_err(explained)?;
        let (stopper, stop) = shutdown::channel();
        let signalled = Signalled::default();
        let noted = signalled.clone();
        shutdown::on_signals(stopper, move |wanted, signal| {
            noted.note(signal);
            match wanted {
                Stop::Drain => say("draining: no new dialogues"),
                _ => say("dropping dialogues in flight"),
            }
        })?;
        let probes = Probes { ready: Arc::new(move || readiness.get()), metrics: metrics.clone() };
        let probed_until = reached(stop.clone(), Stop::Abort);
        let probed_at = serve_probes(arguments.metrics.as_deref(), probes, probed_until).await?;
        let own = own.map(OwnServer::start);
        if let Some(server) = &own {
            config.endpoints = Endpoints::Own(server.states());
        }
        let targets = arguments.server.targets(ScrapeTarget {
            worker: name.clone(),
            models: arguments.models.clone(),
            pool: config.pool.clone(),
            host: config.host.clone(),
            probed_at,
            server: own.as_ref().map(OwnServer::states),
        })?;
        eprintln!("worker {name} asking {} for work", arguments.remote.address());
        let factory = move || -> Arc<dyn WorkExchange> {
            // The same configuration was accepted a moment ago.
            Arc::new(Client::connect_lazy(&client).expect("an address that was checked"))
        };
        let report = Worker::run(config, Arc::new(factory), stop).await.map_err(refused);
        if let Some(targets) = targets {
            targets.remove().await;
        }
        if let Some(server) = own {
            server.end().await;
        }
        let report = report?;
        eprintln!(
            "worker {name} ended: {} dialogues, {} undelivered records",
            report.dialogues, report.unacknowledged
        );
        arguments.until.exit_code(report.ended, &signalled)
    })
}

/// Maximum number of workers of one machine and folder that choose their own names.
const NAMES_MAX: u32 = 1_000;

/// The first name of this machine that no other worker in this folder holds. So a restarted worker gets its old name,
/// and with it its undelivered records.
fn free_name(host: &str, work_dir: &Path) -> anyhow::Result<(String, File)> {
    let cannot = || format!("cannot write to {}", work_dir.display());
    std::fs::create_dir_all(work_dir).with_context(cannot)?;
    for number in 1..=NAMES_MAX {
        let name = format!("{host}-{number}");
        let lock = File::create(work_dir.join(format!("{name}.lock"))).with_context(cannot)?;
        match lock.try_lock() {
            Ok(()) => return Ok((name, lock)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
    }
    Err(usage!("{NAMES_MAX} workers run in {}; give this one a --name", work_dir.display()))
}

/// The exit code for a worker's failure.
fn refused(error: WorkerError) -> anyhow::Error {
    match error {
        WorkerError::Endpoint(_) | WorkerError::NameTaken { .. } => Exit::usage(error),
        WorkerError::Refused(error) => explained(error),
        other => other.into(),
    }
}
