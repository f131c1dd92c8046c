//! What a conductor remembers of servers, from round to round. It is memory only. What must outlive the conductor is read from the
//! Jobs that are there, and from what ended servers have left with coordinators.

use domain::pools::{ServerFault, ServerUsage, UsageHours};

use super::*;
use crate::server::{revision_of, server_image};

/// How many servers that ended are remembered, at most; of more, only the GPU-hours are.
const ENDED_MAX: usize = 10_000;

/// What a server does is taken to last from one look to the next, if that is not longer than this.
const LOOK_GAP_MAX: Duration = Duration::from_secs(60);

/// Why the work of a server was not done; `None` if it was.
pub(super) fn fault_of(ended: &ServerUsage) -> Option<ServerFault> {
    // Where nobody said, it is none of the others.
    (ended.end != ServerEnd::Done).then(|| ended.fault.unwrap_or(ServerFault::Other))
}

/// Whether the end of a server says something about the next one of this pool.
pub(super) fn counts_for(ended: &ServerUsage, template: &PoolTemplate) -> bool {
    ended.pool == template.pool.name
        && (ended.template.is_empty() || ended.template == template.hash)
        && template.retry_at.is_none_or(|at| ended.ended_at > at)
}

/// A server, whether it is still there or not.
#[derive(Clone, Debug, Default)]
struct KnownServer {
    pool: String,
    gpus: u32,
    took_gpus_at: Option<Timestamp>,
    /// Since when its model has been there.
    served_at: Option<Timestamp>,
    idle: Duration,
    /// The last look, if it had nothing to do then.
    seen_idle_at: Option<Timestamp>,
    dialogues: u64,
    /// The last look, or its end.
    until: Timestamp,
    has_ended: bool,
}

impl KnownServer {
    fn hours(&self) -> UsageHours {
        let times = (self.took_gpus_at, self.served_at, self.until);
        UsageHours::of(self.gpus, times, self.idle.as_secs(), self.has_ended)
    }
}

/// See the text of the module.
#[derive(Debug, Default)]
pub(super) struct KnownServers {
    /// By the uid of the Job.
    servers: BTreeMap<String, KnownServer>,
    /// GPU-hours of servers that are not remembered any more, by pool.
    forgotten: BTreeMap<String, UsageHours>,
    /// What servers left that ended, by the uid of the Job.
    ended: BTreeMap<String, ServerUsage>,
    /// Those of which coordinators have not taken it yet.
    unstored: BTreeSet<String>,
    /// What servers left before this conductor began, by the uid of the CronJob, until its pool is seen.
    before: BTreeMap<String, Vec<ServerUsage>>,
    /// How long the last server of a pool loaded.
    pub(super) loaded: BTreeMap<String, Duration>,
    /// What Kubernetes did not let the last round make, by the name of the Job.
    pub(super) refused: BTreeMap<String, String>,
    /// Since when a pool has waited for this.
    pub(super) waiting_since: BTreeMap<(String, WaitReason), Timestamp>,
    /// The number of the last server, by CronJob.
    numbers: BTreeMap<String, u32>,
}

impl KnownServers {
    /// Takes what servers left before this conductor began.
    pub(super) fn restore(&mut self, ended: Vec<ServerUsage>) {
        for usage in ended {
            self.before.entry(usage.pool_uid.clone()).or_default().push(usage);
        }
    }

    /// Remembers what was left by servers of these pools. Those of a release that was removed, and installed anew, say nothing:
    /// its CronJobs are others.
    pub(super) fn recall(&mut self, templates: &[PoolTemplate]) {
        for template in templates {
            for usage in self.before.remove(&template.uid).unwrap_or_default() {
                self.count_number(template, &usage.job);
                if let Some(load) = usage.load_s().filter(|_| usage.template == template.hash) {
                    self.loaded.insert(template.pool.name.clone(), Duration::from_secs_f64(load));
                }
                let server = KnownServer {
                    pool: usage.pool.clone(),
                    gpus: usage.gpus,
                    took_gpus_at: usage.took_gpus_at,
                    served_at: usage.loaded_at,
                    idle: Duration::from_secs(usage.idle_s),
                    dialogues: usage.dialogues,
                    until: usage.ended_at,
                    has_ended: true,
                    ..KnownServer::default()
                };
                self.servers.insert(usage.uid.clone(), server);
                self.ended.insert(usage.uid.clone(), usage);
            }
        }
    }

