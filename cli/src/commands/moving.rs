//! `kgfleet push` and `kgfleet pull`: a run moves between this machine, object stores and fleets.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use domain::RunId;
use domain::text::hex;
use packs::{Identity, Pack};
use results::export::jsonl::is_redacted;
use results::log::{LogOptions, LogWriter};
use results::run_dir::RunLock;
use results::sink::transfer::{Transferred, transfer};
use results::{RunDir, RunManifest, Sink, sink};
use sha2::{Digest, Sha256};

use super::fleet::{self, ClientTls, block_on};
use super::runs::DataDir;
use crate::exit_code::{Exit, ExitCode, usage};
use crate::output::{explain, say};
use crate::run::{protection, session};
use crate::run_name;

/// Copy a run of this machine to a folder or an object store, and check that it arrived.
///
/// A copy that was interrupted is completed by the same command. What is there already of the same run is kept and
/// compared; a different run of the same name is never touched.
#[derive(Debug, clap::Args)]
pub struct PushArguments {
    #[arg(help = run_name::HELP)]
    run: String,
    /// Where to: a data folder, or `file:///FOLDER`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`. Credentials come from the
    /// environment, as for `kgfleet coordinator --records`.
    #[arg(long, value_name = "PLACE")]
    to: String,
    #[command(flatten)]
    data: DataDir,
}

/// Copy a run from a folder, an object store or a fleet to this machine, and check that it arrived.
///
/// From a coordinator come the records that count; asking again completes a run that went on. Protected texts come
/// only to operators.
#[derive(Debug, clap::Args)]
pub struct PullArguments {
    #[arg(help = run_name::HELP)]
    run: String,
    /// Where from: as for `push`, or the address of a coordinator, http:// or https://.
    #[arg(long, value_name = "PLACE")]
    from: String,
    #[command(flatten)]
    tls: ClientTls,
    #[command(flatten)]
    data: DataDir,
}

/// `kgfleet push`.
pub fn push(arguments: PushArguments) -> anyhow::Result<ExitCode> {
    if is_coordinator(&arguments.to) {
        bail!(usage!(
            "a coordinator takes no runs; push to the folder or object store that it keeps its records in"
        ));
    }
    let (dir, manifest) = arguments.data.open(&arguments.run)?;
    // A log that is written meanwhile would be copied in part.
    let _lock = dir.lock()?;
    let mirror = mirror()?;
    let (from, to) = (sink::folder(arguments.data.path()), open(&arguments.to, mirror.path())?);
    let moved = block_on(async {
        let moved = transfer(&*from, &*to, &manifest.run).await?;
        // On this machine, a pack may be a file anywhere; the copy needs one of its own.
        if let Some((hash, sealed)) = pack_of(&dir, &manifest)
            && to.pack(&hash).await?.is_none()
        {
            to.put_pack(&hash, sealed.into()).await?;
        }
        Ok(moved)
    })?;
    tell(&moved, &arguments.to);
    Ok(ExitCode::Success)
}

/// `kgfleet pull`.
pub fn pull(arguments: PullArguments) -> anyhow::Result<ExitCode> {
    let data = arguments.data.path();
    let moved = if is_coordinator(&arguments.from) {
        let remote = arguments.tls.remote(&arguments.from);
        let fetched = fleet::export::fetch(&remote, &arguments.run)?;
        from_fetched(&fetched.dir, &fetched.manifest, data)?
    } else {
        let mirror = mirror()?;
        let from = open(&arguments.from, mirror.path())?;
        let run = block_on(async { run_name::of_sink(&arguments.run, &*from).await })?;
        into_folder(&from, data, &run)?
    };
    tell(&moved, &data.display().to_string());
    Ok(ExitCode::Success)
}

/// Copies a run from one data folder to another.
pub fn between_folders(from: &Path, to: &Path, run: &RunId) -> anyhow::Result<Transferred> {
    into_folder(&sink::folder(from), to, run)
}

