//! Ends all that works for a release on Kubernetes, before the release is removed.
//!
//! The conductor ends first, because it would start servers anew for what workers give back. Then the Jobs and Deployments
//! of workers are deleted: Kubernetes asks their pods to end and makes no other ones, and they finish their rounds and
//! deliver their records within their grace, while coordinators are still there. What comes next follows from what there
//! is, so whoever begins in the middle goes on.

use std::fmt;

use jiff::Timestamp;

use crate::api::KubernetesApi;
use crate::cluster::{ClusterError, DrainTarget, PodMaker, ReleaseObjects};
use crate::objects::{BatchJob, COMPONENT_LABEL, ObjectCondition, ObjectMetadata, ServerPod};
use crate::server::is_lost;

/// The component whose pods start servers.
const CONDUCTOR: &str = "conductor";

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// These are to be deleted.
    Delete(Vec<DrainTarget>),
    /// These pods have not ended yet.
    Wait(Vec<String>),
    /// Nothing works any more. Pods of lost nodes may be left, which nobody can end.
    Done { lost: Vec<String> },
}

impl fmt::Display for DrainStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete(targets) => {
                let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
                write!(f, "ending {}", names.join(", "))
            }
            Self::Wait(pods) => write!(f, "waiting for {}", pods.join(", ")),
            Self::Done { lost } if lost.is_empty() => f.write_str("nothing works any more"),
            Self::Done { lost } => {
                let lost = lost.join(", ");
                write!(f, "nothing works any more; on lost nodes are {lost}, with what they held")
            }
        }
    }
}

/// What comes next for a release of which there is this.
fn next_step(release: &ReleaseObjects, now: Timestamp) -> DrainStep {
    let conductors = deployments(release, is_conductor);
    if !conductors.is_empty() {
        return DrainStep::Delete(conductors);
    }
    let conducting = alive(release, is_conductor, now);
    if !conducting.is_empty() {
        return DrainStep::Wait(conducting);
    }
    let jobs = release.jobs.iter().filter(|job| is_worker(&job.metadata) && is_there(&job.metadata));
    let jobs = jobs.filter(|job| !has_ended(job)).map(|job| target(PodMaker::Job, &job.metadata));
    let targets: Vec<DrainTarget> = deployments(release, is_worker).into_iter().chain(jobs).collect();
    if !targets.is_empty() {
        return DrainStep::Delete(targets);
    }
    let working = alive(release, is_worker, now);
    if !working.is_empty() {
        return DrainStep::Wait(working);
    }
    let lost = release.pods.iter().filter(|pod| is_worker(&pod.metadata) && is_lost(pod, now));
    DrainStep::Done { lost: lost.map(|pod| pod.metadata.name.clone()).collect() }
}

fn is_conductor(metadata: &ObjectMetadata) -> bool {
    metadata.labels.get(COMPONENT_LABEL).is_some_and(|component| component == CONDUCTOR)
}

/// Pools of models and of hosted models have the label of a pool, and nothing else has.
fn is_worker(metadata: &ObjectMetadata) -> bool {
    !metadata.pool().is_empty()
}

fn is_there(metadata: &ObjectMetadata) -> bool {
    metadata.deletion_timestamp.is_none()
}

fn has_ended(job: &BatchJob) -> bool {
    ["Complete", "Failed"].iter().any(|kind| ObjectCondition::holding(&job.status.conditions, kind).is_some())
}

fn target(kind: PodMaker, metadata: &ObjectMetadata) -> DrainTarget {
    DrainTarget { kind, name: metadata.name.clone(), uid: metadata.uid.clone() }
}

/// Deployments of a kind that are to be deleted.
fn deployments(release: &ReleaseObjects, is_meant: fn(&ObjectMetadata) -> bool) -> Vec<DrainTarget> {
    let all = release.deployments.iter().map(|deployment| &deployment.metadata);
    let meant = all.filter(|metadata| is_meant(metadata) && is_there(metadata));
    meant.map(|metadata| target(PodMaker::Deployment, metadata)).collect()
}

