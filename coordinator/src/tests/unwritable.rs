//! A Redis that can be read and takes no writes, because it is full.

use std::sync::Arc;
use std::time::Duration;

use domain::ErrorCode;
use domain::control::{BenchmarkCommand, Control, RunPhase};
use domain::exchange::{Receipt, WorkExchange};
use harness::RedisServer;
use queue::testing::Bench;

use super::ground::*;
use super::worker::*;

/// Longer than any lease of these tests.
const LONG: Duration = Duration::from_secs(3_600);

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.expect(what);
}

#[tokio::test]
async fn a_full_redis_is_told_of_and_costs_no_lease() {
    let Some(server) = RedisServer::start() else { return };
    let bench = Bench::kept_in(&server.url(), "one", Box::new(()));
    let ground = Ground { queue: Arc::clone(&bench.store), ..Ground::new() };
    let coordinator = &ground.coordinator();
    let run = coordinator.submit(submission(6)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(coordinator, 5).await;
    assert!(worker.held.len() > 1);
    coordinator.tend().await.unwrap();
    coordinator.ready().unwrap();

    server.say::<()>("CONFIG SET maxmemory 1");
    // The next round finds out.
    bench.store.now_ms().await.unwrap_err();
    bench.time.advance(LONG).await;
    let refused = coordinator.exchange(worker.report(0)).await.unwrap_err();
    assert!(refused.code == ErrorCode::Unavailable && refused.message.contains("maxmemory"), "{refused}");
    let record = scored(&worker.held[0].lease, &keys(&worker.held[0])[0]);
    assert_eq!(coordinator.deliver(vec![record]).await.unwrap(), [Receipt::Stored], "it needs no queue");
    coordinator.tend().await.unwrap_err();
    // What is read in between does not hide it, and blames nobody else.
    let view = coordinator.view(&run).await.unwrap();
    assert!(view.trouble.as_ref().is_some_and(|trouble| trouble.contains("maxmemory")), "{view:?}");
    assert!(view.models.iter().all(|model| model.blocked.is_none()), "{view:?}");
    assert_eq!(coordinator.workers().await.unwrap().len(), 1);
    let unready = coordinator.ready().unwrap_err();
    assert!(unready.message.contains("maxmemory"), "{unready}");
    assert_eq!(coordinator.parts().health.troubled_parts()[0], ("queue", true));

    server.say::<()>("CONFIG SET maxmemory 0");
    until("it takes rounds", async || bench.store.now_ms().await.is_ok()).await;
    coordinator.tend().await.unwrap();
    coordinator.ready().unwrap();
    assert_eq!(coordinator.parts().health.troubled_parts()[0], ("queue", false));
    assert_eq!(worker.exchange(coordinator, 0).await.lost, []);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.dead_letters(&run, None).await.unwrap(), []);
    let mut asked = Vec::new();
    worker.work_off(coordinator, &mut asked).await;
    assert_eq!(asked.len(), 24, "nothing is asked twice");
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.trouble), (RunPhase::Finished, 24, None));
}

/// As the message of a full Redis advises.
#[tokio::test]
async fn a_run_that_is_over_is_removed_also_where_redis_is_full() {
    let Some(server) = RedisServer::start() else { return };
    let queue = Bench::kept_in(&server.url(), "one", Box::new(())).store;
    let ground = Ground { queue, ..Ground::new() };
    let coordinator = ground.coordinator();
    let over = coordinator.submit(submission(1)).await.unwrap().run;
    Worker::new("w").work_off(&coordinator, &mut Vec::new()).await;
    coordinator.tend().await.unwrap();
    let mut other = submission(2);
    other.configuration["name"] = "another".into();
    let cancelled = coordinator.submit(other).await.unwrap().run;
    coordinator.command(&cancelled, BenchmarkCommand::Cancel).await.unwrap();
    coordinator.tend().await.unwrap();
    server.say::<()>("CONFIG SET maxmemory 1");
    coordinator.tend().await.unwrap_err();
    for run in [over, cancelled] {
        coordinator.remove(&run, false).await.unwrap();
        let its_keys = || server.say::<Vec<String>>(&format!("KEYS *{run}*"));
        until("its memory is free", async || its_keys().is_empty()).await;
    }
    assert_eq!(coordinator.list().await.unwrap(), []);
}
