//! Causes each problem in docs/kubernetes.md's list "When something is wrong": the log, readiness and `kgfleet status`
//! report it.

use crate::harness::{Cluster, Data, NT_TASK, Server, free_port, http, wait_until};

const USAGE: i32 = 2;
const INFRASTRUCTURE: i32 = 3;

/// What a coordinator says of its readiness.
fn readiness(port: u16) -> (u16, String) {
    http::get(&format!("127.0.0.1:{port}"), "/readyz").unwrap_or_default()
}

#[test]
fn files_of_secrets_that_are_missing_are_named() {
    let data = Data::new();
    let places = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let missing = data.path().join("secret/file");
    let missing = missing.to_str().unwrap();
    for options in [
        &["--tokens", missing][..],
        &["--tls-cert", missing, "--tls-key", missing],
        &["--queue", "rediss://127.0.0.1", "--queue-ca", missing],
    ] {
        let refused = data.kgfleet(&[&["coordinator"][..], &places, options].concat());
        assert!(matches!(refused.code(), Some(USAGE | INFRASTRUCTURE)), "{refused}");
        refused.says(&[missing]);
    }
    let worker = ["worker", "--fleet", "http://127.0.0.1:1", "--endpoint", "http://127.0.0.1:1/v1"];
    for options in [&["--token-file", missing][..], &["--ca", missing], &["--keys", missing]] {
        data.kgfleet(&[&worker[..], options].concat()).expect(USAGE).says(&[missing]);
    }
}

#[test]
fn a_redis_that_is_missing_or_goes_is_named_by_log_readiness_and_status() {
    let Some(mut cluster) = Cluster::start() else { return };
    let nowhere = format!("redis://127.0.0.1:{}", free_port());
    let arguments =
        ["coordinator", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--queue", &nowhere];
    let refused = cluster.data.kgfleet(&arguments).expect(INFRASTRUCTURE);
    refused.says(&[nowhere.trim_start_matches("redis://"), "refused"]);

    let (port, queue, http_port) = (free_port(), cluster.redis.url(), free_port());
    let http = format!("127.0.0.1:{http_port}");
    let mut coordinator = cluster.coordinator_with(port, &["--queue", &queue, "--metrics", &http]);
    let run = cluster.submit(&coordinator, &[NT_TASK], 1);
    wait_until("the coordinator is ready", || readiness(http_port).0 == 200);
    cluster.redis.kill();
    wait_until("readiness says why", || readiness(http_port).0 == 503);
    let place = format!("127.0.0.1:{}", cluster.redis.port());
    assert!(readiness(http_port).1.contains(&place), "{:?}", readiness(http_port));
    wait_until("status says why", || {
        let status = cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
        status.stdout.contains(&place) && status.stdout.contains("refused")
    });
    coordinator.process.until_it_says("runs cannot be tended now");
    cluster.redis.begin_again();
    wait_until("the coordinator is ready again", || readiness(http_port).0 == 200);
    let status = cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
    assert!(!status.stdout.contains("refused"), "{status}");
}

#[test]
fn a_full_redis_is_named_by_readiness_status_and_metric_until_it_has_room() {
    let Some(cluster) = Cluster::start() else { return };
    let (port, queue, http_port) = (free_port(), cluster.redis.url(), free_port());
    let http = format!("127.0.0.1:{http_port}");
    let coordinator = cluster.coordinator_with(port, &["--queue", &queue, "--metrics", &http]);
    let run = cluster.submit(&coordinator, &[NT_TASK], 1);
    let in_trouble = |trouble: u8| {
        let metric = format!("kgfleet_coordinator_trouble{{part=\"queue\"}} {trouble}\n");
        let metrics = http::get(&http, "/metrics").unwrap_or_default().1;
        metrics.contains(&metric) && readiness(http_port).0 == if trouble == 1 { 503 } else { 200 }
    };
    wait_until("the coordinator is ready", || in_trouble(0));
    cluster.redis.say::<()>("CONFIG SET maxmemory 1");
    wait_until("readiness and metric say so", || in_trouble(1));
    for _ in 0..3 {
        // What is read does not hide that nothing can be written.
        cluster.kgfleet(&coordinator, &["status", &run]).expect(0).prints(&["takes no writes", "maxmemory"]);
        assert!(readiness(http_port).1.contains("maxmemory"), "{:?}", readiness(http_port));
        assert!(in_trouble(1));
    }
    cluster.redis.say::<()>("CONFIG SET maxmemory 0");
    wait_until("all is well", || in_trouble(0));
    let status = cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
    assert!(!status.stdout.contains("maxmemory"), "{status}");
}

#[test]
fn a_model_without_a_worker_is_blocked_until_one_serves_it() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &[NT_TASK], 2);
    // Its pod is pending, or its server does not find the model: nobody serves it.
    let blocked = ["blocked: sim (no worker serves it)"];
    cluster.kgfleet(&coordinator, &["status", &run]).expect(0).prints(&blocked);
    let server = Server::start();
    let _worker = cluster.worker("right", &coordinator, &server);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert!(view.blocked().is_empty(), "{view:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named_at_the_start() {
    let Some(cluster) = Cluster::start() else { return };
    // Whoever runs this, nobody can write below a file.
    let file = cluster.data.write("volume", "a file");
    let folder = file.join("data");
    let (folder, queue) = (folder.to_str().unwrap(), cluster.redis.url());
    let arguments = ["coordinator", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--queue", &queue];
    let refused = cluster.data.kgfleet(&[&arguments[..], &["--data-dir", folder]].concat());
    refused.expect(INFRASTRUCTURE).says(&[folder]);
}
