//! Discovers servers: reads their addresses, and polls what they serve.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use models::http::api_base;
use models::{CallError, OpenAiCompatible, OpenAiConfig, Secret};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::limiter::LoadLook;
use crate::looks::{self, ProbeWishes};
use crate::own_server::ServerState;
use crate::servers::News;
use crate::vllm::{self, ServerLoad};
use domain::{Backoff, FailureCause};

/// Interval between reads of a discovery file.
const READ_EVERY: Duration = Duration::from_secs(2);

/// Interval between model list queries of a responding server.
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// Interval between load queries of a responding server, at most: its limit may need them sooner.
const LOAD_EVERY: Duration = Duration::from_secs(1);

/// The largest discovery file read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of addresses; a longer list is a mistake.
const ENDPOINTS_MAX: usize = 256;

/// Where to find servers.
#[derive(Clone, Debug)]
pub enum Endpoints {
    /// These addresses, such as `http://127.0.0.1:8000/v1`.
    Listed(Vec<String>),
    /// The addresses in a file that may change: a JSON list, a JSON object with the list as `endpoints`, or one
    /// address per line, with `#` before comments.
    File(PathBuf),
    /// The server that this worker started itself, at changing addresses.
    Own(watch::Receiver<ServerState>),
}

/// Discovers servers until it is dropped.
pub struct Discovery {
    probes: Probes,
    news: mpsc::Sender<News>,
    /// The search, and those who read loads of addresses that are not discovered.
    tasks: JoinSet<()>,
}

/// What is wanted of the probe of each address.
type Probes = Arc<Mutex<HashMap<String, Arc<ProbeWishes>>>>;

impl Discovery {
    /// Starts discovery.
    pub fn start(endpoints: Endpoints, key: Option<Secret>, news: mpsc::Sender<News>) -> Self {
        let known = Probes::default();
        let search = Search { key, news: news.clone(), known: Arc::clone(&known), probes: HashMap::new() };
        let mut tasks = JoinSet::new();
        tasks.spawn(search.run(endpoints));
        Self { probes: known, news, tasks }
    }

    /// Queries this address at once, because a dialogue could not reach it.
    pub fn suspect(&self, endpoint: &str) {
        if let Some(probe) = locked(&self.probes).get(endpoint) {
            probe.suspect();
        }
    }

    /// Queries the load of this address when the look is due.
    pub fn look(&self, endpoint: &str, look: LoadLook) {
        if let Some(probe) = locked(&self.probes).get(endpoint) {
            probe.look(look);
        }
    }

    /// Makes the load of an address known that a configuration names.
    pub fn follow_load(&mut self, endpoint: &str) {
        let mut probes = locked(&self.probes);
        if probes.len() >= ENDPOINTS_MAX || probes.contains_key(endpoint) {
            return;
        }
        let wishes = Arc::<ProbeWishes>::default();
        probes.insert(endpoint.to_owned(), Arc::clone(&wishes));
        self.tasks.spawn(looks::read_when_wanted(endpoint.to_owned(), self.news.clone(), wishes));
    }
}

fn locked(probes: &Probes) -> MutexGuard<'_, HashMap<String, Arc<ProbeWishes>>> {
    probes.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Search {
    key: Option<Secret>,
    news: mpsc::Sender<News>,
    known: Probes,
    /// The tasks that poll addresses, each alone in its set, which ends them when it is dropped.
    probes: HashMap<String, JoinSet<()>>,
}

