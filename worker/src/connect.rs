//! Creates connectors from model descriptions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::model_name::is_listed_as;
use domain::{Ask, ClassifyApi, Connector, KeyPlace, ModelSpec, RetryAdvice};
use models::{
    ChatModel, Hosted, HttpClient, KnownVectors, Learnt, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder,
    Secret, SetupError, Similarity, TeiClassifier, VllmClassifier,
};

use crate::dialogue::Script;
use crate::keys::Keyring;
use crate::renew::{KeyedModel, RenewedKey};

/// Models at servers of which is remembered what was learnt of them.
const LEARNT_MAX: usize = 1_000;

/// Maximum number of models in a message.
const MODELS_LISTED_MAX: usize = 20;

/// Creates connectors. Programs with other ways to answer than the network, such as recordings, implement this and
/// delegate the rest to [`Connectors`].
pub trait Connect: Send + Sync + 'static {
    /// The connector of a model for questions of a kind, at a discovered server or, without one, at the address of the
    /// description or provider. May block: it reads keys and recordings.
    ///
    /// # Errors
    /// What is missing, and what to do about it.
    fn connect(
        &self,
        ask: Ask,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
    ) -> Result<Connected, ConnectError>;
}

/// A server that serves a model by name.
#[derive(Clone, Debug)]
pub struct FoundServer {
    /// Its address.
    pub endpoint: String,
    /// Bearer token, if the model's description names no key.
    pub key: Option<Secret>,
    /// The context of the model in tokens, if the server reports it.
    pub context_tokens: Option<u32>,
}

/// A connector, with what can be checked at its server beforehand.
pub struct Connected {
    /// The connector; an embedder or classifier is asked as [`models::pairs`] says.
    pub model: Arc<dyn ChatModel>,
    /// The same connector if its server lists models.
    pub listing: Option<Arc<OpenAiCompatible>>,
    /// The recorded prompts of a replayed model.
    pub script: Option<Script>,
}

impl Connected {
    /// A connector without further checks.
    pub fn opaque(model: Arc<dyn ChatModel>) -> Self {
        Self { model, listing: None, script: None }
    }

    /// What the server's list of models says. It is advice: the first question shows whether the server answers for the model.
    ///
    /// # Errors
    /// Nobody listens there. That may be temporary.
    pub async fn listed(&self, spec: &ModelSpec) -> Result<Listed, ConnectError> {
        let Some(server) = &self.listing else { return Ok(Listed::Nothing) };
        let served = match server.probe().await {
            Ok(served) => served,
            Err(error) if error.retry == RetryAdvice::Unreachable => {
                let endpoint = self.model.identity().endpoint.as_deref().unwrap_or_default();
                let why = format!("{endpoint} does not answer as it should: {error}");
                return Err(ConnectError::new(spec, why));
            }
            Err(error) => return Ok(Listed::Unusable(error.to_string())),
        };
        Ok(if served.is_empty() {
            Listed::Unusable("it is empty".to_owned())
        } else if served.iter().any(|model| is_listed_as(&model.id, spec.requested())) {
            Listed::Served
        } else {
            Listed::Lacks(list(served.iter().map(|model| model.id.as_str())))
        })
    }
}

/// What a server's model list says of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Its API has no model list.
    Nothing,
    /// The list is refused, or none; why.
    Unusable(String),
    /// It names other models, which are these.
    Lacks(String),
    /// It names the model.
    Served,
}

impl Listed {
    /// What is unusual about the list, for people.
    pub fn remark(&self, asked: &str) -> Option<String> {
        match self {
            Self::Nothing | Self::Served => None,
            Self::Unusable(why) => Some(format!("its list of models cannot be used ({why})")),
            Self::Lacks(others) => Some(format!("its list of models lacks `{asked}`; it names {others}")),
        }
    }
}

/// Why a model has no connector, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("model `{model}`: {why}")]
pub struct ConnectError {
    model: String,
    why: String,
}

impl ConnectError {
    /// Of this model.
    pub fn new(spec: &ModelSpec, why: impl std::fmt::Display) -> Self {
        Self { model: spec.label.to_string(), why: why.to_string() }
    }
}

/// Lists names for a message, shortened if there are many.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().take(MODELS_LISTED_MAX + 1).collect();
    if names.len() > MODELS_LISTED_MAX {
        names[MODELS_LISTED_MAX] = "…";
    }
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// The network connectors. They share connections.
#[derive(Clone, Debug, Default)]
pub struct Connectors {
    http: HttpClient,
    /// The keys of a worker in a fleet. Without them, configurations come from this machine and may refer to it.
    keys: Option<Arc<Keyring>>,
    /// Vectors of texts, which the embedders of all runs share.
    known: Arc<KnownVectors>,
    learnt: Arc<Mutex<BTreeMap<(String, String), Learnt>>>,
}

impl Connectors {
    /// Connectors of a worker in a fleet, whose configurations come from others.
    pub fn of_fleet(keys: Arc<Keyring>) -> Self {
        Self { keys: Some(keys), ..Self::default() }
    }

    /// The key for a model.
    fn key(&self, spec: &ModelSpec, server: Option<&FoundServer>) -> Result<Option<Secret>, ConnectError> {
        match &self.keys {
            Some(keys) => keys
                .grant(spec, server.map(|server| &*server.endpoint))
                .map_err(|denied| ConnectError::new(spec, denied)),
            None => key_of(spec).map_err(|error| ConnectError::new(spec, error)),
        }
    }

