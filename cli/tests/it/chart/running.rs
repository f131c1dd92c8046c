//! The chart's own commands, run: a benchmark on the pods of the quick values, while the pool is
//! scaled, a node vanishes, and everything is upgraded.

use std::process::Command;
use std::time::Instant;

use domain::control::{BenchmarkView, RunPhase};
use serde_json::{Value, json};

use super::kubelet::{Namespace, Pod};
use super::manifests::{chart_tests, texts};
use crate::harness::Data;
use crate::harness::process::{Finished, finish, kgfleet};

const DIALOGUES: u64 = 1800;

/// Pods of the standing pool.
const PODS: usize = 8;

/// Where `tests/setup` installs Helm's library.
const PYTHON: &str = "../target/chart-venv/bin/python";

/// A network of the loopback interface that no other test of this machine uses.
fn network() -> String {
    let id = std::process::id();
    format!("127.{}.{}", 100 + (id >> 8) % 100, id % 256)
}

/// The release, rendered with certificates for these addresses; none without Helm's library.
fn rendered(data: &Data, network: &str) -> Option<Namespace> {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = manifest.join(PYTHON);
    if !python.exists() {
        crate::harness::skip("rendering the chart needs Helm's library: tests/setup installs it");
        return None;
    }
    let coordinators = [format!("{network}.2"), format!("{network}.3")];
    let over = json!({"tls": {"ipAddresses": coordinators}}).to_string();
    let mut command = Command::new(python);
    command
        .arg(chart_tests().join("check.py"))
        .arg("render")
        .arg(chart_tests().join("values/quick.yaml"))
        .arg(over);
    let lines = finish(&mut command).expect(0).stdout;
    let mut objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    objects.extend(made_secrets(&objects));
    let url = |address: &String| format!("https://{address}:7700");
    let names = vec![
        ("https://kgfleet-coordinator.bench.svc:7700".to_owned(), coordinators.each_ref().map(url).join(",")),
        ("kgfleet-redis.bench.svc".to_owned(), format!("{network}.9")),
    ];
    Some(Namespace { folder: data.path().to_owned(), objects, names })
}

/// The Secrets that the chart's Job makes before anything else starts.
fn made_secrets(objects: &[Value]) -> Vec<Value> {
    let is_maker =
        |object: &&Value| object["kind"] == "Job" && object["metadata"]["name"] == "kgfleet-secrets";
    let job = objects.iter().find(is_maker).expect("a Job that makes Secrets");
    let mut command = kgfleet();
    command.args(texts(&job["spec"]["template"]["spec"]["containers"][0]["args"])).arg("--print");
    let list = finish(&mut command).expect(0).json();
    list["items"].as_array().unwrap().clone()
}

/// The pods of the release.
struct Cluster<'a> {
    namespace: &'a Namespace,
    network: &'a str,
    coordinators: Vec<Pod>,
    workers: Vec<Pod>,
    started: u32,
    run: String,
    began: Instant,
}

