//! Coordinators and queues that come and go.

use domain::control::{BenchmarkCommand, Control, RunPhase};
use domain::exchange::{Receipt, WorkExchange};

use super::ground::*;
use super::worker::*;

/// Answers about half of what there is, unit by unit, and keeps one unit half answered.
async fn work_half(worker: &mut Worker, coordinator: &Started) -> Vec<domain::DialogueKey> {
    let mut answered = Vec::new();
    for _ in 0..2 {
        worker.exchange(coordinator, 9).await;
        for grant in std::mem::take(&mut worker.held) {
            let records: Vec<_> = keys(&grant).iter().map(|key| scored(&grant.lease, key)).collect();
            answered.extend(records.iter().map(|record| record.key.clone()));
            coordinator.deliver(records).await.unwrap();
            worker.finished.push(grant.lease);
        }
    }
    worker.exchange(coordinator, 9).await;
    let grant = worker.held[0].clone();
    let half = scored(&grant.lease, &keys(&grant)[0]);
    answered.push(half.key.clone());
    coordinator.deliver(vec![half]).await.unwrap();
    answered
}

async fn finish(
    coordinator: &Started,
    worker: &mut Worker,
    answered: &[domain::DialogueKey],
    planned: usize,
) {
    let mut asked = Vec::new();
    worker.work_off(coordinator, &mut asked).await;
    assert!(asked.iter().all(|key| !answered.contains(key)), "nothing recorded is asked again");
    assert_eq!(asked.len() + answered.len(), planned);
    coordinator.tend().await.unwrap();
}

#[tokio::test]
async fn a_restarted_coordinator_goes_on_where_the_other_one_ended() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(20)).await.unwrap().run;
    let mut worker = Worker::new("w");
    let mut answered = work_half(&mut worker, &coordinator).await;
    drop(coordinator);

    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().scored, answered.len() as u64);
    // The worker goes on with what it holds.
    assert!(worker.exchange(&coordinator, 0).await.lost.is_empty());
    for grant in std::mem::take(&mut worker.held) {
        for key in keys(&grant).into_iter().filter(|key| !answered.contains(key)).collect::<Vec<_>>() {
            coordinator.deliver(vec![scored(&grant.lease, &key)]).await.unwrap();
            answered.push(key);
        }
        worker.finished.push(grant.lease);
    }
    finish(&coordinator, &mut worker, &answered, 80).await;
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 80));
    assert_eq!(view, recomputed(&coordinator, &view).await);
}

#[tokio::test]
async fn a_lost_queue_is_built_again_from_manifest_and_log() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(20)).await.unwrap().run;
    let mut worker = Worker::new("w");
    let answered = work_half(&mut worker, &coordinator).await;
    let generation = coordinator.view(&run).await.unwrap().generation;
    drop(coordinator);
    ground.lose_queue();

    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert!(view.generation > generation);
    assert_eq!((view.scored, view.phase), (answered.len() as u64, RunPhase::Active));
    let units = ground.queue.run(&run).await.unwrap().unwrap().next_unit.0;
    let planned = coordinator.parts().loaded.known(&run).await.unwrap().plan.units(|_, _, _| false).len();
    assert_eq!(units, planned as u64, "every unit once");

    // Leases of before are stale; what was answered under them is taken all the same.
    let grant = worker.held[0].clone();
    let late = scored(&grant.lease, &keys(&grant)[1]);
    let held = worker.held.len();
    assert_eq!(worker.exchange(&coordinator, 0).await.lost.len(), held);
    assert_eq!(coordinator.deliver(vec![late.clone()]).await.unwrap(), [Receipt::Stored]);
    let answered: Vec<_> = answered.into_iter().chain([late.key]).collect();
    finish(&coordinator, &mut worker, &answered, 80).await;
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 80));
    assert_eq!(view, recomputed(&coordinator, &view).await);
    assert_eq!(winners(&coordinator, &run).await.len(), 80);
}

#[tokio::test]
async fn a_queue_that_is_lost_under_way_is_built_again_by_whoever_notices() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(20)).await.unwrap().run;
    let mut worker = Worker::new("w");
    let answered = work_half(&mut worker, &coordinator).await;
    ground.clock.advance_ms(5_000);
    assert!(ground.queue.forget_run(&run).await.unwrap());
    // The next word of a worker is enough.
    let held = worker.held.len();
    assert_eq!(worker.exchange(&coordinator, 0).await.lost.len(), held);
    coordinator.tend().await.unwrap();
    finish(&coordinator, &mut worker, &answered, 80).await;
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
}

#[tokio::test]
async fn a_paused_run_stays_paused_when_its_queue_is_lost() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    coordinator.command(&run, BenchmarkCommand::Pause).await.unwrap();
    ground.lose_queue();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Paused);
    let mut worker = Worker::new("w");
    assert!(worker.exchange(&coordinator, 9).await.grants.is_empty());
    coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
    finish(&coordinator, &mut worker, &[], 16).await;
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
}

#[tokio::test]
async fn a_finished_run_is_not_built_again_unless_it_is_needed() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    ground.lose_queue();
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    assert!(ground.queue.run(&run).await.unwrap().is_none());
    let listed = coordinator.list().await.unwrap();
    assert_eq!((listed[0].phase, listed[0].scored), (RunPhase::Finished, 8));
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 8);
}
