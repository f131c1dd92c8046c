//! Creates connectors from model descriptions.

use std::sync::Arc;

use domain::reach::Denied;
use domain::{Ask, ClassifyApi, Connector, KeyPlace, ModelSpec, RequestSettings, RunId};
use models::{
    Batched, Batches, CallError, ChatModel, ChatReply, ChatRequest, ClassifyConfig, EmbedConfig, Hosted,
    HostedConfig, HttpClient, ModelIdentity, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder, PredictConfig,
    Secret, SetupError, TeiClassifier, VllmClassifier,
};

use crate::dialogue::Script;
use crate::keys::Keyring;
use crate::pairs::{PairClass, Similarity};
use crate::vectors::KnownVectors;

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
    /// The connector; an embedder or classifier is wrapped as in [`pairs`](crate::pairs).
    pub model: Arc<dyn ChatModel>,
    /// The same connector if its server lists models.
    pub listing: Option<Arc<OpenAiCompatible>>,
    /// The recorded prompts of a replayed model.
    pub script: Option<Script>,
    /// The same model in batches, if it is asked so.
    pub batched: Option<Batched>,
}

impl Connected {
    /// A connector without further checks.
    pub fn opaque(model: Arc<dyn ChatModel>) -> Self {
        Self { model, listing: None, script: None, batched: None }
    }

    /// The connector for the dialogues of a run.
    pub fn for_run(&self, run: &RunId) -> Arc<dyn ChatModel> {
        match &self.batched {
            Some(batched) => Arc::new(batched.of_run(run)),
            None => Arc::clone(&self.model),
        }
    }

    /// Checks that the server is reachable, accepts the key and serves the model, before thousands of dialogues find
    /// out one by one. Connectors and servers without a model list pass.
    ///
    /// # Errors
    /// [`ConnectError::Unreachable`] may be temporary; the others need a person.
    pub async fn check(&self, spec: &ModelSpec) -> Result<Listed, ConnectError> {
        let Some(server) = &self.listing else { return Ok(Listed::Nothing) };
        let endpoint = self.model.identity().endpoint.clone().unwrap_or_default();
        let served = match server.probe().await {
            Ok(served) => served,
            // Not every compatible server has a model list.
            Err(error) if matches!(error.status, Some(404 | 405 | 501)) => return Ok(Listed::Refused),
            Err(error) => {
                return Err(ConnectError::Unreachable { model: spec.label.to_string(), endpoint, error });
            }
        };
        let requested = spec.requested();
        if served.is_empty() {
            return Ok(Listed::Refused);
        }
        if served.iter().any(|model| model.id == requested) {
            return Ok(Listed::Served);
        }
        Err(ConnectError::NotServed {
            model: spec.label.to_string(),
            endpoint,
            requested: requested.to_owned(),
            served: list(served.iter().map(|model| model.id.as_str())),
        })
    }
}

/// What a server's model list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Its API has no model list.
    Nothing,
    /// It has no usable list, although its API has one.
    Refused,
    /// It lists the requested model.
    Served,
}

/// Why there is no connector.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Its settings are invalid.
    #[error("model `{model}`: {source}")]
    Setup {
        /// Label of the model.
        model: String,
        source: SetupError,
    },
    /// This worker may not ask it.
    #[error("model `{model}`: {denied}")]
    Denied {
        /// Label of the model.
        model: String,
        /// Why.
        denied: Denied,
    },
    /// No address is known.
    #[error("model `{0}` has no `endpoint`, and no server of this worker serves it")]
    NoEndpoint(String),
    /// Only a program with recordings or a simulator supports the connector.
    #[error("model `{model}`: this worker does not support the connector `{connector}`")]
    Unsupported {
        /// Label of the model.
        model: String,
        connector: Connector,
    },
    /// The connector does not support this kind of question.
    #[error("model `{model}`: the connector `{connector}` cannot be asked to {ask}")]
    NotOffered {
        /// Label of the model.
        model: String,
        connector: Connector,
        /// The kind of question.
        ask: Ask,
    },
    /// The server is unreachable, or does not answer properly.
    #[error("model `{model}`: {endpoint} does not answer as it should: {error}")]
    Unreachable {
        /// Label of the model.
        model: String,
        /// Address of the server.
        endpoint: String,
        error: CallError,
    },
    /// The server serves other models.
    #[error(
        "model `{model}`: {endpoint} does not serve `{requested}`; it serves: {served}. Start the server with \
         `--served-model-name {requested}`, or name in the configuration what it serves"
    )]
    NotServed {
        /// Label of the model.
        model: String,
        /// Address of the server.
        endpoint: String,
        /// Requested name.
        requested: String,
        /// Names served.
        served: String,
    },
    /// The run needs files or variables of this machine that its user has not agreed to.
    #[error(
        "model `{model}`: its run would have this machine{needs}\nwhich was neither configured nor trusted here"
    )]
    Foreign {
        /// Label of the model.
        model: String,
        /// What it needs, for people.
        needs: String,
    },
    /// The recordings of a replayed model cannot be read.
    #[error("model `{model}`: {message}")]
    Recording {
        /// Label of the model.
        model: String,
        message: String,
    },
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
    batches: Batches,
}

