//! Mistakes of a cluster's users are refused with a message that says what to do.

use std::io::Write;

use crate::disk_full::Mount;
use crate::harness::process::finish;
use crate::harness::{Cluster, Data, NT_TASK, Server, http, wait_until};

const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

/// Room for the records of a test, in KiB.
const ROOM_KIB: u32 = 512;

#[test]
fn configurations_that_cannot_be_planned_are_refused() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let refuse = |text: &str, culprits: &[&str]| {
        let file = cluster.data.write("bad.toml", text);
        cluster.kgfleet(&coordinator, &["submit", file.to_str().unwrap()]).expect(USAGE).says(culprits);
    };
    let model = "[[models]]\nlabel = 'm'\nconnector = 'simulated'\n";
    refuse(&format!("name = 'a'\ntasks = ['Nonsense']\n{model}"), &["Nonsense", "there are"]);
    refuse(&format!("name = 'a'\npack = 'no-such.pack'\n{model}"), &["no-such.pack"]);
    refuse("name = 'a'\nmodels = []\n", &["name at least one model"]);
    refuse(
        "name = 'a'\n[[models]]\nlabel = 'm'\nconnector = 'replay'\nrecorded = ['x.json']\n",
        &["replay", "kgfleet run"],
    );
    for verb in [
        &["status", "nothing"][..],
        &["watch", "nothing"],
        &["pause", "nothing"],
        &["workers", "drain", "nobody"],
    ] {
        cluster.kgfleet(&coordinator, verb).expect(USAGE).says(&[verb[verb.len() - 1]]);
    }
}

#[test]
fn a_model_that_nobody_serves_is_told_before_and_while_it_waits() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let coordinator = cluster.coordinator();
    let mut worker = cluster.worker("worker", &coordinator, &server);
    worker.until_it_says("registered");
    let text = "name = 'a'\niterations = 1\ntasks = ['RdfFriendCount-nt-1']\n[[models]]\nlabel = 'unknown-model'\n\
                connector = 'openai-compatible'\n";
    let file = cluster.data.write("nobody.toml", text);
    let file = file.to_str().unwrap();
    cluster
        .kgfleet(&coordinator, &["check", file])
        .expect(0)
        .prints(&["warning", "`unknown-model`: no worker serves it"]);
    let run = cluster.kgfleet(&coordinator, &["submit", file]).expect(0).stdout;
    let view = cluster.status(&coordinator, run.trim());
    assert_eq!((view.models[0].workers, view.scored), (0, 0));
}

#[test]
fn a_worker_whose_server_serves_another_model_says_so() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let coordinator = cluster.coordinator();
    let _worker = cluster.worker_with("worker", coordinator.port, &server.url(), &["--model", "llama"]);
    let model = "[[models]]\nlabel = 'llama'\nconnector = 'openai-compatible'\n";
    let text = format!("name = 'one'\niterations = 2\ntasks = ['{NT_TASK}']\n{model}");
    let file = cluster.data.write("llama.toml", text);
    let submitted = cluster.kgfleet(&coordinator, &["submit", file.to_str().unwrap()]).expect(0);
    let run = submitted.stdout.trim();
    let told = || cluster.kgfleet(&coordinator, &["status", run]).to_string();
    wait_until("the run says what the list lacks", || told().contains("it names sim"));
}

#[test]
fn a_redis_that_evicts_keys_is_refused() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.redis.say::<()>("CONFIG SET maxmemory-policy allkeys-lru");
    let arguments = [
        "coordinator",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--queue",
        &cluster.redis.url(),
    ];
    let refused = cluster.data.kgfleet(&arguments).expect(INFRASTRUCTURE);
    refused.says(&["maxmemory-policy", "noeviction"]);
}

#[test]
fn a_coordinator_that_is_not_there_is_named() {
    let data = Data::new();
    let url = format!("http://127.0.0.1:{}", crate::harness::free_port());
    for arguments in [&["status"][..], &["submit", "quick"], &["workers"]] {
        let arguments = [arguments, &["--coordinator", &url]].concat();
        data.kgfleet(&arguments).expect(INFRASTRUCTURE).says(&[&url]);
    }
    let nonsense = ["status", "--coordinator", "not a url"];
    data.kgfleet(&nonsense).expect(USAGE).says(&["not a url"]);
}

#[test]
fn a_full_record_disk_pauses_a_run_and_loses_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let folder = cluster.data.path().join("small");
    let Some(_mount) = Mount::tmpfs(&folder, ROOM_KIB) else {
        // No tool is missing but a right: this may skip anywhere.
        crate::harness::skip_where_nothing_helps("this user cannot mount a small file system");
        return;
    };
    let server = Server::start();
    let port = crate::harness::free_port();
    let listen = format!("127.0.0.1:{port}");
    let redis = cluster.redis.url();
    let data_dir = folder.to_str().unwrap();
    let page = format!("127.0.0.1:{}", crate::harness::free_port());
    let arguments =
        ["coordinator", "--listen", &listen, "--metrics", &page, "--queue", &redis, "--data-dir", data_dir];
    let mut process = cluster.data.start(&arguments);
    process.until_it_says("serving on");
    let coordinator = crate::harness::cluster::Coordinator { process, port };
    let run = cluster.submit(&coordinator, &[NT_TASK], 20);
    // To the last byte.
    let filler = folder.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[7; 1024]).is_ok() {}
    drop(file);
    let mut worker = cluster.worker("worker", &coordinator, &server);
    worker.until_it_says("the disk is full");
    wait_until("readiness says why", || {
        http::get(&page, "/readyz").is_some_and(|(status, why)| status == 503 && why.contains("disk is full"))
    });
    let status = cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
    assert!(status.stdout.contains("disk is full"), "{status}");
    std::fs::remove_file(&filler).unwrap();
    cluster.watch(&coordinator, &run).1.expect(0);
    let mut verify = cluster.data.command(&["verify", &run, "--data-dir", data_dir]);
    finish(&mut verify).expect(0).prints(&["20 dialogues: 20 scored"]);
}
