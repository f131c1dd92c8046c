//! Archives of results that are small and hold more than a machine has.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::harness::{Data, process};

const NOTHING_READ: i32 = 3;

/// Address space of a command that reads an archive, in KiB: enough for any honest one.
const MEMORY_KIB: u32 = 2 << 20;

/// Broken records of a list. An error for each would take more than that.
const BROKEN: usize = 20_000_000;

/// A list of broken records in an archive of some kilobytes.
fn bomb(path: &Path) {
    let mut archive = ZipWriter::new(File::create(path).unwrap());
    archive.start_file("arr_result.json", SimpleFileOptions::default()).unwrap();
    archive.write_all(b"[").unwrap();
    let many = b"[],".repeat(BROKEN / 1_000);
    for _ in 0..1_000 {
        archive.write_all(&many).unwrap();
    }
    archive.write_all(b"[]]").unwrap();
    archive.finish().unwrap();
}

/// A shell that does something besides running `kgfleet` with arguments, which are its `"$0" "$@"`.
fn shell(data: &Data, script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    process::shield(&mut command);
    command.args(["-c", script, env!("CARGO_BIN_EXE_kgfleet")]).args(arguments).current_dir(data.path());
    command
}

#[test]
fn a_small_archive_of_millions_of_broken_records_is_given_up() {
    let data = Data::new();
    let file = data.path().join("bomb.zip");
    bomb(&file);
    assert!(file.metadata().unwrap().len() < 1 << 20);
    let script = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
    for (verb, told) in [
        ("table", "arr_result.json: has more than 1000 unreadable records"),
        ("reevaluate", "1 files and 1000 records could not be used"),
    ] {
        let read = process::finish(&mut shell(&data, &script, &[verb, file.to_str().unwrap()]));
        let read = read.expect(NOTHING_READ).says(&[told]);
        assert!(read.stderr.lines().count() < 100, "{read}");
    }
}

/// Files of an archive of many.
const FILES: usize = 4_000;

/// What may be read of such an archive and of all that a process needs besides, in bytes. Its directory is 300 kB: read
/// again for each file, it would be a thousand times as much.
const READ_BYTES: u64 = 64 << 20;

#[test]
fn an_archive_of_many_files_is_read_about_once() {
    let data = Data::new();
    let file = data.path().join("many.zip");
    let mut archive = ZipWriter::new(File::create(&file).unwrap());
    for number in 0..FILES {
        archive.start_file(format!("{number:05}_result.json"), SimpleFileOptions::default()).unwrap();
        archive.write_all(b"{}").unwrap();
    }
    archive.finish().unwrap();
    for verb in ["reevaluate", "table"] {
        // A shell has read what its children have read.
        let script = "\"$0\" \"$@\"; cat /proc/$$/io";
        let read = process::finish(&mut shell(&data, script, &[verb, file.to_str().unwrap()]));
        let bytes = read
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("rchar: "))
            .unwrap_or_else(|| panic!("{read}"));
        assert!(bytes.parse::<u64>().unwrap() < READ_BYTES, "{verb} read {bytes} bytes");
        read.says(&["00000_result.json: is not a JSON list of records"]);
    }
}
