//! Redis under the conformance suite, against the memory model, and through what only a server can go through.

use std::sync::Arc;
use std::time::Duration;

use domain::InstanceId;
use harness::{RedisServer, SentinelServer, free_port, redis::bench};
use queue::testing::{Bench, block_on};
use queue::{
    Claim, Commit, CommitEffect, Committed, Error, Heartbeat, LeaseRequest, NewUnit, QueueStore, RateLimit,
    RateReply, Reap, RedisOptions, RedisStore, RunRef, RunSpec, Transition, UnitId,
};

async fn open() -> Option<Bench> {
    bench()
}

queue::conformance_suite!(open);

#[test]
fn random_sequences_agree_with_the_memory_model() {
    if bench().is_some() {
        queue::differential::compare_with_the_model(60, || bench().expect("a server, as a moment ago"));
    }
}

fn store(url: impl Into<String>) -> RedisStore {
    RedisStore::new(&RedisOptions::new(url)).unwrap()
}

fn spec(lease_for: Duration) -> RunSpec {
    RunSpec {
        run: "r".into(),
        plan_hash: "plan".into(),
        lease_for,
        max_strikes: 3,
        generation: 1,
        ticket_floor: 0,
    }
}

async fn filled(store: &dyn QueueStore, lease_for: Duration, units: u8) -> RunRef {
    let at = store.create_run(&spec(lease_for)).await.unwrap().at;
    let unit = |i| NewUnit { model: "m".into(), dialogues: 10, payload: vec![i] };
    let units: Vec<_> = (0..units).map(unit).collect();
    store.add_units(&at, UnitId(0), &units).await.unwrap();
    at
}

fn ask(worker: &str) -> LeaseRequest {
    LeaseRequest { worker: worker.into(), models: vec!["m".into()], max_units: 1, alone: true }
}

const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn two_coordinators_share_one_queue() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let stores: [Arc<dyn QueueStore>; 2] = [Arc::new(store(server.url())), Arc::new(store(server.url()))];
        let at = filled(&*stores[0], LONG, 100).await;
        assert_eq!(stores[1].create_run(&spec(LONG)).await.unwrap().at, at);
        let work = |index: usize| {
            let (store, at) = (stores[index % 2].clone(), at.clone());
            async move {
                let mut done = 0;
                loop {
                    let leases = store.lease(&at, &ask(&format!("w{index}"))).await.unwrap();
                    let Some(lease) = leases.first() else { return done };
                    let ticket = store.tickets(&at, 1).await.unwrap().start;
                    let key = domain::DialogueKey {
                        model: "m".into(),
                        task: "t".into(),
                        iteration: u32::try_from(lease.fence.unit.0).unwrap(),
                    };
                    let commit = Commit { key, record: Committed { scored: true, ticket } };
                    assert_eq!(store.commit(&at, &[commit]).await.unwrap(), [CommitEffect::First]);
                    let fence = std::slice::from_ref(&lease.fence);
                    assert_eq!(store.finish(&at, fence).await.unwrap(), [Transition::Applied]);
                    done += 1;
                }
            }
        };
        let done: Vec<u32> = futures::future::join_all((0..8).map(work)).await;
        assert_eq!(done.iter().sum::<u32>(), 100);
        let counts = stores[1].counts(&at).await.unwrap().remove(0);
        assert_eq!((counts.done, counts.scored, counts.backlog_dialogues), (100, 100, 0));
    });
}

#[test]
fn a_lease_expires_by_the_servers_clock() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let store = store(server.url());
        let at = filled(&store, Duration::from_millis(50), 1).await;
        let held = store.lease(&at, &ask("a")).await.unwrap();
        // However long this takes: the lease does expire, and is taken over once.
        let reaped = loop {
            let reaped = store.reap(&at, &Reap::Expired).await.unwrap();
            if !reaped.returned.is_empty() {
                break reaped;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(reaped.returned, [UnitId(0)]);
        assert_eq!(store.finish(&at, &[held[0].fence.clone()]).await.unwrap(), [Transition::Stale]);
        let again = store.lease(&at, &ask("b")).await.unwrap();
        assert_eq!((again[0].fence.attempt, again[0].payload.as_slice()), (2, [0].as_slice()));
    });
}

