//! Several coordinators, and coordinators that come and go.

use std::collections::BTreeSet;

use domain::control::{BenchmarkCommand, BenchmarkView, Control, ModelView, Pace, RunPhase};
use domain::exchange::{Receipt, WorkExchange};

use super::ground::*;
use super::worker::*;
use crate::tending::ROUNDS_PER_DISCOVERY;

/// Views without what differs from one coordinator to the other: the rate as each has seen it.
fn shown(view: BenchmarkView) -> BenchmarkView {
    let models = view.models.into_iter().map(|model| ModelView { pace: Pace::default(), ..model }).collect();
    BenchmarkView { rate: 0.0, tokens_per_second: 0.0, eta_s: None, models, ..view }
}

#[tokio::test]
async fn two_coordinators_share_a_run_and_show_the_same() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let run = one.submit(submission(30)).await.unwrap().run;
    two.tend().await.unwrap();
    let (mut worker, mut asked, mut turn) = (Worker::new("w"), Vec::new(), 0);
    loop {
        // Every word to another coordinator than the one before.
        let mut next = || {
            turn += 1;
            if turn % 2 == 0 { &one } else { &two }
        };
        worker.exchange(next(), 9).await;
        if worker.held.is_empty() {
            break;
        }
        for grant in std::mem::take(&mut worker.held) {
            for key in keys(&grant) {
                asked.push(key.clone());
                let receipts = next().deliver(vec![scored(&grant.lease, &key)]).await.unwrap();
                assert_eq!(receipts, [Receipt::Stored]);
            }
            worker.finished.push(grant.lease);
        }
    }
    assert_eq!(asked.len(), 120);
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), 120);
    for coordinator in [&one, &two] {
        // Half of the records came to the other one.
        let seen = coordinator.view(&run).await.unwrap();
        assert_eq!((seen.phase, seen.scored), (RunPhase::Active, 120));
    }
    one.tend().await.unwrap();
    two.tend().await.unwrap();
    let (first, second) = (one.view(&run).await.unwrap(), two.view(&run).await.unwrap());
    assert_eq!((first.phase, first.scored), (RunPhase::Finished, 120));
    assert_eq!(shown(first.clone()), shown(second));
    assert_eq!(first, recomputed(&one, &first).await);
    assert_eq!(winners(&two, &run).await.len(), 120);
}

#[tokio::test]
async fn what_one_is_told_the_other_does() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let run = one.submit(submission(4)).await.unwrap().run;
    two.tend().await.unwrap();
    two.command(&run, BenchmarkCommand::Pause).await.unwrap();
    let mut worker = Worker::new("w");
    assert!(worker.exchange(&one, 9).await.grants.is_empty(), "the queue hands out nothing");
    one.tend().await.unwrap();
    assert_eq!(one.view(&run).await.unwrap().phase, RunPhase::Paused);
    one.command(&run, BenchmarkCommand::Resume).await.unwrap();
    two.tend().await.unwrap();
    assert_eq!(two.view(&run).await.unwrap().phase, RunPhase::Active);
    assert!(!worker.exchange(&two, 9).await.grants.is_empty());
}

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

    // Two at once find it gone.
    let (one, two) = ground.two_users();
    let (first, second) = tokio::join!(one.tend(), two.tend());
    first.and(second).unwrap();
    // If both built it, one of the two queues has given way, and who built that one fills the other in its next round.
    one.tend().await.unwrap();
    let view = one.view(&run).await.unwrap();
    assert!(view.generation > generation);
    assert_eq!((view.scored, view.phase), (answered.len() as u64, RunPhase::Active));
    let units = ground.queue.run(&run).await.unwrap().unwrap().next_unit.0;
    let planned = one.parts().loaded.known(&run).await.unwrap().plan.units(|_, _, _| false).len();
    assert_eq!(units, planned as u64, "every unit once");

    // Leases of before are stale; what was answered under them is taken all the same.
    let grant = worker.held[0].clone();
    let late = scored(&grant.lease, &keys(&grant)[1]);
    let held = worker.held.len();
    assert_eq!(worker.exchange(&two, 0).await.lost.len(), held);
    assert_eq!(two.deliver(vec![late.clone()]).await.unwrap(), [Receipt::Stored]);
    let answered: Vec<_> = answered.into_iter().chain([late.key]).collect();
    finish(&one, &mut worker, &answered, 80).await;
    two.tend().await.unwrap();
    let (first, second) = (one.view(&run).await.unwrap(), two.view(&run).await.unwrap());
    assert_eq!((first.phase, first.scored), (RunPhase::Finished, 80));
    assert_eq!(shown(first), shown(second));
    assert_eq!(winners(&one, &run).await.len(), 80);
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

#[tokio::test]
async fn a_run_that_went_on_elsewhere_to_another_end_is_listed_with_what_it_got_there() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let run = one.submit(submission(1)).await.unwrap().run;
    two.tend().await.unwrap();
    one.command(&run, BenchmarkCommand::Cancel).await.unwrap();
    one.tend().await.unwrap();
    two.command(&run, BenchmarkCommand::Resume).await.unwrap();
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    worker.work_off(&two, &mut asked).await;
    two.tend().await.unwrap();
    assert_eq!(two.view(&run).await.unwrap().phase, RunPhase::Finished);
    for _ in 0..=ROUNDS_PER_DISCOVERY {
        one.tend().await.unwrap();
    }
    let listed = one.list().await.unwrap();
    let seen: Vec<_> = listed.iter().map(|view| (view.phase, view.scored)).collect();
    assert_eq!(seen, [(RunPhase::Finished, 4)]);
}
