//! A night with all open models of the paper's matrix: a real conductor, a real coordinator, real workers beside a simulator, and a
//! stand-in for Kubernetes. Its scheduler and kubelets are the test, which puts pods on two nodes one by one, as a bare scheduler
//! does, runs what the pods say, and says how it ended. Nobody gives a command in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use domain::control::RunPhase;
use serde::Deserialize;
use serde_json::{Value, json};
use vllm_sim::{ModelConfig, SimConfig};

use crate::conducting::{account, conductor, pool_of};
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Finished, NT_TASK, Server, wait_until};
use harness::kubernetes_api::KubernetesServer;

const GPUS_PER_NODE: u32 = 8;
const NODES: usize = 2;

/// Dialogues of each model.
const DIALOGUES: u64 = 2;

/// The night takes minutes. Reached only if something is stuck.
const NIGHT_MAX: Duration = Duration::from_secs(900);

/// Between two looks for new Jobs while servers run.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
struct ModelTable {
    models: BTreeMap<String, ModelSize>,
}

#[derive(Deserialize)]
struct ModelSize {
    gpus: u32,
}

/// Name and GPUs of every model of the shipped table.
fn models() -> BTreeMap<String, u32> {
    let table: ModelTable = toml::from_str(include_str!("../../../deploy/launch/models.toml")).unwrap();
    table.models.into_iter().map(|(name, size)| (name, size.gpus)).collect()
}

/// A pool of a model, whose servers take as many nodes as they have to.
fn numbered_pool(number: usize, model: &str, gpus: u32) -> Value {
    let (name, parts) = (format!("m{number:02}"), gpus.div_ceil(GPUS_PER_NODE));
    let estimate = json!({
        "gpus": gpus / parts, "parts": parts, "servers": 1, "load_seconds": 5, "dialogues_per_second": 1,
    });
    pool_of(&name, model, parts, &estimate)
}

/// A server on its way to nodes, or on them.
struct PlacedServer {
    gpus: u32,
    parts: u32,
    /// The node of each part that has one.
    nodes: Vec<usize>,
}

impl PlacedServer {
    fn is_whole(&self) -> bool {
        self.nodes.len() == self.parts as usize
    }
}

/// The name of a Job, and how its server ended.
type Ended = (String, Finished);

/// Scheduler, kubelets and Job controller.
struct UnattendedNight<'a> {
    cluster: &'a Cluster,
    coordinator: &'a Coordinator,
    kubernetes: &'a KubernetesServer,
    simulator: &'a Server,
    free: [u32; NODES],
    /// Servers that have not ended, by the name of the Job.
    there: BTreeMap<String, PlacedServer>,
    ended: BTreeSet<String>,
    ends: (mpsc::Sender<Ended>, mpsc::Receiver<Ended>),
}

impl UnattendedNight<'_> {
    /// Takes new Jobs, and puts pods on nodes one by one. A server whose pods all have nodes begins.
    fn schedule(&mut self) {
        let mut begin = Vec::new();
        let mut objects = self.kubernetes.objects();
        let jobs: Vec<Value> = objects.all("jobs").into_iter().cloned().collect();
        for job in jobs {
            let name = job["metadata"]["name"].as_str().unwrap().to_owned();
            if self.ended.contains(&name) {
                continue;
            }
            let pool = job["metadata"]["labels"]["kgfleet/pool"].as_str().unwrap();
            let template = &objects.of["cronjobs"][&format!("bench-{pool}")];
            let estimate: Value = serde_json::from_str(
                template["metadata"]["annotations"]["kgfleet/estimate"].as_str().unwrap(),
            )
            .unwrap();
            let number = |key: &str| u32::try_from(estimate[key].as_u64().unwrap()).unwrap();
            let server = self.there.entry(name.clone()).or_insert_with(|| PlacedServer {
                gpus: number("gpus"),
                parts: number("parts"),
                nodes: Vec::new(),
            });
            if server.is_whole() {
                continue;
            }
            while !server.is_whole() {
                let Some(node) = self.free.iter().position(|free| *free >= server.gpus) else { break };
                self.free[node] -= server.gpus;
                let mut labels = job["metadata"]["labels"].clone();
                labels["batch.kubernetes.io/job-name"] = json!(name);
                let scheduled = json!({
                    "type": "PodScheduled", "status": "True",
                    "lastTransitionTime": jiff::Timestamp::now().to_string(),
                });
                let pod = json!({
                    "metadata": {"name": format!("{name}-{}", server.nodes.len()), "labels": labels},
                    "spec": {"nodeName": format!("n{node}")},
                    "status": {"phase": "Running", "conditions": [scheduled]},
                });
                objects.put("pods", pod);
                server.nodes.push(node);
            }
            if server.is_whole() {
                begin.push((name, job["spec"]["template"]["spec"]["containers"][0]["args"].clone()));
            }
        }
        drop(objects);
        let in_use: u32 = self.there.values().map(|server| server.gpus * server.parts).sum();
        assert!(in_use <= GPUS_PER_NODE * NODES as u32, "{in_use} GPUs are asked for at once");
        begin.into_iter().for_each(|(job, arguments)| self.begin(job, &arguments));
    }

    /// Runs the worker of a server; that of another part would only wait for its end.
    fn begin(&self, job: String, arguments: &Value) {
        let words: Vec<&str> =
            arguments.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let more = [&words[1..], &["--concurrency", "2"]].concat();
        let worker = self.cluster.worker_with(
            &format!("{job}-0"),
            self.coordinator.port,
            &self.simulator.url(),
            &more,
        );
        let ends = self.ends.0.clone();
        std::thread::spawn(move || ends.send((job, worker.finish())));
    }

    /// Takes the end of a server, if one comes soon.
    fn hear_of_an_end(&mut self) {
        let Ok((job, finished)) = self.ends.1.recv_timeout(LOOK_EVERY) else { return };
        finished.expect(0);
        let server = self.there.remove(&job).unwrap();
        server.nodes.iter().for_each(|node| self.free[*node] += server.gpus);
        let mut objects = self.kubernetes.objects();
        for part in 0..server.parts {
            let pod = format!("{job}-{part}");
            objects.of.get_mut("pods").unwrap().get_mut(&pod).unwrap()["status"]["phase"] =
                json!("Succeeded");
        }
        let complete = json!({
            "type": "Complete", "status": "True", "lastTransitionTime": jiff::Timestamp::now().to_string(),
        });
        objects.of.get_mut("jobs").unwrap().get_mut(&job).unwrap()["status"] =
            json!({"conditions": [complete]});
        self.ended.insert(job);
    }
}

