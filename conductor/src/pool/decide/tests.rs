use domain::pools::ServerEnd;
use proptest::prelude::*;

use super::*;
use crate::pool::failures::Failures;
use crate::pool::view::{Limits, Needs, Pool};

const MINUTE: Duration = Duration::from_secs(60);

/// A pool that asks a dialogue per second and loads for ten minutes.
fn pool(name: &str, parts: u32, gpus: u32) -> PoolView {
    let pool = Pool { name: name.to_owned(), parts, gpus, servers_max: 1, load: 10 * MINUTE, rate: 1.0 };
    PoolView { pool, failures: Failures::default() }
}

struct Ground {
    pools: Vec<PoolView>,
    needs: Needs,
    servers: Vec<PoolServer>,
    limits: Limits,
    used: f64,
}

impl Ground {
    /// Pools with so many minutes of work each.
    fn new(gpus: u32, pools: Vec<(PoolView, u64)>) -> Self {
        let of = pools.iter().map(|(_, minutes)| Some(PoolNeed { now: minutes * 60, rate: None })).collect();
        Self {
            pools: pools.into_iter().map(|(pool, _)| pool).collect(),
            needs: Needs { read_at: Duration::ZERO, of },
            servers: Vec::new(),
            limits: Limits::of_gpus(gpus),
            used: 0.0,
        }
    }

    fn decide_at(&self, now: Duration) -> Decision {
        let needs = Needs { read_at: now, ..self.needs.clone() };
        self.decide_on(now, Some(&needs))
    }

    fn decide_on(&self, now: Duration, needs: Option<&Needs>) -> Decision {
        decide(&PoolsView {
            now,
            needs,
            pools: &self.pools,
            servers: &self.servers,
            limits: &self.limits,
            gpu_hours_used: self.used,
        })
    }

    /// The names of pools whose servers are started, in order.
    fn starts_at(&self, now: Duration) -> Vec<&str> {
        let name = |act: Act| match act {
            Act::Start { pool } => Some(self.pools[pool].pool.name.as_str()),
            Act::GiveUp { .. } => None,
        };
        self.decide_at(now).acts.into_iter().filter_map(name).collect()
    }

    fn wait_of(&self, name: &str, now: Duration) -> Option<Wait> {
        let named = |(pool, _): &(usize, Wait)| self.pools[*pool].pool.name == name;
        self.decide_at(now).waits.into_iter().find(named).map(|(_, wait)| wait)
    }

    fn server(&mut self, pool: usize, created_at: Duration, phase: PoolServerPhase) {
        let number = self.servers.len() as u32 + 1;
        self.servers.push(PoolServer { pool, number, created_at, phase });
    }
}

#[test]
fn nothing_is_started_before_it_is_known_what_there_is_to_do() {
    let ground = Ground::new(8, vec![(pool("a", 1, 1), 5)]);
    assert_eq!(ground.decide_on(MINUTE, None), Decision::default());
    assert_eq!(ground.decide_on(NEEDS_AGE_MAX, Some(&ground.needs)).acts, [Act::Start { pool: 0 }]);
    let later = NEEDS_AGE_MAX + Duration::from_secs(1);
    assert_eq!(ground.decide_on(later, Some(&ground.needs)), Decision::default());
    let unknown = Needs { of: vec![None], ..ground.needs.clone() };
    assert_eq!(ground.decide_on(MINUTE, Some(&unknown)), Decision::default());
}

