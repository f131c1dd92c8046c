//! What a server leaves that has ended: when it was there, on what, what it did, and how it ended. It outlives the server, its Job
//! and the release.

use std::ops::AddAssign;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

named! {
    /// How a server ended.
    pub enum ServerEnd {
        /// Nothing was left to do (exit code 0).
        Done = "done",
        /// It was evicted or preempted, or its node is gone.
        Disrupted = "disrupted",
        /// It cannot be used as it is configured (exit code 2): another try would end alike.
        Unusable = "unusable",
        /// Its model did not come, or was lost (exit code 3, a deadline, too many restarts).
        Failed = "failed",
        /// It did not get all of its nodes in time.
        NoNodes = "no-nodes",
    }
}

named! {
    /// Why a server ended although its work was not done, in a word. [`ServerUsage::why`] says it in a sentence.
    pub enum ServerFault {
        /// Its worker cannot be used as it is configured (exit code 2).
        Unusable = "unusable",
        /// More was put on a volume than that may hold.
        Volume = "volume",
        /// Its model did not come in time (exit code 3).
        NotLoaded = "not-loaded",
        /// It served, and then its model was gone, or its records could not be delivered (exit code 3).
        Silent = "silent",
        /// It was there for longer than a server may be.
        Deadline = "deadline",
        /// A container took more memory than it may.
        OutOfMemory = "out-of-memory",
        /// Containers ended again and again.
        Crashes = "crashes",
        /// An image did not come.
        Image = "image",
        /// It was evicted or preempted.
        Evicted = "evicted",
        /// One of its nodes does not answer any more.
        NodeLost = "node-lost",
        /// It did not get all of its nodes in time.
        NoNodes = "no-nodes",
        Other = "other",
    }
}

impl ServerFault {
    /// How such a server ended.
    pub fn end(self) -> ServerEnd {
        match self {
            Self::Unusable | Self::Volume => ServerEnd::Unusable,
            Self::Evicted | Self::NodeLost => ServerEnd::Disrupted,
            Self::NoNodes => ServerEnd::NoNodes,
            Self::NotLoaded
            | Self::Silent
            | Self::Deadline
            | Self::OutOfMemory
            | Self::Crashes
            | Self::Image
            | Self::Other => ServerEnd::Failed,
        }
    }
}

/// See the text of the module. Texts are empty where nobody says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerUsage {
    pub release: String,
    pub pool: String,
    /// The CronJob that the pool is, by its uid: a release that is installed anew has other ones.
    pub pool_uid: String,
    /// Hash of the template that the server was made of.
    pub template: String,
    /// The name that it gave the model.
    pub model: String,
    pub job: String,
    pub uid: String,
    /// The image of the model server, with its digest.
    pub image: String,
    /// The revision of the weights.
    pub revision: String,
    /// GPUs of all of its parts.
    pub gpus: u32,
    pub nodes: Vec<String>,
    /// Since when it took GPUs; `None` if it never did.
    pub took_gpus_at: Option<Timestamp>,
    /// When its model was there; `None` if it never was.
    pub loaded_at: Option<Timestamp>,
    pub ended_at: Timestamp,
    /// Seconds for which it had nothing to do, as far as somebody looked.
    pub idle_s: u64,
    /// Dialogues that it ended with.
    pub dialogues: u64,
    pub end: ServerEnd,
    /// `None` if nothing was left to do, or nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<ServerFault>,
    pub why: String,
}

/// GPU-hours by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UsageHours {
    pub load: f64,
    pub work: f64,
    pub idle: f64,
    /// Of servers that never served.
    pub lost: f64,
}

impl UsageHours {
    pub fn total(&self) -> f64 {
        self.load + self.work + self.idle + self.lost
    }

    /// Of so many GPUs from when they were taken until then. A server that has not ended may still come to serve.
    pub fn of(
        gpus: u32,
        (took_gpus_at, loaded_at, until): (Option<Timestamp>, Option<Timestamp>, Timestamp),
        idle_s: u64,
        has_ended: bool,
    ) -> Self {
        let Some(from) = took_gpus_at else { return Self::default() };
        let hours = |from: Timestamp, to: Timestamp| {
            to.duration_since(from).as_secs_f64().max(0.0) / 3600.0 * f64::from(gpus)
        };
        let Some(loaded_at) = loaded_at else {
            let all = hours(from, until);
            return if has_ended {
                Self { lost: all, ..Self::default() }
            } else {
                Self { load: all, ..Self::default() }
            };
        };
        let loaded_at = loaded_at.clamp(from, until.max(from));
        let served = hours(loaded_at, until);
        let idle = (idle_s as f64 / 3600.0 * f64::from(gpus)).min(served);
        Self { load: hours(from, loaded_at), work: served - idle, idle, lost: 0.0 }
    }
}

impl AddAssign for UsageHours {
    fn add_assign(&mut self, other: Self) {
        self.load += other.load;
        self.work += other.work;
        self.idle += other.idle;
        self.lost += other.lost;
    }
}

impl ServerUsage {
    pub fn gpu_hours(&self) -> UsageHours {
        UsageHours::of(self.gpus, (self.took_gpus_at, self.loaded_at, self.ended_at), self.idle_s, true)
    }

    /// Seconds that it loaded; `None` if it never served.
    pub fn load_s(&self) -> Option<f64> {
        let (from, to) = self.took_gpus_at.zip(self.loaded_at)?;
        Some(to.duration_since(from).as_secs_f64().max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(60 * minutes).unwrap()
    }

    #[test]
    fn hours_are_for_loading_work_and_idling_or_lost() {
        let of = |loaded_at, ended_at, idle_min: u64, has_ended| {
            UsageHours::of(2, (Some(at(0)), loaded_at, ended_at), 60 * idle_min, has_ended)
        };
        let hours = |load, work, idle, lost| UsageHours { load, work, idle, lost };
        assert_eq!(of(Some(at(30)), at(120), 30, true), hours(1.0, 2.0, 1.0, 0.0));
        assert_eq!(of(None, at(30), 0, true), hours(0.0, 0.0, 0.0, 1.0));
        assert_eq!(of(None, at(30), 0, false), hours(1.0, 0.0, 0.0, 0.0));
        // Clocks differ: it was loaded after it ended, or idle for longer than it was there.
        assert_eq!(of(Some(at(90)), at(60), 0, true), hours(2.0, 0.0, 0.0, 0.0));
        assert_eq!(of(Some(at(30)), at(60), 90, true), hours(1.0, 0.0, 1.0, 0.0));
        assert_eq!(UsageHours::of(2, (None, None, at(60)), 0, true), UsageHours::default());
        let mut sum = hours(1.0, 2.0, 3.0, 4.0);
        sum += hours(0.5, 0.5, 0.5, 0.5);
        assert_eq!((sum, sum.total()), (hours(1.5, 2.5, 3.5, 4.5), 12.0));
    }
}
