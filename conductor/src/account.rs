//! Calls to the API of Kubernetes with the token of a service account. What they ask for, and what an answer means, is up to the
//! caller.
//!
//! Each call has a time limit, and answers have a size limit that the caller names, so that an API that misbehaves cannot hold
//! anybody for ever or fill the memory. Nothing is tried again here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::reach::is_loopback_host;
use domain::text::with_causes;
use models::client::{redirect_place, redirect_words};
use models::{ClientOptions, HttpClient};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url};
use serde_json::Value;

use crate::cluster::ClusterError;

/// Time of one call.
const CALL_MAX: Duration = Duration::from_secs(20);

/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// The longest message of the API that is repeated, in characters.
const MESSAGE_CHARS_MAX: usize = 400;

/// The group of Pods and Secrets.
pub const CORE: &str = "api/v1";

/// The group of Jobs and CronJobs.
pub const BATCH: &str = "apis/batch/v1";

/// The group of Deployments.
pub const APPS: &str = "apis/apps/v1";

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

/// A service account in a namespace.
#[derive(Debug)]
pub struct ServiceAccount {
    client: Client,
    api: Url,
    token: PathBuf,
    namespace: String,
}

/// What the API answered.
pub struct ApiAnswer {
    pub status: StatusCode,
    pub body: Vec<u8>,
}

impl ApiAnswer {
    /// What Kubernetes says of a failure: the message of its status object, if it sent one.
    pub fn message(&self) -> Option<String> {
        let status: Value = serde_json::from_slice(&self.body).ok()?;
        Some(status["message"].as_str()?.chars().take(MESSAGE_CHARS_MAX).collect())
    }
}

impl ServiceAccount {
    /// Reads the account whose `token` and `ca.crt` are in this folder. No call is made.
    ///
    /// # Errors
    /// The address, the namespace or a file cannot be used.
    pub fn new(api: Url, folder: &Path, namespace: String) -> Result<Self, AccountError> {
        if !is_name(&namespace) {
            return Err(AccountError::Name(namespace));
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
        Ok(Self { client, api, token: folder.join("token"), namespace })
    }

    /// Address of the API.
    pub fn api(&self) -> &Url {
        &self.api
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The address of the objects of a kind in a group, such as [`BATCH`], or of one of them.
    ///
    /// # Errors
    /// The address of the API cannot have paths.
    pub fn place(&self, group: &str, kind: &str, name: Option<&str>) -> Result<Url, ClusterError> {
        let mut url = self.api.clone();
        let parts = group.split('/').chain(["namespaces", &self.namespace, kind]).chain(name);
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(parts),
            Err(()) => return Err(ClusterError::Refused(format!("{} is no address of an API", self.api))),
        };
        Ok(url)
    }

    /// Makes a call, whose purpose `what` says in errors. The token is read anew each time, because Kubernetes renews it about
    /// once an hour.
    ///
    /// # Errors
    /// No answer came, it is longer than so many bytes, or it leads elsewhere. An answer that says no is none.
    pub async fn call(
        &self,
        what: &str,
        (method, url): (Method, Url),
        body: Option<&Value>,
        answer_bytes_max: usize,
    ) -> Result<ApiAnswer, ClusterError> {
        let unread = |error: &dyn std::fmt::Display| {
            ClusterError::Unavailable(format!("cannot read {}: {error}", self.token.display()))
        };
        let token = tokio::fs::read_to_string(&self.token).await.map_err(|error| unread(&error))?;
        if token.len() > TOKEN_BYTES_MAX {
            return Err(unread(&"it is too long for a token"));
        }
        let mut request = self.client.request(method, url).bearer_auth(token.trim());
        if let Some(body) = body {
            request = request.json(body);
        }
        let failed = |problem: String| ClusterError::Unavailable(format!("cannot {what}: {problem}"));
        let answer = request.send().await.map_err(|error| failed(with_causes(&error.without_url())))?;
        let status = answer.status();
        if let Some(place) = redirect_place(&answer) {
            return Err(ClusterError::Refused(format!("cannot {what}: {}", redirect_words(&place))));
        }
        let body = body_of(answer, answer_bytes_max).await.map_err(failed)?;
        Ok(ApiAnswer { status, body })
    }
}

/// The body of an answer, up to so many bytes.
async fn body_of(mut answer: Response, bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| with_causes(&error.without_url()))? {
        if body.len() + chunk.len() > bytes_max {
            return Err(format!("the answer is longer than {} MiB", bytes_max >> 20));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Whether a name is one in Kubernetes; others would lead to other places of the API, or select other objects.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().next_back().is_some_and(plain);
    ends && name.len() <= 63 && name.bytes().all(|byte| plain(byte) || byte == b'-')
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
        let account = |api: &str, namespace: &str| {
            ServiceAccount::new(Url::parse(api).unwrap(), Path::new("/nowhere"), namespace.to_owned())
        };
        let problem = |api: &str| account(api, "bench").unwrap_err().to_string();
        assert!(problem("http://10.0.0.1").contains("over https only"));
        assert!(problem("https://10.0.0.1").contains("cannot read /nowhere/ca.crt"));
        assert!(matches!(account("https://10.0.0.1", "a/b"), Err(AccountError::Name(_))));
    }
}
