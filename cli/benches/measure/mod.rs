//! Starts this project's binary and accounts for what it and its children use (Linux only: everything is read from
//! `/proc`).

// Each benchmark uses a part of this.
#![allow(dead_code)]

pub mod light;
pub mod watchers;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The binary, built with the profile of the benchmark.
pub const KGFLEET: &str = env!("CARGO_BIN_EXE_kgfleet");

/// Between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Unit of processor times in `/proc/PID/stat`: a hundredth of a second on every Linux that this runs on.
const TICKS_PER_SECOND: u64 = 100;

/// What a process used until a moment.
struct Used {
    /// Processor time of its children that are alive.
    children_cpu: Duration,
    /// Resident memory now and at its highest, in bytes.
    resident: u64,
    resident_max: u64,
}

impl Used {
    /// What a process used so far; `None` once it has ended.
    fn of(pid: u32) -> Option<Self> {
        let (resident, resident_max) = memory(pid)?;
        let children_cpu = children(pid).into_iter().filter_map(cpu).sum();
        Some(Self { children_cpu, resident, resident_max })
    }
}

/// Processor time of a process, user and system.
pub fn cpu(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything; the state behind it is field 3, the times 14 and 15.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Resident memory of a process now and at its highest, in bytes.
pub fn memory(pid: u32) -> Option<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((kilobytes("VmRSS:")? << 10, kilobytes("VmHWM:")? << 10))
}

/// The child processes of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |path: PathBuf| std::fs::read_to_string(path.join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.flatten().map(|thread| of_thread(thread.path())).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// The tasks that are cheap to judge: all but those that query the large graph, which a run asks first.
pub fn on_small_graphs() -> Vec<String> {
    let pack = packs::Pack::builtin().expect("the built-in pack");
    let default = pack.list().into_iter().filter(|line| line.default).map(|line| line.label.to_string());
    default.filter(|label| !label.contains("Beastiary")).collect()
}

/// What is known of a `kgfleet run` that has ended.
pub struct RunFigures {
    /// Dialogues per second by the run's own account: without start and exports.
    pub rate: f64,
    /// Seconds by the same account.
    pub seconds: f64,
    /// Dialogues with and without scores.
    pub scored: u64,
    pub failed: u64,
    /// Processor time from the start of the first dialogue to the end of the last, without exports.
    pub cpu: Duration,
    /// Processor time of the evaluation processes, their start included.
    pub evaluation_cpu: Duration,
    /// Resident memory while dialogues were held, in bytes, at even distances in time.
    pub resident: Vec<u64>,
    /// The highest of the whole process, exports included.
    pub resident_max: u64,
}