#[test]
fn the_longest_goes_first_and_nobody_delays_the_first_that_does_not_fit() {
    let pools = vec![
        (pool("short", 1, 1), 5),
        (pool("longest", 1, 4), 120),
        (pool("large", 1, 8), 60),
        (pool("long", 1, 2), 100),
        (pool("idle", 1, 1), 0),
    ];
    let mut ground = Ground::new(8, pools);
    // `large` waits for `longest` to end, 130 minutes from now; the others end before that.
    assert_eq!(ground.starts_at(Duration::ZERO), ["longest", "long", "short"]);
    let until = Some(130 * MINUTE);
    assert_eq!(ground.wait_of("large", Duration::ZERO), Some(Wait::Gpus { until }));
    // Where `longest` is nearly over, `long` would come in the way of `large`.
    ground.needs.of[1] = Some(PoolNeed { now: 60 * 60, rate: None });
    ground.needs.of[2] = Some(PoolNeed { now: 110 * 60, rate: None });
    ground.server(1, Duration::ZERO, PoolServerPhase::Serving);
    assert_eq!(ground.starts_at(70 * MINUTE), ["short"]);
    assert_eq!(ground.wait_of("long", 70 * MINUTE), Some(Wait::Gpus { until: Some(130 * MINUTE) }));
    // A measured rate counts in place of the table's.
    ground.needs.of[3] = Some(PoolNeed { now: 100 * 60, rate: Some(4.0) });
    assert_eq!(ground.starts_at(70 * MINUTE), ["long", "short"]);
    ground.limits.gpus = 4;
    assert_eq!(ground.wait_of("large", 70 * MINUTE), Some(Wait::Gpus { until: None }));
}

#[test]
fn servers_of_several_nodes_get_their_nodes_one_after_the_other() {
    let mut ground =
        Ground::new(64, vec![(pool("a", 2, 8), 60), (pool("b", 2, 8), 50), (pool("c", 1, 8), 5)]);
    // For a minute nobody else is put on nodes that `b` needs whole.
    assert_eq!(ground.starts_at(Duration::ZERO), ["a"]);
    assert_eq!(ground.wait_of("b", Duration::ZERO), Some(Wait::Gang));
    ground.server(0, Duration::ZERO, PoolServerPhase::Unscheduled);
    assert_eq!(ground.starts_at(TURN - Duration::from_secs(1)), [""; 0]);
    assert_eq!(ground.starts_at(TURN), ["c"]);
    let timeout = ground.limits.gang_timeout;
    assert_eq!(ground.decide_at(timeout).acts[0], Act::GiveUp { pool: 0, number: 1 });
    // Whole servers are admitted, or none: nothing to wait for, nothing to give up.
    ground.limits.admits_whole = true;
    assert_eq!(ground.starts_at(timeout), ["b", "c"]);
    ground.limits.admits_whole = false;
    ground.servers[0].phase = PoolServerPhase::Loading { since: MINUTE };
    assert_eq!(ground.starts_at(timeout), ["b", "c"]);
    ground.pools[0].failures.note(ServerEnd::NoNodes, timeout);
    ground.servers.clear();
    assert_eq!(ground.wait_of("a", timeout), Some(Wait::Retry { until: timeout + 5 * MINUTE }));
}

#[test]
fn further_servers_are_started_where_they_are_worth_it_and_nobody_waits_for_a_first() {
    let mut wide = pool("wide", 1, 2);
    wide.pool.servers_max = 3;
    let mut ground = Ground::new(8, vec![(wide, 300), (pool("other", 1, 4), 20)]);
    assert_eq!(ground.starts_at(Duration::ZERO), ["wide", "other"]);
    ground.server(0, Duration::ZERO, PoolServerPhase::Serving);
    ground.server(1, Duration::ZERO, PoolServerPhase::Serving);
    // (300 - 10) / 2 = 145 minutes sooner.
    assert_eq!(ground.starts_at(MINUTE), ["wide"]);
    ground.needs.of[0] = Some(PoolNeed { now: 19 * 60, rate: None });
    assert_eq!(ground.starts_at(MINUTE), [""; 0], "four and a half minutes are not worth it");
    ground.needs.of[0] = Some(PoolNeed { now: 300 * 60, rate: None });
    ground.servers.pop();
    ground.limits.gpus = 5;
    assert_eq!(ground.starts_at(MINUTE), [""; 0], "a first server waits for GPUs");
    ground.needs.of[1] = Some(PoolNeed::default());
    assert_eq!(ground.starts_at(MINUTE), ["wide"]);
    ground.server(0, MINUTE, PoolServerPhase::Unscheduled);
    ground.server(0, MINUTE, PoolServerPhase::Unscheduled);
    ground.limits.gpus = 64;
    assert_eq!(ground.starts_at(2 * MINUTE), [""; 0], "it has as many as it may have");
}

