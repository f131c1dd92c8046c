//! Callers who are not who they say, and say what is not so.

use std::sync::Arc;
use std::time::Duration;

use domain::caller::{Caller, CallerRole};
use domain::control::{BenchmarkCommand, Control, ExportItem, Submission};
use domain::exchange::{Delivery, Parking, Receipt, WorkExchange};
use domain::glob::Glob;
use domain::{ErrorCode, Record, RecordId};
use futures::StreamExt;

use super::ground::*;
use super::worker::*;
use crate::access::Access;
use crate::audit::AuditLog;

fn pool(coordinator: &Arc<Started>) -> Arc<Access> {
    coordinator.access(&Caller::new("pool", [CallerRole::Worker], Some(Glob::new("played*"))))
}

fn changed(delivery: &Delivery, change: impl Fn(&mut Record)) -> Delivery {
    let mut record: Record = serde_json::from_str(&delivery.json).unwrap();
    change(&mut record);
    Delivery::of(delivery.run.clone(), &record).unwrap()
}

#[tokio::test]
async fn a_worker_identity_acts_under_its_own_names_only() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    coordinator.submit(submission(2)).await.unwrap();
    let mut victim = Worker::new("victim");
    victim.exchange(&coordinator, 1).await;
    let (pool, grant) = (pool(&coordinator), victim.held[0].clone());
    let registration = |name: &str| registration(name, "i", &[]);
    pool.register(registration("played-1")).await.unwrap();
    for refusal in [
        pool.register(registration("victim")).await.map(drop).unwrap_err(),
        pool.exchange(victim.report(0)).await.map(drop).unwrap_err(),
        pool.deregister(&"victim".into(), &"i".into(), None).await.unwrap_err(),
    ] {
        assert!(refusal.code == ErrorCode::Denied && refusal.message.contains("`victim`"), "{refusal}");
    }
    let own = scored(&grant.lease, &keys(&grant)[0]);
    let forged = changed(&own, |record| record.attempt.worker = "victim".into());
    let receipts = pool.deliver(vec![forged, own]).await.unwrap();
    assert!(matches!(&receipts[0], Receipt::Refused { reason } if reason.contains("victim")), "{receipts:?}");
    assert_eq!(receipts[1], Receipt::Stored);
    assert!(victim.exchange(&coordinator, 0).await.lost.is_empty(), "the victim holds what it held");
}

#[tokio::test]
async fn forged_generations_bodies_and_ids_change_nothing() {
    let mut ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(2)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let good = scored(&grant.lease, &keys(&grant)[0]);
    for generation in [1_u64 << 53, u64::MAX, 1 << 52] {
        let forged = changed(&good, |record| record.attempt.generation = generation);
        let receipts = coordinator.deliver(vec![forged]).await.unwrap();
        assert!(matches!(&receipts[0], Receipt::Refused { .. }), "{generation}: {receipts:?}");
    }
    // What begins like a record and is none.
    let value: serde_json::Value = serde_json::from_str(&good.json).unwrap();
    for part in ["rounds", "provenance", "started_at"] {
        let mut value = value.clone();
        value[part] = "nonsense".into();
        let forged = Delivery { json: value.to_string().into(), ..good.clone() };
        let receipts = coordinator.deliver(vec![forged]).await.unwrap();
        assert!(matches!(&receipts[0], Receipt::Refused { .. }), "{part}: {receipts:?}");
    }
    assert_eq!(coordinator.view(&run).await.unwrap().scored, 0);
    // Another record under an id that is known is another record: both are in the log.
    let id = RecordId::random();
    let first = changed(&good, |record| record.attempt.id = id.clone());
    let key = keys(&grant)[1].clone();
    let second = changed(&scored(&grant.lease, &key), |record| record.attempt.id = id.clone());
    for record in [&first, &second, &first] {
        assert_eq!(coordinator.deliver(vec![record.clone()]).await.unwrap(), [Receipt::Stored]);
    }
    assert_eq!(winners(&coordinator, &run).await.len(), 2, "what counts is what the log holds");
    // And the queue can still be built again.
    ground.lose_queue();
    let again = ground.coordinator();
    again.command(&run, BenchmarkCommand::Resume).await.unwrap();
    assert_eq!(again.view(&run).await.unwrap().scored, 2);
}

