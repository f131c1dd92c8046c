//! The provenance of an imported pack: names and hashes of files, never their texts.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::text::hex;
use results::llmkgbench::Document;
use sha2::{Digest, Sha256};

use super::GraphDocument;
use super::report::{FileLine, Findings, Problem};
use crate::manifest::sha256_hex;

/// Bytes hashed at a time.
const HASHED_BYTES: usize = 64 << 10;

/// The files on disk, each once, and the graphs. Names are without folders, so that the same files give the same pack
/// on every machine.
pub(super) fn files(
    documents: &[Document],
    graphs: &[GraphDocument],
    findings: &mut Findings,
) -> Vec<FileLine> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for document in documents {
        if !paths.iter().any(|path| path == document.path()) {
            paths.push(document.path().to_owned());
        }
    }
    let mut lines = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        match sha256_of(&path) {
            Ok(sha256) => lines.push(FileLine { name, sha256 }),
            Err(error) => {
                let message = format!("cannot be hashed: {error}");
                findings.file(&path.display().to_string(), Problem::Unreadable { message });
            }
        }
    }
    lines.extend(
        graphs.iter().map(|graph| FileLine { name: graph.file.clone(), sha256: sha256_hex(&graph.content) }),
    );
    lines
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; HASHED_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => digest.update(&buffer[..length]),
        }
    }
    Ok(hex(digest.finalize()))
}

/// The provenance of the header.
pub(super) fn sentence(files: &[FileLine]) -> String {
    let files: Vec<String> =
        files.iter().map(|file| format!("{} (SHA-256 {})", file.name, file.sha256)).collect();
    format!("Imported by kgfleet from {}.", files.join(", "))
}

/// A canary that equal imports share: with a random one, every import would have another hash.
pub(super) fn canary(files: &[FileLine]) -> String {
    format!("kgfleet-imported-pack-{}", sha256_hex(sentence(files).as_bytes()))
}
