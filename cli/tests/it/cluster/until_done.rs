//! Workers that end when their models have no work left: nothing is lost, nobody stays for ever or leaves too early.

use std::path::Path;

use domain::control::RunPhase;
use rustix::process::Signal;

use super::winners;
use crate::harness::cluster::Coordinator;
use crate::harness::process::is_alive;
use crate::harness::server::MODEL;
use crate::harness::{Cluster, FACTS, NT_TASK, Running, Server, TURTLE_TASK, free_port, judged_facts};

const TASKS: [&str; 2] = [NT_TASK, TURTLE_TASK];

/// What every worker here is started with.
const UNTIL_DONE: [&str; 6] = ["--until-done", "--model", MODEL, "--leave-surplus", "--concurrency", "4"];

/// A worker that ends by itself.
fn until_done(cluster: &Cluster, name: &str, coordinator: &Coordinator, server: &Server) -> Running {
    cluster.worker_with(name, coordinator.port, &server.url(), &UNTIL_DONE)
}

#[test]
fn a_run_is_worked_off_and_its_servers_end() {
    let Some(cluster) = Cluster::start() else { return };
    let server = Server::start();
    let coordinator = cluster.coordinator();
    let run = cluster.submit(&coordinator, &TASKS, 20);
    let workers = ["one", "two"].map(|name| until_done(&cluster, name, &coordinator, &server));
    for worker in workers {
        worker.finish().expect(0).says(&["ended"]);
    }
    // Records say where they were made, and what is not known of it.
    let key = format!("{MODEL}/{NT_TASK}/0");
    let shown = cluster.data.kgfleet(&["show", &run, &key]).expect(0);
    shown.prints(&["program: sha256:", "server: ", "node: ", "revision: unknown"]);
    let record = cluster.data.kgfleet(&["show", &run, &key, "--json"]).json();
    assert!(record["provenance"]["made_at"]["server_version"].is_string(), "{record}");
    let view = cluster.status(&coordinator, &run);
    assert_eq!((view.phase, view.scored), (RunPhase::Finished, 40));
    winners(&cluster, 40);
    // One that comes late is not kept, also while its server does not answer yet.
    until_done(&cluster, "late", &coordinator, &server).finish().expect(0);
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    cluster.worker_with("loading", coordinator.port, &url, &UNTIL_DONE).finish().expect(0);
    // What is added calls for a new one, and so does what is asked again.
    let larger = cluster.configuration(&TASKS, 25);
    let extend = ["submit", larger.to_str().unwrap(), "--extend", &run];
    cluster.kgfleet(&coordinator, &extend).expect(0);
    until_done(&cluster, "again", &coordinator, &server).finish().expect(0);
    assert_eq!(cluster.status(&coordinator, &run).scored, 50);
    winners(&cluster, 50);
}

/// A judged benchmark of simulated models.
fn judged() -> String {
    judged_facts(&[FACTS], 6, &[("middling", 0.5)])
}

/// The simulator of a benchmark as the command of a worker's own server.
fn own_server(benchmark: &Path) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_kgfleet");
    let arguments = ["--", program, "simulate", "--benchmark", benchmark.to_str().unwrap(), "--listen"];
    arguments.iter().map(ToString::to_string).chain(["127.0.0.1:{port}".to_owned()]).collect()
}

/// A worker of these models that starts its server itself.
fn with_own_server(
    cluster: &Cluster,
    name: &str,
    coordinator: &Coordinator,
    more: &[&str],
    own: &[String],
) -> Running {
    let (work, url) = (cluster.work_dir(name), coordinator.url());
    let head = ["worker", "--fleet", &url, "--name", name, "--evaluators", "1"];
    let folder = ["--work-dir", work.to_str().unwrap()];
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    cluster.data.start(&[&head[..], &folder, more, &own].concat())
}

#[test]
fn a_worker_starts_its_own_server_and_takes_it_along() {
    let Some(cluster) = Cluster::start() else { return };
    let file = cluster.data.write("judged.toml", judged());
    let coordinator = cluster.coordinator();
    cluster.kgfleet(&coordinator, &["submit", file.to_str().unwrap()]).expect(0);
    let targets = cluster.data.path().join("targets.json");
    let more = ["--model", "middling", "--metrics", "127.0.0.1:0", "--targets", targets.to_str().unwrap()];
    let mut worker = with_own_server(&cluster, "own", &coordinator, &more, &own_server(&file));
    worker.until_it_says("the first server answers");
    let written = std::fs::read_to_string(&targets).unwrap();
    assert!(written.contains("kgfleet-worker") && written.contains("middling"), "{written}");
    let children = worker.children();
    worker.signal(Signal::TERM);
    worker.finish().expect(0);
    assert!(!children.is_empty() && children.iter().all(|child| !is_alive(*child)), "{children:?}");
    assert!(!targets.exists());

    // A server that does not come is given up, with what it said.
    let fails = ["--", "sh", "-c", "echo 'CUDA out of memory' >&2; exit 1", "server", "{port}"];
    let fails = fails.map(str::to_owned);
    let more = ["--until-done", "--model", "middling", "--server-wait", "2"];
    let failed = with_own_server(&cluster, "fails", &coordinator, &more, &fails).finish().expect(3);
    failed.says(&["no server for", "CUDA out of memory"]);

    // The parts of a server beside the first take no work.
    let part = ["--rank", "1", "--parts", "2", "--model", "middling", "--until-done"];
    let lives = ["--", "sh", "-c", "echo part $2 >&2; exec sleep 600", "server", "{port}", "{rank}"];
    let mut second = with_own_server(&cluster, "part", &coordinator, &part, &lives.map(str::to_owned));
    second.until_it_says("part 1");
    second.signal(Signal::TERM);
    second.finish().expect(143);
    let lost = with_own_server(&cluster, "lost", &coordinator, &part, &fails).finish().expect(3);
    lost.says(&["CUDA out of memory"]);
}

#[test]
fn options_that_cannot_be_used_are_refused_at_once() {
    let data = crate::harness::Data::new();
    let endpoint = ["worker", "--endpoint", "http://127.0.0.1:1"];
    let refused = |more: &[&str], says: &str| {
        data.kgfleet(&[&endpoint[..], more].concat()).expect(2).says(&[says]);
    };
    refused(&["--until-done"], "--until-done needs --model");
    refused(&["--idle-after", "5"], "--until-done");
    refused(&["--rank", "2", "--parts", "2"], "rank 2 of a server of 2 parts");
    refused(&["--rank-from", "NO_SUCH_RANK", "--parts", "2"], "NO_SUCH_RANK");
    refused(&["--", "vllm", "serve", "--port", "{port}"], "leave out --endpoint");
    data.kgfleet(&["worker", "--", "vllm", "serve"]).expect(2).says(&["{port}"]);
}