#[tokio::test]
async fn what_was_done_to_a_run_stands_in_its_history_with_who_did_it() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let as_whom = |name: &str| coordinator.access(&Caller::new(name, [CallerRole::Operator], None));
    let run = as_whom("alice").submit(submission(2)).await.unwrap().run;
    as_whom("bob").command(&run, BenchmarkCommand::Pause).await.unwrap();
    as_whom("bob").retry(&run, &[]).await.unwrap();
    as_whom("carol").command(&run, BenchmarkCommand::Cancel).await.unwrap();
    // Another coordinator tells the same.
    let view = ground.coordinator().view(&run).await.unwrap();
    let told: Vec<(&str, &str)> = view.history.iter().map(|e| (e.who.as_str(), e.what.as_str())).collect();
    let expected =
        [("alice", "submitted"), ("bob", "paused"), ("bob", "retried 0 dialogues"), ("carol", "cancelled")];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn readers_get_protected_texts_redacted_and_operators_whole() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(1)).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let failed = failed(&grant.lease, &keys(&grant)[0], domain::FailureCause::Server);
    coordinator.deliver(vec![failed]).await.unwrap();
    // As of a protected pack: what decides is the manifest in the sink.
    let reader = coordinator.access(&Caller::new("r", [CallerRole::Reader], None));
    let texts = |protected: bool| {
        let items = reader.records(&run);
        async move {
            let mut seen = false;
            let items: Vec<ExportItem> = items.map(Result::unwrap).collect().await;
            let redacted = items.into_iter().map(|item| {
                let item = match item {
                    ExportItem::Manifest(json) => {
                        let mut manifest: serde_json::Value = serde_json::from_str(&json).unwrap();
                        manifest["protected"] = protected.into();
                        ExportItem::Manifest(manifest.to_string().into())
                    }
                    record => record,
                };
                crate::access::redacted(item, &mut seen).unwrap()
            });
            format!("{:?}", redacted.collect::<Vec<_>>())
        }
    };
    assert!(texts(false).await.contains("so it was"));
    let protected = texts(true).await;
    assert!(!protected.contains("so it was") && protected.contains("[9 characters]"), "{protected}");
}

#[tokio::test]
async fn a_protected_pack_is_sent_to_operators_and_workers_only() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let sealed = another_pack(|header| header.protected = true);
    let pack = packs::Pack::open_bytes("another", &sealed, &packs::published_password()).unwrap();
    let hash = pack.hash().as_str();
    coordinator.parts().store.sink.put_pack(hash, bytes::Bytes::from_owner(sealed)).await.unwrap();
    let as_role = |role| coordinator.access(&Caller::new("somebody", [role], None));
    as_role(CallerRole::Operator).pack(hash).await.unwrap();
    as_role(CallerRole::Worker).pack(hash).await.unwrap();
    let refused = as_role(CallerRole::Reader).pack(hash).await.unwrap_err();
    assert!(refused.code == ErrorCode::Denied && refused.message.contains("protected pack"), "{refused}");
    let builtin = packs::Pack::shared_builtin().unwrap();
    as_role(CallerRole::Reader).pack(builtin.hash().as_str()).await.unwrap();
}

#[tokio::test]
async fn a_configuration_that_points_into_workers_is_refused() {
    let coordinator = Ground::new().coordinator();
    for (field, value) in [
        ("key_env", "ANTHROPIC_API_KEY"),
        ("key_file", "/etc/hostname"),
        ("endpoint", "http://169.254.169.254/latest"),
    ] {
        let mut submission = submission(1);
        submission.configuration["models"][0][field] = value.into();
        let error = coordinator.submit(submission).await.unwrap_err();
        assert!(error.code == ErrorCode::Invalid && error.message.contains(field), "{error}");
    }
}

