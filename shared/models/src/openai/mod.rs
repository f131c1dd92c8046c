//! Any server with OpenAI's API: vLLM first, also OpenAI, llama.cpp and many others. This module is the chat
//! connector; [`embed`] requests vectors and [`classify`] classes, by vLLM's own route.
//!
//! One call is one attempt, with one exception: a request refused for its form is corrected and sent again at once,
//! because nothing was generated. What is corrected is a [`Remedy`]; each is learnt once per connector
//! ([`adapted`]), said once, and noted in records. What is seen of which server is in the tables of [`quirks`](crate::quirks).

mod adapted;
mod answer;
mod api;
mod classify;
mod context;
mod convert;
mod embed;
mod join;
mod joined;
mod names;
mod odd_numbers;
mod predict;
mod said;
mod stream;
mod wire;

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use domain::model_name::is_listed_as;
use domain::{Connector, FailureCause, Message, ModelSpec, RetryAdvice};
use tokio::time::Instant;

use crate::chat::{ChatModel, ChatReply, ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, Route};
use crate::progress::CallStage;
use crate::quirks::Remedy;
use crate::refusals::{self, Rejected};
use crate::secret::Secret;
use crate::stops;
pub use classify::VllmClassifier;
pub use embed::OpenAiEmbedder;
pub use predict::TeiClassifier;
#[cfg(feature = "test-support")]
pub use stream::read_as_events;
pub use wire::ServedModel;

pub use adapted::Learnt;
use adapted::{Adapted, RequestForm};
use answer::Understanding;
use api::Api;

use wire::ChatBody;

/// A model, and how it is reached at an OpenAI-compatible server. Embedders and classifiers need a part of it.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// Its configuration, but for its address and its key, which are told here.
    pub spec: ModelSpec,
    /// Address of the API, such as `http://127.0.0.1:8000/v1`; see [`http::api_base`] for other spellings.
    pub endpoint: String,
    /// Sent as bearer token.
    pub key: Option<Secret>,
    /// The model's context in tokens; learnt from the server if it reports it (see [`OpenAiCompatible::probe`]).
    pub context_tokens: Option<u32>,
    /// What was learnt of the server, by whatever connector of this model asked it.
    pub learnt: Learnt,
}

impl OpenAiConfig {
    /// Defaults: streaming, with seed, without key.
    pub fn new(endpoint: impl Into<String>, model: impl Into<String>) -> Self {
        let spec = ModelSpec::new(model, Connector::OpenaiCompatible);
        let (endpoint, learnt) = (endpoint.into(), Learnt::default());
        Self { spec, endpoint, key: None, context_tokens: None, learnt }
    }

    /// The seed that is meant to be sent with a request.
    fn seed(&self, request: &ChatRequest) -> Option<u64> {
        request.seed.filter(|_| self.spec.send_seed.unwrap_or(true))
    }
}

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiCompatible {
    config: OpenAiConfig,
    api: Api,
    chat: Route,
    tokenize: Route,
}

/// How a request was sent.
struct Sent<'a> {
    request: &'a ChatRequest,
    /// The token limit that is meant, what the model can generate of it, and what is sent.
    meant: u32,
    wanted: u32,
    max_tokens: u32,
    form: RequestForm,
}

impl Sent<'_> {
    /// Whether its seed has more bits than any server takes.
    fn has_wide_seed(&self, config: &OpenAiConfig) -> bool {
        let seed = config.seed(self.request).and_then(|seed| self.form.fields.seed(seed));
        seed.is_some_and(|seed| i32::try_from(seed).is_err())
    }

    /// How it differs from the request that was meant, for the record.
    fn changes(&self, config: &OpenAiConfig) -> Vec<String> {
        let ChatRequest { sampling, messages, .. } = self.request;
        let (seed, streams) = (config.seed(self.request), config.spec.streams());
        let is_changed = |part: &str| match part {
            "seed" => seed.is_some_and(|seed| self.form.fields.seed(seed) != Some(seed)),
            "stream_options" => streams && !self.form.fields.lacks("stream"),
            "stream" => streams,
            "temperature" => sampling.temperature.is_some(),
            "top_p" => sampling.top_p.is_some(),
            "messages" => convert::needs_folding(messages),
            "fewer" => self.max_tokens < self.meant,
            _ => true,
        };
        self.form.words(is_changed).into_iter().map(str::to_owned).collect()
    }
}