impl Cluster<'_> {
    fn spec(&self, deployment: &str) -> Value {
        self.namespace.object("Deployment", deployment)["spec"]["template"]["spec"].clone()
    }

    fn add_coordinator(&mut self, last: u32) {
        self.started += 1;
        let name = format!("kgfleet-coordinator-{}", self.started);
        let pod = self.namespace.start(
            &name,
            &format!("{}.{last}", self.network),
            &self.spec("kgfleet-coordinator"),
        );
        self.coordinators.push(pod);
    }

    fn add_worker(&mut self) {
        self.started += 1;
        let name = format!("kgfleet-sim-{}", self.started);
        let address = format!("{}.{}", self.network, 20 + self.started);
        self.workers.push(self.namespace.start(&name, &address, &self.spec("kgfleet-sim")));
    }

    /// Brings the pool to so many pods, as `kubectl scale` would.
    fn scale(&mut self, wanted: usize) {
        while self.workers.len() < wanted {
            self.add_worker();
        }
        while self.workers.len() > wanted {
            self.workers.pop().unwrap().stop();
        }
    }

    /// `kgfleet` as an operator from outside, with the Secrets that the chart made.
    fn operator(&self, arguments: &[&str]) -> Finished {
        let secret = |name: &str, key: &str| {
            let file = self.namespace.folder.join(key);
            let text = &self.namespace.object("Secret", name)["stringData"][key];
            std::fs::write(&file, text.as_str().unwrap()).unwrap();
            file
        };
        let mut command = kgfleet();
        command
            .args(arguments)
            .env("KGFLEET_COORDINATOR", format!("https://{}:7700", self.coordinators[0].address));
        command.env("KGFLEET_TOKEN_FILE", secret("kgfleet-auth", "operator.token"));
        command.env("KGFLEET_CA", secret("kgfleet-tls", "ca.crt"));
        finish(&mut command)
    }

    fn view(&self) -> BenchmarkView {
        serde_json::from_value(self.operator(&["status", &self.run, "--json"]).expect(0).json()).unwrap()
    }

    /// Waits until so many dialogues have a record.
    fn until_done(&self, dialogues: u64) {
        while self.view().done() < dialogues {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    fn say(&self, what: &str) {
        let (done, pods) = (self.view().done(), self.workers.len());
        eprintln!("{:6.1} s  {done:4} dialogues  {pods} pods  {what}", self.began.elapsed().as_secs_f64());
    }
}

#[test]
fn a_benchmark_on_the_charts_own_commands_survives_scaling_node_loss_and_upgrade() {
    let data = Data::new();
    let network = network();
    let Some(namespace) = rendered(&data, &network) else { return };
    if Command::new("redis-server").arg("--version").output().is_err() {
        crate::harness::skip("no redis-server");
        return;
    }
    let redis = namespace.object("Deployment", "kgfleet-redis")["spec"]["template"]["spec"].clone();
    // The file says where Redis keeps its data; as a process it needs the folder of this test, and its address.
    let mut redis_namespace =
        Namespace { objects: namespace.objects.clone(), names: namespace.names.clone(), ..namespace };
    let kept = data.path().join("kgfleet-redis-1/data");
    for object in &mut redis_namespace.objects {
        if let Some(text) = object["stringData"]["redis.conf"].as_str() {
            let text = text.replace("dir /data", &format!("dir {}\nbind {network}.9", kept.display()));
            object["stringData"]["redis.conf"] = Value::from(text);
        }
    }
    let namespace = redis_namespace;
    let _redis = namespace.start("kgfleet-redis-1", &format!("{network}.9"), &redis);

    let mut cluster = Cluster {
        namespace: &namespace,
        network: &network,
        coordinators: Vec::new(),
        workers: Vec::new(),
        started: 0,
        run: String::new(),
        began: Instant::now(),
    };
    assert_eq!(namespace.object("Deployment", "kgfleet-coordinator")["spec"]["replicas"], 2);
    cluster.add_coordinator(2);
    cluster.add_coordinator(3);
    assert_eq!(namespace.object("Deployment", "kgfleet-sim")["spec"]["replicas"], PODS);
    cluster.scale(1);

    let submits = |object: &&Value| {
        object["kind"] == "Job" && object["spec"]["template"]["spec"]["containers"][0]["name"] == "submit"
    };
    let job = namespace.objects.iter().find(submits).unwrap();
    let submitted = namespace.run("submit", &job["spec"]["template"]["spec"]).expect(0);
    cluster.run = submitted.stdout.trim().to_owned();
    cluster.began = Instant::now();
    cluster.until_done(40);
    cluster.say("with one pod");

    cluster.scale(PODS);
    cluster.say("eight pods are ready");
    cluster.until_done(cluster.view().done() + 100);
    cluster.say("a hundred dialogues later; a node is cut off");
    cluster.workers.remove(3).cut_off();
    cluster.scale(PODS);
    cluster.until_done(cluster.view().done() + 100);
    cluster.say("another pod in its place, and a hundred dialogues later; the upgrade begins");
    for last in [2, 3] {
        cluster.coordinators.remove(0).stop();
        cluster.add_coordinator(last);
    }
    for _ in 0..2 {
        cluster.workers.remove(0).stop();
        cluster.add_worker();
    }
    cluster.say("upgraded");
    while cluster.view().phase != RunPhase::Finished {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    cluster.say("finished");

    let view = cluster.view();
    assert_eq!((view.planned, view.scored, view.failed), (DIALOGUES, DIALOGUES, 0));
    let test = namespace.object("Pod", "kgfleet-test");
    namespace.run("helm-test", &test["spec"]).expect(0).prints(&["kgfleet-sim-"]);
    while let Some(worker) = cluster.workers.pop() {
        worker.stop();
    }
    cluster.coordinators.drain(..).for_each(Pod::stop);
    let records = namespace.claim("kgfleet-data");
    let verify = ["verify", &cluster.run, "--data-dir", records.to_str().unwrap()];
    finish(kgfleet().args(verify)).expect(0);
}
