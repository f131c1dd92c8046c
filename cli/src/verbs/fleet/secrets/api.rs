//! Reads, makes and replaces Secrets of one namespace over the API of Kubernetes. None is ever deleted or listed. A Secret is
//! replaced only in the version that was read, so that of two callers at a time one changes it. Nothing is tried again here.

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conductor::ServiceAccount;
use conductor::account::{ApiAnswer, CORE};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::make::SecretObject;

/// Longest answer, in bytes: a Secret has at most 1 MiB, which base64 makes longer.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Secrets as a service account may see them.
pub struct SecretsApi(pub ServiceAccount);

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
    /// A Secret, if it is there.
    pub async fn get(&self, name: &str) -> anyhow::Result<Option<KeptSecret>> {
        let answer = self.call("get", Method::GET, name, None).await?;
        match answer.status {
            StatusCode::OK => Ok(Some(KeptSecret(serde_json::from_slice(&answer.body)?))),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.refusal("get", name, &answer)),
        }
    }

    /// Makes a Secret; whether it was not there yet.
    pub async fn create(&self, secret: &SecretObject) -> anyhow::Result<bool> {
        let name = secret.name();
        let answer = self.call("create", Method::POST, name, Some(&secret.manifest(None))).await?;
        match answer.status {
            StatusCode::CREATED | StatusCode::OK => Ok(true),
            StatusCode::CONFLICT => Ok(false),
            _ => Err(self.refusal("create", name, &answer)),
        }
    }

    /// Puts a Secret in the place of the one that was read.
    pub async fn replace(&self, secret: &SecretObject, kept: &KeptSecret) -> anyhow::Result<()> {
        let (name, manifest) = (secret.name(), secret.manifest(Some(kept.version())));
        let answer = self.call("replace", Method::PUT, name, Some(&manifest)).await?;
        match answer.status {
            // A conflict: somebody else has replaced it since it was read, which serves as well, because its certificate is new.
            StatusCode::OK | StatusCode::CONFLICT => Ok(()),
            _ => Err(self.refusal("replace", name, &answer)),
        }
    }

    /// Makes a call about a Secret.
    async fn call(
        &self,
        what: &str,
        method: Method,
        name: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<ApiAnswer> {
        // One that is not there yet is made at the address of all.
        let at = (method != Method::POST).then_some(name);
        let place = self.0.place(CORE, "secrets", at)?;
        Ok(self.0.call(&format!("{what} secret {name}"), (method, place), body, ANSWER_BYTES_MAX).await?)
    }

    fn refusal(&self, what: &str, name: &str, answer: &ApiAnswer) -> anyhow::Error {
        let message = answer.message().unwrap_or_else(|| "no reason is given".to_owned());
        anyhow!("cannot {what} secret {name}: {} answers {}: {message}", self.0.api(), answer.status)
    }
}
