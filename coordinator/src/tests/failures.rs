//! Workers that die, lie, repeat themselves and come too late.

use std::time::Duration;

use domain::control::{Control, RunPhase};
use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{ErrorCode, FailureCause};

use super::ground::*;
use super::worker::*;

#[tokio::test]
async fn a_record_of_a_lost_lease_is_taken_and_its_dialogue_not_asked_again() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(20)).await.unwrap().run;
    let (mut slow, mut quick, mut asked) = (Worker::new("slow"), Worker::new("quick"), Vec::new());
    slow.exchange(&coordinator, 5).await;
    ground.expire_leases();
    coordinator.tend().await.unwrap();
    let taken: Vec<_> = slow.held.iter().flat_map(keys).collect();
    let grant = slow.held[0].clone();
    let late = scored(&grant.lease, &keys(&grant)[0]);
    // It is handed to another one.
    loop {
        quick.exchange(&coordinator, 1000).await;
        assert!(!quick.held.is_empty());
        if quick.held.iter().flat_map(keys).any(|key| key == late.key) {
            break;
        }
        for grant in std::mem::take(&mut quick.held) {
            let records = keys(&grant).iter().map(|key| scored(&grant.lease, key)).collect::<Vec<_>>();
            asked.extend(keys(&grant));
            coordinator.deliver(records).await.unwrap();
            quick.finished.push(grant.lease);
        }
    }
    assert_eq!(coordinator.deliver(vec![late.clone()]).await.unwrap(), [Receipt::Stored]);
    let held = slow.held.len();
    assert_eq!(slow.exchange(&coordinator, 0).await.lost.len(), held);
    assert!(!taken.is_empty());

    // The other worker answers it as well: two records, one of which counts.
    quick.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 80);
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 80));
    let winners = winners(&coordinator, &run).await;
    let first: domain::Record = serde_json::from_str(&late.json).unwrap();
    assert_eq!(winners[&late.key], first, "the first one counts");
}

#[tokio::test]
async fn a_repeated_delivery_is_counted_once() {
    let ground = Ground::new();
    let (coordinator, other) = ground.two_users();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let record = scored(&grant.lease, &keys(&grant)[0]);
    for coordinator in [&coordinator, &coordinator, &other] {
        assert_eq!(coordinator.deliver(vec![record.clone()]).await.unwrap(), [Receipt::Stored]);
    }
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.scored, view.failed), (1, 0));
    let folder = coordinator.parts().store.sink.run_dir(&run).unwrap().log();
    let report = results::log::verify(&folder, None, None).unwrap();
    assert_eq!(report.records, 1, "it is not written twice");
    assert_eq!(winners(&coordinator, &run).await.len(), 1);
}

#[tokio::test]
async fn what_is_no_record_of_the_run_is_refused_and_the_rest_stored() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    coordinator.submit(submission(2)).await.unwrap();
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let good = scored(&grant.lease, &keys(&grant)[0]);
    let with = |change: fn(&mut Delivery)| {
        let mut delivery = good.clone();
        change(&mut delivery);
        delivery
    };
    let deliveries = vec![
        with(|delivery| delivery.json = delivery.json.replace("\"iteration\":", "\"iteration\":9").into()),
        with(|delivery| {
            delivery.key.iteration += 900;
            let unplanned = format!("\"iteration\":{}", delivery.key.iteration);
            let planned = format!("\"iteration\":{}", delivery.key.iteration - 900);
            delivery.json = delivery.json.replace(&planned, &unplanned).into();
        }),
        with(|delivery| delivery.json = "{".into()),
        with(|delivery| delivery.json = format!("{}\n", delivery.json).into()),
        with(|delivery| delivery.failure = Some(FailureCause::Timeout)),
        good.clone(),
    ];
    let receipts = coordinator.deliver(deliveries).await.unwrap();
    let reasons = ["was delivered as", "not planned", "", "", "ends otherwise"];
    for (receipt, expected) in receipts.iter().zip(reasons) {
        let Receipt::Refused { reason } = receipt else { panic!("{expected}: {receipt:?}") };
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
    assert_eq!(receipts[5], Receipt::Stored);
    let too_many = vec![good; 1_001];
    assert_eq!(coordinator.deliver(too_many).await.unwrap_err().code, ErrorCode::Invalid);
}

