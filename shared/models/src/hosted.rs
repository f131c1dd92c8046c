//! Providers with an API of their own. One client asks them all; what differs between them is a [`ProviderDialect`].

use std::time::Duration;

use domain::{Answer, Connector, FailureCause, FinishReason, RetryAdvice, Role, Usage};
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::chat::{
    ANSWER_BYTES_MAX, ANSWER_TOO_LARGE, ChatModel, ChatReply, ChatRequest, ModelIdentity, cut_text,
};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, Route};
use crate::secret::Secret;
use crate::{anthropic, gemini, reasoning};

/// Configuration of a hosted model.
#[derive(Clone, Debug)]
pub struct HostedConfig {
    /// Address of the API. Default: the provider's own.
    pub endpoint: Option<String>,
    /// The model name to ask for. Gemini's may have `models/` before it.
    pub model: String,
    /// The account's key.
    pub key: Secret,
}

/// A hosted model. Answers are not streamed.
#[derive(Debug)]
pub struct Hosted {
    dialect: &'static ProviderDialect,
    model: String,
    key: Secret,
    identity: ModelIdentity,
    route: Route,
}

/// What distinguishes the API of a provider.
#[derive(Debug)]
pub(crate) struct ProviderDialect {
    pub connector: Connector,
    pub headers: fn(&Secret) -> Result<HeaderMap, SetupError>,
    /// Path of the route that answers for a model.
    pub path: fn(&str) -> String,
    /// Serialises a request for a model.
    pub request: fn(&str, &ChatRequest) -> Result<Vec<u8>, CallError>,
    /// Parses the body of a success.
    pub reply: fn(&[u8], &Secret) -> Result<ChatReply, CallError>,
    /// Classifies an error status with its `Retry-After` and its body, without keys.
    pub classify: fn(u16, Option<Duration>, &str) -> CallError,
}

impl Hosted {
    /// Anthropic's Messages API, which has no seed. Shares the connections of `http`.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn anthropic(config: HostedConfig, http: &HttpClient) -> Result<Self, SetupError> {
        Self::new(&anthropic::DIALECT, config, http)
    }

    /// Google's Gemini API. Shares the connections of `http`.
    ///
    /// # Errors
    /// As [`Hosted::anthropic`].
    pub fn gemini(config: HostedConfig, http: &HttpClient) -> Result<Self, SetupError> {
        Self::new(&gemini::DIALECT, config, http)
    }

    fn new(
        dialect: &'static ProviderDialect,
        config: HostedConfig,
        http: &HttpClient,
    ) -> Result<Self, SetupError> {
        let HostedConfig { endpoint, model, key } = config;
        let own = dialect.connector.own_endpoint().unwrap_or_default();
        let base = http::parse_endpoint(endpoint.as_deref().unwrap_or(own))?;
        let identity = ModelIdentity {
            connector: dialect.connector.as_str(),
            requested: model.clone(),
            endpoint: Some(base.as_str().trim_end_matches('/').to_owned()),
        };
        let url = http::join(&base, &(dialect.path)(&model));
        let route = Route::post(http.for_url(&base)?, url, (dialect.headers)(&key)?);
        Ok(Self { dialect, model, key, identity, route })
    }
}

#[async_trait::async_trait]
impl ChatModel for Hosted {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let body = (self.dialect.request)(&self.model, &request)?;
        let clock = CallClock::whole(Instant::now(), request.deadline);
        let exchange = http::exchange(&self.route, body, &clock).await?;
        if exchange.is_success() {
            (self.dialect.reply)(&exchange.body, &self.key)
        } else {
            let text = exchange.error_text(&self.key);
            let error = (self.dialect.classify)(exchange.status, exchange.retry_after, &text);
            Err(error.asked_at(self.route.url()))
        }
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

/// Refuses a request that sets one of the sampling fields that a provider's API lacks. Dropping the field silently would
/// measure something other than the configuration says.
pub(crate) fn refuse_fields(provider: &str, lacking: &[(&str, bool)]) -> Result<(), CallError> {
    let Some((field, _)) = lacking.iter().find(|(_, is_set)| *is_set) else { return Ok(()) };
    let message =
        format!("{provider}'s API has no sampling parameter {field}; remove it from the configuration");
    Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
}

/// The instructions of a request, for APIs without a system role.
pub(crate) fn instructions(request: &ChatRequest) -> Option<String> {
    let system: Vec<&str> = request
        .messages
        .iter()
        .filter(|message| message.role == Role::System)
        .map(|message| message.content.as_str())
        .collect();
    (!system.is_empty()).then(|| system.join("\n\n"))
}

/// An answer of text and thoughts, both cut to the limit.
pub(crate) fn answer(
    mut text: String,
    mut thoughts: String,
    finish_reason: Option<FinishReason>,
    usage: Usage,
) -> Answer {
    cut_text(&mut thoughts, ANSWER_BYTES_MAX);
    let finish_reason = if cut_text(&mut text, ANSWER_BYTES_MAX) {
        Some(FinishReason::Other(ANSWER_TOO_LARGE.to_owned()))
    } else {
        finish_reason
    };
    let (text, reasoning) = reasoning::split(text, Some(thoughts));
    Answer { text, reasoning, finish_reason, usage }
}
