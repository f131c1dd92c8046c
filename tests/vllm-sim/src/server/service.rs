//! Routes: which path does what.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SERVER, VARY};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json as value;

use super::body::{BrokenOff, SimBody};
use super::generate::generate;
use super::model::SimModel;
use super::pool;
use crate::answers::Purpose;
use crate::faults::Faults;
use crate::metrics::{Scrape, exposition, unix_time};
use crate::pooling::tokens;
use crate::tokenizer;
use crate::wire::VLLM_VERSION;
use crate::wire::error::ApiError;
use crate::wire::pooling::Pooling;
use crate::wire::request::{Generation, Tokenize};

/// Longest request body in bytes: far beyond any context, and small enough for a thousand at once.
const BODY_BYTES_MAX: usize = 64 << 20;

/// What all connections share.
pub(super) struct Server {
    /// In the order of the configuration; the first serves requests that name none.
    pub(super) models: Vec<Arc<SimModel>>,
    by_name: HashMap<String, usize>,
    pub(super) faults: Faults,
    /// The whole expected header.
    authorization: Option<String>,
    created: u64,
    arrivals: AtomicU64,
    faults_met: AtomicU64,
    in_flight: AtomicU64,
    peak_in_flight: AtomicU64,
}

/// Why a request gets no answer.
pub(super) enum SimRefusal {
    /// An error reply.
    Api(ApiError),
    /// Nothing at all.
    BrokenOff(BrokenOff),
}

impl From<ApiError> for SimRefusal {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<BrokenOff> for SimRefusal {
    fn from(broken: BrokenOff) -> Self {
        Self::BrokenOff(broken)
    }
}

#[derive(Clone, Copy)]
enum Route {
    Models,
    Chat,
    Completion,
    Embeddings,
    Classify,
    Tokenize,
    Health,
    Version,
    Load,
    Metrics,
}

fn route(path: &str) -> Option<(Route, Method, &'static str)> {
    let get = |route| Some((route, Method::GET, "GET"));
    let post = |route| Some((route, Method::POST, "POST"));
    match path {
        "/v1/chat/completions" => post(Route::Chat),
        "/v1/completions" => post(Route::Completion),
        "/v1/embeddings" => post(Route::Embeddings),
        "/classify" => post(Route::Classify),
        "/v1/models" => get(Route::Models),
        "/tokenize" => post(Route::Tokenize),
        "/health" | "/ping" => get(Route::Health),
        "/version" => get(Route::Version),
        "/load" => get(Route::Load),
        "/metrics" => get(Route::Metrics),
        _ => None,
    }
}

impl Server {
    pub(super) fn new(models: Vec<Arc<SimModel>>, faults: Faults, api_key: Option<&str>) -> Self {
        let by_name = models.iter().enumerate().map(|(at, model)| (model.name().to_owned(), at)).collect();
        Self {
            models,
            by_name,
            faults,
            authorization: api_key.map(|key| format!("Bearer {key}")),
            created: unix_time(),
            arrivals: AtomicU64::new(0),
            faults_met: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            peak_in_flight: AtomicU64::new(0),
        }
    }

