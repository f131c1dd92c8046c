//! What all runs share: the registered workers and the rate budgets of provider keys.

use domain::{InstanceId, WorkerId};

/// A registered worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEntry {
    pub worker: WorkerId,
    /// Its process.
    pub instance: InstanceId,
    /// What it last said about itself. The queue never looks inside.
    pub info: Vec<u8>,
    /// When it last did, milliseconds since the Unix epoch by the store's clock.
    pub seen_ms: u64,
    /// Whether it was told to drain.
    pub draining: bool,
}

/// Which process claims a worker's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The process. The empty id is that of workers which tell none: any may follow it, and it may follow any.
    pub instance: InstanceId,
    /// Processes that it follows, at most [`crate::limits::MAX_PREDECESSORS`]: they have ended, for it holds their spool.
    pub predecessors: Vec<InstanceId>,
}

impl Claim {
    /// Of a process that follows none, or is registered already.
    pub fn of(instance: InstanceId) -> Self {
        Self { instance, predecessors: Vec::new() }
    }

    /// Whether the name may pass from the process that has it to this one.
    pub(crate) fn may_follow(&self, holder: &InstanceId) -> bool {
        let unnamed = InstanceId::default();
        *holder == self.instance
            || *holder == unnamed
            || self.instance == unnamed
            || self.predecessors.contains(holder)
    }
}

/// What a heartbeat came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The name is the caller's.
    Registered(Orders),
    /// It is another process's.
    Taken(NameTaken),
}

/// Who has the name of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTaken {
    /// The process.
    pub instance: InstanceId,
    /// What it last said about itself.
    pub info: Vec<u8>,
    /// Milliseconds since then.
    pub silent_ms: u64,
    /// Milliseconds of silence after which the name is free.
    pub free_in_ms: u64,
}

/// What a worker is told at its heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Finish or release what it holds and end.
    pub drain: bool,
}

/// The budget of one provider key: a token bucket of `burst` permits that gets `per_minute` new ones a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// New permits per minute, from 1.
    pub per_minute: u32,
    /// Permits of a full bucket, from 1.
    pub burst: u32,
}

/// The answer to a wish for permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateReply {
    /// Go ahead.
    Granted,
    /// Nothing was taken; ask again after this many milliseconds.
    Wait {
        /// Milliseconds, from 1.
        ms: u64,
    },
}

impl Rate {
    /// Microseconds in which one permit comes back.
    pub(crate) fn interval_us(self) -> u64 {
        60_000_000 / u64::from(self.per_minute)
    }

    /// The bucket as one number (the generic cell rate algorithm, ITU-T I.371): `full_at_us` is when the bucket
    /// will be full again, in microseconds. Returns the reply and the new number.
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
        let rate = Rate { per_minute: 60, burst: 2 };
        let (reply, full_at) = rate.take(0, 5_000_000, 2);
        assert_eq!((reply, full_at), (RateReply::Granted, 7_000_000));
        assert_eq!(rate.take(full_at, 5_000_000, 1), (RateReply::Wait { ms: 1_000 }, full_at));
        assert_eq!(rate.take(full_at, 5_999_500, 1).0, RateReply::Wait { ms: 1 });
        assert_eq!(rate.take(full_at, 6_000_000, 1), (RateReply::Granted, 8_000_000));
    }
}
