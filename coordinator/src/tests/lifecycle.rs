//! One coordinator from submission to the last record.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::control::{BenchmarkCommand, Control, RunPhase, Submission};
use domain::exchange::{NotAsked, Parking, RateBudget, Receipt, Serves, WorkExchange};
use domain::{Connector, ErrorCode, FailureCause, RunId};
use futures::StreamExt;
use serde_json::json;

use super::ground::*;
use super::worker::*;
use crate::{CoordinatorOptions, Scope};

#[tokio::test]
async fn a_run_ends_with_exactly_one_record_for_every_dialogue() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let view = coordinator.submit(submission(12)).await.unwrap();
    assert_eq!((view.phase, view.planned, view.scored), (RunPhase::Active, 48, 0));
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&view.run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 48, 0));
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "nothing was asked twice");
    let winners = winners(&coordinator, &view.run).await;
    assert_eq!(winners.len(), 48);
    assert_eq!(view, recomputed(&coordinator, &view).await);
    let units: u64 = view.models.iter().map(|model| model.units_pending + model.units_leased).sum();
    assert_eq!(units, 0);
    // The same configuration again is another run, now that this one is over.
    assert_ne!(coordinator.submit(submission(12)).await.unwrap().run, view.run);
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_with_what_could_be() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let refused = |configuration| {
        let coordinator = &coordinator;
        async move {
            let error = coordinator.submit(Submission { configuration, pack: None }).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Invalid, "{error}");
            error.message
        }
    };
    let with = |field: &str, value: serde_json::Value| {
        let mut configuration = submission(2).configuration;
        configuration[field] = value;
        configuration
    };
    assert!(
        refused(with("tasks", json!(["rdffriendcount-turtle"]))).await.contains("RdfFriendCount-turtle-1")
    );
    assert!(
        refused(with("models", json!([{"label": "x", "connector": "psychic"}]))).await.contains("anthropic")
    );
    assert!(refused(with("iterations", json!(0))).await.contains("between 1 and"));
    assert!(refused(with("pack", json!("/nowhere/x.kgpack"))).await.contains("send it"));
    let replay = json!([{"label": "x", "connector": "replay", "recorded": ["a.json"]}]);
    assert!(refused(with("models", replay)).await.contains("kgfleet run"));
    let many: Vec<_> = (0..30).map(|n| json!({"label": format!("m{n}"), "connector": "simulated"})).collect();
    let mut large = with("models", json!(many));
    large["iterations"] = json!(100_000);
    assert!(refused(large).await.contains("split"));
    assert!(coordinator.list().await.unwrap().is_empty());

    // Within one process somebody must say where a model is served.
    let local = ground.coordinator_with(CoordinatorOptions { scope: Scope::Local, ..config() });
    let error = local.submit(submission(2)).await.unwrap_err();
    assert!(error.message.contains("server's URL"), "{error}");
}

#[tokio::test]
async fn a_paused_run_hands_out_nothing_and_a_cancelled_one_takes_everything_back() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(20)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 5).await;
    let held = worker.held.len();
    assert!(held > 0);

    assert_eq!(coordinator.command(&run, BenchmarkCommand::Pause).await.unwrap().phase, RunPhase::Paused);
    let orders = worker.exchange(&coordinator, 50).await;
    assert!(orders.grants.is_empty() && orders.lost.is_empty(), "what is in hand goes on");
    assert_eq!(coordinator.command(&run, BenchmarkCommand::Pause).await.unwrap().phase, RunPhase::Paused);
    assert_eq!(coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap().phase, RunPhase::Active);
    assert!(!worker.exchange(&coordinator, 5).await.grants.is_empty());

    let lease = worker.held[0].clone();
    let late = scored(&lease.lease, &keys(&lease)[0]);
    let held = worker.held.len();
    assert_eq!(coordinator.command(&run, BenchmarkCommand::Cancel).await.unwrap().phase, RunPhase::Cancelled);
    let orders = worker.exchange(&coordinator, 50).await;
    assert_eq!(orders.lost.len(), held, "nobody needs it any more");
    assert!(worker.held.is_empty());
    // What was answered all the same is kept.
    assert_eq!(coordinator.deliver(vec![late.clone()]).await.unwrap(), [Receipt::Stored]);
    let error = coordinator.command(&run, BenchmarkCommand::Pause).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);

    coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
    let mut asked = Vec::new();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 79);
    assert!(!asked.contains(&late.key));
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
    let last: Vec<_> = coordinator.watch(&run).collect().await;
    assert_eq!(last.len(), 1, "a run that is over is shown once");
}

