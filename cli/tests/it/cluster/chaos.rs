//! Faults of every kind, one after the other, at the default settings: the run ends by itself with every dialogue scored.
//!
//! What happens next depends on a seed and on how far the run is, not on time: each fault waits until some dialogues were
//! recorded since the last one. `KGFLEET_CHAOS_FAULTS` sets the number of faults, `KGFLEET_CHAOS_SEED` the seed.

use std::time::Duration;

use domain::control::RunPhase;
use queue::testing::{free_port, wait_until};
use rustix::process::Signal;

use super::winners;
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, NT_TASK, Running, Server, TURTLE_TASK};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];
const WORKERS: [&str; 3] = ["one", "two", "three"];

/// Faults of a short run.
const FAULTS: u64 = 14;

/// Dialogues recorded between two faults.
const PROGRESS: u64 = 20;

/// Longer than a lease of the cluster.
const STOPPED_FOR: Duration = Duration::from_millis(3_000);

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The next of a sequence of numbers that look random (SplitMix64).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn killed(process: Running) {
    process.signal(Signal::KILL);
    process.finish();
}

/// Not running for longer than a lease.
fn stopped(process: &Running) {
    process.signal(Signal::STOP);
    std::thread::sleep(STOPPED_FOR);
    process.signal(Signal::CONT);
}

#[test]
fn every_dialogue_is_scored_whatever_dies() {
    let Some(mut cluster) = Cluster::start() else { return };
    let (faults, mut random) = (setting("KGFLEET_CHAOS_FAULTS", FAULTS), setting("KGFLEET_CHAOS_SEED", 1));
    let dialogues = (faults + 4) * PROGRESS;
    let server = Server::start();
    let coordinator = |cluster: &Cluster, port: u16| {
        let Coordinator { process, port } = cluster.coordinator_at(port);
        Coordinator { process: process.unheard(), port }
    };
    let mut coordinators: Vec<Coordinator> = (0..2).map(|_| coordinator(&cluster, free_port())).collect();
    let iterations = u32::try_from(dialogues / 2).unwrap();
    let run = cluster.submit(&coordinators[0], &TASKS, iterations);
    // Both coordinators are asked, each by some.
    let start = |cluster: &Cluster, coordinators: &[Coordinator], at: usize| {
        let port = coordinators[at % coordinators.len()].port;
        cluster.worker_with(WORKERS[at], port, &server.url(), &["--concurrency", "4"]).unheard()
    };
    let mut workers: Vec<Running> = (0..WORKERS.len()).map(|at| start(&cluster, &coordinators, at)).collect();
    let mut told = Vec::new();
    for fault in 1..=faults {
        // The log itself says how far the run is, whoever is down.
        wait_until("the run goes on", || cluster.data.run().entries().len() as u64 >= fault * PROGRESS / 2);
        let pick = draw(&mut random) as usize;
        let kind = draw(&mut random) % 8;
        told.push(kind);
        match kind {
            0..=2 => {
                let at = pick % workers.len();
                killed(workers.remove(at));
                workers.insert(at, start(&cluster, &coordinators, at));
            }
            3 => {
                // All at once, as a pool that is taken back.
                workers.drain(..).for_each(killed);
                workers = (0..WORKERS.len()).map(|at| start(&cluster, &coordinators, at)).collect();
            }
            4 => {
                let at = pick % coordinators.len();
                let Coordinator { process, port } = coordinators.remove(at);
                killed(process);
                coordinators.insert(at, coordinator(&cluster, port));
            }
            5 => cluster.redis.say::<()>("FLUSHALL"),
            6 => stopped(&workers[pick % workers.len()]),
            _ => {
                cluster.redis.kill();
                cluster.redis.restart();
            }
        }
    }
    let (view, finished) = cluster.watch(&coordinators[0], &run);
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, dialogues, 0), "{told:?}");
    finished.expect(0);
    let dead = cluster.kgfleet(&coordinators[0], &["dlq", "ls", &run, "--json"]).expect(0);
    assert_eq!(dead.stdout, "", "{told:?}");
    winners(&cluster, usize::try_from(dialogues).unwrap());
}
