//! `--concurrency auto` beside the best fixed number: `cargo bench -p cli --bench knee`.
//!
//! A simulated server of each profile becomes slower after a while, to half of what it took at once, and then as fast
//! as before. It is asked by one `kgfleet run` with several fixed numbers, then with `auto`, then by two of them with
//! `auto`. Prints what the server generated in each part beside the best fixed number, and how many requests waited
//! there at most; asserts nothing. Takes a quarter of an hour; `-- --profile NAME` measures only that profile.

mod measure;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use measure::{Process, Simulator, line};

/// The profiles, and how many requests a server of each decodes at once.
const PROFILES: [(&str, u32); 3] = [("h100-8b", 256), ("h100-70b-tp8", 256), ("l40s", 128)];

/// Seconds from the first request until the server takes half, until it takes as much as before, and until the end.
const HALVED_AT: u64 = 20;
const DOUBLED_AT: u64 = 32;
const END: u64 = 44;

/// Seconds after a change in which the limit may find the new knee.
const RECOVERY: u64 = 5;

/// What is measured: from the first request on, and after each change once that time is over.
const PARTS: [(&str, [u64; 2]); 3] = [
    ("20 s from a cold start", [0, HALVED_AT]),
    ("5 s after it became half as fast", [HALVED_AT + RECOVERY, DOUBLED_AT]),
    ("5 s after it became as fast as before", [DOUBLED_AT + RECOVERY, END]),
];

/// Running requests of a server for each that may wait: about what it takes in its next step.
const RUNNING_PER_WAITING: f64 = 16.0;

/// What is asked. One task, because two runs that share a server come to the next one at another time than one run
/// does, and a server generates more tokens in a second of a task with short prompts.
const TASK: &str = "SparqlSyntaxFixingListLcQuad";

/// Iterations of it: more than end in this time.
const ITERATIONS: u32 = 100_000;

/// Between two looks at the server.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Longest time until the first request.
const START_MAX: Duration = Duration::from_secs(60);

/// What the server tells of itself.
#[derive(Clone, Copy, Default)]
struct ServerTold {
    running: f64,
    waiting: f64,
    generated: f64,
}

/// What a server told, by the time since its first request.
struct KneeRun(Vec<(Duration, ServerTold)>);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let only = arguments.iter().position(|argument| argument == "--profile");
    let only = only.and_then(|at| arguments.get(at + 1));
    println!("{} processors", std::thread::available_parallelism().map_or(0, usize::from));
    for (profile, seqs) in PROFILES {
        if only.is_none_or(|only| only == profile) {
            knee(profile, seqs);
        }
    }
}

fn knee(profile: &str, seqs: u32) {
    println!("\n{profile}, which decodes {seqs} requests at once");
    let mut best: [(f64, String); 3] = std::array::from_fn(|_| (0.0, String::new()));
    for fixed in [seqs / 2, seqs, seqs + seqs / 16] {
        let fixed = fixed.to_string();
        let tokens = KneeRun::of(profile, &[&fixed]).tokens();
        for (best, tokens) in best.iter_mut().zip(tokens) {
            if tokens > best.0 {
                *best = (tokens, fixed.clone());
            }
        }
    }
    for (workers, concurrencies) in [("one run", &["auto"][..]), ("two runs", &["auto", "auto"][..])] {
        let run = KneeRun::of(profile, concurrencies);
        for (((part, _), tokens), (best, fixed)) in PARTS.iter().zip(run.tokens()).zip(&best) {
            let share = format!("{:.1} %", 100.0 * tokens / best);
            line(&format!("{workers}: {part}"), &share, &format!("at least 97 % of the best, {fixed}"));
        }
        let (at, waiting, room) = run.most_waiting();
        line(
            &format!("{workers}: requests waiting at most"),
            &format!("{waiting:.0}, at {:.1} s", at.as_secs_f64()),
            &format!("at most {room:.0}, a sixteenth of those running"),
        );
    }
}