#[tokio::test]
async fn a_unit_that_kills_its_workers_is_set_aside_and_may_get_another_chance() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    // Whoever holds the first unit dies: two workers with all units of its model in hand, then three with it alone. The
    // others of the model are suspects after the second death, and cleared.
    let (mut deaths, mut life) = (Vec::new(), 0);
    while deaths.len() < 5 {
        life += 1;
        let mut victim = Worker::new(&format!("victim-{life}"));
        victim.serves.truncate(1);
        victim.exchange(&coordinator, 1000).await;
        if victim.held.iter().any(|grant| grant.lease.unit == 0) {
            assert!(deaths.len() < 2 || victim.held.len() == 1, "{:?}", victim.held);
            deaths.push(victim.id.to_string());
            ground.expire_leases();
            coordinator.tend().await.unwrap();
            let suspects = coordinator.dead_letters(&run, None).await.unwrap();
            if deaths.len() == 1 {
                assert_eq!(suspects, [], "one death says nothing");
            } else if deaths.len() == 2 {
                assert!(suspects.len() > 1 && suspects.iter().all(|suspect| suspect.suspect));
                let view = coordinator.view(&run).await.unwrap();
                assert_eq!(view.models[0].units_suspect, suspects.len() as u64);
            }
        } else {
            assert_eq!(victim.held.len(), 1, "suspects run alone");
            let grant = victim.held.remove(0);
            let records = keys(&grant).iter().map(|key| scored(&grant.lease, key)).collect();
            coordinator.deliver(records).await.unwrap();
            victim.finished.push(grant.lease);
            victim.exchange(&coordinator, 0).await;
        }
    }
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    let poisoned = view.failed;
    assert!(poisoned > 0);
    assert_eq!(view.failures, [(FailureCause::Poisoned, poisoned)]);
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 16 - poisoned));
    let letters = coordinator.dead_letters(&run, None).await.unwrap();
    let strikes = &letters[0].strikes;
    assert!(letters.len() == 1 && !letters[0].suspect, "{letters:?}");
    assert_eq!(strikes.iter().map(|strike| strike.worker.to_string()).collect::<Vec<_>>(), deaths);
    let dialogues: usize = letters.iter().map(|letter| letter.dialogues.len()).sum();
    assert_eq!(dialogues as u64, poisoned);
    assert_eq!(coordinator.dead_letters(&run, Some(letters[0].unit)).await.unwrap(), letters[..1]);
    let none = coordinator.dead_letters(&run, Some(99)).await.unwrap_err();
    assert_eq!(none.code, ErrorCode::NotFound);
    // Looking after it again writes nothing more.
    coordinator.tend().await.unwrap();

    assert_eq!(coordinator.requeue(&run, &[]).await.unwrap(), letters.len() as u64);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Active);
    asked.clear();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len() as u64, poisoned, "only what has no scores is asked again");
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 16, 0));
    assert_eq!(view, recomputed(&coordinator, &view).await);
    assert_eq!(coordinator.requeue(&run, &[]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_a_worker_was_granted_and_did_not_hear_of_comes_again() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    coordinator.submit(submission(20)).await.unwrap();
    let mut worker = Worker::new("w");
    let lost = coordinator.exchange(worker.report(5)).await.unwrap();
    let again = worker.exchange(&coordinator, 0).await;
    assert_eq!(again.grants, lost.grants);
    assert!(worker.exchange(&coordinator, 0).await.grants.is_empty(), "now it says that it holds them");

    // What is called finished without its records is given back, not lost.
    let grant = worker.held.remove(0);
    worker.finished.push(grant.lease.clone());
    worker.exchange(&coordinator, 0).await;
    let mut other = Worker::new("other");
    other.exchange(&coordinator, 1000).await;
    let found = other.held.iter().find(|held| held.lease.unit == grant.lease.unit).unwrap();
    assert_eq!((found.lease.attempt, &found.iterations), (2, &grant.iterations));
}

#[tokio::test]
async fn dialogues_without_record_and_unit_are_queued_again() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held.remove(0);
    // Somebody ends the unit in the queue, although its dialogues have no records.
    let at = coordinator.parts().loaded.known(&run).await.unwrap().at().unwrap();
    let fence = queue::Fence {
        generation: grant.lease.generation,
        model: grant.lease.model.clone(),
        unit: queue::UnitId(grant.lease.unit),
        attempt: grant.lease.attempt,
    };
    ground.queue.finish(&at, &[fence]).await.unwrap();
    let mut asked = Vec::new();
    worker.work_off(&coordinator, &mut asked).await;
    assert!(asked.len() < 16);
    coordinator.tend().await.unwrap();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 16);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
}

/// A run of which every dialogue failed.
async fn all_failed(coordinator: &Started, worker: &mut Worker) -> domain::RunId {
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    worker.exchange(coordinator, 1000).await;
    fail_held(coordinator, worker).await;
    worker.exchange(coordinator, 0).await;
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().failed, 16);
    run
}

