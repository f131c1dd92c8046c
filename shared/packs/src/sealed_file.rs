//! Writes sealed packs to files.

use std::io::Write;
use std::path::{Path, PathBuf};

use results::password::Password;

use crate::error::PackError;
use crate::pack::Pack;
use crate::parts::{Parts, io};
use crate::sealed::seal;

/// Seals parts into a file, and writes the manifest in plaintext beside it ([`manifest_path`]): reviewers see which
/// entries a change touches, and the manifest contains no exercise. Every case is parsed first, so that an invalid
/// pack is never written.
///
/// # Errors
/// The parts are not a valid pack, or a file cannot be written.
pub fn seal_file(parts: &Parts, password: &Password, path: &Path) -> Result<Pack, PackError> {
    let pack = Pack::from_parts(parts.clone())?;
    write_whole(path, &seal(parts, password)?)?;
    write_whole(&manifest_path(path), &pack.manifest().to_bytes())?;
    Ok(pack)
}

/// The path of the plaintext manifest of a sealed file: `core.kgpack` has `core.manifest.json`.
pub fn manifest_path(sealed: &Path) -> PathBuf {
    sealed.with_extension("manifest.json")
}

fn write_whole(path: &Path, content: &[u8]) -> Result<(), PackError> {
    results::files::replace(path, |mut file| file.write_all(content).map(|()| file)).map_err(io(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::HEADER_PATH;
    use crate::sealed::tests::HEADER;

    #[test]
    fn a_sealed_file_has_its_manifest_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, password) = (dir.path().join("own.kgpack"), Password::new("ours"));
        let mut parts = Parts::new("test");
        parts.insert(HEADER_PATH, HEADER.as_bytes()).unwrap();
        parts.insert("a.txt", b"a".as_slice()).unwrap();
        let pack = seal_file(&parts, &password, &path).unwrap();
        let opened = Pack::open(&path, &password).unwrap();
        assert_eq!(opened.hash(), pack.hash());
        assert_eq!(
            std::fs::read(dir.path().join("own.manifest.json")).unwrap(),
            opened.manifest().to_bytes()
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }
}
