//! Fetches a coordinator's run into a run folder on this machine, from which every export is written.

use anyhow::{Context, bail};
use domain::control::{Control, ExportItem};
use domain::exchange::WorkExchange;
use domain::{ErrorCode, RunId};
use futures::StreamExt;
use proto::client::Client;
use results::log::{LogOptions, LogWriter};
use results::{RunDir, RunManifest};
use worker::material::PackFolder;

use super::{Remote, block_on, explained};
use crate::output::say;
use crate::run::{judged, material, protection, session};
use crate::run_name;

/// Records buffered before a write.
const GROUP_RECORDS: usize = 1024;

/// A fetched run; its folder is removed with it.
pub struct Fetched {
    /// Its folder.
    pub dir: RunDir,
    pub manifest: RunManifest,
    /// Removed when dropped.
    _folder: tempfile::TempDir,
}

/// The runs of a pipeline; none where it is one run that is named.
pub fn runs_of(remote: &Remote, name: &str) -> anyhow::Result<Vec<RunId>> {
    block_on(async {
        let client = remote.client()?;
        let name = run_name::of_coordinator(name, &client).await?;
        let runs = client.runs().await.map_err(explained)?;
        Ok(judged::runs_of(name.as_str(), runs.into_iter().map(|view| view.run)))
    })
}

/// Fetches the winners of a run. Records of protected exercises are encrypted on this disk as on the coordinator's.
pub fn fetch(remote: &Remote, run: &str) -> anyhow::Result<Fetched> {
    block_on(async {
        let client = remote.client()?;
        let run = &run_name::of_coordinator(run, &client).await?;
        let mut items = client.records(run);
        let manifest: RunManifest = match items.next().await.transpose().map_err(explained)? {
            Some(ExportItem::Manifest(json)) => {
                serde_json::from_str(&json).context("the coordinator sent a manifest that cannot be read")?
            }
            _ => bail!("{} sent no manifest of run {run}", remote.address()),
        };
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let dir = RunDir::create(folder.path(), &manifest)?;
        fetch_packs(&client, &manifest, &session::packs_beside(&dir)).await?;
        let cipher = protection::writing_cipher(&manifest)?;
        let (mut writer, _) = LogWriter::open(&dir.log(), LogOptions { cipher, ..LogOptions::default() })?;
        while let Some(item) = items.next().await.transpose().map_err(explained)? {
            let ExportItem::Record { ticket, json } = item else { continue };
            writer.append_raw(ticket, &json)?;
            if writer.group_entries() >= GROUP_RECORDS {
                writer.commit()?;
            }
        }
        writer.commit()?;
        Ok(Fetched { dir, manifest, _folder: folder })
    })
}

/// Fetches the packs of a run that are not part of this program. Those that the caller may not read stay away: what can be
/// written without them is written.
async fn fetch_packs(client: &Client, manifest: &RunManifest, packs: &PackFolder) -> anyhow::Result<()> {
    let core = material::open_pack(material::CORE)?;
    for used in manifest.packs.iter().filter(|used| used.hash != core.hash().as_str()) {
        match client.pack(&used.hash).await {
            Ok(sealed) => packs.keep(&used.hash, &sealed).map(drop)?,
            Err(error) if matches!(error.code, ErrorCode::Denied | ErrorCode::NotFound) => {
                say(&format!("the pack of run {} cannot be fetched: {}", manifest.run, error.message));
            }
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(())
}
