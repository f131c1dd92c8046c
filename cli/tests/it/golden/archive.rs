//! A data folder as one file, a tar in zstd, encrypted as packs are: records hold the texts of exercises.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Compression level. An archive is written once.
const ZSTD_LEVEL: i32 = 19;

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
    let mut sealed = zip::ZipWriter::new(std::fs::File::create(archive).unwrap());
    let password = packs::published_password();
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .with_aes_encryption(zip::AesMode::Aes256, password.as_str());
    sealed.start_file("data.tar.zst", options).unwrap();
    sealed.write_all(&packed).unwrap();
    sealed.finish().unwrap();
}

/// Unpacks an archive into a folder.
pub fn open(archive: &Path, folder: &Path) {
    let sealed =
        std::fs::File::open(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let mut sealed = zip::ZipArchive::new(sealed).unwrap();
    let password = packs::published_password();
    let packed = sealed.by_index_decrypt(0, password.as_str().as_bytes()).unwrap();
    let mut plain = Vec::new();
    zstd::Decoder::new(packed).unwrap().read_to_end(&mut plain).unwrap();
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