async fn fail_held(coordinator: &Started, worker: &mut Worker) {
    for grant in std::mem::take(&mut worker.held) {
        let records =
            keys(&grant).iter().map(|key| failed(&grant.lease, key, FailureCause::Timeout)).collect();
        coordinator.deliver(records).await.unwrap();
        worker.finished.push(grant.lease);
    }
}

#[tokio::test]
async fn a_pending_retry_survives_the_loss_of_the_queue() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    let mut worker = Worker::new("w");
    let run = all_failed(&coordinator, &mut worker).await;
    assert_eq!(coordinator.retry(&run, &[]).await.unwrap(), 16);
    // One unit of the retry is answered, in vain.
    worker.exchange(&coordinator, 1).await;
    let again: usize = worker.held.iter().map(|grant| grant.iterations.len()).sum();
    fail_held(&coordinator, &mut worker).await;
    worker.exchange(&coordinator, 0).await;
    drop(coordinator);
    ground.lose_queue();

    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Active);
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 16 - again, "what was answered since is not asked again");
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!(
        (view.phase, view.scored, view.failed),
        (RunPhase::Finished, asked.len() as u64, again as u64)
    );
    // What failed again may be asked once more.
    assert_eq!(coordinator.retry(&run, &[]).await.unwrap(), again as u64);
    asked.clear();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), again);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 16);
}

#[tokio::test]
async fn a_retry_that_is_asked_twice_is_done_once() {
    let ground = Ground::new();
    let (coordinator, other) = ground.two_users();
    let mut worker = Worker::new("w");
    let run = all_failed(&coordinator, &mut worker).await;
    assert_eq!(coordinator.retry(&run, &[]).await.unwrap(), 16);
    assert_eq!(coordinator.retry(&run, &[]).await.unwrap(), 0);
    other.tend().await.unwrap();
    assert_eq!(other.retry(&run, &[FailureCause::Timeout]).await.unwrap(), 0);
    let mut asked = Vec::new();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 16);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
}

#[tokio::test]
async fn workers_that_die_again_and_again_poison_nothing() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(300)).await.unwrap().run;
    // Ten times a worker dies with much in hand, and is started again or replaced.
    for life in 0..10 {
        let mut victim = Worker::new("victim");
        victim.exchange(&coordinator, 15).await;
        assert!(victim.held.len() > 1);
        if life % 2 == 0 {
            ground.expire_leases();
            coordinator.tend().await.unwrap();
        } else {
            coordinator.register(registration("victim", "", &[])).await.unwrap();
        }
    }
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 1200, 0));
}

#[tokio::test]
async fn a_worker_is_kept_free_for_suspects_that_another_run_keeps_waiting() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let impatient =
        ground.coordinator_with(crate::CoordinatorOptions { suspect_wait: Duration::ZERO, ..config() });
    let busy = coordinator.submit(submission(200)).await.unwrap().run;
    let mut small = submission(1);
    small.configuration["name"] = "small".into();
    let run = coordinator.submit(small).await.unwrap().run;
    // All of the small run is suspect: its worker got it while the other one was paused, and died twice.
    coordinator.command(&busy, domain::control::BenchmarkCommand::Pause).await.unwrap();
    for _ in 0..2 {
        Worker::new("victim").exchange(&coordinator, 1000).await;
        coordinator.register(registration("victim", "", &[])).await.unwrap();
    }
    coordinator.command(&busy, domain::control::BenchmarkCommand::Resume).await.unwrap();

    let (mut one, mut two) = (Worker::new("one"), Worker::new("two"));
    for worker in [&mut one, &mut two] {
        worker.exchange(&coordinator, 1).await;
        assert!(worker.held.iter().all(|grant| grant.lease.run == busy));
    }
    // Once they have waited too long the one gets nothing more until it holds nothing; the other goes on.
    impatient.tend().await.unwrap();
    let coordinator = impatient;
    let held = one.held.len();
    one.exchange(&coordinator, 1000).await;
    assert_eq!(one.held.len(), held);
    let before = two.held.len();
    two.exchange(&coordinator, 5).await;
    assert!(two.held.len() > before);
    one.released = std::mem::take(&mut one.held).into_iter().map(|grant| grant.lease).collect();
    one.exchange(&coordinator, 1000).await;
    assert_eq!(one.held.len(), 1, "one suspect alone");
    assert_eq!(one.held[0].lease.run, run);
    one.exchange(&coordinator, 1000).await;
    assert_eq!(one.held.len(), 1, "and nothing beside it");
}
