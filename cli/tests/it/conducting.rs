//! `kgfleet conduct` with a real coordinator and real workers, and a stand-in for Kubernetes whose kubelet is the test: it starts
//! what a Job says, and says how it ended.

use std::path::{Path, PathBuf};

use domain::control::RunPhase;
use rustix::process::Signal;
use serde_json::{Value, json};
use vllm_sim::{ModelConfig, SimConfig};

use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Finished, NT_TASK, Receiver, Running, Server, wait_until};
use harness::kubernetes_api::{ACCOUNT_TOKEN, ApiObjects, KubernetesServer};

/// A folder with a service account.
pub fn account(folder: &Path) -> PathBuf {
    let account = folder.join("account");
    std::fs::create_dir(&account).unwrap();
    for (name, content) in [("token", ACCOUNT_TOKEN), ("ca.crt", ""), ("namespace", "bench\n")] {
        std::fs::write(account.join(name), content).unwrap();
    }
    account
}

/// A pool of one GPU that serves a model of its name.
pub fn pool(name: &str) -> Value {
    let estimate = json!({
        "gpus": 1, "parts": 1, "servers": 1, "load_seconds": 5, "dialogues_per_second": 10, "dialogues": 8,
    });
    let labels = json!({"app.kubernetes.io/instance": "bench", "kgfleet/pool": name});
    json!({
        "metadata": {
            "name": format!("bench-{name}"), "uid": format!("cron-{name}"), "labels": labels,
            "annotations": {"kgfleet/estimate": estimate.to_string()},
        },
        "spec": {"suspend": true, "schedule": "0 0 1 1 *", "jobTemplate": {
            "metadata": {"labels": labels},
            "spec": {"completions": 1, "parallelism": 1, "template": {"spec": {"containers": [
                {"name": "worker", "args": ["worker", "--model", name, "--until-done", "--leave-surplus"]},
            ]}}},
        }},
    })
}

/// A conductor that looks every second, for one GPU if `more` does not say otherwise.
pub fn conductor(
    cluster: &Cluster,
    coordinator: &Coordinator,
    server: &KubernetesServer,
    account: &Path,
    more: &[&str],
) -> Running {
    let arguments = [
        "conduct",
        "--release",
        "bench",
        "--account",
        account.to_str().unwrap(),
        "--kubernetes-api",
        &server.url,
        "--every",
        "1",
        "--fleet",
        &coordinator.url(),
    ];
    let gpus: &[&str] = if more.contains(&"--gpus") { &[] } else { &["--gpus", "1"] };
    let mut conductor = cluster.data.start(&[&arguments[..], gpus, more].concat());
    conductor.until_it_says("conducting the pools of bench");
    conductor
}

/// Runs the worker of a Job to its end, as a kubelet and the Job controller would, and says how it ended.
fn play(
    cluster: &Cluster,
    coordinator: &Coordinator,
    kubernetes: &KubernetesServer,
    job: &str,
    endpoint: &str,
) -> Finished {
    let pod = format!("{job}-0");
    let arguments = {
        let mut objects = kubernetes.objects();
        let template = objects.of["jobs"][job].clone();
        let scheduled = template["metadata"]["creationTimestamp"].clone();
        let mut labels = template["metadata"]["labels"].clone();
        labels["batch.kubernetes.io/job-name"] = json!(job);
        objects.put(
            "pods",
            json!({
                "metadata": {"name": pod, "labels": labels},
                "spec": {"nodeName": "n1"},
                "status": {"phase": "Running", "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled},
                ]},
            }),
        );
        template["spec"]["template"]["spec"]["containers"][0]["args"].clone()
    };
    let arguments: Vec<&str> =
        arguments.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let more = [&arguments[1..], &["--concurrency", "4"]].concat();
    let ended = cluster.worker_with(&pod, coordinator.port, endpoint, &more).finish();
    let mut objects = kubernetes.objects();
    let (kind, phase) =
        if ended.code() == Some(0) { ("Complete", "Succeeded") } else { ("Failed", "Failed") };
    let message = format!(
        "Container worker for pod bench/{pod} failed with exit code {} matching",
        ended.code().unwrap()
    );
    let condition = json!({
        "type": kind, "status": "True", "reason": "PodFailurePolicy", "message": message,
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    });
    objects.of.get_mut("jobs").unwrap().get_mut(job).unwrap()["status"] = json!({"conditions": [condition]});
    objects.of.get_mut("pods").unwrap().get_mut(&pod).unwrap()["status"]["phase"] = json!(phase);
    ended
}

