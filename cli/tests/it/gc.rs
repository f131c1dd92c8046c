//! `kgfleet gc`: what nothing refers to goes, old runs where they are asked for, and nothing else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use domain::DialogueKey;
use domain::exchange::Delivery;
use serde_json::Value;
use worker::outbox::spool::Spool;

use crate::harness::{CHEAP_TASKS, Data, FACTS, Finished, NT_TASK, RunOnDisk, judged_facts};

/// A day, and what is younger than an hour and older than that.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LATELY: Duration = Duration::from_secs(30 * 60);
const A_WHILE: Duration = Duration::from_secs(2 * 60 * 60);

/// Makes a file, or a folder with everything in it, as old as this.
fn age(path: &Path, age: Duration) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| self::age(&entry.unwrap().path(), age));
    }
    File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

fn packs(data: &Data) -> Vec<PathBuf> {
    let found = fs::read_dir(data.path().join("packs")).unwrap();
    let mut packs: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    packs.sort();
    packs
}

fn run(data: &Data, task: &str) -> RunOnDisk {
    let before: Vec<String> = data.runs().iter().map(|run| run.name().to_owned()).collect();
    data.kgfleet(&["run", "--task", task, "--iterations", "1", "--no-sandbox"]).expect(0);
    data.runs().into_iter().find(|run| !before.contains(&run.manifest.run.to_string())).unwrap()
}

/// What `gc` names with these arguments, as `WHAT PATH`.
fn named(data: &Data, arguments: &[&str]) -> Vec<String> {
    let told = data.kgfleet(&[&["gc", "--json"], arguments].concat()).expect(0).json();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    let items = told["items"].as_array().unwrap().iter();
    items.map(|item| format!("{} {}", text(item, "what"), text(item, "path"))).collect()
}

/// Removes what is older than a month, too.
fn old(data: &Data) -> Finished {
    data.kgfleet(&["gc", "--older-than", "30", "--apply"])
}

#[test]
fn the_pack_of_a_removed_run_goes_and_one_in_use_stays() {
    let data = Data::new();
    let stays = run(&data, NT_TASK);
    data.kgfleet(&["task", "new", "answer-word", "--name", "words"]).expect(0);
    data.kgfleet(&["run", "words.toml", "--no-sandbox"]).expect(0);
    let runs = data.runs();
    let goes = runs.iter().find(|run| run.name() != stays.name()).unwrap();
    let pack = format!("packs/{}.kgpack", goes.manifest.packs[0].hash);
    packs(&data).iter().for_each(|pack| age(pack, A_WHILE));
    assert_eq!(packs(&data).len(), 2);
    assert!(named(&data, &[]).is_empty(), "both are in use");

    data.kgfleet(&["rm", goes.name()]).expect(0);
    age(&data.path().join(&pack), LATELY);
    assert!(named(&data, &[]).is_empty(), "a run that begins may have brought it just now");
    age(&data.path().join(&pack), A_WHILE);
    assert_eq!(named(&data, &[]), [format!("pack {pack}")]);
    data.kgfleet(&["gc"]).expect(0).prints(&[&pack, "sum"]).says(&["--apply"]);
    assert_eq!(packs(&data).len(), 2, "without --apply nothing goes");
    data.kgfleet(&["gc", "--apply"]).expect(0).prints(&[&pack]).says(&["freed"]);
    assert_eq!(packs(&data).len(), 1);
    data.kgfleet(&["verify", stays.name()]).expect(0);
    assert!(named(&data, &["--apply"]).is_empty());
}

#[test]
fn where_a_manifest_cannot_be_read_every_pack_stays() {
    let data = Data::new();
    let run = run(&data, NT_TASK);
    let unused = data.write(&format!("packs/{}.kgpack", "0".repeat(64)), "of no run");
    age(&unused, A_WHILE);
    let manifest = fs::read(run.dir.manifest_path()).unwrap();
    fs::write(run.dir.manifest_path(), "{").unwrap();
    data.kgfleet(&["gc", "--apply"]).expect(0).says(&["no pack is removed", run.name()]);
    assert_eq!(packs(&data).len(), 2);
    fs::write(run.dir.manifest_path(), manifest).unwrap();
    data.kgfleet(&["gc", "--apply"]).expect(0);
    assert!(packs(&data).len() == 1 && !unused.exists());
}