#[test]
fn a_flushed_redis_is_noticed_and_leases_of_before_are_stale() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let store = store(server.url());
        let old = filled(&store, LONG, 1).await;
        let held = store.lease(&old, &ask("a")).await.unwrap().remove(0).fence;
        let ticket = store.tickets(&old, 5).await.unwrap().end;
        server.say::<()>("FLUSHALL");
        let record = Committed { scored: true, ticket };
        let key = domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 };
        let commit = [Commit { key, record }];
        assert!(matches!(store.commit(&old, &commit).await, Err(Error::RunGone { .. })));
        assert!(matches!(store.lease(&old, &ask("a")).await, Err(Error::RunGone { .. })));
        assert_eq!(store.runs().await.unwrap(), []);
        let next = RunSpec { generation: old.generation + 1, ..spec(LONG) };
        assert_eq!(store.create_run(&next).await.unwrap().at.generation, next.generation);
        let new = filled(&store, LONG, 1).await;
        assert_eq!(new.generation, next.generation, "it is joined");
        assert!(store.tickets(&new, 1).await.unwrap().start >= ticket);
        assert_eq!(store.lease(&new, &ask("b")).await.unwrap().len(), 1);
        assert_eq!(store.finish(&new, &[held]).await.unwrap(), [Transition::Stale]);
        assert_eq!(store.commit(&new, &commit).await.unwrap(), [CommitEffect::First]);
    });
}

#[test]
fn a_killed_redis_comes_back_with_what_it_kept() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    let Some(mut server) = RedisServer::start_with(&arguments) else { return };
    block_on(async {
        let store = store(server.url());
        assert_eq!(store.check().await.unwrap(), [""; 0]);
        let at = filled(&store, LONG, 2).await;
        let held = store.lease(&at, &ask("a")).await.unwrap();
        server.kill();
        let away = store.lease(&at, &ask("a")).await.unwrap_err();
        assert!(matches!(away, Error::Unavailable { .. }), "{away}");
        assert_eq!(away.retry(), domain::RetryAdvice::Transient);
        server.restart();
        let renewal = store.renew(&at, &"a".into(), &[], &[held[0].fence.clone()]).await.unwrap();
        assert_eq!((renewal.lost, renewal.unreported), (vec![], vec![]));
        let next = store.lease(&at, &ask("b")).await.unwrap();
        assert_eq!(next[0].fence.unit, UnitId(1));
    });
}

#[test]
fn scripts_are_loaded_again_where_the_server_forgot_them() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let store = store(server.url());
        let at = filled(&store, LONG, 2).await;
        assert_eq!(store.lease(&at, &ask("a")).await.unwrap().len(), 1);
        server.say::<()>("SCRIPT FLUSH");
        assert_eq!(store.lease(&at, &ask("a")).await.unwrap().len(), 1);
    });
}

#[test]
fn an_unfit_server_is_refused_with_what_to_do() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let store = store(server.url());
        let warnings = store.check().await.unwrap();
        assert!(warnings.len() == 1 && warnings[0].contains("appendonly yes"), "{warnings:?}");
        server.say::<()>("CONFIG SET maxmemory-policy allkeys-lru");
        let refused = store.check().await.unwrap_err().to_string();
        assert!(refused.contains("allkeys-lru") && refused.contains("noeviction"), "{refused}");
        server.say::<()>("CONFIG SET maxmemory-policy noeviction");
        let at = filled(&store, LONG, 1).await;
        server.say::<()>("CONFIG SET maxmemory 1");
        let unit = NewUnit { model: "m".into(), dialogues: 1, payload: vec![0; 1_000] };
        let full = store.add_units(&at, UnitId(1), &[unit]).await.unwrap_err();
        assert!(matches!(full, Error::Unwritable { .. }), "{full}");
        server.say::<()>("CONFIG SET maxmemory 0");
        assert_eq!(store.run(&at.run).await.unwrap().unwrap().next_unit, UnitId(1));
    });
}

