//! The objects of Kubernetes, as far as a conductor reads them. Fields that it does not read are ignored, and fields that are
//! missing have their defaults, because versions of Kubernetes differ in both. What the objects mean is decided in `template`
//! and `server`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The label with the name of a pool, on its CronJob, on Jobs that are made of it, and on their pods.
pub const POOL_LABEL: &str = "kgfleet/pool";

/// The label with the name of the release.
pub const RELEASE_LABEL: &str = "app.kubernetes.io/instance";

/// The label with the part of the release that an object is of.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";

/// The label by which the Job controller marks the pods of a Job.
pub const JOB_LABEL: &str = "batch.kubernetes.io/job-name";

/// The container that asks and judges.
pub const WORKER_CONTAINER: &str = "worker";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectMetadata {
    pub name: String,
    pub uid: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub creation_timestamp: Option<Timestamp>,
    /// When it is to be gone: for a pod, when its grace is over.
    pub deletion_timestamp: Option<Timestamp>,
}

impl ObjectMetadata {
    /// The pool that it belongs to; empty if none.
    pub fn pool(&self) -> &str {
        self.labels.get(POOL_LABEL).map_or("", String::as_str)
    }
}

/// A stored Job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJob {
    pub metadata: ObjectMetadata,
    pub spec: CronJobSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJobSpec {
    /// Metadata and specification of its Jobs.
    pub job_template: Value,
}

/// A server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BatchJob {
    pub metadata: ObjectMetadata,
    pub spec: BatchJobSpec,
    pub status: BatchJobStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BatchJobSpec {
    /// Whether it has no pods, because something else admits Jobs and has not admitted this one.
    pub suspend: bool,
    /// Its pods.
    pub template: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BatchJobStatus {
    pub start_time: Option<Timestamp>,
    pub conditions: Vec<ObjectCondition>,
    /// The indexes that are complete, as in `0-2,5`.
    pub completed_indexes: String,
}

impl BatchJobStatus {
    /// Whether an index is complete.
    pub fn has_completed(&self, index: u32) -> bool {
        let is_in = |range: &str| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            from.parse::<u32>().is_ok_and(|from| from <= index)
                && to.parse::<u32>().is_ok_and(|to| index <= to)
        };
        self.completed_indexes.split(',').any(is_in)
    }
}

/// Something that is so, or is not, of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: Option<Timestamp>,
}

impl ObjectCondition {
    /// The condition of this kind that holds.
    pub fn holding<'a>(conditions: &'a [Self], kind: &str) -> Option<&'a Self> {
        conditions.iter().find(|condition| condition.kind == kind && condition.status == "True")
    }
}

/// A part of a release that stands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Deployment {
    pub metadata: ObjectMetadata,
}

/// A part of a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerPod {
    pub metadata: ObjectMetadata,
    pub spec: ServerPodSpec,
    pub status: ServerPodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerPodSpec {
    /// Empty until it is scheduled.
    pub node_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerPodStatus {
    pub phase: String,
    pub reason: String,
    pub message: String,
    pub conditions: Vec<ObjectCondition>,
    pub container_statuses: Vec<ContainerStatus>,
    /// The server beside the worker is one of them: a native sidecar.
    pub init_container_statuses: Vec<ContainerStatus>,
}

impl ServerPodStatus {
    /// The containers, those that start first first.
    pub fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.init_container_statuses.iter().chain(&self.container_statuses)
    }

    /// Whether its containers have not all started.
    pub fn is_pending(&self) -> bool {
        matches!(self.phase.as_str(), "" | "Pending")
    }

    /// Whether its containers have ended for good.
    pub fn is_over(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    pub name: String,
    pub restart_count: u32,
    /// Its image with the digest, once it is there.
    #[serde(rename = "imageID")]
    pub image_id: String,
    pub state: ContainerState,
    pub last_state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerState {
    pub waiting: Option<ContainerWaiting>,
    pub terminated: Option<ContainerEnd>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerWaiting {
    pub reason: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerEnd {
    pub exit_code: i32,
    /// In a word, such as `OOMKilled`.
    pub reason: String,
    /// Its last lines, where it failed without a message of its own.
    pub message: String,
    pub finished_at: Option<Timestamp>,
}

/// Something that Kubernetes warns of, about one object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterEvent {
    pub metadata: ObjectMetadata,
    #[serde(rename = "involvedObject")]
    pub about: EventObject,
    /// In a word, such as `FailedMount`.
    pub reason: String,
    pub message: String,
    /// When it was seen last, by components that count it.
    pub last_timestamp: Option<Timestamp>,
    /// When it was seen first, by components that tell of a series.
    pub event_time: Option<Timestamp>,
    pub series: Option<EventSeries>,
}

impl ClusterEvent {
    /// When it was seen last.
    pub fn seen_at(&self) -> Option<Timestamp> {
        let of_series = self.series.as_ref().and_then(|series| series.last_observed_time);
        of_series.or(self.last_timestamp).or(self.event_time).or(self.metadata.creation_timestamp)
    }
}

/// What an event is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventObject {
    pub uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EventSeries {
    pub last_observed_time: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_told_in_ranges() {
        let completed = |text: &str| {
            let status = BatchJobStatus { completed_indexes: text.to_owned(), ..BatchJobStatus::default() };
            (0..7).filter(|index| status.has_completed(*index)).collect::<Vec<u32>>()
        };
        assert_eq!(completed(""), [0; 0]);
        assert_eq!(completed("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(completed("3"), [3]);
    }
}