/// Names of pods of a kind that have not ended, but for those of lost nodes.
fn alive(release: &ReleaseObjects, is_meant: fn(&ObjectMetadata) -> bool, now: Timestamp) -> Vec<String> {
    let alive = |pod: &&ServerPod| is_meant(&pod.metadata) && !pod.status.is_over() && !is_lost(pod, now);
    release.pods.iter().filter(alive).map(|pod| pod.metadata.name.clone()).collect()
}

/// Looks once, and deletes what is to be deleted now; what came next.
///
/// # Errors
/// The cluster does not answer, or refuses something.
pub async fn look(api: &KubernetesApi, now: Timestamp) -> Result<DrainStep, ClusterError> {
    let step = next_step(&api.release().await?, now);
    if let DrainStep::Delete(targets) = &step {
        for target in targets {
            match api.end(target).await {
                // Somebody else was first: the next look sees what there is.
                Ok(()) | Err(ClusterError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(step)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    /// Metadata of an object, of a pool or of a component.
    fn metadata(name: &str, of: &str) -> Value {
        let labels = match of {
            "conductor" | "coordinator" => json!({COMPONENT_LABEL: of}),
            pool => json!({COMPONENT_LABEL: "worker", "kgfleet/pool": pool}),
        };
        json!({"name": name, "uid": name, "labels": labels})
    }

    fn release(deployments: &[Value], jobs: &[Value], pods: &[Value]) -> ReleaseObjects {
        let read = |values: &[Value]| Value::from(values.to_vec());
        ReleaseObjects {
            deployments: serde_json::from_value(read(deployments)).unwrap(),
            jobs: serde_json::from_value(read(jobs)).unwrap(),
            pods: serde_json::from_value(read(pods)).unwrap(),
        }
    }

    /// What comes next, in words, a minute after the beginning.
    fn told(deployments: &[Value], jobs: &[Value], pods: &[Value]) -> String {
        next_step(&release(deployments, jobs, pods), at(60)).to_string()
    }

    #[test]
    fn the_conductor_ends_first_then_what_makes_workers_and_then_it_waits() {
        let coordinator = json!({"metadata": metadata("coordinator", "coordinator")});
        let conductor = json!({"metadata": metadata("conductor", "conductor")});
        let standing = json!({"metadata": metadata("embed", "embed")});
        let job = json!({"metadata": metadata("large-1", "large")});
        let done = json!({
            "metadata": metadata("small-1", "small"),
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        });
        let fetches = json!({"metadata": metadata("weights", "coordinator")});
        let jobs = [job, done, fetches];
        let pod =
            |name: &str, of: &str| json!({"metadata": metadata(name, of), "status": {"phase": "Running"}});
        let (conducts, works) = (pod("conductor-x", "conductor"), pod("large-1-0", "large"));
        let coordinates = pod("coordinator-x", "coordinator");
        let pods = [conducts, works.clone(), coordinates.clone()];
        let all = [coordinator.clone(), conductor, standing.clone()];
        assert_eq!(told(&all, &jobs, &pods), "ending conductor");
        let left = [coordinator.clone(), standing];
        assert_eq!(told(&left, &jobs, &pods), "waiting for conductor-x");
        assert_eq!(told(&left, &jobs, &pods[1..]), "ending embed, large-1");
        let left = [coordinator];
        assert_eq!(told(&left, &jobs[1..], &pods[1..]), "waiting for large-1-0");
        let mut over = works;
        over["status"]["phase"] = json!("Failed");
        assert_eq!(told(&left, &jobs[1..], &[over, coordinates]), "nothing works any more");
    }

    #[test]
    fn what_is_going_is_not_deleted_again_and_a_lost_node_is_waited_for_no_longer_than_its_grace() {
        let going = |kind: &str, gone_at: i64| {
            let mut object = json!({"metadata": metadata(kind, "large"), "status": {"phase": "Running"}});
            object["metadata"]["deletionTimestamp"] = json!(at(gone_at).to_string());
            object
        };
        let (job, pod) = (going("large-1", 30), going("large-1-0", 30));
        assert_eq!(told(&[], &[job], std::slice::from_ref(&pod)), "waiting for large-1-0");
        let step = next_step(&release(&[], &[], &[pod]), at(91));
        assert_eq!(step, DrainStep::Done { lost: vec!["large-1-0".to_owned()] });
    }
}
