//! Workers that die, lie, repeat themselves and come too late.

use domain::control::{Control, RunPhase};
use domain::exchange::{Delivery, Receipt, WorkExchange};
use domain::{ErrorCode, FailureCause};

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
    quick.exchange(&coordinator, 1000).await;
    let taken: Vec<_> = slow.held.iter().flat_map(keys).collect();
    let grant = slow.held[0].clone();
    let late = scored(&grant.lease, &keys(&grant)[0]);
    assert!(quick.held.iter().flat_map(keys).any(|key| key == late.key), "it was handed to another one");
    assert_eq!(coordinator.deliver(vec![late.clone()]).await.unwrap(), [Receipt::Stored]);
    let held = slow.held.len();
    assert_eq!(slow.exchange(&coordinator, 0).await.lost.len(), held);
    assert!(!taken.is_empty());

    // The other worker answers it as well: two records, one of which counts.
    quick.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 80);
    coordinator.tend().await.unwrap();
    let view = coordinator.run(&run).await.unwrap();
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 80));
    let winners = winners(&coordinator, &run).await;
    let first: domain::Record = serde_json::from_str(&late.json).unwrap();
    assert_eq!(winners[&late.key], first, "the first one counts");
}

#[tokio::test]
async fn a_repeated_delivery_is_counted_once() {
    let ground = Ground::new();
    let (coordinator, other) = (ground.coordinator(), ground.coordinator());
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let record = scored(&grant.lease, &keys(&grant)[0]);
    for coordinator in [&coordinator, &coordinator, &other] {
        assert_eq!(coordinator.deliver(vec![record.clone()]).await.unwrap(), [Receipt::Stored]);
    }
    coordinator.tend().await.unwrap();
    let view = coordinator.run(&run).await.unwrap();
    assert_eq!((view.scored, view.failed), (1, 0));
    let folder = coordinator.core().storage.log_folder(&run).unwrap();
    let report = results::log::verify(&folder, None, None).unwrap();
    assert_eq!(report.entries, 2, "the same coordinator does not write it twice");
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
    // Three workers die with the first unit in hand; the rest of the run goes on.
    for death in 0..3 {
        let mut victim = Worker::new(&format!("victim-{death}"));
        victim.serves.truncate(1);
        victim.exchange(&coordinator, 1).await;
        assert!(victim.held.iter().any(|grant| grant.lease.unit == 0), "{:?}", victim.held);
        ground.expire_leases();
        coordinator.tend().await.unwrap();
    }
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    let view = coordinator.run(&run).await.unwrap();
    let poisoned = view.failed;
    assert!(poisoned > 0);
    assert_eq!(view.failures, [(FailureCause::Poisoned, poisoned)]);
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 16 - poisoned));
    let letters = coordinator.dead_letters(&run, None).await.unwrap();
    let strikes = &letters[0].strikes;
    assert_eq!(
        strikes.iter().map(|strike| strike.worker.as_str()).collect::<Vec<_>>(),
        ["victim-0", "victim-1", "victim-2"]
    );
    let dialogues: usize = letters.iter().map(|letter| letter.dialogues.len()).sum();
    assert_eq!(dialogues as u64, poisoned);
    assert_eq!(coordinator.dead_letters(&run, Some(letters[0].unit)).await.unwrap(), letters[..1]);
    let none = coordinator.dead_letters(&run, Some(99)).await.unwrap_err();
    assert_eq!(none.code, ErrorCode::NotFound);
    // Looking after it again writes nothing more.
    coordinator.tend().await.unwrap();

    assert_eq!(coordinator.requeue(&run, &[]).await.unwrap(), letters.len() as u64);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.run(&run).await.unwrap().phase, RunPhase::Active);
    asked.clear();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len() as u64, poisoned, "only what has no scores is asked again");
    coordinator.tend().await.unwrap();
    let view = coordinator.run(&run).await.unwrap();
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
    let at = coordinator.core().known(&run).await.unwrap().at().unwrap();
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
    assert_eq!(coordinator.run(&run).await.unwrap().phase, RunPhase::Finished);
}
