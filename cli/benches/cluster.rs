//! A cluster of real processes: `cargo bench -p cli --bench cluster`.
//!
//! Redis, simulators, a coordinator and workers, all on the processors of this machine. Prints figures with the bound
//! beside them and asserts nothing. Needs redis-server.
//!
//! Parts, all by default: `-- --matrix` (the published matrix: 41 simulated models, 26 tasks, 45 500 dialogues, 4 workers),
//! `-- --light` (1 000 workers without models), `-- --million` (a million dialogues through such workers), `-- --access`
//! (pairs of small runs with and without TLS and tokens).

mod measure;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use measure::{KGFLEET, Simulator, children, cpu, line, memory};
use queue::testing::RedisServer;

/// Models of the published matrix with 20 iterations of every task, and with 50.
const PROPRIETARY: usize = 10;
const OPEN: usize = 31;
/// Its tasks.
const TASKS: usize = 26;
/// Workers of the first part, and simulators.
const WORKERS: usize = 4;
const SIMULATORS: usize = 2;
/// Workers without models, many and few.
const LIGHT_WORKERS: usize = 1_000;
const LIGHT_WORKERS_OF_A_MILLION: usize = 32;
/// Pairs of runs with and without access control, and models and iterations of each run.
const PAIRS: usize = 12;
const MODELS_OF_A_PAIR: usize = 8;
const ITERATIONS_OF_A_PAIR: u32 = 20;
/// Bounds of a mean of [`PAIRS`] values with 95 % confidence, in standard errors: Student's t for 11 degrees of freedom.
const STANDARD_ERRORS: f64 = 2.201;
/// Certificates for this machine, signed by an authority of their own.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/testdata/tls/");

/// Between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(200);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let named = |part: &str| arguments.iter().any(|argument| argument == part);
    let all = !["--matrix", "--light", "--million", "--access"].into_iter().any(named);
    println!("{} processors", std::thread::available_parallelism().map_or(1, usize::from));
    if all || named("--matrix") {
        matrix();
    }
    if all || named("--light") {
        light("a thousand workers without models", LIGHT_WORKERS, 45_500);
    }
    if all || named("--million") {
        light("a million dialogues", LIGHT_WORKERS_OF_A_MILLION, 1_000_000);
    }
    if all || named("--access") {
        access();
    }
}

/// A process that is ended when dropped.
struct Process(Child);

impl Process {
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    fn start_with(arguments: &[&str], environment: &[(&str, String)]) -> Self {
        let log = if std::env::var_os("KGFLEET_LOG").is_some() { Stdio::inherit() } else { Stdio::null() };
        let mut command = Command::new(KGFLEET);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        let child = command.stdout(Stdio::null()).stderr(log).spawn();
        Self(child.expect("the binary starts"))
    }

    /// Its processor time and that of its children, so far.
    fn cpu(&self) -> (Duration, Duration) {
        let own = cpu(self.0.id()).unwrap_or_default();
        (own, children(self.0.id()).into_iter().filter_map(cpu).sum())
    }

