//! The queue that Redis keeps: under the conformance suite, from one leader to the next, and through what a server can go through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::{RedisServer, SentinelServer, free_port, redis::bench};
use queue::testing::{Bench, block_on};
use queue::{
    Claim, Error, LeaderFence, LeaseRequest, MemoryStore, NewUnit, QueueStore, RateLimit, Reap, RedisOptions,
    RunRef, RunSpec, SystemClock, Transition, UnitId,
};

use crate::conformance::conformance_suite;
use crate::handover::compare_with_the_next_leader;

async fn open() -> Option<Bench> {
    bench()
}

conformance_suite!(open);

/// Who leads next at the address of the one that leads.
fn next(url: &str, name: &str) -> Arc<dyn QueueStore> {
    Bench::kept_in(url, name, Box::new(())).store
}

#[test]
fn what_a_leader_has_answered_the_next_one_knows() {
    let url_of = |bench: &Bench| bench.guard.downcast_ref::<RedisServer>().unwrap().url();
    if bench().is_some() {
        let open = || bench().expect("a server, as a moment ago");
        compare_with_the_next_leader(40, open, |bench| next(&url_of(bench), "one"));
    }
}

fn store(url: impl Into<String>) -> Arc<dyn QueueStore> {
    Bench::kept_in(&url.into(), "one", Box::new(())).store
}

fn spec(lease_for: Duration) -> RunSpec {
    RunSpec { run: "r".into(), plan_hash: "plan".into(), lease_for, max_strikes: 3, generation: 1 }
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
fn a_second_one_waits_and_follows_when_the_first_leaves() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let first = store(server.url());
        let at = filled(&*first, LONG, 2).await;
        let held = first.lease(&at, &ask("a")).await.unwrap();
        let second = Bench::kept_in(&server.url(), "two", Box::new(())).store;
        let waits = second.run(&at.run).await.unwrap_err();
        assert_eq!(waits.to_string(), "the coordinator at one leads this fleet");
        assert!(second.leads().is_err() && first.leads().is_ok());
        first.leave().await;
        until_it_leads(&*second).await;
        let fence = std::slice::from_ref(&held[0].fence);
        assert_eq!(second.renew(&at, &"a".into(), &[], fence).await.unwrap().lost, []);
        // Whoever was followed answers nobody, and ends.
        let refused = first.finish(&at, fence).await.unwrap_err();
        assert!(matches!(refused, Error::NotLeader { .. } | Error::Unavailable { .. }), "{refused}");
        assert_eq!(first.until_followed().await, "the coordinator at two leads this fleet");
        assert_eq!(second.finish(&at, fence).await.unwrap(), [Transition::Applied]);
    });
}

#[test]
fn a_leader_that_ends_without_a_word_is_followed() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let first = store(server.url());
        let at = filled(&*first, LONG, 1).await;
        let second = Bench::kept_in(&server.url(), "two", Box::new(())).store;
        assert!(second.run(&at.run).await.is_err());
        drop(first);
        until_it_leads(&*second).await;
        assert_eq!(second.lease(&at, &ask("b")).await.unwrap().len(), 1);
    });
}

async fn until_it_takes_rounds(store: &dyn QueueStore) {
    while store.now_ms().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_it_leads(store: &dyn QueueStore) {
    while store.leads().is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn an_emptied_redis_is_told_everything_anew() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let store = store(server.url());
        let at = filled(&*store, LONG, 2).await;
        let held = store.lease(&at, &ask("a")).await.unwrap().remove(0).fence;
        server.say::<()>("FLUSHALL");
        store.now_ms().await.unwrap();
        assert_eq!(store.finish(&at, std::slice::from_ref(&held)).await.unwrap(), [Transition::Applied]);
        let next = next(&server.url(), "one");
        assert_eq!(next.run(&at.run).await.unwrap().unwrap().next_unit, UnitId(2));
        assert_eq!(next.finish(&at, &[held]).await.unwrap(), [Transition::Stale]);
        assert_eq!(next.lease(&at, &ask("b")).await.unwrap().len(), 1);
    });
}

/// Who may lead, as a record store knows it: whoever has claimed it last. While it is held, nobody hears.
struct LastClaim {
    all: Arc<AtomicU64>,
    own: AtomicU64,
    held: Arc<tokio::sync::Mutex<()>>,
}

#[async_trait::async_trait]
impl LeaderFence for LastClaim {
    async fn claim(&self) -> queue::Result<()> {
        self.own.store(self.all.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(())
    }

    async fn check(&self) -> queue::Result<()> {
        let _free = self.held.lock().await;
        match self.own.load(Ordering::Relaxed) == self.all.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(Error::NotLeader { leader: "another one claimed later".to_owned() }),
        }
    }
}

