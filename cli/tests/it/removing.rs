//! `kgfleet rm --older-than`: old runs go together.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::harness::{CHEAP_TASKS, Data, Finished, RunOnDisk};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

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
fn old_runs_go_that_are_over_and_that_nobody_writes() {
    let data = Data::new();
    let runs: Vec<RunOnDisk> = CHEAP_TASKS.iter().map(|task| run(&data, task)).collect();
    let [goes, young, interrupted, busy] = &runs[..] else { panic!("four tasks, four runs") };
    // As a process leaves it that is killed before it has finished the run.
    let state = interrupted.dir.path().join("state.json");
    let text = fs::read_to_string(&state).unwrap();
    fs::write(&state, text.replace("\"finished\"", "\"active\"")).unwrap();
    let segment = interrupted.dir.log().join("00000001-00000001.kglog");
    let bytes = fs::read(&segment).unwrap();
    let magic = b"\x89KGF\r\n\x1a\n";
    let end = bytes.windows(magic.len()).rposition(|window| window == magic).unwrap();
    fs::write(&segment, &bytes[..end]).unwrap();
    fs::remove_file(segment.with_extension("synced")).unwrap();
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
