//! Hosted providers with an API of their own. One client serves all; what differs between them is a
//! [`ProviderDialect`].

use domain::{Answer, Connector, FailureCause, FinishReason, ModelSpec, RetryAdvice, Role, Usage};
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

use crate::chat::{
    ANSWER_BYTES_MAX, ANSWER_TOO_LARGE, ChatModel, ChatReply, ChatRequest, ModelIdentity, cut_text,
};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, Route};
use crate::quirks::Remedy;
use crate::reasoning;
use crate::refusals::{self, Rejected};
use crate::secret::Secret;
use crate::{anthropic, gemini, stops};

/// What differs between the APIs of hosted providers. A further provider of this kind is a further value.
#[derive(Debug)]
pub(crate) struct ProviderDialect {
    pub connector: Connector,
    /// The provider in messages.
    pub name: &'static str,
    pub headers: fn(&Secret) -> Result<HeaderMap, SetupError>,
    /// Path of the route that answers for a model.
    pub path: fn(&str) -> String,
    /// Sampling parameters that the API lacks.
    pub lacks: &'static [&'static str],
    /// The body of a request for a model; what is null or an empty list in it is left out.
    pub request: fn(&str, &ChatRequest) -> Value,
    /// Reads the body of a success; why it is no answer, and what it took.
    pub reply: fn(&Value) -> Result<HostedReply, (String, Usage)>,
}

/// What a provider has answered.
pub(crate) struct HostedReply {
    pub text: String,
    pub thoughts: String,
    pub finish_reason: Option<FinishReason>,
    pub usage: Usage,
    pub model: Option<String>,
}

/// A hosted model. Answers are not streamed.
#[derive(Debug)]
pub struct Hosted {
    dialect: &'static ProviderDialect,
    spec: ModelSpec,
    key: Secret,
    identity: ModelIdentity,
    route: Route,
}

impl Hosted {
    /// A model of Anthropic's Messages API, which has no seed, for an account with this key. Shares the connections of `http`.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn anthropic(spec: ModelSpec, key: Secret, http: &HttpClient) -> Result<Self, SetupError> {
        Self::new(&anthropic::DIALECT, spec, key, http)
    }

    /// A model of Google's Gemini API, whose name may have `models/` before it. Shares the connections of `http`.
    ///
    /// # Errors
    /// As [`Hosted::anthropic`].
    pub fn gemini(spec: ModelSpec, key: Secret, http: &HttpClient) -> Result<Self, SetupError> {
        Self::new(&gemini::DIALECT, spec, key, http)
    }

    fn new(
        dialect: &'static ProviderDialect,
        spec: ModelSpec,
        key: Secret,
        http: &HttpClient,
    ) -> Result<Self, SetupError> {
        let own = dialect.connector.own_endpoint().unwrap_or_default();
        let base = http::parse_endpoint(spec.endpoint.as_deref().unwrap_or(own))?;
        let identity = ModelIdentity {
            connector: dialect.connector.as_str(),
            requested: spec.requested().to_owned(),
            endpoint: Some(base.as_str().trim_end_matches('/').to_owned()),
        };
        let url = http::join(&base, &(dialect.path)(spec.requested()));
        let route = Route::post(http.for_url(&base)?, url, (dialect.headers)(&key)?);
        Ok(Self { dialect, spec, key, identity, route })
    }

    /// The body of a request. One that sets a field that the provider lacks is refused: dropping it silently would measure
    /// something other than the configuration says.
    fn body(&self, request: &ChatRequest) -> Result<Vec<u8>, CallError> {
        let set = serde_json::to_value(&request.sampling).map_err(http::unserialisable)?;
        if let Some(field) = self.dialect.lacks.iter().find(|field| set.get(field).is_some()) {
            let provider = self.dialect.name;
            let message = format!(
                "{provider}'s API has no sampling parameter {field}; remove it from the configuration"
            );
            return Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message));
        }
        let mut body = (self.dialect.request)(self.spec.requested(), request);
        leave_out_what_is_not_set(&mut body);
        serde_json::to_vec(&body).map_err(http::unserialisable)
    }

    /// Reads the body of a success.
    fn read(&self, body: &[u8]) -> Result<ChatReply, CallError> {
        let key = Some(&self.key);
        let body: Value = serde_json::from_slice(body).map_err(|error| http::unparsable(&error, key))?;
        let reply = (self.dialect.reply)(&body).map_err(|(why, usage)| {
            http::said(FailureCause::Server, RetryAdvice::Transient, &why, key).in_vain(usage)
        });
        let HostedReply { mut text, mut thoughts, mut finish_reason, usage, model } = reply?;
        cut_text(&mut thoughts, ANSWER_BYTES_MAX);
        if cut_text(&mut text, ANSWER_BYTES_MAX) {
            finish_reason = Some(FinishReason::Other(ANSWER_TOO_LARGE.to_owned()));
        }
        let (text, reasoning) = reasoning::split(text, Some(thoughts), None);
        let answer = Answer { text, reasoning, finish_reason, usage, oddities: Vec::new() };
        Ok(ChatReply::said(answer, model, None, key))
    }
}

#[async_trait::async_trait]
impl ChatModel for Hosted {
    async fn complete(&self, mut request: ChatRequest) -> Result<ChatReply, CallError> {
        request.seed = request.seed.filter(|_| self.spec.send_seed.unwrap_or(true));
        let body = self.body(&request)?;
        let (now, limits) = (Instant::now(), self.spec.time_limits);
        let clock = CallClock::of_model(now, limits, &request.key.model, request.deadline, false);
        let response = match refusals::send(&self.route, Some(body), &clock, Some(&self.key)).await {
            Ok(response) => response,
            Err(Rejected { remedy: Some(Remedy::Withheld), .. }) => {
                return Ok(ChatReply::said(stops::withheld(), None, None, None));
            }
            Err(rejected) => return Err(rejected.error),
        };
        let reply = self.read(&clock.wait(http::read_body(response)).await??)?;
        Ok(reply.limited(&request.sampling, request.sampling.tokens(None)))
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

/// The instructions of a request, for APIs without a system role.
pub(crate) fn instructions(request: &ChatRequest) -> Option<String> {
    let system = request.messages.iter().filter(|message| message.role == Role::System);
    let system: Vec<&str> = system.map(|message| message.content.as_str()).collect();
    (!system.is_empty()).then(|| system.join("\n\n"))
}

/// A text of an answer; `None` if it lacks.
pub(crate) fn word(of: &Value, name: &str) -> Option<String> {
    of.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Removes fields that are null or empty lists, at any depth.
fn leave_out_what_is_not_set(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields
                .retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
            fields.values_mut().for_each(leave_out_what_is_not_set);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_what_is_not_set),
        _ => {}
    }
}
