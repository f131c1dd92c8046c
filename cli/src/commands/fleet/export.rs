//! Fetches a coordinator's run into a run folder on this machine, from which every export is written.

use anyhow::{Context, bail};
use domain::RunId;
use domain::control::{Control, ExportItem};
use futures::StreamExt;
use results::log::{LogOptions, LogWriter};
use results::{RunDir, RunManifest};

use super::{Remote, block_on, explained};
use crate::run::{judged, protection};
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