#[test]
#[ignore = "takes minutes: deploy/release-check simulation"]
fn thirty_one_pools_end_unattended_on_two_nodes() {
    let Some(cluster) = Cluster::start() else { return };
    let models = models();
    assert_eq!(models.len(), 31, "the open models of the paper's matrix");
    let (kubernetes, account) = (KubernetesServer::start(), account(cluster.data.path()));
    for (number, (model, gpus)) in models.iter().enumerate() {
        kubernetes.objects().put("cronjobs", numbered_pool(number, model, *gpus));
    }
    let simulator = Server::with(SimConfig::new(models.keys().map(ModelConfig::new).collect()));
    let coordinator = cluster.coordinator();
    let gpus = (GPUS_PER_NODE * NODES as u32).to_string();
    let more = ["--gpus", &gpus, "--gpus-per-node", &GPUS_PER_NODE.to_string()];
    let mut conductor = conductor(&cluster, &coordinator, &kubernetes, &account, &more);
    conductor.go_on_listening();
    let tables = models.keys().enumerate().map(|(number, model)| {
        format!(
            "[[models]]\nlabel = 'l{number:02}'\nmodel = '{model}'\nconnector = 'openai-compatible'\nstream = false\n"
        )
    });
    let text = format!(
        "name = 'night'\nseed = 5\niterations = {DIALOGUES}\ntasks = ['{NT_TASK}']\n{}",
        tables.collect::<String>()
    );
    let configuration = cluster.data.write("night.toml", text);
    let submitted = cluster.kgfleet(&coordinator, &["submit", configuration.to_str().unwrap()]).expect(0);
    let run = submitted.stdout.trim().to_owned();
    // Before a pod has a node, the run says for what each of its models waits.
    wait_until("the run shows its pools", || cluster.status(&coordinator, &run).pools.len() == 31);
    let waits = cluster.status(&coordinator, &run);
    assert!(waits.models.iter().all(|model| model.blocked.is_some() && model.loading), "{waits:?}");

    let began = Instant::now();
    let mut night = UnattendedNight {
        cluster: &cluster,
        coordinator: &coordinator,
        kubernetes: &kubernetes,
        simulator: &simulator,
        free: [GPUS_PER_NODE; NODES],
        there: BTreeMap::new(),
        ended: BTreeSet::new(),
        ends: mpsc::channel(),
    };
    while night.ended.len() < 31 || !night.there.is_empty() {
        assert!(began.elapsed() < NIGHT_MAX, "ended: {:?}", night.ended);
        night.schedule();
        night.hear_of_an_end();
    }
    let view = cluster.status(&coordinator, &run);
    assert_eq!((view.phase, view.scored, view.failed), (RunPhase::Finished, 31 * DIALOGUES, 0));
    let changes = kubernetes.objects().changes.clone();
    assert!(changes.iter().all(|change| change.starts_with("POST jobs bench-m")), "{changes:?}");

    // Each server has left what it took, which outlives all that was there.
    let costs = || {
        cluster.kgfleet(&coordinator, &["launch", "--costs", "--release", "bench", "--json"]).expect(0).json()
    };
    wait_until("the conductor has handed over what was left", || {
        costs()["servers"].as_array().unwrap().len() == changes.len()
    });
    let told = costs();
    assert_eq!(told["models"].as_array().unwrap().len(), 31);
    let dialogues =
        told["servers"].as_array().unwrap().iter().map(|server| server["dialogues"].as_u64().unwrap());
    assert_eq!(dialogues.sum::<u64>(), 31 * DIALOGUES);
    assert!(told["gpu_hours"]["work"].as_f64().unwrap() > 0.0 && told["gpu_hours"]["lost"] == 0.0, "{told}");
    eprintln!("{} servers of 31 pools ended within {:.0} s", changes.len(), began.elapsed().as_secs_f64());
}
