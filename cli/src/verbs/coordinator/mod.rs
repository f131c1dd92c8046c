//! `kgfleet coordinator`.

mod door;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use coordinator::audit::AuditLog;
use coordinator::{Adopt, Coordinator, CoordinatorOptions};
use door::{Door, ServedCoordinator};
use page::{DashboardUrl, Links, Page, PageOptions, PublicUrl};
use proto::server::BesideCalls;
use queue::QueueStore;
use report::costs::Prices;
use results::run_lock::{Holder, RunLock};
use service_kit::descriptors;
use service_kit::http::{self, Probes};
use service_kit::metrics::Metrics;
use service_kit::shutdown::{self, Stop, reached};

use crate::files::tables::PriceTable;
use crate::kit::arguments::{file_to_read, seconds};
use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::kit::runtime::bind;
use crate::place::folders::AUDIT;
use crate::place::queue_login::QueueLogin;

/// Longest time to wait for the queue at the start, in seconds.
const QUEUE_WAIT_SECONDS_MAX: u64 = 24 * 3_600;

/// Time between two looks for it.
const QUEUE_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Plan runs, hand out work, store records.
///
/// Of the coordinators with the same Redis and the same records one leads; the others wait, refuse calls, and follow it when it ends or
/// says nothing for 5 s. A coordinator without Redis serves its --data-dir alone. Runs until a signal arrives. Exit codes: 0 stopped
/// by a signal; 2 the options cannot be used; 3 queue, disk or socket failed, another coordinator holds the --data-dir, or the queue
/// belongs to other records; 5 another coordinator leads since.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Address for everything: workers (gRPC), the API under /api/v1, the live page, /healthz, /readyz, and /metrics for callers
    /// with the role reader.
    #[arg(long, value_name = "ADDR", env = "KGFLEET_LISTEN", default_value = "127.0.0.1:7700")]
    listen: String,
    /// A second address for /metrics, /healthz and /readyz alone, in plain HTTP and for everybody who reaches it.
    #[arg(long, value_name = "ADDR", env = "KGFLEET_METRICS")]
    metrics: Option<String>,
    /// The https:// address under which a proxy with TLS shows the live page to other machines; needs --tokens. Without
    /// it, other machines need the TLS and the tokens of this coordinator.
    #[arg(long, value_name = "URL", env = "KGFLEET_PAGE_URL", requires = "tokens")]
    page_url: Option<PublicUrl>,
    /// Address of Grafana with this project's dashboards, to which the live page leads.
    #[arg(long, value_name = "URL", env = "KGFLEET_DASHBOARDS")]
    dashboards: Option<DashboardUrl>,
    #[command(flatten)]
    prices: PriceTable,
    /// The queue: redis://HOST:PORT/DB (rediss:// for TLS, redis+sentinel://, redis+cluster://), or `memory` for a
    /// single coordinator without Redis, which rebuilds the queue after a restart; dialogues in progress are then
    /// asked again.
    #[arg(long, value_name = "URL", env = "KGFLEET_QUEUE", hide_env_values = true, default_value = MEMORY)]
    queue: String,
    #[command(flatten)]
    login: QueueLogin,
    /// Seconds for which a queue that cannot be reached is waited for at the start.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=QUEUE_WAIT_SECONDS_MAX))]
    queue_wait: u64,
    /// Certificate of the authority that signed Redis's, in PEM.
    #[arg(long, value_name = "FILE", value_parser = file_to_read)]
    queue_ca: Option<PathBuf>,
    /// Client certificate for Redis, in PEM.
    #[arg(long, value_name = "FILE", requires = "queue_key", value_parser = file_to_read)]
    queue_cert: Option<PathBuf>,
    /// The key of --queue-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "queue_cert", value_parser = file_to_read)]
    queue_key: Option<PathBuf>,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
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
    /// Folder of the audit log: who did what, see `kgfleet fleet audit`. Default: `audit` in --data-dir.
    #[arg(long, value_name = "DIR", env = "KGFLEET_AUDIT_DIR")]
    audit_dir: Option<PathBuf>,
    #[command(flatten)]
    door: Door,
}

/// Queue address for the in-memory queue.
const MEMORY: &str = "memory";

/// Locks the data folder for as long as the file is held, exclusively (`alone`) or together with others who share a
/// queue. Two queues over one folder would draw equal tickets, and the winner of a dialogue would be arbitrary.
fn share_folder(data_dir: &Path, alone: bool) -> anyhow::Result<RunLock> {
    let path = data_dir.join("coordinator.lock");
    let holder = if alone { Holder::Process } else { Holder::Fleet };
    let taken = RunLock::take(&path, holder).with_context(|| format!("cannot lock {}", path.display()))?;
    taken.map_err(|_| {
        anyhow!(
            "another coordinator serves {}; coordinators can share a folder only if all of them use the same Redis with \
             --queue",
            data_dir.display()
        )
    })
}

