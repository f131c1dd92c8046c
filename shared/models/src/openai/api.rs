//! Shared by all questions to one server: its address and key, its list of models, and the classification of
//! refusals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::glob::Glob;
use domain::model_name::is_name_of;
use domain::{Connector, FailureCause, ModelSpec, RetryAdvice, Usage};
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::OpenAiConfig;
use super::names;
use super::wire::{ModelList, ServedModel};
use crate::chat::ModelIdentity;
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, Route, unparsable, unserialisable, unusable};
use crate::refusals;
use crate::secret::{Secret, scrub_with};

/// Timeout of [`Api::models`], in seconds.
const PROBE_SECONDS_MAX: u64 = 10;

/// One model at one server.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) identity: ModelIdentity,
    key: Option<Secret>,
    client: Client,
    headers: HeaderMap,
    base: Url,
    /// vLLM's own routes are beside `/v1`, not below it.
    root: Url,
    /// The provider's answers name other models, such as the version behind an alias or a deployment.
    provider_names: bool,
    /// Names under which answers may come, by configuration.
    answers_as: Vec<Glob>,
    /// Other names of the model, from the server's list.
    aliases: Mutex<Vec<String>>,
    /// An answer has come under a right name.
    is_known: AtomicBool,
}

/// Maximum number of names kept for one model.
const ALIASES_MAX: usize = 16;

impl Api {
    /// The API of a model as it is configured.
    pub(super) fn new(config: &OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let OpenAiConfig { spec, endpoint, key, .. } = config;
        let base = http::api_base(endpoint)?;
        let mut headers = HeaderMap::new();
        // Who compresses what nobody asked for may do so in a way that is not known here.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(key) = key {
            let (name, prefix) = names::key_header(&base, key.expose());
            headers.insert(name, key.header(prefix)?);
        }
        let mut shown = base.clone();
        shown.set_query(None);
        let identity = ModelIdentity {
            connector: Connector::OpenaiCompatible.as_str(),
            requested: spec.requested().to_owned(),
            endpoint: Some(shown.as_str().trim_end_matches('/').to_owned()),
        };
        let api = Self {
            identity,
            key: key.clone(),
            client: http.for_url(&base)?,
            headers,
            root: server_root(&base),
            provider_names: names::are_the_providers(&base),
            answers_as: spec.answers_as.iter().map(|name| Glob::new(name)).collect(),
            aliases: Mutex::default(),
            is_known: AtomicBool::new(false),
            base,
        };
        api.sending(spec)
    }

    /// The same with these headers and parts of the address in every request. Where `{key}` stands in a header, the key is sent
    /// there and nowhere else.
    fn sending(mut self, extra: &ModelSpec) -> Result<Self, SetupError> {
        const KEY: &str = "{key}";
        if extra.headers.values().any(|value| value.contains(KEY)) {
            self.headers.remove(AUTHORIZATION);
            self.headers.remove(names::AZURE_KEY);
        }
        let key = self.key.as_ref().map_or("", |key| key.expose());
        for (name, value) in &extra.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| SetupError::KeyCharacters)?;
            let value = Secret::new(value.replace(KEY, key)).header("")?;
            self.headers.insert(name, value);
        }
        for url in [&mut self.base, &mut self.root] {
            let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            pairs.retain(|(name, _)| !extra.query.contains_key(name));
            pairs.extend(extra.query.clone());
            if !pairs.is_empty() {
                url.query_pairs_mut().clear().extend_pairs(pairs);
            }
        }
        Ok(self)
    }

    pub(super) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// A text that the server chose, without the key.
    pub(super) fn scrub(&self, text: String) -> String {
        scrub_with(self.key(), &text).into_owned()
    }

    /// A POST route of the API.
    pub(super) fn route(&self, path: &str) -> Route {
        Route::post(self.client.clone(), http::join(&self.base, path), self.headers.clone())
    }

    /// A POST route of vLLM beside the API.
    pub(super) fn route_beside(&self, path: &str) -> Route {
        Route::post(self.client.clone(), http::join(&self.root, path), self.headers.clone())
    }

    /// The models that the server lists.
    pub(super) async fn models(&self) -> Result<Vec<ServedModel>, CallError> {
        let route = Route::get(self.client.clone(), http::join(&self.base, "models"), self.headers.clone());
        let clock = CallClock::whole(Instant::now(), Duration::from_secs(PROBE_SECONDS_MAX));
        let response =
            refusals::send(&route, None, &clock, self.key()).await.map_err(|rejected| rejected.error)?;
        let body = clock.wait(http::read_body(response)).await??;
        let list: ModelList = serde_json::from_slice(&body).map_err(|error| {
            let message = format!("the list of models cannot be parsed: {error}");
            http::said(FailureCause::Server, RetryAdvice::No, &message, self.key())
        })?;
        let scrubbed = |model: ServedModel| ServedModel {
            id: self.scrub(model.id),
            root: model.root.map(|root| self.scrub(root)),
            ..model
        };
        Ok(list.data.into_iter().map(scrubbed).collect())
    }

    /// Checks by the name reported in an answer that it comes from the requested model. An answer of another model
    /// says nothing about the requested one, and was paid for in vain.
    pub(super) async fn check_answerer(
        &self,
        reported: Option<&str>,
        usage: Usage,
        clock: &CallClock,
    ) -> Result<(), CallError> {
        let (Some(reported), asked) = (reported, self.identity.requested.as_str()) else { return Ok(()) };
        let aliases = || self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        if self.provider_names
            || is_name_of(reported, asked)
            || self.answers_as.iter().any(|names| names.matches(reported))
            || aliases().iter().any(|alias| alias == reported)
        {
            self.is_known.store(true, Ordering::Relaxed);
            return Ok(());
        }
        if self.serves_as(reported, clock).await {
            let mut aliases = aliases();
            if aliases.len() < ALIASES_MAX {
                aliases.push(reported.to_owned());
            }
            self.is_known.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let mut message = format!("asked for model {asked}, answered by {reported}");
        // One of several servers behind an address may be wrong. Where no answer was right, all will be as this one.
        let retry = if self.is_known.load(Ordering::Relaxed) {
            RetryAdvice::Transient
        } else {
            let name = reported.replace(['\\', '"'], "?");
            message +=
                &format!("; if that is the same model, its configuration needs `answers_as = [\"{name}\"]`");
            RetryAdvice::No
        };
        let error = http::said(FailureCause::WrongModel, retry, &message, self.key());
        Err(error.for_nothing(message, usage))
    }

    /// Whether the server lists this name and the model's own as names of the same weights: vLLM serves one model
    /// under several names and answers with the first.
    async fn serves_as(&self, name: &str, clock: &CallClock) -> bool {
        let Ok(Ok(served)) = clock.wait(self.models()).await else { return false };
        let root = |name: &str| served.iter().find(|model| model.id == name)?.root.as_deref();
        root(name).is_some_and(|loaded| root(&self.identity.requested) == Some(loaded))
    }

    /// Posts a question that is not streamed, and reads the answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        route: &Route,
        question: &impl Serialize,
        clock: &CallClock,
    ) -> Result<T, CallError> {
        let body = serde_json::to_vec(question).map_err(unserialisable)?;
        let response =
            refusals::send(route, Some(body), clock, self.key()).await.map_err(|rejected| rejected.error)?;
        read(&clock.wait(http::read_body(response)).await??, self.key())
    }
}