#[test]
fn nothing_is_taken_over_while_a_server_takes_no_writes() {
    let away = format!("REPLICAOF 127.0.0.1 {}", free_port());
    for (refuse, allow) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        (&away, "REPLICAOF NO ONE"),
        ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    ] {
        let Some(bench) = bench() else { return };
        let server = bench.guard.downcast_ref::<RedisServer>().unwrap();
        let queue = &bench.store;
        block_on(async {
            let at = queue.create_run(&spec(LONG)).await.unwrap().at;
            let unit = NewUnit { model: "m".into(), dialogues: 1, payload: vec![0] };
            queue.add_units(&at, UnitId(0), &[unit]).await.unwrap();
            let worker = "a".into();
            queue.heartbeat(&worker, &Claim::default(), b"", LONG).await.unwrap();
            let fence = queue.lease(&at, &ask("a")).await.unwrap().remove(0).fence;
            bench.time.advance(LONG * 2).await;
            server.say::<()>(refuse);
            let refused = [
                queue.now_ms().await.map(drop),
                queue.heartbeat(&worker, &Claim::default(), b"", LONG).await.map(drop),
                queue.tickets(&at, 1).await.map(drop),
                queue.reap(&at, &Reap::Expired).await.map(drop),
                queue.reap(&at, &Reap::Worker(worker.clone())).await.map(drop),
            ];
            for (call, refused) in refused.iter().enumerate() {
                assert!(matches!(refused, Err(Error::Unwritable { .. })), "{refuse}: {call}: {refused:?}");
            }
            assert_eq!(queue.workers().await.unwrap().len(), 1, "{refuse}: nobody could renew");
            assert_eq!(queue.counts(&at).await.unwrap()[0].leased, 1, "{refuse}");

            server.say::<()>(allow);
            let held = std::slice::from_ref(&fence);
            assert_eq!(queue.renew(&at, &worker, &[], held).await.unwrap().lost, []);
            assert!(queue.reap(&at, &Reap::Expired).await.unwrap().is_empty());
            assert_eq!(queue.finish(&at, held).await.unwrap(), [Transition::Applied]);
        });
    }
}

#[test]
fn a_user_with_few_rights_is_enough() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        // The rule that docs/queue.md gives.
        let rights = "on >s3cret ~kgf* -@all +@read +@write +@scripting +@connection +info +time +unwatch";
        server.say::<()>(&format!("ACL SETUSER fleet {rights}"));
        let login = |password: &str| format!("redis://fleet:{password}@127.0.0.1:{}", server.port());
        let restricted = store(login("s3cret"));
        restricted.check().await.unwrap();
        let at = filled(&restricted, LONG, 1).await;
        assert_eq!(restricted.lease(&at, &ask("a")).await.unwrap().len(), 1);
        restricted.heartbeat(&"a".into(), &Claim::default(), b"", LONG).await.unwrap();
        restricted.take_rate("key", RateLimit { per_minute: 60, burst: 1 }, 1).await.unwrap();
        assert!(restricted.forget_run(&at.run).await.unwrap());
        let refused = store(login("wrong")).check().await.unwrap_err();
        assert!(matches!(refused, Error::Unfit { .. }), "{refused}");
    });
}

#[test]
fn a_sentinel_leads_to_the_primary() {
    let Some(server) = RedisServer::start() else { return };
    let sentinel = SentinelServer::start(server.port());
    block_on(async {
        let store = store(sentinel.url());
        store.check().await.unwrap();
        let at = filled(&store, LONG, 1).await;
        assert_eq!(store.lease(&at, &ask("a")).await.unwrap().len(), 1);
        let unknown = RedisStore::new(&RedisOptions::new(sentinel.url_of("other"))).unwrap();
        assert!(unknown.check().await.is_err());
    });
}

