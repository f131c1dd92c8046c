//! Copies a run from a folder, an object store or a fleet to this machine.

use std::path::Path;

use anyhow::bail;
use results::log::{LogOptions, LogWriter};
use results::sink::transfer::Transferred;
use results::{RunDir, RunManifest};

use crate::files::copy;
use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::kit::runtime::block_on;
use crate::place::remote::MaybeRemote;
use crate::place::{disclosure, fetch, folders, local, names};

pub(super) fn run(run: &str, from: &str, remote: &MaybeRemote, data: &Path) -> anyhow::Result<ExitCode> {
    let place = data.display().to_string();
    let (name, documents) = if copy::is_coordinator(from) {
        let remote = remote.at(from);
        let fetched = fetch::fetch(&remote, run)?;
        for (dir, manifest) in &fetched.runs {
            copy::tell(&from_fetched(dir, manifest, data)?, &place)?;
        }
        let documents = block_on(local::documents(&fetched.name, fetched.data_dir()))?;
        (fetched.name, documents)
    } else {
        let mirror = copy::mirror()?;
        let there = copy::open(from, mirror.path())?;
        let name = block_on(async { names::of_sink(run, &*there).await })?;
        let documents = block_on(local::documents_in(&name, &there))?;
        let runs = documents.as_ref().map(|documents| documents.runs().cloned().collect());
        for part in runs.unwrap_or_else(|| vec![name.clone()]) {
            copy::tell(&copy::into_folder(&there, data, &part)?, &place)?;
        }
        (name, documents)
    };
    if let Some(documents) = documents {
        copy::documents(documents, &name, &results::sink::folder(data), &place)?;
    }
    Ok(ExitCode::Success)
}

/// Takes over a fetched run. Fetching twice gives the same records in other files, so a run that exists here only gets
/// the records that it lacks.
fn from_fetched(dir: &RunDir, manifest: &RunManifest, data: &Path) -> anyhow::Result<Transferred> {
    let run = &manifest.run;
    fetch::refuse_redacted(dir, manifest)?;
    let index = folders::recorded(dir, manifest)?;
    let cipher = disclosure::cipher(manifest)?;
    let source = folders::data_of(dir);
    if RunDir::open(data, run).is_err() {
        return copy::between_folders(source, data, run);
    }
    let (here, known) = RunDir::open(data, run)?;
    let lock = here.lock()?;
    if known.plan_hash != manifest.plan_hash || known.created_at != manifest.created_at {
        bail!("{} has a different run {run}; nothing of it was changed", data.display());
    }
    let have = folders::recorded(&here, &known)?;
    let writing = disclosure::writing_cipher(&known)?;
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
    let now = folders::recorded(&here, &known)?;
    let lacking =
        index.iter().filter(|(key, rank)| now.get(key).map(|here| here.ticket()) != Some(rank.ticket()));
    match lacking.count() {
        0 => say(&format!("{added} records of run {run} were missing here ({bytes} bytes)")),
        lacking => bail!("{lacking} records of run {run} are other ones here than at the coordinator"),
    }
    // Comparing the folder with itself counts its files and hashes its log.
    copy::between_folders(data, data, run)
}

/// Records between two writes.
const GROUP_RECORDS: usize = 1024;
