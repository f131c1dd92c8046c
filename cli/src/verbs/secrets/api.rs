//! Reads, makes and replaces Secrets of one namespace over the API of Kubernetes. None is ever deleted or listed. A Secret is
//! replaced only in the version that was read, so that of two callers at a time one changes it. Nothing is tried again here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::reach::is_loopback_host;
use models::{ClientOptions, HttpClient};
use reqwest::{Certificate, Client, RequestBuilder, StatusCode, Url, header};
use serde_json::Value;

use super::make::SecretObject;
use crate::kit::exit_code::{Exit, usage};

/// Time of one call.
const CALL_MAX: Duration = Duration::from_secs(20);

/// Longest answer, in bytes: a Secret has at most 1 MiB, which base64 makes longer.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Secrets as a service account may see them.
pub struct SecretsApi {
    client: Client,
    /// Address of the Secrets of the namespace.
    secrets: Url,
    token: PathBuf,
}

/// A Secret that is there.
pub struct KeptSecret(Value);

impl KeptSecret {
    pub fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn version(&self) -> &str {
        self.0["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0["metadata"]["annotations"][key].as_str()
    }

    pub fn text(&self, key: &str) -> anyhow::Result<String> {
        let name = self.name();
        let coded =
            self.0["data"][key].as_str().with_context(|| format!("secret {name} has no key {key}"))?;
        let bytes = STANDARD.decode(coded).with_context(|| format!("secret {name}, key {key}"))?;
        String::from_utf8(bytes).with_context(|| format!("secret {name}, key {key}"))
    }
}

impl SecretsApi {
    pub fn new(account: &Path, api: &Url) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = account.join(name);
            std::fs::read(&path)
                .with_context(|| format!("--account: cannot read {}", path.display()))
                .map_err(Exit::usage)
        };
        let is_local = api.host_str().is_some_and(is_loopback_host);
        if api.scheme() != "https" && !(api.scheme() == "http" && is_local) {
            bail!(usage!("--kubernetes-api {api}: secrets are sent over https only"));
        }
        let namespace = String::from_utf8(read("namespace")?).map_err(Exit::usage)?;
        let namespace = namespace.trim();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if namespace.is_empty() || !namespace.bytes().all(plain) {
            bail!(usage!("--account: `{namespace}` is no namespace"));
        }
        let authority = Certificate::from_pem_bundle(&read("ca.crt")?).map_err(Exit::usage)?;
        let options = ClientOptions {
            request_max: Some(CALL_MAX),
            authorities: Some(authority),
            ..ClientOptions::default()
        };
        let client = HttpClient::with(options).for_url(api)?;
        let secrets = api.join(&format!("/api/v1/namespaces/{namespace}/secrets/")).map_err(Exit::usage)?;
        Ok(Self { client, secrets, token: account.join("token") })
    }

    /// A Secret, if it is there.
    pub async fn get(&self, name: &str) -> anyhow::Result<Option<KeptSecret>> {
        let url = self.secrets.join(name)?;
        match self.call(self.client.get(url.clone()), "get", name).await? {
            (StatusCode::OK, body) => Ok(Some(KeptSecret(serde_json::from_str(&body)?))),
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, body) => bail!("cannot get secret {name}: {url} answers {status}: {}", words(&body)),
        }
    }

    /// Makes a Secret; whether it was not there yet.
    pub async fn create(&self, secret: &SecretObject) -> anyhow::Result<bool> {
        let name = secret.name();
        let request = self
            .client
            .post(self.secrets.as_str().trim_end_matches('/'))
            .body(secret.manifest(None).to_string());
        match self.call(request, "create", name).await? {
            (StatusCode::CREATED | StatusCode::OK, _) => Ok(true),
            (StatusCode::CONFLICT, _) => Ok(false),
            (status, body) => {
                bail!("cannot create secret {name}: {} answers {status}: {}", self.secrets, words(&body))
            }
        }
    }

    /// Puts a Secret in the place of the one that was read.
    pub async fn replace(&self, secret: &SecretObject, kept: &KeptSecret) -> anyhow::Result<()> {
        let name = secret.name();
        let request =
            self.client.put(self.secrets.join(name)?).body(secret.manifest(Some(kept.version())).to_string());
        match self.call(request, "replace", name).await? {
            (StatusCode::OK, _) => Ok(()),
            // Somebody else has replaced it since it was read, which serves as well: its certificate is new.
            (StatusCode::CONFLICT, _) => Ok(()),
            (status, body) => {
                bail!("cannot replace secret {name}: {} answers {status}: {}", self.secrets, words(&body))
            }
        }
    }

    async fn call(
        &self,
        request: RequestBuilder,
        what: &str,
        name: &str,
    ) -> anyhow::Result<(StatusCode, String)> {
        let token = tokio::fs::read_to_string(&self.token).await;
        let token = token.with_context(|| format!("cannot read {}", self.token.display()))?;
        let request = request.bearer_auth(token.trim()).header(header::CONTENT_TYPE, "application/json");
        let context = || format!("cannot {what} secret {name}");
        let mut answer = request.send().await.with_context(context)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.with_context(context)? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                bail!(
                    "cannot {what} secret {name}: the answer is longer than {} MiB",
                    ANSWER_BYTES_MAX >> 20
                );
            }
            body.extend_from_slice(&chunk);
        }
        Ok((answer.status(), String::from_utf8(body).with_context(context)?))
    }
}

/// What Kubernetes says of a failure: the message of its status object.
fn words(body: &str) -> String {
    let status: Option<Value> = serde_json::from_str(body).ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str());
    message.unwrap_or("no reason is given").chars().take(500).collect()
}
