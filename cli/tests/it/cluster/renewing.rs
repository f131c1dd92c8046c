//! Tokens and authorities that are replaced under processes that use them.

use std::fs;

use proto::server::hash_of_token;
use rustix::process::Signal;

use super::attacker::Guarded;
use super::tls::certificate;
use crate::harness::{Cluster, NT_TASK, Server, free_port};

#[test]
fn a_worker_and_a_watcher_go_on_with_the_tokens_that_replace_theirs() {
    let Some(cluster) = Cluster::start() else { return };
    let (port, tokens) = (free_port(), cluster.data.write("tokens.toml", "").to_str().unwrap().to_owned());
    let arguments = cluster.coordinator_arguments(port, &["--tokens", &tokens]);
    // So that the log says who watches.
    let mut command = cluster.data.command(&arguments);
    let coordinator =
        cluster.coordinator_by(command.env("KGFLEET_LOG", "info,proto::server::guard=debug"), port);
    let mut guarded = Guarded { cluster, coordinator, tokens };
    let reader = guarded.token("bob", &["--role", "reader"]);
    let pool = guarded.token("pool", &["--role", "worker"]);
    let operator = guarded.token("alice", &["--role", "operator"]);
    let server = Server::start();
    let configuration = guarded.cluster.configuration(&[NT_TASK], 2);
    let submitted = guarded.known(&operator, &["submit", configuration.to_str().unwrap()]).expect(0);
    let run = submitted.stdout.trim().to_owned();
    guarded.with(&operator, &["pause", &run]).expect(0);
    let cluster = &guarded.cluster;
    let mut worker =
        cluster.worker_with("w", guarded.coordinator.port, &server.url(), &["--token-file", &pool]);
    worker.until_it_says("registered");
    let url = guarded.coordinator.url();
    let watching = ["status", "--follow", &run, "--fleet", &url, "--token-file", &reader, "--json"];
    let watcher = cluster.data.start(&watching);
    guarded.coordinator.process.until_it_says("called who=\"bob\"");

    // The coordinators know the new tokens first, and the old ones no more.
    let mut known = fs::read_to_string(&guarded.tokens).unwrap();
    for file in [&operator, &reader, &pool] {
        let token = fs::read_to_string(file).unwrap().trim().to_owned();
        known = known.replace(&hash_of_token(&token), &hash_of_token(&format!("{token}-new")));
    }
    fs::write(&guarded.tokens, known).unwrap();
    worker.until_it_says("the token is unknown");
    for file in [&operator, &reader, &pool] {
        let token = fs::read_to_string(file).unwrap().trim().to_owned();
        fs::write(file, format!("{token}-new\n")).unwrap();
    }
    guarded.known(&operator, &["resume", &run]).expect(0);
    let watched = watcher.finish().expect(0);
    assert!(watched.stdout.lines().last().unwrap().contains("finished"), "{watched}");
    worker.until_it_says("have been replaced and read again");
}

#[test]
fn a_worker_goes_on_with_the_authority_that_replaces_its_own() {
    let Some(cluster) = Cluster::start() else { return };
    let folder = cluster.data.path();
    if !["first", "second"].iter().all(|name| certificate(folder, name)) {
        crate::harness::skip("openssl cannot make a certificate here");
        return;
    }
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (port, queue, ca) = (free_port(), cluster.redis.url(), path("ca.pem"));
    let coordinator = |name: &str| {
        let (cert, key) = (path(&format!("{name}.pem")), path(&format!("{name}.key")));
        cluster.coordinator_with(port, &["--queue", &queue, "--tls-cert", &cert, "--tls-key", &key])
    };
    let url = format!("https://127.0.0.1:{port}");
    let kgfleet =
        |arguments: &[&str]| cluster.data.kgfleet(&[arguments, &["--fleet", &url, "--ca", &ca]].concat());
    fs::copy(path("first.pem"), &ca).unwrap();
    let first = coordinator("first");
    let (server, work_dir) = (Server::start(), path("work"));
    let server_url = server.url();
    let worker = ["worker", "--fleet", &url, "--ca", &ca, "--name", "w", "--endpoint", &server_url];
    let mut worker =
        cluster.data.start(&[&worker[..], &["--evaluators", "1", "--work-dir", &work_dir]].concat());
    worker.until_it_says("registered");

    first.process.signal(Signal::KILL);
    first.process.finish();
    let _second = coordinator("second");
    worker.until_it_says("ertificate");
    fs::copy(path("second.pem"), &ca).unwrap();
    let configuration = cluster.configuration(&[NT_TASK], 1);
    let run = kgfleet(&["submit", configuration.to_str().unwrap()]).expect(0).stdout.trim().to_owned();
    kgfleet(&["status", "--follow", &run]).expect(0);
    worker.until_it_says("have been replaced and read again");
}