#[tokio::test]
async fn failures_are_asked_again_only_when_somebody_says_so() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 100).await;
    for (at, grant) in std::mem::take(&mut worker.held).into_iter().enumerate() {
        let cause = if at % 2 == 0 { FailureCause::Timeout } else { FailureCause::Server };
        let records = keys(&grant).iter().map(|key| failed(&grant.lease, key, cause)).collect();
        coordinator.deliver(records).await.unwrap();
        worker.finished.push(grant.lease);
    }
    let mut asked = Vec::new();
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 0, 8));
    assert!(asked.is_empty());
    let timeouts = view.failures.iter().find(|(cause, _)| *cause == FailureCause::Timeout).unwrap().1;

    assert_eq!(coordinator.retry(&run, &[FailureCause::Aborted]).await.unwrap(), 0);
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished);
    assert_eq!(coordinator.retry(&run, &[FailureCause::Timeout]).await.unwrap(), timeouts);
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Active, "it waits for what is retried");
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len() as u64, timeouts);
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, timeouts, 8 - timeouts));
    assert_eq!(view, recomputed(&coordinator, &view).await);
}

#[tokio::test]
async fn a_parked_model_waits_while_others_go_on() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.parked.push(Parking {
        run: run.clone(),
        model: "a".into(),
        parked_for: Duration::from_secs(900),
        reason: "the quota is used up".into(),
    });
    let mut asked = Vec::new();
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 8);
    assert!(asked.iter().all(|key| key.model.as_str() == "b"));
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!(view.models[0].parked.as_deref(), Some("the quota is used up"));
    let blocked: Vec<(&str, usize)> =
        view.blocked().into_iter().map(|(why, models)| (why, models.len())).collect();
    assert_eq!(blocked, [("parked: the quota is used up", 1)]);
    assert_eq!((view.trouble.clone(), view.eta_s), (None, None), "nothing is promised of what is parked");
    ground.clock.advance_ms(900_001);
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 16);
}

#[tokio::test]
async fn what_one_worker_does_not_ask_is_left_to_the_others() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let other = coordinator.submit(submission(5)).await.unwrap().run;
    let mut full = Worker::new("full");
    full.status.not_asked = vec![NotAsked {
        run: run.clone(),
        model: "a".into(),
        reason: "its disk is full".into(),
        waits: false,
    }];
    let mut asked = Vec::new();
    full.work_off(&coordinator, &mut asked).await;
    let view = coordinator.view(&run).await.unwrap();
    let scored: Vec<u64> = view.models.iter().map(|model| model.scored + model.failed).collect();
    assert_eq!(scored, [0, 8], "what it does not ask is this model of this run");
    let view = coordinator.view(&other).await.unwrap();
    assert_eq!((view.done(), view.phase), (20, RunPhase::Active));
    Worker::new("other").work_off(&coordinator, &mut asked).await;
    assert_eq!(coordinator.view(&run).await.unwrap().done(), 16);
}

#[tokio::test]
async fn resuming_a_run_ends_its_parkings() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    for model in ["a", "b"] {
        let (run, model) = (run.clone(), model.into());
        let parked_for = Duration::from_secs(900);
        worker.parked.push(Parking { run, model, parked_for, reason: "quota".into() });
    }
    worker.work_off(&coordinator, &mut asked).await;
    assert!(asked.is_empty());
    let view = coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
    assert!(view.models.iter().all(|model| model.parked.is_none()), "{:?}", view.models);
    worker.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 16);
}