#[test]
fn old_runs_go_that_are_over_and_that_nobody_writes() {
    let data = Data::new();
    let runs: Vec<RunOnDisk> = CHEAP_TASKS.iter().map(|task| run(&data, task)).collect();
    let [goes, young, interrupted, busy] = &runs[..] else { panic!("four tasks, four runs") };
    // As a process leaves it that is killed before it has finished the run.
    let files = fs::read_dir(interrupted.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let is_later = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("state-");
    files.filter(is_later).for_each(|path| fs::remove_file(path).unwrap());
    age(&data.path().join("runs"), DAY * 40);
    age(&data.path().join("packs"), DAY * 40);
    age(young.dir.path(), DAY * 20);
    let lock = busy.dir.lock().unwrap();
    assert!(named(&data, &[]).is_empty(), "runs go only where they are asked for");
    assert_eq!(named(&data, &["--older-than", "30"]), [format!("run runs/{}", goes.name())]);
    assert_eq!(data.runs().len(), 4);

    let said = [busy.name(), "another process writes it", "freed"];
    old(&data).expect(0).prints(&[goes.name()]).says(&said);
    let stay = |run: &RunOnDisk| data.runs().iter().any(|other| other.name() == run.name());
    assert_eq!([goes, young, interrupted, busy].map(stay), [false, true, true, true]);
    assert_eq!(packs(&data).len(), 1, "others refer to it");
    drop(lock);
    old(&data).expect(0).prints(&[busy.name()]);
    assert_eq!([goes, young, interrupted, busy].map(stay), [false, true, true, false]);
    data.kgfleet(&["verify", young.name()]).expect(0);
}

#[test]
fn answers_stay_as_long_as_a_judged_benchmark_takes_them_and_derived_packs_go_with_it() {
    let data = Data::new();
    let judged = judged_facts(&[FACTS], 2, &[("weak", 0.2)]);
    let configuration = data.write("facts.toml", &judged);
    data.kgfleet(&["run", configuration.to_str().unwrap(), "--no-sandbox"]).expect(0);
    let base = data.kgfleet(&["status", "--json"]).expect(0).json()["run"].as_str().unwrap().to_owned();
    let others = data.write("others.toml", judged.replace("label = \"grader\"", "label = \"other\""));
    let judge = ["rejudge", "latest", "--with", others.to_str().unwrap(), "--no-sandbox"];
    data.kgfleet(&judge).expect(0);
    let folders = ["runs", "packs", "pipelines"].map(|name| data.path().join(name));
    folders.iter().for_each(|folder| age(folder, DAY * 40));
    let of_taker = |folder: &PathBuf| {
        let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_of_base = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&base);
        found.filter(|path| !is_of_base(path)).collect::<Vec<_>>()
    };
    let recent = [of_taker(&folders[0]), of_taker(&folders[2])].concat();
    recent.iter().for_each(|path| age(path, DAY));
    assert!(!recent.is_empty() && packs(&data).len() > 2, "there are derived packs");
    old(&data).expect(0).says(&[&base, "takes its answers"]);
    assert!(named(&data, &["--older-than", "30"]).is_empty());

    recent.iter().for_each(|path| age(path, DAY * 40));
    let listed = named(&data, &["--older-than", "30"]);
    assert!(
        listed[0].starts_with("pipeline") && listed[1] == format!("pipeline runs/{base}.*"),
        "{listed:?}"
    );
    old(&data).expect(0).says(&["packs that stay for now", "written within the hour"]);
    assert!(data.runs().is_empty() && fs::read_dir(&folders[2]).unwrap().count() == 0);
    // Whoever removes a judged benchmark loads its runs, which writes their packs anew.
    age(&folders[1], A_WHILE);
    data.kgfleet(&["gc", "--apply"]).expect(0);
    assert!(packs(&data).is_empty());
}

#[test]
fn what_killed_processes_left_goes_and_records_that_wait_stay() {
    let data = Data::new();
    let run = run(&data, NT_TASK);
    let left = [
        run.dir.exports().join("all.csv.part"),
        run.dir.log().join("00000001.synced.0123456789abcdef.part"),
        data.path().join("packs/x.kgpack.0123456789abcdef.part"),
        data.path().join("probe-0123456789abcdef"),
    ];
    let kept = [data.path().join("notes.part"), data.path().join("store.json.0123456789abcdef.part")];
    for path in left.iter().chain(&kept) {
        fs::write(path, "half a").unwrap();
        age(path, A_WHILE);
    }
    age(&kept[1], LATELY);
    let spools = data.path().join("kgfleet-work/spool");
    drop(Spool::open(&spools.join("idle"), 0).unwrap());
    let (mut waiting, _) = Spool::open(&spools.join("waiting"), 0).unwrap();
    let key = DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 };
    waiting.append(&[Delivery { run: "r".into(), key, failure: None, json: "{}".into() }]).unwrap();
    drop(waiting);
    let used = Spool::open(&spools.join("used"), 0).unwrap();
    age(&spools, A_WHILE);

    let lock = run.dir.lock().unwrap();
    assert_eq!(named(&data, &[]).len(), 3, "not of the run that somebody writes");
    drop(lock);
    data.kgfleet(&["gc", "--apply"]).expect(0).prints(&["spool/idle"]);
    assert!(left.iter().all(|path| !path.exists()) && kept.iter().all(|path| path.exists()));
    let mut names: Vec<_> = fs::read_dir(&spools).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["used", "waiting"]);
    drop(used);
    data.kgfleet(&["verify", run.name()]).expect(0);

    // Two at once would take each other's packs for files of killed processes.
    let alone = File::create(data.path().join("gc.lock")).unwrap();
    alone.lock().unwrap();
    age(&spools, A_WHILE);
    data.kgfleet(&["gc", "--apply"]).expect(3).says(&["another `kgfleet gc`"]);
}
