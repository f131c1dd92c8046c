//! `kgfleet coordinator` and `kgfleet worker`: the two processes of a cluster.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use coordinator::configuration::Connector;
use coordinator::{Adopt, Coordinator, CoordinatorOptions};
use domain::WorkerId;
use domain::exchange::WorkExchange;
use history::EventLog;
use models::{ClientOptions, HttpClient, Secret};
use page::{Login, Page, PublicUrl};
use proto::Client;
use proto::server::Security;
use service_kit::http::{self, Probes};
use service_kit::metrics::Metrics;
use service_kit::shutdown::{self, Stop, reached};
use service_kit::traces::{self, SampleShare, Service, Tracing};
use tokio::net::TcpListener;
use worker::evaluate::sandbox::confine;
use worker::{
    Connectors, EVALUATOR_COMMAND, Endpoints, EvaluationMode, Keyring, SpoolConfig, Worker, WorkerConfig,
    WorkerError,
};

use super::door::{Door, ServedCoordinator};
use super::pod_costs::PodCosts;
use super::{Remote, explained};
use crate::arguments::{Concurrency, concurrency, seconds};
use crate::commands::verify::EVENTS;
use crate::exit_code::{Exit, ExitCode, usage};
use crate::output::say;

/// Plan runs, hand out work, store records.
///
/// Any number of coordinators may serve the same Redis and the same records at once; a coordinator without Redis
/// serves its --data-dir alone. Runs until a signal arrives. Exit codes: 0 stopped by a signal; 2 the options cannot
/// be used; 3 queue, disk or socket failed, another coordinator holds the --data-dir, or the queue belongs to other
/// records.
#[derive(Debug, clap::Args)]
pub struct CoordinatorArguments {
    /// Address for workers and the command line (gRPC).
    #[arg(long, value_name = "ADDR", env = "KGFLEET_LISTEN", default_value = "127.0.0.1:7700")]
    listen: String,
    /// Address for the live page, /healthz, /readyz and /metrics.
    #[arg(long, value_name = "ADDR", env = "KGFLEET_HTTP", default_value = "127.0.0.1:7701")]
    http: String,
    /// The https:// address under which a proxy with TLS shows the live page to other machines; needs --tokens. Without
    /// it, the page is shown to this machine only.
    #[arg(long, value_name = "URL", env = "KGFLEET_PAGE_URL", requires = "tokens")]
    page_url: Option<PublicUrl>,
    /// The queue: redis://HOST:PORT/DB (rediss:// for TLS, redis+sentinel://, redis+cluster://), or `memory` for a
    /// single coordinator without Redis, which rebuilds the queue after a restart; dialogues in progress are then
    /// asked again.
    #[arg(long, value_name = "URL", env = "KGFLEET_QUEUE", hide_env_values = true, default_value = MEMORY)]
    queue: String,
    /// Certificate of the authority that signed Redis's, in PEM.
    #[arg(long, value_name = "FILE")]
    queue_ca: Option<PathBuf>,
    /// Client certificate for Redis, in PEM.
    #[arg(long, value_name = "FILE", requires = "queue_key")]
    queue_cert: Option<PathBuf>,
    /// The key of --queue-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "queue_cert")]
    queue_key: Option<PathBuf>,
    /// Folder of runs; with --sink a cache of them.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
    /// Store runs in an object store: s3://BUCKET/PREFIX or gs://BUCKET/PREFIX. Credentials come from the
    /// environment.
    #[arg(long, value_name = "URL", env = "KGFLEET_SINK")]
    sink: Option<String>,
    /// Assign the queue to this record store, whichever it belonged to; use it after moving records by hand.
    #[arg(long)]
    adopt_store: bool,
    /// Go on with this queue, whichever the record store was served with; use it after moving Redis. Coordinators of the
    /// other queue are refused from then on.
    #[arg(long)]
    adopt_queue: bool,
    /// Seconds without a sign of life after which a worker loses its work.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    lease: Duration,
    /// Worker deaths, while a unit runs alone, that make it a dead letter.
    #[arg(long, value_name = "N", default_value_t = 3)]
    strikes: u32,
    /// Note what becomes of leases and records in the folder `events` of --data-dir, for `kgfleet verify --history`: about
    /// 1 kB for each dialogue, 512 MB at most.
    #[arg(long)]
    event_log: bool,
    #[command(flatten)]
    pod_costs: PodCosts,
    #[command(flatten)]
    traces: Traces,
    #[command(flatten)]
    door: Door,
}

