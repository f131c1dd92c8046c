//! Decides which servers to start and which to delete, round by round. A plain state machine: it is told the time and what there
//! is, asks [`decide()`](crate::pool::decide()), and returns orders, which `conduct` carries out.
//!
//! Between rounds it keeps what the cluster does not say: which servers have served, how long they loaded, and how those ended
//! whose Jobs are gone. What a server leaves when it ends is given to coordinators ([`Rounds::note_stored`]), from where the next
//! conductor has it ([`Rounds::restore`]).

mod forecast;
mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::pool::{
    Act, Failures, Limits, Needs, NextTry, PoolNeed, PoolServer, PoolView, PoolsView, ServerEnd, Wait,
};
use domain::control::{ModelNeed, WorkerView};
use domain::exchange::{Outlook, WorkerPhase};
use domain::pools::{PoolState, PoolWait, ServerFault, ServerStage, ServerUsage, ServersDoing, WaitReason};
use jiff::Timestamp;
use serde_json::Value;

pub use self::forecast::Forecast;
use self::known::{KnownServers, counts_for, fault_of};
use crate::cluster::ClusterState;
use crate::objects::{BatchJob, JOB_LABEL, ServerPod};
use crate::server::{
    ServerStanding, ServerThere, is_lost, scheduled_at, server_state, since_epoch, took_gpus_at,
};
use crate::start::{StartFault, StartProblem};
use crate::template::{PoolTemplate, TEMPLATE};

/// How long a server must have served before its measured speed replaces the estimate, because at first it is not full.
const MEASURED_AFTER: Duration = Duration::from_secs(3 * 60);

/// Ended servers of one round that coordinators are told of, at most; the others follow in the next one.
const ENDED_TOLD_MAX: usize = 200;

/// What a conductor may use.
#[derive(Clone, Debug, PartialEq)]
pub struct ConductorSettings {
    pub limits: Limits,
    /// GPUs of a node, which are counted out when it is lost; `None`: those of the lost server's parts.
    pub gpus_per_node: Option<u32>,
}

/// Something to do in the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOrder {
    /// Make this Job.
    Create { job: String, manifest: Value },
    /// Delete this Job with its pods.
    Delete { job: String, uid: String, why: String },
}

/// What a round comes to.
#[derive(Clone, Debug, Default)]
pub struct RoundOutcome {
    pub orders: Vec<ServerOrder>,
    pub rows: Vec<PoolState>,
    /// CronJobs that are no pools, and why.
    pub problems: Vec<String>,
    /// GPU-hours of all servers so far, those included that are gone.
    pub gpu_hours: f64,
    /// What is to be expected; `None` if that cannot be said.
    pub forecast: Option<Forecast>,
    /// How many servers that count ended although their work was not done, by pool and reason.
    pub faults: BTreeMap<(String, ServerFault), u32>,
    /// The pools of which a server does not start, and why.
    pub not_starting: BTreeMap<String, StartFault>,
    /// What servers left that coordinators do not have yet. Whose release it is, they do not say.
    pub ended: Vec<ServerUsage>,
    /// GPUs of nodes that were lost, and of pods that outlive their servers.
    pub gpus_out: u32,
}

/// A pool that waits, for what, and until when.
type PoolWaits = (usize, WaitReason, Option<Timestamp>);

/// A server with what is known of it.
struct Seen<'a> {
    pool: usize,
    job: &'a BatchJob,
    pods: Vec<&'a ServerPod>,
    state: ServerStanding,
    doing: Option<WorkerPhase>,
    /// Whether its model has been there.
    serves: bool,
    /// Dialogues that its worker has ended.
    dialogues: u64,
}

/// The conductor's memory.
#[derive(Debug)]
pub struct Rounds {
    settings: ConductorSettings,
    needs: Option<(Timestamp, Vec<ModelNeed>)>,
    known: KnownServers,
}

