use super::*;

mod mishaps;
mod seeds;

use self::mishaps::{Eviction, Pause, RoughWorld, SecondRun, Tenant};

const MINUTE: Duration = Duration::from_secs(60);

/// A pool that loads for ten minutes and works for so many.
fn pool(name: &str, parts: u32, gpus: u32, minutes: u32) -> WorldPool {
    let believed = Pool { name: name.to_owned(), parts, gpus, servers_max: 1, load: 10 * MINUTE, rate: 1.0 };
    WorldPool::exact(believed, f64::from(minutes * 60))
}

fn world(nodes: &[u32], pools: Vec<WorldPool>) -> RoughWorld {
    let limits = Limits::of_gpus(nodes.iter().sum());
    RoughWorld::of(World { nodes: nodes.to_vec(), pools, limits })
}

#[test]
fn servers_load_work_and_end_when_nothing_is_left() {
    let outcome = world(&[8], vec![pool("a", 1, 8, 20), pool("b", 1, 1, 10)]).run(1);
    let rows: Vec<_> =
        outcome.servers.iter().map(|row| (row.pool, row.created_at, row.ended_at, row.end)).collect();
    let first_ends = 30 * MINUTE + ENDS_AFTER;
    // The next look finds the GPUs free.
    let second = first_ends;
    let expected = [
        (0, Duration::ZERO, first_ends, ServerEnd::Done),
        (1, second, second + 20 * MINUTE + ENDS_AFTER, ServerEnd::Done),
    ];
    assert_eq!(rows, expected);
    assert_eq!((outcome.gpus_max, outcome.stuck, outcome.given_up), (8, vec![], vec![]));
    let spent = outcome.gpu_hours;
    let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6;
    assert!(near(spent.load, 9.0 * 10.0 / 60.0) && near(spent.work, (8.0 * 20.0 + 10.0) / 60.0), "{spent:?}");
    assert!(near(spent.idle, 9.0 * 10.0 / 3600.0) && spent.waiting == 0.0, "{spent:?}");
}

#[test]
fn two_servers_of_two_nodes_on_three_never_hold_half_of_what_they_need() {
    let outcome = world(&[8, 8, 8], vec![pool("a", 2, 8, 20), pool("b", 2, 8, 20)]).run(1);
    assert!(outcome.stuck.is_empty());
    assert_eq!(outcome.servers.len(), 2);
    assert_eq!(outcome.gpu_hours.waiting, 0.0);
}

#[test]
fn an_eviction_takes_what_was_loaded_and_of_several_nodes_the_whole_server() {
    let mut night = world(&[8, 8], vec![pool("single", 1, 8, 20)]);
    night.mishaps.evictions = vec![Eviction { at: 15 * MINUTE, node: 0 }];
    let outcome = night.run(1);
    let [row] = outcome.servers.as_slice() else { panic!("one server: {:?}", outcome.servers) };
    // Five minutes of work were done, and the model is loaded again.
    assert_eq!(row.ended_at, 40 * MINUTE + ENDS_AFTER);
    let mut night = world(&[8, 8], vec![pool("gang", 2, 8, 20)]);
    night.mishaps.evictions = vec![Eviction { at: 15 * MINUTE, node: 1 }];
    let ends: Vec<_> = night.run(1).servers.iter().map(|row| row.end).collect();
    assert_eq!(ends, [ServerEnd::Disrupted, ServerEnd::Done]);
}

#[test]
fn a_model_that_never_loads_is_given_up_and_the_others_go_on() {
    let mut night = world(&[8], vec![pool("a", 1, 1, 20), pool("b", 1, 1, 20)]);
    night.mishaps.failing_loads = 1.0;
    let outcome = night.run(1);
    assert_eq!((outcome.given_up, outcome.stuck), (vec![0, 1], vec![]));
    assert_eq!(outcome.servers.len(), 8, "a first try and three more of each");
}

#[test]
fn in_a_pause_servers_stay_as_long_as_they_load_and_come_again_afterwards() {
    let mut night = world(&[8], vec![pool("a", 1, 1, 60)]);
    night.mishaps.pauses = vec![Pause { from: 20 * MINUTE, until: 25 * MINUTE }];
    let outcome = night.run(1);
    let [row] = outcome.servers.as_slice() else { panic!("{:?}", outcome.servers) };
    assert_eq!(row.ended_at, 75 * MINUTE + ENDS_AFTER);
    night.mishaps.pauses = vec![Pause { from: 20 * MINUTE, until: 200 * MINUTE }];
    let outcome = night.run(1);
    let ends: Vec<_> = outcome.servers.iter().map(|row| row.ended_at).collect();
    assert_eq!(ends, [30 * MINUTE, 260 * MINUTE + ENDS_AFTER]);
}

#[test]
fn a_second_run_brings_servers_back() {
    let mut night = world(&[8], vec![pool("a", 1, 1, 20)]);
    night.mishaps.second_run = Some(SecondRun { at: 100 * MINUTE, share: 0.5 });
    let ends: Vec<_> = night.run(1).servers.iter().map(|row| row.ended_at).collect();
    assert_eq!(ends, [30 * MINUTE + ENDS_AFTER, 120 * MINUTE + ENDS_AFTER]);
}

#[test]
fn a_server_of_several_nodes_beside_tenants_gives_its_nodes_back_until_they_leave() {
    let mut night = world(&[8, 8], vec![pool("gang", 2, 8, 20), pool("small", 1, 1, 5)]);
    night.mishaps.tenants = vec![Tenant { node: 1, gpus: 4, from: Duration::ZERO, until: 50 * MINUTE }];
    let outcome = night.run(1);
    assert!(outcome.stuck.is_empty(), "{outcome:?}");
    assert!(outcome.servers.iter().any(|row| row.end == ServerEnd::NoNodes));
    assert!(outcome.over_at < 110 * MINUTE, "{:?}", outcome.over_at);
}
