//! A client against a server over a real socket, with a coordinator that only remembers and replies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::control::{BenchmarkCommand, Control as _, ExportItem, ModelNeed, RunPhase, Submission};
use domain::exchange::{
    Delivery, Departure, LeaseEnd, Offer, Orders, Outlook, RateBudget, Receipt, Registered, Registration,
    Report, Serves, Until, WorkExchange as _, WorkerPhase, WorkerStatus,
};
use domain::pools::{PoolStates, ServerUsage};
use domain::{Connector, DialogueKey, ErrorCode, FailureCause, RunId, ServiceError, WorkerId};
use futures::future::join_all;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use harness::scripted_coordinator::{ScriptedCoordinator, ScriptedServer, call};
use proto::limits::{DELIVERY_BYTES, PACK_CHUNK_BYTES};
use proto::{ApiClient, Client, ClientConfig};

use crate::samples::{dead_letter, delivery, grant, lease, material, run_view, worker_view};

const WATCHDOG: Duration = Duration::from_secs(60);

/// Runs a test with a bound on its time, so that a lost wake-up is a failure and no hang.
fn test<F: Future<Output = ()>>(body: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(WATCHDOG, body()).await.expect("the test hangs") });
}

fn client(node: &ScriptedServer) -> Client {
    Client::connect_lazy(&ClientConfig::new(node.address())).unwrap()
}

fn api(node: &ScriptedServer) -> ApiClient {
    ApiClient::new(&ClientConfig::new(node.address())).unwrap()
}

fn report() -> Report {
    Report {
        worker: "w".into(),
        instance: "this".into(),
        offers: vec![
            Offer { serves: Serves::Model("tiny".into()), room: 3 },
            Offer { serves: Serves::Connector(Connector::Replay), room: 0 },
        ],
        held: vec![lease(1), lease(2)],
        ended: BTreeMap::from([(lease(3), LeaseEnd::Finished), (lease(4), LeaseEnd::Released)]),
        parked: Vec::new(),
        draining: false,
        wait: Duration::from_millis(1),
        status: WorkerStatus {
            host: "here".into(),
            phase: Some(WorkerPhase::Loading),
            phase_s: 7,
            ..WorkerStatus::default()
        },
        until: Some(Until { expects: vec!["large".into()] }),
    }
}

#[test]
fn every_call_of_a_worker_goes_through_with_equal_values() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let client = client(&node);

        let registration = Registration {
            worker: "w".into(),
            instance: "this".into(),
            predecessors: vec!["that".into()],
            kgfleet: "0.1.0".into(),
            host: "here".into(),
        };
        let registered =
            Registered { kgfleet: "0.2.0".into(), report_every: Duration::from_millis(2500), taken: None };
        fake.will_return(registered.clone());
        assert_eq!(client.register(registration.clone()).await.unwrap(), registered);
        assert_eq!(fake.heard(), [call("register", &registration)]);

        let orders = Orders {
            grants: vec![grant(7)],
            lost: vec![lease(2)],
            noted: true,
            drain: true,
            superseded: None,
            outlook: Some(Outlook::Later),
        };
        fake.will_return(orders.clone());
        assert_eq!(client.exchange(report()).await.unwrap(), orders);
        assert_eq!(fake.heard(), [call("exchange", &report())]);

        let run = RunId::new("r");
        fake.will_return(material());
        assert_eq!(client.run_material(&run).await.unwrap(), material());
        assert_eq!(fake.heard(), [call("run_material", &run)]);

        let pack: Arc<[u8]> = (0..3 * PACK_CHUNK_BYTES + 5).map(|i| (i % 251) as u8).collect();
        fake.will_return(Arc::clone(&pack));
        assert_eq!(client.pack("00ff").await.unwrap(), pack);
        assert_eq!(fake.heard(), [call("pack", &"00ff")]);

        let budget = RateBudget { name: "key".into(), per_minute: 60 };
        for wait in [None, Some(Duration::from_micros(1500))] {
            fake.will_return(wait);
            assert_eq!(client.take_rate(&budget, 2).await.unwrap(), wait);
            assert_eq!(fake.heard(), [call("take_rate", &(&budget, 2))]);
        }

        fake.will_return(());
        client.deregister(&WorkerId::new("w"), &"this".into(), Some(Departure::Surplus)).await.unwrap();
        assert_eq!(fake.heard(), [call("deregister", &(WorkerId::new("w"), Some(Departure::Surplus)))]);
    });
}