impl Connectors {
    /// Connectors of a worker in a fleet, whose configurations come from others.
    pub fn of_fleet(keys: Arc<Keyring>) -> Self {
        Self { keys: Some(keys), ..Self::default() }
    }

    /// The same, with these batches.
    pub fn asking_in(self, batches: Batches) -> Self {
        Self { batches, ..self }
    }

    /// The key for a model.
    fn key(&self, spec: &ModelSpec, server: Option<&FoundServer>) -> Result<Option<Secret>, ConnectError> {
        let model = || spec.label.to_string();
        match &self.keys {
            Some(keys) => keys
                .grant(spec, server.map(|server| &*server.endpoint))
                .map_err(|denied| ConnectError::Denied { model: model(), denied }),
            None => key_of(spec).map_err(|source| ConnectError::Setup { model: model(), source }),
        }
    }
}

impl Connect for Connectors {
    fn connect(
        &self,
        ask: Ask,
        spec: &ModelSpec,
        server: Option<&FoundServer>,
    ) -> Result<Connected, ConnectError> {
        let setup = |source| ConnectError::Setup { model: spec.label.to_string(), source };
        if !spec.connector.offers().contains(&ask) {
            let (model, connector) = (spec.label.to_string(), spec.connector);
            return Err(ConnectError::NotOffered { model, connector, ask });
        }
        let requested = spec.requested();
        let key = self.key(spec, server)?;
        let hosted = |key: Option<Secret>| {
            let key = key.ok_or_else(missing_key).map_err(setup)?;
            Ok(HostedConfig { endpoint: spec.endpoint.clone(), model: requested.to_owned(), key })
        };
        let connected = match (spec.connector, server) {
            (Connector::OpenaiCompatible | Connector::Simulated, _) => {
                let endpoint = server.map(|server| server.endpoint.clone()).or_else(|| spec.endpoint.clone());
                let endpoint = endpoint.ok_or_else(|| ConnectError::NoEndpoint(spec.label.to_string()))?;
                let mut config = OpenAiConfig::new(endpoint, requested);
                config.key = key.or_else(|| server.and_then(|server| server.key.clone()));
                config.context_tokens = server.and_then(|server| server.context_tokens);
                config.send_seed = spec.send_seed.unwrap_or(true);
                // A simulator is local and cannot stall unnoticed, and whole answers are cheaper.
                config.stream = spec.stream.unwrap_or(spec.connector != Connector::Simulated);
                config.extra_body.clone_from(&spec.request.extra_body);
                let in_batches = spec.is_batched() && ask == Ask::Chat;
                let batched = in_batches.then(|| self.batches.openai(config.clone(), &self.http));
                let batched = batched.transpose().map_err(setup)?;
                let (endpoint, key) = (config.endpoint.clone(), config.key.clone());
                let server = Arc::new(OpenAiCompatible::with_client(config, &self.http).map_err(setup)?);
                let model: Arc<dyn ChatModel> = match ask {
                    Ask::Chat => Arc::clone(&server) as Arc<dyn ChatModel>,
                    Ask::Embed => {
                        let RequestSettings { dimensions, extra_body, .. } = spec.request.clone();
                        let config = EmbedConfig::new(endpoint, requested);
                        let config = EmbedConfig { key, dimensions, extra_body, ..config };
                        let model = OpenAiEmbedder::new(config, &self.http).map_err(setup)?;
                        Arc::new(Similarity { model, known: Arc::clone(&self.known) })
                    }
                    Ask::Classify => {
                        let RequestSettings { pair_layout: layout, labels, .. } = spec.request.clone();
                        match spec.request.classify_api {
                            ClassifyApi::Vllm => {
                                let config = ClassifyConfig::new(endpoint, requested);
                                let config = ClassifyConfig { key, layout, labels, ..config };
                                Arc::new(PairClass(VllmClassifier::new(config, &self.http).map_err(setup)?))
                            }
                            ClassifyApi::TextEmbeddingsInference => {
                                let model = requested.to_owned();
                                let config = PredictConfig { endpoint, model, key, labels };
                                Arc::new(PairClass(TeiClassifier::new(config, &self.http).map_err(setup)?))
                            }
                        }
                    }
                };
                return Ok(Connected { model, listing: Some(server), script: None, batched });
            }
            (Connector::Anthropic, _) => {
                let config = hosted(key)?;
                let batched = spec.is_batched().then(|| self.batches.anthropic(config.clone(), &self.http));
                let batched = batched.transpose().map_err(setup)?;
                let model = Hosted::anthropic(config, &self.http).map_err(setup)?;
                Connected { batched, ..Connected::opaque(Arc::new(model)) }
            }
            (Connector::Gemini, _) => {
                Connected::opaque(Arc::new(Hosted::gemini(hosted(key)?, &self.http).map_err(setup)?))
            }
            (Connector::Replay, _) => {
                return Err(ConnectError::Unsupported {
                    model: spec.label.to_string(),
                    connector: spec.connector,
                });
            }
        };
        Ok(if spec.send_seed == Some(false) {
            Connected { model: Arc::new(WithoutSeed(connected.model)), ..connected }
        } else {
            connected
        })
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
        None => Ok(None),
    }
}

