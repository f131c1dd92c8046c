//! Any server with OpenAI's API: vLLM first, also OpenAI, llama.cpp and many others. This module is the chat
//! connector; [`embed`] requests vectors and [`classify`] classes, by vLLM's own route.
//!
//! One call is one attempt, with one exception: a request refused for its form is corrected and sent again at once,
//! because nothing was generated. There are three such corrections, each learnt once per connector: roles (the model
//! has no system role, or requires strict alternation), the name of the token limit (`max_completion_tokens`), and a
//! token limit beyond the context.

mod answer;
mod api;
mod batch;
mod classify;
mod context;
mod convert;
mod embed;
mod errors;
mod join;
mod names;
mod predict;
mod stream;
mod wire;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use domain::{FailureCause, Message, RetryAdvice, Sampling};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::{CallClock, StallLimits};
use crate::error::{CallError, SetupError};
use crate::http::{self, Route};
use crate::progress::CallStage;
use crate::secret::Secret;
pub(crate) use batch::OpenAiBatches;
pub use classify::{ClassifyConfig, VllmClassifier};
pub use embed::{EmbedConfig, OpenAiEmbedder};
pub use predict::{PredictConfig, TeiClassifier};
#[cfg(feature = "test-support")]
pub use stream::read_as_events;
pub use wire::ServedModel;

use api::Api;
use errors::{Rejected, Remedy};

/// Configuration of a model behind an OpenAI-compatible server.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// Address of the API, such as `http://127.0.0.1:8000/v1`; see [`http::api_base`] for other spellings.
    pub endpoint: String,
    /// The model name to ask for.
    pub model: String,
    /// Sent as bearer token.
    pub key: Option<Secret>,
    /// Whether to stream the answer. A stream shows stalls. Without one, calls cost less CPU time on both sides, but
    /// only the deadline ends a call to a hanging server.
    pub stream: bool,
    /// Whether to send a seed.
    pub send_seed: bool,
    /// The model's context in tokens; learnt from the server if it reports it (see [`OpenAiCompatible::probe`]).
    pub context_tokens: Option<u32>,
    /// How long a stream may be silent.
    pub stall: StallLimits,
    /// Further fields of the request body, such as `chat_template_kwargs`, sent as they are.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

impl OpenAiConfig {
    /// Defaults: streaming, with seed, without key.
    pub fn new(endpoint: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            model: model.into(),
            key: None,
            stream: true,
            send_seed: true,
            context_tokens: None,
            stall: StallLimits::default(),
            extra_body: serde_json::Map::new(),
        }
    }
}

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiCompatible {
    config: OpenAiConfig,
    api: Api,
    chat: Route,
    tokenize: Route,
    learnt: Learnt,
}

/// Facts learnt about the server. Races between calls are harmless: each learns the same.
#[derive(Debug, Default)]
struct Learnt {
    /// The context in tokens; 0 while unknown.
    context_tokens: AtomicU32,
    /// System messages are merged into the user's, and neighbours with one role into one.
    fold_roles: AtomicBool,
    /// The token limit is called `max_completion_tokens`.
    completion_tokens: AtomicBool,
    /// There is no `/tokenize`.
    no_tokenize: AtomicBool,
}

/// Maximum number of corrections of one request: one of each kind.
const CORRECTIONS_MAX: u32 = 3;

