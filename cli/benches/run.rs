//! `kgfleet run` end to end: `cargo bench -p cli --bench run`.
//!
//! A simulated server runs in a process of its own; the run has sandboxed evaluation and a durable log, as always.
//! Prints figures with the bound beside them and asserts nothing. With `-- --long` also a million dialogues, which shows
//! whether memory grows; with `-- --dialogues N` another number of them in the first part; with `-- --distinct` only that
//! part, with answers of which no two are equal, so that none is judged by what is remembered of another.
//!
//! All processes share the processors of the machine, the simulator too: for the dialogues per second of two
//! processors, say `taskset -c 0,1 cargo bench ...` where there are more.

mod measure;

use std::time::Duration;

use measure::{RunFigures, Simulator, line, on_small_graphs};

/// Tasks of the built-in pack that a run takes by default.
const TASKS: usize = 26;
/// Dialogues of the first part, by default.
const DIALOGUES: usize = 40_000;
/// Dialogues of the long run.
const MILLION: usize = 1_000_000;
/// In flight against a server with latency.
const IN_FLIGHT: usize = 4096;
/// Its latency per round.
const ROUND_MS: usize = 2000;
/// Rounds of that part, all of `IN_FLIGHT` dialogues. The first of them start together, and the time to begin and to judge
/// so many at once is part of the figure.
const WAVES: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == "--dialogues");
    let dialogues = given.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(DIALOGUES);
    println!("{} processors", std::thread::available_parallelism().map_or(0, usize::from));
    if arguments.iter().any(|argument| argument == "--distinct") {
        return distinct(dialogues);
    }
    without_latency(dialogues);
    with_latency();
    if arguments.iter().any(|argument| argument == "--long") {
        long();
    }
}

fn without_latency(dialogues: usize) {
    println!("\n{dialogues} dialogues, 64 in flight, server without latency");
    let simulator = Simulator::start(&["--model", "sim"]);
    let began = simulator.cpu();
    let figures = hold(&simulator, dialogues, 64, &[]);
    line("dialogues per second", &format!("{:.0}", figures.rate), "at least 3 000 on 2 processors");
    tell_cpu(&figures, simulator.cpu().saturating_sub(began));
    tell_memory(&figures);
}

fn distinct(dialogues: usize) {
    println!("\n{dialogues} dialogues whose answers all differ, 64 in flight, server without latency");
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = folder.path().join("simulator.toml");
    let text = "[[models]]\nname = \"sim\"\n[models.answers]\nkind = \"skilled\"\ndistinct = true\n";
    std::fs::write(&configuration, text).expect("a configuration");
    for (which, tasks) in
        [("all tasks", Vec::new()), ("tasks without the graph of 98 000 triples", on_small_graphs())]
    {
        println!("{which}:");
        let simulator = Simulator::start(&[configuration.to_str().expect("UTF-8")]);
        let began = simulator.cpu();
        let figures = hold(&simulator, dialogues, 64, &tasks);
        line("dialogues per second", &format!("{:.0}", figures.rate), "at least 5 000 on 2 processors");
        tell_cpu(&figures, simulator.cpu().saturating_sub(began));
        tell_memory(&figures);
    }
}

fn with_latency() {
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = folder.path().join("simulator.toml");
    // Right at once: every dialogue is one round, so that the ideal is known.
    let text = format!(
        "[[models]]\nname = \"sim\"\nprofile = {{ fixed = {{ round_ms = {ROUND_MS}.0 }} }}\n\
         [models.answers]\nkind = \"skilled\"\n[models.answers.overall]\nright = 1.0\nwrong = 0.0\nmalformed = 0.0\nrambling = 0.0\nfix = 1.0\n"
    );
    std::fs::write(&configuration, text).expect("a configuration");
    let path = configuration.to_str().expect("UTF-8");
    for (which, tasks) in
        [("all tasks", Vec::new()), ("tasks without the graph of 98 000 triples", on_small_graphs())]
    {
        println!("\n{WAVES} times {IN_FLIGHT} dialogues, {ROUND_MS} ms per round, {which}");
        let simulator = Simulator::start(&[path]);
        let began = simulator.cpu();
        let figures = hold(&simulator, IN_FLIGHT * WAVES, IN_FLIGHT, &tasks);
        let dialogues = (figures.scored + figures.failed) as f64;
        let ideal = dialogues / IN_FLIGHT as f64 * ROUND_MS as f64 / 1e3;
        line("seconds", &format!("{:.2}", figures.seconds), &format!("{ideal:.2} is ideal"));
        line("share of the ideal", &format!("{:.1} %", 100.0 * ideal / figures.seconds), "at least 93 %");
        tell_cpu(&figures, simulator.cpu().saturating_sub(began));
        tell_memory(&figures);
    }
}

fn long() {
    println!("\n{MILLION} dialogues, 64 in flight, server without latency");
    let simulator = Simulator::start(&["--model", "sim"]);
    let figures = hold(&simulator, MILLION, 64, &[]);
    line("dialogues per second", &format!("{:.0}", figures.rate), "");
    for percent in [5, 25, 50, 75, 95] {
        let at = (figures.resident.len() * percent / 100).min(figures.resident.len().saturating_sub(1));
        let resident = figures.resident.get(at).copied().unwrap_or_default();
        line(&format!("resident memory after {percent} % of the time"), &megabytes(resident), "flat");
    }
    tell_memory(&figures);
}

fn tell_cpu(figures: &RunFigures, simulator: Duration) {
    let dialogues = (figures.scored + figures.failed) as f64;
    let per_dialogue = |cpu: Duration| format!("{:.3} ms", cpu.as_secs_f64() * 1e3 / dialogues);
    line("processor time per dialogue: client", &per_dialogue(figures.cpu), "at most 0.3 ms");
    line("  evaluation processes, their start included", &per_dialogue(figures.evaluation_cpu), "");
    line("  simulator", &per_dialogue(simulator), "");
}

fn tell_memory(figures: &RunFigures) {
    let holding = figures.resident.iter().copied().max().unwrap_or_default();
    line("highest resident memory while holding", &megabytes(holding), "at most 300 MB");
    line("  export to CSV included", &megabytes(figures.resident_max), "");
    line("dialogues without scores", &figures.failed.to_string(), "0");
}

/// Holds about this many dialogues, the same number of every task; without `tasks`, of all tasks.
fn hold(simulator: &Simulator, dialogues: usize, in_flight: usize, tasks: &[String]) -> RunFigures {
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = folder.path().join("run.toml");
    let count = if tasks.is_empty() { TASKS } else { tasks.len() };
    let text = format!(
        "name = \"bench\"\nseed = 0\niterations = {}\ntasks = {tasks:?}\n[[models]]\nlabel = \"sim\"\n\
         connector = \"openai-compatible\"\nstream = false\nendpoint = \"{}\"\n",
        dialogues / count,
        simulator.base_url
    );
    std::fs::write(&configuration, text).expect("a configuration");
    let concurrency = in_flight.to_string();
    measure::run(&configuration, &folder.path().join("data"), &["--concurrency", &concurrency])
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