impl Rounds {
    pub fn new(settings: ConductorSettings) -> Self {
        Self { settings, needs: None, known: KnownServers::default() }
    }

    pub fn settings(&self) -> &ConductorSettings {
        &self.settings
    }

    /// Takes what coordinators say that there is to do.
    pub fn note_needs(&mut self, needs: Vec<ModelNeed>, now: Timestamp) {
        self.needs = Some((now, needs));
    }

    /// Takes what servers of this release left before this conductor began. Without it, nothing should be started: what failed,
    /// and what was used, would not be known.
    pub fn restore(&mut self, ended: Vec<ServerUsage>) {
        self.known.restore(ended);
    }

    /// Takes it that coordinators have what these servers left.
    pub fn note_stored(&mut self, ended: &[ServerUsage]) {
        self.known.note_stored(ended);
    }

    /// Takes what of the last orders Kubernetes did not let be made, and why, by the name of the Job.
    pub fn note_refused(&mut self, refused: BTreeMap<String, String>) {
        self.known.refused = refused;
    }

    /// Looks at the cluster, and at the workers whose pods are in it, and decides.
    pub fn round(&mut self, cluster: &ClusterState, workers: &[WorkerView], now: Timestamp) -> RoundOutcome {
        let mut outcome = RoundOutcome::default();
        let templates = templates(cluster, &mut outcome.problems);
        self.known.recall(&templates);
        let seen = self.seen(cluster, &templates, workers, now);
        self.known.number(&templates, &seen);
        outcome.gpu_hours = self.known.account(&templates, &seen, now);
        let ends = self.delete_hopeless(&templates, &seen, now, &mut outcome.orders);
        let failures = self.failures(&templates, &seen, &ends);
        outcome.gpus_out = self.gpus_out(&templates, &seen, cluster, now);

        let there: Vec<(&Seen<'_>, &ServerThere)> = (seen.iter())
            .filter_map(|seen| match &seen.state {
                ServerStanding::There(there) => Some((seen, there)),
                _ => None,
            })
            .collect();
        let servers: Vec<PoolServer> = (there.iter().enumerate())
            .map(|(place, (seen, there))| PoolServer {
                pool: seen.pool,
                number: place as u32,
                created_at: since_epoch(seen.job.metadata.creation_timestamp.unwrap_or(now)),
                phase: there.phase(seen.serves),
            })
            .collect();
        let mut without_weights = Vec::new();
        let needs = self.needs.as_ref().map(|(read_at, needs)| {
            let need = |(pool, template): (usize, &PoolTemplate)| {
                let need = self.need(template, needs, &there, now)?;
                let has_server = there.iter().any(|(seen, _)| seen.pool == pool);
                if need.now > 0 && !has_server && waits_for_weights(template, cluster) {
                    without_weights.push(pool);
                    return Some(PoolNeed::default());
                }
                Some(need)
            };
            Needs { read_at: since_epoch(*read_at), of: templates.iter().enumerate().map(need).collect() }
        });
        let pools: Vec<PoolView> = (templates.iter().zip(&failures))
            .map(|(template, failures)| {
                let mut pool = template.pool.clone();
                pool.load = self.known.loaded.get(&pool.name).copied().unwrap_or(pool.load);
                PoolView { pool, failures: failures.clone() }
            })
            .collect();
        let limits = Limits {
            gpus: self.settings.limits.gpus.saturating_sub(outcome.gpus_out),
            ..self.settings.limits.clone()
        };
        outcome.forecast = forecast::forecast(
            now,
            needs.as_ref(),
            (&pools, &servers),
            (&limits, self.settings.gpus_per_node),
            outcome.gpu_hours,
        );
        let decision = crate::pool::decide(&PoolsView {
            now: since_epoch(now),
            needs: needs.as_ref(),
            pools: &pools,
            servers: &servers,
            limits: &limits,
            gpu_hours_used: outcome.gpu_hours,
        });
        for act in decision.acts {
            match act {
                Act::Start { pool } => {
                    let template = &templates[pool];
                    let number = self.known.next_number(&template.cron_job);
                    let manifest = template.job(number);
                    outcome.orders.push(ServerOrder::Create { job: template.job_name(number), manifest });
                }
                Act::GiveUp { pool, number } => {
                    let Some((seen, _)) = there.get(number as usize) else { continue };
                    let why = "it does not get all of its nodes".to_owned();
                    let fault = Some(ServerFault::NoNodes);
                    self.known.note_end(&templates[pool], seen, (fault, now, &why));
                    outcome.orders.push(delete(seen.job, why));
                }
            }
        }
        let of_weights = without_weights.into_iter().map(|pool| (pool, WaitReason::Weights, None));
        let waits: Vec<PoolWaits> = (decision.waits.into_iter())
            .map(|(pool, wait)| {
                let (why, until) = reason(wait);
                (pool, why, until)
            })
            .chain(of_weights)
            .collect();
        self.known.note_waits(&templates, &waits, now);
        let of_needs = needs.map(|needs| needs.of);
        let left = |pool: usize| {
            of_needs.as_ref().and_then(|of| of.get(pool).copied().flatten()).map(|need| need.now)
        };
        let given_up = |pool: usize| failures[pool].next_try(since_epoch(now)) == NextTry::GivenUp;
        outcome.ended = self.known.unstored(ENDED_TOLD_MAX);
        outcome.faults = faults(&templates, &ends);
        let problems = self.start_problems(&templates, &seen);
        let of_pool =
            |(pool, problem): (&usize, &StartProblem)| (templates[*pool].pool.name.clone(), problem.fault);
        outcome.not_starting = problems.iter().map(of_pool).collect();
        outcome.rows = self.rows(&templates, &seen, &ends, &waits, now, (left, given_up));
        for (pool, problem) in problems {
            outcome.rows[pool].not_starting = Some(problem.message);
        }
        outcome
    }

    /// Why a server of a pool does not start, for the pools of which one does not.
    fn start_problems(&self, templates: &[PoolTemplate], seen: &[Seen<'_>]) -> BTreeMap<usize, StartProblem> {
        let refused = self.known.refused.iter().filter_map(|(job, why)| {
            let pool = templates.iter().position(|template| template.number_of(job).is_some())?;
            Some((pool, StartProblem::refused("no Job can be made", why)))
        });
        let kept = seen.iter().filter(|seen| !seen.serves).filter_map(|seen| match &seen.state {
            ServerStanding::There(there) => Some((seen.pool, there.problem.clone()?)),
            _ => None,
        });
        refused.chain(kept).collect()
    }

    /// The servers of pools with what is known of them.
    fn seen<'a>(
        &mut self,
        cluster: &'a ClusterState,
        templates: &[PoolTemplate],
        workers: &[WorkerView],
        now: Timestamp,
    ) -> Vec<Seen<'a>> {
        let mut seen = Vec::new();
        for job in &cluster.jobs {
            let pool = templates.iter().position(|template| template.pool.name == job.metadata.pool());
            // A Job that is being deleted is no server any more. Its pods count as left over while they hold GPUs.
            let Some(pool) = pool.filter(|_| job.metadata.deletion_timestamp.is_none()) else { continue };
            let pods: Vec<&ServerPod> = cluster.pods.iter().filter(|pod| is_of(pod, job)).collect();
            let state = server_state(job, templates[pool].pool.parts, &pods, &cluster.events, now);
            // Workers have the names of their pods. One that came for an evicted one loads anew.
            let is_one = |worker: &&WorkerView| {
                let is_it = |pod: &&ServerPod| pod.metadata.name == worker.worker.as_str();
                pods.iter().any(|pod| is_it(pod) && !pod.status.is_over())
            };
            let worker = workers.iter().find(is_one);
            let status = worker.map(|worker| &worker.status);
            let doing = status.and_then(|status| status.phase);
            // Nothing is lost with one that never started, and what keeps it may be mended.
            let state = match state {
                ServerStanding::There(there) if !there.has_started && worker.is_none() => {
                    match templates[pool].outdates(job) {
                        Some(why) => {
                            ServerStanding::Hopeless { fault: ServerFault::Evicted, why: why.to_owned() }
                        }
                        None => ServerStanding::There(there),
                    }
                }
                state => state,
            };
            let loaded = status.and_then(|status| status.loaded_s);
            if let (Some(worker), Some(loaded)) = (worker, loaded) {
                // It began to load with its pod: another conductor may look at it for the first time.
                let pod = pods.iter().find(|pod| pod.metadata.name == worker.worker.as_str());
                let began = pod.and_then(|pod| scheduled_at(pod));
                let since = began.and_then(|began| began.checked_add(Duration::from_secs(loaded)).ok());
                let since = since.map_or(now, |since| since.min(now));
                self.known.note_serving(&job.metadata.uid, &templates[pool].pool.name, since, loaded);
            }
            let before = self.known.served_at(&job.metadata.uid).is_some();
            let serves = worker.map_or(before, |_| loaded.is_some());
            let dialogues = status.map_or(0, |status| status.dialogues);
            seen.push(Seen { pool, job, pods, state, doing, serves, dialogues });
        }
        seen
    }