impl OpenAiCompatible {
    /// A connector with its own connections.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: OpenAiConfig) -> Result<Self, SetupError> {
        Self::with_client(config, &HttpClient::new())
    }

    /// A connector that shares the connections of `http`.
    ///
    /// # Errors
    /// As [`OpenAiCompatible::new`].
    pub fn with_client(config: OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(&config.endpoint, &config.model, config.key.clone(), http)?;
        let learnt = Learnt::default();
        learnt.context_tokens.store(config.context_tokens.unwrap_or(0), Ordering::Relaxed);
        Ok(Self {
            chat: api.route("chat/completions"),
            tokenize: api.route_beside("tokenize"),
            api,
            learnt,
            config,
        })
    }

    /// The models that the server lists. Also learns the context length of this model.
    ///
    /// # Errors
    /// The server is unreachable, refuses, or sends something else.
    pub async fn probe(&self) -> Result<Vec<ServedModel>, CallError> {
        let served = self.api.models().await?;
        if let Some(model) = served.iter().find(|model| model.id == self.config.model)
            && let Some(context) = model.max_model_len
        {
            self.learnt.context_tokens.store(context, Ordering::Relaxed);
        }
        Ok(served)
    }

    /// Whether the server reports that it is alive. It may do so while its engine hangs or drains.
    ///
    /// # Errors
    /// It is unreachable, or reports otherwise.
    pub async fn health(&self) -> Result<(), CallError> {
        self.api.health().await
    }

    /// The model's context in tokens, once known.
    pub fn context_tokens(&self) -> Option<u32> {
        Some(self.learnt.context_tokens.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0)
    }

    /// Passes on an answer of the requested model.
    async fn of_asked_model(&self, reply: ChatReply, clock: &CallClock) -> Result<ChatReply, CallError> {
        self.api.check_answerer(reply.reported_model.as_deref(), clock).await?;
        Ok(reply)
    }

    /// The token limit to send: `wanted`, or what the context leaves of it. This is free unless the prompt comes near
    /// the limit; then the server is asked to count. If it cannot, `unknown` is sent, and the server's refusal
    /// reveals the numbers.
    async fn fit(
        &self,
        request: &ChatRequest,
        wanted: u32,
        unknown: u32,
        clock: &CallClock,
    ) -> Result<u32, CallError> {
        let Some(context) = self.context_tokens() else { return Ok(unknown) };
        let most = context::most_tokens(&request.messages);
        if most.saturating_add(wanted) <= context {
            return Ok(wanted);
        }
        let Some(prompt) = self.count_tokens(&request.messages, clock).await else {
            return Ok(unknown.min(context.saturating_sub(1)).max(1));
        };
        context::room(wanted, context, prompt).ok_or_else(|| {
            let message = format!("the prompt has {prompt} tokens, the model's context {context}");
            CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, message)
        })
    }

    /// Has the server count the prompt's tokens, template included; `None` if it cannot.
    async fn count_tokens(&self, messages: &[Message], clock: &CallClock) -> Option<u32> {
        if self.learnt.no_tokenize.load(Ordering::Relaxed) {
            return None;
        }
        let body = wire::TokenizeRequest { model: &self.config.model, messages: &self.fold(messages) };
        let response = clock.wait(self.tokenize.send(serde_json::to_vec(&body).ok())).await.ok()?.ok()?;
        if matches!(response.status().as_u16(), 404 | 405) {
            self.learnt.no_tokenize.store(true, Ordering::Relaxed);
        }
        if !response.status().is_success() {
            return None;
        }
        let body = clock.wait(http::read_body(response)).await.ok()?.ok()?;
        serde_json::from_slice::<wire::TokenizeReply>(&body).ok().map(|reply| reply.count)
    }

    fn fold<'a>(&self, messages: &'a [Message]) -> Cow<'a, [Message]> {
        if self.learnt.fold_roles.load(Ordering::Relaxed) {
            convert::folded(messages)
        } else {
            Cow::Borrowed(messages)
        }
    }

    /// Sends once.
    async fn attempt(
        &self,
        request: &ChatRequest,
        max_tokens: u32,
        clock: CallClock,
    ) -> Result<ChatReply, Rejected> {
        let messages = self.fold(&request.messages);
        let completion_tokens = self.learnt.completion_tokens.load(Ordering::Relaxed);
        let body = wire::ChatBody::new(&self.config, request, &messages, max_tokens, completion_tokens);
        let body = body.to_bytes().map_err(http::unserialisable)?;
        let traced = request.traceparent.as_ref().filter(|_| !self.api.is_a_providers());
        let chat = traced.map_or(Cow::Borrowed(&self.chat), |parent| Cow::Owned(self.chat.traced(parent)));
        let response = self.api.send(&chat, Some(body), &clock).await?;
        request.progress.met(CallStage::Answered);
        // Some servers ignore the request for a stream, so the response's own type decides.
        if is_event_stream(&response) {
            stream::read(response, clock, self.api.key(), &request.progress).await
        } else {
            let body = clock.wait(http::read_body(response)).await??;
            answer::read_whole(&body, self.api.key())
        }
    }
}

