//! Fetches a benchmark from its coordinator into a data folder on this machine.

use std::path::Path;

use anyhow::{Context, bail};
use coordinator::BenchmarkCopy;
use domain::control::{Control, ExportItem};
use domain::{ErrorCode, RunId};
use futures::StreamExt;
use proto::client::ApiClient;
use results::log::{LogLine, LogOptions, LogWriter};
use results::{RunDir, RunManifest};
use worker::material::PackFolder;

use crate::kit::exit_code::explained;
use crate::kit::output::{note, say};
use crate::kit::runtime::block_on;
use crate::place::remote::Remote;
use crate::place::{disclosure, folders, local, names, packs};

/// Records written at once.
const GROUP_RECORDS: usize = 1024;

/// Fetches the winners of every run of a benchmark, and the documents of a judged one; returns its whole name. Records of protected
/// exercises are encrypted on this disk as on the coordinator's.
///
/// # Errors
/// The coordinator does not answer, or sends what cannot be used.
pub fn fetch(remote: &Remote, name: &str, data_dir: &Path) -> anyhow::Result<RunId> {
    block_on(async {
        let client = remote.client()?;
        let name = names::resolve(name, &client).await?;
        let mut items = client.records(&name);
        let (mut documents, mut runs, mut writer) = (None, 0_usize, None::<LogWriter>);
        while let Some(item) = items.next().await.transpose().map_err(explained)? {
            match (item, &mut writer) {
                (ExportItem::Documents(json), None) => {
                    let copy = BenchmarkCopy::read(&json).map_err(explained)?;
                    note!("fetching {} runs of benchmark {name}", copy.runs().len());
                    documents = Some(copy);
                }
                (ExportItem::Manifest(json), _) => {
                    writer.as_mut().map(LogWriter::commit).transpose()?;
                    let read = RunManifest::from_json(Path::new("manifest.json"), json.as_bytes());
                    let manifest = read.context("the coordinator sent a manifest that cannot be used")?;
                    let dir = RunDir::create(data_dir, &manifest)?;
                    fetch_packs(&client, &manifest, &folders::packs_beside(&dir)).await?;
                    let cipher = disclosure::writing_cipher(&manifest)?;
                    let options = LogOptions { cipher, ..LogOptions::default() };
                    writer = Some(LogWriter::open(&dir.log(), options)?);
                    runs += 1;
                }
                (ExportItem::Record(json), Some(writer)) => {
                    writer.append_raw(&LogLine::Record(json))?;
                    if writer.group_lines() >= GROUP_RECORDS {
                        writer.commit()?;
                    }
                }
                (ExportItem::Record(_) | ExportItem::Documents(_), _) => {
                    bail!("{} sent no manifest of {name}, or no documents before it", remote.address());
                }
            }
        }
        writer.as_mut().map(LogWriter::commit).transpose()?;
        if runs == 0 && documents.is_none() {
            bail!("{} sent no manifest of {name}", remote.address());
        }
        if let Some(copy) = documents {
            local::beside(data_dir)?.take_copy(copy).await.map_err(explained)?;
        }
        Ok(name.clone())
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
