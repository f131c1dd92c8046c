//! What a conductor tells of the pools of a release: which servers there are, what is waited for, and what has been used.

mod usage;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use usage::{ServerEnd, ServerFault, ServerUsage, UsageHours};

named! {
    /// What servers may be doing.
    pub enum ServerStage {
        /// Some of its parts have no node.
        Queued = "queued",
        Loading = "loading",
        Serving = "serving",
        Idle = "idle",
        Ending = "ending",
    }
}

named! {
    /// For what a pool may wait.
    pub enum WaitReason {
        /// GPUs that others have.
        Gpus = "gpus",
        /// The nodes of another server of several nodes.
        Gang = "gang",
        /// GPU-hours.
        Budget = "budget",
        /// The time after a failure.
        Retry = "retry",
        /// Somebody who mends it.
        GivenUp = "given-up",
        /// The Job that fetches its weights.
        Weights = "weights",
    }
}

impl WaitReason {
    /// For people, after the name of the pool.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gpus => "waits for GPUs",
            Self::Gang => "waits until a server of several nodes has its nodes",
            Self::Budget => "waits because the GPU-hours are used up",
            Self::Retry => "waits after a failure",
            Self::GivenUp => "was given up",
            Self::Weights => "waits for its weights",
        }
    }
}

/// Why a pool with work has no server, or no further one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolWait {
    pub why: WaitReason,
    pub since: Timestamp,
    /// Until when, as far as that is known.
    pub until: Option<Timestamp>,
}

/// How many servers of a pool are doing the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServersDoing {
    pub stage: ServerStage,
    /// At least 1.
    pub servers: u32,
}

/// A pool as people see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolState {
    pub pool: String,
    /// The name that its servers give the model.
    pub model: String,
    /// GPUs of a server.
    pub gpus: u32,
    /// Its servers that have not ended, in the order of [`ServerStage`].
    pub servers: Vec<ServersDoing>,
    pub wait: Option<PoolWait>,
    /// Whether no server of it is started any more before somebody changes something.
    pub is_given_up: bool,
    /// Servers that failed and count.
    pub failures: u32,
    /// Why the last one failed.
    pub last_failure: Option<String>,
    /// Dialogues left now; `None` if coordinators do not know.
    pub left: Option<u64>,
    /// GPU-hours of its servers so far.
    pub gpu_hours: UsageHours,
    /// Seconds that a server is expected to load.
    #[serde(default)]
    pub load_s: u64,
    /// For how many seconds the server has been loading that began first; `None` if none is.
    #[serde(default)]
    pub loading_s: Option<u64>,
    /// Why a server of it does not start, in the words of Kubernetes; `None` if nothing is known to keep one.
    #[serde(default)]
    pub not_starting: Option<String>,
}

impl PoolState {
    /// Its servers at this stage.
    pub fn servers_at(&self, stage: ServerStage) -> u32 {
        self.servers.iter().filter(|doing| doing.stage == stage).map(|doing| doing.servers).sum()
    }

    /// Its servers that have not ended.
    pub fn servers_there(&self) -> u32 {
        self.servers.iter().map(|doing| doing.servers).sum()
    }

    /// What it does, for people: its servers, and what it waits for.
    pub fn words(&self) -> String {
        let doing = self.servers.iter().map(|doing| match (doing.stage, self.loading_s) {
            (ServerStage::Loading, Some(seconds)) => {
                let (minutes, of) = (seconds / 60, self.load_s.div_ceil(60));
                format!("{} loading ({minutes} of about {of} min)", doing.servers)
            }
            _ => format!("{} {}", doing.servers, doing.stage),
        });
        let wait = self.wait.as_ref().map(|wait| match wait.until {
            Some(until) => format!("{} until {until:.0}", wait.why.words()),
            None => wait.why.words().to_owned(),
        });
        let given_up = self.is_given_up.then(|| match self.servers.is_empty() {
            true => WaitReason::GivenUp.words().to_owned(),
            false => "gets no further server".to_owned(),
        });
        let told: Vec<String> = doing.chain(wait.or(given_up)).collect();
        let told = if told.is_empty() { "no server".to_owned() } else { told.join(", ") };
        match &self.not_starting {
            Some(why) => format!("{told}; does not start: {why}"),
            None => told,
        }
    }
}

/// What a conductor tells of all pools of its release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PoolStates {
    pub release: String,
    pub pools: Vec<PoolState>,
    /// GPU-hours of all servers so far.
    pub gpu_hours: f64,
    /// GPU-hours that they will have taken at the end, as far as that can be foreseen.
    pub gpu_hours_planned: Option<f64>,
    pub gpu_hours_budget: Option<f64>,
    /// When the last server will end, as far as that can be foreseen.
    pub plan_ends_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_says_what_its_servers_do_and_what_it_waits_for() {
        let doing = |stage, servers| ServersDoing { stage, servers };
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let wait = |why, until| Some(PoolWait { why, since: at, until });
        let state = |servers: &[ServersDoing], wait, is_given_up| PoolState {
            pool: "r1".to_owned(),
            model: "org/R1".to_owned(),
            gpus: 8,
            servers: servers.to_vec(),
            wait,
            is_given_up,
            failures: 0,
            last_failure: None,
            left: None,
            gpu_hours: UsageHours::default(),
            load_s: 1200,
            loading_s: None,
            not_starting: None,
        };
        assert_eq!(state(&[], None, false).words(), "no server");
        let busy = state(&[doing(ServerStage::Loading, 1), doing(ServerStage::Serving, 2)], None, false);
        assert_eq!(busy.words(), "1 loading, 2 serving");
        let known = PoolState { loading_s: Some(725), ..busy.clone() };
        assert_eq!(known.words(), "1 loading (12 of about 20 min), 2 serving");
        assert_eq!((busy.servers_there(), busy.servers_at(ServerStage::Serving)), (3, 2));
        let waiting = state(&[], wait(WaitReason::Gpus, Some(at)), false);
        assert_eq!(waiting.words(), "waits for GPUs until 2023-11-14T22:13:20Z");
        assert_eq!(state(&[], None, true).words(), "was given up");
        assert_eq!(state(&[], wait(WaitReason::GivenUp, None), true).words(), "was given up");
        let one = state(&[doing(ServerStage::Serving, 1)], None, true);
        assert_eq!(one.words(), "1 serving, gets no further server");
        let not_starting = Some("Unschedulable: 0/2 nodes are available".to_owned());
        let queued = PoolState { not_starting, ..state(&[doing(ServerStage::Queued, 1)], None, false) };
        assert_eq!(queued.words(), "1 queued; does not start: Unschedulable: 0/2 nodes are available");
    }
}
