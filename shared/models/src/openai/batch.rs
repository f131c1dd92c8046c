//! OpenAI's batches of chat completions: a file of requests is uploaded, a batch made of it, and its answers are files
//! again. Written from the public description of the API, and tried against a stand-in only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use domain::ids::BatchName;
use domain::{FailureCause, RetryAdvice, Sampling};
use reqwest::header::HeaderValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::OpenAiConfig;
use super::answer;
use super::api::{self, Api};
use super::errors;
use super::wire::ChatBody;
use crate::batch::api::{
    BatchApi, BatchBounds, BatchRemains, BatchSight, BatchedReply, BatchedRequest, EndedBatch, LOOK_TIME_MAX,
    NotCreated, RESULTS_TIME_MAX, UPLOAD_TIME_MAX, cancelled, expired, left_out, plain_id,
};
use crate::chat::{ChatRequest, ModelIdentity};
use crate::client::HttpClient;
use crate::deadline::CallClock;
use crate::error::{CallError, SetupError};
use crate::http::{self, unserialisable, unusable};
use crate::secret::scrub_with;

/// Bounds of a file of requests.
const BOUNDS: BatchBounds = BatchBounds { requests_max: 50_000, bytes_max: 200_000_000, frame_bytes: 100 };

/// The route that every request of a batch is for.
const ENDPOINT: &str = "/v1/chat/completions";

/// The only time that can be given to a batch.
const WINDOW: &str = "24h";

/// The key under which a batch carries the name that it got here.
const NAME_KEY: &str = "kgfleet_batch";

/// Batches in a page of their list, and pages that are looked at for one whose creation was cut off: it is among the
/// latest.
const PAGE_BATCHES: u32 = 100;
const PAGES_MAX: u32 = 10;

/// The statuses of batches that have ended.
const ENDED: [&str; 4] = ["completed", "expired", "cancelled", "failed"];

/// How long to wait where as many questions as an account may have are in batches.
const QUEUE_FULL_WAIT: Duration = Duration::from_secs(600);

/// A model of OpenAI that is asked in batches.
#[derive(Debug)]
pub(crate) struct OpenAiBatches {
    config: OpenAiConfig,
    api: Api,
}

impl OpenAiBatches {
    pub(crate) fn new(config: OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let api = Api::new(&config.endpoint, &config.model, config.key.clone(), http)?;
        Ok(Self { config: OpenAiConfig { stream: false, ..config }, api })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, query: Option<&str>) -> Result<T, CallError> {
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let route = self.api.reading(path, query);
        let response = self.api.send(&route, None, &clock).await.map_err(|rejected| rejected.error)?;
        api::read(&clock.wait(http::read_body(response)).await??, self.api.key())
    }

    /// Uploads the file of requests; its id.
    async fn upload(
        &self,
        name: &BatchName,
        requests: &[BatchedRequest],
        clock: &CallClock,
    ) -> Result<String, CallError> {
        let boundary = format!("kgfleet-{name}");
        let form = format!("multipart/form-data; boundary={boundary}");
        let form =
            HeaderValue::from_str(&form).map_err(|_| unusable("the name of a batch cannot be sent"))?;
        let route = self.api.route("files").of_type(form);
        let body = form_of(&boundary, name, &lines_of(requests));
        let response = self.api.send(&route, Some(body), clock).await.map_err(|rejected| rejected.error)?;
        let file: Created = api::read(&clock.wait(http::read_body(response)).await??, self.api.key())?;
        Ok(file.id)
    }

    /// Deletes a file, if it is there.
    async fn delete_file(&self, file: &str) -> Result<(), CallError> {
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let route = self.api.deleting(&format!("files/{}", plain_id(file)?));
        match self.api.send(&route, None, &clock).await {
            Ok(_) => Ok(()),
            Err(rejected) if rejected.error.status == Some(404) => Ok(()),
            Err(rejected) => Err(rejected.error),
        }
    }