#[test]
fn every_call_of_the_command_line_goes_through_with_equal_values() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let client = api(&node);
        let run = RunId::new("r");

        for pack in [None, Some(vec![7; PACK_CHUNK_BYTES + 1].into()), Some(Vec::new().into())] {
            let submission = Submission { configuration: serde_json::json!({ "seed": 1 }), pack };
            fake.will_return(run_view());
            assert_eq!(client.submit(submission.clone()).await.unwrap(), run_view());
            assert_eq!(fake.heard(), [call("submit", &submission)]);
        }

        let submission = Submission { configuration: serde_json::json!({ "seed": 2 }), pack: None };
        fake.will_return(run_view());
        assert_eq!(client.extend(&run, submission.clone()).await.unwrap(), run_view());
        assert_eq!(fake.heard(), [call("extend", &(&run, submission))]);

        fake.will_return(vec![run_view(), run_view()]);
        assert_eq!(client.list().await.unwrap(), [run_view(), run_view()]);
        assert_eq!(fake.heard(), ["list"]);

        let need =
            ModelNeed { model: "m".into(), outlook: Outlook::Held, dialogues: 7, rate: 0.5, workers: 2 };
        fake.will_return(vec![need.clone()]);
        assert_eq!(client.needs(&["m".to_owned()]).await.unwrap(), [need]);
        assert_eq!(fake.heard(), [call("needs", &["m"])]);

        let states = PoolStates { release: "bench".into(), ..PoolStates::default() };
        fake.will_return(());
        client.note_pools(states.clone()).await.unwrap();
        assert_eq!(fake.heard(), [call("note_pools", &states)]);

        fake.will_return(());
        client.note_server_usage(Vec::new()).await.unwrap();
        assert_eq!(fake.heard(), [call("note_server_usage", &Vec::<ServerUsage>::new())]);
        fake.will_return(Vec::<ServerUsage>::new());
        assert_eq!(client.server_usage().await.unwrap(), []);
        assert_eq!(fake.heard(), ["server_usage"]);

        let pack: Arc<[u8]> = vec![7; 3 << 20].into();
        fake.will_return(Arc::clone(&pack));
        assert_eq!(client.pack("00ff").await.unwrap(), pack);
        assert_eq!(fake.heard(), [call("pack", &"00ff")]);

        fake.will_return(run_view());
        assert_eq!(client.view(&run).await.unwrap(), run_view());
        assert_eq!(fake.heard(), [call("view", &run)]);

        let views: Vec<_> = [RunPhase::Active, RunPhase::Finished]
            .map(|phase| Ok(domain::control::BenchmarkView { phase, ..run_view() }))
            .into();
        fake.will_return(views.clone());
        assert_eq!(client.watch(&run).collect::<Vec<_>>().await, views);
        assert_eq!(fake.heard(), [call("watch", &run)]);

        for command in [BenchmarkCommand::Pause, BenchmarkCommand::Resume, BenchmarkCommand::Cancel] {
            fake.will_return(run_view());
            assert_eq!(client.command(&run, command).await.unwrap(), run_view());
            assert_eq!(fake.heard(), [call("command", &(&run, command))]);
        }

        fake.will_return(5_u64);
        assert_eq!(client.retry(&run, &[FailureCause::Timeout]).await.unwrap(), 5);
        assert_eq!(fake.heard(), [call("retry", &(&run, [FailureCause::Timeout]))]);

        fake.will_return(());
        client.remove(&run, true).await.unwrap();
        assert_eq!(fake.heard(), [call("remove", &(&run, true))]);

        let record = |number: u32| Ok(ExportItem::Record(format!("{{\"ü\":{number}}}").into()));
        let items: Vec<_> =
            std::iter::once(Ok(ExportItem::Manifest("{}".into()))).chain((0..500).map(record)).collect();
        fake.will_return(items.clone());
        assert_eq!(client.records(&run).collect::<Vec<_>>().await, items);
        assert_eq!(fake.heard(), [call("records", &run)]);

        fake.will_return(vec![worker_view()]);
        assert_eq!(client.workers().await.unwrap(), [worker_view()]);
        assert_eq!(fake.heard(), ["workers"]);

        fake.will_return(());
        client.drain_worker(&WorkerId::new("w")).await.unwrap();
        assert_eq!(fake.heard(), [call("drain_worker", &WorkerId::new("w"))]);

        for unit in [None, Some(0), Some(9)] {
            fake.will_return(vec![dead_letter()]);
            assert_eq!(client.dead_letters(&run, unit).await.unwrap(), [dead_letter()]);
            assert_eq!(fake.heard(), [call("dead_letters", &(&run, unit))]);
        }

        fake.will_return(2_u64);
        assert_eq!(client.requeue(&run, &[3, 4]).await.unwrap(), 2);
        assert_eq!(fake.heard(), [call("requeue", &(&run, [3, 4]))]);

        fake.will_return(vec!["the disk is nearly full".to_owned()]);
        assert_eq!(client.check().await.unwrap(), ["the disk is nearly full"]);
        assert_eq!(fake.heard(), ["check"]);
    });
}

