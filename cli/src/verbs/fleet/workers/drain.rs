//! `kgfleet fleet workers drain`.

use std::time::Duration;

use conductor::{ClusterError, DrainStep, KubernetesApi, drain};
use domain::WorkerId;
use domain::control::Control;
use jiff::Timestamp;

use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::output::{note, print_json, say};
use crate::kit::runtime::block_on;
use crate::place::kubernetes::KubernetesPlace;
use crate::place::remote::Remote;

/// Time between two looks at a release that ends.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of consecutive looks at which the cluster does not answer.
const FAILURES_MAX: u32 = 30;

/// Ask a worker to finish what it holds and end; or end all that works for a release on Kubernetes.
///
/// With --release, the conductor ends first, so that it starts no server again. Then the Jobs and Deployments of workers
/// are deleted, whose pods finish their rounds and deliver their records within their grace, and it waits until they
/// have. Pods of lost nodes are named and not waited for. It needs a service account that may list Deployments, Jobs and
/// pods, and delete Deployments and Jobs. The chart runs this before a release is uninstalled. Exit codes: 0; 2 the
/// options cannot be used; 3 the coordinator or the cluster failed.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Name of the worker, see `kgfleet fleet workers`.
    #[arg(required_unless_present = "release", conflicts_with = "release")]
    worker: Option<String>,
    /// End all that works for this release: what has the label `app.kubernetes.io/instance` with its name.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
    #[command(flatten)]
    cluster: KubernetesPlace,
    /// Print JSON.
    #[arg(long, conflicts_with = "release")]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

/// `kgfleet fleet workers drain`.
pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { worker, release, cluster, json, remote } = arguments;
    if let Some(release) = &release {
        let api = cluster.api(release)?;
        return block_on(end_release(&api, release));
    }
    let worker = worker.unwrap_or_default();
    block_on(async {
        let client = remote.client()?;
        client.drain_worker(&WorkerId::new(&*worker)).await.map_err(explained)?;
        if json {
            print_json(&serde_json::json!({ "worker": worker, "draining": true }))?;
        }
        note!("worker {worker} was asked to drain; `kgfleet fleet workers` shows when it is gone");
        Ok(ExitCode::Success)
    })
}

/// Looks until nothing works any more, and says what is waited for. A cluster that does not answer is asked again.
async fn end_release(api: &KubernetesApi, release: &str) -> anyhow::Result<ExitCode> {
    let (mut failures, mut said) = (0, String::new());
    loop {
        match drain::look(api, Timestamp::now()).await {
            Ok(step) => {
                failures = 0;
                let words = step.to_string();
                if words != said {
                    note!("{release}: {words}");
                    said = words;
                }
                if let DrainStep::Done { .. } = step {
                    return Ok(ExitCode::Success);
                }
            }
            Err(ClusterError::Unavailable(reason)) if failures < FAILURES_MAX => {
                failures += 1;
                say(&reason);
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
