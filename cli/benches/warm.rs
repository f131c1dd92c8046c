//! Prompts that servers find in their prefix caches: `cargo bench -p cli --bench warm`.
//!
//! One model with four simulated replicas is asked the 26 tasks of the built-in pack 50 times each: by one worker with
//! all of them, by four workers with one each, and by one worker behind a balancer, which takes turns at them and knows
//! nothing of prompts, so that chance places the dialogues. The replicas have the latency and the prefix cache of an
//! engine, and say of every prompt how much of it they found. Prints figures with the bound beside them and asserts
//! nothing.

mod measure;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::{Record, Round};
use harness::proxy::Proxy;
use measure::{KGFLEET, Process, Simulator, follow, line};
use url::Url;
use vllm_sim::latency::BLOCK_TOKENS;

const REPLICAS: usize = 4;
/// Dialogues in flight at each of them.
const IN_FLIGHT: usize = 16;
const ITERATIONS: u32 = 50;

/// A small model on a small GPU, some times faster than real ones.
const SIMULATOR: &str = "\
[[models]]
name = \"sim\"
enable_prompt_tokens_details = true
[models.profile.custom]
prefill_overhead_ms = 10.0
prefill_per_token_ms = 0.2
decode_per_token_ms = 5.0
decode_load_factor = 1.5
max_num_seqs = 64
num_gpu_blocks = 12500
";

fn main() {
    println!("{} processors", std::thread::available_parallelism().map_or(0, usize::from));
    println!(
        "\none model, {ITERATIONS} iterations, {REPLICAS} replicas, {IN_FLIGHT} dialogues in flight at each"
    );
    let placements: [(&str, Placement); 3] = [
        ("one worker with all replicas", Placement::OneWorker),
        ("a worker for each replica", Placement::Workers),
        ("one worker behind a balancer", Placement::Balancer),
    ];
    for (what, placement) in placements {
        let PlacedRun { dialogues, reachable, found, time } = run(placement);
        let share = 100.0 * found as f64 / reachable.max(1) as f64;
        let seconds = format!("{:.1} s", time.as_secs_f64());
        let (at_least, at_most) = match placement {
            Placement::OneWorker | Placement::Workers => ("at least 95 %", "no more than by chance"),
            Placement::Balancer => ("by chance", "by chance"),
        };
        line(what, &dialogues.to_string(), "dialogues");
        line("  first prompts found, of those sent before", &format!("{found} of {reachable}"), "");
        line("  share", &format!("{share:.1} %"), at_least);
        line("  from the first prompt to the last answer", &seconds, at_most);
    }
}

/// Who decides which replica gets a dialogue.
#[derive(Clone, Copy)]
enum Placement {
    OneWorker,
    Workers,
    Balancer,
}

/// What came of a run.
struct PlacedRun {
    dialogues: usize,
    /// Dialogues whose first prompt another one had sent before.
    reachable: usize,
    /// Those whose first prompt their replica found in its cache, all of it.
    found: usize,
    /// From the first prompt to the last answer.
    time: Duration,
}

/// Holds all dialogues with replicas that were asked nothing before.
fn run(placement: Placement) -> PlacedRun {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("simulator.toml");
    std::fs::write(&path, SIMULATOR).expect("a configuration");
    let path = path.to_str().expect("UTF-8");
    let replicas: Vec<Simulator> = (0..REPLICAS).map(|_| Simulator::start(&[path])).collect();
    let urls: Vec<String> = replicas.iter().map(|replica| replica.base_url.clone()).collect();
    // It ends with the process.
    let balancer = Proxy::among(urls.iter().map(|url| port(url)).collect());

    let fleet = SmallFleet::start(folder.path());
    let _workers: Vec<Process> = match placement {
        Placement::OneWorker => vec![fleet.worker(0, &urls, IN_FLIGHT)],
        Placement::Workers => {
            urls.chunks(1).enumerate().map(|(n, url)| fleet.worker(n, url, IN_FLIGHT)).collect()
        }
        Placement::Balancer => {
            let url = format!("http://127.0.0.1:{}/v1", balancer.port());
            vec![fleet.worker(0, &[url], IN_FLIGHT * REPLICAS)]
        }
    };
    let configuration = folder.path().join("run.toml");
    let text = format!(
        "name = \"warm\"\nseed = 0\niterations = {ITERATIONS}\n\
         [[models]]\nlabel = \"sim\"\nconnector = \"openai-compatible\"\n"
    );
    std::fs::write(&configuration, text).expect("a configuration");
    let (run, _) = follow(&configuration, &fleet.url, &[], || {});
    evaluated(&fleet.records(&run, &folder.path().join("records.jsonl")))
}