pub fn was_made(job: &str) -> impl Fn(&ApiObjects) -> bool {
    let change = format!("POST jobs {job}");
    move |objects| objects.changes.contains(&change)
}

#[test]
fn two_models_take_turns_on_one_gpu_and_a_later_stage_begins_a_server_of_its_own() {
    let Some(cluster) = Cluster::start() else { return };
    let (kubernetes, account) = (KubernetesServer::start(), account(cluster.data.path()));
    for name in ["alpha", "beta"] {
        kubernetes.objects().put("cronjobs", pool(name));
    }
    let servers = ["alpha", "beta"].map(|name| Server::with(SimConfig::new(vec![ModelConfig::new(name)])));
    let coordinator = cluster.coordinator();
    // Two conductors collide and do no harm; one of them is killed in the middle.
    let (first, second) = (
        conductor(&cluster, &coordinator, &kubernetes, &account, &[]),
        conductor(&cluster, &coordinator, &kubernetes, &account, &[]),
    );
    let configuration = |iterations: u32| {
        let models = ["alpha", "beta"].map(|name| {
            format!("[[models]]\nlabel = '{name}'\nconnector = 'openai-compatible'\nstream = false\n")
        });
        let text = format!(
            "name = 'two'\nseed = 5\niterations = {iterations}\ntasks = ['{NT_TASK}']\n{}",
            models.concat()
        );
        cluster.data.write("two.toml", text)
    };
    let submit = |iterations: u32, more: &[&str]| {
        let configuration = configuration(iterations);
        let arguments = [&["submit", configuration.to_str().unwrap()], more].concat();
        cluster.kgfleet(&coordinator, &arguments).expect(0).stdout.trim().to_owned()
    };
    let run = submit(8, &[]);
    // Equal, but for their names.
    drop(kubernetes.until(was_made("bench-alpha-1")));
    play(&cluster, &coordinator, &kubernetes, "bench-alpha-1", &servers[0].url()).expect(0);
    drop(kubernetes.until(was_made("bench-beta-1")));
    drop(first);
    play(&cluster, &coordinator, &kubernetes, "bench-beta-1", &servers[1].url()).expect(0);
    let view = cluster.status(&coordinator, &run);
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 16));
    // What is added later brings servers back, one by one as before.
    submit(10, &["--extend", &run]);
    drop(kubernetes.until(was_made("bench-alpha-2")));
    play(&cluster, &coordinator, &kubernetes, "bench-alpha-2", &servers[0].url()).expect(0);
    drop(kubernetes.until(was_made("bench-beta-2")));
    play(&cluster, &coordinator, &kubernetes, "bench-beta-2", &servers[1].url()).expect(0);
    assert_eq!(cluster.status(&coordinator, &run).scored, 20);
    let changes = kubernetes.objects().changes.clone();
    let expected = ["bench-alpha-1", "bench-beta-1", "bench-alpha-2", "bench-beta-2"];
    assert_eq!(changes, expected.map(|job| format!("POST jobs {job}")));
    // What its servers left says which of them made its records.
    let left = ["launch", "--costs", "--release", "bench", "--json"];
    wait_until("the conductor has handed over what servers left", || {
        cluster.kgfleet(&coordinator, &left).expect(0).json()["servers"].as_array().unwrap().len() == 4
    });
    second.signal(Signal::TERM);
    second.finish().expect(0).says(&["stopping: servers go on"]);
}

#[test]
fn what_cannot_be_conducted_is_said_at_the_start() {
    let data = crate::harness::Data::new();
    let account = account(data.path());
    let refused = |options: &[&str]| {
        data.kgfleet(&[&["conduct", "--gpus", "1", "--release", "bench"], options].concat()).expect(2)
    };
    refused(&["--account", "/nowhere"]).says(&["/nowhere/namespace", "--namespace"]);
    refused(&["--account", "/nowhere", "--namespace", "bench"]).says(&["/nowhere/ca.crt"]);
    let account = account.to_str().unwrap();
    refused(&["--account", account, "--kubernetes-api", "http://10.0.0.1"]).says(&["https only"]);
    refused(&["--account", account, "--namespace", "a/b"]).says(&["`a/b` is no name"]);
    refused(&["--account", account, "--gpu-hours", "0"]).says(&["more than 0 hours"]);
}