#[async_trait::async_trait]
impl ChatModel for OpenAiCompatible {
    /// Sends the request, correcting it as the server demands.
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let now = Instant::now();
        let clock = if self.config.stream {
            CallClock::streaming(now, request.deadline, self.config.stall)
        } else {
            CallClock::whole(now, request.deadline)
        };
        let wanted = request.sampling.max_tokens.unwrap_or(Sampling::TOKENS_DEFAULT);
        let mut max_tokens = self.fit(&request, wanted, wanted, &clock).await?;
        for _ in 0..CORRECTIONS_MAX {
            let rejected = match self.attempt(&request, max_tokens, clock).await {
                Ok(reply) => return self.of_asked_model(reply, &clock).await,
                Err(rejected) => rejected,
            };
            match rejected.remedy {
                Some(Remedy::FoldRoles) if convert::needs_folding(&request.messages) => {
                    self.learnt.fold_roles.store(true, Ordering::Relaxed);
                }
                Some(Remedy::CompletionTokens) => {
                    self.learnt.completion_tokens.store(true, Ordering::Relaxed);
                }
                Some(Remedy::FewerTokens { context, prompt }) => {
                    self.learnt.context_tokens.store(context, Ordering::Relaxed);
                    let fitted = match prompt {
                        Some(prompt) => context::room(wanted, context, prompt).unwrap_or(max_tokens),
                        None => {
                            let guess = context::likely_tokens(&request.messages);
                            let room = context::room(wanted, context, guess).unwrap_or(max_tokens);
                            self.fit(&request, wanted, room, &clock).await?
                        }
                    };
                    if fitted >= max_tokens {
                        return Err(rejected.error);
                    }
                    max_tokens = fitted;
                }
                _ => return Err(rejected.error),
            }
            tracing::debug!(model = %self.config.model, error = %rejected.error, "request corrected");
        }
        let reply = self.attempt(&request, max_tokens, clock).await.map_err(|rejected| rejected.error)?;
        self.of_asked_model(reply, &clock).await
    }

    fn identity(&self) -> &ModelIdentity {
        self.api.identity()
    }
}

/// Whether the server at this address belongs to a provider that this connector knows, and not to whoever benchmarks.
pub fn is_a_providers(endpoint: &str) -> bool {
    http::api_base(endpoint).is_ok_and(|base| names::are_the_providers(&base))
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_lie_where_the_endpoint_says() {
        for (endpoint, chat, health) in [
            ("http://h:8000", "http://h:8000/v1/chat/completions", "http://h:8000/health"),
            ("http://h:8000/v1/", "http://h:8000/v1/chat/completions", "http://h:8000/health"),
            (
                "http://h:8000/v1/chat/completions",
                "http://h:8000/v1/chat/completions",
                "http://h:8000/health",
            ),
            ("http://h/models/a/v1", "http://h/models/a/v1/chat/completions", "http://h/models/a/health"),
            ("http://h/api", "http://h/api/chat/completions", "http://h/api/health"),
        ] {
            let model = OpenAiCompatible::new(OpenAiConfig::new(endpoint, "m")).unwrap();
            assert_eq!((model.chat.url(), model.api.route_beside("health").url()), (chat, health));
        }
        assert!(OpenAiCompatible::new(OpenAiConfig::new("h:8000", "m")).is_err());
    }

    #[test]
    fn a_provider_is_known_by_its_address() {
        let known = ["https://api.openai.com/v1", "http://10.0.0.1:8000/v1", "h:8000"].map(is_a_providers);
        assert_eq!(known, [true, false, false]);
    }
}
