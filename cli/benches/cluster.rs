//! A cluster of real processes: `cargo bench -p cli --bench cluster`.
//!
//! Redis, simulators, a coordinator and workers, all on the processors of this machine. Prints figures with the bound
//! beside them and asserts nothing. Needs redis-server.
//!
//! Parts, all by default: `-- --matrix` (the published matrix: 41 simulated models, 26 tasks, 45 500 dialogues, 4 workers),
//! `-- --beside` (a cluster of two workers beside `kgfleet run`, at the same model), `-- --light` (1 000 workers without
//! models), `-- --million` (a million dialogues through such workers). Only when named: `-- --costs PAIRS`, what metrics, and TLS with tokens cost, over so many interleaved
//! pairs; `--of metrics` or `--of access` measures only that (repeatable), `--iterations N` sets the
//! length of a run: 1 066 dialogues for each, 10 by default.

mod measure;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::RedisServer;
use measure::{KGFLEET, Process, Simulator, cpu, line, watchers};

/// Models of the published matrix with 20 iterations of every task, and with 50.
const PROPRIETARY: usize = 10;
const OPEN: usize = 31;
const TASKS: usize = 26;
/// Workers of the first part, and simulators.
const WORKERS: usize = 4;
const SIMULATORS: usize = 2;
/// Workers of the second part, the dialogues in flight of both sides, and iterations.
const BESIDE_WORKERS: usize = 2;
const BESIDE_IN_FLIGHT: usize = 64;
const BESIDE_ITERATIONS: u32 = 12_000;
/// Workers without models, many and few.
const LIGHT_WORKERS: usize = 1_000;
const LIGHT_WORKERS_OF_A_MILLION: usize = 32;
/// Workers of each run of a pair, and iterations where the command names none.
const COSTS_WORKERS: usize = 2;
const COSTS_ITERATIONS: u32 = 10;
/// Certificates for this machine, signed by an authority of their own.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/testdata/tls/");

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let named = |part: &str| arguments.iter().any(|argument| argument == part);
    let all = !["--matrix", "--beside", "--light", "--million"].into_iter().any(named);
    println!("{} processors", std::thread::available_parallelism().map_or(1, usize::from));
    let values = |option: &str| -> Vec<&str> {
        let pairs = arguments.windows(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| pair[1].as_str()).collect()
    };
    if named("--costs") {
        let number = |option: &str| values(option).first().and_then(|number| number.parse().ok());
        let pairs: u32 = number("--costs").unwrap_or(5).max(2);
        return costs(pairs, number("--iterations").unwrap_or(COSTS_ITERATIONS), &values("--of"));
    }
    if all || named("--matrix") {
        matrix();
    }
    if all || named("--beside") {
        beside_run();
    }
    if all || named("--light") {
        light("a thousand workers without models", LIGHT_WORKERS, 45_500);
    }
    if all || named("--million") {
        light("a million dialogues", LIGHT_WORKERS_OF_A_MILLION, 1_000_000);
    }
}

/// Redis and a coordinator.
struct Fleet {
    redis: RedisServer,
    coordinator: Process,
    http_port: u16,
    url: String,
    folder: tempfile::TempDir,
    /// What workers and people add to their commands, where the coordinator asks who they are.
    of_workers: Vec<String>,
    of_people: Vec<String>,
}

impl Fleet {
    fn start() -> Self {
        Self::start_behind(false)
    }

