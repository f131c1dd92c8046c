//! Shared by all runs: the registered workers, what is said of pools, and the rate budgets of provider keys.

use domain::{InstanceId, WorkerId};

/// A registered worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEntry {
    pub worker: WorkerId,
    pub instance: InstanceId,
    /// Its last status; opaque to the queue.
    pub info: Vec<u8>,
    /// Time of that status, milliseconds since the Unix epoch by the store's clock.
    pub seen_ms: u64,
    /// Whether it was told to drain.
    pub draining: bool,
}

/// What a conductor says of the pools of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolsEntry {
    pub release: String,
    /// Opaque to the queue.
    pub info: Vec<u8>,
}

/// A process's claim to a worker's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The process. Workers that do not say have the empty id: it may follow any process, and any may follow it.
    pub instance: InstanceId,
    /// Processes that it succeeds, at most [`crate::limits::PREDECESSORS_MAX`]: they must have ended, because it
    /// holds their spool.
    pub predecessors: Vec<InstanceId>,
    /// Whose worker it is, for the share of [`crate::limits::WORKERS_PER_IDENTITY_MAX`]; empty where nobody is known by
    /// name.
    pub identity: String,
}

impl Claim {
    /// A claim without predecessors.
    pub fn of(instance: InstanceId, identity: impl Into<String>) -> Self {
        Self { instance, predecessors: Vec::new(), identity: identity.into() }
    }

    /// Whether the name may pass from its current process to this one.
    pub(crate) fn may_follow(&self, holder: &InstanceId) -> bool {
        let unnamed = InstanceId::default();
        *holder == self.instance
            || *holder == unnamed
            || self.instance == unnamed
            || self.predecessors.contains(holder)
    }
}

/// Result of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The name belongs to the caller.
    Registered(HeartbeatOrders),
    /// The name belongs to another process.
    Taken(WorkerNameTaken),
}

/// The process that holds a worker's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerNameTaken {
    pub instance: InstanceId,
    /// Its last status.
    pub info: Vec<u8>,
    /// Milliseconds since then.
    pub silent_ms: u64,
    /// Milliseconds until the name is free if it stays silent.
    pub free_in_ms: u64,
}

/// Orders to a worker at its heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatOrders {
    /// Whether it should finish or release its units and end.
    pub drain: bool,
}

/// The budget of one provider key: a token bucket of `burst` permits that gets `per_minute` new ones a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// New permits per minute, from 1.
    pub per_minute: u32,
    /// Permits of a full bucket, from 1.
    pub burst: u32,
}

/// Result of a request for permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateReply {
    Granted,
    /// Not granted; ask again later.
    Wait {
        /// Milliseconds to wait, from 1.
        ms: u64,
    },
}

impl RateLimit {
    /// Microseconds until one permit returns.
    pub(crate) fn interval_us(self) -> u64 {
        60_000_000 / u64::from(self.per_minute)
    }

    /// The bucket as one number (the generic cell rate algorithm, ITU-T I.371): `full_at_us` is the time, in
    /// microseconds, at which the bucket is full again. Returns the reply and the new number.
    pub(crate) fn take(self, full_at_us: u64, now_us: u64, permits: u32) -> (RateReply, u64) {
        let interval_us = self.interval_us();
        let after_us = full_at_us.max(now_us) + u64::from(permits) * interval_us;
        let latest_us = now_us + u64::from(self.burst) * interval_us;
        if after_us <= latest_us {
            (RateReply::Granted, after_us)
        } else {
            (RateReply::Wait { ms: (after_us - latest_us).div_ceil(1_000) }, full_at_us)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let rate = RateLimit { per_minute: 60, burst: 2 };
        let (reply, full_at) = rate.take(0, 5_000_000, 2);
        assert_eq!((reply, full_at), (RateReply::Granted, 7_000_000));
        assert_eq!(rate.take(full_at, 5_000_000, 1), (RateReply::Wait { ms: 1_000 }, full_at));
        assert_eq!(rate.take(full_at, 5_999_500, 1).0, RateReply::Wait { ms: 1 });
        assert_eq!(rate.take(full_at, 6_000_000, 1), (RateReply::Granted, 8_000_000));
    }
}
