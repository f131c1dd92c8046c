//! Says where a server stands, by its Job and the pods of it: whether it is there, has ended and why, or will never be of use
//! and is to be deleted. Plain functions of these objects and the time, so nothing is remembered or changed here.

use std::time::Duration;

use crate::pool::PoolServerPhase;
use domain::pools::ServerFault;
use jiff::Timestamp;

use crate::objects::{BatchJob, ClusterEvent, ContainerStatus, ObjectCondition, ServerPod, WORKER_CONTAINER};
use crate::start::{StartFault, StartProblem, start_problem};
use crate::words::{last_words, shortened};

/// For how long a pod that has a node may not start.
pub const START_WAIT_MAX: Duration = Duration::from_secs(15 * 60);

/// How often a container may be started again in its place.
pub const RESTARTS_MAX: u32 = 5;

/// For how long a pod may be there after its grace; then its node is taken for lost.
pub const GONE_AFTER: Duration = Duration::from_secs(60);

/// A time as the duration since the epoch.
pub(crate) fn since_epoch(at: Timestamp) -> Duration {
    Duration::try_from_secs_f64(at.as_millisecond() as f64 / 1000.0).unwrap_or_default()
}

/// Where a server stands.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerStanding {
    /// It has not ended.
    There(ServerThere),
    /// It has ended; without a fault, nothing was left to do.
    Ended { fault: Option<ServerFault>, at: Timestamp, why: String },
    /// It has not ended, and never will in a useful way: it is to be deleted.
    Hopeless { fault: ServerFault, why: String },
}

/// A server that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerThere {
    /// Whether all of its parts have nodes, and since when.
    pub scheduled_at: Option<Timestamp>,
    /// The nodes of its parts that have any.
    pub nodes: Vec<String>,
    /// Whether a pod of it has ever started.
    pub has_started: bool,
    /// Why it does not start, if it does not.
    pub problem: Option<StartProblem>,
}

impl ServerThere {
    /// The phase, where it is known whether it serves.
    pub fn phase(&self, serves: bool) -> PoolServerPhase {
        match self.scheduled_at {
            None => PoolServerPhase::Unscheduled,
            Some(_) if serves => PoolServerPhase::Serving,
            Some(at) => PoolServerPhase::Loading { since: since_epoch(at) },
        }
    }
}

/// Whether a pod should have been gone for a while.
pub fn is_lost(pod: &ServerPod, now: Timestamp) -> bool {
    !pod.status.is_over()
        && pod.metadata.deletion_timestamp.is_some_and(|gone_at| {
            now.duration_since(gone_at) > jiff::SignedDuration::try_from(GONE_AFTER).unwrap_or_default()
        })
}

/// Where a server of so many parts stands. `pods` are those of its Job.
pub fn server_state(
    job: &BatchJob,
    parts: u32,
    pods: &[&ServerPod],
    events: &[ClusterEvent],
    now: Timestamp,
) -> ServerStanding {
    if let Some((fault, at, why)) = ended(job, pods, now) {
        return ServerStanding::Ended { fault, at, why };
    }
    // Of one with several parts, the others cannot do without the lost one.
    if let Some(lost) = pods.iter().find(|pod| is_lost(pod, now)) {
        let why = format!("node {} does not answer any more", lost.spec.node_name);
        return ServerStanding::Hopeless { fault: ServerFault::NodeLost, why };
    }
    let alive: Vec<&ServerPod> = pods.iter().copied().filter(|pod| !pod.status.is_over()).collect();
    let problem = start_problem(job, parts, &alive, events, now);
    if let Some(StartProblem { fault, message }) = &problem
        && *fault != StartFault::Crashes
        && alive.iter().any(|pod| should_have_started(pod, now))
    {
        let fault = if *fault == StartFault::Image { ServerFault::Image } else { ServerFault::Other };
        return ServerStanding::Hopeless { fault, why: message.clone() };
    }
    if let Some(container) = alive
        .iter()
        .flat_map(|pod| pod.status.containers())
        .find(|container| container.restart_count > RESTARTS_MAX)
    {
        let why = format!(
            "`{}` was started {} times in its place{}",
            container.name,
            container.restart_count,
            last_words(container)
        );
        let fault =
            if ran_out_of_memory(container) { ServerFault::OutOfMemory } else { ServerFault::Crashes };
        return ServerStanding::Hopeless { fault, why: shortened(&why) };
    }
    let scheduled: Vec<(Timestamp, &str)> = alive.iter().filter_map(|pod| scheduled(pod, job)).collect();
    let is_whole = !job.spec.suspend && scheduled.len() >= parts as usize;
    ServerStanding::There(ServerThere {
        scheduled_at: scheduled.iter().map(|(at, _)| *at).max().filter(|_| is_whole),
        nodes: scheduled.into_iter().map(|(_, node)| node.to_owned()).collect(),
        has_started: pods.iter().any(|pod| !pod.status.is_pending()),
        problem,
    })
}

/// Since when a pod has a node, and which.
fn scheduled<'a>(pod: &'a ServerPod, job: &BatchJob) -> Option<(Timestamp, &'a str)> {
    if pod.spec.node_name.is_empty() || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let condition = ObjectCondition::holding(&pod.status.conditions, "PodScheduled");
    let at = condition.and_then(|condition| condition.last_transition_time);
    let at = at.or(pod.metadata.creation_timestamp).or(job.metadata.creation_timestamp)?;
    Some((at, &pod.spec.node_name))
}

/// When the first part of a server had a node, also of one that has ended: since then it takes GPUs.
pub fn took_gpus_at(pods: &[&ServerPod]) -> Option<Timestamp> {
    pods.iter().filter_map(|pod| scheduled_at(pod)).min()
}

