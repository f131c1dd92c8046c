//! Kubernetes over HTTP, with the token of a service account. There are five calls: three list the CronJobs, Jobs and pods of
//! one release, one makes a Job and one deletes it. No object is changed in place.
//!
//! Each call has a time limit, and lists and answers have a size limit, so that an API that misbehaves cannot hold a round for
//! ever or fill the memory. Nothing is tried again here, because the next round asks anew.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use domain::reach::is_loopback_host;
use domain::text::with_causes;
use models::client::{redirect_place, redirect_words};
use models::{ClientOptions, HttpClient};
use reqwest::{Certificate, Client, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::{ClusterError, ClusterState, PoolCluster};
use crate::objects::{POOL_LABEL, RELEASE_LABEL};

/// Time of one call.
const CALL_MAX: Duration = Duration::from_secs(20);

/// Objects that one answer to a list may hold, and answers that one list may take.
const PAGE_OBJECTS_MAX: usize = 250;
const PAGES_MAX: usize = 40;

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// The longest message of the API that is repeated, in characters.
const MESSAGE_CHARS_MAX: usize = 400;

/// How a service account reaches the API.
#[derive(Clone, Debug)]
pub struct ApiAccount {
    /// Address of the API.
    pub api: Url,
    /// Folder with `token` and `ca.crt`.
    pub folder: PathBuf,
    pub namespace: String,
    /// The release whose pools these are.
    pub release: String,
}

/// Why an account cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("cannot read {path}: {error}")]
    File { path: PathBuf, error: std::io::Error },
    #[error("{path} has no certificates: {reason}")]
    Authority { path: PathBuf, reason: String },
    #[error("{0}")]
    Address(String),
    #[error("`{0}` is no name in Kubernetes")]
    Name(String),
}

/// The pools of a release, over the API of its cluster.
#[derive(Debug)]
pub struct KubernetesApi {
    client: Client,
    api: Url,
    token: PathBuf,
    namespace: String,
    /// What belongs to the release, and of that what belongs to pools.
    of_release: String,
    of_pools: String,
}

impl KubernetesApi {
    /// Reads the account. No call is made.
    ///
    /// # Errors
    /// The address, a name or a file cannot be used.
    pub fn new(account: ApiAccount) -> Result<Self, AccountError> {
        let ApiAccount { api, folder, namespace, release } = account;
        if let Some(bad) = [&namespace, &release].into_iter().find(|name| !is_name(name)) {
            return Err(AccountError::Name(bad.clone()));
        }
        let is_local = api.host_str().is_some_and(is_loopback_host);
        if api.scheme() != "https" && !(api.scheme() == "http" && is_local) {
            return Err(AccountError::Address(format!("{api}: a token is sent over https only")));
        }
        let path = folder.join("ca.crt");
        let pem = std::fs::read(&path).map_err(|error| AccountError::File { path: path.clone(), error })?;
        let authorities = Certificate::from_pem_bundle(&pem)
            .map_err(|error| AccountError::Authority { path, reason: with_causes(&error) })?;
        let options = ClientOptions {
            request_max: Some(CALL_MAX),
            authorities: Some(authorities),
            ..ClientOptions::default()
        };
        let client = HttpClient::with(options)
            .for_url(&api)
            .map_err(|error| AccountError::Address(with_causes(&error)))?;
        let of_release = format!("{RELEASE_LABEL}={release}");
        let of_pools = format!("{of_release},{POOL_LABEL}");
        Ok(Self { client, api, token: folder.join("token"), namespace, of_release, of_pools })
    }