    fn resident(&self) -> (u64, u64) {
        memory(self.0.id()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Redis and a coordinator.
struct Fleet {
    redis: RedisServer,
    coordinator: Process,
    url: String,
    folder: tempfile::TempDir,
    /// Variables of workers and of people: who they are, and whom they trust.
    of_workers: Vec<(&'static str, String)>,
    of_people: Vec<(&'static str, String)>,
}

impl Fleet {
    fn start() -> Self {
        Self::behind(false)
    }

    /// The same behind TLS and tokens.
    fn behind(door: bool) -> Self {
        let redis = RedisServer::start_with(&["--appendonly", "yes", "--save", ""]).expect("redis-server");
        let folder = tempfile::tempdir().expect("a folder");
        let port = queue::testing::free_port();
        let listen = format!("127.0.0.1:{port}");
        let data = folder.path().join("data");
        let (tokens, ca) = (folder.path().join("tokens.toml"), format!("{TLS}ca.pem"));
        let tokens = tokens.to_str().expect("UTF-8");
        let known = |name: &str, more: &[&str]| -> Vec<(&'static str, String)> {
            if !door {
                return Vec::new();
            }
            let arguments = [&["token", "new", "--name", name, "--append", tokens], more].concat();
            let token = Command::new(KGFLEET).args(arguments).output().expect("the binary starts").stdout;
            let file = folder.path().join(name);
            std::fs::write(&file, token).expect("a token");
            let file = file.to_str().expect("UTF-8").to_owned();
            vec![("KGFLEET_TOKEN_FILE", file), ("KGFLEET_CA", ca.clone())]
        };
        if door {
            std::fs::write(tokens, "").expect("a list of tokens");
        }
        let of_workers = known("pool", &["--role", "worker", "--workers", "*"]);
        let of_people = known("operator", &["--role", "operator"]);
        let (certificate, key) = (format!("{TLS}server.pem"), format!("{TLS}server.key"));
        let mut arguments = vec![
            "coordinator",
            "--listen",
            &listen,
            "--http",
            "127.0.0.1:0",
            "--data-dir",
            data.to_str().expect("UTF-8"),
        ];
        let url = redis.url();
        arguments.extend(["--queue", &url]);
        if door {
            arguments.extend(["--tls-cert", &certificate, "--tls-key", &key, "--tokens", tokens]);
        }
        let coordinator = Process::start(&arguments);
        while std::net::TcpStream::connect(&listen).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("{}://{listen}", if door { "https" } else { "http" });
        Self { redis, coordinator, url, folder, of_workers, of_people }
    }

    fn worker(&self, number: usize, endpoint: &str) -> Process {
        let home = self.folder.path().join(format!("worker-{number}"));
        let arguments = [
            "worker",
            "--coordinator",
            &self.url,
            "--name",
            &format!("worker-{number}"),
            "--endpoint",
            endpoint,
            "--evaluators",
            "1",
            "--work-dir",
            home.to_str().expect("UTF-8"),
        ];
        Process::start_with(&arguments, &self.of_workers)
    }

    /// Submits a configuration and follows it to its end; its last view.
    fn run(&self, configuration: &Path, mut look: impl FnMut()) -> serde_json::Value {
        let submitted = Command::new(KGFLEET)
            .args(["submit", configuration.to_str().expect("UTF-8"), "--coordinator", &self.url])
            .envs(self.of_people.iter().cloned())
            .stderr(Stdio::inherit())
            .output()
            .expect("the binary starts");
        let run = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
        let mut watch = Command::new(KGFLEET)
            .args(["watch", &run, "--json", "--coordinator", &self.url])
            .envs(self.of_people.iter().cloned())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = watch.stdout.take().expect("a pipe");
        let listener = std::thread::spawn(move || {
            let lines = std::io::BufReader::new(stdout).lines().map_while(Result::ok);
            lines.last().unwrap_or_default()
        });
        while watch.try_wait().expect("a child of ours").is_none() {
            look();
            std::thread::sleep(LOOK_EVERY);
        }
        let last = listener.join().expect("the listener");
        serde_json::from_str(last.lines().next().unwrap_or_default()).expect("a view of the run")
    }
}

fn configuration(folder: &Path, models: &[(String, u32)]) -> PathBuf {
    let mut text = "name = \"bench\"\nseed = 1\niterations = 20\n".to_owned();
    for (label, iterations) in models {
        text.push_str(&format!(
            "[[models]]\nlabel = \"{label}\"\nconnector = \"simulated\"\nskill = 0.6\niterations = {iterations}\n"
        ));
    }
    let path = folder.join("bench.toml");
    std::fs::write(&path, text).expect("a configuration");
    path
}

fn matrix() {
    let iterations = |number: usize| if number < PROPRIETARY { 20 } else { 50 };
    let models: Vec<(String, u32)> =
        (0..PROPRIETARY + OPEN).map(|number| (format!("model-{number:02}"), iterations(number))).collect();
    let dialogues: u64 =
        models.iter().map(|(_, iterations)| u64::from(*iterations)).sum::<u64>() * TASKS as u64;
    println!("\n{dialogues} dialogues, {} models, {WORKERS} workers, {SIMULATORS} simulators", models.len());
    let fleet = Fleet::start();
    let configuration = configuration(fleet.folder.path(), &models);
    let path = configuration.to_str().expect("UTF-8");
    let simulators: Vec<Simulator> =
        (0..SIMULATORS).map(|_| Simulator::start(&["--benchmark", path])).collect();
    let workers: Vec<Process> =
        (0..WORKERS).map(|n| fleet.worker(n, &simulators[n % SIMULATORS].base_url)).collect();
    let began = Instant::now();
    let mut first = None;
    let view = fleet.run(&configuration, || {
        if first.is_none() && workers.iter().any(|worker| worker.cpu().1 > Duration::ZERO) {
            first = Some(began.elapsed());
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let each = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3 / dialogues as f64);
    let count = |name: &str| view.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    line(
        "dialogues scored, failed",
        &format!("{}, {}", count("scored"), count("failed")),
        &format!("{dialogues}, 0"),
    );
    line(
        "dialogues per second, from submission to end",
        &format!("{:.0}", dialogues as f64 / seconds),
        "at least 1 500",
    );
    let (coordinator, _) = fleet.coordinator.cpu();
    line("processor time per dialogue: coordinator", &each(coordinator), "");
    line("  redis", &each(cpu(fleet.redis.pid()).unwrap_or_default()), "");
    for (number, worker) in workers.iter().enumerate() {
        let (own, evaluation) = worker.cpu();
        line(
            &format!("  worker {number}, its evaluation"),
            &format!("{}, {}", each(own), each(evaluation)),
            "",
        );
    }
    for (number, simulator) in simulators.iter().enumerate() {
        line(&format!("  simulator {number}"), &each(simulator.cpu()), "");
    }
    line(
        "coordinator, highest resident memory",
        &format!("{} MB", fleet.coordinator.resident().1 >> 20),
        "below 200 MB",
    );
    for worker in &workers {
        line("worker, highest resident memory", &format!("{} MB", worker.resident().1 >> 20), "");
    }
}

fn light(what: &str, workers: usize, dialogues: u64) {
    let models: Vec<(String, u32)> = {
        let of_each = 10;
        let iterations = dialogues.div_ceil(TASKS as u64 * of_each);
        (0..of_each).map(|n| (format!("light-{n}"), u32::try_from(iterations).expect("a count"))).collect()
    };
    let planned: u64 =
        models.iter().map(|(_, iterations)| u64::from(*iterations)).sum::<u64>() * TASKS as u64;
    println!("\n{what}: {planned} dialogues, {workers} workers");
    let fleet = Fleet::start();
    let configuration = configuration(fleet.folder.path(), &models);
    let (recorded, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for number in 0..workers {
        let model = models[number % models.len()].0.clone();
        let (recorded, stop) = (Arc::clone(&recorded), Arc::clone(&stop));
        runtime.spawn(measure::light::work(number, fleet.url.clone(), model, recorded, stop));
    }
    let began = Instant::now();
    let mut resident = Vec::new();
    let view = fleet.run(&configuration, || {
        resident.push((recorded.load(Ordering::Relaxed), fleet.coordinator.resident().0));
    });
    let seconds = began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    runtime.shutdown_background();
    let count = |name: &str| view.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    line("dialogues scored", &count("scored").to_string(), &planned.to_string());
    line("records committed per second", &format!("{:.0}", planned as f64 / seconds), "");
    let each = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3 / planned as f64);
    line("processor time per dialogue: coordinator", &each(fleet.coordinator.cpu().0), "");
    line("  redis", &each(cpu(fleet.redis.pid()).unwrap_or_default()), "");
    for percent in [5, 25, 50, 75, 100] {
        let at = planned * percent / 100;
        let found = resident.iter().find(|(done, _)| *done >= at).or(resident.last());
        let shown = found.map_or(0, |(_, bytes)| bytes >> 20);
        line(&format!("coordinator's memory at {percent} %"), &format!("{shown} MB"), "flat, below 200 MB");
    }
}

/// Processor seconds of a small run: of Redis, the coordinator, the workers and their evaluation.
fn seconds_of_a_run(door: bool) -> f64 {
    let models: Vec<(String, u32)> =
        (0..MODELS_OF_A_PAIR).map(|number| (format!("model-{number}"), ITERATIONS_OF_A_PAIR)).collect();
    let fleet = Fleet::behind(door);
    let configuration = configuration(fleet.folder.path(), &models);
    let simulator = Simulator::start(&["--benchmark", configuration.to_str().expect("UTF-8")]);
    let workers: Vec<Process> = (0..WORKERS).map(|n| fleet.worker(n, &simulator.base_url)).collect();
    let view = fleet.run(&configuration, || ());
    let dialogues = (MODELS_OF_A_PAIR * TASKS) as u64 * u64::from(ITERATIONS_OF_A_PAIR);
    assert_eq!(view.get("scored").and_then(serde_json::Value::as_u64), Some(dialogues), "all are scored");
    let of_workers = workers.iter().map(Process::cpu).map(|(own, evaluation)| own + evaluation);
    let redis = cpu(fleet.redis.pid()).unwrap_or_default();
    (of_workers.sum::<Duration>() + fleet.coordinator.cpu().0 + redis).as_secs_f64()
}

/// What it costs that everybody shows who they are and nobody can listen: pairs of runs one after the other, so that
/// what else the machine does weighs on both, each time in the other order.
fn access() {
    println!("\n{PAIRS} pairs of runs with and without TLS and tokens");
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        let mut seconds = [0.0; 2];
        for turn in 0..2 {
            let door = (pair + turn) % 2 == 1;
            seconds[usize::from(door)] = seconds_of_a_run(door);
        }
        let [without, with] = seconds;
        line(&format!("pair {pair}: without, with"), &format!("{without:.2} s, {with:.2} s"), "");
        ratios.push((with / without).ln());
    }
    let mean = ratios.iter().sum::<f64>() / PAIRS as f64;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (PAIRS - 1) as f64;
    let half = STANDARD_ERRORS * (variance / PAIRS as f64).sqrt();
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * ratio.exp_m1());
    let interval = format!("{} to {}, with 95 % confidence", percent(mean - half), percent(mean + half));
    line(
        "processor seconds with TLS and tokens",
        &percent(mean),
        &format!("{interval}; expected: below 3 %"),
    );
}