impl KneeRun {
    /// Runs that ask one server, each with its concurrency.
    fn of(profile: &str, concurrencies: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = folder.path().join("simulator.toml");
        std::fs::write(&configuration, simulator(profile)).expect("a configuration");
        let simulator = Simulator::start(&[configuration.to_str().expect("UTF-8")]);
        let runs = concurrencies.iter().enumerate().map(|(number, concurrency)| {
            start(&simulator.base_url, concurrency, &folder.path().join(number.to_string()))
        });
        let runs: Vec<Process> = runs.collect();
        let told = watch(&simulator.base_url);
        // The runs go before their folders and their server.
        drop(runs);
        Self(told)
    }

    /// Tokens generated in each part.
    fn tokens(&self) -> [f64; 3] {
        let until = |seconds| {
            let after = self.0.iter().find(|(at, _)| *at >= Duration::from_secs(seconds));
            after.or(self.0.last()).map_or(0.0, |(_, told)| told.generated)
        };
        PARTS.map(|(_, [begin, end])| until(end) - until(begin))
    }

    /// The most that waited, relative to what may wait, when that was, and what might then; but for the seconds in which
    /// the server holds more than it now takes.
    fn most_waiting(&self) -> (Duration, f64, f64) {
        let room = |told: &ServerTold| (told.running / RUNNING_PER_WAITING).max(1.0);
        let recovers = Duration::from_secs(HALVED_AT)..Duration::from_secs(HALVED_AT + RECOVERY);
        let told = self.0.iter().filter(|(at, _)| !recovers.contains(at));
        let most = told.max_by(|(_, a), (_, b)| (a.waiting - room(a)).total_cmp(&(b.waiting - room(b))));
        most.map_or((Duration::ZERO, 0.0, 1.0), |(at, told)| (*at, told.waiting, room(told)))
    }
}

/// The configuration of a server. All answers are right at once: every dialogue is one round.
fn simulator(profile: &str) -> String {
    format!(
        "[[models]]\nname = \"sim\"\nprofile = \"{profile}\"\n\
         capacity_at = [[{HALVED_AT}, 0.5], [{DOUBLED_AT}, 1.0]]\n\
         [models.answers]\nkind = \"skilled\"\n\
         [models.answers.overall]\nright = 1.0\nwrong = 0.0\nmalformed = 0.0\nrambling = 0.0\nfix = 1.0\n"
    )
}

/// Starts a `kgfleet run` in a folder of its own.
fn start(base_url: &str, concurrency: &str, folder: &Path) -> Process {
    std::fs::create_dir(folder).expect("a folder");
    let (configuration, data) = (folder.join("run.toml"), folder.join("data"));
    let text = format!(
        "name = \"bench\"\nseed = 0\niterations = {ITERATIONS}\ntasks = [\"{TASK}\"]\n[[models]]\nlabel = \"sim\"\n\
         connector = \"openai-compatible\"\nstream = false\nendpoint = \"{base_url}\"\n"
    );
    std::fs::write(&configuration, text).expect("a configuration");
    let [configuration, data] = [&configuration, &data].map(|path| path.to_str().expect("UTF-8"));
    Process::start(&["run", configuration, "--data-dir", data, "--concurrency", concurrency])
}

/// What a server tells from its first request on.
fn watch(base_url: &str) -> Vec<(Duration, ServerTold)> {
    let (mut told, mut first): (Vec<(Duration, ServerTold)>, Option<Instant>) = (Vec::new(), None);
    let began = Instant::now();
    loop {
        let now = Instant::now();
        let Some(server) = look(base_url) else { panic!("the simulator does not answer") };
        if server.running > 0.0 {
            first.get_or_insert(now);
        }
        if let Some(first) = first {
            told.push((now - first, server));
        }
        match first {
            Some(first) if now - first > Duration::from_secs(END) => return told,
            None if began.elapsed() > START_MAX => panic!("nobody asks the simulator"),
            _ => std::thread::sleep(LOOK_EVERY),
        }
    }
}

fn look(base_url: &str) -> Option<ServerTold> {
    let address = base_url.strip_prefix("http://")?.strip_suffix("/v1")?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: bench\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    let value = |name: &str| {
        let line = page.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    Some(ServerTold {
        running: value("vllm:num_requests_running{")?,
        waiting: value("vllm:num_requests_waiting{")?,
        generated: value("vllm:generation_tokens_total{")?,
    })
}
