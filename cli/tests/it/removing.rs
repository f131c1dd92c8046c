//! `kgfleet rm`: packs go with the last run that names them, and old runs together.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// Removes what is older than a month.
fn old(data: &Data) -> Finished {
    data.kgfleet(&["rm", "--older-than", "30d"])
}

#[test]
fn the_pack_of_a_removed_run_goes_with_it_and_one_in_use_stays() {
    let data = Data::new();
    let stays = run(&data, NT_TASK);
    data.kgfleet(&["task", "new", "answer-word", "--name", "words"]).expect(0);
    data.kgfleet(&["run", "words.toml", "--no-sandbox"]).expect(0);
    let goes = data.runs().into_iter().find(|run| run.name() != stays.name()).unwrap();
    let hash = goes.manifest.packs[0].hash.clone();
    packs(&data).iter().for_each(|pack| age(pack, A_WHILE));
    // A run that begins may have brought it just now.
    let unused = data.write(&format!("packs/{}.kgpack", "0".repeat(64)), "of no run");
    age(&unused, LATELY);
    data.kgfleet(&["rm", goes.name()]).expect(0).says(&[&format!("removed pack {hash}")]);
    assert_eq!(packs(&data).len(), 2);
    data.kgfleet(&["verify", stays.name()]).expect(0);
    assert!(unused.exists());
}

#[test]
fn where_a_manifest_cannot_be_read_every_pack_stays() {
    let data = Data::new();
    let (broken, goes) = (run(&data, NT_TASK), run(&data, CHEAP_TASKS[0]));
    let unused = data.write(&format!("packs/{}.kgpack", "0".repeat(64)), "of no run");
    age(&unused, A_WHILE);
    fs::write(broken.dir.manifest_path(), "{").unwrap();
    data.kgfleet(&["rm", goes.name()]).expect(0).says(&["no pack is removed", broken.name()]);
    assert!(unused.exists());
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
    let removed = format!("removed {}", goes.name());
    old(&data).expect(0).says(&[busy.name(), "another process writes it", &removed]);
    let stay = |run: &RunOnDisk| data.runs().iter().any(|other| other.name() == run.name());
    assert_eq!([goes, young, interrupted, busy].map(stay), [false, true, true, true]);
    assert_eq!(packs(&data).len(), 1, "others refer to it");
    drop(lock);
    old(&data).expect(0).says(&[busy.name()]);
    assert_eq!([goes, young, interrupted, busy].map(stay), [false, true, true, false]);
    data.kgfleet(&["verify", young.name()]).expect(0);
    data.kgfleet(&["rm", "latest", "--older-than", "30d"]).expect(2).says(&["--older-than"]);
}

#[test]
fn answers_stay_as_long_as_a_judged_benchmark_takes_them() {
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
    recent.iter().for_each(|path| age(path, DAY * 40));
    old(&data).expect(0).says(&[&format!("removed {base}")]);
    assert!(data.runs().is_empty() && fs::read_dir(&folders[2]).unwrap().count() == 0);
    // Whoever removes a judged benchmark loads its runs, which writes their packs anew.
    age(&folders[1], A_WHILE);
    old(&data).expect(0);
    assert!(packs(&data).is_empty());
}
