//! Sends queries to public endpoints: one at a time, with retries, and none twice.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use benchmarks::kinds::kghalubench::draw::{GraphError, Select};
use domain::Backoff;
use models::HttpClient;
use models::client::{redirect_place, redirect_words};
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use reqwest::{Client, Response, StatusCode};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use url::Url;

use crate::kit::exit_code::Exit;

/// The user agent, as operators of public endpoints ask for.
const AGENT: &str = concat!("kgfleet/", env!("CARGO_PKG_VERSION"), " (KGHaluBench question generator)");

/// Attempts for one request, unless the command line says otherwise.
pub(super) const ATTEMPTS: u32 = 6;

/// Maximum number of attempts for one request.
pub(super) const ATTEMPTS_MAX: i64 = 100;

/// Seconds for one answer, unless the command line says otherwise.
pub(super) const ANSWER_SECONDS: u32 = 90;

/// Maximum wait between two attempts, in seconds, even if a server asks for more.
const WAIT_SECONDS_MAX: u64 = 60;

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Limits on one request.
#[derive(Clone, Copy, Debug)]
pub struct RequestPacing {
    /// How long one answer may take.
    pub answer: Duration,
    /// Attempts, at least 1.
    pub attempts: u32,
}

/// A SPARQL endpoint whose answers are stored in a folder, so that what was interrupted continues where it was.
pub struct PoliteEndpoint {
    url: Url,
    runtime: Runtime,
    http: HttpClient,
    cache: PathBuf,
    patience: RequestPacing,
}

impl Select for PoliteEndpoint {
    /// The answer to a query, from the folder or from the server.
    fn select(&mut self, query: &str) -> Result<String, GraphError> {
        let place = self.place(query);
        if let Ok(known) = std::fs::read_to_string(&place) {
            return Ok(known);
        }
        let text = self.runtime.block_on(self.fetch(query))?;
        // Replaced whole: half an answer is never taken for one.
        results::files::replace_shared(&place, text.as_bytes())
            .map_err(|error| GraphError::Endpoint(format!("{}: {error}", place.display())))?;
        Ok(text)
    }
}

impl PoliteEndpoint {
    /// The endpoint at `url`, with its answers in the folder `cache`.
    pub fn new(url: &str, cache: &Path, patience: RequestPacing) -> anyhow::Result<Self> {
        let url = models::http::parse_endpoint(url).map_err(Exit::usage)?;
        std::fs::create_dir_all(cache).with_context(|| cache.display().to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { url, runtime, http: HttpClient::new(), cache: cache.to_owned(), patience })
    }

    /// The file of the answer to a query.
    fn place(&self, query: &str) -> PathBuf {
        let mut hasher = Sha256::new();
        hasher.update(self.url.as_str());
        hasher.update([0]);
        hasher.update(query);
        self.cache.join(format!("{}.json", domain::text::hex(hasher.finalize())))
    }

    async fn fetch(&self, query: &str) -> Result<String, GraphError> {
        let http = self.http.for_url(&self.url).map_err(|error| GraphError::Endpoint(error.to_string()))?;
        let longest = Duration::from_secs(WAIT_SECONDS_MAX);
        let mut backoff = Backoff::new(Duration::from_secs(1), longest).at_least_half();
        let mut last = String::new();
        let attempts = self.patience.attempts;
        for attempt in 1..=attempts {
            let wait = match self.attempt(&http, query).await {
                Ok(text) => return Ok(text),
                Err(Refused { reason, again: Again::Never }) => return Err(self.failed(&reason)),
                Err(Refused { reason, again: Again::After(wait) }) => {
                    last = reason;
                    wait.map_or_else(|| backoff.next_delay(), |wait| wait.min(longest))
                }
            };
            if attempt < attempts {
                tokio::time::sleep(wait).await;
            }
        }
        let asked = if attempts == 1 { "asked once".to_owned() } else { format!("asked {attempts} times") };
        Err(self.failed(&format!("{last} ({asked})")))
    }

    async fn attempt(&self, http: &Client, query: &str) -> Result<String, Refused> {
        let sent = http
            .post(self.url.clone())
            .header(ACCEPT, "application/sparql-results+json")
            .header(CONTENT_TYPE, "application/sparql-query")
            .header(USER_AGENT, AGENT)
            .timeout(self.patience.answer)
            .body(query.to_owned())
            .send()
            .await;
        let response =
            sent.map_err(|error| Refused::later(domain::text::with_causes(&error.without_url()), None))?;
        let status = response.status();
        let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let wait = wait.map(Duration::from_secs);
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Err(Refused::later(format!("it answers {status}"), wait));
        }
        if !status.is_success() {
            let words: String = match redirect_place(&response) {
                // Public endpoints tend to send from http to https.
                Some(place) => redirect_words(&place),
                None => bounded(response).await.unwrap_or_default().chars().take(300).collect(),
            };
            return Err(Refused {
                reason: format!("it answers {status}: {}", words.trim()),
                again: Again::Never,
            });
        }
        let text = bounded(response).await?;
        // Kept answers are never asked for again.
        match whole(&text) {
            Ok(()) => Ok(text),
            Err(reason) => Err(Refused::later(reason, wait)),
        }
    }

    fn failed(&self, reason: &str) -> GraphError {
        GraphError::Endpoint(format!(
            "{}: {reason}. What was answered before is kept in {}",
            self.url,
            self.cache.display()
        ))
    }
}

/// An attempt without an answer.
struct Refused {
    reason: String,
    again: Again,
}

/// Whether to ask again.
enum Again {
    Never,
    /// After this time; `None` if the server named none.
    After(Option<Duration>),
}

impl Refused {
    fn later(reason: String, wait: Option<Duration>) -> Self {
        Self { reason, again: Again::After(wait) }
    }
}

/// The text of an answer, if it is not too long.
async fn bounded(mut response: Response) -> Result<String, Refused> {
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await;
        match chunk.map_err(|error| Refused::later(domain::text::with_causes(&error), None))? {
            None => break,
            Some(chunk) if bytes.len() + chunk.len() > ANSWER_BYTES_MAX => {
                let reason = format!("its answer is longer than {} MB", ANSWER_BYTES_MAX >> 20);
                return Err(Refused { reason, again: Again::Never });
            }
            Some(chunk) => bytes.extend_from_slice(&chunk),
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| Refused { reason: "its answer is not UTF-8".to_owned(), again: Again::Never })
}

/// A complete answer. Servers that give up cut the answer off, or send HTML, and still report success.
#[derive(serde::Deserialize)]
struct Whole {
    #[serde(rename = "results")]
    _results: serde::de::IgnoredAny,
}

fn whole(text: &str) -> Result<(), String> {
    match serde_json::from_str::<Whole>(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("its answer is no SPARQL result in JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_endpoint_that_redirects_is_left_and_the_error_names_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sparql", listener.local_addr().unwrap());
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            let answer = "HTTP/1.1 301 Moved\r\nlocation: https://graph.invalid/sparql?x=1\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let folder = tempfile::tempdir().unwrap();
        let patience = RequestPacing { answer: Duration::from_secs(30), attempts: 3 };
        let mut client = PoliteEndpoint::new(&url, folder.path(), patience).unwrap();
        let error = client.select("ASK {}").unwrap_err().to_string();
        asked.join().unwrap();
        assert!(
            error.contains("it answers 301") && error.contains("leads to: https://graph.invalid/sparql."),
            "{error}"
        );
    }
}