/// When a pod had a node.
pub fn scheduled_at(pod: &ServerPod) -> Option<Timestamp> {
    ObjectCondition::holding(&pod.status.conditions, "PodScheduled")?.last_transition_time
}

/// The image of the model server beside the worker, with its digest if a pod has told it; empty if not.
pub fn server_image(pods: &[&ServerPod]) -> String {
    let containers = pods.iter().flat_map(|pod| pod.status.containers());
    let mut images = containers.filter(|container| container.name != WORKER_CONTAINER);
    images
        .find(|container| !container.image_id.is_empty())
        .map(|container| container.image_id.clone())
        .unwrap_or_default()
}

/// The revision of the weights that the command line of a server names; empty if it names none.
pub fn revision_of(job: &BatchJob) -> String {
    let pod = &job.spec.template["spec"];
    let containers =
        ["initContainers", "containers"].into_iter().filter_map(|key| pod[key].as_array()).flatten();
    let words = containers.filter_map(|container| container["args"].as_array());
    let mut revisions = words.filter_map(|words| {
        let words: Vec<&str> = words.iter().filter_map(|word| word.as_str()).collect();
        let after =
            words.iter().position(|word| *word == "--revision").and_then(|at| words.get(at + 1).copied());
        after.or_else(|| words.iter().find_map(|word| word.strip_prefix("--revision="))).map(str::to_owned)
    });
    revisions.next().unwrap_or_default()
}

/// How a server ended, if it has.
fn ended(
    job: &BatchJob,
    pods: &[&ServerPod],
    now: Timestamp,
) -> Option<(Option<ServerFault>, Timestamp, String)> {
    let conditions = &job.status.conditions;
    let at = |condition: &ObjectCondition| condition.last_transition_time.unwrap_or(now);
    for done in ["Complete", "SuccessCriteriaMet"] {
        if let Some(condition) = ObjectCondition::holding(conditions, done) {
            return Some((None, at(condition), String::new()));
        }
    }
    // The controller says that it will fail as soon as it is sure, and that it has failed when its pods are gone.
    let failed = ObjectCondition::holding(conditions, "Failed")
        .or_else(|| ObjectCondition::holding(conditions, "FailureTarget"))?;
    let containers = || pods.iter().flat_map(|pod| pod.status.containers());
    let fault = match exit_code(failed, pods) {
        Some(2) => ServerFault::Unusable,
        // It was evicted for more disk than its volume has; another would be evicted alike.
        _ if pods.iter().any(|pod| pod.status.reason == "Evicted" && !is_disrupted(pod)) => {
            ServerFault::Volume
        }
        None if failed.message.contains("DisruptionTarget") => ServerFault::Evicted,
        _ if failed.reason == "DeadlineExceeded" => ServerFault::Deadline,
        // Whatever its worker said then: without its server it has nothing to ask.
        _ if containers().any(ran_out_of_memory) => ServerFault::OutOfMemory,
        Some(3) => ServerFault::NotLoaded,
        _ if failed.reason == "BackoffLimitExceeded" => ServerFault::Crashes,
        _ => ServerFault::Other,
    };
    let why = match fault {
        ServerFault::Evicted => "evicted".to_owned(),
        _ => why(failed, pods),
    };
    Some((Some(fault), at(failed), shortened(&why)))
}

/// Whether the kernel ended a container, now or before it was started again, because it took more memory than it may.
fn ran_out_of_memory(container: &ContainerStatus) -> bool {
    let ends =
        [&container.state, &container.last_state].into_iter().filter_map(|state| state.terminated.as_ref());
    ends.map(|end| end.reason.as_str()).any(|reason| reason == "OOMKilled")
}

fn is_disrupted(pod: &ServerPod) -> bool {
    ObjectCondition::holding(&pod.status.conditions, "DisruptionTarget").is_some()
}

/// The exit code for which a Job failed: as its controller says, else that of a worker.
fn exit_code(failed: &ObjectCondition, pods: &[&ServerPod]) -> Option<i32> {
    let said = failed.message.split_once("exit code ").map(|(_, rest)| rest);
    let said = said.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    let mut codes = pods.iter().flat_map(|pod| &pod.status.container_statuses).filter_map(|container| {
        let is_worker = container.name == WORKER_CONTAINER;
        container
            .state
            .terminated
            .as_ref()
            .filter(|end| is_worker && end.exit_code != 0)
            .map(|end| end.exit_code)
    });
    let by_eviction = failed.message.contains("DisruptionTarget");
    said.or_else(|| codes.next().filter(|_| !by_eviction))
}

/// Why a Job failed, for people: what a server said last, what a worker said, or what the controller says.
fn why(failed: &ObjectCondition, pods: &[&ServerPod]) -> String {
    let evicted = pods.iter().find(|pod| pod.status.reason == "Evicted" && !is_disrupted(pod));
    if let Some(pod) = evicted {
        return format!("evicted: {}", pod.status.message);
    }
    let words =
        pods.iter().flat_map(|pod| pod.status.containers()).map(last_words).find(|words| !words.is_empty());
    format!("{}: {}{}", failed.reason, failed.message, words.unwrap_or_default())
}

/// Whether a pod has had its node for so long that it should have started.
fn should_have_started(pod: &ServerPod, now: Timestamp) -> bool {
    let longest = jiff::SignedDuration::try_from(START_WAIT_MAX).unwrap_or_default();
    pod.status.is_pending() && scheduled_at(pod).is_some_and(|since| now.duration_since(since) >= longest)
}
