//! Copies runs between folders and stores, with the packs of their tasks.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use coordinator::BenchmarkCopy;
use domain::RunId;
use domain::text::hex;
use packs::{Identity, Pack};
use results::run_dir::RunLock;
use results::sink::transfer::{Transferred, transfer};
use results::{RunDir, RunManifest, Sink, sink};
use sha2::{Digest, Sha256};

use crate::kit::exit_code::Exit;
use crate::kit::output::{explain, note, say};
use crate::kit::runtime::block_on;
use crate::place::{folders, local};

/// Copies a run from one data folder to another.
pub fn between_folders(from: &Path, to: &Path, run: &RunId) -> anyhow::Result<Transferred> {
    into_folder(&sink::folder(from), to, run)
}

pub fn into_folder(from: &Arc<dyn Sink>, data: &Path, run: &RunId) -> anyhow::Result<Transferred> {
    let _lock = lock_if_there(data, run)?;
    let to = sink::folder(data);
    block_on(async { Ok(transfer(&**from, &*to, run).await?) })
}

/// Locks the run of this name in a data folder, if there is one.
fn lock_if_there(data: &Path, run: &RunId) -> anyhow::Result<Option<RunLock>> {
    match RunDir::open(data, run) {
        Ok((dir, _)) => Ok(Some(dir.lock()?)),
        Err(_) => Ok(None),
    }
}

/// Prints what was copied.
pub fn tell(moved: &Transferred, place: &str) -> io::Result<()> {
    let Transferred { manifest, files, copied, bytes, log_hash } = moved;
    let run = &manifest.run;
    match copied {
        0 => note!("run {run} is in {place}: all {files} files are the same"),
        _ => note!("run {run} is in {place}: {copied} of {files} files copied ({bytes} bytes), all compared"),
    }
    writeln!(io::stdout().lock(), "{log_hash}  {}", manifest.run)
}

/// Writes the documents of a judged benchmark where its runs are by now, and says so.
pub fn documents(
    documents: BenchmarkCopy,
    name: &RunId,
    to: &Arc<dyn Sink>,
    place: &str,
) -> anyhow::Result<()> {
    let runs = documents.runs().len();
    block_on(local::take_documents(documents, to))?;
    note!("benchmark {name} is in {place}: its documents and {runs} runs");
    Ok(())
}

/// Whether a place is the address of a coordinator.
pub fn is_coordinator(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

/// An empty folder, which a command needs to read an object store.
pub fn mirror() -> anyhow::Result<tempfile::TempDir> {
    tempfile::tempdir().context("cannot make a temporary folder")
}

/// A folder or an object store.
pub fn open(place: &str, mirror: &Path) -> anyhow::Result<Arc<dyn Sink>> {
    if place.contains("://") {
        return sink::objects(place, mirror).map_err(Exit::usage);
    }
    Ok(sink::folder(PathBuf::from(place)))
}

/// The hash of a run's pack, and the pack as a sealed file. If the pack is not here, this warns and returns none: tables
/// and reports need only the records.
pub fn pack_of(dir: &RunDir, manifest: &RunManifest) -> Option<(String, Vec<u8>)> {
    match sealed_pack(dir, manifest) {
        Ok(found) => Some(found),
        Err(error) => {
            say(&format!("warning: run {} goes without its pack: {}", manifest.run, explain(&error)));
            None
        }
    }
}

/// As [`pack_of`], with the reason if there is none. An existing file is preferred, because sealing again gives other
/// bytes.
fn sealed_pack(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<(String, Vec<u8>)> {
    let (pack, _) = folders::plan_kept(dir, manifest)?;
    let hash = pack.hash().as_str().to_owned();
    let used = manifest.packs.first().map(|used| used.hash.as_str());
    if used != Some(&hash) {
        bail!("it asked pack SHA-256 {}, and here is {hash}", used.unwrap_or("none"));
    }
    let identity = Identity::published()?;
    if let Some((path, _)) = folders::packs_beside(dir).find(&hash) {
        return Ok((hash, std::fs::read(path)?));
    }
    let bundled = packs::bundled(pack.name()).filter(|sealed| {
        Pack::open_bytes(&hash, sealed, &identity).is_ok_and(|found| found.hash().as_str() == hash)
    });
    match bundled {
        Some(sealed) => Ok((hash, sealed.to_vec())),
        None => Ok((hash, packs::seal_quickly(pack.parts(), &identity)?)),
    }
}

/// The hash of a file, hexadecimal.
pub fn sha256_of(path: &Path) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut block = vec![0; 1 << 16];
    loop {
        let read = io::Read::read(&mut file, &mut block)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if read == 0 {
            return Ok(hex(hasher.finalize()));
        }
        hasher.update(&block[..read]);
    }
}
