//! Records restored from an older copy, or with a part missing, under a newer queue.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::in_the_middle;
use crate::harness::cluster::Coordinator;
use crate::harness::{Cluster, Data, NT_TASK};

const TASKS: [&str; 1] = [NT_TASK];
const ITERATIONS: u32 = 20;
const DIALOGUES: u64 = ITERATIONS as u64;

/// Answers before the server waits.
const ANSWERED: usize = 10;

fn end(coordinator: Coordinator) {
    coordinator.process.signal(Signal::TERM);
    coordinator.process.finish().expect(0);
}

/// Copies records as docs/operating.md says, what the logs belong to before the logs.
fn back_up(from: &Path, to: &Path) {
    let logs_last: [&[&str]; 2] = [
        &["--exclude=*.kglog", "--exclude=*.synced", "--exclude=*.lock", "--exclude=/work"],
        &["--include=*/", "--include=*.kglog", "--include=*.kgpack", "--exclude=*"],
    ];
    for patterns in logs_last {
        let mut rsync = Command::new("rsync");
        rsync.arg("--archive").args(patterns).arg(format!("{}/", from.display())).arg(to);
        assert!(rsync.status().expect("rsync, which tests/setup installs").success());
    }
}

/// Puts a copy in the place of the records.
fn restore(from: &Path, data: &Data) {
    for entry in fs::read_dir(data.path()).unwrap() {
        let path = entry.unwrap().path();
        match path.file_name().is_some_and(|name| name == "work") {
            true => {}
            false if path.is_dir() => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
    let mut rsync = Command::new("rsync");
    rsync.arg("--archive").arg(format!("{}/", from.display())).arg(data.path());
    assert!(rsync.status().unwrap().success());
}

#[test]
fn a_run_goes_on_from_a_copy_that_was_made_while_it_was_written() {
    let Some(cluster) = Cluster::start() else { return };
    let (server, coordinator, run, worker) = in_the_middle(&cluster, &TASKS, ITERATIONS, ANSWERED);
    let port = coordinator.port;
    let copy = Data::new();
    back_up(cluster.data.path(), copy.path());
    // The copy is sound by itself, whenever it was made.
    copy.kgfleet(&["verify", &run]).expect(1).prints(&["have no record yet"]);
    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!(view.scored, DIALOGUES);
    end(coordinator);
    // A run that finished while the worker still held a lease is forgotten. Then nobody knows that the copy lacks records.
    let is_remembered = cluster.redis.say::<u64>(&format!("HEXISTS kgf:{{queue}}:runs {run}")) == 1;

    restore(copy.path(), &cluster.data);
    server.gate().take_asked();
    let coordinator = cluster.coordinator_at(port);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES, 0));
    let told = view.history.iter().any(|entry| entry.what.contains("are lost; they are asked again"));
    assert_eq!(told, is_remembered, "{:?}", view.history);
    let again = server.gate().take_asked().len();
    assert!((1..DIALOGUES as usize).contains(&again), "what the copy holds is not asked again: {again}");
    cluster.data.kgfleet(&["verify", &run]).expect(0);
    worker.signal(Signal::TERM);
    worker.finish().expect(0);
}