/// Parses a whole answer. Servers that fail midway report it with status 200.
pub(super) fn read<T: DeserializeOwned>(body: &[u8], key: Option<&Secret>) -> Result<T, CallError> {
    #[derive(Deserialize)]
    struct Failure {
        error: Option<IgnoredAny>,
        object: Option<String>,
    }
    serde_json::from_slice(body).map_err(|error| match serde_json::from_slice::<Failure>(body) {
        Ok(failure) if failure.error.is_some() || failure.object.as_deref() == Some("error") => {
            refusals::classify_within_success(&String::from_utf8_lossy(body), key).error
        }
        _ => unparsable(&error, key),
    })
}

/// The answer to the only input of a question.
pub(super) fn only<T>(answers: Vec<T>) -> Result<T, CallError> {
    let answers: [T; 1] = answers.try_into().map_err(|answers: Vec<T>| {
        unusable(&format!("the server sent {} answers to 1 input", answers.len()))
    })?;
    let [answer] = answers;
    Ok(answer)
}

/// The address without its last segment, `v1`.
fn server_root(base: &Url) -> Url {
    let mut root = base.clone();
    let path = base.path().trim_end_matches('/');
    root.set_path(path.strip_suffix("/v1").unwrap_or(path));
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct KnownFields {
        data: Vec<u32>,
    }

    #[test]
    fn what_is_no_answer_says_whose_fault_it_is() {
        assert_eq!(
            read::<KnownFields>(br#"{"data":[1],"new":true}"#, None).unwrap(),
            KnownFields { data: vec![1] }
        );
        for (body, cause) in [
            (&b"<html>"[..], FailureCause::Server),
            (b"{\"data\":\"\xff\"}", FailureCause::Server),
            (b"{}", FailureCause::Server),
            (br#"{"error":{"message":"busy","code":503}}"#, FailureCause::Overloaded),
            (br#"{"object":"error","message":"slow down","code":429}"#, FailureCause::RateLimited),
        ] {
            let error = read::<KnownFields>(body, None).unwrap_err();
            assert_eq!(error.cause, cause, "{body:?}");
            assert_ne!(error.retry, RetryAdvice::No);
        }
        let key = Secret::new("hunter2-hunter2");
        let error = read::<KnownFields>(br#"{"data":"hunter2-hunter2"}"#, Some(&key)).unwrap_err();
        assert!(!error.message.contains("hunter2"), "{error}");
    }
}