#[test]
fn errors_keep_their_code_and_their_words() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let (client, people) = (client(&node), api(&node));
        let run = RunId::new("r");
        for code in ErrorCode::ALL {
            let error = ServiceError::new(code, format!("`r` is gone:\n\t{code:?} ü"));
            fake.will_fail(&error);
            assert_eq!(people.view(&run).await.unwrap_err(), error);
            fake.will_fail(&error);
            assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap_err(), error);
            fake.will_fail(&error);
            assert_eq!(client.pack("00ff").await.unwrap_err(), error);
            fake.will_fail(&error);
            assert_eq!(people.pack("00ff").await.unwrap_err(), error);
            fake.will_fail(&error);
            assert_eq!(people.records(&run).collect::<Vec<_>>().await, [Err(error.clone())]);
            // After its first items, too.
            fake.will_return(vec![Ok(run_view()), Err(error.clone())]);
            assert_eq!(people.watch(&run).collect::<Vec<_>>().await, [Ok(run_view()), Err(error)]);
        }
        let long = ServiceError::new(ErrorCode::Invalid, "x".repeat(1 << 20));
        fake.will_fail(&long);
        let error = people.view(&run).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Invalid);
        assert!(long.message.starts_with(error.message.trim_end_matches(" …")), "{}", error.message.len());
    });
}

#[test]
fn without_a_coordinator_calls_are_unavailable_and_say_where_it_was_looked_for() {
    test(|| async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let config = ClientConfig::new(&address);
        let (client, people) = (Client::connect_lazy(&config).unwrap(), ApiClient::new(&config).unwrap());
        for error in [
            people.list().await.unwrap_err(),
            client.deliver(vec![delivery(0)]).await.unwrap_err(),
            people.watch(&RunId::new("r")).try_collect::<Vec<_>>().await.unwrap_err(),
        ] {
            assert_eq!(error.code, ErrorCode::Unavailable);
            assert!(error.message.contains(&address) && error.message.contains("refused"), "{error}");
        }
    });
}

#[test]
fn records_are_answered_one_by_one_and_in_order() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let client = client(&node);
        assert_eq!(client.deliver(Vec::new()).await.unwrap(), []);
        fake.refuse_iteration(2);
        let calls = (0..100).map(|call| {
            let client = &client;
            async move {
                let deliveries: Vec<_> = (0..5).map(|i| delivery(5 * call + i)).collect();
                client.deliver(deliveries).await.unwrap()
            }
        });
        let receipts = join_all(calls).await.concat();
        let refused = Receipt::Refused { reason: "not planned".into() };
        let expected: Vec<_> =
            (0..500).map(|i| if i == 2 { refused.clone() } else { Receipt::Stored }).collect();
        assert_eq!(receipts, expected);
        let mut stored = fake.take_stored();
        stored.sort_by_key(|delivery| delivery.key.iteration);
        assert_eq!(stored, (0..500).map(delivery).collect::<Vec<_>>());
    });
}

#[test]
fn the_records_of_a_call_are_one_batch_and_too_long_ones_are_refused() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let client = client(&node);
        let long = |iteration, bytes| Delivery { json: "x".repeat(bytes).into(), ..delivery(iteration) };
        let deliveries = vec![
            long(0, DELIVERY_BYTES / 4),
            long(1, DELIVERY_BYTES / 4),
            long(2, DELIVERY_BYTES / 4),
            long(3, DELIVERY_BYTES + 1),
            long(4, 10),
            long(5, 10),
        ];
        let receipts = client.deliver(deliveries.clone()).await.unwrap();
        for (i, receipt) in receipts.iter().enumerate() {
            assert_eq!(*receipt == Receipt::Stored, i != 3, "{i}: {receipt:?}");
        }
        assert_eq!(fake.take_batches(), [vec![0, 1, 2, 4, 5]]);
        // More than a message takes is not sent.
        let too_many = (0..5).map(|iteration| long(iteration, DELIVERY_BYTES / 4)).collect();
        assert_eq!(client.deliver(too_many).await.unwrap_err().code, ErrorCode::Invalid);
        assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap(), [Receipt::Stored]);
    });
}

#[test]
fn a_name_that_is_missing_is_refused_by_the_server_and_spoils_no_other_record() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let client = client(&node);
        let error = client.run_material(&RunId::new("")).await.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (ErrorCode::Invalid, "RunReference.run is missing"));
        let nameless = DialogueKey { task: "".into(), ..delivery(1).key };
        let deliveries = vec![delivery(0), Delivery { key: nameless, ..delivery(1) }, delivery(2)];
        let reason = "DialogueKey.task is missing".to_owned();
        assert_eq!(
            client.deliver(deliveries).await.unwrap(),
            [Receipt::Stored, Receipt::Refused { reason }, Receipt::Stored]
        );
    });
}