/// Maximum number of corrections of one request: each kind, and each step with a field, once.
const CORRECTIONS_MAX: u32 = 10;

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
        let api = Api::new(&config, http)?;
        if let Some(tokens) = config.context_tokens {
            config.learnt.0.context_tokens.store(tokens, Ordering::Relaxed);
        }
        Ok(Self { chat: api.route("chat/completions"), tokenize: api.route_beside("tokenize"), api, config })
    }

    /// The models that the server lists. Also learns the context length of this model.
    ///
    /// # Errors
    /// The server is unreachable, refuses, or sends something else.
    pub async fn probe(&self) -> Result<Vec<ServedModel>, CallError> {
        let served = self.api.models().await?;
        if let Some(model) = named(&served, self.config.spec.requested())
            && let Some(context) = model.max_model_len
        {
            self.learnt().context_tokens.store(context, Ordering::Relaxed);
        }
        Ok(served)
    }

    /// The model's context in tokens, once known.
    pub fn context_tokens(&self) -> Option<u32> {
        Some(self.learnt().context_tokens.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0)
    }

    fn learnt(&self) -> &Adapted {
        &self.config.learnt.0
    }

    /// Passes on an answer of the requested model.
    async fn of_asked_model(
        &self,
        reply: ChatReply,
        sent: &Sent<'_>,
        clock: &CallClock,
    ) -> Result<ChatReply, CallError> {
        self.api.check_answerer(reply.reported_model.as_deref(), reply.answer.usage, clock).await?;
        Ok(ChatReply { adapted: sent.changes(&self.config), ..reply })
    }

    /// Learns how the server wants a request that it refused. Returns the token limit to send now; `None` if there is no remedy.
    async fn learn(
        &self,
        rejected: &Rejected,
        sent: &Sent<'_>,
        clock: &CallClock,
    ) -> Result<Option<u32>, CallError> {
        let (request, wanted, max_tokens) = (sent.request, sent.wanted, sent.max_tokens);
        let learnt = self.learnt();
        let is_news = match rejected.remedy {
            Some(Remedy::FoldRoles) if convert::needs_folding(&request.messages) && !sent.form.fold_roles => {
                !learnt.fold_roles.swap(true, Ordering::Relaxed)
            }
            Some(Remedy::CompletionTokens) if !sent.form.completion_tokens => {
                !learnt.completion_tokens.swap(true, Ordering::Relaxed)
            }
            Some(Remedy::Field { field, steps }) => match learnt.refused(field, steps, &sent.form.fields) {
                Some(is_news) => is_news,
                None => return Ok(None),
            },
            Some(Remedy::Mute) if sent.has_wide_seed(&self.config) && learnt.is_mute() => {
                let (field, steps) = Adapted::NARROW_SEED;
                match learnt.refused(field, steps, &sent.form.fields) {
                    Some(is_news) => is_news,
                    None => return Ok(None),
                }
            }
            Some(Remedy::AtMost(most)) if most < max_tokens => {
                let is_news = learnt.most_tokens.swap(most, Ordering::Relaxed) != most;
                self.tell(rejected, is_news);
                return Ok(Some(most));
            }
            Some(Remedy::FewerTokens { context, prompt }) => {
                learnt.context_tokens.store(context, Ordering::Relaxed);
                let fitted = match prompt {
                    Some(prompt) => context::room(wanted, context, prompt).unwrap_or(max_tokens),
                    None => {
                        let guess = context::likely_tokens(&request.messages);
                        let room = context::room(wanted, context, guess).unwrap_or(max_tokens);
                        self.fit(request, wanted, room, clock).await?
                    }
                };
                return Ok((fitted < max_tokens).then_some(fitted));
            }
            _ => return Ok(None),
        };
        self.tell(rejected, is_news);
        Ok(Some(max_tokens))
    }

    /// Says once what requests are like from now on.
    fn tell(&self, rejected: &Rejected, is_news: bool) {
        if is_news {
            let (model, requests) =
                (self.config.spec.requested(), self.learnt().form().words(|_| true).join(", "));
            tracing::warn!(model, requests, because = %rejected.error, "the server refuses requests as they were; they are changed");
        }
    }

    /// What the model can generate of so many tokens.
    fn possible(&self, meant: u32) -> u32 {
        match self.learnt().most_tokens.load(Ordering::Relaxed) {
            0 => meant,
            most => meant.min(most),
        }
    }

    /// The token limit to send: `wanted`, or what the context leaves of it. This is free unless the prompt comes near
    /// the limit; then the server is asked to count. If it cannot, `unknown` is sent, and the server's refusal
    /// reveals the numbers. A limit that follows the context gives way to a prompt of up to half of it without a count.
    async fn fit(
        &self,
        request: &ChatRequest,
        wanted: u32,
        unknown: u32,
        clock: &CallClock,
    ) -> Result<u32, CallError> {
        let Some(context) = self.context_tokens() else { return Ok(unknown) };
        let most = context::most_tokens(&request.messages);
        let (certain, is_default) = (context.saturating_sub(most), request.sampling.max_tokens.is_none());
        if certain >= wanted || (is_default && certain >= context / 2) {
            return Ok(wanted.min(certain));
        }
        let Some(prompt) = self.count_tokens(&request.messages, clock).await else {
            let likely = context::likely_tokens(&request.messages);
            let prompt = if is_default && likely < context { likely } else { 1 };
            return Ok(unknown.min(context.saturating_sub(prompt)).max(1));
        };
        context::room(wanted, context, prompt).ok_or_else(|| {
            let message = format!("the prompt has {prompt} tokens, the model's context {context}");
            CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, message)
        })
    }

    /// Has the server count the prompt's tokens, template included; `None` if it cannot.
    async fn count_tokens(&self, messages: &[Message], clock: &CallClock) -> Option<u32> {
        if self.learnt().no_tokenize.load(Ordering::Relaxed) {
            return None;
        }
        let model = self.config.spec.requested();
        let body = wire::TokenizeRequest { model, messages: &self.fold(messages) };
        let response = clock.wait(self.tokenize.send(serde_json::to_vec(&body).ok())).await.ok()?.ok()?;
        if matches!(response.status().as_u16(), 404 | 405) {
            self.learnt().no_tokenize.store(true, Ordering::Relaxed);
        }
        if !response.status().is_success() {
            return None;
        }
        let body = clock.wait(http::read_body(response)).await.ok()?.ok()?;
        serde_json::from_slice::<wire::TokenizeReply>(&body).ok().map(|reply| reply.count)
    }

    fn fold<'a>(&self, messages: &'a [Message]) -> Cow<'a, [Message]> {
        if self.learnt().fold_roles.load(Ordering::Relaxed) {
            convert::folded(messages)
        } else {
            Cow::Borrowed(messages)
        }
    }

    /// Sends once.
    async fn attempt(&self, sent: &Sent<'_>, clock: CallClock) -> Result<ChatReply, Rejected> {
        let request = sent.request;
        let messages = if sent.form.fold_roles {
            convert::folded(&request.messages)
        } else {
            Cow::Borrowed(&*request.messages)
        };
        let body = ChatBody::new(&self.config, request, &messages, sent.max_tokens, &sent.form);
        let body = body.to_bytes().map_err(http::unserialisable)?;
        let response = refusals::send(&self.chat, Some(body), &clock, self.api.key()).await?;
        request.progress.met(CallStage::Answered);
        let said = Understanding { key: self.api.key(), reasoning: self.config.spec.reasoning.as_ref() };
        stream::read(response, clock, &said, &request.progress).await
    }
}

