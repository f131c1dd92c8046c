//! A coordinator on the other side of a network, for people and tools: a [`Control`] over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, ModelNeed, Submission,
    WorkerView,
};
use domain::exchange::Reply;
use domain::pools::{PoolStates, ServerUsage};
use domain::text::{hex, with_causes};
use domain::{ErrorCode, FailureCause, RunId, ServiceError, WorkerId};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::io::StreamReader;

use super::connect::{ClientConfig, checked, invalid};
use super::coordinators::{Coordinators, InUse};
use crate::api::problem::{self, Problem};
use crate::api::{BASE, Count, ExportLine, RequeueBody, RetryBody, SubmissionBody};
use crate::limits::{
    CALL_TIMEOUT, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, LONG_CALL_TIMEOUT, MESSAGE_BYTES, NAMING_BYTES,
    PACK_BYTES, STREAM_SILENCE,
};
use crate::server::AUTHORIZATION;
use crate::status::wrong_scheme;

/// One or more coordinators of the same queue, of which one is asked until it fails; the next call then goes to the next one. A
/// call that reaches nobody goes on to the next one at once.
#[derive(Clone)]
pub struct ApiClient {
    /// The coordinators, as named in errors.
    peer: Arc<str>,
    /// Where they are.
    places: Arc<[Url]>,
    coordinators: Arc<Coordinators<reqwest::Client>>,
}

/// A call before it is sent.
struct Call {
    method: Method,
    /// Under [`BASE`].
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    /// Its kind and its bytes.
    body: Option<(&'static str, Bytes)>,
    /// How long its answer may take.
    patience: Duration,
}

impl Call {
    fn new(method: Method, path: &[&str]) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { method, path, query: Vec::new(), body: None, patience: CALL_TIMEOUT }
    }

    fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path)
    }

    fn post(path: &[&str]) -> Self {
        Self::new(Method::POST, path)
    }

    /// For a call that plans or rebuilds a run, or reads a whole log.
    fn long(self) -> Self {
        Self { patience: LONG_CALL_TIMEOUT, ..self }
    }

    fn query(mut self, name: &'static str, values: impl IntoIterator<Item = String>) -> Self {
        self.query.extend(values.into_iter().map(|value| (name, value)));
        self
    }

    fn json(self, body: &impl Serialize) -> Result<Self, ServiceError> {
        let text = serde_json::to_vec(body).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { body: Some(("application/json", text.into())), ..self })
    }
}

impl ApiClient {
    /// A client that connects when it is first used.
    ///
    /// # Errors
    /// [`ErrorCode::Invalid`]: an address, the token or the certificates are invalid.
    pub fn new(config: &ClientConfig) -> Result<Self, ServiceError> {
        let places = config.addresses.iter().map(|address| {
            checked(config, address)?;
            let url = Url::parse(address).ok().filter(Url::has_host);
            url.ok_or_else(|| invalid(format!("`{address}` is not an address of a coordinator")))
        });
        let places = places.collect::<Result<_, _>>()?;
        let peer = format!("the coordinator at {}", config.addresses.join(" or ")).into();
        let coordinators = Arc::new(Coordinators::new(config, http)?);
        Ok(Self { peer, places, coordinators })
    }