#[test]
fn a_call_that_is_given_up_does_not_hold_the_others_up() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let gate = fake.hold_deliveries();
        let node = ScriptedServer::start(&fake);
        let client = client(&node);
        // Twice as many as a worker has in flight.
        for i in 0..8 {
            // Polled until it waits for its answer; then dropped.
            let mut given_up = Box::pin(client.deliver(vec![delivery(i)]));
            if i == 0 {
                tokio::select! {
                    _ = &mut given_up => panic!("nothing lets it through"),
                    () = gate.entered(1) => {}
                }
            } else {
                assert!(given_up.as_mut().now_or_never().is_none());
            }
        }
        gate.open();
        assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap(), [Receipt::Stored]);
    });
}

#[test]
fn records_reach_a_coordinator_that_dies_and_comes_back() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start(&fake);
        let address = node.address();
        let client = client(&node);
        assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap(), [Receipt::Stored]);

        let gate = fake.hold_deliveries();
        let waiting: Vec<_> = (1..4)
            .map(|i| {
                let client = client.clone();
                tokio::spawn(async move { client.deliver(vec![delivery(i)]).await })
            })
            .collect();
        gate.entered(3).await;
        let listener = node.die();
        for call in waiting {
            assert_eq!(call.await.unwrap().unwrap_err().code, ErrorCode::Unavailable);
        }

        let fake = Arc::new(ScriptedCoordinator::default());
        let node = ScriptedServer::start_on(&fake, listener);
        assert_eq!(node.address(), address);
        // The broken connection may be noticed by the first call only; the caller repeats transient errors.
        let deliver = || async { client.deliver((1..4).map(delivery).collect()).await };
        let mut answer = deliver().await;
        while answer.as_ref().is_err_and(|e| e.code.is_transient()) {
            answer = deliver().await;
        }
        assert_eq!(answer.unwrap(), [Receipt::Stored, Receipt::Stored, Receipt::Stored]);
        assert_eq!(fake.take_stored(), (1..4).map(delivery).collect::<Vec<_>>());
    });
}

#[test]
fn records_and_other_calls_leave_a_coordinator_that_cannot_serve() {
    test(|| async {
        let fakes = [(); 2].map(|()| Arc::new(ScriptedCoordinator::default()));
        let nodes = fakes.each_ref().map(ScriptedServer::start);
        let mut config = ClientConfig::new(nodes[0].address());
        config.addresses.push(nodes[1].address());
        let client = Client::connect_lazy(&config).unwrap();

        let leads_not = ServiceError::new(ErrorCode::Unavailable, "another coordinator leads");
        fakes[0].will_fail(&leads_not);
        assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap_err(), leads_not);
        assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap(), [Receipt::Stored]);
        assert_eq!((fakes[0].take_stored(), fakes[1].take_stored()), (Vec::new(), vec![delivery(0)]));
        fakes[1].will_fail(&leads_not);
        assert_eq!(client.exchange(report()).await.unwrap_err(), leads_not);
        assert_eq!(client.deliver(vec![delivery(0)]).await.unwrap(), [Receipt::Stored]);
        assert_eq!(fakes[0].take_stored(), [delivery(0)]);
    });
}

#[test]
fn a_shutdown_finishes_batches_in_hand_and_turns_watchers_away() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let gate = fake.hold_deliveries();
        let mut node = ScriptedServer::start(&fake);
        let (client, people) = (client(&node), api(&node));
        let in_hand = tokio::spawn({
            let client = client.clone();
            async move { client.deliver(vec![delivery(0)]).await }
        });
        gate.entered(1).await;
        fake.will_show_and_wait(run_view());
        let run = RunId::new("r");
        let mut watch = people.watch(&run);
        assert_eq!(watch.next().await.unwrap().unwrap(), run_view());

        node.stop();
        let last = watch.next().await.unwrap().unwrap_err();
        assert_eq!(last.code, ErrorCode::Unavailable);
        assert!(last.message.contains("shutting down"), "{last}");
        assert!(watch.next().await.is_none());
        gate.open();
        assert_eq!(in_hand.await.unwrap().unwrap(), [Receipt::Stored]);
        node.ended().await;
        assert_eq!(people.list().await.unwrap_err().code, ErrorCode::Unavailable);
    });
}

#[test]
fn a_call_that_does_not_end_is_cut_after_the_grace() {
    test(|| async {
        let fake = Arc::new(ScriptedCoordinator::default());
        let gate = fake.hold_deliveries();
        let mut node = ScriptedServer::start(&fake);
        let client = client(&node);
        let stuck = tokio::spawn({
            let client = client.clone();
            async move { client.deliver(vec![delivery(0)]).await }
        });
        gate.entered(1).await;
        node.stop();
        assert_eq!(stuck.await.unwrap().unwrap_err().code, ErrorCode::Unavailable);
        node.ended().await;
    });
}
