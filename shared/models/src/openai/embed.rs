//! OpenAI's embeddings API, as also served by vLLM and others.

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{FailureCause, RetryAdvice};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ApiSettings;
use super::api::{Api, in_order};
use super::convert;
use super::said::WireUsage;
use super::wire::ServedModel;
use crate::chat::ModelIdentity;
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::embed::{EmbedModel, EmbedReply, EmbedRequest, Embedding};
use crate::error::{CallError, SetupError};
use crate::http::{Route, unusable};
use crate::secret::Secret;

/// Configuration of an embedder.
#[derive(Clone, Debug)]
pub struct EmbedConfig {
    /// Address of the API, such as `http://127.0.0.1:8000/v1`. Without a path, `/v1` is meant.
    pub endpoint: String,
    /// The model name to ask for.
    pub model: String,
    /// Sent as bearer token.
    pub key: Option<Secret>,
    /// Requested length of the vectors, for models that can shorten theirs. Default: the model's own length.
    pub dimensions: Option<u32>,
    /// Further fields of the request body, sent as they are.
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    pub settings: ApiSettings,
}

impl EmbedConfig {
    /// Defaults: no key, the model's own vector length.
    pub fn new(endpoint: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            model: model.into(),
            key: None,
            dimensions: None,
            extra_body: serde_json::Map::new(),
            settings: ApiSettings::default(),
        }
    }
}

/// An embedder behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiEmbedder {
    config: EmbedConfig,
    api: Api,
    embeddings: Route,
    /// The length of the vectors: the requested one, or that of the first answer; 0 while unknown.
    length: AtomicUsize,
}

impl OpenAiEmbedder {
    /// A connector that shares the connections of `http`.
    ///
    /// # Errors
    /// The endpoint is not an HTTP address, the key cannot be sent, or the HTTP client cannot be built.
    pub fn new(config: EmbedConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let key = config.key.clone();
        let api = Api::new(&config.endpoint, &config.model, key, &config.settings, http)?;
        let length = AtomicUsize::new(config.dimensions.map_or(0, |dimensions| dimensions as usize));
        Ok(Self { embeddings: api.route("embeddings"), api, config, length })
    }

    /// The models that the server lists.
    ///
    /// # Errors
    /// The server is unreachable, refuses, or sends something else.
    pub async fn probe(&self) -> Result<Vec<ServedModel>, CallError> {
        self.api.models().await
    }
}

#[async_trait::async_trait]
impl EmbedModel for OpenAiEmbedder {
    async fn embed(&self, request: EmbedRequest) -> Result<EmbedReply, CallError> {
        request.check()?;
        let limits = self.config.settings.time_limits;
        let clock = CallClock::of_model(Instant::now(), limits, &request.key.model, request.deadline, false);
        let question = Question {
            model: &self.config.model,
            input: &request.texts,
            encoding_format: "float",
            dimensions: self.config.dimensions,
            extra: &self.config.extra_body,
        };
        let reply: WireReply = self.api.ask(&self.embeddings, &question, &clock).await?;
        let reply = reply.read(request.texts.len())?;
        let reported_model = reply.reported_model.map(|name| self.api.scrub(name));
        let reply = EmbedReply { reported_model, ..reply };
        self.api.check_answerer(reply.reported_model.as_deref(), reply.usage, &clock).await?;
        let length = reply.embeddings.first().map_or(0, |first| first.numbers().len());
        match self.length.compare_exchange(0, length, Ordering::Relaxed, Ordering::Relaxed) {
            Err(known) if known != length => {
                let message =
                    format!("the vectors have {length} numbers, not {known} as requested or before");
                Err(CallError::new(FailureCause::Server, RetryAdvice::No, message).in_vain(reply.usage))
            }
            _ => Ok(reply),
        }
    }

    fn identity(&self) -> &ModelIdentity {
        self.api.identity()
    }
}

/// Body of `POST /v1/embeddings`. It does not ask for truncation, so that a too long text is an error.
#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
    #[serde(flatten)]
    extra: &'a serde_json::Map<String, serde_json::Value>,
}

