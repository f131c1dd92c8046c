//! How a test skips: aloud.
//!
//! A test that lacks something skips with a message. `make test` says at its end what skipped and why, because the test
//! runner keeps the output of tests that pass: it names a file in [`SKIPS`], to which every skip adds a line. `.ci/run` sets
//! [`MUST_NOT_SKIP`], and a skip fails there, because it has installed everything that tests need. What nobody can install
//! is the exception: published dialogues ([`Conformance`](crate::Conformance)), and the right to mount a file system.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Set where every test must run: a skip fails.
pub const MUST_NOT_SKIP: &str = "KGFLEET_TESTS_MUST_NOT_SKIP";

/// A file that gets a line for every test that skips.
pub const SKIPS: &str = "KGFLEET_TESTS_SKIPS";

/// Prints that a test skips, and why.
///
/// # Panics
/// If no test may skip.
pub fn skip(why: &str) {
    assert!(
        std::env::var_os(MUST_NOT_SKIP).is_none(),
        "a test would skip, and {MUST_NOT_SKIP} is set: {why}"
    );
    tell(why);
}

/// Skips a test that needs something that nobody can install. This is allowed even if [`MUST_NOT_SKIP`] is set.
pub fn skip_where_nothing_helps(why: &str) {
    tell(why);
}

/// Prints why a test skips, and adds it to the file in [`SKIPS`].
fn tell(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("SKIPPED: {test}: {why}");
    if let Some(file) = std::env::var_os(SKIPS) {
        let opened = OpenOptions::new().create(true).append(true).open(&file);
        let told = opened.and_then(|mut file| file.write_all(format!("{test}: {why}\n").as_bytes()));
        told.unwrap_or_else(|error| panic!("{}: {error}", Path::new(&file).display()));
    }
}