    /// What came of a question, by its line in a file of answers.
    fn reply(&self, line: ResultLine) -> BatchedReply {
        let key = self.api.key();
        match (line.response, line.error) {
            (Some(LineResponse { status_code: 200..300, body }), _) => {
                let body = serde_json::to_vec(&body).map_err(unserialisable)?;
                answer::read_whole(&body, key).map_err(|rejected| rejected.error)
            }
            (Some(LineResponse { status_code, body }), _) => {
                Err(errors::classify(status_code, None, &scrub_with(key, &body.to_string())).error)
            }
            (None, Some(error)) => {
                let (code, message) = error.words();
                Err(match code.as_str() {
                    "batch_expired" => expired(),
                    "batch_cancelled" => cancelled(),
                    _ => unusable(&scrub_with(key, &format!("{code} {message}"))),
                })
            }
            (None, None) => Err(left_out()),
        }
    }

    /// Why a batch as a whole was refused, after it was created.
    fn refusal(&self, errors: Option<BatchErrors>) -> CallError {
        let first = errors.and_then(|errors| errors.data.into_iter().next()).unwrap_or_default();
        let (code, message) = first.words();
        let message = scrub_with(self.api.key(), &message).into_owned();
        if code == "token_limit_exceeded" {
            let retry = RetryAdvice::RateLimited { after: Some(QUEUE_FULL_WAIT) };
            return CallError::new(FailureCause::RateLimited, retry, message);
        }
        let body = json!({"error": {"code": code, "message": message}});
        errors::classify(400, None, &body.to_string()).error
    }
}

#[async_trait::async_trait]
impl BatchApi for OpenAiBatches {
    fn identity(&self) -> &ModelIdentity {
        self.api.identity()
    }

    fn bounds(&self) -> BatchBounds {
        BOUNDS
    }

    fn body(&self, request: &ChatRequest) -> Result<Vec<u8>, CallError> {
        let max_tokens = request.sampling.max_tokens.unwrap_or(Sampling::TOKENS_DEFAULT);
        // By the limit's newer name, which all models here know: a refusal would come hours later.
        let body = ChatBody::new(&self.config, request, &request.messages, max_tokens, true);
        body.to_bytes().map_err(unserialisable)
    }

    async fn create(&self, name: &BatchName, requests: &[BatchedRequest]) -> Result<String, NotCreated> {
        let clock = CallClock::whole(Instant::now(), UPLOAD_TIME_MAX);
        let uploaded = self.upload(name, requests, &clock).await;
        let input_file_id = uploaded.map_err(NotCreated::surely)?;
        let metadata = BTreeMap::from([(NAME_KEY, name.as_str())]);
        let question = NewBatch {
            input_file_id: &input_file_id,
            endpoint: ENDPOINT,
            completion_window: WINDOW,
            metadata,
        };
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let created = self.api.ask(&self.api.route("batches"), &question, &clock).await;
        let not_created = match created {
            Ok(Created { id }) => return Ok(id),
            Err(error) => NotCreated::of(error),
        };
        // Each attempt uploads a file of its own.
        if !not_created.may_exist
            && let Err(error) = self.delete_file(&input_file_id).await
        {
            tracing::warn!(batch = %name, file = %input_file_id, %error, "a file of questions is not deleted");
        }
        Err(not_created)
    }

    async fn find(&self, name: &BatchName) -> Result<Option<String>, CallError> {
        let mut query = format!("limit={PAGE_BATCHES}");
        for _ in 0..PAGES_MAX {
            let page: BatchPage = self.get("batches", Some(&query)).await?;
            let named = |batch: &&WireBatch| {
                batch.metadata.as_ref().is_some_and(|metadata| metadata[NAME_KEY] == name.as_str())
            };
            if let Some(found) = page.data.iter().find(named) {
                return Ok(Some(found.id.clone()));
            }
            let Some(last) = page.data.last().filter(|_| page.has_more) else { break };
            query = format!("limit={PAGE_BATCHES}&after={}", plain_id(&last.id)?);
        }
        Ok(None)
    }

