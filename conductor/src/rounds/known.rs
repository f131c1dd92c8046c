//! What a conductor remembers from round to round. It is memory only. What must outlive the conductor is read from the Jobs that
//! are there: their numbers, their GPU-hours, and in an annotation the GPU-hours of Jobs that were gone when they were made.

use super::*;

/// How many ends of deleted servers are remembered, at most; the oldest are forgotten first.
const DELETED_MAX: usize = 10_000;

/// How a server ended.
#[derive(Clone, Debug)]
pub(super) struct KnownEnd {
    pub(super) uid: String,
    pool: String,
    /// Hash of the template that it was made of; empty if it does not say.
    template: String,
    pub(super) end: ServerEnd,
    pub(super) at: Timestamp,
    pub(super) why: String,
}

impl KnownEnd {
    pub(super) fn of(
        template: &PoolTemplate,
        job: &BatchJob,
        end: ServerEnd,
        at: Timestamp,
        why: String,
    ) -> Self {
        Self {
            uid: job.metadata.uid.clone(),
            pool: template.pool.name.clone(),
            template: job.metadata.annotations.get(TEMPLATE).cloned().unwrap_or_default(),
            end,
            at,
            why,
        }
    }

    /// Whether it says something about the next server of this pool.
    pub(super) fn counts_for(&self, template: &PoolTemplate) -> bool {
        self.pool == template.pool.name
            && (self.template.is_empty() || self.template == template.hash)
            && template.retry_at.is_none_or(|at| self.at > at)
    }
}

/// GPU-hours of a server.
#[derive(Clone, Debug)]
struct ServerHours {
    pool: String,
    hours: f64,
}

/// See the text of the module.
#[derive(Debug, Default)]
pub(super) struct KnownServers {
    /// Since when it has been known of a server that its model is there, by the uid of its Job.
    pub(super) served: BTreeMap<String, Timestamp>,
    /// How long the last server of a pool loaded.
    pub(super) loaded: BTreeMap<String, Duration>,
    /// How servers ended that were deleted, by the uid of the Job.
    pub(super) deleted: BTreeMap<String, KnownEnd>,
    /// Since when a pool has waited for this.
    pub(super) waiting_since: BTreeMap<(String, WaitReason), Timestamp>,
    /// The number of the last server, by CronJob.
    numbers: BTreeMap<String, u32>,
    /// GPU-hours of the Jobs that are there, by uid.
    hours: BTreeMap<String, ServerHours>,
    /// GPU-hours of the Jobs that are gone, by pool.
    gone_of: BTreeMap<String, f64>,
    /// GPU-hours of all Jobs that are gone, those included that were gone before this conductor began; `None` before the first
    /// round.
    gone: Option<f64>,
}

impl KnownServers {
    /// Takes it that a server serves, after having loaded for so many seconds.
    pub(super) fn note_serving(&mut self, uid: &str, pool: &str, loaded_s: u64, now: Timestamp) {
        self.served.entry(uid.to_owned()).or_insert(now);
        self.loaded.insert(pool.to_owned(), Duration::from_secs(loaded_s));
    }

    /// Takes the numbers of all Jobs that there are.
    pub(super) fn number(&mut self, templates: &[PoolTemplate], seen: &[Seen<'_>]) {
        for seen in seen {
            let template = &templates[seen.pool];
            let number = template.number_of(&seen.job.metadata.name).unwrap_or(0);
            let last = self.numbers.entry(template.cron_job.clone()).or_default();
            *last = number.max(*last);
        }
    }

    /// The number of the next server.
    pub(super) fn next_number(&mut self, cron_job: &str) -> u32 {
        let last = self.numbers.entry(cron_job.to_owned()).or_default();
        *last = last.saturating_add(1);
        *last
    }

    /// Counts GPU-hours, from the first pod of a server that has a node to its end, and forgets servers that are gone. Returns
    /// the hours of all.
    pub(super) fn account(&mut self, templates: &[PoolTemplate], seen: &[Seen<'_>], now: Timestamp) -> f64 {
        let before = seen.iter().filter_map(|seen| {
            let text = seen.job.metadata.annotations.get(GONE_GPU_HOURS)?;
            text.parse::<f64>().ok().filter(|hours| hours.is_finite())
        });
        let gone = self.gone.get_or_insert_with(|| before.fold(0.0, f64::max));
        let is_there = |uid: &String| seen.iter().any(|seen| seen.job.metadata.uid == *uid);
        let left: Vec<String> = self.hours.keys().filter(|uid| !is_there(uid)).cloned().collect();
        for (uid, server) in left.into_iter().filter_map(|uid| self.hours.remove_entry(&uid)) {
            self.served.remove(&uid);
            *gone += server.hours;
            *self.gone_of.entry(server.pool).or_default() += server.hours;
        }
        for seen in seen {
            let pool = &templates[seen.pool].pool;
            let until = match &seen.state {
                ServerStanding::Ended { at, .. } => *at,
                _ => now,
            };
            let took =
                took_gpus_at(seen.job, &seen.pods).map(|from| until.duration_since(from).as_secs_f64());
            let hours = took.unwrap_or(0.0).max(0.0) / 3600.0 * f64::from(pool.server_gpus());
            let server = ServerHours { pool: pool.name.clone(), hours };
            let known = self.hours.entry(seen.job.metadata.uid.clone()).or_insert_with(|| server.clone());
            // Kubernetes forgets pods that were evicted before it forgets their Job. What was counted by them stays counted.
            known.hours = known.hours.max(server.hours);
        }
        while self.deleted.len() > DELETED_MAX {
            let oldest = self.deleted.iter().min_by_key(|(_, end)| end.at).map(|(uid, _)| uid.clone());
            oldest.map(|uid| self.deleted.remove(&uid));
        }
        *gone + self.hours.values().map(|server| server.hours).sum::<f64>()
    }

    pub(super) fn gone_gpu_hours(&self) -> f64 {
        self.gone.unwrap_or(0.0)
    }

    /// GPU-hours of a pool since this conductor began, and of its Jobs that were there then.
    pub(super) fn gpu_hours_of(&self, pool: &str) -> f64 {
        let there = self.hours.values().filter(|server| server.pool == pool).map(|server| server.hours);
        there.sum::<f64>() + self.gone_of.get(pool).copied().unwrap_or(0.0)
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
