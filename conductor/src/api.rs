//! The calls of a conductor to Kubernetes, and of who ends a release. They list the CronJobs, Jobs, Deployments and pods of one
//! release and the warnings of its namespace, make Jobs, and delete Jobs and Deployments. No object is changed in place, and lists have a size limit. Nothing is
//! tried again here, because the next round asks anew.

use async_trait::async_trait;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::account::{APPS, AccountError, BATCH, CORE, ServiceAccount, is_name};
use crate::cluster::{ClusterError, ClusterState, DrainTarget, PodMaker, PoolCluster, ReleaseObjects};
use crate::objects::{ClusterEvent, POOL_LABEL, RELEASE_LABEL};

/// Objects that one answer to a list may hold, and answers that one list may take.
const PAGE_OBJECTS_MAX: usize = 250;
const PAGES_MAX: usize = 40;

/// What of a list is selected: by labels, or by fields where objects have none.
type Selection<'a> = (&'a str, &'a str);

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// The pools of a release, over the API of its cluster.
#[derive(Debug)]
pub struct KubernetesApi {
    account: ServiceAccount,
    /// What belongs to the release, and of that what belongs to pools.
    of_release: String,
    of_pools: String,
}

impl KubernetesApi {
    /// The pools of this release in the namespace of the account.
    ///
    /// # Errors
    /// The release has no name that Kubernetes takes.
    pub fn new(account: ServiceAccount, release: &str) -> Result<Self, AccountError> {
        if !is_name(release) {
            return Err(AccountError::Name(release.to_owned()));
        }
        let of_release = format!("{RELEASE_LABEL}={release}");
        let of_pools = format!("{of_release},{POOL_LABEL}");
        Ok(Self { account, of_release, of_pools })
    }

    /// What there is of the release that makes pods, and all of its pods.
    pub(crate) async fn release(&self) -> Result<ReleaseObjects, ClusterError> {
        let deployments = self.list(APPS, "deployments", ("labelSelector", &self.of_release)).await?;
        let jobs = self.list(BATCH, "jobs", ("labelSelector", &self.of_release)).await?;
        // Pods last, because those of a Job that is gone by then are the ones to wait for.
        let pods = self.list(CORE, "pods", ("labelSelector", &self.of_release)).await?;
        Ok(ReleaseObjects { deployments, jobs, pods })
    }

    /// Deletes something with its pods.
    pub(crate) async fn end(&self, target: &DrainTarget) -> Result<(), ClusterError> {
        let of = match target.kind {
            PodMaker::Deployment => (APPS, "deployments"),
            PodMaker::Job => (BATCH, "jobs"),
        };
        self.remove(of, &target.name, &target.uid).await
    }

    /// Deletes an object of a kind with its pods, if it is the one with this `uid`.
    async fn remove(&self, (group, kind): (&str, &str), name: &str, uid: &str) -> Result<(), ClusterError> {
        let url = self.account.place(group, kind, Some(name))?;
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        });
        self.send(&format!("delete {kind}/{name}"), (Method::DELETE, url), Some(&options)).await.map(|_| ())
    }

    /// Makes a call, and tells a failure that may pass from one that will not.
    async fn send(
        &self,
        what: &str,
        call: (Method, Url),
        body: Option<&Value>,
    ) -> Result<Value, ClusterError> {
        let answer = self.account.call(what, call, body, ANSWER_BYTES_MAX).await?;
        let status = answer.status;
        if status.is_success() {
            return serde_json::from_slice(&answer.body).map_err(|error| {
                ClusterError::Unavailable(format!("cannot {what}: the answer is no JSON: {error}"))
            });
        }
        let message = answer.message().unwrap_or_default();
        let message = format!("cannot {what}: {} answers {status}: {message}", self.account.api());
        Err(match status {
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => ClusterError::Conflict(message),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::GONE => {
                ClusterError::Unavailable(message)
            }
            status if status.is_client_error() => ClusterError::Refused(message),
            _ => ClusterError::Unavailable(message),
        })
    }

    /// All objects of a kind that a selector selects.
    async fn list<T: DeserializeOwned>(
        &self,
        group: &str,
        kind: &str,
        (selector, selected): Selection<'_>,
    ) -> Result<Vec<T>, ClusterError> {
        let what = format!("list {kind} in {}", self.account.namespace());
        let (mut objects, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let mut url = self.account.place(group, kind, None)?;
            {
                let mut query = url.query_pairs_mut();
                query.append_pair(selector, selected);
                query.append_pair("limit", &PAGE_OBJECTS_MAX.to_string());
                if !next.is_empty() {
                    query.append_pair("continue", &next);
                }
            }
            let answer = self.send(&what, (Method::GET, url), None).await?;
            let page: ApiPage<T> = serde_json::from_value(answer)
                .map_err(|error| ClusterError::Refused(format!("cannot {what}: {error}")))?;
            objects.extend(page.items.unwrap_or_default());
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(objects);
            }
        }
        Err(ClusterError::Refused(format!(
            "cannot {what}: there are more than {}",
            PAGES_MAX * PAGE_OBJECTS_MAX
        )))
    }
}

#[derive(Deserialize)]
struct ApiPage<T> {
    #[serde(default)]
    metadata: ApiPageMetadata,
    /// An empty list may be none.
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiPageMetadata {
    #[serde(rename = "continue")]
    next: String,
}

#[async_trait]
impl PoolCluster for KubernetesApi {
    async fn state(&self) -> Result<ClusterState, ClusterError> {
        // Pods are listed before Jobs. In the other order a server that starts in between would show as pods without a Job,
        // which are taken for pods that outlive their server.
        let cron_jobs = self.list(BATCH, "cronjobs", ("labelSelector", &self.of_pools)).await?;
        let pods = self.list(CORE, "pods", ("labelSelector", &self.of_pools)).await?;
        // All Jobs of the release and not just those of pools, because one fetches the weights for all pools.
        let jobs = self.list(BATCH, "jobs", ("labelSelector", &self.of_release)).await?;
        Ok(ClusterState { cron_jobs, jobs, pods, events: Vec::new() })
    }

    async fn warnings(&self) -> Result<Vec<ClusterEvent>, ClusterError> {
        // Events have no labels of the release: its namespace is its own, as a rule.
        self.list(CORE, "events", ("fieldSelector", "type=Warning")).await
    }

    async fn create(&self, job: &Value) -> Result<(), ClusterError> {
        let name = job["metadata"]["name"].as_str().unwrap_or_default();
        let url = self.account.place(BATCH, "jobs", None)?;
        self.send(&format!("make the Job {name}"), (Method::POST, url), Some(job)).await.map(|_| ())
    }

    async fn delete(&self, job: &str, uid: &str) -> Result<(), ClusterError> {
        self.remove((BATCH, "jobs"), job, uid).await
    }
}