    async fn look(&self, id: &str) -> Result<BatchSight, CallError> {
        let batch: WireBatch = self.get(&format!("batches/{}", plain_id(id)?), None).await?;
        let otherwise = match batch.status.as_str() {
            "completed" => left_out(),
            "expired" => expired(),
            "cancelled" => cancelled(),
            "failed" => self.refusal(batch.errors),
            _ => return Ok(BatchSight::UnderWay),
        };
        let results = [batch.output_file_id, batch.error_file_id].into_iter().flatten().collect();
        Ok(BatchSight::Ended(EndedBatch { results, otherwise }))
    }

    async fn read(
        &self,
        place: &str,
        wanted: &HashSet<String>,
    ) -> Result<HashMap<String, BatchedReply>, CallError> {
        let clock = CallClock::whole(Instant::now(), RESULTS_TIME_MAX);
        let route = self.api.reading(&format!("files/{}/content", plain_id(place)?), None);
        let response = self.api.send(&route, None, &clock).await.map_err(|rejected| rejected.error)?;
        let mut replies = HashMap::new();
        let each = |line: &[u8]| {
            // What is no line about a question is about none.
            if let Ok(line) = serde_json::from_slice::<ResultLine>(line)
                && wanted.contains(&line.custom_id)
            {
                replies.insert(line.custom_id.clone(), self.reply(line));
            }
        };
        clock.wait(http::read_lines(response, each)).await??;
        Ok(replies)
    }

    async fn cancel(&self, id: &str) -> Result<(), CallError> {
        let clock = CallClock::whole(Instant::now(), LOOK_TIME_MAX);
        let route = self.api.route(&format!("batches/{}/cancel", plain_id(id)?));
        self.api.send(&route, None, &clock).await.map(drop).map_err(|rejected| rejected.error)
    }

    /// A batch stays in the account's list, without its files.
    async fn discard(&self, id: &str) -> Result<BatchRemains, CallError> {
        let batch: WireBatch = self.get(&format!("batches/{}", plain_id(id)?), None).await?;
        if !ENDED.contains(&batch.status.as_str()) {
            return Ok(BatchRemains::UnderWay);
        }
        let mut failed = None;
        let files = [batch.output_file_id, batch.error_file_id, batch.input_file_id];
        for file in files.into_iter().flatten() {
            if let Err(error) = self.delete_file(&file).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(BatchRemains::Deleted), Err)
    }
}

/// The file of requests: a line of JSON for each. Ids are hexadecimal digits.
fn lines_of(requests: &[BatchedRequest]) -> Vec<u8> {
    let bytes = requests.iter().map(|request| request.id.len() + request.body.len() + BOUNDS.frame_bytes);
    let mut lines = Vec::with_capacity(bytes.sum());
    for BatchedRequest { id, body } in requests {
        let head = format!(r#"{{"custom_id":"{id}","method":"POST","url":"{ENDPOINT}","body":"#);
        lines.extend_from_slice(head.as_bytes());
        lines.extend_from_slice(body);
        lines.extend_from_slice(b"}\n");
    }
    lines
}

/// A form with a file, as browsers send it (RFC 7578).
fn form_of(boundary: &str, name: &BatchName, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}.jsonl\"\r\n\
         Content-Type: application/jsonl\r\n\r\n"
    );
    [head.as_bytes(), file, format!("\r\n--{boundary}--\r\n").as_bytes()].concat()
}

/// Body of `POST /v1/batches`.
#[derive(Serialize)]
struct NewBatch<'a> {
    input_file_id: &'a str,
    endpoint: &'a str,
    completion_window: &'a str,
    metadata: BTreeMap<&'a str, &'a str>,
}

/// A file or a batch that was made.
#[derive(Deserialize)]
struct Created {
    id: String,
}