fn missing_key() -> SetupError {
    SetupError::KeyMissing("none is configured".to_owned())
}

/// Identifies the key of a model, for people and rate budgets: the connector and the name, variable or file; never
/// the key itself. For batches, accounts have limits of their own.
pub fn key_name(spec: &ModelSpec) -> String {
    // Without a key, the calls are limited per server.
    let server = || spec.endpoint.clone().unwrap_or_else(|| spec.requested().to_owned());
    let placed = || spec.key_place().map_or_else(server, |place| place.to_string());
    let key = spec.key.clone().unwrap_or_else(placed);
    let batches = if spec.is_batched() { " in batches" } else { "" };
    format!("{}/{key}{batches}", spec.connector)
}

/// A model whose requests carry no seed.
struct WithoutSeed(Arc<dyn ChatModel>);

#[async_trait::async_trait]
impl ChatModel for WithoutSeed {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        self.0.complete(ChatRequest { seed: None, ..request }).await
    }

    fn identity(&self) -> &ModelIdentity {
        self.0.identity()
    }
}

#[cfg(test)]
mod tests {
    use harness::canned_server::{CannedAnswer, CannedServer};

    use super::*;

    fn spec(json: serde_json::Value) -> ModelSpec {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_found_server_comes_before_the_address_of_the_description() {
        let spec = spec(
            serde_json::json!({"label": "m", "connector": "openai-compatible", "endpoint": "http://b/v1"}),
        );
        let found =
            FoundServer { endpoint: "http://a:1/v1".to_owned(), key: None, context_tokens: Some(4096) };
        let connectors = Connectors::default();
        let at = |server| {
            let connected = connectors.connect(Ask::Chat, &spec, server).unwrap();
            let context = connected.listing.unwrap().context_tokens();
            (connected.model.identity().endpoint.clone().unwrap(), context)
        };
        assert_eq!(at(Some(&found)), ("http://a:1/v1".to_owned(), Some(4096)));
        assert_eq!(at(None), ("http://b/v1".to_owned(), None));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |json| {
            Connectors::default().connect(Ask::Chat, &spec(json), None).map(|_| ()).unwrap_err().to_string()
        };
        let no_endpoint = error(serde_json::json!({"label": "m", "connector": "openai-compatible"}));
        assert!(no_endpoint.contains("model `m` has no `endpoint`"), "{no_endpoint}");
        let no_key = error(
            serde_json::json!({"label": "c", "connector": "anthropic", "key_env": "KGFLEET_TEST_NOT_SET"}),
        );
        assert!(no_key.contains("`c`") && no_key.contains("KGFLEET_TEST_NOT_SET"), "{no_key}");
        let replay = error(serde_json::json!({"label": "r", "connector": "replay"}));
        assert!(replay.contains("`replay`"), "{replay}");
        let claude = spec(serde_json::json!({"label": "c", "connector": "anthropic", "key_env": "HOME"}));
        let refused = Connectors::default().connect(Ask::Embed, &claude, None).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("`anthropic` cannot be asked to embed"), "{refused}");
    }

