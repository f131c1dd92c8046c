//! Replicas of a model that do not answer alike, as their worker and the doctor see them.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::cluster::Coordinator;
use crate::harness::server::MODEL;
use crate::harness::{Cluster, Running, free_port};

/// Tasks of five cases each: a case goes to one replica, if it can.
const TASKS: [&str; 3] = ["Text2AnswerListOrga-*", "Sparql2AnswerListOrga-*", "RdfSyntaxFixList-*"];

const ITERATIONS: u32 = 20;

/// A simulator of the model, started with these arguments, and its address.
fn replica(cluster: &Cluster, arguments: &[&str]) -> (Running, String) {
    let listen = format!("127.0.0.1:{}", free_port());
    let simulator = cluster.data.start(&[&["simulate", "--listen", &listen], arguments].concat());
    (simulator, format!("http://{listen}/v1"))
}

/// A worker of two replicas that asks them the canary prompts and logs warnings.
fn worker(cluster: &Cluster, name: &str, coordinator: &Coordinator, replicas: [&str; 2]) -> Running {
    let more = ["--canaries", "on", "--concurrency", "4"];
    cluster.worker_logging(name, coordinator.port, &replicas.join(","), &more, "warn")
}

/// What the doctor says of drift in a benchmark that is worked off now.
fn drifts(cluster: &Cluster, coordinator: &Coordinator, iterations: u32) -> Vec<String> {
    let run = cluster.submit(coordinator, &TASKS, iterations);
    cluster.watch(coordinator, &run).1.expect(0);
    let told = cluster.data.kgfleet(&["doctor", &run, "--json"]).expect(0).json();
    let findings = told["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    findings.filter(|found| found["cause"] == "drift").map(|found| text(&found["message"])).collect()
}

#[test]
fn a_replica_that_answers_nonsense_is_named_by_its_worker_and_by_the_doctor() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.coordinator();
    // It knows everything, so that no chance makes its replicas differ.
    let knowing = ["--model", MODEL, "--skill", "1", "--seed", "5"];
    let (_first, first) = replica(&cluster, &knowing);
    let (_second, second) = replica(&cluster, &knowing);
    let healthy = worker(&cluster, "healthy", &coordinator, [&first, &second]);
    assert_eq!(drifts(&cluster, &coordinator, ITERATIONS), [""; 0]);
    healthy.signal(Signal::TERM);
    let healthy = healthy.finish().expect(0);
    assert!(!healthy.stderr.contains("canary"), "{healthy}");

    let nonsense = format!("[[models]]\nname = '{MODEL}'\nanswers = {{ kind = 'garbage', tokens = 50 }}\n");
    let nonsense = cluster.data.write("nonsense.toml", nonsense);
    let (_third, third) = replica(&cluster, &[nonsense.to_str().unwrap()]);
    let mut drifting = worker(&cluster, "drifting", &coordinator, [&first, &third]);
    drifting.until_it_says("of 8 canary prompts otherwise than sim at drifting:");
    drifting.go_on_listening();
    let found = drifts(&cluster, &coordinator, ITERATIONS + 1);
    assert_eq!(found.len(), 2, "{found:?}");
    let (by_scores, by_canaries) = (&found[0], &found[1]);
    assert!(by_scores.starts_with("model sim scores ") && by_scores.contains(": p = 0.00"), "{by_scores}");
    assert!(by_scores.contains(&format!("{third} asked by drifting")), "{by_scores}");
    assert!(by_canaries.contains(&format!("{third} asked by drifting (8 of 8)")), "{by_canaries}");
}