/// What the replicas said of first prompts.
fn evaluated(records: &[Record]) -> PlacedRun {
    let rounds = || records.iter().flat_map(|record| &record.rounds);
    let first = || records.iter().filter_map(|record| record.rounds.first());
    let distinct: BTreeSet<&str> = first().map(|round| round.prompt.text.as_str()).collect();
    let begun = rounds().map(|round| round.prompted_at).min();
    let ended = rounds().map(|round| round.answered_at).max();
    let time = begun.zip(ended).map(|(begun, ended)| ended.duration_since(begun).unsigned_abs());
    PlacedRun {
        dialogues: records.len(),
        reachable: first().count() - distinct.len(),
        found: first().filter(|round| is_found(round)).count(),
        time: time.unwrap_or_default(),
    }
}

/// Whether its server had all of the prompt in its cache. The last block is read in any case.
fn is_found(round: &Round) -> bool {
    let usage = &round.answer.usage;
    let (Some(prompt), Some(cached)) = (usage.prompt_tokens, usage.cached_tokens) else { return false };
    prompt.saturating_sub(cached) <= u64::from(BLOCK_TOKENS)
}

/// A coordinator with a queue in its memory.
struct SmallFleet<'f> {
    _process: Process,
    url: String,
    folder: &'f Path,
}

impl<'f> SmallFleet<'f> {
    fn start(folder: &'f Path) -> Self {
        let [listen, http] = [(); 2].map(|()| format!("127.0.0.1:{}", harness::free_port()));
        let data = folder.join("data");
        let data = data.to_str().expect("UTF-8");
        let process =
            Process::start(&["coordinator", "--listen", &listen, "--metrics", &http, "--data-dir", data]);
        while std::net::TcpStream::connect(&listen).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { _process: process, url: format!("http://{listen}"), folder }
    }

    /// A worker with these servers and so many dialogues in flight at each.
    fn worker(&self, number: usize, endpoints: &[String], in_flight: usize) -> Process {
        let (name, endpoints, in_flight) =
            (format!("worker-{number}"), endpoints.join(","), in_flight.to_string());
        let home = self.folder.join(&name);
        let home = home.to_str().expect("UTF-8");
        let who = ["worker", "--fleet", &self.url, "--name", &name, "--work-dir", home];
        let what = ["--endpoint", &endpoints, "--concurrency", &in_flight, "--evaluators", "1"];
        Process::start(&[&who[..], &what].concat())
    }

    /// The records of a run.
    fn records(&self, run: &str, file: &Path) -> Vec<Record> {
        let status = Command::new(KGFLEET)
            .args(["export", run, "--format", "jsonl", "--fleet", &self.url, "--out"])
            .arg(file)
            .stdout(Stdio::null())
            .status()
            .expect("the binary starts");
        assert!(status.success(), "the records are exported");
        let lines = std::fs::read_to_string(file).expect("the records");
        let record = |line: &str| {
            let mut line: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            serde_json::from_value(line["record"].take()).expect("a record")
        };
        lines.lines().map(record).collect()
    }
}

fn port(url: &str) -> u16 {
    Url::parse(url).ok().and_then(|url| url.port()).expect("a port")
}
