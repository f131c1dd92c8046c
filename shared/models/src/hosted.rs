//! Hosted providers with an API of their own. One client serves all; what differs between them is a
//! [`ProviderDialect`].

use domain::TimeLimits;
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::dialect::ProviderDialect;
use crate::error::{CallError, SetupError};
use crate::http::{self, Route};
use crate::secret::Secret;
use crate::{anthropic, gemini, stops};

/// Configuration of a hosted model.
#[derive(Clone, Debug)]
pub struct HostedConfig {
    /// Address of the API. Default: the provider's own.
    pub endpoint: Option<String>,
    /// The model name to ask for. Gemini's may have `models/` before it.
    pub model: String,
    /// The account's key.
    pub key: Secret,
    pub time_limits: TimeLimits,
}

/// A hosted model. Answers are not streamed.
#[derive(Debug)]
pub struct Hosted {
    dialect: &'static ProviderDialect,
    model: String,
    key: Secret,
    identity: ModelIdentity,
    route: Route,
    time_limits: TimeLimits,
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
        let HostedConfig { endpoint, model, key, time_limits } = config;
        let own = dialect.connector.own_endpoint().unwrap_or_default();
        let base = http::parse_endpoint(endpoint.as_deref().unwrap_or(own))?;
        let identity = ModelIdentity {
            connector: dialect.connector.as_str(),
            requested: model.clone(),
            endpoint: Some(base.as_str().trim_end_matches('/').to_owned()),
        };
        let url = http::join(&base, &(dialect.path)(&model));
        let route = Route::post(http.for_url(&base)?, url, (dialect.headers)(&key)?);
        Ok(Self { dialect, model, key, identity, route, time_limits })
    }
}

#[async_trait::async_trait]
impl ChatModel for Hosted {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let body = (self.dialect.request)(&self.model, &request)?;
        let limits = self.time_limits;
        let clock = CallClock::of_model(Instant::now(), limits, &request.key.model, request.deadline, false);
        let exchange = http::exchange(&self.route, Some(body), &clock).await?;
        if exchange.is_success() {
            let reply = (self.dialect.reply)(&exchange.body, &self.key)?;
            return Ok(reply.limited(&request.sampling, request.sampling.tokens(None)));
        }
        if stops::is_filtered(&exchange.text()) {
            return Ok(ChatReply::said(stops::withheld(), None, None, None));
        }
        let (status, after) = (exchange.status, exchange.retry_after);
        let error = (self.dialect.classify)(status, after, &exchange.text(), &self.key);
        Err(error.asked_at(self.route.url()))
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}