#[tokio::test]
async fn a_name_belongs_to_one_process_and_a_restart_takes_it_over() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    assert_eq!(coordinator.register(registration("w", "one", &[])).await.unwrap().taken, None);
    let mut one = Worker::new("w").instance("one");
    one.exchange(&coordinator, 1).await;
    let held = one.held.len();
    let refused = coordinator.register(registration("w", "two", &[])).await.unwrap().taken.unwrap();
    assert_eq!((refused.instance.as_str(), refused.host.as_str()), ("one", ""));
    let message = refused.to_string();
    assert!(
        message.contains("name in use by instance one") && message.contains("last heard 0 s"),
        "{message}"
    );
    // The refusal took nothing from the one that works.
    assert!(one.exchange(&coordinator, 0).await.lost.is_empty());
    // Its own restart takes over at once, and what it held is handed out again.
    assert_eq!(coordinator.register(registration("w", "three", &["one"])).await.unwrap().taken, None);
    let orders = coordinator.exchange(one.report(0)).await.unwrap();
    assert_eq!((orders.superseded.unwrap().instance.as_str(), orders.lost.len()), ("three", held));
    // Its records are taken, and its farewell frees nobody's name.
    let grant = one.held[0].clone();
    let late = scored(&grant.lease, &keys(&grant)[0]);
    assert_eq!(coordinator.deliver(vec![late]).await.unwrap(), [Receipt::Stored]);
    coordinator.deregister(&one.id, &one.instance, None).await.unwrap();
    assert_eq!(coordinator.workers().await.unwrap().len(), 1);
    let mut three = Worker::new("w").instance("three");
    let mut asked = Vec::new();
    three.work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 15);
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 16);
}

#[tokio::test]
async fn workers_get_what_they_can_ask_and_people_hear_of_the_rest() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(4)).await.unwrap().run;
    let mut stranger = Worker::new("stranger");
    stranger.serves = vec![Serves::Model("c".into()), Serves::Connector(Connector::OpenaiCompatible)];
    assert!(stranger.exchange(&coordinator, 9).await.grants.is_empty());
    let mut of_a = Worker::new("of-a");
    of_a.serves = vec![Serves::Model("org/a".into())];
    let orders = of_a.exchange(&coordinator, 3).await;
    assert!(orders.grants.iter().all(|grant| grant.lease.model.as_str() == "a"));
    let dialogues: usize = orders.grants.iter().map(|grant| grant.iterations.len()).sum();
    assert!((3..8).contains(&dialogues), "{dialogues} dialogues for a room of 3");
    let registration = registration("idle", "i", &[]);
    coordinator.register(registration).await.unwrap();
    let names: Vec<String> =
        coordinator.workers().await.unwrap().iter().map(|view| view.worker.to_string()).collect();
    assert_eq!(names, ["idle", "of-a", "stranger"]);
    coordinator.drain_worker(&"of-a".into()).await.unwrap();
    assert_eq!(coordinator.drain_worker(&"nobody".into()).await.unwrap_err().code, ErrorCode::NotFound);
    let orders = of_a.exchange(&coordinator, 3).await;
    assert!(orders.drain && orders.grants.is_empty());
    // What it gives back is there for others at once, and so is what it forgets.
    of_a.draining = true;
    of_a.released = vec![of_a.held.remove(0).lease];
    of_a.exchange(&coordinator, 0).await;
    coordinator.deregister(&of_a.id, &of_a.instance, None).await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!(view.models[0].units_leased, 0);
    assert_eq!(coordinator.view(&RunId::new("none")).await.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_waiting_worker_is_woken_by_a_submission() {
    let ground = Ground::new();
    let coordinator =
        ground.coordinator_with(CoordinatorOptions { backlog_for: Duration::from_secs(3600), ..config() });
    let worker = Worker::new("w");
    let report = domain::exchange::Report { wait: Duration::from_secs(25), ..worker.report(4) };
    let (orders, submitted) = tokio::join!(coordinator.exchange(report), coordinator.submit(submission(4)));
    submitted.unwrap();
    assert!(!orders.unwrap().grants.is_empty());
}

#[tokio::test]
async fn a_coordinator_that_ends_sends_waiting_workers_away() {
    let ground = Ground::new();
    let coordinator =
        ground.coordinator_with(CoordinatorOptions { backlog_for: Duration::from_secs(3600), ..config() });
    let report = domain::exchange::Report { wait: Duration::from_secs(25), ..Worker::new("w").report(4) };
    let (orders, ()) = tokio::join!(coordinator.exchange(report), async { coordinator.close() });
    assert!(orders.unwrap().grants.is_empty());
}

#[tokio::test]
async fn a_budget_is_shared_by_all_who_name_it() {
    let coordinator = Ground::new().coordinator();
    let budget = RateBudget { name: "key".into(), per_minute: 60 };
    assert_eq!(coordinator.take_rate(&budget, 6).await.unwrap(), None);
    let wait = coordinator.take_rate(&budget, 1).await.unwrap().unwrap();
    assert_eq!(wait, Duration::from_secs(1));
    assert_eq!(coordinator.take_rate(&budget, 0).await.unwrap_err().code, ErrorCode::Invalid);
}

#[tokio::test]
async fn packs_are_handed_out_by_their_hash() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let material = coordinator.run_material(&run).await.unwrap();
    assert_eq!(material.models[0].requested(), "org/a");
    assert_eq!(material.tasks[1].pack_label.as_str(), "RdfFriendCount-nt-1");
    let sealed = coordinator.pack(&material.pack_hash).await.unwrap();
    let password = packs::published_password();
    let pack = packs::Pack::open_bytes("p", &sealed, &password).unwrap();
    assert_eq!(pack.hash().as_str(), material.pack_hash);
    assert_eq!(coordinator.pack("00").await.unwrap_err().code, ErrorCode::NotFound);

    // A pack that comes with a submission is kept under its hash, too.
    let sealed = another_pack(|header| header.version = "of a test".into());
    let mut configuration = submission(2).configuration;
    configuration["pack"] = json!("other.kgpack");
    let submission = Submission { configuration, pack: Some(sealed.clone()) };
    let run = coordinator.submit(submission).await.unwrap().run;
    let other = coordinator.run_material(&run).await.unwrap().pack_hash;
    assert_ne!(other, material.pack_hash);
    assert_eq!(coordinator.pack(&other).await.unwrap(), sealed);
}

