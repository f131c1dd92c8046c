//! OpenAI's embeddings API, as also served by vLLM and others.

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{FailureCause, RetryAdvice};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::OpenAiConfig;
use super::api::{Api, only};
use super::convert;
use crate::chat::{ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::embed::{EmbedReply, Embedding, length_within};
use crate::error::{CallError, SetupError};
use crate::http::{Route, unusable};

/// An embedder behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiEmbedder {
    config: OpenAiConfig,
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
    pub fn new(config: OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(&config, http)?;
        let length = config.spec.request.dimensions.map_or(0, |dimensions| dimensions as usize);
        Ok(Self { embeddings: api.route("embeddings"), api, config, length: AtomicUsize::new(length) })
    }

    /// The vector of a text of a request, in one attempt.
    ///
    /// # Errors
    /// Any reason why there is no answer, and replies without a vector.
    pub fn embed<'a>(
        &'a self,
        text: &'a str,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<EmbedReply, CallError>> {
        Box::pin(async move {
            length_within("the text", text)?;
            let spec = &self.config.spec;
            let limits = spec.time_limits;
            let clock =
                CallClock::of_model(Instant::now(), limits, &request.key.model, request.deadline, false);
            let question = Question {
                model: spec.requested(),
                input: [text],
                encoding_format: "float",
                dimensions: spec.request.dimensions,
                extra: &spec.request.extra_body,
            };
            let reply: WireReply = self.api.ask(&self.embeddings, &question, &clock).await?;
            let reply = reply.read()?;
            let reported_model = reply.reported_model.map(|name| self.api.scrub(name));
            self.api.check_answerer(reported_model.as_deref(), reply.usage, &clock).await?;
            let length = reply.embedding.numbers().len();
            match self.length.compare_exchange(0, length, Ordering::Relaxed, Ordering::Relaxed) {
                Err(known) if known != length => {
                    let message =
                        format!("the vectors have {length} numbers, not {known} as requested or before");
                    Err(CallError::new(FailureCause::Server, RetryAdvice::No, message).in_vain(reply.usage))
                }
                _ => Ok(EmbedReply { reported_model, ..reply }),
            }
        })
    }

    /// Identifies the model in records and messages.
    pub fn identity(&self) -> &ModelIdentity {
        &self.api.identity
    }
}

/// Body of `POST /v1/embeddings`. It does not ask for truncation, so that a too long text is an error.
#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: [&'a str; 1],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
    #[serde(flatten)]
    extra: &'a serde_json::Map<String, Value>,
}

/// Its answer.
#[derive(Deserialize)]
struct WireReply {
    model: Option<String>,
    data: Vec<Item>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    embedding: Vec<f32>,
}

impl WireReply {
    /// The vector of the only text.
    fn read(self) -> Result<EmbedReply, CallError> {
        let usage = self.usage.as_ref().map(convert::usage_of_inputs).unwrap_or_default();
        let numbers = only(self.data).map(|item| item.embedding);
        let vector = |numbers| Embedding::new(numbers).map_err(unusable);
        let embedding = numbers.and_then(vector).map_err(|error| error.in_vain(usage))?;
        Ok(EmbedReply { embedding, usage, reported_model: self.model })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::openai::api::read;

    fn parse(body: &Value) -> Result<EmbedReply, CallError> {
        read::<WireReply>(body.to_string().as_bytes(), None)?.read()
    }

    fn items(vectors: &[&[f64]]) -> Value {
        let data: Vec<_> = vectors
            .iter()
            .enumerate()
            .map(|(index, numbers)| json!({"index": index, "object": "embedding", "embedding": numbers}))
            .collect();
        json!({"object": "list", "data": data})
    }

    #[test]
    fn answers_that_are_no_vector_are_errors() {
        for (body, part) in [
            (items(&[]), "0 answers to 1 input"),
            (items(&[&[1.0], &[2.0]]), "2 answers to 1 input"),
            (items(&[&[1e39]]), "number out of range"),
            (items(&[&[0.0]]), "a vector of zeros"),
            (items(&[&[]]), "an empty vector"),
            (json!({"data": [{"index": 0, "embedding": [null]}]}), "cannot be parsed"),
            (json!({"data": [{"index": 0, "embedding": "AACAPw=="}]}), "cannot be parsed"),
            (json!({"choices": []}), "cannot be parsed"),
        ] {
            let error = parse(&body).unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::Transient), "{body}");
            assert!(error.message.contains(part), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn every_number_arrives(
            vector in prop::collection::vec(
                any::<f32>().prop_filter("finite", |number| number.is_finite() && *number != 0.0), 1..9,
            ),
        ) {
            let data = json!([{"index": 0, "embedding": vector}]);
            let reply = parse(&json!({"model": "m", "data": data, "usage": {"prompt_tokens": 5}})).unwrap();
            prop_assert_eq!(reply.embedding.numbers(), vector);
            prop_assert_eq!(reply.usage.prompt_tokens, Some(5));
            prop_assert_eq!(reply.usage.completion_tokens, None);
        }

        #[test]
        fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<WireReply>(&body, None).and_then(WireReply::read);
        }
    }
}