#[test]
fn who_stood_still_while_redis_was_emptied_and_another_led_does_not_take_the_lead_back() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let (all, stands_still) = (Arc::new(AtomicU64::new(0)), Arc::default());
        let led = |name: &str, held: &Arc<tokio::sync::Mutex<()>>| {
            let (store, own) = (next(&server.url(), name), AtomicU64::new(0));
            store.set_fence(Arc::new(LastClaim { all: Arc::clone(&all), own, held: Arc::clone(held) }));
            store
        };
        let one = led("one", &stands_still);
        one.now_ms().await.unwrap();
        let still = stands_still.lock().await;
        // Its next round waits for the fence.
        let waits = async { one.now_ms().await.unwrap_err() };
        let follows = async {
            server.say::<()>("FLUSHALL");
            led("two", &Arc::default()).now_ms().await.unwrap();
            server.say::<()>("FLUSHALL");
            drop(still);
        };
        let (refused, ()) = tokio::join!(waits, follows);
        assert!(matches!(refused, Error::NotLeader { .. }), "{refused}");
        assert_eq!(one.until_followed().await, "another one claimed later");
    });
}

#[test]
fn a_killed_redis_comes_back_with_what_it_kept() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    let Some(mut server) = RedisServer::start_with(&arguments) else { return };
    block_on(async {
        let store = store(server.url());
        assert_eq!(store.check().await.unwrap(), [""; 0]);
        let at = filled(&*store, LONG, 2).await;
        let held = store.lease(&at, &ask("a")).await.unwrap();
        server.kill();
        let away = store.lease(&at, &ask("a")).await.unwrap_err();
        assert!(matches!(away, Error::Unavailable { .. }), "{away}");
        assert_eq!(away.retry(), domain::RetryAdvice::Transient);
        server.restart();
        until_it_takes_rounds(&*store).await;
        let renewal = store.renew(&at, &"a".into(), &[], &[held[0].fence.clone()]).await.unwrap();
        assert_eq!((renewal.lost, renewal.unreported.len()), (vec![], 1));
        // Who was refused has one all the same.
        assert_eq!(renewal.unreported[0].fence.unit, UnitId(1));
    });
}

#[test]
fn scripts_are_loaded_again_where_the_server_forgot_them() {
    let Some(server) = RedisServer::start() else { return };
    block_on(async {
        let store = store(server.url());
        let at = filled(&*store, LONG, 2).await;
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
        let at = filled(&*store, LONG, 1).await;
        server.say::<()>("CONFIG SET maxmemory 1");
        let unit = NewUnit { model: "m".into(), dialogues: 1, payload: vec![0; 1_000] };
        let full = store.add_units(&at, UnitId(1), &[unit]).await.unwrap_err();
        assert!(matches!(full, Error::Unwritable { .. }), "{full}");
        server.say::<()>("CONFIG SET maxmemory 0");
        until_it_takes_rounds(&*store).await;
        assert_eq!(store.run(&at.run).await.unwrap().unwrap().next_unit, UnitId(2), "it was kept back");
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
            server.say::<()>(refuse);
            assert!(queue.now_ms().await.is_err(), "{refuse}");
            bench.time.advance(LONG * 2).await;
            let refused = [
                queue.now_ms().await.map(drop),
                queue.heartbeat(&worker, &Claim::default(), b"", LONG).await.map(drop),
                queue.reap(&at, &Reap::Expired).await.map(drop),
                queue.reap(&at, &Reap::Worker(worker.clone())).await.map(drop),
            ];
            for (call, refused) in refused.iter().enumerate() {
                assert!(matches!(refused, Err(Error::Unwritable { .. })), "{refuse}: {call}: {refused:?}");
            }
            assert_eq!(queue.workers().await.unwrap().len(), 1, "{refuse}: nobody could renew");
            assert_eq!(queue.counts(&at).await.unwrap()[0].leased, 1, "{refuse}");

            server.say::<()>(allow);
            until_it_takes_rounds(&**queue).await;
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
        let at = filled(&*restricted, LONG, 1).await;
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
        let at = filled(&*store, LONG, 1).await;
        assert_eq!(store.lease(&at, &ask("a")).await.unwrap().len(), 1);
        assert!(self::store(sentinel.url_of("other")).check().await.is_err());
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
        let trusting: Arc<dyn QueueStore> =
            Arc::new(MemoryStore::kept_in(&options, "one", Arc::new(SystemClock::default())).unwrap());
        trusting.check().await.unwrap();
        assert_eq!(filled(&*trusting, LONG, 1).await.run.as_str(), "r");
        let refused = store(&url).check().await.unwrap_err();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    });
}