#[async_trait::async_trait]
impl ChatModel for OpenAiCompatible {
    /// Sends the request, correcting it as the server demands.
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let now = Instant::now();
        let limits = self.config.spec.time_limits;
        let streams = self.config.spec.streams() && !self.learnt().form().fields.lacks("stream");
        let clock = CallClock::of_model(now, limits, &request.key.model, request.deadline, streams);
        let meant = request.sampling.tokens(self.context_tokens());
        let wanted = self.possible(meant);
        let mut max_tokens = self.fit(&request, wanted, wanted, &clock).await?;
        for correction in 0..=CORRECTIONS_MAX {
            let sent = Sent { request: &request, meant, wanted, max_tokens, form: self.learnt().form() };
            let rejected = match self.attempt(&sent, clock.clone()).await {
                Ok(reply) => {
                    self.learnt().has_answered.store(true, Ordering::Relaxed);
                    let reply = reply.limited(&request.sampling, sent.max_tokens);
                    return self.of_asked_model(reply, &sent, &clock).await;
                }
                Err(Rejected { remedy: Some(Remedy::Withheld), .. }) => {
                    let withheld = ChatReply::said(stops::withheld(), None, None, None);
                    return self.of_asked_model(withheld, &sent, &clock).await;
                }
                Err(rejected) => rejected,
            };
            match self.learn(&rejected, &sent, &clock).await? {
                Some(tokens) if correction < CORRECTIONS_MAX => max_tokens = tokens,
                _ => return Err(rejected.error),
            }
            tracing::debug!(model = self.config.spec.requested(), error = %rejected.error, "request corrected");
        }
        // The last correction has returned.
        Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, "every form of the request is refused"))
    }

    fn identity(&self) -> &ModelIdentity {
        &self.api.identity
    }
}

/// The model of a list that is asked for by this name: the one that is called so, or else one that is spelled in another way.
pub fn named<'a>(served: &'a [ServedModel], asked: &str) -> Option<&'a ServedModel> {
    let exact = served.iter().find(|model| model.id == asked);
    exact.or_else(|| served.iter().find(|model| is_listed_as(&model.id, asked)))
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
}