#[test]
fn a_private_authority_is_trusted_through_its_file() {
    // Another test of this process may have done so already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (key, certificate) = (file("key.pem"), file("certificate.pem"));
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=queue", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", &key, "-out", &certificate])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        harness::skip("openssl cannot make a certificate here");
        return;
    }
    let port = free_port().to_string();
    let tls = ["--tls-port", &port, "--tls-cert-file", &certificate, "--tls-key-file", &key];
    let rest = ["--tls-auth-clients", "no", "--tls-ca-cert-file", &certificate, "--save", ""];
    let Some(_server) = RedisServer::start_with(&[tls.as_slice(), &rest].concat()) else { return };
    block_on(async {
        let url = format!("rediss://127.0.0.1:{port}/0");
        let options = RedisOptions { ca_file: Some(certificate.into()), ..RedisOptions::new(&url) };
        let trusting = RedisStore::new(&options).unwrap();
        trusting.check().await.unwrap();
        assert_eq!(filled(&trusting, LONG, 1).await.run.as_str(), "r");
        let refused = store(&url).check().await.unwrap_err();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    });
}

#[test]
fn what_a_clock_that_was_ahead_put_off_does_not_wait_for_that_time() {
    let Some(server) = RedisServer::start() else { return };
    let queue = store(server.url());
    block_on(async {
        let at = filled(&queue, LONG, 2).await;
        queue.park(&at, &"m".into(), Duration::from_secs(60), "its server is away").await.unwrap();
        assert!(queue.counts(&at).await.unwrap()[0].parked.is_some());
        assert!(queue.lease(&at, &ask("w")).await.unwrap().is_empty());
        // By a clock that was an hour ahead.
        let hour = LONG.as_secs();
        let until: u64 = server.say("HGET kgf:{r}:model:m parked_until");
        server.say::<u64>(&format!("HSET kgf:{{r}}:model:m parked_until {}", until + 1_000 * hour));
        assert_eq!(queue.counts(&at).await.unwrap()[0].parked, None);
        assert_eq!(queue.lease(&at, &ask("w")).await.unwrap().len(), 1);
        let left: bool = server.say("HEXISTS kgf:{r}:model:m parked_until");
        assert!(!left, "it does not begin again in an hour");

        let rate = RateLimit { per_minute: 60, burst: 1 };
        assert_eq!(queue.take_rate("b", rate, 1).await.unwrap(), RateReply::Granted);
        let full: u64 = server.say("GET kgf-rate:b");
        server.say::<String>(&format!("SET kgf-rate:b {}", full + 1_000_000 * hour));
        let waits = queue.take_rate("b", rate, 1).await.unwrap();
        assert!(matches!(waits, RateReply::Wait { ms } if ms <= 1_000), "{waits:?}");
    });
}

#[test]
fn a_registration_by_a_clock_that_was_ahead_ends_when_it_would_have() {
    let Some(server) = RedisServer::start() else { return };
    let queue = store(server.url());
    let (first, second) = (Claim::of(InstanceId::new("one"), ""), Claim::of(InstanceId::new("two"), ""));
    let lives = Duration::from_secs(30);
    block_on(async {
        for worker in ["w", "v"] {
            queue.heartbeat(&worker.into(), &first, b"{}", lives).await.unwrap();
        }
        // By a clock that was an hour ahead.
        for worker in ["w", "v"] {
            let hour_ms = 1_000 * LONG.as_secs();
            server.say::<f64>(&format!("ZINCRBY kgf-workers:{{all}}:expiry {hour_ms} {worker}"));
            server.say::<u64>(&format!("HINCRBY kgf-workers:{{all}}:seen {worker} {hour_ms}"));
        }
        let Heartbeat::Taken(taken) = queue.heartbeat(&"w".into(), &second, b"{}", lives).await.unwrap()
        else {
            panic!("another process has the name")
        };
        assert!(taken.free_in_ms <= 30_000, "{taken:?}");
        let now_ms = queue.now_ms().await.unwrap();
        let workers = queue.workers().await.unwrap();
        assert_eq!(workers.len(), 2);
        assert!(workers.iter().all(|entry| entry.seen_ms <= now_ms), "{workers:?}");
        let ends: f64 = server.say("ZSCORE kgf-workers:{all}:expiry v");
        assert!(ends <= (now_ms + 30_000) as f64, "{ends}");
    });
}