#[tokio::test]
async fn a_run_that_was_created_and_never_begun_says_so_and_is_begun_by_who_resumes_it() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    // The coordinator died between the two: the manifest is there, and nothing else.
    coordinator.parts().queue.raw().forget_run(&run).await.unwrap();
    drop(coordinator);
    let folder = ground.data.path().join("runs").join(run.as_str());
    std::fs::remove_file(folder.join("state.json")).unwrap();
    for file in std::fs::read_dir(folder.join("log")).unwrap().flatten() {
        std::fs::remove_file(file.path()).unwrap();
    }
    let coordinator = ground.coordinator();
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    let trouble = view.trouble.expect("a run that nobody works at says why");
    assert!(trouble.contains("never begun") && trouble.contains("kgfleet resume"), "{trouble}");
    let listed = coordinator.list().await.unwrap();
    assert!(listed[0].trouble.is_some(), "{listed:?}");
    coordinator.command(&run, BenchmarkCommand::Resume).await.unwrap();
    let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
    worker.work_off(&coordinator, &mut asked).await;
    coordinator.tend().await.unwrap();
    let view = coordinator.view(&run).await.unwrap();
    assert_eq!((view.phase, view.scored, view.trouble), (RunPhase::Finished, 8, None));
}

#[tokio::test]
async fn workers_that_die_are_shown_for_an_hour_and_those_that_sign_off_are_not() {
    let ground = Ground::new();
    let both = [ground.coordinator(), ground.coordinator()];
    both[0].submit(submission(8)).await.unwrap();
    let (mut dies, mut ends) = (Worker::new("dies"), Worker::new("ends"));
    dies.exchange(&both[0], 1).await;
    ends.exchange(&both[0], 1).await;
    for coordinator in &both {
        coordinator.tend().await.unwrap();
    }
    both[0].deregister(&ends.id, &ends.instance, None).await.unwrap();
    for coordinator in &both {
        coordinator.tend().await.unwrap();
    }
    ground.expire_leases();
    for coordinator in &both {
        coordinator.tend().await.unwrap();
        let shown = coordinator.workers().await.unwrap();
        let [lost] = shown.as_slice() else { panic!("{shown:?}") };
        assert_eq!(lost.worker, dies.id);
        let told = lost.status.trouble.as_deref().unwrap_or_default();
        assert!(told.starts_with(crate::LOST) && lost.status.serves.is_empty(), "{:?}", lost.status);
    }
    ground.clock.advance_ms(3_600_000);
    for coordinator in &both {
        coordinator.tend().await.unwrap();
        assert_eq!(coordinator.workers().await.unwrap(), []);
    }
}