    /// Takes it that a server serves since then, after having loaded for so many seconds.
    pub(super) fn note_serving(&mut self, uid: &str, pool: &str, since: Timestamp, loaded_s: u64) {
        self.servers.entry(uid.to_owned()).or_default().served_at.get_or_insert(since);
        self.loaded.insert(pool.to_owned(), Duration::from_secs(loaded_s));
    }

    /// Since when a server has served; `None` if it never did.
    pub(super) fn served_at(&self, uid: &str) -> Option<Timestamp> {
        self.servers.get(uid)?.served_at
    }

    /// Takes the numbers of all Jobs that there are.
    pub(super) fn number(&mut self, templates: &[PoolTemplate], seen: &[Seen<'_>]) {
        seen.iter().for_each(|seen| self.count_number(&templates[seen.pool], &seen.job.metadata.name));
    }

    fn count_number(&mut self, template: &PoolTemplate, job: &str) {
        let number = template.number_of(job).unwrap_or(0);
        let last = self.numbers.entry(template.cron_job.clone()).or_default();
        *last = number.max(*last);
    }

    /// The number of the next server.
    pub(super) fn next_number(&mut self, cron_job: &str) -> u32 {
        let last = self.numbers.entry(cron_job.to_owned()).or_default();
        *last = last.saturating_add(1);
        *last
    }

    /// Counts GPU-hours, from the first pod of a server that has a node to its end. Returns the hours of all.
    pub(super) fn account(&mut self, templates: &[PoolTemplate], seen: &[Seen<'_>], now: Timestamp) -> f64 {
        for seen in seen {
            let pool = &templates[seen.pool].pool;
            let is_new = !self.servers.contains_key(&seen.job.metadata.uid);
            let server = self.servers.entry(seen.job.metadata.uid.clone()).or_default();
            (server.pool, server.gpus) = (pool.name.clone(), pool.server_gpus());
            (server.until, server.has_ended) = match &seen.state {
                ServerStanding::Ended { at, .. } => (*at, true),
                _ => (now, false),
            };
            // Kubernetes forgets pods that were evicted before it forgets their Job. What was counted by them stays counted.
            let took = took_gpus_at(&seen.pods);
            // Of one that ended before anybody looked, and whose pods are gone, nothing else is known. One that has not ended takes
            // no GPUs before a pod of it has a node.
            let is_over = is_new && server.has_ended && seen.pods.is_empty();
            let began = seen.job.status.start_time.filter(|_| is_over);
            server.took_gpus_at = server.took_gpus_at.into_iter().chain(took).chain(began).min();
            server.dialogues = server.dialogues.max(seen.dialogues);
            let is_idle = seen.serves && seen.doing == Some(WorkerPhase::Idle);
            if let Some(before) = server.seen_idle_at.take() {
                let since = Duration::try_from(now.duration_since(before)).unwrap_or_default();
                server.idle += since.min(LOOK_GAP_MAX);
            }
            server.seen_idle_at = is_idle.then_some(now);
        }
        self.forget_some(seen);
        let all = self.servers.values().map(KnownServer::hours).chain(self.forgotten.values().copied());
        all.map(|hours| hours.total()).sum()
    }

    fn forget_some(&mut self, seen: &[Seen<'_>]) {
        if self.servers.len() <= ENDED_MAX {
            return;
        }
        let is_kept = |uid: &String| {
            self.unstored.contains(uid) || seen.iter().any(|seen| seen.job.metadata.uid == *uid)
        };
        let gone = self.servers.iter().filter(|(uid, _)| !is_kept(uid));
        let oldest = gone.min_by_key(|(_, server)| server.until).map(|(uid, _)| uid.clone());
        if let Some((uid, server)) = oldest.and_then(|uid| self.servers.remove_entry(&uid)) {
            self.ended.remove(&uid);
            *self.forgotten.entry(server.pool.clone()).or_default() += server.hours();
        }
    }

    /// GPU-hours of a pool.
    pub(super) fn gpu_hours_of(&self, pool: &str) -> UsageHours {
        let mut hours = self.forgotten.get(pool).copied().unwrap_or_default();
        self.servers.values().filter(|server| server.pool == pool).for_each(|server| hours += server.hours());
        hours
    }

    /// Takes the end of a server, and what it leaves. What is known of it by now stays, but for what its Job says itself.
    pub(super) fn note_end(
        &mut self,
        template: &PoolTemplate,
        seen: &Seen<'_>,
        (fault, at, why): (Option<ServerFault>, Timestamp, &str),
    ) {
        let uid = &seen.job.metadata.uid;
        let by_itself = matches!(seen.state, ServerStanding::Ended { .. });
        let is_known = self.ended.contains_key(uid);
        if is_known && !by_itself {
            return;
        }
        let server = self.servers.entry(uid.clone()).or_default();
        (server.until, server.has_ended) = (at, true);
        // A worker ends alike whether its server never came or was lost.
        let fault = match fault {
            Some(ServerFault::NotLoaded) if server.served_at.is_some() => Some(ServerFault::Silent),
            fault => fault,
        };
        let mut nodes: Vec<String> = seen.pods.iter().map(|pod| pod.spec.node_name.clone()).collect();
        nodes.retain(|node| !node.is_empty());
        nodes.sort_unstable();
        nodes.dedup();
        let usage = ServerUsage {
            release: String::new(),
            pool: template.pool.name.clone(),
            pool_uid: template.uid.clone(),
            template: seen.job.metadata.annotations.get(TEMPLATE).cloned().unwrap_or_default(),
            model: template.model.clone(),
            job: seen.job.metadata.name.clone(),
            uid: uid.clone(),
            image: server_image(&seen.pods),
            revision: revision_of(seen.job),
            gpus: template.pool.server_gpus(),
            nodes,
            took_gpus_at: server.took_gpus_at,
            loaded_at: server.served_at,
            ended_at: at,
            idle_s: server.idle.as_secs(),
            dialogues: server.dialogues,
            end: fault.map_or(ServerEnd::Done, ServerFault::end),
            fault,
            why: why.to_owned(),
        };
        if !is_known {
            self.unstored.insert(uid.clone());
        }
        self.ended.insert(uid.clone(), usage);
    }

    /// What all servers left that ended, the first ones first.
    pub(super) fn ended(&self) -> Vec<ServerUsage> {
        let mut ended: Vec<ServerUsage> = self.ended.values().cloned().collect();
        ended.sort_by_key(|ended| ended.ended_at);
        ended
    }

    /// What servers left that no coordinator has taken yet, some of it.
    pub(super) fn unstored(&self, most: usize) -> Vec<ServerUsage> {
        self.unstored.iter().filter_map(|uid| self.ended.get(uid)).take(most).cloned().collect()
    }

    /// Takes it that coordinators have what these servers left.
    pub(super) fn note_stored(&mut self, ended: &[ServerUsage]) {
        for usage in ended {
            self.unstored.remove(&usage.uid);
        }
    }

    /// Takes who waits for what, and forgets who does not any more.
    pub(super) fn note_waits(&mut self, templates: &[PoolTemplate], waits: &[PoolWaits], now: Timestamp) {
        let key = |(pool, why, _): &PoolWaits| (templates[*pool].pool.name.clone(), *why);
        let keys: BTreeSet<(String, WaitReason)> = waits.iter().map(key).collect();
        self.waiting_since.retain(|known, _| keys.contains(known));
        for key in keys {
            self.waiting_since.entry(key).or_insert(now);
        }
    }
}