    /// Answers one request. An error closes the connection.
    pub(super) async fn handle(&self, request: Request<Incoming>) -> Result<Response<SimBody>, BrokenOff> {
        match self.answer(request).await {
            Ok(response) => Ok(response),
            Err(SimRefusal::Api(error)) => Ok(error_reply(&error)),
            Err(SimRefusal::BrokenOff(broken)) => Err(broken),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<SimBody>, SimRefusal> {
        let path = request.uri().path();
        // vLLM guards the model API only: probes and scrapers need no key.
        if path.starts_with("/v1") && !self.authorized(&request) {
            return Err(ApiError::unauthorized().into());
        }
        let (route, method, allow) = route(path).ok_or_else(ApiError::not_found)?;
        if request.method() != method {
            return Err(ApiError::method_not_allowed(allow).into());
        }
        match route {
            Route::Chat => {
                let _busy = Busy::new(self);
                generate(self, Generation::chat(&read(request).await?)?).await
            }
            Route::Completion => {
                let _busy = Busy::new(self);
                generate(self, Generation::completion(&read(request).await?)?).await
            }
            Route::Embeddings => {
                let _busy = Busy::new(self);
                pool::embed(self, Pooling::read(&read(request).await?)?).await
            }
            Route::Classify => {
                let _busy = Busy::new(self);
                pool::classify(self, Pooling::read(&read(request).await?)?).await
            }
            Route::Tokenize => Ok(self.tokenize(&read(request).await?)?),
            Route::Models => Ok(self.list_models()),
            Route::Health => Ok(empty()),
            Route::Version => Ok(json_value(&value!({ "version": VLLM_VERSION }))),
            Route::Load => Ok(json_value(&value!({ "server_load": self.in_flight.load(Relaxed) }))),
            Route::Metrics => Ok(self.metrics()),
        }
    }

    fn authorized(&self, request: &Request<Incoming>) -> bool {
        let Some(expected) = &self.authorization else { return true };
        request.headers().get(AUTHORIZATION).is_some_and(|given| given.as_bytes() == expected.as_bytes())
    }

    /// The model of that name, or the first one.
    pub(super) fn model(&self, name: Option<&str>) -> Result<&Arc<SimModel>, ApiError> {
        let Some(name) = name else { return Ok(&self.models[0]) };
        self.by_name.get(name).map(|&at| &self.models[at]).ok_or_else(|| {
            let served: Vec<&str> = self.models.iter().map(|model| model.name()).collect();
            ApiError::unknown_model(name, &served)
        })
    }

    /// Numbers a request to a model, from 1.
    pub(super) fn arrived(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed) + 1
    }

    /// Counts a fault.
    pub(super) fn struck(&self) {
        self.faults_met.fetch_add(1, Relaxed);
    }

    /// Requests to models, faults among them, and those being answered: now and at most.
    pub(super) fn counts(&self) -> (u64, u64, u64, u64) {
        let [requests, faults, now, peak] =
            [&self.arrivals, &self.faults_met, &self.in_flight, &self.peak_in_flight]
                .map(|count| count.load(Relaxed));
        (requests, faults, now, peak)
    }

    fn list_models(&self) -> Response<SimBody> {
        let data: Vec<_> = self
            .models
            .iter()
            .map(|model| {
                value!({
                    "id": model.name(),
                    "object": "model",
                    "created": self.created,
                    "owned_by": "vllm",
                    "root": model.name(),
                    "parent": null,
                    "max_model_len": model.config.max_model_len,
                    "permission": [{
                        "id": "modelperm-0000000000000000",
                        "object": "model_permission",
                        "created": self.created,
                        "allow_create_engine": false,
                        "allow_sampling": true,
                        "allow_logprobs": true,
                        "allow_search_indices": false,
                        "allow_view": true,
                        "allow_fine_tuning": false,
                        "organization": "*",
                        "group": null,
                        "is_blocking": false,
                    }],
                })
            })
            .collect();
        json_value(&value!({ "object": "list", "data": data }))
    }

    fn tokenize(&self, body: &[u8]) -> Result<Response<SimBody>, ApiError> {
        let Tokenize { model, messages, framed } = Tokenize::read(body)?;
        let model = self.model(model.as_deref())?;
        let text = match messages {
            Ok(messages) => tokenizer::render(&messages),
            Err(prompt) => prompt,
        };
        let tokens = match &model.purpose {
            Purpose::Chat(_) | Purpose::Embed(_) => tokenizer::ids(&text),
            Purpose::Classify(_) if framed => tokens::framed(&text),
            Purpose::Classify(_) => tokens::encode(&text),
        };
        let (count, max_model_len) = (tokens.len(), model.config.max_model_len);
        let reply =
            value!({ "count": count, "max_model_len": max_model_len, "tokens": tokens, "token_strs": null });
        Ok(json_value(&reply))
    }

    fn metrics(&self) -> Response<SimBody> {
        let scrapes: Vec<Scrape<'_>> = self
            .models
            .iter()
            .map(|model| Scrape { model: model.name(), metrics: &model.metrics, load: model.load() })
            .collect();
        reply("text/plain; version=1.0.0; charset=utf-8", SimBody::whole(exposition(&scrapes)))
    }
}

/// Counts a request as being answered, until its reply begins.
struct Busy<'a>(&'a Server);

impl<'a> Busy<'a> {
    fn new(server: &'a Server) -> Self {
        let now = server.in_flight.fetch_add(1, Relaxed) + 1;
        server.peak_in_flight.fetch_max(now, Relaxed);
        Self(server)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The whole body of a request.
async fn read(request: Request<Incoming>) -> Result<Bytes, SimRefusal> {
    match Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large().into()),
        // The client went away.
        Err(_) => Err(BrokenOff.into()),
    }
}

/// A good reply with vLLM's headers; hyper adds the date.
pub(super) fn reply(content_type: &'static str, body: SimBody) -> Response<SimBody> {
    let mut response = empty();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    *response.body_mut() = body;
    response
}

/// A good reply with a JSON body.
pub(super) fn json(body: SimBody) -> Response<SimBody> {
    reply("application/json", body)
}

fn json_value(body: &serde_json::Value) -> Response<SimBody> {
    json(SimBody::whole(body.to_string()))
}

fn empty() -> Response<SimBody> {
    let mut response = Response::new(SimBody::Whole(None));
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("uvicorn"));
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    response
}

fn error_reply(error: &ApiError) -> Response<SimBody> {
    let mut response = json_value(&error.body);
    *response.status_mut() = error.status;
    let headers = response.headers_mut();
    if error.status == StatusCode::UNAUTHORIZED {
        // vLLM's key check sits outside the layer that adds this one.
        headers.remove(VARY);
    }
    if let Some(seconds) = error.retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(allow) = error.allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}
