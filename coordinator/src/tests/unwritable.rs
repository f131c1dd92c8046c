//! A Redis that can be read and takes no writes, because it is full.

use std::sync::Arc;

use domain::control::{BenchmarkCommand, Control, RunPhase};
use domain::exchange::WorkExchange;
use domain::{ErrorCode, RunId};
use harness::RedisServer;
use queue::testing::redis::Value;
use queue::{QueueStore, RedisOptions, RedisStore};

use super::ground::*;
use super::worker::*;

/// An hour, in milliseconds: longer than any lease of these tests.
const LONG_MS: u64 = 3_600_000;

/// Makes every lease of a run as old as if it had not been renewed for long.
fn age_leases(server: &RedisServer, run: &RunId) {
    for model in ["a", "b"] {
        let key = format!("kgf:{{{run}}}:work:{model}");
        let leases: Vec<(String, String, u64, u64)> = server.say(&format!("XPENDING {key} w - + 1000"));
        for (entry, worker, ..) in leases {
            server.say::<Value>(&format!("XCLAIM {key} w {worker} 0 {entry} IDLE {LONG_MS} JUSTID"));
        }
    }
}

#[tokio::test]
async fn a_full_redis_is_told_of_and_costs_no_lease() {
    let Some(server) = RedisServer::start() else { return };
    let queue: Arc<dyn QueueStore> = Arc::new(RedisStore::new(&RedisOptions::new(server.url())).unwrap());
    let ground = Ground { queue, ..Ground::new() };
    let coordinators = [ground.coordinator(), ground.coordinator()];
    let [coordinator, other] = &coordinators;
    let run = coordinator.submit(submission(6)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(coordinator, 5).await;
    assert!(worker.held.len() > 1);
    for coordinator in &coordinators {
        coordinator.tend().await.unwrap();
        coordinator.ready().unwrap();
    }

    server.say::<()>("CONFIG SET maxmemory 1");
    age_leases(&server, &run);
    let refused = coordinator.exchange(worker.report(0)).await.unwrap_err();
    assert!(refused.code == ErrorCode::Unavailable && refused.message.contains("maxmemory"), "{refused}");
    let record = scored(&worker.held[0].lease, &keys(&worker.held[0])[0]);
    assert_eq!(coordinator.deliver(vec![record]).await.unwrap_err().code, ErrorCode::Unavailable);
    for coordinator in &coordinators {
        coordinator.tend().await.unwrap_err();
        // What is read in between does not hide it, and blames nobody else.
        let view = coordinator.view(&run).await.unwrap();
        assert!(view.trouble.as_ref().is_some_and(|trouble| trouble.contains("maxmemory")), "{view:?}");
        assert!(view.models.iter().all(|model| model.blocked.is_none()), "{view:?}");
        assert_eq!(coordinator.workers().await.unwrap().len(), 1);
        let unready = coordinator.ready().unwrap_err();
        assert!(unready.message.contains("maxmemory"), "{unready}");
        assert_eq!(coordinator.parts().health.troubled_parts()[0], ("queue", true));
    }

    server.say::<()>("CONFIG SET maxmemory 0");
    for coordinator in &coordinators {
        coordinator.tend().await.unwrap();
        coordinator.ready().unwrap();
        assert_eq!(coordinator.parts().health.troubled_parts()[0], ("queue", false));
    }
    assert_eq!(worker.exchange(coordinator, 0).await.lost, []);
    for coordinator in [other, coordinator] {
        coordinator.tend().await.unwrap();
    }
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
    let queue: Arc<dyn QueueStore> = Arc::new(RedisStore::new(&RedisOptions::new(server.url())).unwrap());
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
        assert!(server.say::<Vec<String>>(&format!("KEYS *{run}*")).is_empty(), "its memory is free");
    }
    assert_eq!(coordinator.list().await.unwrap(), []);
}