fn into_folder(from: &Arc<dyn Sink>, data: &Path, run: &RunId) -> anyhow::Result<Transferred> {
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

/// Says what was copied.
pub fn tell(moved: &Transferred, place: &str) {
    let Transferred { manifest, files, copied, bytes, log_hash } = moved;
    say(&match copied {
        0 => format!("run {} is in {place}: all {files} files are the same", manifest.run),
        _ => format!(
            "run {} is in {place}: {copied} of {files} files copied ({bytes} bytes), all compared",
            manifest.run
        ),
    });
    println!("{log_hash}  {}", manifest.run);
}

/// Takes over what was fetched of a run. A log that was fetched twice has the same records in other files, so a run that
/// is here already gets the records that it lacks.
fn from_fetched(dir: &RunDir, manifest: &RunManifest, data: &Path) -> anyhow::Result<Transferred> {
    let run = &manifest.run;
    refuse_redacted(dir, manifest)?;
    let index = session::recorded(dir, manifest)?;
    let cipher = protection::cipher(manifest)?;
    let source = session::data_of(dir);
    if RunDir::open(data, run).is_err() {
        return between_folders(source, data, run);
    }
    let (here, known) = RunDir::open(data, run)?;
    let lock = here.lock()?;
    if known.plan_hash != manifest.plan_hash || known.created_at != manifest.created_at {
        bail!("{} has a different run {run}; nothing of it was changed", data.display());
    }
    let have = session::recorded(&here, &known)?;
    let writing = protection::writing_cipher(&known)?;
    let (mut writer, _) =
        LogWriter::open(&here.log(), LogOptions { cipher: writing, ..LogOptions::default() })?;
    let (mut added, mut bytes) = (0, 0);
    for entry in index.records(&dir.log(), cipher.as_ref())? {
        let entry = entry?;
        if have.get(&entry.record.key).is_some_and(|rank| rank.ticket() == entry.ticket) {
            continue;
        }
        let json = serde_json::to_string(&entry.record)?;
        writer.append_raw(entry.ticket, &json)?;
        (added, bytes) = (added + 1, bytes + json.len() as u64);
        if writer.group_entries() >= GROUP_RECORDS {
            writer.commit()?;
        }
    }
    writer.commit()?;
    drop((writer, lock));
    let now = session::recorded(&here, &known)?;
    let lacking =
        index.iter().filter(|(key, rank)| now.get(key).map(|here| here.ticket()) != Some(rank.ticket()));
    match lacking.count() {
        0 => say(&format!("{added} records of run {run} were missing here ({bytes} bytes)")),
        lacking => bail!("{lacking} records of run {run} are other ones here than at the coordinator"),
    }
    // Comparing the folder with itself counts its files and hashes its log.
    between_folders(data, data, run)
}

/// Refuses a fetched run whose texts the coordinator replaced, because its caller may not read them.
pub fn refuse_redacted(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<()> {
    if !manifest.protected {
        return Ok(());
    }
    let cipher = protection::cipher(manifest)?;
    let first = session::recorded(dir, manifest)?.records(&dir.log(), cipher.as_ref())?.next().transpose()?;
    if first
        .is_some_and(|first| first.record.rounds.first().is_some_and(|round| is_redacted(&round.prompt.text)))
    {
        bail!("the coordinator gives protected texts of run {} only to operators", manifest.run);
    }
    Ok(())
}

/// Records between two writes.
const GROUP_RECORDS: usize = 1024;

fn is_coordinator(place: &str) -> bool {
    place.starts_with("http://") || place.starts_with("https://")
}

/// A folder that one command needs to read an object store.
fn mirror() -> anyhow::Result<tempfile::TempDir> {
    tempfile::tempdir().context("cannot make a temporary folder")
}

fn open(place: &str, mirror: &Path) -> anyhow::Result<Arc<dyn Sink>> {
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

/// The same, or why there is none. An existing file comes first, because sealing again gives other bytes.
fn sealed_pack(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<(String, Vec<u8>)> {
    let (pack, _) = session::plan_kept(dir, manifest)?;
    let hash = pack.hash().as_str().to_owned();
    let used = manifest.packs.first().map(|used| used.hash.as_str());
    if used != Some(&hash) {
        bail!("it asked pack SHA-256 {}, and here is {hash}", used.unwrap_or("none"));
    }
    let identity = Identity::published()?;
    if let Some((path, _)) = session::packs_beside(dir).find(&hash) {
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