impl Search {
    async fn run(mut self, endpoints: Endpoints) {
        match endpoints {
            Endpoints::Listed(listed) => {
                self.follow(listed).await;
                // The probes live as long as this task.
                self.news.closed().await;
            }
            Endpoints::Own(mut states) => loop {
                let state = states.borrow_and_update().clone();
                match state {
                    ServerState::Started { endpoint } => self.follow(vec![endpoint]).await,
                    ServerState::Restarting { reason } => {
                        self.follow(Vec::new()).await;
                        self.tell(News::Restarting { reason }).await;
                    }
                    ServerState::Lost { reason } => {
                        self.follow(Vec::new()).await;
                        self.tell(News::Lost { reason }).await;
                    }
                }
                tokio::select! {
                    () = self.news.closed() => return,
                    changed = states.changed() => if changed.is_err() {
                        // Whoever started it is gone: it stays as it was.
                        return self.news.closed().await;
                    },
                }
            },
            Endpoints::File(path) => loop {
                match read(&path).await {
                    Ok(listed) if listed.is_empty() => {
                        let reason = format!("the discovery file {} names no server", path.display());
                        self.follow(listed).await;
                        self.tell(News::NoAddresses { reason }).await;
                    }
                    Ok(listed) => self.follow(listed).await,
                    // Keep the known addresses: the file may be in the middle of a write.
                    Err(reason) if self.probes.is_empty() => self.tell(News::NoAddresses { reason }).await,
                    Err(reason) => tracing::warn!(reason, "the discovery file cannot be used"),
                }
                tokio::select! {
                    () = self.news.closed() => return,
                    () = tokio::time::sleep(READ_EVERY) => {}
                }
            },
        }
    }

    /// Polls exactly these addresses.
    async fn follow(&mut self, endpoints: Vec<String>) {
        let gone: Vec<String> =
            self.probes.keys().filter(|known| !endpoints.contains(known)).cloned().collect();
        for endpoint in gone {
            self.probes.remove(&endpoint);
            locked(&self.known).remove(&endpoint);
            self.tell(News::Removed { endpoint }).await;
        }
        for endpoint in endpoints.into_iter().take(ENDPOINTS_MAX) {
            if self.probes.contains_key(&endpoint) {
                continue;
            }
            let wishes = Arc::<ProbeWishes>::default();
            locked(&self.known).insert(endpoint.clone(), Arc::clone(&wishes));
            let probe = probe(endpoint.clone(), self.key.clone(), self.news.clone(), wishes);
            self.probes.entry(endpoint).or_default().spawn(probe);
        }
    }

    async fn tell(&self, news: News) {
        // Without a receiver the worker is stopping, and so does this task.
        let _ = self.news.send(news).await;
    }
}

/// Polls one address for its models, and in between for its load.
async fn probe(endpoint: String, key: Option<Secret>, news: mpsc::Sender<News>, wishes: Arc<ProbeWishes>) {
    let mut config = OpenAiConfig::new(endpoint.clone(), "");
    config.key.clone_from(&key);
    let server = match OpenAiCompatible::new(config) {
        Ok(server) => server,
        Err(error) => {
            let _ = news.send(News::Unreachable { endpoint, reason: error.to_string() }).await;
            return;
        }
    };
    let mut load = ServerLoad::new(&endpoint);
    let mut backoff = Backoff::default();
    // A server that was away may be another one.
    let mut asks_version = true;
    loop {
        let at = endpoint.clone();
        let told = match server.probe().await {
            Ok(models) if !models.is_empty() => {
                if std::mem::take(&mut asks_version)
                    && let Some(version) = vllm::version(&endpoint).await
                {
                    let version =
                        key.as_ref().map_or(version.clone(), |key| key.scrub(&version).into_owned());
                    // Before the models, so that no record of them lacks it; without a receiver the next message ends this.
                    let _ = news.send(News::Version { endpoint: endpoint.clone(), version }).await;
                }
                News::Listed { endpoint: at, models }
            }
            // Whoever refuses the list may answer questions.
            Ok(_) => News::Unlisted { endpoint: at, reason: "it is empty".to_owned() },
            Err(error) if refuses_list(&error) => News::Unlisted { endpoint: at, reason: error.to_string() },
            Err(error) => News::Unreachable { endpoint: at, reason: error.to_string() },
        };
        let is_away = matches!(told, News::Unreachable { .. });
        if news.send(told).await.is_err() {
            return;
        }
        if is_away {
            asks_version = true;
            tokio::time::sleep(backoff.next_delay()).await;
            continue;
        }
        backoff.reset();
        let until = Instant::now() + PROBE_EVERY;
        while Instant::now() < until {
            let asked_at = Instant::now();
            if let Some(loads) = load.read().await {
                let loads = News::Load { endpoint: endpoint.clone(), loads };
                if news.send(loads).await.is_err() {
                    return;
                }
            }
            if wishes.until_look(asked_at, Some(LOAD_EVERY)).await {
                break;
            }
        }
    }
}