/// Its answer.
#[derive(Deserialize)]
struct WireReply {
    model: Option<String>,
    data: Vec<Item>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl WireReply {
    /// The vectors of `count` texts.
    fn read(self, count: usize) -> Result<EmbedReply, CallError> {
        let usage = self.usage.as_ref().map(convert::usage_of_inputs).unwrap_or_default();
        let embeddings = vectors(self.data, count).map_err(|error| error.in_vain(usage))?;
        Ok(EmbedReply { embeddings, usage, reported_model: self.model })
    }
}

/// Of `count` texts, all of one length.
fn vectors(items: Vec<Item>, count: usize) -> Result<Vec<Embedding>, CallError> {
    let items = items.into_iter().map(|item| (item.index, item.embedding));
    let vectors = in_order(items, count)?.into_iter().enumerate().map(|(at, numbers)| {
        Embedding::new(numbers).map_err(|bad| unusable(&bad.to_string()).about(&format!("text {at}")))
    });
    let embeddings = vectors.collect::<Result<Vec<_>, _>>()?;
    let mut lengths = embeddings.iter().map(|embedding| embedding.numbers().len());
    let first = lengths.next().unwrap_or(0);
    if let Some(other) = lengths.find(|length| *length != first) {
        return Err(unusable(&format!("one answer has vectors of {first} and of {other} numbers")));
    }
    Ok(embeddings)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::openai::api::read;

    fn parse(body: &serde_json::Value, count: usize) -> Result<EmbedReply, CallError> {
        read::<WireReply>(body.to_string().as_bytes(), None)?.read(count)
    }

    fn items(vectors: &[&[f64]]) -> serde_json::Value {
        let data: Vec<_> = vectors
            .iter()
            .enumerate()
            .map(|(index, numbers)| json!({"index": index, "object": "embedding", "embedding": numbers}))
            .collect();
        json!({"object": "list", "data": data})
    }

    #[test]
    fn answers_that_are_no_vectors_of_one_length_are_errors() {
        for (body, count, part) in [
            (items(&[&[1.0]]), 2, "1 of 2 inputs"),
            (items(&[&[1.0], &[2.0]]), 1, "input 1, but there are 1"),
            (items(&[&[1.0], &[2.0, 3.0]]), 2, "1 and of 2 numbers"),
            (items(&[&[1.0], &[1e39]]), 2, "number out of range"),
            (items(&[&[0.0]]), 1, "text 0: a vector of zeros"),
            (items(&[&[]]), 1, "an empty vector"),
            (json!({"data": [{"index": 0, "embedding": [null]}]}), 1, "cannot be parsed"),
            (json!({"data": [{"index": 0, "embedding": "AACAPw=="}]}), 1, "cannot be parsed"),
            (json!({"data": [{"index": -1, "embedding": [1]}]}), 1, "cannot be parsed"),
            (json!({"choices": []}), 1, "cannot be parsed"),
        ] {
            let error = parse(&body, count).unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::Transient), "{body}");
            assert!(error.message.contains(part), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_number_arrives_where_it_belongs(
            vectors in (1..9_usize).prop_flat_map(|length| {
                let number = any::<f32>().prop_filter("finite", |number| number.is_finite() && *number != 0.0);
                prop::collection::vec(prop::collection::vec(number, length), 1..9)
            }),
            turn: prop::sample::Index,
        ) {
            let mut data: Vec<_> = vectors
                .iter()
                .enumerate()
                .map(|(index, numbers)| json!({"index": index, "embedding": numbers}))
                .collect();
            let turn = turn.index(data.len());
            data.rotate_left(turn);
            let reply = parse(&json!({"model": "m", "data": data, "usage": {"prompt_tokens": 5}}), vectors.len());
            let reply = reply.unwrap();
            let numbers: Vec<_> = reply.embeddings.iter().map(|found| found.numbers().to_vec()).collect();
            prop_assert_eq!(numbers, vectors);
            prop_assert_eq!(reply.usage.prompt_tokens, Some(5));
            prop_assert_eq!(reply.usage.completion_tokens, None);
        }

        #[test]
        fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), count in 0..4_usize) {
            let _ = read::<WireReply>(&body, None).and_then(|reply| reply.read(count));
        }
    }
}
