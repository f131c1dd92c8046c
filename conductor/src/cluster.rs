//! What a conductor asks of a cluster, and what it gets to see of it. [`KubernetesApi`](crate::KubernetesApi) asks a real one.
//! `kgfleet launch` reads the same objects from what `kubectl` prints.

use async_trait::async_trait;
use serde_json::Value;

use crate::objects::{BatchJob, ClusterEvent, CronJob, Deployment, POOL_LABEL, ServerPod};

/// The objects of the pools of one release.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    pub cron_jobs: Vec<CronJob>,
    /// Those of pools, and others of the release.
    pub jobs: Vec<BatchJob>,
    pub pods: Vec<ServerPod>,
    /// Warnings about objects of the namespace, others than these too.
    pub events: Vec<ClusterEvent>,
}

impl ClusterState {
    /// Whether there is no object of the release.
    pub fn is_empty(&self) -> bool {
        self.cron_jobs.is_empty() && self.jobs.is_empty() && self.pods.is_empty()
    }

    /// Reads a list of objects of these kinds, as `kubectl get -o json` prints it; others are passed over, and CronJobs that are
    /// no pools.
    ///
    /// # Errors
    /// It is no list, or an object of it is not of its kind.
    pub fn of_list(mut list: Value) -> Result<Self, serde_json::Error> {
        let items: Vec<Value> = serde_json::from_value(list["items"].take())?;
        let mut state = Self::default();
        for item in items {
            match item["kind"].as_str() {
                Some("CronJob") if item["metadata"]["labels"][POOL_LABEL].is_string() => {
                    state.cron_jobs.push(serde_json::from_value(item)?);
                }
                Some("Job") => state.jobs.push(serde_json::from_value(item)?),
                Some("Pod") => state.pods.push(serde_json::from_value(item)?),
                Some("Event") => state.events.push(serde_json::from_value(item)?),
                _ => {}
            }
        }
        Ok(state)
    }
}

/// What makes the pods of a release, and the pods, those included that are no workers.
#[derive(Clone, Debug, Default)]
pub struct ReleaseObjects {
    pub deployments: Vec<Deployment>,
    pub jobs: Vec<BatchJob>,
    pub pods: Vec<ServerPod>,
}

/// A kind of object that makes pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodMaker {
    Deployment,
    Job,
}

/// An object that is to be deleted with its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainTarget {
    pub kind: PodMaker,
    pub name: String,
    pub uid: String,
}

/// Why a cluster did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// It is so already: the name is taken, or the object is gone or is another one.
    #[error("{0}")]
    Conflict(String),
    /// It is not permitted or makes no sense, so trying again is no use before somebody changes something.
    #[error("{0}")]
    Refused(String),
    /// It may succeed later.
    #[error("{0}")]
    Unavailable(String),
}

/// A cluster as a conductor uses it.
#[async_trait]
pub trait PoolCluster: Send + Sync {
    /// What there is now, without events.
    async fn state(&self) -> Result<ClusterState, ClusterError>;

    /// The warnings of the namespace, of about the last hour.
    async fn warnings(&self) -> Result<Vec<ClusterEvent>, ClusterError>;

    /// Makes a Job.
    async fn create(&self, job: &Value) -> Result<(), ClusterError>;

    /// Deletes a Job with its pods, if it is the one with this `uid`.
    async fn delete(&self, job: &str, uid: &str) -> Result<(), ClusterError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_what_kubectl_lists_only_cron_jobs_of_pools_are_pools() {
        let cron_job = |name: &str, labels: Value| json!({"kind": "CronJob", "metadata": {"name": name, "uid": name, "labels": labels}, "spec": {"jobTemplate": {}}});
        let list = json!({"items": [
            cron_job("bench-a", json!({POOL_LABEL: "a"})),
            // Somebody's own.
            cron_job("bench-backup", json!({})),
            {"kind": "Service", "metadata": {"name": "bench-coordinator"}},
        ]});
        let state = ClusterState::of_list(list).unwrap();
        let names: Vec<&str> = state.cron_jobs.iter().map(|job| job.metadata.name.as_str()).collect();
        assert_eq!(names, ["bench-a"]);
    }
}
