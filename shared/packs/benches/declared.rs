//! What task files cost: `cargo bench -p packs --bench declared`. Prints figures with their bounds beside: a dialogue of a declared task beside
//! one of the class whose twin it is, and a file of 10 000 cases on a graph of 100 000 triples.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use packs::{Pack, published_password};
use tasks::{Dialogue, Effort, EvaluationLimits, Task};

#[path = "../tests/it/twins/mod.rs"]
mod twins;

/// Dialogues of each case.
const ROUNDS: u32 = 40;

/// Most microseconds of a dialogue, and how many times those of the class a declared task may take.
const DIALOGUE_US_MAX: f64 = 500.0;
const RATIO_MAX: f64 = 1.5;

/// Cases of the large file, and nodes of its graph, each with ten triples.
const CASES: usize = 10_000;
const NODES: usize = 10_000;

/// Most seconds for compiling the large file, and for loading its pack.
const COMPILED_S_MAX: f64 = 20.0;
const LOADED_S_MAX: f64 = 2.0;

/// Most megabytes that the pack adds to a process that judges, and to one that only asks.
const JUDGES_MB_MAX: f64 = 100.0;
const ASKS_MB_MAX: f64 = 30.0;

/// The first argument of a process that loads a pack to say what that costs.
const LOAD: &str = "load";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, pack, whom] = arguments.as_slice()
        && first == LOAD
    {
        return load(Path::new(pack), whom == "judges");
    }
    dialogues();
    large();
}

fn dialogues() {
    println!("{:48} {:>8} {:>9} {:>6}", "microseconds per dialogue", "class", "declared", "ratio");
    let (mut slowest_us, mut sums) = (0.0_f64, [0.0; 2]);
    for twins::Twins { own, declared, cases } in &twins::all() {
        // In turn, so that both meet the same machine.
        let mut seconds = [0.0; 2];
        for _ in 0..ROUNDS {
            for (place, number) in cases.iter().enumerate() {
                for (which, (task, of_task)) in [(own, *number), (declared, place)].into_iter().enumerate() {
                    let case = &own.cases()[*number].data;
                    for answer in [&case.reference_answer, &case.wrong_answer] {
                        seconds[which] += dialogue(task, of_task, answer.as_deref().unwrap());
                    }
                }
            }
        }
        let each_us = seconds.map(|seconds| seconds * 1e6 / f64::from(ROUNDS) / cases.len() as f64 / 2.0);
        let [of_own, of_declared] = each_us;
        println!("{:48} {of_own:8.0} {of_declared:9.0} {:6.2}", own.label.as_str(), of_declared / of_own);
        slowest_us = slowest_us.max(of_declared);
        sums = [sums[0] + of_own, sums[1] + of_declared];
    }
    let ratio = sums[1] / sums[0];
    println!(
        "slowest {slowest_us:.0} (at most {DIALOGUE_US_MAX:.0}), all together {ratio:.2} times (at most {RATIO_MAX})"
    );
}

/// Seconds of a dialogue with one answer.
fn dialogue(task: &Task, number: usize, answer: &str) -> f64 {
    let effort = Effort::full(EvaluationLimits::default());
    let iteration = u32::try_from(number).unwrap();
    let begin = Instant::now();
    let exercise = task.case(iteration).exercise();
    exercise.prepare().unwrap();
    let mut dialogue = Dialogue::new(exercise.shots());
    let prompt = task.next_prompt(iteration, 1, &dialogue);
    dialogue.take(exercise.judge(answer, &effort));
    let reply = task.next_prompt(iteration, 1, &dialogue);
    let _ = black_box((prompt, reply, dialogue.into_evaluation()));
    begin.elapsed().as_secs_f64()
}

fn large() {
    let folder = tempfile::tempdir().unwrap();
    let mut graph = "@prefix : <http://example.org/net#> .\n".to_owned();
    for node in 0..NODES {
        let links =
            (1..=6).map(|step| format!(":n{}", (node + step * 7) % NODES)).collect::<Vec<_>>().join(", ");
        let kind = node % 40;
        let _ = writeln!(
            graph,
            ":n{node} a :K{kind} ; :name \"node {node}\" ; :size {} ; :rank {} ; :to {links} .",
            node % 900,
            node % 70
        );
    }
    std::fs::write(folder.path().join("net.ttl"), graph).unwrap();
    let mut rows = String::new();
    for case in 0..CASES {
        let _ = writeln!(
            rows,
            "{{\"question\": \"Where does node {case} lead to?\", \"node\": \"http://example.org/net#n{case}\", \
             \"sparql\": \"SELECT ?to {{ :n{case} :to ?to }}\"}}"
        );
    }
    std::fs::write(folder.path().join("net.jsonl"), rows).unwrap();
    let file = "task_file = 1\nname = 'net'\ngraphs.net.file = 'net.ttl'\n[[task]]\nlabel = 'net-sparql'\n\
                like = 'text-to-sparql'\ngraph = 'net'\ncases.file = 'net.jsonl'\nshown = { around = 'node', hops = 1 }\n";
    let path = folder.path().join("net.toml");
    std::fs::write(&path, file).unwrap();
    let begin = Instant::now();
    let compiled = packs::task_files::compile(&path).unwrap();
    let compiled_s = begin.elapsed().as_secs_f64();
    println!(
        "{CASES} cases on {} triples: compiled in {compiled_s:.1} s (at most {COMPILED_S_MAX:.0})",
        NODES * 10
    );
    let pack = folder.path().join("net.kgpack");
    let sealed = packs::seal_quickly(compiled.pack.parts(), &published_password()).unwrap();
    std::fs::write(&pack, sealed).unwrap();
    drop(compiled);
    for whom in ["judges", "asks"] {
        let program = std::env::current_exe().unwrap();
        let status = Command::new(program).arg(LOAD).arg(&pack).arg(whom).status().unwrap();
        assert!(status.success(), "the process that {whom}");
    }
}

/// Loads a pack in a process of its own, as one that judges or one that only asks does.
fn load(pack: &Path, judges: bool) {
    let begin = Instant::now();
    let before = resident_mb();
    let sealed = std::fs::read(pack).unwrap();
    let pack = Pack::open_bytes("large", &sealed, &published_password()).unwrap();
    let graphs = pack.graphs().unwrap();
    let graphs = if judges { graphs.build() } else { graphs.build_deferred() };
    let tasks = pack.build_selected(&graphs, |_| true).unwrap();
    // Workers and evaluation processes keep what was built.
    drop((sealed, pack, graphs));
    let added = resident_mb() - before;
    let seconds = begin.elapsed().as_secs_f64();
    let (whom, most) = if judges { ("judges", JUDGES_MB_MAX) } else { ("only asks", ASKS_MB_MAX) };
    println!(
        "a process that {whom}: loaded in {seconds:.1} s (at most {LOADED_S_MAX:.0}), {added:.0} MB more (at most {most:.0})"
    );
    drop(black_box(tasks));
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}