#[tokio::test]
async fn what_servers_say_of_protected_exercises_is_for_operators_in_every_view() {
    let (ground, folder) = (Ground::new(), tempfile::tempdir().unwrap());
    let audit = AuditLog::open(folder.path()).unwrap();
    let sink = results::Sink::new(ground.data.path());
    let coordinator = Started::noting(config(), Arc::clone(&ground.queue), sink, audit.clone());
    let sealed = another_pack(|header| header.protected = true);
    let mut submission = submission(1);
    submission.configuration["pack"] = "another".into();
    let run = coordinator.submit(Submission { pack: Some(sealed), ..submission }).await.unwrap().run;
    let mut worker = Worker::new("w");
    worker.exchange(&coordinator, 1).await;
    let grant = worker.held[0].clone();
    let key = keys(&grant)[0].clone();
    let failed = failed(&grant.lease, &key, domain::FailureCause::Server);
    coordinator.deliver(vec![failed]).await.unwrap();
    worker.parked.push(Parking {
        run: run.clone(),
        model: grant.lease.model.clone(),
        parked_for: Duration::from_secs(900),
        reason: "bad-request: so it was".into(),
    });
    worker.exchange(&coordinator, 0).await;

    let told = async |role: CallerRole| {
        let access = coordinator.access(&Caller::new(role.as_str(), [role], None));
        let watched = access.watch(&run).next().await.unwrap().unwrap();
        let views = [access.view(&run).await.unwrap(), watched, access.list().await.unwrap().remove(0)];
        let workers = access.workers().await.unwrap();
        let exported: Vec<_> = access.records(&run).map(Result::unwrap).collect().await;
        let record = access.record(&run, &key).await.unwrap();
        let lines = access.dialogues(&run, &key.model, &key.task).await.unwrap();
        let dead = access.dead_letters(&run, None).await.unwrap();
        let rest = [
            format!("{exported:?}"),
            format!("{record:?}"),
            format!("{workers:?}"),
            format!("{lines:?} {dead:?}"),
        ];
        views.iter().map(|view| format!("{view:?}")).chain(rest).collect::<Vec<_>>()
    };
    let whole = told(CallerRole::Operator).await;
    assert!(whole[..5].iter().all(|view| view.contains("so it was")), "{whole:?}");
    for view in told(CallerRole::Reader).await {
        assert!(!view.contains("so it was"), "{view}");
    }
    let reader = coordinator.access(&Caller::new("r", [CallerRole::Reader], None));
    let view = reader.view(&run).await.unwrap();
    assert_eq!(view.refusals[0].message, "[9 characters]");
    let parked = view.models.iter().find_map(|model| model.parked.clone());
    assert_eq!(parked.unwrap(), "bad-request: [9 characters]", "the cause stays");
    // Who read them is known, and how: each look (a view, a watch, the list, a record), and each export.
    let noted = crate::audit::read_all(folder.path()).unwrap().entries;
    let of_run = |act: &str| {
        noted.iter().filter(|entry| entry.deed.act == act && entry.deed.about == run.as_str()).count()
    };
    assert_eq!((of_run("read"), of_run("export")), (4, 1), "{noted:?}");
    assert!(noted.iter().all(|entry| entry.deed.who == "operator"), "{noted:?}");
}

#[tokio::test]
async fn a_worker_that_lies_parks_a_model_for_an_hour_at_most() {
    let ground = Ground::new();
    let coordinator = ground.coordinator();
    let run = coordinator.submit(submission(1)).await.unwrap().run;
    let mut liar = Worker::new("liar");
    liar.parked.push(Parking { run, model: "a".into(), parked_for: Duration::MAX, reason: "never".into() });
    liar.exchange(&coordinator, 0).await;
    let (hour_ms, mut asked) = (3_600_000, Vec::new());
    ground.clock.advance_ms(hour_ms - 1);
    Worker::new("w").work_off(&coordinator, &mut asked).await;
    assert!(asked.len() == 2 && asked.iter().all(|key| key.model.as_str() == "b"), "{asked:?}");
    ground.clock.advance_ms(2);
    Worker::new("w").work_off(&coordinator, &mut asked).await;
    assert_eq!(asked.len(), 4, "{asked:?}");
}
