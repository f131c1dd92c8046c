//! Anthropic's Messages API (version 2023-06-01).

mod convert;
mod errors;
mod wire;

use domain::Connector;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, HttpClient, Route};
use crate::secret::Secret;

const API_VERSION: &str = "2023-06-01";

/// Configuration of an Anthropic model.
#[derive(Clone, Debug)]
pub struct AnthropicConfig {
    /// Address of the API.
    pub endpoint: String,
    /// The model name to ask for.
    pub model: String,
    /// The account's key.
    pub key: Secret,
}

impl AnthropicConfig {
    /// The public API.
    pub fn new(model: impl Into<String>, key: Secret) -> Self {
        Self {
            endpoint: Connector::Anthropic.own_endpoint().unwrap_or_default().to_owned(),
            model: model.into(),
            key,
        }
    }
}

/// An Anthropic model. Answers are not streamed; the API has no seed.
#[derive(Debug)]
pub struct Anthropic {
    config: AnthropicConfig,
    identity: ModelIdentity,
    route: Route,
}

impl Anthropic {
    /// A connector with its own connections.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: AnthropicConfig) -> Result<Self, SetupError> {
        Self::with_client(config, &HttpClient::new())
    }

    /// A connector that shares the connections of `http`.
    ///
    /// # Errors
    /// As [`Anthropic::new`].
    pub fn with_client(config: AnthropicConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let base = http::parse_endpoint(&config.endpoint)?;
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", config.key.header("")?);
        headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        let identity = ModelIdentity {
            connector: Connector::Anthropic.as_str(),
            requested: config.model.clone(),
            endpoint: Some(base.as_str().trim_end_matches('/').to_owned()),
        };
        let route = Route::post(http.for_url(&base)?, http::join(&base, "v1/messages"), headers);
        Ok(Self { config, identity, route })
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        let body = convert::request(&self.config.model, request)?;
        let clock = CallClock::whole(Instant::now(), request.deadline);
        let exchange = http::exchange(&self.route, body, &clock).await?;
        if exchange.is_success() {
            convert::reply(&exchange.body, &self.config.key)
        } else {
            let text = exchange.error_text(&self.config.key);
            let error = errors::classify(exchange.status, exchange.retry_after, &text);
            Err(error.asked_at(self.route.url()))
        }
    }
}

impl ChatModel for Anthropic {
    fn complete(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatReply, CallError>> {
        async move { self.ask(&request).await }.boxed()
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}
