//! Every verb that takes the name of a benchmark, on a judged one: in a folder and on a fleet. The verbs are taken from the
//! reference, so that one without a line here fails.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::{Cluster, Data, Finished, free_port};

/// A judged benchmark of the kind that most verbs know something about: the bundled one in small.
fn configuration(data: &Data) -> String {
    let bundled = include_str!("../../../task-data/configurations/halu-quick.toml");
    let small = bundled.replace("seed = 1\n", "seed = 1\niterations = 3\n");
    assert_ne!(small, bundled);
    data.write(CONFIG, small).to_str().unwrap().to_owned()
}

/// Places in a call that are filled in: the benchmark, one of its dialogues, a folder for files.
const NAME: &str = "NAME";
const CONFIG: &str = "CONFIG.toml";
const DIALOGUE: &str = "DIALOGUE";
const OUT: &str = "OUT";

/// A call with its exit code, and a word of what it prints or says.
struct Call {
    call: &'static str,
    code: i32,
    word: &'static str,
}

const fn call(call: &'static str, code: i32, word: &'static str) -> Call {
    Call { call, code, word }
}

/// In a folder; in an order in which each finds what it needs.
const IN_A_FOLDER: &[Call] = &[
    call("resume NAME", 0, "NAME"),
    call("retry NAME", 0, "NAME"),
    call("rejudge NAME --with CONFIG.toml", 0, "sim-strong"),
    // What builds on it goes first.
    call("rm latest", 0, "removed"),
    call("show NAME --worst 3", 0, "NAME.similarity."),
    call("show NAME DIALOGUE", 0, "prompt 1"),
    call("export NAME --format jsonl --out OUT/exported", 0, "NAME.ask."),
    call("status NAME", 0, "run NAME finished"),
    call("table NAME", 0, "sim-strong"),
    call("compare NAME NAME", 2, "NAME is judged"),
    call("report NAME --out OUT/report.html", 0, "report.html"),
    call("archive NAME --out OUT/whole.tar.zst", 0, "OUT/whole.tar.zst"),
    call("rejudge NAME", 2, "NAME is judged"),
    call("verify NAME", 0, "the log is sound"),
    call("halu sample NAME --out OUT/sheet.csv", 0, "sheet.csv"),
    call("halu agreement NAME OUT/sheet.csv", 2, "rows have no verdict"),
    call("halu calibrate NAME --out OUT/weights.toml", 0, "weights.toml"),
    call("status NAME --follow", 0, "finished: "),
    call("pause NAME", 2, "finished"),
    call("cancel NAME", 2, "finished"),
    // These are about what runs in a fleet.
    call("fleet dead-letters NAME", 3, "no answer from the coordinator"),
    call("fleet dead-letters NAME 0", 3, "no answer from the coordinator"),
    call("fleet dead-letters NAME 0 --requeue", 3, "no answer from the coordinator"),
    call("rm NAME", 0, "NAME"),
];

/// On a fleet: those of a folder that have no `--fleet` are about files.
const ON_A_FLEET: &[Call] = &[
    call("status NAME", 0, "sim-strong"),
    call("status NAME --follow", 0, "sim-strong"),
    call("pause NAME", 2, "finished"),
    call("resume NAME", 0, "NAME"),
    call("retry NAME", 0, "0 failed dialogues"),
    call("rejudge NAME --with CONFIG.toml", 0, "halu-quick-"),
    call("rm latest", 0, "removed"),
    call("show NAME --worst 3", 0, "NAME.similarity."),
    call("show NAME DIALOGUE", 0, "prompt 1"),
    call("export NAME --format jsonl --out OUT/exported", 0, "NAME.ask."),
    call("table NAME", 0, "sim-strong"),
    call("compare NAME NAME", 2, "NAME is judged"),
    call("report NAME --out OUT/report.html", 0, "report.html"),
    call("archive NAME --out OUT/whole.tar.zst", 0, "OUT/whole.tar.zst"),
    call("halu sample NAME --out OUT/sheet.csv", 0, "sheet.csv"),
    call("halu agreement NAME OUT/sheet.csv", 2, "rows have no verdict"),
    call("verify NAME", 0, "the log is sound"),
    call("halu calibrate NAME --out OUT/weights.toml", 0, "weights.toml"),
    call("fleet dead-letters NAME", 0, ""),
    call("fleet dead-letters NAME 0", 2, "NAME"),
    call("fleet dead-letters NAME 0 --requeue", 2, "NAME"),
    call("cancel NAME", 2, "finished"),
    call("rm NAME", 0, "NAME"),
];

