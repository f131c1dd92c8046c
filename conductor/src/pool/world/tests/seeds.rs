//! The open models of the paper's matrix on five clusters, a night for each seed. `KGFLEET_POOL_SEEDS` says how many (20);
//! `make release-check` takes a thousand.

use std::collections::BTreeMap;

use domain::seed::SplitMix64;
use serde::Deserialize;

use super::mishaps::{Eviction, MishapList, Pause, RoughWorld, SecondRun, Tenant};
use super::*;
use crate::pool::bound::{PoolWork, bound};

/// Dialogues of a model: 26 tasks, 50 times each.
const DIALOGUES: f64 = 1_300.0;

const GPUS_PER_NODE: u32 = 8;

/// Ratios to the bound: with exact times; the median and the 95th percentile where each time is off by 30 %.
const EXACT_MAX: f64 = 1.15;
const MEDIAN_MAX: f64 = 1.15;
const P95_MAX: f64 = 1.25;

/// How far true times are from the table's: sigma of a log-normal factor.
const ERROR: f64 = 0.3;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Table {
    dialogue: Dialogue,
    models: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Dialogue {
    tokens: f64,
}

#[derive(Deserialize)]
struct Model {
    gpus: u32,
    tokens_per_second: f64,
    tokens: Option<f64>,
    #[serde(default = "five")]
    load_minutes: u32,
    weights_gib: f64,
}

/// Minutes that loading takes where the table says nothing.
fn five() -> u32 {
    5
}

/// The pools of the table of models, those that fit on so many GPUs.
fn pools(gpus: u32) -> Vec<Pool> {
    pools_that_load(gpus, |model| MINUTE * model.load_minutes)
}

/// The same whose servers load for so long.
fn pools_that_load(gpus: u32, load: impl Fn(&Model) -> Duration) -> Vec<Pool> {
    let table: Table =
        toml::from_str(include_str!("../../../../../deploy/launch/models.toml")).expect("the table is TOML");
    let of = |(name, model): (String, Model)| {
        let parts = model.gpus.div_ceil(GPUS_PER_NODE);
        Pool {
            name,
            parts,
            gpus: model.gpus / parts,
            servers_max: 1,
            load: load(&model),
            rate: model.tokens_per_second / model.tokens.unwrap_or(table.dialogue.tokens),
        }
    };
    let pools: Vec<Pool> = table.models.into_iter().filter(|(_, model)| model.gpus <= gpus).map(of).collect();
    assert!(pools.len() > 20, "the table has the open models of the paper");
    pools
}

/// The clusters, as nodes with GPUs each; the last is a lab's one machine.
const CLUSTERS: [(u32, u32); 5] = [(2, 8), (3, 8), (4, 8), (8, 8), (1, 2)];

/// A cluster whose table of models is exact.
fn exact((nodes, gpus): (u32, u32)) -> World {
    let exact = |pool| WorldPool::exact(pool, DIALOGUES);
    World {
        nodes: vec![gpus; nodes as usize],
        pools: pools(nodes * gpus).into_iter().map(exact).collect(),
        limits: Limits::of_gpus(nodes * gpus),
    }
}

/// A world whose true times are others than the table's.
fn off(world: &World, random: &mut SplitMix64) -> World {
    let mut world = world.clone();
    for pool in &mut world.pools {
        pool.load = pool.load.mul_f64(factor(random));
        pool.rate *= factor(random);
    }
    world
}

/// A log-normal factor, of the sum of twelve uniform numbers.
fn factor(random: &mut SplitMix64) -> f64 {
    let sum: f64 = (0..12).map(|_| random.unit()).sum();
    (ERROR * (sum - 6.0)).exp()
}

/// The bound of a world by what is true in it.
fn bound_of(world: &World) -> Duration {
    let true_pools: Vec<(Pool, f64)> = world
        .pools
        .iter()
        .map(|pool| (Pool { load: pool.load, rate: pool.rate, ..pool.believed.clone() }, pool.dialogues))
        .collect();
    let work: Vec<PoolWork<'_>> =
        true_pools.iter().map(|(pool, dialogues)| PoolWork { pool, dialogues: *dialogues }).collect();
    bound(&work, world.nodes.len() as u32, world.nodes[0])
}

/// How much longer than the bound it took.
fn ratio(night: &RoughWorld, seed: u64) -> f64 {
    let (world, outcome) = (&night.world, night.run(seed));
    assert!(outcome.stuck.is_empty() && outcome.given_up.is_empty(), "seed {seed}: {outcome:?}");
    assert!(outcome.gpus_max <= world.limits.gpus);
    outcome.over_at.as_secs_f64() / bound_of(world).as_secs_f64()
}

fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("KGFLEET_POOL_SEEDS").map_or(20, |seeds| seeds.parse().expect("a number of seeds"))
}

#[test]
fn with_exact_times_a_night_is_as_short_as_it_can_be() {
    for cluster in CLUSTERS {
        for packs in [false, true] {
            let night = RoughWorld { packs, ..RoughWorld::of(exact(cluster)) };
            let ratio = ratio(&night, 0);
            println!(
                "{}x{} packs: {packs}: bound {:.2} h, ratio {ratio:.3}",
                cluster.0,
                cluster.1,
                hours(bound_of(&night.world))
            );
            assert!(ratio <= EXACT_MAX, "{cluster:?} {packs}: {ratio}");
        }
    }
}