    #[test]
    fn budgets_are_named_by_where_the_key_is() {
        let name = |json| key_name(&spec(json));
        assert_eq!(
            name(serde_json::json!({"label": "c", "connector": "anthropic"})),
            "anthropic/ANTHROPIC_API_KEY"
        );
        assert_eq!(
            name(serde_json::json!({"label": "c", "connector": "gemini", "key_file": "/run/key"})),
            "gemini//run/key"
        );
        assert_eq!(
            name(serde_json::json!({"label": "c", "connector": "anthropic", "key": "k", "mode": "batch"})),
            "anthropic/k in batches"
        );
    }

    fn request(prompt: &str) -> ChatRequest {
        ChatRequest {
            messages: Arc::from([domain::Message::user(prompt)]),
            sampling: domain::Sampling::default(),
            seed: Some(7),
            deadline: std::time::Duration::from_secs(10),
            key: domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
            round: 0,
            progress: models::Progress::default(),
            traceparent: None,
        }
    }

    #[tokio::test]
    async fn a_server_is_told_in_requests_what_the_configuration_says() {
        let nothing = || CannedAnswer::json(400, r#"{"error": {"message": "no"}}"#);
        let asked = async |ask, request_settings| {
            let server = CannedServer::start(vec![nothing()]).await;
            let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
                "endpoint": format!("{}/v1", server.url), "request": request_settings}));
            let connected = Connectors::default().connect(ask, &spec, None).unwrap();
            let refused = connected.model.complete(request(r#"["a", "b"]"#)).await;
            assert_eq!(refused.unwrap_err().status, Some(400));
            server.asked()[0].body.clone()
        };
        let embedded =
            asked(Ask::Embed, serde_json::json!({"dimensions": 256, "extra_body": {"normalize": true}}))
                .await;
        assert_eq!((&embedded["dimensions"], &embedded["normalize"]), (&256.into(), &true.into()));
        let kwargs = serde_json::json!({"enable_thinking": false});
        let chatted =
            asked(Ask::Chat, serde_json::json!({"extra_body": {"chat_template_kwargs": kwargs}})).await;
        assert_eq!(chatted["chat_template_kwargs"], kwargs);
    }

    #[tokio::test]
    async fn a_classifier_is_asked_as_its_pairs_are_laid_out_and_with_its_labels() {
        let tokens = |ids: &str| CannedAnswer::json(200, &format!(r#"{{"tokens": {ids}}}"#));
        let classified = r#"{"model": "m", "data": [{"index": 0, "label": null, "probs": [0.9, 0.1]}]}"#;
        let served = || CannedAnswer::json(200, classified);
        let server =
            CannedServer::start(vec![tokens("[101, 102]"), tokens("[7]"), tokens("[7]"), served()]).await;
        let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
            "endpoint": format!("{}/v1", server.url),
            "request": {"pair_layout": "single-separator", "labels": ["entailment", "neutral"]}}));
        let connected = Connectors::default().connect(Ask::Classify, &spec, None).unwrap();
        let reply = connected.model.complete(request(r#"["a", "b"]"#)).await.unwrap();
        let input = server.asked()[3].body["input"].clone();
        assert_eq!(input, serde_json::json!([[101, 7, 102, 7, 102]]));
        assert!(reply.answer.text.contains(r#""label":"entailment""#), "{}", reply.answer.text);
    }

    #[tokio::test]
    async fn a_classifier_behind_another_server_is_asked_about_the_pair_as_it_is() {
        let said = r#"[[{"score": 0.9, "label": "entailment"}, {"score": 0.1, "label": "neutral"}]]"#;
        let server = CannedServer::start(vec![CannedAnswer::json(200, said)]).await;
        let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
            "endpoint": server.url, "request": {"classify_api": "text-embeddings-inference"}}));
        let connected = Connectors::default().connect(Ask::Classify, &spec, None).unwrap();
        let reply = connected.model.complete(request(r#"["a", "b"]"#)).await.unwrap();
        let asked = server.asked().remove(0);
        assert_eq!(
            (asked.path.as_str(), &asked.body["inputs"]),
            ("/predict", &serde_json::json!([["a", "b"]]))
        );
        assert!(reply.answer.text.contains(r#""label":"entailment""#), "{}", reply.answer.text);
    }

    #[tokio::test]
    async fn a_model_without_seed_is_sent_none() {
        let echo = models::Scripted::function(|request| Ok(ChatReply::text(format!("{:?}", request.seed))));
        let reply = WithoutSeed(Arc::new(echo)).complete(request("?")).await.unwrap();
        assert_eq!(reply.answer.text, "None");
    }
}
