//! Fetches a benchmark from its coordinator into a data folder on this machine, from which every file is written.

use std::path::Path;

use anyhow::{Context, bail};
use coordinator::BenchmarkCopy;
use domain::control::{Control, ExportItem};
use domain::redaction::is_redacted;
use domain::{ErrorCode, RunId};
use futures::StreamExt;
use proto::client::ApiClient;
use results::log::{LogOptions, LogWriter};
use results::{RunDir, RunManifest, archive};
use worker::material::PackFolder;

use crate::kit::exit_code::{explained, usage};
use crate::kit::output::{note, say};
use crate::place::data_dir::{DataDir, OpenedBenchmark};
use crate::place::remote::{MaybeRemote, Remote};
use crate::place::{disclosure, folders, local, packs};

/// Records written at once.
const GROUP_RECORDS: usize = 1024;

/// How the name of an archive ends.
pub const ARCHIVE_ENDING: &str = ".tar.zst";

/// Runs of a judged benchmark that a message names.
const STAGES_NAMED_MAX: usize = 5;

/// A benchmark that was fetched into a data folder of its own, which is removed with it.
pub struct Fetched {
    pub name: RunId,
    /// Its runs, all of which have a manifest: one, unless it is judged.
    pub runs: Vec<(RunDir, RunManifest)>,
    /// Whether it has documents beside its runs.
    pub is_judged: bool,
    folder: tempfile::TempDir,
}

impl Fetched {
    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// Its name and its runs, as those of this machine.
    pub fn opened(&self) -> OpenedBenchmark {
        OpenedBenchmark { name: self.name.clone(), runs: self.runs.clone(), is_judged: self.is_judged }
    }

    /// Its only run.
    ///
    /// # Errors
    /// It is judged, so it has several (exit code 2).
    pub fn only(&self) -> anyhow::Result<(&RunDir, &RunManifest)> {
        if let (false, [(dir, manifest)]) = (self.is_judged, self.runs.as_slice()) {
            return Ok((dir, manifest));
        }
        let stages: Vec<&str> =
            self.runs.iter().take(STAGES_NAMED_MAX).map(|(_, manifest)| manifest.run.as_str()).collect();
        let more = if self.runs.len() > stages.len() { ", …" } else { "" };
        Err(usage!("{} is judged; its records are those of its runs: {}{more}", self.name, stages.join(", ")))
    }

    /// Refuses what the coordinator gives only to others: texts that it replaced.
    pub fn refuse_redacted(&self) -> anyhow::Result<()> {
        self.runs.iter().try_for_each(|(dir, manifest)| refuse_redacted(dir, manifest))
    }
}

/// A benchmark of this machine, out of an archive, or of a fleet if a coordinator is named. What was unpacked or fetched must live as
/// long as its files are read.
pub fn open(
    remote: &MaybeRemote,
    data: &DataDir,
    name: &str,
) -> anyhow::Result<(Option<Fetched>, OpenedBenchmark)> {
    let fetched = from_elsewhere(remote, name)?;
    let opened = match &fetched {
        Some(fetched) => fetched.opened(),
        None => data.open_all(name)?,
    };
    Ok((fetched, opened))
}

/// The same, unless it is one of this machine.
pub fn from_elsewhere(remote: &MaybeRemote, name: &str) -> anyhow::Result<Option<Fetched>> {
    Ok(match remote.named()? {
        _ if is_archive(name) => Some(unpacked(name)?),
        Some(remote) => Some(fetch(&remote, name)?),
        None => None,
    })
}

/// Whether the name of a run is the path of an archive.
pub fn is_archive(name: &str) -> bool {
    name.ends_with(ARCHIVE_ENDING)
}

/// A benchmark out of an archive, every file of which was compared with its hash.
pub fn unpacked(archive: &str) -> anyhow::Result<Fetched> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let head = archive::unpack(Path::new(archive), folder.path())?;
    let OpenedBenchmark { name, runs, is_judged } = DataDir::at(folder.path()).open_all(head.run.as_str())?;
    Ok(Fetched { name, runs, is_judged, folder })
}

/// Fetches the winners of every run of a benchmark. Records of protected exercises are encrypted on this disk as on the
/// coordinator's.
pub fn fetch(remote: &Remote, name: &str) -> anyhow::Result<Fetched> {
    let fetched = fetch_if(remote, name, |_, _| Ok(true))?;
    fetched.context("nothing was fetched")
}

/// The same, if `wanted` says so: it sees the documents of a judged benchmark before records are fetched.
///
/// # Errors
/// `wanted` fails; the coordinator does not answer, or sends what cannot be used.
pub fn fetch_if(
    remote: &Remote,
    name: &str,
    wanted: impl FnOnce(&RunId, Option<&BenchmarkCopy>) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<Fetched>> {
    remote.about(name, async |client, name| {
        let mut items = client.records(name);
        let mut next = items.next().await.transpose().map_err(explained)?;
        let documents = match &next {
            Some(ExportItem::Documents(json)) => Some(BenchmarkCopy::read(json).map_err(explained)?),
            _ => None,
        };
        if !wanted(name, documents.as_ref())? {
            return Ok(None);
        }
        if let Some(copy) = &documents {
            note!("fetching {} runs of benchmark {name}", copy.runs().len());
            next = items.next().await.transpose().map_err(explained)?;
        }
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let (mut runs, mut writer): (Vec<(RunDir, RunManifest)>, Option<LogWriter>) = (Vec::new(), None);
        while let Some(item) = next {
            match (item, &mut writer) {
                (ExportItem::Manifest(json), _) => {
                    writer.as_mut().map(LogWriter::commit).transpose()?;
                    let read = RunManifest::from_json(Path::new("manifest.json"), json.as_bytes());
                    let manifest = read.context("the coordinator sent a manifest that cannot be used")?;
                    let dir = RunDir::create(folder.path(), &manifest)?;
                    fetch_packs(client, &manifest, &folders::packs_beside(&dir)).await?;
                    let cipher = disclosure::writing_cipher(&manifest)?;
                    let options = LogOptions { cipher, ..LogOptions::default() };
                    writer = Some(LogWriter::open(&dir.log(), options)?.0);
                    runs.push((dir, manifest));
                }
                (ExportItem::Record { ticket, json }, Some(writer)) => {
                    writer.append_raw(ticket, &json)?;
                    if writer.group_entries() >= GROUP_RECORDS {
                        writer.commit()?;
                    }
                }
                (ExportItem::Record { .. } | ExportItem::Documents(_), _) => {
                    bail!("{} sent no manifest of {name}, or no documents before it", remote.address());
                }
            }
            next = items.next().await.transpose().map_err(explained)?;
        }
        writer.as_mut().map(LogWriter::commit).transpose()?;
        if runs.is_empty() && documents.is_none() {
            bail!("{} sent no manifest of {name}", remote.address());
        }
        let is_judged = documents.is_some();
        if let Some(copy) = documents {
            local::beside(folder.path())?.take_copy(copy).await.map_err(explained)?;
        }
        Ok(Some(Fetched { name: name.clone(), runs, is_judged, folder }))
    })
}

/// Fetches the packs of a run that are not part of this program. Packs that the caller may not read are left out; some
/// exports do not need them.
async fn fetch_packs(client: &ApiClient, manifest: &RunManifest, beside: &PackFolder) -> anyhow::Result<()> {
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
