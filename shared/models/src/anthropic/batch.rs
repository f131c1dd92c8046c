//! Anthropic's Message Batches API: requests of the Messages API, many at once. Written from the public description of
//! the API, and tried against a stand-in only.

use std::collections::{HashMap, HashSet};

use domain::ids::BatchName;
use domain::{FailureCause, RetryAdvice};
use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{DIALECT, convert, errors};
use crate::batch::api::{
    BatchApi, BatchBounds, BatchRemains, BatchSight, BatchedReply, BatchedRequest, EndedBatch, LOOK_TIME_MAX,
    NotCreated, RESULTS_TIME_MAX, UPLOAD_TIME_MAX, cancelled, expired, left_out, plain_id,
};
use crate::chat::{ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::hosted::HostedConfig;
use crate::http::{self, Exchange, Route, unparsable, unserialisable};
use crate::secret::Secret;

/// Bounds of a batch.
const BOUNDS: BatchBounds = BatchBounds { requests_max: 100_000, bytes_max: 256_000_000, frame_bytes: 40 };

/// Below the address of the API.
const PATH: &str = "v1/messages/batches";

/// A model of Anthropic that is asked in batches.
#[derive(Debug)]
pub(crate) struct AnthropicBatches {
    model: String,
    key: Secret,
    identity: ModelIdentity,
    client: Client,
    base: Url,
    headers: HeaderMap,
}

impl AnthropicBatches {
    pub(crate) fn new(config: HostedConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let HostedConfig { endpoint, model, key } = config;
        let own = DIALECT.connector.own_endpoint().unwrap_or_default();
        let base = http::parse_endpoint(endpoint.as_deref().unwrap_or(own))?;
        let identity = ModelIdentity {
            connector: DIALECT.connector.as_str(),
            requested: model.clone(),
            endpoint: Some(base.as_str().trim_end_matches('/').to_owned()),
        };
        let (client, headers) = (http.for_url(&base)?, (DIALECT.headers)(&key)?);
        Ok(Self { model, key, identity, client, base, headers })
    }

    fn reading(&self, path: &str) -> Route {
        Route::get(self.client.clone(), http::join(&self.base, path), self.headers.clone())
    }

    fn posting(&self, path: &str) -> Route {
        Route::post(self.client.clone(), http::join(&self.base, path), self.headers.clone())
    }

    /// Sends a question about batches, and reads the answer.
    async fn ask<T: DeserializeOwned>(
        &self,
        route: &Route,
        body: Option<Vec<u8>>,
        clock: &CallClock,
    ) -> Result<T, CallError> {
        let exchange = http::exchange(route, body, clock).await?;
        if !exchange.is_success() {
            return Err(self.refusal(route, &exchange));
        }
        serde_json::from_slice(&exchange.body).map_err(|error| unparsable(&error, Some(&self.key)))
    }

    fn refusal(&self, route: &Route, exchange: &Exchange) -> CallError {
        let text = exchange.error_text(&self.key);
        errors::classify(exchange.status, exchange.retry_after, &text).asked_at(route.url())
    }

    /// What came of a question, by its line of the results.
    fn reply(&self, result: MessageResult) -> BatchedReply {
        match (result.kind.as_str(), result.message, result.error) {
            ("succeeded", Some(message), _) => {
                convert::reply(&serde_json::to_vec(&message).map_err(unserialisable)?, &self.key)
            }
            ("errored", _, Some(error)) => {
                // The error is the body of a refusal, or what is in one.
                let body = if error["error"].is_object() { error } else { json!({"error": error}) };
                let status = status_of(body["error"]["type"].as_str().unwrap_or_default());
                Err(errors::classify(status, None, &self.key.scrub(&body.to_string())))
            }
            ("canceled", ..) => Err(cancelled()),
            ("expired", ..) => Err(expired()),
            _ => Err(left_out()),
        }
    }
}

#[async_trait::async_trait]
impl BatchApi for AnthropicBatches {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn bounds(&self) -> BatchBounds {
        BOUNDS
    }

    fn body(&self, request: &ChatRequest) -> Result<Vec<u8>, CallError> {
        convert::request(&self.model, request)
    }

    async fn create(&self, _: &BatchName, requests: &[BatchedRequest]) -> Result<String, NotCreated> {
        let clock = CallClock::whole(Instant::now(), UPLOAD_TIME_MAX);
        let created = self.ask(&self.posting(PATH), Some(body_of(requests)), &clock).await;
        let MessageBatch { id, .. } = created.map_err(NotCreated::of)?;
        Ok(id)
    }

    async fn find(&self, _: &BatchName) -> Result<Option<String>, CallError> {
        let message = "batches have no names here, so that one whose creation was cut off cannot be found";
        Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
    }

    async fn look(&self, id: &str) -> Result<BatchSight, CallError> {
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let route = self.reading(&format!("{PATH}/{}", plain_id(id)?));
        let batch: MessageBatch = self.ask(&route, None, &clock).await?;
        if batch.processing_status != "ended" {
            return Ok(BatchSight::UnderWay);
        }
        // Its results have an address that follows from its id. The one in the answer is not asked: it would be sent
        // the key.
        Ok(BatchSight::Ended(EndedBatch { results: vec![id.to_owned()], otherwise: left_out() }))
    }

    async fn read(
        &self,
        place: &str,
        wanted: &HashSet<String>,
    ) -> Result<HashMap<String, BatchedReply>, CallError> {
        let clock = CallClock::whole(Instant::now(), RESULTS_TIME_MAX);
        let route = self.reading(&format!("{PATH}/{}/results", plain_id(place)?));
        let response = clock.wait(route.send(None)).await??;
        if !response.status().is_success() {
            return Err(self.refusal(&route, &http::read_whole(response, &clock).await?));
        }
        let mut replies = HashMap::new();
        let each = |line: &[u8]| {
            // What is no line about a question is about none.
            if let Ok(ResultOfMessage { custom_id, result }) = serde_json::from_slice(line)
                && wanted.contains(&custom_id)
            {
                replies.insert(custom_id, self.reply(result));
            }
        };
        clock.wait(http::read_lines(response, each)).await??;
        Ok(replies)
    }

    async fn cancel(&self, id: &str) -> Result<(), CallError> {
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let route = self.posting(&format!("{PATH}/{}/cancel", plain_id(id)?));
        self.ask::<MessageBatch>(&route, None, &clock).await.map(drop)
    }

    /// Its questions and answers go with it.
    async fn discard(&self, id: &str) -> Result<BatchRemains, CallError> {
        if matches!(self.look(id).await?, BatchSight::UnderWay) {
            return Ok(BatchRemains::UnderWay);
        }
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let url = http::join(&self.base, &format!("{PATH}/{}", plain_id(id)?));
        let route = Route::delete(self.client.clone(), url, self.headers.clone());
        let exchange = http::exchange(&route, None, &clock).await?;
        if exchange.is_success() || exchange.status == 404 {
            return Ok(BatchRemains::Deleted);
        }
        Err(self.refusal(&route, &exchange))
    }
}

/// Body of `POST /v1/messages/batches`. Ids are hexadecimal digits.
fn body_of(requests: &[BatchedRequest]) -> Vec<u8> {
    let bytes = requests.iter().map(|request| request.id.len() + request.body.len() + BOUNDS.frame_bytes);
    let mut body = Vec::with_capacity(bytes.sum::<usize>() + BOUNDS.frame_bytes);
    body.extend_from_slice(br#"{"requests":["#);
    for (place, BatchedRequest { id, body: params }) in requests.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        body.extend_from_slice(format!(r#"{comma}{{"custom_id":"{id}","params":"#).as_bytes());
        body.extend_from_slice(params);
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    body
}

/// The status with which an error of this type is answered to one who asks at once.
fn status_of(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" | "invalid_request" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

/// A batch as the API describes it.
#[derive(Deserialize)]
struct MessageBatch {
    id: String,
    #[serde(default)]
    processing_status: String,
}

/// A line of the results.
#[derive(Deserialize)]
struct ResultOfMessage {
    custom_id: String,
    result: MessageResult,
}

#[derive(Deserialize)]
struct MessageResult {
    #[serde(rename = "type")]
    kind: String,
    message: Option<Value>,
    error: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches() -> AnthropicBatches {
        let config = HostedConfig {
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            model: "claude-x".to_owned(),
            key: Secret::new("sk-0123456789"),
        };
        AnthropicBatches::new(config, &HttpClient::new()).unwrap()
    }

    #[test]
    fn a_batch_holds_its_requests_as_they_are_and_fits_its_frame() {
        let asked =
            |id: &str| BatchedRequest { id: id.to_owned(), body: br#"{"max_tokens":1}"#.as_slice().into() };
        let body = body_of(&[asked("0a"), asked("0b")]);
        let request = |id: &str| json!({"custom_id": id, "params": {"max_tokens": 1}});
        let read: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(read, json!({"requests": [request("0a"), request("0b")]}));
        let one = asked("0a");
        assert!(body.len() < 2 * (one.id.len() + one.body.len() + BOUNDS.frame_bytes));
    }

    #[test]
    fn every_result_is_understood() {
        use FailureCause::{Aborted, BadRequest, Overloaded, Server, Timeout};
        let reply = |result: Value| batches().reply(serde_json::from_value(result).unwrap());
        let message = json!({"id": "msg", "type": "message", "role": "assistant", "model": "claude-x-1",
            "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 1}});
        let answered = reply(json!({"type": "succeeded", "message": message}));
        assert_eq!(answered.unwrap().answer.text, "yes");
        let errored = |kind: &str| {
            let error = json!({"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "r"});
            json!({"type": "errored", "error": error})
        };
        for (result, cause, retries) in [
            (errored("invalid_request_error"), BadRequest, false),
            (errored("overloaded_error"), Overloaded, true),
            (errored("api_error"), Server, true),
            (
                json!({"type": "errored", "error": {"type": "invalid_request", "message": "no"}}),
                BadRequest,
                false,
            ),
            (json!({"type": "canceled"}), Aborted, true),
            (json!({"type": "expired"}), Timeout, true),
            (json!({"type": "something else"}), Server, true),
        ] {
            let error = reply(result.clone()).unwrap_err();
            assert_eq!((error.cause, error.retry != RetryAdvice::No), (cause, retries), "{result}");
        }
    }
}
