//! Old data as one file, `tar | zstd | age` for the published identity as packs are: records hold the texts of exercises.

use std::io::Read;
use std::path::{Path, PathBuf};

/// What opens the archives: it keeps out crawlers and is no secret.
const IDENTITY: &str = include_str!("../../../../task-data/identity.txt");

/// Compression level. An archive is written once.
const ZSTD_LEVEL: i32 = 19;

fn identity() -> age::x25519::Identity {
    let key = IDENTITY.lines().find(|line| !line.starts_with('#')).unwrap();
    key.parse().unwrap()
}

/// Where the archives lie.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Packs a folder with everything in it.
pub fn seal(folder: &Path, archive: &Path) {
    let mut tar = tar::Builder::new(Vec::new());
    // Sorted, and without times and owners.
    for path in below(folder) {
        let mut header = tar::Header::new_ustar();
        let content = if path.is_dir() { Vec::new() } else { std::fs::read(&path).unwrap() };
        header.set_entry_type(if path.is_dir() {
            tar::EntryType::Directory
        } else {
            tar::EntryType::Regular
        });
        header.set_size(content.len() as u64);
        header.set_mode(if path.is_dir() { 0o755 } else { 0o644 });
        tar.append_data(&mut header, path.strip_prefix(folder).unwrap(), content.as_slice()).unwrap();
    }
    let packed = zstd::bulk::compress(&tar.into_inner().unwrap(), ZSTD_LEVEL).unwrap();
    let sealed = age::encrypt(&identity().to_public(), &packed).unwrap();
    std::fs::write(archive, sealed).unwrap();
}

/// Unpacks an archive into a folder.
pub fn open(archive: &Path, folder: &Path) {
    let sealed = std::fs::read(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let packed = age::decrypt(&identity(), &sealed).unwrap();
    let mut plain = Vec::new();
    zstd::Decoder::new(packed.as_slice()).unwrap().read_to_end(&mut plain).unwrap();
    tar::Archive::new(plain.as_slice()).unpack(folder).unwrap();
}

/// Every folder and file below a folder, sorted by path.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}
