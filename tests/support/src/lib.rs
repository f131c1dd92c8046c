//! Support for tests of several members: how a test skips, and where it finds published dialogues.
//!
//! A test that lacks something skips with a message. `make test` says at its end what skipped and why, because the test
//! harness keeps the output of tests that pass: it names a file in [`SKIPS`], to which every skip adds a line. `.ci/run` sets
//! [`MUST_NOT_SKIP`], and a skip fails there, because it has installed everything that tests need. Published dialogues are the
//! exception, because nothing can install them: their tests skip without the data, unless `KGFLEET_CONFORMANCE` says where it
//! is.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Set where every test must run: a skip fails.
pub const MUST_NOT_SKIP: &str = "KGFLEET_TESTS_MUST_NOT_SKIP";

/// A file that gets a line for every test that skips.
pub const SKIPS: &str = "KGFLEET_TESTS_SKIPS";

/// The folder of the published dialogues.
pub const CONFORMANCE: &str = "KGFLEET_CONFORMANCE";

/// The password of the published archives.
pub const CONFORMANCE_PASSWORD: &str = "KGFLEET_CONFORMANCE_PASSWORD";

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

/// Published dialogues: result files with their scores, and their graphs.
#[derive(Clone, Debug)]
pub struct Conformance {
    folder: PathBuf,
    /// Password of the archives.
    pub password: String,
}

impl Conformance {
    /// Finds the data in the folder that `KGFLEET_CONFORMANCE` names, else in `shared/conformance` beside the
    /// repository. `None`, with a message, if there is none.
    ///
    /// # Panics
    /// `KGFLEET_CONFORMANCE` names a folder that does not hold the data, or the data's password is not known.
    pub fn find() -> Option<Self> {
        let named = std::env::var_os(CONFORMANCE).map(PathBuf::from);
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
        let folder = named.clone().unwrap_or_else(beside);
        if !folder.join("v3").is_dir() {
            let missing = format!("no published dialogues in {}", folder.display());
            assert!(named.is_none(), "{missing}, which {CONFORMANCE} names");
            tell(&format!("{missing}; {CONFORMANCE} names another folder"));
            return None;
        }
        let password = std::env::var(CONFORMANCE_PASSWORD).ok().or_else(|| documented_password(&folder));
        let password =
            password.unwrap_or_else(|| panic!("set {CONFORMANCE_PASSWORD} to the archives' password"));
        Some(Self { folder, password })
    }

    /// A part of the data: `v3`, `classic` or a file of `graphs`.
    pub fn path(&self, part: &str) -> PathBuf {
        self.folder.join(part)
    }
}

/// The password that the data's own README prints: the last quoted word of its line about `v3/`.
fn documented_password(folder: &Path) -> Option<String> {
    let readme = std::fs::read_to_string(folder.join("README.md")).ok()?;
    let line = readme.lines().find(|line| line.contains("`v3/`"))?;
    line.rsplit('`').nth(1).map(str::to_owned)
}
