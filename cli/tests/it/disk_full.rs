//! No room for records: acknowledged ones stay readable, the message says what to do, and with room the run continues.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{CHEAP_TASKS, Data, RunOnDisk, Server, process};

const ITERATIONS: u32 = 400;
const DIALOGUES: usize = 4 * ITERATIONS as usize;

/// Room for a part of the records, and for all of them with the exports, in KiB.
const ROOM_KIB: u32 = 128;
const AMPLE_KIB: u32 = 256 << 10;

fn arguments(server: &Server) -> Vec<String> {
    server.run_arguments(&CHEAP_TASKS, ITERATIONS, 32)
}

/// What holds after the disk was full and when there is room again.
fn goes_on(server: &Server, data: &Data, run: &RunOnDisk, folder: &Path) {
    let before = run.records();
    assert!(!before.is_empty() && before.len() < DIALOGUES, "{} records", before.len());
    let folder = folder.to_str().unwrap();
    data.kgfleet(&["verify", run.name(), "--data-dir", folder]).expect(1).prints(&["the log is sound"]);
    server.gate().take_asked();
    data.kgfleet(&["resume", run.name(), "--data-dir", folder]).expect(0).says(&["1600 dialogues scored"]);
    let after = run.records();
    assert_eq!(after.len(), DIALOGUES);
    assert!(before.iter().all(|(key, entry)| after[key] == *entry), "durable records stay as they were");
    assert_eq!(server.gate().take_asked().len(), DIALOGUES - before.len());
    data.kgfleet(&["verify", run.name(), "--data-dir", folder]).expect(0);
}

#[test]
fn a_file_that_may_not_grow_further_stops_the_run() {
    let (server, data) = (Server::start(), Data::new());
    // In blocks of 512 bytes. The signal that goes with the limit would kill; a full disk sends none.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", 2 * ROOM_KIB);
    let mut command = Command::new("sh");
    process::shield(&mut command);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_kgfleet")]).args(arguments(&server));
    let finished =
        process::finish(command.env("KGFLEET_DATA_DIR", data.path()).env("XDG_STATE_HOME", data.state()))
            .expect(3);
    let run = data.run();
    let resume = format!("kgfleet resume {}", run.name());
    finished.says(&["records cannot be stored; what was stored is safe", "Free space", ".kglog", &resume]);
    goes_on(&server, &data, &run, data.path());
}

/// A file system of its own, unmounted at the end.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts a small file system in memory; nothing where this user may not.
    pub fn tmpfs(at: &Path, kib: u32) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let mount = Self(at.to_owned());
        mount.call(&["-t", "tmpfs", "-o", &format!("size={kib}k"), "none"]).then_some(mount)
    }

    fn resize(&self, kib: u32) {
        assert!(self.call(&["-o", &format!("remount,size={kib}k")]));
    }

    /// `mount` with these arguments for it.
    pub fn call(&self, arguments: &[&str]) -> bool {
        let output = Command::new("mount").args(arguments).arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a process that a failed test left behind must not keep it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_stops_the_run() {
    let (server, data) = (Server::start(), Data::new());
    let folder = data.path().join("small");
    let Some(mount) = Mount::tmpfs(&folder, ROOM_KIB) else {
        // No tool is missing but a right, and the file size limit is tested in its place: this may skip anywhere.
        crate::harness::skip_where_nothing_helps("this user cannot mount a small file system");
        return;
    };
    let mut start = arguments(&server);
    start.extend(["--data-dir".to_owned(), folder.to_str().unwrap().to_owned()]);
    let finished = data.kgfleet(&start).expect(3);
    let found = results::RunDir::list(&folder).unwrap().remove(0);
    let run = RunOnDisk { dir: found.dir, manifest: found.manifest.unwrap() };
    let resume = format!("kgfleet resume {}", run.name());
    finished.says(&["the disk is full", "what was stored is safe", "Free space", &resume]);
    // Free space, as the message says.
    mount.resize(AMPLE_KIB);
    goes_on(&server, &data, &run, &folder);
}
