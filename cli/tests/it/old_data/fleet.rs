//! Record folders of fleets that earlier versions left: with the queue that they had, and without.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use domain::control::{BenchmarkView, RunPhase};

use super::{
    EXACT, JUDGED, LEASE, NAME_OF_WORKER, QUEUE, archives, assert_exported, assert_kept, entries, opened,
};
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Data, RedisServer, Running, free_port};

/// How long a queue may take to be filled.
const PATIENCE: Duration = Duration::from_secs(60);

/// Simulated models of a configuration in an archive; their address.
fn simulated(data: &Data, configuration: &str) -> (Running, String) {
    let place = format!("127.0.0.1:{}", free_port());
    let file = data.path().join(configuration);
    let process = data.start(&["simulate", "--benchmark", file.to_str().unwrap(), "--listen", &place]);
    (process, format!("http://{place}"))
}

/// Tells a server what another one was told, in its own protocol.
fn tell(redis: &RedisServer, commands: &[u8]) {
    const LAST: &[u8] = b"*1\r\n$4\r\nPING\r\n";
    const REPLY: &[u8] = b"+PONG\r\n";
    let mut to = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    let mut from = to.try_clone().unwrap();
    let commands = [commands, LAST].concat();
    // Beside reading, because a server stops to read when nobody takes its replies.
    let telling = std::thread::spawn(move || to.write_all(&commands).unwrap());
    let (mut replies, mut part) = (Vec::new(), [0; 1 << 16]);
    while !replies.ends_with(REPLY) {
        let length = from.read(&mut part).unwrap();
        assert!(length > 0, "the server left");
        replies.extend_from_slice(&part[..length]);
    }
    telling.join().unwrap();
    let replies = String::from_utf8_lossy(&replies).into_owned();
    let refused: Vec<&str> = replies.lines().filter(|line| line.starts_with('-')).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

/// A benchmark that may still be put into its queue.
fn active(cluster: &Cluster, coordinator: &Coordinator, name: &str) -> BenchmarkView {
    let (mut view, begun) = (cluster.status(coordinator, name), Instant::now());
    while view.phase == RunPhase::Preparing {
        assert!(begun.elapsed() < PATIENCE, "{view:?}");
        view = cluster.status(coordinator, name);
    }
    view
}

fn goes_on(with_its_queue: bool) {
    for archive in archives("fleet") {
        let Some(cluster) = Cluster::with_lease(LEASE) else { return };
        let data = &cluster.data;
        let left = opened(&archive, data);
        let (name, [planned, scored, failed]) = left.exact();
        let before = entries(data);
        let generation = before[name].iter().map(|entry| entry.record.attempt.generation).max().unwrap();
        if with_its_queue {
            tell(&cluster.redis, &std::fs::read(data.path().join(QUEUE)).unwrap());
        }
        let coordinator = cluster.coordinator();
        let view = active(&cluster, &coordinator, name);
        assert_eq!(
            (view.phase, view.planned, view.scored, view.failed),
            (RunPhase::Active, planned, scored, failed)
        );
        let suspects = view.models.iter().map(|model| model.units_suspect).sum::<u64>();
        if with_its_queue {
            assert!(view.generation == generation && suspects > 0, "not the queue that there was: {view:?}");
        } else {
            assert!(view.generation > generation && suspects == 0, "not a queue made anew: {view:?}");
        }
        let judged = active(&cluster, &coordinator, left.judged());
        assert!(judged.phase == RunPhase::Active && judged.planned > 0, "{judged:?}");

        let (simulators, addresses): (Vec<_>, Vec<_>) =
            [EXACT, JUDGED].map(|configuration| simulated(data, configuration)).into_iter().unzip();
        let more = ["--endpoint", &addresses[1], "--concurrency", "8"];
        let _worker = cluster.worker_with(NAME_OF_WORKER, coordinator.port, &addresses[0], &more);
        let finished = |name: &str| {
            let (view, finished) = cluster.watch(&coordinator, name);
            assert_eq!(view.phase, RunPhase::Finished, "{finished}");
            view
        };
        let counts = |view: &BenchmarkView| (view.planned, view.scored, view.failed);
        assert_eq!(counts(&finished(name)), (planned, planned - failed, failed));
        cluster.kgfleet(&coordinator, &["retry", name]).expect(0);
        assert_eq!(counts(&finished(name)), (planned, planned, 0));
        let judged = finished(left.judged());
        assert_eq!(counts(&judged), (judged.planned, judged.planned, 0));

        assert_kept(&before, data);
        let file = data.path().join("exported.jsonl");
        let arguments = ["export", name, "--format", "jsonl", "--out", file.to_str().unwrap()];
        cluster.kgfleet(&coordinator, &arguments).expect(0);
        assert_exported(&file, &before[name], planned);
        cluster.kgfleet(&coordinator, &["table", left.judged()]).expect(0);
        for run in data.runs() {
            data.kgfleet(&["verify", run.name(), "--history"]).expect(0);
        }
        drop(simulators);
    }
}

#[test]
fn what_a_fleet_of_an_earlier_version_had_begun_goes_on_with_its_queue() {
    goes_on(true);
}

#[test]
fn what_a_fleet_of_an_earlier_version_had_begun_goes_on_without_its_queue() {
    goes_on(false);
}
