//! Pools as the chart renders them: a wrong request, a missing part or another estimate shows as a night that takes longer, or as
//! one in which a pool is stuck.

use std::time::Duration;

use conductor::PoolTemplate;
use conductor::objects::CronJob;
use conductor::template::ESTIMATE;
use pool::bound::{PoolWork, bound};
use pool::{Limits, Mishaps, NightOutcome, Placing, World, WorldPool};
use serde_json::Value;

/// Dialogues of a model: 26 tasks, 50 times each.
const DIALOGUES: f64 = 1_300.0;

/// The pools that a value set renders, as its snapshot has them.
fn pools(snapshot: &str) -> Vec<PoolTemplate> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../helm/kgfleet/tests/snapshots");
    let text = std::fs::read_to_string(format!("{folder}/{snapshot}.yaml")).unwrap();
    let documents = text.split("\n---\n").filter(|document| document.contains(ESTIMATE));
    let read = |document: &str| {
        let value: Value = serde_saphyr::from_str(document).unwrap();
        let cron_job: CronJob = serde_json::from_value(value).unwrap();
        PoolTemplate::read(&cron_job).unwrap()
    };
    documents.map(read).collect()
}

/// A night with these pools on so many nodes, and the bound of it.
fn night(templates: &[PoolTemplate], nodes: u32, gpus_per_node: u32) -> (NightOutcome, Duration) {
    let exact = |template: &PoolTemplate| WorldPool::exact(template.pool.clone(), DIALOGUES);
    let pools: Vec<WorldPool> = templates.iter().map(exact).collect();
    let work: Vec<PoolWork<'_>> =
        pools.iter().map(|pool| PoolWork { pool: &pool.believed, dialogues: DIALOGUES }).collect();
    let bound = bound(&work, nodes, gpus_per_node);
    let world = World {
        nodes: vec![gpus_per_node; nodes as usize],
        placing: Placing::Spread,
        pools,
        limits: Limits::of_gpus(nodes * gpus_per_node),
        mishaps: Mishaps::default(),
    };
    (world.run(0), bound)
}

#[test]
fn servers_on_one_node_and_on_several_are_worked_off_on_three_nodes() {
    let templates = pools("jobs");
    let shapes: Vec<(&str, u32, u32)> = (templates.iter())
        .map(|template| (template.pool.name.as_str(), template.pool.parts, template.pool.gpus))
        .collect();
    assert_eq!(
        shapes,
        [
            ("deepseek-r1", 2, 8),
            ("llama-3-3-70b", 1, 4),
            ("qwen2-5-7b", 1, 1),
            ("phi-3-small", 1, 1),
            ("entails", 1, 1),
        ]
    );
    assert_eq!(templates[0].model, "deepseek-ai/DeepSeek-R1");
    assert!(templates[0].weights.is_some(), "it is fetched before it takes GPUs");
    let (outcome, bound) = night(&templates, 3, 8);
    assert!(outcome.stuck.is_empty() && outcome.given_up.is_empty(), "{outcome:?}");
    assert!(outcome.over_at < bound.mul_f64(1.15), "{:?}, at least {bound:?}", outcome.over_at);
}

#[test]
fn a_lab_with_two_gpus_puts_the_large_model_first_and_the_small_ones_side_by_side() {
    let templates = pools("lab");
    let (outcome, bound) = night(&templates, 1, 2);
    let started = |name: &str| {
        let server = outcome.servers.iter().find(|server| templates[server.pool].pool.name == name);
        server.unwrap().created_at
    };
    assert_eq!((outcome.servers.len(), started("qwen2-5-32b")), (3, Duration::ZERO));
    assert_eq!(started("qwen2-5-7b"), started("llama-3-1-8b"));
    assert!(started("qwen2-5-7b") > Duration::ZERO);
    assert!(outcome.over_at < bound.mul_f64(1.15), "{:?}, at least {bound:?}", outcome.over_at);
}
