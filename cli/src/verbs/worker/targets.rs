//! A file for Prometheus' `file_sd`: where a worker and the server that it started are.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use service_kit::umask;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use worker::ServerState;

use crate::kit::whole_file::{self, FOR_ALL};

/// What the file says.
pub struct ScrapeTarget {
    pub worker: String,
    pub models: Vec<String>,
    pub pool: String,
    pub host: String,
    /// Where the worker serves its metrics.
    pub probed_at: Option<SocketAddr>,
    pub server: Option<watch::Receiver<ServerState>>,
}

/// The file, as long as it is kept.
pub struct TargetsFile {
    file: PathBuf,
    keeper: JoinHandle<()>,
}

impl TargetsFile {
    /// Writes the file, and writes it again when the server has another port.
    pub fn write(file: PathBuf, mut target: ScrapeTarget) -> anyhow::Result<Self> {
        replace(&file, &content(&target))
            .with_context(|| format!("cannot write the targets {}", file.display()))?;
        let path = file.clone();
        let keeper = tokio::spawn(async move {
            while let Some(server) = &mut target.server {
                if server.changed().await.is_err() {
                    return;
                }
                let (path, text) = (path.clone(), content(&target));
                let written = tokio::task::spawn_blocking(move || replace(&path, &text)).await;
                if let Ok(Err(error)) = written {
                    tracing::warn!(%error, "the targets for Prometheus cannot be written");
                }
            }
        });
        Ok(Self { file, keeper })
    }

    /// Removes the file.
    pub async fn remove(self) {
        self.keeper.abort();
        let _ = self.keeper.await;
        if let Err(error) = tokio::fs::remove_file(&self.file).await {
            tracing::warn!(%error, file = %self.file.display(), "the targets for Prometheus cannot be removed");
        }
    }
}

/// Replaces the file as a whole: Prometheus may read it at any time, often as another user.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    umask::as_inherited(|| {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        whole_file::replace(file, text.as_bytes(), FOR_ALL)
    })
}

fn content(target: &ScrapeTarget) -> String {
    let ScrapeTarget { worker, models, pool, host, probed_at, server } = target;
    let labels = |job: &str| json!({"job": job, "worker": worker, "model": models.join(","), "pool": pool});
    let mut groups = Vec::new();
    if let Some(address) = probed_at {
        // One that listens everywhere is found by its machine's name.
        let at = if address.ip().is_unspecified() {
            format!("{host}:{}", address.port())
        } else {
            address.to_string()
        };
        groups.push(json!({"targets": [at], "labels": labels("kgfleet-worker")}));
    }
    if let Some(states) = server
        && let ServerState::Started { endpoint } = &*states.borrow()
        && let Some(port) = endpoint.trim_end_matches("/v1").rsplit(':').next()
    {
        groups.push(json!({"targets": [format!("{host}:{port}")], "labels": labels("vllm")}));
    }
    serde_json::Value::from(groups).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(server: Option<watch::Receiver<ServerState>>) -> ScrapeTarget {
        ScrapeTarget {
            worker: "w".to_owned(),
            models: vec!["org/m".to_owned()],
            pool: "large".to_owned(),
            host: "node-1".to_owned(),
            probed_at: Some("0.0.0.0:7702".parse().unwrap()),
            server,
        }
    }

    #[tokio::test]
    async fn prometheus_finds_the_worker_and_the_server_that_it_started_while_they_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("targets/w.json");
        let (tell, states) = watch::channel(ServerState::Restarting { reason: "not yet".to_owned() });
        let targets = TargetsFile::write(file.clone(), target(Some(states))).unwrap();
        let read =
            || -> serde_json::Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
        assert_eq!(read()[0]["targets"][0], "node-1:7702");
        assert_eq!(read()[0]["labels"]["model"], "org/m");
        assert_eq!(read().as_array().unwrap().len(), 1);
        tell.send_replace(ServerState::Started { endpoint: "http://127.0.0.1:4711/v1".to_owned() });
        let found = async {
            while read().as_array().unwrap().len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), found).await.unwrap();
        assert_eq!(read()[1]["targets"][0], "node-1:4711");
        targets.remove().await;
        assert!(!file.exists());
    }
}
