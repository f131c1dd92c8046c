//! Fetches a coordinator's run into a run folder on this machine; exports read that folder.

use std::path::Path;

use anyhow::{Context, bail};
use coordinator::PipelineCopy;
use domain::control::{Control, ExportItem};
use domain::exchange::WorkExchange;
use domain::{ErrorCode, RunId};
use futures::StreamExt;
use proto::client::Client;
use results::export::jsonl::is_redacted;
use results::log::{LogOptions, LogWriter};
use results::{RunDir, RunManifest};
use worker::material::PackFolder;

use crate::kit::exit_code::{explained, usage};
use crate::kit::output::say;
use crate::place::remote::Remote;
use crate::place::{disclosure, folders, local, packs};

/// Records written at once.
const GROUP_RECORDS: usize = 1024;

/// Maximum number of runs that a message names.
const STAGES_NAMED_MAX: usize = 5;

/// A fetched run in a temporary folder.
pub struct Fetched {
    /// Its folder.
    pub dir: RunDir,
    pub manifest: RunManifest,
    /// Removes the folder when dropped.
    _folder: tempfile::TempDir,
}

/// The whole name of a judged benchmark and its runs; no runs if the name is that of a run.
pub fn runs_of(remote: &Remote, name: &str) -> anyhow::Result<(RunId, Vec<RunId>)> {
    remote.about(name, async |client, name| {
        let runs = client.runs().await.map_err(explained)?;
        let runs = local::runs_of(name.as_str(), runs.into_iter().map(|view| view.run));
        Ok((name.clone(), runs))
    })
}

/// Fetches the winners of a run. Records of protected exercises are encrypted on this disk as on the coordinator's.
pub fn fetch(remote: &Remote, run: &str) -> anyhow::Result<Fetched> {
    remote.about(run, async |client, run| {
        let folder = temporary()?;
        let (dir, manifest) = fetch_into(client, remote, run, folder.path()).await?;
        Ok(Fetched { dir, manifest, _folder: folder })
    })
}

/// A fetched judged benchmark in a temporary data folder.
pub struct FetchedPipeline {
    /// Its name.
    pub name: RunId,
    folder: tempfile::TempDir,
}

impl FetchedPipeline {
    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        self.folder.path()
    }
}

/// Fetches a judged benchmark with the winners of all its runs; `None` if the name is that of a run. `check` gets its
/// configuration before records are fetched.
///
/// # Errors
/// `check` fails; the coordinator does not answer, or its caller may not read the texts.
pub fn fetch_pipeline(
    remote: &Remote,
    name: &str,
    check: impl FnOnce(&RunId, &PipelineCopy) -> anyhow::Result<()>,
) -> anyhow::Result<Option<FetchedPipeline>> {
    remote.about(name, async |client, name| {
        let first = client.records(name).next().await.transpose().map_err(explained)?;
        let Some(ExportItem::Manifest(json)) = first else { return Ok(None) };
        let Some(copy) = PipelineCopy::read(&json) else { return Ok(None) };
        check(name, &copy)?;
        say(&format!("fetching {} runs of pipeline {name}", copy.runs().len()));
        let folder = temporary()?;
        // Whoever may not read the questions may not read the answers, without which verdicts say nothing.
        if let Some(hash) = copy.pack_hash() {
            let sealed = client.pack(hash).await.map_err(explained)?;
            PackFolder::new(folder.path().join("packs")).keep(hash, &sealed)?;
        }
        for run in copy.runs() {
            let (dir, manifest) = fetch_into(client, remote, run, folder.path()).await?;
            refuse_redacted(&dir, &manifest)?;
        }
        local::beside(folder.path())?.unnamed().take_copy(copy).await.map_err(explained)?;
        Ok(Some(FetchedPipeline { name: name.clone(), folder }))
    })
}

fn temporary() -> anyhow::Result<tempfile::TempDir> {
    tempfile::tempdir().context("cannot make a temporary folder")
}

/// Fetches the winners of a run, and its packs, into a data folder.
async fn fetch_into(
    client: &Client,
    remote: &Remote,
    run: &RunId,
    data_dir: &Path,
) -> anyhow::Result<(RunDir, RunManifest)> {
    let mut items = client.records(run);
    let manifest: RunManifest = match items.next().await.transpose().map_err(explained)? {
        Some(ExportItem::Manifest(json)) => {
            if let Some(copy) = PipelineCopy::read(&json) {
                let stages: Vec<&str> = copy.runs().take(STAGES_NAMED_MAX).map(RunId::as_str).collect();
                let more = if copy.runs().len() > stages.len() { ", …" } else { "" };
                bail!(usage!(
                    "{run} is a pipeline; its records are those of its runs: {}{more}",
                    stages.join(", ")
                ));
            }
            let read = RunManifest::from_json(Path::new("manifest.json"), json.as_bytes());
            read.context("the coordinator sent a manifest that cannot be used")?
        }
        _ => bail!("{} sent no manifest of run {run}", remote.address()),
    };
    let dir = RunDir::create(data_dir, &manifest)?;
    fetch_packs(client, &manifest, &folders::packs_beside(&dir)).await?;
    let cipher = disclosure::writing_cipher(&manifest)?;
    let (mut writer, _) = LogWriter::open(&dir.log(), LogOptions { cipher, ..LogOptions::default() })?;
    while let Some(item) = items.next().await.transpose().map_err(explained)? {
        let ExportItem::Record { ticket, json } = item else { continue };
        writer.append_raw(ticket, &json)?;
        if writer.group_entries() >= GROUP_RECORDS {
            writer.commit()?;
        }
    }
    writer.commit()?;
    Ok((dir, manifest))
}

/// Fetches the packs of a run that are not part of this program. Packs that the caller may not read are left out; some
/// exports do not need them.
async fn fetch_packs(client: &Client, manifest: &RunManifest, beside: &PackFolder) -> anyhow::Result<()> {
    let core = packs::open_pack(packs::CORE)?;
    for used in manifest.packs.iter().filter(|used| used.hash != core.hash().as_str()) {
        // Runs of a pipeline share some.
        if beside.find(&used.hash).is_some() {
            continue;
        }
        match client.pack(&used.hash).await {
            Ok(sealed) => beside.keep(&used.hash, &sealed).map(drop)?,
            Err(error) if matches!(error.code, ErrorCode::Denied | ErrorCode::NotFound) => {
                say(&format!("the pack of run {} cannot be fetched: {}", manifest.run, error.message));
            }
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(())
}

/// Refuses a fetched run in which the coordinator replaced texts, because its caller may not read them.
pub fn refuse_redacted(dir: &RunDir, manifest: &RunManifest) -> anyhow::Result<()> {
    if !manifest.protected {
        return Ok(());
    }
    let cipher = disclosure::cipher(manifest)?;
    let first = folders::recorded(dir, manifest)?.records(&dir.log(), cipher.as_ref())?.next().transpose()?;
    if first
        .is_some_and(|first| first.record.rounds.first().is_some_and(|round| is_redacted(&round.prompt.text)))
    {
        bail!("the coordinator gives protected texts of run {} only to operators", manifest.run);
    }
    Ok(())
}
