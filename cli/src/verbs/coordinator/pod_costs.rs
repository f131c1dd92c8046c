//! Tells Kubernetes how much work each worker's pod holds, so that the idlest goes first when a pool shrinks.
//!
//! Coordinators do this for all workers: so no worker, which reads what models write, needs rights in the cluster. It is
//! best effort: whatever fails here is tried again later, and work does not wait for it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use coordinator::Coordinator;
use coordinator::access::Access;
use domain::WorkerId;
use domain::control::Control;
use domain::reach::is_loopback_host;
use futures::{StreamExt, stream};
use models::client::{redirect_place, redirect_words};
use models::{ClientOptions, HttpClient};
use reqwest::{Certificate, Client, StatusCode, Url, header};
use serde_json::json;
use service_kit::shutdown::{Stop, StopReceiver, reached};
use tokio::time::{Instant, MissedTickBehavior};

use crate::kit::exit_code::{Exit, usage};

/// The annotation by which a ReplicaSet chooses: pods with lower numbers go first, and pods without count as 0.
const ANNOTATION: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Time between two looks at the workers.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Least time between two changes of one pod: each change is a write to the cluster's store.
const CHANGE_EVERY: Duration = Duration::from_secs(15);

/// Maximum number of changes after one look; the rest follows after the next ones.
const CHANGES_MAX: usize = 100;

/// Maximum number of concurrent calls.
const CALLS_AT_ONCE: usize = 4;

/// Time of one call.
const CALL_MAX: Duration = Duration::from_secs(5);

/// Longest name of a pod, in characters.
const POD_NAME_MAX: usize = 253;

/// Options about pods.
#[derive(Clone, Debug, clap::Args)]
pub struct PodCosts {
    /// Tell Kubernetes which workers are busy, by the annotation pod-deletion-cost of their pods: when a pool shrinks, the
    /// idlest goes first. Takes the folder with `token`, `ca.crt` and `namespace` of a service account that may patch pods.
    /// Workers must have the names of their pods.
    #[arg(long, value_name = "DIR")]
    pod_costs: Option<PathBuf>,
    /// Address of the Kubernetes API, for --pod-costs.
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    kubernetes_api: Url,
}

/// What a pod was told last, and when it was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    /// Unknown if nobody answered.
    cost: Option<u32>,
    at: Instant,
}

/// Decides which pods are told what. A plain state machine.
#[derive(Debug, Default)]
struct Costs(BTreeMap<String, Told>);

/// What it costs to end a worker with so many dialogues in flight: 0 if it is idle, else one more for each doubling, because a
/// pod is not told of every dialogue.
fn cost(in_flight: u32) -> u32 {
    u32::BITS - in_flight.leading_zeros()
}

/// Whether a worker's name can be that of a pod. Others would lead to other places of the API.
fn is_pod_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().next_back().is_some_and(plain);
    let within = name.bytes().all(|byte| plain(byte) || matches!(byte, b'-' | b'.'));
    ends && within && name.len() <= POD_NAME_MAX && !name.contains("..")
}

impl Costs {
    /// The pods to tell now, the idlest first. Workers that are gone are forgotten.
    fn due(&mut self, workers: &[(WorkerId, u32)], now: Instant) -> Vec<(String, u32)> {
        self.0.retain(|pod, _| workers.iter().any(|(worker, _)| worker.as_str() == pod));
        let pods = workers.iter().filter(|(worker, _)| is_pod_name(worker.as_str()));
        let mut due: Vec<(String, u32)> = pods
            .map(|(worker, in_flight)| (worker.to_string(), cost(*in_flight)))
            .filter(|(pod, cost)| {
                // What an unknown pod was told by a coordinator of before is unknown, too.
                self.0.get(pod).is_none_or(|told| {
                    told.cost != Some(*cost) && now.duration_since(told.at) >= CHANGE_EVERY
                })
            })
            .collect();
        due.sort_by_key(|(_, cost)| *cost);
        due.truncate(CHANGES_MAX);
        due
    }

    fn tried(&mut self, pod: String, cost: Option<u32>, now: Instant) {
        self.0.insert(pod, Told { cost, at: now });
    }
}

/// The API of the cluster, as a service account may use it.
struct Api {
    client: Client,
    /// Address of the pods of the namespace.
    pods: Url,
    token: PathBuf,
}

impl PodCosts {
    fn api(&self, folder: &std::path::Path) -> anyhow::Result<Api> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path)
                .with_context(|| format!("--pod-costs: cannot read {}", path.display()))
                .map_err(Exit::usage)
        };
        let api = &self.kubernetes_api;
        let is_local = api.host_str().is_some_and(is_loopback_host);
        if api.scheme() != "https" && !(api.scheme() == "http" && is_local) {
            bail!(usage!("--kubernetes-api {api}: a token is sent over https only"));
        }
        let namespace = String::from_utf8(read("namespace")?).map_err(Exit::usage)?;
        let namespace = namespace.trim();
        if !is_pod_name(namespace) {
            bail!(usage!("--pod-costs: `{namespace}` is no namespace"));
        }
        let authority = Certificate::from_pem_bundle(&read("ca.crt")?).map_err(Exit::usage)?;
        let options = ClientOptions {
            request_max: Some(CALL_MAX),
            authorities: Some(authority),
            ..ClientOptions::default()
        };
        let client = HttpClient::with(options).for_url(api)?;
        let pods = api.join(&format!("/api/v1/namespaces/{namespace}/pods/")).map_err(Exit::usage)?;
        Ok(Api { client, pods, token: folder.join("token") })
    }

    /// Starts to tell Kubernetes, until the process stops; does nothing without --pod-costs. To be called on a runtime.
    ///
    /// # Errors
    /// The options cannot be used.
    pub fn start(&self, coordinator: &Arc<Coordinator>, stop: StopReceiver) -> anyhow::Result<()> {
        let Some(folder) = &self.pod_costs else { return Ok(()) };
        let api = self.api(folder)?;
        let access = coordinator.unnamed();
        tokio::spawn(async move {
            tokio::select! {
                () = api.follow(&access) => {}
                () = reached(stop, Stop::Drain) => {}
            }
        });
        Ok(())
    }
}