/// `kgfleet coordinator`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    models::install_crypto();
    let metrics = Metrics::install()?;
    metrics.introduce("coordinator", env!("CARGO_PKG_VERSION"));
    coordinator::metrics::begin(&metrics);
    let security = arguments.door.security()?;
    let prices = Arc::new(arguments.prices.read()?);
    let config = CoordinatorOptions {
        lease_for: arguments.lease,
        max_strikes: arguments.strikes,
        prices: Arc::clone(&prices),
        ..CoordinatorOptions::fleet()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (listener, bound) = bind(&arguments.listen).await?;
        arguments.door.check(bound)?;
        match descriptors::raise_limit() {
            Ok(Some(most)) => tracing::info!(most, "open files and connections are bounded by this limit"),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
        }
        std::fs::create_dir_all(&arguments.data_dir)
            .with_context(|| format!("cannot make {}", arguments.data_dir.display()))?;
        let alone = arguments.queue == MEMORY;
        let _share = share_folder(&arguments.data_dir, alone)?;
        let identity = arguments.queue_cert.as_deref().zip(arguments.queue_key.as_deref());
        let address = arguments.login.into_address(&arguments.queue)?;
        let scheme = if security.tls.is_some() { "https" } else { "http" };
        let name = format!("{scheme}://{}:{}", host(), bound.port());
        let queue = queue::open_as(&address, arguments.queue_ca.as_deref(), identity, &name)?;
        for warning in checked(&*queue, Duration::from_secs(arguments.queue_wait)).await? {
            eprintln!("warning: {warning}");
        }
        let sink = results::Sink::new(arguments.data_dir.clone());
        let audit = open_audit(&arguments, bound)?;
        let coordinator = Coordinator::start_noting(config, Arc::clone(&queue), sink, audit.clone());
        let adopt = Adopt { store: arguments.adopt_store, queue: arguments.adopt_queue };
        coordinator.bind(adopt).await?;
        let (stopper, stop) = shutdown::channel();
        shutdown::on_signals(stopper.clone(), |wanted, _| match wanted {
            Stop::Drain => say("stopping: finishing calls in progress"),
            _ => say("stopping at once"),
        })?;
        let ready = Arc::clone(&coordinator);
        let ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync> =
            Arc::new(move || ready.ready().map_err(|error| error.message));
        let links = Links { prices: Prices::clone(&prices), dashboards: arguments.dashboards.clone() };
        let identities = security.identities.clone();
        let options = PageOptions { identities, public: arguments.page_url.clone(), links };
        let page =
            Page::new(Arc::clone(&coordinator), options).context("the live page cannot be served")?;
        let beside = BesideCalls {
            open: http::health(Arc::clone(&ready)).merge(page.router()),
            for_readers: http::metrics(metrics.clone()),
        };
        let scraped = match &arguments.metrics {
            Some(address) => {
                let (listener, bound) = bind(address).await?;
                let probes = Probes { ready, metrics: metrics.clone() };
                let serving = tokio::spawn(http::serve(listener, probes, reached(stop.clone(), Stop::Drain)));
                eprintln!("metrics on http://{bound}/metrics");
                Some(serving)
            }
            None => None,
        };
        eprintln!("coordinator serving on {scheme}://{bound}: calls, live page and probes");
        let following = arguments.door.clone().follow(security.clone(), audit);
        let services = ServedCoordinator(Arc::clone(&coordinator));
        let draining = Arc::clone(&coordinator);
        let hear = stop.clone();
        tokio::spawn(async move {
            reached(hear, Stop::Drain).await;
            // Workers waiting for work are told at once that there is none.
            draining.close();
            page.close();
        });
        let code = tokio::select! {
            () = proto::server::serve(listener, services, security, beside, reached(stop.clone(), Stop::Drain)) => ExitCode::Success,
            () = following => ExitCode::Success,
            () = metrics.keep_up() => ExitCode::Success,
            () = reached(stop, Stop::Abort) => ExitCode::Success,
            by = queue.until_followed() => {
                say(&format!("{by} since; this one ends"));
                ExitCode::Followed
            }
        };
        coordinator.close_logs().await;
        queue.leave().await;
        stopper.at_least(Stop::Abort);
        if let Some(scraped) = scraped {
            scraped.await?;
        }
        Ok(code)
    })
}

/// What the queue warns of, if it is fit for use. One that cannot be reached yet is waited for, because its name or its server
/// may come a moment later than this coordinator.
async fn checked(queue: &dyn QueueStore, wait: Duration) -> Result<Vec<String>, queue::Error> {
    let (until, mut said) = (Instant::now() + wait, String::new());
    loop {
        match queue.check().await {
            Err(error @ queue::Error::Unavailable { .. }) if Instant::now() < until => {
                let why = error.to_string();
                if why != said {
                    eprintln!("waiting: {why}");
                    said = why;
                }
                tokio::time::sleep(QUEUE_LOOK_EVERY).await;
            }
            checked => return checked,
        }
    }
}

/// The audit log of this coordinator: a folder of its own, because coordinators may share --data-dir.
fn open_audit(arguments: &Arguments, bound: SocketAddr) -> anyhow::Result<AuditLog> {
    let folder = arguments.audit_dir.clone().unwrap_or_else(|| arguments.data_dir.join(AUDIT));
    let folder = folder.join(format!("{}-{}", host(), bound.port()));
    AuditLog::open(&folder).with_context(|| {
        format!(
            "cannot write the audit log into {}; choose another folder with --audit-dir",
            folder.display()
        )
    })
}

/// The name of this machine, which is that of a pod.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