/// Take work from a coordinator, ask models, judge the answers.
///
/// Discovers which models its servers serve and asks for work on these. SIGTERM drains: no new dialogues start, those
/// in flight may finish within --grace, the rest is given back. Exit codes: 0 drained; 2 the options cannot be used,
/// a server does not serve --model, or another process has the --name; 3 disk or coordinator failed.
#[derive(Debug, clap::Args)]
pub struct WorkerArguments {
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
    #[arg(long, value_name = "FILE", env = "KGFLEET_ENDPOINTS_FILE")]
    endpoints_file: Option<PathBuf>,
    /// Environment variable with the key of these servers.
    #[arg(long, value_name = "VAR")]
    key_env: Option<String>,
    /// A model that the servers must serve; repeatable. No others are asked then.
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
    #[arg(long, value_name = "ADDR", env = "KGFLEET_HTTP")]
    http: Option<String>,
    #[command(flatten)]
    traces: Traces,
    #[command(flatten)]
    remote: Remote,
}

/// Traces.
#[derive(Debug, clap::Args)]
struct Traces {
    /// Send traces of dialogues to this collector, over OTLP's HTTP protocol, such as http://127.0.0.1:4318. They carry
    /// names, numbers and ids, never texts. Default: none.
    #[arg(long = "otlp", value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    endpoint: Option<String>,
    /// Share of dialogues that are traced, from 0 to 1. Coordinators and workers with the same share trace the same
    /// dialogues.
    #[arg(
        long = "trace-sample",
        value_name = "SHARE",
        env = "KGFLEET_TRACE_SAMPLE",
        default_value_t = 1.0,
        requires = "endpoint"
    )]
    sample: f64,
}

impl Traces {
    /// Starts to trace, if wanted. To be called on a runtime.
    fn start(&self, name: &str, instance: &str) -> anyhow::Result<Option<Tracing>> {
        let Some(endpoint) = &self.endpoint else { return Ok(None) };
        let service = Service { name, version: env!("CARGO_PKG_VERSION"), instance };
        let sample = SampleShare::of(self.sample).map_err(|error| usage!("--trace-sample: {error}"))?;
        let url = traces::address(endpoint).map_err(Exit::usage)?;
        let options = ClientOptions { request_max: Some(traces::SEND_MAX), ..ClientOptions::default() };
        let client = HttpClient::with(options).for_url(&url).map_err(Exit::usage)?;
        Ok(Some(traces::start(url, client, sample, service)))
    }
}

/// Parses a connector whose models have addresses of their own.
fn connector(text: &str) -> Result<Connector, String> {
    let has_addresses = |connector: &Connector| match connector {
        Connector::OpenaiCompatible | Connector::Anthropic | Connector::Gemini => true,
        Connector::Simulated | Connector::Replay => false,
    };
    let known: Vec<Connector> = Connector::ALL.into_iter().filter(has_addresses).collect();
    known.iter().find(|connector| connector.as_str() == text).copied().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|connector| connector.as_str()).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

/// Queue address for the in-memory queue.
const MEMORY: &str = "memory";

