//! Where tests find published dialogues, which are not part of this repository.

use std::path::{Path, PathBuf};

use crate::skip::skip_where_nothing_helps;

/// The folder of the published dialogues.
pub const CONFORMANCE: &str = "KGFLEET_CONFORMANCE";

/// The password of the published archives.
pub const CONFORMANCE_PASSWORD: &str = "KGFLEET_CONFORMANCE_PASSWORD";

/// Published dialogues: result files with their scores, and their graphs.
#[derive(Clone, Debug)]
pub struct Conformance {
    folder: PathBuf,
    /// Password of the archives.
    pub password: String,
}

impl Conformance {
    /// Finds the data in the folder that `KGFLEET_CONFORMANCE` names, else in `shared/conformance` beside the
    /// repository. `None`, said aloud, if there is none.
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