/// Runs a configuration against a server and waits for its end.
pub fn run(configuration: &Path, data_dir: &Path, arguments: &[&str]) -> RunFigures {
    let mut child = Command::new(KGFLEET)
        .arg("run")
        .arg(configuration)
        .arg("--data-dir")
        .arg(data_dir)
        .args(["--export", "csv"])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let pid = child.id();
    let stderr = child.stderr.take().expect("a pipe");
    // The talk is read aside; this thread looks at the process meanwhile.
    let holding = Arc::new(AtomicBool::new(true));
    let held = Arc::clone(&holding);
    let talk = std::thread::spawn(move || listen(stderr, pid, &held));
    let (mut resident, mut evaluation_cpu, mut resident_max) = (Vec::new(), Duration::ZERO, 0);
    while child.try_wait().expect("a child of ours").is_none() {
        if let Some(used) = Used::of(pid) {
            resident_max = used.resident_max;
            // The evaluation processes end before their parent.
            evaluation_cpu = used.children_cpu.max(evaluation_cpu);
            if holding.load(Ordering::Relaxed) {
                resident.push(used.resident);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let status = child.wait().expect("a child of ours");
    let said = talk.join().expect("the listener");
    let (Some(begun), Some((summary, ended))) = (said.begun, said.ended) else {
        panic!("`kgfleet run` ended with {status}:\n{}", said.all)
    };
    let numbers: Vec<f64> = numbers(&summary);
    let [scored, failed, seconds, rate] = numbers[..] else { panic!("not understood: {summary}") };
    RunFigures {
        rate,
        seconds,
        scored: scored as u64,
        failed: failed as u64,
        cpu: ended.saturating_sub(begun),
        evaluation_cpu,
        resident,
        resident_max,
    }
}

/// What a run said and what it had used by then.
#[derive(Default)]
struct Said {
    begun: Option<Duration>,
    ended: Option<(String, Duration)>,
    all: String,
}

fn listen(stderr: ChildStderr, pid: u32, holding: &AtomicBool) -> Said {
    let mut said = Said::default();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let used = cpu(pid);
        if line.starts_with("starting run ") {
            said.begun = used;
        } else if line.contains(" dialogues scored, ") {
            holding.store(false, Ordering::Relaxed);
            said.ended = used.map(|used| (line.clone(), used));
        }
        said.all.push_str(&line);
        said.all.push('\n');
    }
    said
}

/// The numbers of `NAME: 10 dialogues scored, 0 failed; 0.1 s, 100 dialogues/s`, without those of the name.
fn numbers(summary: &str) -> Vec<f64> {
    let figures = summary.rsplit_once(": ").map_or("", |(_, figures)| figures);
    figures.split([' ', ',', ';']).filter_map(|word| word.parse().ok()).collect()
}

/// A process of the binary, ended when dropped.
pub struct Process(Child);

impl Process {
    /// Starts it with these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        let log = if std::env::var_os("KGFLEET_LOG").is_some() { Stdio::inherit() } else { Stdio::null() };
        let child = Command::new(KGFLEET).args(arguments).stdout(Stdio::null()).stderr(log).spawn();
        Self(child.expect("the binary starts"))
    }

    /// Its processor time and that of its children, so far.
    pub fn cpu(&self) -> (Duration, Duration) {
        let own = cpu(self.0.id()).unwrap_or_default();
        (own, children(self.0.id()).into_iter().filter_map(cpu).sum())
    }

    /// Its resident memory now and at its highest, in bytes.
    pub fn resident(&self) -> (u64, u64) {
        memory(self.0.id()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Submits a configuration to a coordinator and follows it to its end: the run's name and its last view. `of_people` are
/// the further arguments of whoever submits.
pub fn follow(
    configuration: &Path,
    coordinator: &str,
    of_people: &[String],
    mut look: impl FnMut(),
) -> (String, serde_json::Value) {
    let submitted = Command::new(KGFLEET)
        .args(["submit", configuration.to_str().expect("UTF-8"), "--fleet", coordinator])
        .args(of_people)
        .stderr(Stdio::inherit())
        .output()
        .expect("the binary starts");
    let run = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
    let mut watch = Command::new(KGFLEET)
        .args(["status", "--follow", &run, "--json", "--fleet", coordinator])
        .args(of_people)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let stdout = watch.stdout.take().expect("a pipe");
    let listener = std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.last().unwrap_or_default()
    });
    while watch.try_wait().expect("a child of ours").is_none() {
        look();
        std::thread::sleep(LOOK_EVERY);
    }
    let last = listener.join().expect("the listener");
    let view = serde_json::from_str(last.lines().next().unwrap_or_default()).expect("a view of the run");
    (run, view)
}

/// `kgfleet simulate` in a process of its own, ended when dropped.
pub struct Simulator {
    child: Child,
    /// Its address.
    pub base_url: String,
}

impl Simulator {
    /// Starts it with these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(KGFLEET)
            .args(["simulate", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut base_url = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut base_url).expect("its address");
        Self { child, base_url: base_url.trim().to_owned() }
    }

    /// Processor time so far.
    pub fn cpu(&self) -> Duration {
        cpu(self.child.id()).unwrap_or_default()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end: what it printed, how long it took, and its highest resident memory in bytes.
pub fn timed(command: &mut Command) -> (String, Duration, u64) {
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let output = std::thread::spawn(move || std::io::read_to_string(&mut stdout));
    let mut resident_max = 0;
    while child.try_wait().expect("a child of ours").is_none() {
        resident_max = memory(child.id()).map_or(resident_max, |(_, highest)| highest);
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = began.elapsed();
    (output.join().expect("the reader").unwrap_or_default(), took, resident_max)
}

/// One line of figures: what, how much, and the bound beside it.
pub fn line(what: &str, figure: &str, bound: &str) {
    println!("{what:<46} {figure:>16}   {bound}");
}
