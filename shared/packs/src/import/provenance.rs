//! The provenance of an imported pack: names and hashes of files, never their texts.

use std::path::PathBuf;

use results::archive::hashed;
use results::llmkgbench::Document;

use super::GraphDocument;
use super::report::{FileLine, Findings, Problem};
use crate::manifest::sha256_hex;

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
        match hashed(&path) {
            Ok((_, sha256)) => lines.push(FileLine { name, sha256 }),
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