    /// Behind TLS and tokens where it is guarded.
    fn start_behind(guarded: bool) -> Self {
        let redis = RedisServer::start_with(&["--appendonly", "yes", "--save", ""]).expect("redis-server");
        let folder = tempfile::tempdir().expect("a folder");
        let port = harness::free_port();
        let listen = format!("127.0.0.1:{port}");
        let data = folder.path().join("data");
        let http_port = harness::free_port();
        let (http, queue) = (format!("127.0.0.1:{http_port}"), redis.url());
        let data = data.to_str().expect("UTF-8");
        let arguments =
            ["coordinator", "--listen", &listen, "--metrics", &http, "--queue", &queue, "--data-dir", data];
        let tokens = folder.path().join("tokens.toml");
        let tokens = tokens.to_str().expect("UTF-8");
        let (certificate, key) = (format!("{TLS}server.pem"), format!("{TLS}server.key"));
        let guards = ["--tls-cert", &certificate, "--tls-key", &key, "--tokens", tokens];
        let (mut of_workers, mut of_people) = (Vec::new(), Vec::new());
        if guarded {
            std::fs::write(tokens, "").expect("a list of tokens");
            of_workers =
                identity(folder.path(), tokens, &["--name", "pool", "--role", "worker", "--workers", "*"]);
            of_people = identity(folder.path(), tokens, &["--name", "operator", "--role", "operator"]);
        }
        let guards: &[&str] = if guarded { &guards } else { &[] };
        let coordinator = Process::start(&[&arguments[..], guards].concat());
        while std::net::TcpStream::connect(&listen).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("{}://{listen}", if guarded { "https" } else { "http" });
        Self { redis, coordinator, http_port, url, folder, of_workers, of_people }
    }

    fn worker(&self, number: usize, endpoint: &str) -> Process {
        self.worker_with(number, endpoint, &[])
    }

    fn worker_with(&self, number: usize, endpoint: &str, more: &[&str]) -> Process {
        let name = format!("worker-{number}");
        let home = self.folder.path().join(&name);
        let arguments = ["worker", "--fleet", &self.url, "--name", &name, "--endpoint", endpoint];
        let rest = ["--evaluators", "1", "--work-dir", home.to_str().expect("UTF-8")];
        let identity: Vec<&str> = self.of_workers.iter().map(String::as_str).collect();
        Process::start(&[&arguments[..], &rest, &identity, more].concat())
    }