/// Weights that lie on a shared volume are read at 2 GiB a second, and a server needs three minutes beside that; one of a whole
/// node or more, five.
fn load_from_shared_volume(model: &Model) -> Duration {
    let start = if model.gpus >= GPUS_PER_NODE { 5 * MINUTE } else { 3 * MINUTE };
    start + Duration::from_secs_f64(model.weights_gib / 2.0)
}

#[test]
fn with_weights_on_a_shared_volume_64_gpus_end_the_matrix_within_the_hour() {
    let believed = |pool| WorldPool::exact(pool, DIALOGUES);
    let world = World {
        pools: pools_that_load(64, load_from_shared_volume).into_iter().map(believed).collect(),
        ..exact((8, 8))
    };
    let outcome = world.run();
    assert!(outcome.stuck.is_empty() && outcome.given_up.is_empty(), "{outcome:?}");
    let (over_at, hours_used) = (outcome.over_at, outcome.gpu_hours.total());
    println!("8x8 with shared weights: {:.2} h, {hours_used:.1} GPU-hours", hours(over_at));
    // Three quarters of an hour is what was foreseen; a third of the GPU-hours is left of those with weights from afar.
    assert!(over_at <= (45 * MINUTE).mul_f64(1.3), "{over_at:?}");
    assert!(hours_used <= 40.0, "{hours_used}");
}

fn hours(duration: Duration) -> f64 {
    duration.as_secs_f64() / 3600.0
}

#[test]
fn with_times_that_are_off_by_30_percent_most_nights_are_nearly_as_short() {
    for cluster in CLUSTERS {
        let world = exact(cluster);
        let mut ratios: Vec<f64> = seeds()
            .map(|seed| ratio(&RoughWorld::of(off(&world, &mut SplitMix64::new(seed))), seed))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
        println!(
            "{}x{}, {} seeds: median {:.3}, 95 % {:.3}, worst {:.3}",
            cluster.0,
            cluster.1,
            ratios.len(),
            at(0.5),
            at(0.95),
            at(1.0)
        );
        assert!(at(0.5) <= MEDIAN_MAX && at(0.95) <= P95_MAX, "{cluster:?}");
    }
}

/// A night in which much goes wrong.
fn bad(world: &World, random: &mut SplitMix64) -> RoughWorld {
    let mut night = RoughWorld::of(off(world, random));
    let world = &mut night.world;
    let nodes = world.nodes.len();
    let minutes = |random: &mut SplitMix64, max: f64| MINUTE.mul_f64(random.unit() * max);
    let mut mishaps =
        MishapList { failing_loads: 0.05, load_spread: 0.2, pull_max: 10 * MINUTE, ..MishapList::default() };
    for _ in 0..random.next_u64() % 4 {
        let node = (random.next_u64() % nodes as u64) as usize;
        mishaps.evictions.push(Eviction { at: minutes(random, 300.0), node });
    }
    for _ in 0..random.next_u64() % 3 {
        let node = (random.next_u64() % nodes as u64) as usize;
        let gpus = 1 + (random.next_u64() % 8) as u32;
        let from = minutes(random, 200.0);
        mishaps.tenants.push(Tenant { node, gpus, from, until: from + minutes(random, 200.0) });
    }
    if random.unit() < 0.3 {
        let from = minutes(random, 200.0);
        mishaps.pauses.push(Pause { from, until: from + minutes(random, 120.0) });
    }
    if random.unit() < 0.3 {
        mishaps.second_run = Some(SecondRun { at: minutes(random, 600.0), share: random.unit() });
    }
    for pool in &mut world.pools {
        pool.believed.servers_max = 1 + (random.next_u64() % 3) as u32;
    }
    if random.unit() < 0.5 {
        night.packs = true;
    }
    world.limits.admits_whole = random.unit() < 0.3;
    if random.unit() < 0.3 {
        world.limits.gpu_hours = Some(10.0 + 200.0 * random.unit());
    }
    night.mishaps = mishaps;
    night
}

#[test]
fn whatever_goes_wrong_every_model_is_done_or_named() {
    for cluster in CLUSTERS {
        let (exact, mut given_up, mut over_budget) = (exact(cluster), 0, 0);
        for seed in seeds() {
            let night = bad(&exact, &mut SplitMix64::new(seed));
            let (world, outcome) = (&night.world, night.run(seed));
            assert!(outcome.gpus_max <= world.limits.gpus, "{cluster:?}, seed {seed}");
            assert!(outcome.stuck.is_empty(), "{cluster:?}, seed {seed}: stuck {:?}", outcome.stuck);
            assert!(world.limits.gpu_hours.is_some() || outcome.over_budget.is_empty());
            over_budget += outcome.over_budget.len();
            given_up += outcome.given_up.len();
            let again = night.run(seed);
            assert_eq!(again.servers, outcome.servers, "a seed gives one night");
        }
        println!(
            "{}x{}, {} nights: {given_up} models given up, {over_budget} left for the budget",
            cluster.0,
            cluster.1,
            seeds().count()
        );
    }
}