#[test]
fn somebody_is_told_of_a_pool_that_is_given_up_and_it_is_tried_again_when_they_say_so() {
    let Some(cluster) = Cluster::start() else { return };
    let (kubernetes, account) = (KubernetesServer::start(), account(cluster.data.path()));
    kubernetes.objects().put("cronjobs", pool("alpha"));
    let coordinator = cluster.coordinator();
    let told = Receiver::start(0);
    let hook = format!("{}/hook", told.url());
    let conductor = conductor(&cluster, &coordinator, &kubernetes, &account, &["--webhook", &hook]);
    let model = "[[models]]\nlabel = 'alpha'\nconnector = 'openai-compatible'\nstream = false\n";
    let text = format!("name = 'one'\nseed = 5\niterations = 8\ntasks = ['{NT_TASK}']\n{model}");
    let configuration = cluster.data.write("one.toml", text);
    cluster.kgfleet(&coordinator, &["submit", configuration.to_str().unwrap()]).expect(0);
    drop(kubernetes.until(was_made("bench-alpha-1")));
    // Its template names no address.
    play(&cluster, &coordinator, &kubernetes, "bench-alpha-1", "nowhere").expect(2);
    let posts = told.until(|posts| !posts.is_empty());
    let notice: Value = serde_json::from_slice(&posts[0].body).unwrap();
    assert_eq!((&notice["event"], &notice["release"]), (&json!("pool-failed"), &json!("bench")));
    assert_eq!(notice["pools"][0]["pool"], "alpha");
    assert_eq!(kubernetes.objects().changes.len(), 1, "nothing is tried again by itself");
    let server = Server::with(SimConfig::new(vec![ModelConfig::new("alpha")]));
    let now = jiff::Timestamp::now().to_string();
    kubernetes.objects().of.get_mut("cronjobs").unwrap().get_mut("bench-alpha").unwrap()["metadata"]["annotations"]
        ["kgfleet/retry"] = json!(now);
    drop(kubernetes.until(was_made("bench-alpha-2")));
    play(&cluster, &coordinator, &kubernetes, "bench-alpha-2", &server.url()).expect(0);
    drop(conductor);
}

/// An object of the release, of a component, and of a pool if it is a worker.
fn of_release(name: &str, component: &str, pool: Option<&str>) -> Value {
    let mut object = json!({"metadata": {"name": name, "uid": name, "labels": {
        "app.kubernetes.io/instance": "bench", "app.kubernetes.io/component": component,
    }}});
    if let Some(pool) = pool {
        object["metadata"]["labels"]["kgfleet/pool"] = json!(pool);
    }
    object
}

#[test]
fn a_release_is_drained_conductor_first_and_its_last_worker_is_waited_for() {
    let data = crate::harness::Data::new();
    let (kubernetes, account) = (KubernetesServer::start(), account(data.path()));
    let account = account.to_str().unwrap();
    for (kind, object) in [
        ("deployments", of_release("bench-coordinator", "coordinator", None)),
        ("deployments", of_release("bench-conductor", "conductor", None)),
        ("deployments", of_release("bench-hosted", "worker", Some("hosted"))),
        ("jobs", of_release("bench-alpha-1", "worker", Some("alpha"))),
        ("pods", of_release("bench-alpha-1-0", "worker", Some("alpha"))),
    ] {
        kubernetes.objects().put(kind, object);
    }
    let drain =
        ["fleet", "workers", "drain", "--release", "bench", "--kubernetes-api", &kubernetes.url, "--account"];
    let mut ends = data.start(&[&drain[..], &[account]].concat());
    ends.until_it_says("waiting for bench-alpha-1-0");
    kubernetes.objects().of.get_mut("pods").unwrap().get_mut("bench-alpha-1-0").unwrap()["status"] =
        json!({"phase": "Succeeded"});
    ends.finish().expect(0).says(&["nothing works any more"]);
    let changes = kubernetes.objects().changes.clone();
    let expected = ["deployments bench-conductor", "deployments bench-hosted", "jobs bench-alpha-1"];
    assert_eq!(changes, expected.map(|object| format!("DELETE {object} Background")));

    kubernetes.objects().refusals.push((reqwest::Method::GET, 403));
    data.kgfleet(&[&drain[..], &[account]].concat()).expect(3).says(&["the test says so"]);
    data.kgfleet(&[&drain[..], &["/nowhere"]].concat()).expect(2).says(&["/nowhere/namespace"]);
    data.kgfleet(&["fleet", "workers", "drain"]).expect(2);
    data.kgfleet(&["fleet", "workers", "drain", "gpu-1", "--release", "bench"]).expect(2);
}
