//! What conductors have told of their pools, as views and metrics read it.
//!
//! The queue keeps it for [`POOLS_FRESH`], so that all coordinators show the same, and nobody shows what a conductor said that is
//! gone. It decides nothing about work: it says why a model has no worker yet, and whether one will come.

use std::time::Duration;

use domain::ModelSpec;
use domain::pools::{PoolState, PoolStates, ServerStage};
use queue::PoolsEntry;

use crate::fleet::matching::Unserved;

/// For how long it counts what a conductor has told. It tells it in each of its rounds, every ten seconds.
pub(crate) const POOLS_FRESH: Duration = Duration::from_secs(60);

/// What conductors have told lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownPools(Vec<PoolStates>);

impl KnownPools {
    /// Reads what the queue keeps. What another version of kgfleet wrote, and cannot be read, is left out.
    pub(crate) fn of(entries: &[PoolsEntry]) -> Self {
        Self(entries.iter().filter_map(|entry| serde_json::from_slice(&entry.info).ok()).collect())
    }

    fn all(&self) -> impl Iterator<Item = &PoolState> {
        self.0.iter().flat_map(|of_release| &of_release.pools)
    }

    /// The pools of these models.
    pub(crate) fn of_models<'a>(&self, models: impl IntoIterator<Item = &'a ModelSpec>) -> Vec<PoolState> {
        let names: Vec<&str> =
            models.into_iter().filter(|spec| is_named(spec)).map(ModelSpec::requested).collect();
        self.all().filter(|pool| names.contains(&pool.model.as_str())).cloned().collect()
    }

    /// Whether servers of a model have a pool.
    pub(crate) fn has_one_of(&self, spec: &ModelSpec) -> bool {
        is_named(spec) && self.all().any(|pool| pool.model == spec.requested())
    }

    /// Why nobody can ask a model, where workers alone leave it at this.
    pub(crate) fn refined(&self, spec: &ModelSpec, why: Unserved) -> Unserved {
        if self.0.is_empty() || !matches!(why, Unserved::NoWorker(_)) || !is_named(spec) {
            return why;
        }
        let pools: Vec<&PoolState> = self.all().filter(|pool| pool.model == spec.requested()).collect();
        // One that has its nodes will register in a moment, if nothing keeps it.
        let has_nodes = |pool: &&PoolState| {
            pool.not_starting.is_none() && pool.servers_there() > pool.servers_at(ServerStage::Queued)
        };
        let may_come = pools.iter().find(|pool| !pool.is_given_up || pool.servers_there() > 0);
        match (pools.first(), may_come) {
            (None, _) => Unserved::NoPool,
            _ if pools.iter().any(has_nodes) => Unserved::Loading,
            // The same words for all that wait for the same, which are told together.
            (_, Some(pool)) => Unserved::Queued(match &pool.wait {
                Some(wait) => wait.why.words(),
                None if pool.not_starting.is_some() => "has a server that does not start",
                None if pool.servers_there() > 0 => "waits for its nodes",
                None => "is about to start a server",
            }),
            (Some(pool), None) => Unserved::GivenUp(pool.pool.clone()),
        }
    }
}

/// Whether a model is asked at servers of its name, which are what pools have.
fn is_named(spec: &ModelSpec) -> bool {
    use domain::Connector::{OpenaiCompatible, Simulated};
    matches!(spec.connector, OpenaiCompatible | Simulated) && spec.endpoint.is_none()
}

#[cfg(test)]
mod tests {
    use domain::pools::{PoolWait, ServersDoing, UsageHours, WaitReason};
    use jiff::Timestamp;

    use super::*;

    fn spec(connector: &str, model: &str) -> ModelSpec {
        let spec = serde_json::json!({"label": model, "connector": connector, "model": model});
        serde_json::from_value(spec).unwrap()
    }

    fn pool(servers: &[ServerStage], why: Option<WaitReason>) -> PoolState {
        let wait = why.map(|why| PoolWait { why, since: Timestamp::UNIX_EPOCH, until: None });
        PoolState {
            pool: "r1".to_owned(),
            model: "org/R1".to_owned(),
            gpus: 1,
            servers: servers.iter().map(|stage| ServersDoing { stage: *stage, servers: 1 }).collect(),
            is_given_up: why == Some(WaitReason::GivenUp),
            wait,
            failures: 0,
            last_failure: None,
            left: None,
            gpu_hours: UsageHours::default(),
            load_s: 60,
            loading_s: None,
            not_starting: None,
        }
    }

    fn known(pools: Vec<PoolState>) -> KnownPools {
        KnownPools(vec![PoolStates { release: "bench".to_owned(), pools, ..PoolStates::default() }])
    }

    #[test]
    fn pools_say_why_a_model_has_no_worker() {
        let nobody = || Unserved::NoWorker("nothing".to_owned());
        let model = spec("openai-compatible", "org/R1");
        let why = |pools: Vec<PoolState>| known(pools).refined(&model, nobody()).word();
        assert_eq!(KnownPools::default().refined(&model, nobody()).word(), "no-worker", "nobody conducts");
        assert_eq!(why(vec![]), "no-pool");
        assert_eq!(why(vec![pool(&[], Some(WaitReason::Gpus))]), "queued");
        assert_eq!(why(vec![pool(&[], None)]), "queued");
        assert_eq!(why(vec![pool(&[ServerStage::Queued], None)]), "queued");
        assert_eq!(why(vec![pool(&[ServerStage::Loading], None)]), "loading");
        let kept =
            PoolState { not_starting: Some("no image".to_owned()), ..pool(&[ServerStage::Loading], None) };
        let told = known(vec![kept]).refined(&model, nobody());
        assert_eq!(told, Unserved::Queued("has a server that does not start"));
        let given_up = || pool(&[], Some(WaitReason::GivenUp));
        assert_eq!(why(vec![given_up()]), "server-failed");
        assert_eq!(why(vec![given_up(), pool(&[], Some(WaitReason::Gang))]), "queued", "another one comes");
        let words = known(vec![given_up()]).refined(&model, nobody()).to_string();
        assert!(words.ends_with("kgfleet launch --retry r1"), "{words}");
        let other = known(vec![given_up()]).refined(&spec("anthropic", "org/R1"), nobody()).word();
        assert_eq!(other, "no-worker", "pools have no part in providers");
        let denied = Unserved::Denied("key".to_owned());
        assert_eq!(known(vec![]).refined(&model, denied.clone()), denied);
    }

    #[test]
    fn only_pools_of_the_models_in_question_are_shown_and_what_cannot_be_read_is_left_out() {
        let entry = |info: Vec<u8>| PoolsEntry { release: "bench".to_owned(), info };
        let states =
            PoolStates { release: "bench".to_owned(), pools: vec![pool(&[], None)], ..PoolStates::default() };
        let known = KnownPools::of(&[entry(b"{".to_vec()), entry(serde_json::to_vec(&states).unwrap())]);
        assert_eq!(
            known.of_models([&spec("simulated", "org/R1"), &spec("simulated", "other")]),
            states.pools
        );
        assert_eq!(known.of_models([&spec("anthropic", "org/R1")]), []);
    }
}