#[test]
fn the_budget_is_kept_and_a_smaller_model_may_still_fit_into_it() {
    let mut ground =
        Ground::new(64, vec![(pool("a", 1, 8), 50), (pool("b", 1, 1), 50), (pool("c", 1, 1), 20)]);
    // `a` takes 8 GPU-hours, `b` one, `c` half of one.
    ground.limits.gpu_hours = Some(9.0);
    assert_eq!(ground.starts_at(Duration::ZERO), ["a", "b"]);
    assert_eq!(ground.wait_of("c", Duration::ZERO), Some(Wait::Budget));
    ground.used = 1.0;
    assert_eq!(ground.starts_at(Duration::ZERO), ["a"]);
    ground.used = 7.5;
    assert_eq!(ground.starts_at(Duration::ZERO), ["b", "c"]);
    // What servers that run will take counts as taken.
    ground.used = 0.0;
    ground.server(0, Duration::ZERO, PoolServerPhase::Unscheduled);
    ground.needs.of[1] = Some(PoolNeed { now: 60 * 60, rate: None });
    assert_eq!(ground.starts_at(Duration::ZERO), ["c"]);
}

prop_compose! {
    fn pools()(sizes in prop::collection::vec((1_u32..=2, 1_u32..=8, 1_u32..=3, 0_u64..300), 1..12)) -> Vec<(PoolView, u64)> {
        sizes.into_iter().enumerate().map(|(number, (parts, gpus, servers_max, work))| {
            let mut view = pool(&format!("p{number}"), parts, gpus);
            view.pool.servers_max = servers_max;
            (view, work)
        }).collect()
    }
}

proptest! {
    /// Whatever there is: limits hold, nobody has too many servers, and no two gangs wait for nodes.
    #[test]
    fn limits_hold_whatever_there_is(pools in pools(), gpus in 1_u32..64, budget in prop::option::of(0.0..100.0_f64), rounds in 1_usize..6) {
        let mut ground = Ground::new(gpus, pools);
        ground.limits.gpu_hours = budget;
        for round in 0..rounds {
            let now = MINUTE * round as u32;
            for act in ground.decide_at(now).acts {
                if let Act::Start { pool } = act {
                    prop_assert!(ground.needs.of[pool].unwrap().now > 0);
                    ground.server(pool, now, PoolServerPhase::Unscheduled);
                }
            }
            let in_use: u32 = ground.servers.iter().map(|server| ground.pools[server.pool].pool.server_gpus()).sum();
            prop_assert!(in_use <= gpus);
            let gangs = ground.servers.iter().filter(|server| ground.pools[server.pool].pool.is_gang()).count();
            prop_assert!(gangs <= 1, "none of them has its nodes yet");
            for (pool, view) in ground.pools.iter().enumerate() {
                let servers = ground.servers.iter().filter(|server| server.pool == pool).count();
                prop_assert!(servers as u32 <= view.pool.servers_max);
            }
        }
    }

    /// On enough GPUs, everybody with work has a server.
    #[test]
    fn nobody_waits_where_there_is_room(pools in pools()) {
        let singles: Vec<_> = pools.into_iter().filter(|(view, _)| !view.pool.is_gang()).collect();
        let wanted = singles.iter().filter(|(_, work)| *work > 0).count();
        let ground = Ground::new(1_000, singles);
        let decision = ground.decide_at(Duration::ZERO);
        prop_assert_eq!((decision.acts.len(), decision.waits.len()), (wanted, 0));
    }
}
