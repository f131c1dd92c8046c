//! Names by which callers of a coordinator would write lines of their own into its log, which is its second audit log.

use domain::control::Control;
use domain::exchange::{Delivery, WorkExchange};
use domain::text::steers;
use domain::{DialogueKey, RunId};
use futures::StreamExt;
use proto::{ApiClient, Client, ClientConfig};
use rustix::process::Signal;

use crate::cluster::attacker::Guarded;
use crate::harness::{Cluster, NT_TASK, free_port};

/// A line as the audit log writes it, and what clears a terminal and turns its text around.
const FORGED: &str = "x\n2031-11-29T00:00:00.000000Z  INFO coordinator::audit: remove who=\"alice\" from=\"10.0.0.1\"\u{1b}[2J\u{9b}2J\u{202e}";

/// Calls everything that names something, as a reader and as a worker.
async fn name_everything(reader: &ApiClient, worker: &Client, run: &str) {
    let forged = RunId::new(FORGED);
    let refusals = [
        reader.view(&forged).await.map(drop).err(),
        reader.watch(&forged).next().await.and_then(Result::err),
        reader.records(&forged).next().await.and_then(Result::err),
        reader.dead_letters(&forged, None).await.map(drop).err(),
    ];
    assert!(refusals.iter().all(Option::is_some), "{refusals:?}");
    let key = DialogueKey { model: FORGED.into(), task: FORGED.into(), iteration: 0 };
    for run in [RunId::new(run), forged] {
        let delivery = Delivery { run, key: key.clone(), failure: None, json: "{}".into() };
        // Refused with a receipt, or as a whole.
        let _ = worker.deliver(vec![delivery]).await;
    }
}

#[test]
fn no_name_becomes_a_line_of_the_log() {
    for format in ["text", "json"] {
        let Some(cluster) = Cluster::start() else { return };
        let tokens = cluster.data.write("tokens.toml", "").to_str().unwrap().to_owned();
        let coordinator =
            cluster.coordinator_with(free_port(), &["--tokens", &tokens, "--log-format", format]);
        let guarded = Guarded { cluster, coordinator, tokens };
        let operator = guarded.token("alice", &["--role", "operator"]);
        let [reader, worker] = [("bob", "reader"), ("pool", "worker")].map(|(name, role)| {
            let file = guarded.token(name, &["--role", role]);
            guarded.known(&file, &["status"]);
            let token = Some(std::fs::read_to_string(file).unwrap().trim().to_owned());
            ClientConfig { token, ..ClientConfig::new(guarded.coordinator.url()) }
        });
        let configuration = guarded.cluster.configuration(&[NT_TASK], 1);
        let submitted = guarded.known(&operator, &["submit", configuration.to_str().unwrap()]).expect(0);
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (reader, worker) = (ApiClient::new(&reader).unwrap(), Client::connect_lazy(&worker).unwrap());
            name_everything(&reader, &worker, submitted.stdout.trim()).await;
        });
        guarded.coordinator.process.signal(Signal::TERM);
        let log = guarded.coordinator.process.finish().stderr;
        assert!(log.contains(r"x\n2031-11-29"), "{format}: what was named is told: {log}");
        for line in log.lines() {
            assert!(!line.starts_with("2031"), "{format}: {line}");
            assert!(!line.contains(steers), "{format}: {line:?}");
            // What it says of its start and end is no event.
            let is_whole = serde_json::from_str::<serde_json::Value>(line).is_ok();
            assert!(is_whole || !line.starts_with('{'), "{format}: {line}");
        }
    }
}
