//! Google's Gemini API (`generateContent`, v1beta).

mod convert;
mod errors;
mod wire;

use domain::Connector;
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, HttpClient, Route};
use crate::secret::Secret;

/// Configuration of a Gemini model.
#[derive(Clone, Debug)]
pub struct GeminiConfig {
    /// Address of the API.
    pub endpoint: String,
    /// The model name to ask for, with or without `models/` before it.
    pub model: String,
    /// The account's key.
    pub key: Secret,
}

impl GeminiConfig {
    /// The public API.
    pub fn new(model: impl Into<String>, key: Secret) -> Self {
        Self {
            endpoint: Connector::Gemini.own_endpoint().unwrap_or_default().to_owned(),
            model: model.into(),
            key,
        }
    }
}

/// A Gemini model. Answers are not streamed.
#[derive(Debug)]
pub struct Gemini {
    config: GeminiConfig,
    identity: ModelIdentity,
    route: Route,
}

impl Gemini {
    /// A connector with its own connections.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: GeminiConfig) -> Result<Self, SetupError> {
        Self::with_client(config, &HttpClient::new())
    }

    /// A connector that shares the connections of `http`.
    ///
    /// # Errors
    /// As [`Gemini::new`].
    pub fn with_client(config: GeminiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let base = http::parse_endpoint(&config.endpoint)?;
        let mut headers = HeaderMap::new();
        // The API also accepts the key in the URL, where it would appear in logs.
        headers.insert("x-goog-api-key", config.key.header("")?);
        let identity = ModelIdentity {
            connector: Connector::Gemini.as_str(),
            requested: config.model.clone(),
            endpoint: Some(base.as_str().trim_end_matches('/').to_owned()),
        };
        let model = config.model.strip_prefix("models/").unwrap_or(&config.model);
        let url = http::join(&base, &format!("v1beta/models/{model}:generateContent"));
        let route = Route::post(http.for_url(&base)?, url, headers);
        Ok(Self { config, identity, route })
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatReply, CallError> {
        let body = convert::request(request)?;
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

impl ChatModel for Gemini {
    fn complete(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatReply, CallError>> {
        async move { self.ask(&request).await }.boxed()
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}
