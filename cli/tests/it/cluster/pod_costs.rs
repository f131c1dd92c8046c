//! A stand-in for the Kubernetes API is told which workers are busy.

use crate::harness::receiver::ReceivedRequest;
use crate::harness::{Cluster, NT_TASK, Receiver, Server, free_port};

/// What a request tells a pod of this name.
fn told(request: &ReceivedRequest, pod: &str) -> Option<u32> {
    let line = format!("PATCH /api/v1/namespaces/bench/pods/{pod} HTTP/1.1");
    if request.line.trim() != line {
        return None;
    }
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let cost = &body["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"];
    Some(cost.as_str().unwrap().parse().unwrap())
}

#[test]
fn pods_of_busy_workers_cost_more_than_those_of_idle_ones() {
    let Some(cluster) = Cluster::start() else { return };
    // The first call fails, which holds nothing up.
    let (server, kubernetes) = (Server::start(), Receiver::start(1));
    let account = cluster.data.path().join("account");
    std::fs::create_dir(&account).unwrap();
    for (name, content) in [("token", "of-the-account\n"), ("ca.crt", ""), ("namespace", "bench")] {
        std::fs::write(account.join(name), content).unwrap();
    }
    let (port, queue, url) = (free_port(), cluster.redis.url(), kubernetes.url());
    let account = account.to_str().unwrap();
    let options = ["--queue", &queue, "--pod-costs", account, "--kubernetes-api", &url];
    let coordinator = cluster.coordinator_with(port, &options);
    server.gate().close();
    let worker = cluster.worker("pool-7d9f-x2x4z", &coordinator, &server);
    let run = cluster.submit(&coordinator, &[NT_TASK], 8);
    server.gate().until_held(2);
    let costs = |requests: &[ReceivedRequest]| -> Vec<u32> {
        requests.iter().filter_map(|request| told(request, "pool-7d9f-x2x4z")).collect()
    };
    let busy = kubernetes.until(|requests| costs(requests).last().is_some_and(|cost| *cost > 0));
    assert!(
        busy.iter()
            .all(|request| request.headers.to_lowercase().contains("authorization: bearer of-the-account")),
        "{busy:?}"
    );
    // A worker that is no pod, and whose name leads elsewhere, is left alone. It comes when the other one has all the work.
    let mut stranger = cluster.worker("pool/../../secrets", &coordinator, &server);
    stranger.until_it_says("registered");
    server.gate().open();
    cluster.watch(&coordinator, &run).1.expect(0);
    let idle = kubernetes.until(|requests| costs(requests).last() == Some(&0));
    assert!(costs(&idle).len() <= 6, "it is told of changes, not of every look: {:?}", costs(&idle));
    assert!(!idle.iter().any(|request| request.line.contains("secrets")), "{idle:?}");
    drop(worker);

    // What cannot be used is said at the start.
    let refused = |options: &[&str]| {
        let arguments =
            ["coordinator", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--queue", &queue];
        cluster.data.kgfleet(&[&arguments, options].concat()).expect(2)
    };
    refused(&["--pod-costs", "/nowhere"]).says(&["--pod-costs", "/nowhere/namespace"]);
    refused(&["--pod-costs", account, "--kubernetes-api", "http://10.0.0.1"]).says(&["https only"]);
}
