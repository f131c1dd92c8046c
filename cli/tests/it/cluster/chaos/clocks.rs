//! Clocks of processes that follow a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// By how much clocks are set, in seconds.
pub const OFFSETS_S: [i64; 5] = [0, 3_600, -3_600, 60, -60];

/// Makes the library that sets clocks; whether that could be done.
pub fn make(library: &Path) -> bool {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/clock.c");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(library).arg(source).status();
    made.is_ok_and(|status| status.success())
}

/// What makes a process follow the clock that a file sets.
pub fn environment(set: bool, library: &Path, file: &Path) -> Vec<(String, String)> {
    let variable = |name: &str, value: &Path| (name.to_owned(), value.to_str().unwrap().to_owned());
    match set {
        true => vec![variable("LD_PRELOAD", library), variable("KGFLEET_TEST_CLOCK", file)],
        false => Vec::new(),
    }
}

/// Sets a clock right, or an hour or a minute forward or back.
pub fn set(file: &Path, pick: usize) {
    // In place: processes have it in their memory.
    let file = File::options().write(true).open(file).unwrap();
    file.write_all_at(&OFFSETS_S[pick % OFFSETS_S.len()].to_ne_bytes(), 0).unwrap();
}