    /// Orders what is to be deleted, and returns how all servers ended that are known.
    fn delete_hopeless(
        &mut self,
        templates: &[PoolTemplate],
        seen: &[Seen<'_>],
        now: Timestamp,
        orders: &mut Vec<ServerOrder>,
    ) -> Vec<ServerUsage> {
        for seen in seen {
            let template = &templates[seen.pool];
            match &seen.state {
                ServerStanding::There(_) => {}
                ServerStanding::Ended { fault, at, why } => {
                    self.known.note_end(template, seen, (*fault, *at, why));
                }
                ServerStanding::Hopeless { fault, why } => {
                    orders.push(delete(seen.job, why.clone()));
                    self.known.note_end(template, seen, (Some(*fault), now, why));
                }
            }
        }
        self.known.ended()
    }

    /// What failed of each pool, as far as it counts: not what another template did, nor what was before a retry by hand.
    fn failures(&self, templates: &[PoolTemplate], seen: &[Seen<'_>], ends: &[ServerUsage]) -> Vec<Failures> {
        let of_pool = |(pool, template): (usize, &PoolTemplate)| {
            // When a server came to serve, or ended.
            let mut happened: Vec<(Timestamp, Option<ServerEnd>)> = Vec::new();
            for ended in ends.iter().filter(|ended| counts_for(ended, template)) {
                // Clocks differ: it did not serve after its end.
                happened.extend(ended.loaded_at.map(|at| (at.min(ended.ended_at), None)));
                happened.push((ended.ended_at, Some(ended.end)));
            }
            let serving = seen.iter().filter(|seen| {
                seen.pool == pool && seen.serves && matches!(seen.state, ServerStanding::There(_))
            });
            let since = |seen: &Seen<'_>| self.known.served_at(&seen.job.metadata.uid);
            happened.extend(serving.filter_map(since).map(|at| (at, None)));
            // One that serves says nothing about those that fail after it came.
            happened.sort_by_key(|(at, _)| *at);
            let mut failures = Failures::default();
            for (at, end) in happened {
                match end {
                    Some(end) => failures.note(end, since_epoch(at)),
                    None => failures.note_serving(),
                }
            }
            failures
        };
        templates.iter().enumerate().map(of_pool).collect()
    }

    /// GPUs that nobody can use now: of lost nodes, and of pods whose servers are gone or are to be deleted.
    fn gpus_out(
        &self,
        templates: &[PoolTemplate],
        seen: &[Seen<'_>],
        cluster: &ClusterState,
        now: Timestamp,
    ) -> u32 {
        let mut lost: BTreeMap<&str, u32> = BTreeMap::new();
        let mut left_over: Vec<(&str, u32)> = Vec::new();
        for pod in &cluster.pods {
            let of_pool = templates.iter().find(|template| template.pool.name == pod.metadata.pool());
            let Some(gpus) = of_pool.map(|template| template.pool.gpus) else { continue };
            let node = pod.spec.node_name.as_str();
            if node.is_empty() || pod.status.is_over() {
                continue;
            }
            let is_there = seen
                .iter()
                .any(|seen| matches!(seen.state, ServerStanding::There(_)) && is_of(pod, seen.job));
            if is_lost(pod, now) {
                let of_node = lost.entry(node).or_default();
                *of_node = self.settings.gpus_per_node.unwrap_or(*of_node + gpus);
            } else if !is_there {
                left_over.push((node, gpus));
            }
        }
        let others = left_over.iter().filter(|(node, _)| !lost.contains_key(node)).map(|(_, gpus)| gpus);
        lost.values().chain(others).sum()
    }

    /// What a pool has left; `None` where coordinators do not know.
    fn need(
        &self,
        template: &PoolTemplate,
        needs: &[ModelNeed],
        there: &[(&Seen<'_>, &ServerThere)],
        now: Timestamp,
    ) -> Option<PoolNeed> {
        let Some(need) = needs.iter().find(|need| need.model == template.model) else {
            return Some(PoolNeed::default());
        };
        let own = || there.iter().filter(|(seen, _)| seen.job.metadata.pool() == template.pool.name);
        let dialogues = match need.outlook {
            Outlook::Unknown => return None,
            Outlook::Work => need.dialogues,
            // Others hold it: a server would find nothing to do, unless it is one of those who hold it.
            Outlook::Surplus if own().next().is_some() => need.dialogues,
            Outlook::Surplus | Outlook::Held | Outlook::Later | Outlook::Done => 0,
        };
        let full_since = own().filter_map(|(seen, _)| self.known.served_at(&seen.job.metadata.uid)).min();
        let is_full = full_since
            .is_some_and(|since| since_epoch(now).saturating_sub(since_epoch(since)) >= MEASURED_AFTER);
        let rate = need.rate / need.workers.max(1) as f64;
        Some(PoolNeed { now: dialogues, rate: Some(rate).filter(|rate| is_full && *rate > 0.0) })
    }

    fn rows(
        &self,
        templates: &[PoolTemplate],
        seen: &[Seen<'_>],
        ends: &[ServerUsage],
        waits: &[PoolWaits],
        now: Timestamp,
        (left, is_given_up): (impl Fn(usize) -> Option<u64>, impl Fn(usize) -> bool),
    ) -> Vec<PoolState> {
        let row = |(pool, template): (usize, &PoolTemplate)| {
            let name = &template.pool.name;
            let stages: Vec<ServerStage> = (seen.iter().filter(|seen| seen.pool == pool))
                .filter_map(|seen| match &seen.state {
                    ServerStanding::There(there) => Some(stage_of(there, seen)),
                    _ => None,
                })
                .collect();
            let doing = |stage| {
                let servers = stages.iter().filter(|of| **of == stage).count() as u32;
                (servers > 0).then_some(ServersDoing { stage, servers })
            };
            let wait = waits.iter().find(|(of, ..)| *of == pool).and_then(|(_, why, until)| {
                let since = *self.known.waiting_since.get(&(name.clone(), *why))?;
                Some(PoolWait { why: *why, since, until: *until })
            });
            let failed = |end: &&ServerUsage| {
                counts_for(end, template) && matches!(end.end, ServerEnd::Failed | ServerEnd::Unusable)
            };
            PoolState {
                pool: name.clone(),
                model: template.model.clone(),
                gpus: template.pool.server_gpus(),
                servers: ServerStage::ALL.into_iter().filter_map(doing).collect(),
                wait,
                is_given_up: is_given_up(pool),
                failures: ends.iter().filter(failed).count() as u32,
                last_failure: ends.iter().rfind(failed).map(|end| end.why.clone()),
                left: left(pool),
                gpu_hours: self.known.gpu_hours_of(name),
                load_s: self.known.loaded.get(name).copied().unwrap_or(template.pool.load).as_secs(),
                loading_s: (seen.iter().filter(|seen| seen.pool == pool && !seen.serves))
                    .filter_map(|seen| match &seen.state {
                        ServerStanding::There(there) => there.scheduled_at,
                        _ => None,
                    })
                    .map(|since| u64::try_from(now.duration_since(since).as_secs()).unwrap_or(0))
                    .max(),
                not_starting: None,
            }
        };
        templates.iter().enumerate().map(row).collect()
    }
}

/// The pools of a release; what is none is named with the reason.
fn templates(cluster: &ClusterState, problems: &mut Vec<String>) -> Vec<PoolTemplate> {
    let mut templates: Vec<PoolTemplate> = Vec::new();
    for cron_job in &cluster.cron_jobs {
        match PoolTemplate::read(cron_job) {
            Ok(template) if templates.iter().any(|other| other.pool.name == template.pool.name) => {
                problems.push(format!(
                    "{}: another CronJob is the pool {}",
                    template.cron_job, template.pool.name
                ));
            }
            Ok(template) => templates.push(template),
            Err(error) => problems.push(error.to_string()),
        }
    }
    templates
}

/// How many servers of each pool ended for which reason, as far as they count.
fn faults(templates: &[PoolTemplate], ends: &[ServerUsage]) -> BTreeMap<(String, ServerFault), u32> {
    let mut faults: BTreeMap<(String, ServerFault), u32> = BTreeMap::new();
    for template in templates {
        for fault in ends.iter().filter(|ended| counts_for(ended, template)).filter_map(fault_of) {
            *faults.entry((template.pool.name.clone(), fault)).or_default() += 1;
        }
    }
    faults
}

fn delete(job: &BatchJob, why: String) -> ServerOrder {
    ServerOrder::Delete { job: job.metadata.name.clone(), uid: job.metadata.uid.clone(), why }
}

/// Whether the weights of a pool are still being fetched, by a Job without GPUs. If that Job is gone, it has ended, so that the
/// weights are there.
fn waits_for_weights(template: &PoolTemplate, cluster: &ClusterState) -> bool {
    let Some((job, index)) = &template.weights else { return false };
    let fetches = cluster.jobs.iter().find(|other| other.metadata.name == *job);
    fetches.is_some_and(|job| !job.status.has_completed(*index))
}

/// Whether a pod is one of a Job.
fn is_of(pod: &ServerPod, job: &BatchJob) -> bool {
    pod.metadata.labels.get(JOB_LABEL) == Some(&job.metadata.name)
}

/// What a server is doing.
fn stage_of(there: &ServerThere, seen: &Seen<'_>) -> ServerStage {
    match seen.doing {
        _ if there.scheduled_at.is_none() => ServerStage::Queued,
        Some(WorkerPhase::Ending) => ServerStage::Ending,
        _ if !seen.serves => ServerStage::Loading,
        Some(WorkerPhase::Idle) => ServerStage::Idle,
        _ => ServerStage::Serving,
    }
}

/// For what a pool waits, and until when.
fn reason(wait: Wait) -> (WaitReason, Option<Timestamp>) {
    let at = |until: Duration| Timestamp::from_millisecond(i64::try_from(until.as_millis()).ok()?).ok();
    match wait {
        Wait::Gpus { until } => (WaitReason::Gpus, until.and_then(at)),
        Wait::Gang => (WaitReason::Gang, None),
        Wait::Budget => (WaitReason::Budget, None),
        Wait::Retry { until } => (WaitReason::Retry, at(until)),
        Wait::GivenUp => (WaitReason::GivenUp, None),
    }
}

#[cfg(test)]
mod tests;
