//! `kgfleet conduct`.

use std::sync::Arc;
use std::time::Duration;

use conductor::pool::Limits;
use conductor::{ConductorSettings, NOTICES_MAX, NewsDesk, PoolNews, PoolNotice, Rounds};
use service_kit::Readiness;
use service_kit::http::Probes;
use service_kit::metrics::Metrics;
use service_kit::shutdown::{self, Stop, reached};
use tokio::sync::mpsc;

use crate::engine::notify::Webhook;
use crate::kit::arguments::{hours, seconds};
use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::kit::runtime::serve_probes;
use crate::place::kubernetes::KubernetesPlace;
use crate::place::remote::{self, Remote};

/// Start and end the servers of models on Kubernetes, by what coordinators say that there is to do.
///
/// Every few seconds it reads the pools of a release (suspended CronJobs with the label `kgfleet/pool`), their Jobs and pods,
/// asks a coordinator what models have left, and starts Jobs for those that have work: the longest first, within --gpus and
/// --gpu-hours. Servers end by themselves when nothing is left. It deletes only servers that will never serve: those whose nodes
/// do not come, whose pods do not start, that do not stay up, or whose node is lost. It tells a coordinator what pools do, and
/// hands it what ended servers leave. It runs in a pod of the release, whose service account may list CronJobs, Jobs, pods and
/// events, and create and delete Jobs, and keeps nothing: another one goes on by what is in the cluster and what
/// coordinators keep. Exit codes: 0 stopped by a signal; 2 the options cannot be used; 3 the socket failed.
#[derive(Debug, clap::Args)]
#[command(mut_args(remote::shown))]
pub struct Arguments {
    /// GPUs that servers may use at once, those included that wait for nodes.
    #[arg(long, value_name = "N")]
    gpus: u32,
    /// GPUs of a node, which are counted out while it is lost. Default: only those that the lost server had.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    gpus_per_node: Option<u32>,
    /// GPU-hours that all servers of the release may take together: none is started that would, as far as is known, take more.
    /// Default: no budget.
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    gpu_hours: Option<f64>,
    /// Seconds that a server of several nodes may wait for all of them; then it is deleted, and tried again five minutes later.
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = seconds)]
    gang_timeout: Duration,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    every: Duration,
    /// Something admits Jobs whole and in the order of their creation, as Kueue does: servers of several nodes need not wait for
    /// each other.
    #[arg(long)]
    admitted_whole: bool,
    /// The release whose pools these are: the label `app.kubernetes.io/instance` of their CronJobs.
    #[arg(long, env = "KGFLEET_RELEASE")]
    release: String,
    #[command(flatten)]
    cluster: KubernetesPlace,
    /// Address for /healthz, /readyz and /metrics. Default: none.
    #[arg(long, value_name = "ADDR", env = "KGFLEET_METRICS")]
    metrics: Option<String>,
    /// POST a JSON to this URL when a pool is given up (pool-failed) and when one waits because the budget is spent
    /// (budget-spent). Each is told once, and again only after it was over.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Arguments {
    fn settings(&self) -> ConductorSettings {
        ConductorSettings {
            limits: Limits {
                gpus: self.gpus,
                gpu_hours: self.gpu_hours,
                gang_timeout: self.gang_timeout,
                admits_whole: self.admitted_whole,
            },
            gpus_per_node: self.gpus_per_node,
        }
    }
}

/// `kgfleet conduct`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    models::install_crypto();
    let metrics = Metrics::install()?;
    metrics.introduce("conductor", env!("CARGO_PKG_VERSION"));
    metrics.describe(conductor::metrics::DEFINITIONS);
    let cluster = arguments.cluster.api(&arguments.release)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let client = arguments.remote.client()?;
        let (stopper, stop) = shutdown::channel();
        shutdown::on_signals(stopper, |_, _| say("stopping: servers go on"))?;
        let readiness = Readiness::not_yet("the first round is not over");
        let ready = readiness.clone();
        let probes = Probes { ready: Arc::new(move || ready.get()), metrics };
        serve_probes(arguments.metrics.as_deref(), probes, reached(stop.clone(), Stop::Drain)).await?;
        eprintln!(
            "conducting the pools of {} on {} GPUs, for {}",
            arguments.release,
            arguments.gpus,
            arguments.remote.address()
        );
        let rounds = Rounds::new(arguments.settings());
        let (notices, mut told) = mpsc::channel::<PoolNotice>(NOTICES_MAX);
        let webhook = arguments.webhook.map(Webhook::new);
        tokio::spawn(async move {
            while let Some(notice) = told.recv().await {
                if let Some(webhook) = &webhook {
                    webhook.send(notice.event.as_str(), &notice).await;
                }
            }
        });
        let desk = NewsDesk { news: PoolNews::new(arguments.release, arguments.gpu_hours), notices };
        conductor::conduct(&cluster, &client, rounds, arguments.every, readiness, desk, stop).await;
        Ok(ExitCode::Success)
    })
}
