//! Says why a server does not start: what the status of its pods, and the events of these and of its Job, say of it. Plain
//! functions of these objects and the time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::objects::{BatchJob, ClusterEvent, ContainerStatus, ObjectCondition, ObjectMetadata, ServerPod};
use crate::words::{last_words, shortened};

/// How long a pod, or a Job without one, has been there before it is told why it does not start: at first that is usual, while
/// the GPUs of a server that ended become free.
pub const TOLD_AFTER: Duration = Duration::from_secs(20);

/// How long an event counts. Kubernetes repeats it while it is so, later and later: every five minutes in the end.
pub const EVENT_AGE_MAX: Duration = Duration::from_secs(10 * 60);

domain::named! {
    /// Why a server does not start, in a word.
    pub enum StartFault {
        /// An image does not come.
        Image = "image",
        /// The quota of the namespace has no room.
        Quota = "quota",
        /// No node has what its pod asks for.
        Unscheduled = "unscheduled",
        /// A volume is missing, or cannot be mounted.
        Volume = "volume",
        /// A container ends again and again.
        Crashes = "crashes",
        Other = "other",
    }
}

/// Why a server does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartProblem {
    pub fault: StartFault,
    /// What Kubernetes says.
    pub message: String,
}

impl StartProblem {
    fn new(fault: StartFault, reason: &str, message: &str) -> Self {
        Self { fault, message: shortened(&format!("{reason}: {message}")) }
    }

    /// Of a Job or a pod that Kubernetes did not take.
    pub fn refused(reason: &str, message: &str) -> Self {
        let is_quota = message.contains("exceeded quota");
        Self::new(if is_quota { StartFault::Quota } else { StartFault::Other }, reason, message)
    }
}

/// Why a server of so many parts does not start, if it does not. `alive` are the pods of its Job that have not ended.
pub fn start_problem(
    job: &BatchJob,
    parts: u32,
    alive: &[&ServerPod],
    events: &[ClusterEvent],
    now: Timestamp,
) -> Option<StartProblem> {
    let of_pod = |pod: &&ServerPod| {
        let is_new = pod.metadata.deletion_timestamp.is_some() || is_young(&pod.metadata, now);
        if is_new { None } else { of_pod(pod, events, now) }
    };
    if let Some(problem) = alive.iter().find_map(of_pod) {
        return Some(problem);
    }
    if job.spec.suspend || alive.len() >= parts as usize || is_young(&job.metadata, now) {
        return None;
    }
    let failed = last_event(&job.metadata, events, now).filter(|event| event.reason == "FailedCreate")?;
    Some(StartProblem::refused(&failed.reason, &failed.message))
}

/// What keeps a pod from starting.
fn of_pod(pod: &ServerPod, events: &[ClusterEvent], now: Timestamp) -> Option<StartProblem> {
    if pod.spec.node_name.is_empty() {
        let is_it = |condition: &&ObjectCondition| {
            condition.kind == "PodScheduled"
                && condition.status == "False"
                && condition.reason == "Unschedulable"
        };
        let condition = pod.status.conditions.iter().find(is_it)?;
        let is_volume = condition.message.to_ascii_lowercase().contains("persistentvolumeclaim");
        let fault = if is_volume { StartFault::Volume } else { StartFault::Unscheduled };
        return Some(StartProblem::new(fault, &condition.reason, &condition.message));
    }
    if let Some(problem) = pod.status.containers().find_map(of_container) {
        return Some(problem);
    }
    // Once its volumes and its network are there, events are about what was before.
    if ObjectCondition::holding(&pod.status.conditions, "PodReadyToStartContainers").is_some()
        || !pod.status.is_pending()
    {
        return None;
    }
    let failed = last_event(&pod.metadata, events, now)
        .filter(|event| event.reason.starts_with("Failed") && event.reason != "FailedScheduling")?;
    let fault = match failed.reason.as_str() {
        "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => StartFault::Volume,
        _ => StartFault::Other,
    };
    Some(StartProblem::new(fault, &failed.reason, &failed.message))
}

/// What keeps a container from starting.
fn of_container(container: &ContainerStatus) -> Option<StartProblem> {
    let waiting = container.state.waiting.as_ref()?;
    let fault = match waiting.reason.as_str() {
        "" | "ContainerCreating" | "PodInitializing" => return None,
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "SignatureValidationFailed" => StartFault::Image,
        "CrashLoopBackOff" => StartFault::Crashes,
        _ => StartFault::Other,
    };
    let message = format!("{}{}", waiting.message, last_words(container));
    Some(StartProblem::new(fault, &waiting.reason, &message))
}

/// The warning about an object that came last, if it is not too old.
fn last_event<'a>(
    metadata: &ObjectMetadata,
    events: &'a [ClusterEvent],
    now: Timestamp,
) -> Option<&'a ClusterEvent> {
    let of_it = events.iter().filter(|event| !metadata.uid.is_empty() && event.about.uid == metadata.uid);
    let (at, last) = of_it.filter_map(|event| Some((event.seen_at()?, event))).max_by_key(|(at, _)| *at)?;
    is_within(at, EVENT_AGE_MAX, now).then_some(last)
}

fn is_young(metadata: &ObjectMetadata, now: Timestamp) -> bool {
    metadata.creation_timestamp.is_some_and(|at| is_within(at, TOLD_AFTER, now))
}

/// Whether no more than so long has passed since then.
fn is_within(at: Timestamp, most: Duration, now: Timestamp) -> bool {
    now.duration_since(at) <= SignedDuration::try_from(most).unwrap_or(SignedDuration::MAX)
}
