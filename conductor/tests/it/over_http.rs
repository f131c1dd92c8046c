//! The API of Kubernetes over HTTP, as a service account meets it.

use std::path::Path;

use axum::http::Method;
use conductor::{ClusterError, DrainStep, KubernetesApi, PoolCluster, ServiceAccount, drain};
use harness::kubernetes_api::{ACCOUNT_TOKEN, KubernetesServer};
use jiff::Timestamp;
use reqwest::Url;
use serde_json::{Value, json};

fn account(folder: &Path, server: &KubernetesServer) -> KubernetesApi {
    std::fs::write(folder.join("token"), format!("{ACCOUNT_TOKEN}\n")).unwrap();
    std::fs::write(folder.join("ca.crt"), "").unwrap();
    let account = ServiceAccount::new(Url::parse(&server.url).unwrap(), folder, "bench".to_owned()).unwrap();
    KubernetesApi::new(account, "mine").unwrap()
}

/// Outside of it the server is started and stopped, which has a runtime of its own.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn object(name: &str, release: &str, pool: Option<&str>) -> Value {
    let mut object = json!({"metadata": {"name": name, "labels": {"app.kubernetes.io/instance": release}}});
    if let Some(pool) = pool {
        object["metadata"]["labels"]["kgfleet/pool"] = json!(pool);
    }
    object
}

#[test]
fn all_pages_of_the_pools_of_one_release_are_read_with_the_token_of_the_day() {
    let (folder, server, runtime) = (tempfile::tempdir().unwrap(), KubernetesServer::start(), runtime());
    let api = account(folder.path(), &server);
    assert!(runtime.block_on(api.state()).unwrap().jobs.is_empty());
    for number in 0..5 {
        server.objects().put("jobs", object(&format!("mine-a-{number}"), "mine", Some("a")));
    }
    server.objects().put("jobs", object("other-a-1", "other", Some("a")));
    server.objects().put("jobs", object("mine-submit", "mine", None));
    server.objects().put("pods", object("mine-a-1-0", "mine", Some("a")));
    server.objects().put("cronjobs", object("mine-a", "mine", Some("a")));
    let state = runtime.block_on(api.state()).unwrap();
    assert_eq!((state.jobs.len(), state.pods.len(), state.cron_jobs.len()), (6, 1, 1));
    // Events have no labels, and those that count say when they were seen last.
    for (name, seen) in [("of-a-kubelet", "lastTimestamp"), ("of-a-series", "eventTime")] {
        let event = json!({
            "metadata": {"name": name}, "involvedObject": {"uid": "u"}, "reason": "FailedMount", "message": "m",
            "lastTimestamp": null, "eventTime": null, seen: "2026-01-01T00:00:00.000001Z",
        });
        server.objects().put("events", event);
    }
    let events = runtime.block_on(api.warnings()).unwrap();
    assert!(events.len() == 2 && events.iter().all(|event| event.seen_at().is_some()), "{events:?}");
    // Kubernetes replaces the token while the process runs.
    std::fs::write(folder.path().join("token"), "old").unwrap();
    let refused = runtime.block_on(api.state()).unwrap_err();
    assert!(matches!(&refused, ClusterError::Refused(reason) if reason.contains("401")), "{refused}");
    std::fs::write(folder.path().join("token"), ACCOUNT_TOKEN).unwrap();
    runtime.block_on(api.state()).unwrap();
}

#[test]
fn a_name_that_is_taken_and_an_object_that_is_another_one_are_conflicts() {
    let (folder, server, runtime) = (tempfile::tempdir().unwrap(), KubernetesServer::start(), runtime());
    let api = account(folder.path(), &server);
    let job = object("mine-a-1", "mine", Some("a"));
    runtime.block_on(api.create(&job)).unwrap();
    let again = runtime.block_on(api.create(&job)).unwrap_err();
    assert!(matches!(&again, ClusterError::Conflict(reason) if reason.contains("already exists")), "{again}");
    let other = runtime.block_on(api.delete("mine-a-1", "another")).unwrap_err();
    assert!(matches!(other, ClusterError::Conflict(_)), "{other}");
    runtime.block_on(api.delete("mine-a-1", "uid-1")).unwrap();
    assert!(matches!(runtime.block_on(api.delete("mine-a-1", "uid-1")), Err(ClusterError::Conflict(_))));
    assert_eq!(server.objects().changes, ["POST jobs mine-a-1", "DELETE jobs mine-a-1 Background"]);
}

#[test]
fn what_may_pass_is_told_from_what_will_not() {
    let (folder, server, runtime) = (tempfile::tempdir().unwrap(), KubernetesServer::start(), runtime());
    let api = account(folder.path(), &server);
    for status in [410, 429, 500, 503] {
        server.objects().refusals.push((Method::GET, status));
        assert!(matches!(runtime.block_on(api.state()), Err(ClusterError::Unavailable(_))), "{status}");
    }
    for status in [403, 422] {
        server.objects().refusals.push((Method::POST, status));
        let refused = runtime.block_on(api.create(&object("mine-a-1", "mine", Some("a")))).unwrap_err();
        assert!(
            matches!(&refused, ClusterError::Refused(reason) if reason.contains("make the Job mine-a-1") && reason.contains("the test says so")),
            "{refused}"
        );
    }
    let address = server.url.clone();
    drop(server);
    let gone = runtime.block_on(api.state()).unwrap_err();
    assert!(
        matches!(&gone, ClusterError::Unavailable(reason) if reason.contains("list cronjobs")),
        "{address}: {gone}"
    );
}

#[test]
fn a_release_is_drained_conductor_first_and_another_one_is_left_alone() {
    let (folder, server, runtime) = (tempfile::tempdir().unwrap(), KubernetesServer::start(), runtime());
    let api = account(folder.path(), &server);
    let with_uid = |mut object: Value| {
        object["metadata"]["uid"] = object["metadata"]["name"].clone();
        object
    };
    let put = |kind: &str, object: Value| server.objects().put(kind, with_uid(object));
    let mut conductor = object("mine-conductor", "mine", None);
    conductor["metadata"]["labels"]["app.kubernetes.io/component"] = json!("conductor");
    put("deployments", conductor);
    put("deployments", object("mine-coordinator", "mine", None));
    put("deployments", object("mine-hosted", "mine", Some("hosted")));
    put("jobs", object("mine-a-1", "mine", Some("a")));
    put("jobs", object("other-a-1", "other", Some("a")));
    put("pods", object("mine-a-1-0", "mine", Some("a")));
    let look = || runtime.block_on(drain::look(&api, Timestamp::now()));
    assert_eq!(look().unwrap().to_string(), "ending mine-conductor");
    assert_eq!(look().unwrap().to_string(), "ending mine-hosted, mine-a-1");
    assert_eq!(look().unwrap().to_string(), "waiting for mine-a-1-0");
    server.objects().of.get_mut("pods").unwrap().remove("mine-a-1-0");
    assert_eq!(look().unwrap(), DrainStep::Done { lost: Vec::new() });
    assert_eq!(
        server.objects().changes,
        [
            "DELETE deployments mine-conductor Background",
            "DELETE deployments mine-hosted Background",
            "DELETE jobs mine-a-1 Background",
        ]
    );
    server.objects().refusals.push((Method::GET, 403));
    assert!(matches!(look(), Err(ClusterError::Refused(_))));
}
