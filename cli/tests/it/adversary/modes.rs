//! Other users of the machine, who read what they can.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::{Data, NT_TASK, process};

/// Asserts of everything below a folder what others may do with it.
#[track_caller]
fn assert_rights(folder: &Path, expected: u32) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let rights = entry.metadata().unwrap().permissions().mode() & 0o077;
        let may_enter = if entry.path().is_dir() { expected | expected >> 2 } else { expected };
        assert_eq!(rights, may_enter, "{}: {rights:o}", entry.path().display());
        if entry.path().is_dir() {
            assert_rights(&entry.path(), expected);
        }
    }
}

#[test]
fn what_is_written_is_for_its_user_unless_more_is_wished() {
    let text = format!(
        "name = 'a'\niterations = 1\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n"
    );
    for (umask, rights) in [(None, 0), (Some("022"), 0o044)] {
        let data = Data::new();
        let file = data.write("a.toml", &text);
        let kgfleet = |arguments: &[&str]| {
            let mut command = data.command(arguments);
            command.envs(umask.map(|umask| ("KGFLEET_UMASK", umask)));
            process::finish(&mut command)
        };
        kgfleet(&["run", file.to_str().unwrap()]).expect(0);
        for format in ["csv", "jsonl", "result-json"] {
            kgfleet(&["export", "latest", "--format", format, "--plaintext"]).expect(0);
        }
        assert!(data.run().exported().count() >= 3);
        assert_rights(&data.path().join("runs"), rights);
    }
    let data = Data::new();
    let mut wrong = data.command(&["status"]);
    process::finish(wrong.env("KGFLEET_UMASK", "rw")).expect(2).says(&["KGFLEET_UMASK", "octal"]);
}