    /// Submits a configuration and follows it to its end; its last view.
    fn run(&self, configuration: &Path, look: impl FnMut()) -> serde_json::Value {
        measure::follow(configuration, &self.url, &self.of_people, look).1
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

/// A cluster beside `kgfleet run`: one model, the same tasks, as many dialogues in flight.
fn beside_run() {
    let dialogues = u64::from(BESIDE_ITERATIONS) * TASKS as u64;
    println!("\n{dialogues} dialogues of one model, {BESIDE_IN_FLIGHT} in flight");
    let fleet = Fleet::start();
    let folder = fleet.folder.path();
    let of_fleet = configuration(folder, &[("model".to_owned(), BESIDE_ITERATIONS)]);
    let simulator = Simulator::start(&["--benchmark", of_fleet.to_str().expect("UTF-8")]);
    let of_run = folder.join("run.toml");
    let text = format!(
        "name = \"bench\"\nseed = 1\niterations = {BESIDE_ITERATIONS}\n[[models]]\nlabel = \"model\"\n\
         connector = \"openai-compatible\"\nendpoint = \"{}\"\n",
        simulator.base_url
    );
    std::fs::write(&of_run, text).expect("a configuration");
    let in_flight = BESIDE_IN_FLIGHT.to_string();
    let alone = measure::run(&of_run, &folder.join("alone"), &["--concurrency", &in_flight]).rate;
    let share = (BESIDE_IN_FLIGHT / BESIDE_WORKERS).to_string();
    let workers: Vec<Process> = (0..BESIDE_WORKERS)
        .map(|number| fleet.worker_with(number, &simulator.base_url, &["--concurrency", &share]))
        .collect();
    let began = Instant::now();
    fleet.run(&of_fleet, || {});
    let together = dialogues as f64 / began.elapsed().as_secs_f64();
    drop(workers);
    line("dialogues per second: `kgfleet run`", &format!("{alone:.0}"), "");
    line(&format!("  {BESIDE_WORKERS} workers, from submission to end"), &format!("{together:.0}"), "");
    line("share", &format!("{:.0} %", 100.0 * together / alone), "at least 90 %");
}

/// A new token of a name and role, as arguments of whoever shows it.
fn identity(folder: &Path, tokens: &str, who: &[&str]) -> Vec<String> {
    let arguments = [&["fleet", "token", "new", "--append", tokens], who].concat();
    let token = Command::new(KGFLEET).args(arguments).output().expect("the binary starts").stdout;
    let file = folder.join(format!("{}.token", who[1]));
    std::fs::write(&file, token).expect("a token");
    let file = file.to_str().expect("UTF-8").to_owned();
    vec!["--token-file".to_owned(), file, "--ca".to_owned(), format!("{TLS}ca.pem")]
}

/// What is added to a plain cluster, to see what it costs.
#[derive(Clone, Copy, PartialEq)]
enum Addition {
    Nothing,
    /// Somebody who reads all metrics every second.
    Scraper,
    /// TLS, and a token of everybody.
    Guard,
}

/// What may be added: the word of `--of`, what it is, and the bound of its cost.
const ADDITIONS: [(Addition, &str, &str, &str); 2] = [
    (Addition::Scraper, "metrics", "metrics read every second", "below 2 %"),
    (Addition::Guard, "access", "TLS and tokens", "below 3 %"),
];

/// What metrics and access control cost: processor time of coordinator and workers, with and without, in turns.
fn costs(pairs: u32, iterations: u32, of: &[&str]) {
    let additions: Vec<_> =
        ADDITIONS.into_iter().filter(|(_, word, ..)| of.is_empty() || of.contains(word)).collect();
    let dialogues = u64::from(iterations) * ((PROPRIETARY + OPEN) * TASKS) as u64;
    println!("\n{dialogues} dialogues a run, {pairs} pairs each");
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); additions.len()];
    for pair in 1..=pairs {
        let mut runs: Vec<Addition> = vec![Addition::Nothing];
        runs.extend(additions.iter().map(|(addition, ..)| *addition));
        // In turns forwards and backwards, so that what changes with time does not count for one side.
        if pair % 2 == 0 {
            runs.reverse();
        }
        let times: Vec<(Addition, f64)> = runs
            .into_iter()
            .map(|addition| (addition, run_with(addition, iterations).as_secs_f64()))
            .collect();
        let time =
            |of: Addition| times.iter().find(|(run, _)| *run == of).map_or(f64::NAN, |(_, time)| *time);
        let plain = time(Addition::Nothing);
        let mut told = format!("pair {pair}: {plain:.2} s");
        for (ratios, (addition, _, what, _)) in ratios.iter_mut().zip(&additions) {
            let ratio = time(*addition) / plain;
            told.push_str(&format!(", {:+.1} % {what}", (ratio - 1.0) * 100.0));
            ratios.push(ratio);
        }
        println!("{told}");
    }
    for (ratios, (_, _, what, bound)) in ratios.iter().zip(&additions) {
        let [mean, low, high] = watchers::ratio(ratios).map(|ratio| (ratio - 1.0) * 100.0);
        line(&format!("{what}, processor time"), &format!("{mean:+.1} % ({low:+.1} to {high:+.1})"), bound);
    }
}

/// One run; processor time of coordinator, workers and evaluation.
fn run_with(addition: Addition, iterations: u32) -> Duration {
    let fleet = Fleet::start_behind(addition == Addition::Guard);
    let models: Vec<(String, u32)> =
        (0..PROPRIETARY + OPEN).map(|number| (format!("model-{number:02}"), iterations)).collect();
    let configuration = configuration(fleet.folder.path(), &models);
    let simulator = Simulator::start(&["--benchmark", configuration.to_str().expect("UTF-8")]);
    let ports: Vec<u16> = (0..COSTS_WORKERS).map(|_| harness::free_port()).collect();
    let worker = |(number, port): (usize, &u16)| {
        let http = format!("127.0.0.1:{port}");
        fleet.worker_with(number, &simulator.base_url, &["--metrics", &http])
    };
    let workers: Vec<Process> = ports.iter().enumerate().map(worker).collect();
    let all_ports = ports.iter().copied().chain([fleet.http_port]).collect();
    let scraper = (addition == Addition::Scraper).then(|| watchers::Scraper::start(all_ports));
    let view = fleet.run(&configuration, || {});
    drop(scraper);
    let planned = u64::from(iterations) * ((PROPRIETARY + OPEN) * TASKS) as u64;
    let scored = view.get("scored").and_then(serde_json::Value::as_u64);
    assert_eq!(scored, Some(planned), "all dialogues are scored");
    let of_workers: Duration = workers.iter().map(|worker| worker.cpu().0 + worker.cpu().1).sum();
    fleet.coordinator.cpu().0 + of_workers
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
