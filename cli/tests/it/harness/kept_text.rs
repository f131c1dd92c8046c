//! Compares texts in the repository with what the program prints now.

use std::path::Path;

/// Compares a text with the one that is kept in this file of the repository; with `KGFLEET_BLESS=1` keeps it instead. What
/// was made is left in the folder of temporary files, to compare.
#[track_caller]
pub fn compare(file: &str, made: &str, tests: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(file);
    if std::env::var_os("KGFLEET_BLESS").is_some_and(|bless| bless == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if kept == made {
        return;
    }
    let line = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    let line = line.unwrap_or_else(|| kept.lines().count().min(made.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("(its end)").to_owned();
    let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join(path.file_name().unwrap());
    std::fs::write(&left, made).unwrap();
    panic!(
        "{file} is stale from line {} on:\n  kept {}\n  made {}\nThe whole is in {}; if it is right, run \
         `KGFLEET_BLESS=1 cargo test -p cli --test it {tests}`",
        line + 1,
        at(&kept),
        at(made),
        left.display()
    );
}
