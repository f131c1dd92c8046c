//! Where tests find published dialogues, which are not part of this repository, and which of them prove parity.
//!
//! A proof is a test that compares with published dialogues. All are named in `tests/proofs.txt`. Without the data they skip,
//! aloud. With it, `tests/run` fails for a proof that did not run: each that begins adds its name to the file in [`PROVEN`].

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::skip::skip_where_nothing_helps;

/// The folder of the published dialogues.
pub const CONFORMANCE: &str = "KGFLEET_CONFORMANCE";

/// The password of the published archives.
pub const CONFORMANCE_PASSWORD: &str = "KGFLEET_CONFORMANCE_PASSWORD";

/// A file that gets the name of every proof that has begun.
pub const PROVEN: &str = "KGFLEET_TESTS_PROVEN";

/// The names of all proofs, a line each.
const PROOFS: &str = include_str!("../../proofs.txt");

/// Published dialogues: result files with their scores, and their graphs.
#[derive(Clone, Debug)]
pub struct Conformance {
    folder: PathBuf,
    /// Password of the archives.
    pub password: String,
}

impl Conformance {
    /// The data for the proof of this name; `None`, said aloud, if there is none.
    ///
    /// # Panics
    /// The proof is not on the list, or as [`Self::find`] does.
    pub fn for_proof(proof: &str) -> Option<Self> {
        assert!(PROOFS.lines().any(|line| line == proof), "{proof} is missing in tests/proofs.txt");
        let found = Self::find()?;
        if let Some(file) = std::env::var_os(PROVEN) {
            let opened = OpenOptions::new().create(true).append(true).open(&file);
            let told = opened.and_then(|mut file| file.write_all(format!("{proof}\n").as_bytes()));
            told.unwrap_or_else(|error| panic!("{}: {error}", Path::new(&file).display()));
        }
        Some(found)
    }

    /// Finds the data in the folder that `KGFLEET_CONFORMANCE` names, else in `shared/conformance` beside the
    /// repository. `None`, said aloud, if there is no such folder.
    ///
    /// # Panics
    /// The folder is there, or named, and does not hold the data, or the data's password is not known.
    pub fn find() -> Option<Self> {
        let named = std::env::var_os(CONFORMANCE).map(PathBuf::from);
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
        let folder = named.clone().unwrap_or_else(beside);
        if !folder.join("v3").is_dir() {
            let missing = format!("no published dialogues in {}", folder.display());
            assert!(named.is_none(), "{missing}, which {CONFORMANCE} names");
            assert!(!folder.exists(), "{missing}, although the folder is there");
            skip_where_nothing_helps(&format!("{missing}; {CONFORMANCE} names another folder"));
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