/// The verbs of the reference that take a benchmark's name, and of these the ones that a coordinator answers.
fn verbs() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut all, mut remote) = (BTreeSet::new(), BTreeSet::new());
    let reference = include_str!("../../../docs/reference/cli.md");
    for section in reference.split("```text\nkgfleet ").skip(1) {
        let usage = section.lines().next().unwrap();
        let words: Vec<&str> = usage.split(' ').collect();
        if words.iter().any(|word| ["RUN", "PIPELINE"].iter().any(|name| word[1..].starts_with(name))) {
            let verb = words[..words.iter().position(|word| word.starts_with(['[', '<'])).unwrap()].join(" ");
            let options = section.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
            if options.contains("`--fleet") {
                remote.insert(verb.clone());
            }
            all.insert(verb);
        }
    }
    assert!(all.len() > 16 && remote.len() > 12, "the reference names the verbs: {all:?}, {remote:?}");
    (all, remote)
}

/// The verbs of calls, of those that name the benchmark.
fn walked(calls: &[Call]) -> BTreeSet<String> {
    calls.iter().filter_map(|call| Some(call.call.split_once(NAME)?.0.trim().to_owned())).collect()
}

/// Makes the calls one after the other.
fn walk(calls: &[Call], name: &str, dialogue: &str, out: &str, kgfleet: &dyn Fn(&[&str]) -> Finished) {
    let mut wrong = Vec::new();
    for Call { call, code, word } in calls {
        let filled = |text: &str| text.replace(NAME, name).replace(DIALOGUE, dialogue).replace(OUT, out);
        // Calls are made in the folder in which the configuration is.
        let words = filled(call);
        let finished = kgfleet(&words.split(' ').collect::<Vec<_>>());
        let said = finished.stdout.contains(&filled(word)) || finished.stderr.contains(&filled(word));
        if finished.code() != Some(*code) || !said {
            wrong.push(format!("`{call}` should end with {code} and `{word}`: {finished}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_verb_that_takes_a_name_knows_a_judged_benchmark_in_a_folder() {
    let (all, _) = verbs();
    assert_eq!(walked(IN_A_FOLDER), all);
    let (data, out) = (Data::new(), tempfile::tempdir().unwrap());
    data.kgfleet(&["run", &configuration(&data)]).expect(0);
    let name = data.kgfleet(&["status", "--json"]).expect(0).json()["run"].as_str().unwrap().to_owned();
    let ask = data.runs().into_iter().find(|run| run.name().contains(".ask.")).unwrap();
    let dialogue = ask.records().keys().next().unwrap().to_string();
    walk(IN_A_FOLDER, &name, &dialogue, out.path().to_str().unwrap(), &|arguments| data.kgfleet(arguments));
}

#[test]
fn every_verb_that_a_coordinator_answers_knows_a_judged_benchmark() {
    let (_, remote) = verbs();
    assert_eq!(walked(ON_A_FLEET), remote);
    let Some(cluster) = Cluster::start() else { return };
    let out = tempfile::tempdir().unwrap();
    let coordinator = cluster.coordinator();
    let place = format!("127.0.0.1:{}", free_port());
    let configuration = configuration(&cluster.data);
    let _models = cluster.data.start(&["simulate", "--benchmark", &configuration, "--listen", &place]);
    let _worker =
        cluster.worker_with("w", coordinator.port, &format!("http://{place}"), &["--concurrency", "8"]);
    let submitted = cluster.kgfleet(&coordinator, &["submit", &configuration]).expect(0);
    let name = submitted.stdout.trim();
    cluster.kgfleet(&coordinator, &["status", "--follow", name]);
    let listed = cluster.kgfleet(&coordinator, &["show", name, "--format", "json"]).expect(0).json();
    let of_ask = |row: &&Value| row["run"].as_str().unwrap().contains(".ask.");
    let dialogue =
        listed["rows"].as_array().unwrap().iter().find(of_ask).unwrap()["dialogue"].as_str().unwrap();
    walk(ON_A_FLEET, name, dialogue, out.path().to_str().unwrap(), &|arguments| {
        cluster.kgfleet(&coordinator, arguments)
    });
}