/// Locks the data folder for as long as the file is held, exclusively (`alone`) or together with others who share a
/// queue. Two queues over one folder would draw equal tickets, and the winner of a dialogue would be arbitrary.
fn share_folder(data_dir: &Path, alone: bool) -> anyhow::Result<File> {
    let path = data_dir.join("coordinator.lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match if alone { file.try_lock() } else { file.try_lock_shared() } {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(anyhow!(
            "another coordinator serves {}; coordinators can share a folder only if all of them use the same Redis with \
             --queue",
            data_dir.display()
        )),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

async fn bind(address: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// `kgfleet coordinator`.
pub fn coordinator(arguments: CoordinatorArguments) -> anyhow::Result<ExitCode> {
    models::install_crypto();
    let metrics = Metrics::install()?;
    metrics.introduce("coordinator", env!("CARGO_PKG_VERSION"));
    coordinator::metrics::begin(&metrics);
    let security = arguments.door.security()?;
    let config = CoordinatorOptions {
        lease_for: arguments.lease,
        max_strikes: arguments.strikes,
        ..CoordinatorOptions::fleet()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (listener, bound) = bind(&arguments.listen).await?;
        let tracing = arguments.traces.start("kgfleet-coordinator", &bound.to_string())?;
        arguments.door.check(bound)?;
        std::fs::create_dir_all(&arguments.data_dir)
            .with_context(|| format!("cannot make {}", arguments.data_dir.display()))?;
        let alone = arguments.queue == MEMORY;
        if alone && arguments.sink.is_some() {
            return Err(usage!(
                "--queue memory is for one coordinator with its own --data-dir: nothing locks the object \
                 store of --sink against a second one. Use a redis:// address"
            ));
        }
        let _share = share_folder(&arguments.data_dir, alone)?;
        let identity = arguments.queue_cert.as_deref().zip(arguments.queue_key.as_deref());
        let queue = queue::open_as(&arguments.queue, arguments.queue_ca.as_deref(), identity)?;
        for warning in queue.check().await? {
            eprintln!("warning: {warning}");
        }
        let sink = match &arguments.sink {
            Some(url) => results::sink::objects(url, arguments.data_dir.clone())?,
            None => results::sink::folder(arguments.data_dir.clone()),
        };
        let events = match arguments.event_log {
            true => EventLog::create(&arguments.data_dir.join(EVENTS))
                .with_context(|| format!("cannot write into {}", arguments.data_dir.join(EVENTS).display()))?,
            false => EventLog::none(),
        };
        let coordinator = Coordinator::start_noting(config, queue, sink, events);
        let adopt = Adopt { store: arguments.adopt_store, queue: arguments.adopt_queue };
        coordinator.bind(adopt).await?;
        let (http_listener, http_address) = bind(&arguments.http).await?;
        let (stopper, stop) = shutdown::channel();
        shutdown::on_signals(stopper.clone(), |wanted| match wanted {
            Stop::Drain => say("stopping: finishing calls in progress"),
            _ => say("stopping at once"),
        })?;
        let ready = Arc::clone(&coordinator);
        let probes =
            Probes { ready: Arc::new(move || ready.ready().map_err(|error| error.message)), metrics };
        let page = Page::new(Arc::clone(&coordinator), entrance(&security), arguments.page_url.clone())
            .context("the live page cannot be served")?;
        let pages = page.router();
        let probing =
            tokio::spawn(http::serve_with(http_listener, probes, pages, reached(stop.clone(), Stop::Drain)));
        eprintln!("coordinator serving on {bound}, live page, health and metrics on http://{http_address}");
        let following = arguments.door.clone().follow(security.clone());
        let services = ServedCoordinator(Arc::clone(&coordinator));
        arguments.pod_costs.start(&coordinator, stop.clone())?;
        let draining = Arc::clone(&coordinator);
        let hear = stop.clone();
        tokio::spawn(async move {
            reached(hear, Stop::Drain).await;
            // Workers waiting for work are told at once that there is none.
            draining.close();
            page.close();
        });
        tokio::select! {
            served = proto::server::serve(listener, services, security, reached(stop.clone(), Stop::Drain)) => served?,
            () = following => {}
            () = reached(stop, Stop::Abort) => {}
        }
        stopper.at_least(Stop::Abort);
        probing.await??;
        if let Some(tracing) = tracing {
            tracing.end().await;
        }
        Ok(ExitCode::Success)
    })
}