    /// A sealed pack by its hash.
    ///
    /// # Errors
    /// There is none, or the caller may not read it.
    pub async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        let answer = self.send(Call::get(&["packs", hash]).long()).await?;
        Ok(self.whole(answer, PACK_BYTES as usize, LONG_CALL_TIMEOUT).await?.to_vec().into())
    }

    /// Sends a call; the answer is a success.
    async fn send(&self, call: Call) -> Result<Response, ServiceError> {
        let (mut unreached, mut is_renewed) = (0, false);
        loop {
            let InUse { lines, authorization, turn, credentials, has_certificates } =
                self.coordinators.in_use();
            let request = self.request(&call, &lines, authorization, turn)?;
            let sent = timeout(call.patience, request.send()).await;
            let answer = match sent {
                Err(_) => {
                    self.coordinators.leave(turn);
                    return Err(self.silent(call.patience));
                }
                Ok(Err(error)) => {
                    let may_renew = error.is_connect() && has_certificates && !is_renewed;
                    let is_new = may_renew && self.coordinators.renew(credentials).await;
                    is_renewed |= is_new;
                    self.coordinators.leave(turn);
                    unreached += 1;
                    // Nothing was sent, so it may be sent to another one.
                    if is_new || error.is_connect() && unreached < self.places.len() {
                        continue;
                    }
                    return Err(self.broken(&error.without_url()));
                }
                Ok(Ok(answer)) => answer,
            };
            let status = answer.status();
            if status.is_success() {
                return Ok(answer);
            }
            if status == StatusCode::UNAUTHORIZED && !is_renewed && self.coordinators.renew(credentials).await
            {
                is_renewed = true;
                continue;
            }
            if status == StatusCode::SERVICE_UNAVAILABLE {
                // One that waits for another coordinator has done nothing.
                self.coordinators.leave(turn);
                unreached += 1;
                if unreached < self.places.len() {
                    continue;
                }
            }
            let body = self.whole(answer, NAMING_BYTES, CALL_TIMEOUT).await.unwrap_or_default();
            return Err(problem::read(status, &body, &self.peer));
        }
    }

    /// The request of a call to the coordinator in use.
    fn request(
        &self,
        call: &Call,
        http: &reqwest::Client,
        authorization: Option<HeaderValue>,
        turn: usize,
    ) -> Result<RequestBuilder, ServiceError> {
        let mut url = self.places[turn % self.places.len()].clone();
        let base = BASE.trim_start_matches('/').split('/');
        url.path_segments_mut()
            .map_err(|()| invalid(format!("{} has no paths", self.peer)))?
            .pop_if_empty()
            .extend(base)
            .extend(&call.path);
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = http.request(call.method.clone(), url);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some((kind, bytes)) = &call.body {
            request = request.header(CONTENT_TYPE, *kind).body(Body::from(bytes.clone()));
        }
        Ok(request)
    }

    async fn answer<T: DeserializeOwned>(&self, call: Call) -> Result<T, ServiceError> {
        let patience = call.patience;
        let answer = self.send(call).await?;
        let body = self.whole(answer, MESSAGE_BYTES, patience).await?;
        serde_json::from_slice(&body).map_err(|error| self.foreign(&error.to_string()))
    }

    /// The body of an answer, of at most so many bytes.
    async fn whole(&self, answer: Response, limit: usize, patience: Duration) -> Result<Bytes, ServiceError> {
        let body = axum::http::Response::<Body>::from(answer).into_body();
        match timeout(patience, Limited::new(body, limit).collect()).await {
            Err(_) => Err(self.silent(patience)),
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(self.foreign(&format!("it has more than {limit} bytes")))
            }
            Ok(Err(error)) => Err(self.broken(&*error)),
        }
    }

    async fn done(&self, call: Call) -> Result<(), ServiceError> {
        self.send(call).await.map(drop)
    }

    /// Sends a pack ahead of its submission; the body that names it.
    async fn submission(&self, submission: Submission) -> Result<SubmissionBody, ServiceError> {
        let Submission { configuration, pack } = submission;
        let Some(pack) = pack else { return Ok(SubmissionBody { configuration, pack: None }) };
        let hash = hex(Sha256::digest(&pack));
        let body = Some(("application/octet-stream", Bytes::from_owner(pack)));
        self.done(Call { body, ..Call::new(Method::PUT, &["packs", &hash]).long() }).await?;
        Ok(SubmissionBody { configuration, pack: Some(hash) })
    }

    /// The lines of an answer. Each may take up to `patience`.
    fn lines(&self, call: Call, patience: Duration) -> Feed<'_, String> {
        let opened = async move {
            let answer = self.send(call).await?.bytes_stream().map_err(std::io::Error::other);
            let codec = LinesCodec::new_with_max_length(MESSAGE_BYTES);
            let lines = FramedRead::new(StreamReader::new(answer), codec);
            Ok::<_, ServiceError>(stream::try_unfold(lines, move |mut lines| async move {
                match timeout(patience, lines.next()).await {
                    Err(_) => Err(self.silent(patience)),
                    Ok(None) => Ok(None),
                    Ok(Some(Ok(line))) => Ok(Some((line, lines))),
                    Ok(Some(Err(LinesCodecError::MaxLineLengthExceeded))) => {
                        Err(self.foreign("a line is too long"))
                    }
                    Ok(Some(Err(LinesCodecError::Io(error)))) => Err(self.broken(&error)),
                }
            }))
        };
        Box::pin(stream::once(opened).try_flatten())
    }

    /// The views among the events of a watched benchmark.
    fn views<'a>(&'a self, lines: Feed<'a, String>) -> Feed<'a, BenchmarkView> {
        Box::pin(stream::try_unfold((lines, String::new()), move |(mut lines, mut event)| async move {
            while let Some(line) = lines.try_next().await? {
                if let Some(name) = line.strip_prefix("event: ") {
                    name.clone_into(&mut event);
                }
                let Some(data) = line.strip_prefix("data: ") else { continue };
                let foreign = |error: serde_json::Error| self.foreign(&error.to_string());
                match event.as_str() {
                    "view" => {
                        return Ok(Some((serde_json::from_str(data).map_err(foreign)?, (lines, event))));
                    }
                    "error" => return Err(serde_json::from_str::<Problem>(data).map_err(foreign)?.into()),
                    _ => return Ok(None),
                }
            }
            let message = format!("{} broke off the stream", self.peer);
            Err(ServiceError::new(ErrorCode::Unavailable, message))
        }))
    }

    fn silent(&self, waited: Duration) -> ServiceError {
        let message = format!("no answer from {} within {} s", self.peer, waited.as_secs_f64());
        ServiceError::new(ErrorCode::Unavailable, message)
    }

    fn broken(&self, error: &(dyn std::error::Error + 'static)) -> ServiceError {
        let told = with_causes(error);
        let told = wrong_scheme(&told).unwrap_or(&told);
        ServiceError::new(ErrorCode::Unavailable, format!("no answer from {}: {told}", self.peer))
    }

    fn foreign(&self, why: &str) -> ServiceError {
        let message =
            format!("the answer of {} is not that of a coordinator of this version: {why}", self.peer);
        ServiceError::new(ErrorCode::Incompatible, message)
    }
}