/// A batch as the API describes it.
#[derive(Deserialize)]
struct WireBatch {
    id: String,
    #[serde(default)]
    status: String,
    input_file_id: Option<String>,
    output_file_id: Option<String>,
    error_file_id: Option<String>,
    errors: Option<BatchErrors>,
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct BatchPage {
    data: Vec<WireBatch>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
struct BatchErrors {
    #[serde(default)]
    data: Vec<LineError>,
}

/// A line of a file of answers.
#[derive(Deserialize)]
struct ResultLine {
    custom_id: String,
    response: Option<LineResponse>,
    error: Option<LineError>,
}

#[derive(Deserialize)]
struct LineResponse {
    status_code: u16,
    #[serde(default)]
    body: Value,
}

#[derive(Default, Deserialize)]
struct LineError {
    code: Option<String>,
    message: Option<String>,
}

impl LineError {
    /// Code and message, as far as there are any.
    fn words(self) -> (String, String) {
        (self.code.unwrap_or_default(), self.message.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::tests::request;

    fn batches() -> OpenAiBatches {
        let config = OpenAiConfig::new("http://127.0.0.1:1/v1", "tiny");
        OpenAiBatches::new(config, &HttpClient::new()).unwrap()
    }

    #[test]
    fn a_file_of_requests_has_a_line_for_each_that_fits_its_frame() {
        let body = batches().body(&request("a\nb")).unwrap();
        let asked = BatchedRequest { id: "0f".to_owned(), body: body.into() };
        let lines = lines_of(&[asked.clone(), asked.clone()]);
        let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() < asked.id.len() + asked.body.len() + BOUNDS.frame_bytes);
        let line: Value = serde_json::from_slice(lines[0]).unwrap();
        let body = json!({"model": "tiny", "messages": [{"role": "user", "content": "a\nb"}], "stream": false,
            "max_completion_tokens": 4096, "seed": 7});
        assert_eq!(
            line,
            json!({"custom_id": "0f", "method": "POST", "url": "/v1/chat/completions", "body": body})
        );
    }

    #[test]
    fn every_line_of_an_answer_is_understood() {
        use FailureCause::{Aborted, ContextExceeded, RateLimited, Server, Timeout};
        let reply = |line: Value| batches().reply(serde_json::from_value(line).unwrap());
        let message = json!({"role": "assistant", "content": "yes", "refusal": null});
        let body = json!({"id": "c", "object": "chat.completion", "model": "tiny-1", "system_fingerprint": "f",
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}});
        let answered = reply(json!({"id": "batch_req_1", "custom_id": "a", "error": null,
            "response": {"status_code": 200, "request_id": "r", "body": body}}));
        assert_eq!(answered.unwrap().answer.text, "yes");
        let refused = |status: u16, code: &str| {
            json!({"id": "batch_req_1", "custom_id": "a", "error": null, "response": {"status_code": status,
                "request_id": "r", "body": {"error": {"message": "no", "code": code}}}})
        };
        let failed = |code: &str| {
            json!({"id": "batch_req_1", "custom_id": "a", "response": null,
                "error": {"code": code, "message": "no"}})
        };
        for (line, cause, retries) in [
            (refused(400, "context_length_exceeded"), ContextExceeded, false),
            (refused(429, "rate_limit_exceeded"), RateLimited, true),
            (refused(500, "server_error"), Server, true),
            (failed("batch_expired"), Timeout, true),
            (failed("batch_cancelled"), Aborted, true),
            (failed("something_else"), Server, true),
            (json!({"custom_id": "a"}), Server, true),
        ] {
            let error = reply(line.clone()).unwrap_err();
            assert_eq!((error.cause, error.retry != RetryAdvice::No), (cause, retries), "{line}");
        }
    }

    #[test]
    fn a_batch_that_is_refused_as_a_whole_says_why() {
        let refusal = |code: &str| {
            let errors = json!({"object": "list", "data": [{"code": code, "message": "no", "line": 1}]});
            let error = batches().refusal(serde_json::from_value(errors).unwrap());
            (error.cause, error.retry)
        };
        let later = RetryAdvice::RateLimited { after: Some(QUEUE_FULL_WAIT) };
        assert_eq!(refusal("token_limit_exceeded"), (FailureCause::RateLimited, later));
        assert_eq!(refusal("model_not_found"), (FailureCause::ModelNotFound, RetryAdvice::No));
        assert_eq!(refusal("invalid_json_line"), (FailureCause::BadRequest, RetryAdvice::No));
        assert_eq!(batches().refusal(None).cause, FailureCause::BadRequest);
    }
}