    /// The address of objects of a kind, or of one of them.
    fn place(&self, group: &str, kind: &str, name: Option<&str>) -> Result<Url, ClusterError> {
        let mut url = self.api.clone();
        let parts = group.split('/').chain(["namespaces", &self.namespace, kind]).chain(name);
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(parts),
            Err(()) => return Err(ClusterError::Refused(format!("{} is no address of an API", self.api))),
        };
        Ok(url)
    }

    /// Sends a call. The token is read anew each time, because Kubernetes renews it about once an hour.
    async fn send(&self, what: &str, call: RequestBuilder) -> Result<Value, ClusterError> {
        let unread = |error: &dyn std::fmt::Display| {
            ClusterError::Unavailable(format!("cannot read {}: {error}", self.token.display()))
        };
        let token = tokio::fs::read_to_string(&self.token).await.map_err(|error| unread(&error))?;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(unread(&"it is too long for a token"));
        }
        let failed = |error: reqwest::Error| {
            ClusterError::Unavailable(format!("cannot {what}: {}", with_causes(&error.without_url())))
        };
        let answer = call.bearer_auth(token.trim()).send().await.map_err(failed)?;
        let status = answer.status();
        if let Some(place) = redirect_place(&answer) {
            return Err(ClusterError::Refused(format!("cannot {what}: {}", redirect_words(&place))));
        }
        let body = body(answer)
            .await
            .map_err(|problem| ClusterError::Unavailable(format!("cannot {what}: {problem}")))?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| {
                ClusterError::Unavailable(format!("cannot {what}: the answer is no JSON: {error}"))
            });
        }
        let said: ApiStatus = serde_json::from_slice(&body).unwrap_or_default();
        let message: String = said.message.chars().take(MESSAGE_CHARS_MAX).collect();
        let message = format!("cannot {what}: {} answers {status}: {message}", self.api);
        Err(match status {
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => ClusterError::Conflict(message),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::GONE => {
                ClusterError::Unavailable(message)
            }
            status if status.is_client_error() => ClusterError::Refused(message),
            _ => ClusterError::Unavailable(message),
        })
    }

    /// All objects of a kind that a selector selects.
    async fn list<T: DeserializeOwned>(
        &self,
        group: &str,
        kind: &str,
        selector: &str,
    ) -> Result<Vec<T>, ClusterError> {
        let what = format!("list {kind} in {}", self.namespace);
        let (mut objects, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let mut url = self.place(group, kind, None)?;
            {
                let mut query = url.query_pairs_mut();
                query.append_pair("labelSelector", selector);
                query.append_pair("limit", &PAGE_OBJECTS_MAX.to_string());
                if !next.is_empty() {
                    query.append_pair("continue", &next);
                }
            }
            let answer = self.send(&what, self.client.get(url)).await?;
            let page: ApiPage<T> = serde_json::from_value(answer)
                .map_err(|error| ClusterError::Refused(format!("cannot {what}: {error}")))?;
            objects.extend(page.items.unwrap_or_default());
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(objects);
            }
        }
        Err(ClusterError::Refused(format!(
            "cannot {what}: there are more than {}",
            PAGES_MAX * PAGE_OBJECTS_MAX
        )))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiStatus {
    message: String,
}

#[derive(Deserialize)]
struct ApiPage<T> {
    #[serde(default)]
    metadata: ApiPageMetadata,
    /// An empty list may be none.
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiPageMetadata {
    #[serde(rename = "continue")]
    next: String,
}

/// The body of an answer, up to [`ANSWER_BYTES_MAX`].
async fn body(mut answer: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| with_causes(&error.without_url()))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("the answer is longer than {} MiB", ANSWER_BYTES_MAX >> 20));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Whether a name is one in Kubernetes; others would lead to other places of the API, or select other objects.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().next_back().is_some_and(plain);
    ends && name.len() <= 63 && name.bytes().all(|byte| plain(byte) || byte == b'-')
}

const BATCH: &str = "apis/batch/v1";
const CORE: &str = "api/v1";

#[async_trait]
impl PoolCluster for KubernetesApi {
    async fn state(&self) -> Result<ClusterState, ClusterError> {
        // Pods are listed before Jobs. In the other order a server that starts in between would show as pods without a Job,
        // which are taken for pods that outlive their server.
        let cron_jobs = self.list(BATCH, "cronjobs", &self.of_pools).await?;
        let pods = self.list(CORE, "pods", &self.of_pools).await?;
        // All Jobs of the release and not just those of pools, because one fetches the weights for all pools.
        let jobs = self.list(BATCH, "jobs", &self.of_release).await?;
        Ok(ClusterState { cron_jobs, jobs, pods })
    }

    async fn create(&self, job: &Value) -> Result<(), ClusterError> {
        let name = job["metadata"]["name"].as_str().unwrap_or_default();
        let url = self.place(BATCH, "jobs", None)?;
        self.send(&format!("make the Job {name}"), self.client.post(url).json(job)).await.map(|_| ())
    }

    async fn delete(&self, job: &str, uid: &str) -> Result<(), ClusterError> {
        let url = self.place(BATCH, "jobs", Some(job))?;
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        });
        self.send(&format!("delete the Job {job}"), self.client.delete(url).json(&options)).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else_and_tokens_are_sent_over_https_only() {
        for name in ["", "a/b", "..", "Upper", "a,b", "a=b", "-a", "a-", &"a".repeat(64)] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name("bench-1"));
        let account = |api: &str| ApiAccount {
            api: Url::parse(api).unwrap(),
            folder: "/nowhere".into(),
            namespace: "bench".to_owned(),
            release: "bench".to_owned(),
        };
        let problem = |api: &str| KubernetesApi::new(account(api)).unwrap_err().to_string();
        assert!(problem("http://10.0.0.1").contains("over https only"));
        assert!(problem("https://10.0.0.1").contains("cannot read /nowhere/ca.crt"));
    }
}