/// Whether a server that answers so is there, and only has no list for us: one that loads a model is full (503), and the
/// gateway before one that is gone says so (502, 504).
fn refuses_list(error: &CallError) -> bool {
    match error.status {
        Some(status) => !matches!(status, 429 | 502..=504 | 529),
        None => error.cause == FailureCause::Server,
    }
}

async fn read(path: &std::path::Path) -> Result<Vec<String>, String> {
    let failed = |reason: &dyn std::fmt::Display| format!("the discovery file {}: {reason}", path.display());
    let size = tokio::fs::metadata(path).await.map_err(|error| failed(&error))?.len();
    if size > FILE_BYTES_MAX {
        return Err(failed(&format_args!("{size} bytes are too many")));
    }
    let text = tokio::fs::read_to_string(path).await.map_err(|error| failed(&error))?;
    parse(&text).map_err(|error| failed(&error))
}

/// The addresses of a discovery file.
fn parse(text: &str) -> Result<Vec<String>, String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum File {
        List(Vec<String>),
        Object { endpoints: Vec<String> },
    }
    let listed: Vec<String> = if text.trim_start().starts_with(['[', '{']) {
        match serde_json::from_str(text) {
            Ok(File::List(listed) | File::Object { endpoints: listed }) => listed,
            Err(_) => {
                return Err("neither a JSON list of addresses nor an object with `endpoints`".to_owned());
            }
        }
    } else {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        lines.filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect()
    };
    let mut endpoints: Vec<String> = Vec::new();
    for endpoint in listed {
        let endpoint = normal(&endpoint).map_err(|error| error.to_string())?;
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    Ok(endpoints)
}

/// Normalises an address for comparison and display.
///
/// # Errors
/// It is not an HTTP address.
pub fn normal(endpoint: &str) -> Result<String, models::SetupError> {
    Ok(api_base(endpoint)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_lists_objects_or_lines() {
        let two = vec!["http://a:1/v1".to_owned(), "http://b:2/v1".to_owned()];
        for text in [
            r#"["http://a:1/v1", "http://b:2/", "http://a:1/v1"]"#,
            r#"{"endpoints": ["http://a:1/v1/", "http://b:2"]}"#,
            "# the pool\nhttp://a:1/v1\n\n  http://b:2 # the second\n",
        ] {
            assert_eq!(parse(text).unwrap(), two, "{text}");
        }
        assert_eq!(parse("").unwrap(), Vec::<String>::new());
        assert!(parse("ftp://a").unwrap_err().contains("ftp://a"));
        assert!(parse("[1]").unwrap_err().contains("endpoints"));
    }

    #[tokio::test]
    async fn a_file_that_changes_moves_the_search() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("servers");
        let (news, mut told) = mpsc::channel(16);
        // Nobody listens on port 9 of the loopback interface; what is looked at is who is asked.
        std::fs::write(&path, "http://127.0.0.1:9/v1\n").unwrap();
        let _discovery = Discovery::start(Endpoints::File(path.clone()), None, news);
        let first = told.recv().await.unwrap();
        assert!(matches!(&first, News::Unreachable { endpoint, .. } if endpoint == "http://127.0.0.1:9/v1"));
        std::fs::write(&path, "").unwrap();
        loop {
            match told.recv().await.unwrap() {
                News::Removed { endpoint } => break assert_eq!(endpoint, "http://127.0.0.1:9/v1"),
                News::Unreachable { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(told.recv().await.unwrap(), News::NoAddresses { .. }));
    }
}
