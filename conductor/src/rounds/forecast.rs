//! When the servers of a release will be done, and what they will have taken. The same world in virtual time that a plan is made
//! in goes on from what there is now, with nothing that goes wrong.

use std::time::Duration;

use crate::pool::{Limits, Needs, NextTry, Pool, PoolServer, PoolServerPhase, PoolView, World, WorldPool};
use jiff::Timestamp;

use crate::server::since_epoch;

/// Nodes of the world, at most.
const NODES_MAX: u64 = 10_000;

/// What is to be expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    pub ends_at: Timestamp,
    /// GPU-hours of all servers by then.
    pub gpu_hours: f64,
}

/// Foretells the end of what is known now; `None` if something is not known, or will never end. Of pools that were given
/// up, only the servers that are there count, because nobody knows when they are mended.
pub(super) fn forecast(
    now: Timestamp,
    needs: Option<&Needs>,
    (pools, servers): (&[PoolView], &[PoolServer]),
    (limits, gpus_per_node): (&Limits, Option<u32>),
    gpu_hours_used: f64,
) -> Option<Forecast> {
    let needs = needs?;
    let mut left = Vec::new();
    for (place, (view, need)) in pools.iter().zip(&needs.of).enumerate() {
        let need = (*need)?;
        let of_pool = || servers.iter().filter(|server| server.pool == place);
        let is_given_up = view.failures.next_try(since_epoch(now)) == NextTry::GivenUp;
        let servers_max = if is_given_up { of_pool().count() as u32 } else { view.pool.servers_max };
        if need.now == 0 || servers_max == 0 {
            continue;
        }
        // What the server that is furthest has loaded, need not be loaded again.
        let load = of_pool().map(|server| left_to_load(server, &view.pool, now)).min();
        let believed = Pool {
            load: load.unwrap_or(view.pool.load),
            rate: need.rate.filter(|rate| *rate > 0.0).unwrap_or(view.pool.rate),
            servers_max,
            ..view.pool.clone()
        };
        left.push(WorldPool::exact(believed, need.now as f64));
    }
    if left.is_empty() {
        return Some(Forecast { ends_at: now, gpu_hours: gpu_hours_used });
    }
    let per_node = left.iter().map(|pool| pool.believed.gpus).max().unwrap_or(1);
    let per_node = gpus_per_node.unwrap_or(per_node).clamp(1, limits.gpus.max(1));
    // More nodes than there can be parts of servers change nothing, and who does not know the limit may name any.
    let parts = left.iter().map(|pool| u64::from(pool.believed.parts) * u64::from(pool.believed.servers_max));
    let nodes = u64::from(limits.gpus / per_node).min(parts.sum()).min(NODES_MAX);
    let world = World {
        nodes: vec![per_node; nodes as usize],
        pools: left,
        limits: Limits { gpu_hours: None, ..limits.clone() },
    };
    let outcome = world.run();
    let is_known = outcome.stuck.is_empty() && outcome.given_up.is_empty();
    let ends_at = now.checked_add(outcome.over_at).ok().filter(|_| is_known)?;
    Some(Forecast { ends_at, gpu_hours: gpu_hours_used + outcome.gpu_hours.total() })
}

/// How long a server has still to load.
fn left_to_load(server: &PoolServer, pool: &Pool, now: Timestamp) -> Duration {
    match server.phase {
        PoolServerPhase::Unscheduled => pool.load,
        PoolServerPhase::Loading { since } => {
            pool.load.saturating_sub(since_epoch(now).saturating_sub(since))
        }
        PoolServerPhase::Serving => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use crate::pool::{Failures, PoolNeed, ServerEnd};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn pool(name: &str, failures: Failures) -> PoolView {
        let pool =
            Pool { name: name.to_owned(), parts: 1, gpus: 8, servers_max: 1, load: 10 * MINUTE, rate: 1.0 };
        PoolView { pool, failures }
    }

    fn needs(now: Timestamp, dialogues: &[Option<u64>]) -> Needs {
        let need = |now: &Option<u64>| now.map(|now| PoolNeed { now, rate: None });
        Needs { read_at: since_epoch(now), of: dialogues.iter().map(need).collect() }
    }

    #[test]
    fn the_end_is_that_of_what_is_left_and_loaded_servers_do_not_load_again() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let limits = Limits::of_gpus(8);
        let told = |needs: Option<&Needs>, pools: &[PoolView], servers: &[PoolServer]| {
            forecast(now, needs, (pools, servers), (&limits, Some(8)), 5.0)
        };
        let minutes = |forecast: Option<Forecast>| {
            let forecast = forecast.unwrap();
            (forecast.ends_at.duration_since(now).as_secs() / 60, forecast.gpu_hours.round())
        };
        let two = [pool("a", Failures::default()), pool("b", Failures::default())];
        let both = needs(now, &[Some(3_000), Some(1_200)]);
        // One after the other on eight GPUs: ten minutes each to load, fifty and twenty of work.
        assert_eq!(minutes(told(Some(&both), &two, &[])), (90, 17.0));
        let serving =
            PoolServer { pool: 0, number: 0, created_at: since_epoch(now), phase: PoolServerPhase::Serving };
        assert_eq!(minutes(told(Some(&both), &two, &[serving])), (80, 16.0));
        assert_eq!(minutes(told(Some(&needs(now, &[Some(0), Some(0)])), &two, &[])), (0, 5.0));
        assert_eq!(told(None, &two, &[]), None, "no coordinator has said anything");
        assert_eq!(told(Some(&needs(now, &[Some(1), None])), &two, &[]), None, "not all is known");
        let mut failures = Failures::default();
        failures.note(ServerEnd::Unusable, Duration::ZERO);
        let broken = [pool("a", failures), pool("b", Failures::default())];
        assert_eq!(minutes(told(Some(&both), &broken, &[])).0, 30, "the other one is left out");
        let wide = [PoolView { pool: Pool { gpus: 16, ..two[0].pool.clone() }, ..two[0].clone() }];
        assert_eq!(told(Some(&needs(now, &[Some(1)])), &wide, &[]), None, "it never fits");
    }
}