/// The connections of a client.
fn http(config: &ClientConfig) -> Result<reqwest::Client, ServiceError> {
    // The first of a process counts.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(config.connect_timeout)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .user_agent(concat!("kgfleet/", env!("CARGO_PKG_VERSION")));
    let unusable = |error: reqwest::Error| {
        let places = config.addresses.join(", ");
        invalid(format!("the certificates for {places} cannot be used: {}", with_causes(&error)))
    };
    if let Some(ca) = &config.ca {
        builder = builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(ca).map_err(unusable)?);
    }
    builder.build().map_err(unusable)
}

#[async_trait::async_trait]
impl Control for ApiClient {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        let body = self.submission(submission).await?;
        self.answer(Call::post(&["runs"]).long().json(&body)?).await
    }

    async fn extend(&self, run: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        let body = self.submission(submission).await?;
        self.answer(Call::post(&["runs", run.as_str(), "extend"]).long().json(&body)?).await
    }

    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        self.answer(Call::get(&["runs"])).await
    }

    async fn view(&self, run: &RunId) -> Reply<BenchmarkView> {
        self.answer(Call::get(&["runs", run.as_str()])).await
    }

    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, BenchmarkView> {
        self.views(self.lines(Call::get(&["runs", run.as_str(), "events"]), STREAM_SILENCE))
    }

    async fn command(&self, run: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        let act = match command {
            BenchmarkCommand::Pause => "pause",
            BenchmarkCommand::Resume => "resume",
            BenchmarkCommand::Cancel => "cancel",
        };
        self.answer(Call::post(&["runs", run.as_str(), act]).long()).await
    }

    async fn retry(&self, run: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        let body = RetryBody { causes: causes.to_vec() };
        let Count { count } =
            self.answer(Call::post(&["runs", run.as_str(), "retry"]).long().json(&body)?).await?;
        Ok(count)
    }

    async fn remove(&self, run: &RunId, force: bool) -> Reply<()> {
        let call = Call::new(Method::DELETE, &["runs", run.as_str()]).long();
        self.done(call.query("force", [force.to_string()])).await
    }

    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem> {
        let lines = self.lines(Call::get(&["runs", run.as_str(), "records"]).long(), LONG_CALL_TIMEOUT);
        Box::pin(lines.and_then(|line| async move { ExportLine::read(line.as_bytes()) }))
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.answer(Call::get(&["workers"])).await
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        self.done(Call::post(&["workers", worker.as_str(), "drain"])).await
    }

    async fn dead_letters(&self, run: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        let call = Call::get(&["runs", run.as_str(), "dead-letters"]);
        self.answer(call.query("unit", unit.map(|unit| unit.to_string()))).await
    }

    async fn requeue(&self, run: &RunId, units: &[u64]) -> Reply<u64> {
        let body = RequeueBody { units: units.to_vec() };
        let Count { count } =
            self.answer(Call::post(&["runs", run.as_str(), "requeue"]).long().json(&body)?).await?;
        Ok(count)
    }

    async fn check(&self) -> Reply<Vec<String>> {
        self.answer(Call::get(&["check"]).long()).await
    }

    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>> {
        self.answer(Call::get(&["needs"]).query("model", models.iter().cloned())).await
    }

    async fn note_pools(&self, states: PoolStates) -> Reply<()> {
        self.done(Call::new(Method::PUT, &["pools", &states.release]).json(&states)?).await
    }

    async fn note_server_usage(&self, ended: Vec<ServerUsage>) -> Reply<()> {
        self.done(Call::post(&["server-usage"]).json(&ended)?).await
    }

    async fn server_usage(&self) -> Reply<Vec<ServerUsage>> {
        self.answer(Call::get(&["server-usage"]).long()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_read_up_to_its_limit() {
        let client = ApiClient::new(&ClientConfig::new("http://127.0.0.1:1")).unwrap();
        let read = async |bytes: usize| {
            let answer = Response::from(axum::http::Response::new(vec![b'x'; bytes]));
            client.whole(answer, 10, CALL_TIMEOUT).await.map(|whole| whole.len()).map_err(|error| error.code)
        };
        assert_eq!(read(10).await, Ok(10));
        assert_eq!(read(11).await, Err(ErrorCode::Incompatible));
    }
}