impl Api {
    async fn follow(&self, access: &Access) {
        let (mut costs, mut fails) = (Costs::default(), false);
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            // Without the queue nobody knows the workers; the coordinator says so itself.
            let Ok(workers) = access.workers().await else { continue };
            let workers: Vec<(WorkerId, u32)> =
                workers.into_iter().map(|view| (view.worker, view.status.in_flight)).collect();
            let due = costs.due(&workers, Instant::now());
            let told = stream::iter(due)
                .map(|(pod, cost)| async move {
                    let told = self.tell(&pod, cost).await;
                    (pod, cost, told)
                })
                .buffer_unordered(CALLS_AT_ONCE);
            for (pod, cost, told) in told.collect::<Vec<_>>().await {
                match &told {
                    Ok(()) => {
                        fails = false;
                        tracing::debug!(pod, cost, "told Kubernetes how busy the worker is");
                    }
                    // Once, not for every pod and every look.
                    Err(error) if !fails => {
                        fails = true;
                        tracing::warn!(pod, error = %format!("{error:#}"), "Kubernetes cannot be told how busy workers are");
                    }
                    Err(error) => {
                        tracing::debug!(pod, error = %format!("{error:#}"), "Kubernetes was not told");
                    }
                }
                costs.tried(pod, told.is_ok().then_some(cost), Instant::now());
            }
        }
    }

    /// Tells a pod. A worker that is no pod is told nothing.
    async fn tell(&self, pod: &str, cost: u32) -> anyhow::Result<()> {
        // Kubernetes renews the token about once an hour.
        let token = tokio::fs::read_to_string(&self.token).await;
        let token = token.with_context(|| format!("cannot read {}", self.token.display()))?;
        let patch = json!({"metadata": {"annotations": {ANNOTATION: cost.to_string()}}});
        let answer = self
            .client
            .patch(self.pods.join(pod)?)
            .bearer_auth(token.trim())
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(patch.to_string())
            .send()
            .await?;
        match answer.status() {
            status if status.is_success() || status == StatusCode::NOT_FOUND => Ok(()),
            status => match redirect_place(&answer) {
                Some(place) => bail!("{} answers {status}: {}", self.pods, redirect_words(&place)),
                None => bail!("{} answers {status}", self.pods),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_told_when_its_work_has_changed_much_and_not_too_often() {
        let (mut costs, start) = (Costs::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let workers =
            |in_flight: [u32; 2]| [(WorkerId::new("a"), in_flight[0]), (WorkerId::new("b"), in_flight[1])];
        let due = |costs: &mut Costs, in_flight, seconds| {
            let due = costs.due(&workers(in_flight), at(seconds));
            due.iter().for_each(|(pod, cost)| costs.tried(pod.clone(), Some(*cost), at(seconds)));
            due.into_iter().map(|(pod, cost)| format!("{pod} {cost}")).collect::<Vec<_>>()
        };
        // What they were told before is not known: both are told, the idlest first.
        assert_eq!(due(&mut costs, [40, 0], 0), ["b 0", "a 6"]);
        assert_eq!(due(&mut costs, [33, 0], 100), [""; 0], "about as busy as before");
        assert_eq!(due(&mut costs, [64, 1], 101), ["b 1", "a 7"]);
        assert_eq!(due(&mut costs, [0, 1], 110), [""; 0], "too soon");
        assert_eq!(due(&mut costs, [0, 1], 116), ["a 0"]);
        // One that failed is tried again, one that is gone is forgotten.
        costs.tried("b".into(), None, at(120));
        assert_eq!(costs.due(&workers([0, 1])[1..], at(134)), []);
        assert_eq!(costs.due(&workers([0, 1])[1..], at(135)), [("b".to_owned(), 1)]);
        assert_eq!(costs.0.len(), 1);
    }

    #[test]
    fn many_pods_are_told_in_turns_and_names_lead_nowhere_else() {
        let mut costs = Costs::default();
        let workers: Vec<_> = (0..250).map(|n| (WorkerId::new(format!("pool-{n}")), 250 - n)).collect();
        let due = costs.due(&workers, Instant::now());
        assert_eq!((due.len(), &due[0]), (CHANGES_MAX, &("pool-249".to_owned(), 1)));
        for name in ["", "a/../secrets", "..", "a..b", "Upper", "a?x=1", "-a", "a%2fb", &"a".repeat(254)] {
            assert_eq!(costs.due(&[(WorkerId::new(name), 1)], Instant::now()), [], "{name}");
        }
    }
}