    /// A model, made with its key. Where that is from a place where it may change, it is read again once it is refused.
    fn renewing(
        &self,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
        key: Option<Secret>,
        make: impl Fn(Option<Secret>) -> Result<Arc<dyn ChatModel>, SetupError> + Send + Sync + 'static,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        let model = make(key.clone())?;
        let (spec, keys) = (spec.clone(), self.keys.clone());
        let changes = match &keys {
            Some(_) => true,
            None => matches!(spec.key_place(), Some(KeyPlace::File(_) | KeyPlace::Command(_))),
        };
        let (Some(key), true) = (key, changes) else { return Ok(model) };
        let server = server.map(|server| server.endpoint.clone());
        let renew = move |refused: &Secret| {
            let found = match &keys {
                Some(keys) => keys.read_again(&spec, server.as_deref()),
                None => key_of(&spec).ok().flatten(),
            };
            let key = found.filter(|key| key != refused)?;
            Some(KeyedModel { model: make(Some(key.clone())).ok()?, key })
        };
        Ok(Arc::new(RenewedKey::new(KeyedModel { model, key }, Arc::new(renew))))
    }

    /// What was learnt of a model at a server, by all connectors together.
    fn learnt(&self, endpoint: &str, model: &str) -> Learnt {
        let mut known = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LEARNT_MAX {
            known.clear();
        }
        known.entry((endpoint.to_owned(), model.to_owned())).or_default().clone()
    }

    /// A model at a server with OpenAI's API, and its list of models.
    fn at_server(
        &self,
        ask: Ask,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
        key: Option<Secret>,
    ) -> Result<Connected, ConnectError> {
        let endpoint = server.map(|server| server.endpoint.clone()).or_else(|| spec.endpoint.clone());
        let endpoint = endpoint.ok_or_else(|| {
            ConnectError::new(spec, "it has no `endpoint`, and no server of this worker serves it")
        })?;
        let key = key.or_else(|| server.and_then(|server| server.key.clone()));
        let config = OpenAiConfig {
            key: key.clone(),
            context_tokens: server.and_then(|server| server.context_tokens),
            learnt: self.learnt(&endpoint, spec.requested()),
            endpoint,
            spec: spec.clone(),
        };
        let setup = |error: SetupError| ConnectError::new(spec, error);
        let listing = Arc::new(OpenAiCompatible::with_client(config.clone(), &self.http).map_err(setup)?);
        let (http, known) = (self.http.clone(), Arc::clone(&self.known));
        let make = move |key| -> Result<Arc<dyn ChatModel>, SetupError> {
            let config = OpenAiConfig { key, ..config.clone() };
            Ok(match (ask, config.spec.request.classify_api) {
                (Ask::Chat, _) => Arc::new(OpenAiCompatible::with_client(config, &http)?),
                (Ask::Embed, _) => {
                    let model = OpenAiEmbedder::new(config, &http)?;
                    Arc::new(Similarity { model, known: Arc::clone(&known) })
                }
                (Ask::Classify, ClassifyApi::Vllm) => Arc::new(VllmClassifier::new(config, &http)?),
                (Ask::Classify, ClassifyApi::TextEmbeddingsInference) => {
                    Arc::new(TeiClassifier::new(&config, &http)?)
                }
            })
        };
        let model = self.renewing(spec, server, key, make).map_err(setup)?;
        Ok(Connected { model, listing: Some(listing), script: None })
    }

    /// A hosted model.
    fn hosted(
        &self,
        spec: &ModelSpec,
        key: Option<Secret>,
        new: fn(ModelSpec, Secret, &HttpClient) -> Result<Hosted, SetupError>,
    ) -> Result<Connected, SetupError> {
        let (http, described) = (self.http.clone(), spec.clone());
        let model = self.renewing(spec, None, key, move |key| {
            let key = key.ok_or_else(|| SetupError::KeyMissing("none is configured".to_owned()))?;
            Ok(Arc::new(new(described.clone(), key, &http)?))
        });
        Ok(Connected::opaque(model?))
    }
}

impl Connect for Connectors {
    fn connect(
        &self,
        ask: Ask,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
    ) -> Result<Connected, ConnectError> {
        let setup = |error: SetupError| ConnectError::new(spec, error);
        if !spec.connector.offers().contains(&ask) {
            let why = format!("the connector `{}` cannot be asked to {ask}", spec.connector);
            return Err(ConnectError::new(spec, why));
        }
        let key = self.key(spec, server)?;
        match spec.connector {
            Connector::OpenaiCompatible | Connector::Simulated => self.at_server(ask, spec, server, key),
            Connector::Anthropic => self.hosted(spec, key, Hosted::anthropic).map_err(setup),
            Connector::Gemini => self.hosted(spec, key, Hosted::gemini).map_err(setup),
            // Only a program with recordings has it.
            Connector::Replay => {
                let why = format!("this worker does not support the connector `{}`", spec.connector);
                Err(ConnectError::new(spec, why))
            }
        }
    }
}

/// The key that a model's description names, or the one in its provider's usual variable.
///
/// # Errors
/// The key is missing.
pub fn key_of(spec: &ModelSpec) -> Result<Option<Secret>, SetupError> {
    match spec.key_place() {
        Some(KeyPlace::Variable(name)) => Secret::from_env(name).map(Some),
        Some(KeyPlace::File(path)) => Secret::from_file(path).map(Some),
        Some(KeyPlace::Command(words)) => Secret::from_command(words).map(Some),
        None => Ok(None),
    }
}

/// Identifies the key of a model, for people and rate budgets: the connector and the name, variable or file; never
/// the key itself.
pub fn key_name(spec: &ModelSpec) -> String {
    // Without a key, the calls are limited per server.
    let server = || spec.endpoint.clone().unwrap_or_else(|| spec.requested().to_owned());
    let placed = || spec.key_place().map_or_else(server, |place| place.to_string());
    let key = spec.key.clone().unwrap_or_else(placed);
    format!("{}/{key}", spec.connector)
}

#[cfg(test)]
pub(crate) mod tests;