/// Who may look at the live page.
fn entrance(security: &Security) -> Login {
    let identities = security.identities.clone();
    if identities.is_anyone() {
        return Login::Anyone;
    }
    Login::Tokens(Arc::new(move |token| identities.of_token(token)))
}

/// `kgfleet worker`.
pub fn worker(arguments: WorkerArguments) -> anyhow::Result<ExitCode> {
    models::install_crypto();
    let metrics = Metrics::install()?;
    metrics.introduce("worker", env!("CARGO_PKG_VERSION"));
    worker::metrics::begin(&metrics);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if arguments.endpoints.is_empty() && arguments.endpoints_file.is_none() && arguments.connectors.is_empty()
    {
        return Err(usage!(
            "a worker needs models to ask: --endpoint URL, --endpoints-file FILE or --connector CONNECTOR"
        ));
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
    let sandbox = confine::available();
    eprintln!("sandbox: {}", sandbox.join(", "));
    let usual = WorkerConfig::new(WorkerId::new(&*name), evaluation);
    let config = WorkerConfig {
        host,
        endpoints,
        expected_models: arguments.models.clone(),
        server_key: arguments.key_env.as_deref().map(Secret::from_env).transpose().map_err(Exit::usage)?,
        connectors: arguments.connectors.clone(),
        connect: Arc::new(Connectors::of_fleet(Arc::clone(&keys))),
        keys: Some(keys),
        sandbox,
        concurrency: arguments.concurrency.0,
        evaluators: arguments.evaluators.unwrap_or(usual.evaluators),
        pack_dir: Some(arguments.work_dir.join("packs")),
        spool: Some(SpoolConfig {
            dir: arguments.work_dir.join("spool"),
            bytes_max: arguments.spool_mb << 20,
        }),
        grace: arguments.grace,
        ..usual
    };
    let client = arguments.remote.config()?;
    let readiness = config.readiness.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Reports a bad address now; each runtime makes its own client later.
        Client::connect_lazy(&client).map_err(explained)?;
        let tracing = arguments.traces.start("kgfleet-worker", &name)?;
        let (stopper, stop) = shutdown::channel();
        shutdown::on_signals(stopper, |wanted| match wanted {
            Stop::Drain => say("draining: no new dialogues"),
            _ => say("dropping dialogues in flight"),
        })?;
        let probing = match &arguments.http {
            None => None,
            Some(address) => {
                let (listener, address) = bind(address).await?;
                eprintln!("health and metrics on http://{address}");
                let probes = Probes { ready: Arc::new(move || readiness.get()), metrics: metrics.clone() };
                Some(tokio::spawn(http::serve(listener, probes, reached(stop.clone(), Stop::Abort))))
            }
        };
        eprintln!("worker {name} asking {} for work", arguments.remote.address());
        let factory = move || -> Arc<dyn WorkExchange> {
            // The same configuration was accepted a moment ago.
            Arc::new(Client::connect_lazy(&client).expect("an address that was checked"))
        };
        let report = Worker::run(config, Arc::new(factory), stop).await.map_err(refused)?;
        if let Some(tracing) = tracing {
            tracing.end().await;
        }
        if let Some(probing) = probing {
            probing.abort();
        }
        eprintln!(
            "worker {name} ended: {} dialogues, {} undelivered records",
            report.dialogues, report.unacknowledged
        );
        Ok(ExitCode::Success)
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
        WorkerError::Endpoint(_) | WorkerError::WrongModel(_) | WorkerError::NameTaken { .. } => {
            Exit::usage(error)
        }
        WorkerError::Refused(error) => explained(error),
        other => other.into(),
    }
}
