//! Routes: which path does what.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use serde_json::json as value;

use super::body::{BrokenOff, SimBody};
use super::generate::generate;
use super::pool;
use super::reply::{empty, error_reply, json_value, reply};
use super::state::{Busy, Server, SimRefusal};
use crate::answers::Purpose;
use crate::metrics::{Scrape, exposition};
use crate::pooling::tokens;
use crate::tokenizer;
use crate::wire::VLLM_VERSION;
use crate::wire::error::ApiError;
use crate::wire::pooling::Pooling;
use crate::wire::request::{Generation, Tokenize};

/// Longest request body in bytes: far beyond any context, and small enough for a thousand at once.
const BODY_BYTES_MAX: usize = 64 << 20;

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

/// Answers one request. An error closes the connection.
pub(super) async fn handle(
    server: &Server,
    request: Request<Incoming>,
) -> Result<Response<SimBody>, BrokenOff> {
    match answer(server, request).await {
        Ok(response) => Ok(response),
        Err(SimRefusal::Api(error)) => Ok(error_reply(&error)),
        Err(SimRefusal::BrokenOff(broken)) => Err(broken),
    }
}

async fn answer(server: &Server, request: Request<Incoming>) -> Result<Response<SimBody>, SimRefusal> {
    let path = request.uri().path();
    // vLLM guards the model API only: probes and scrapers need no key.
    if path.starts_with("/v1") && !server.authorized(&request) {
        return Err(ApiError::unauthorized().into());
    }
    let (route, method, allow) = route(path).ok_or_else(ApiError::not_found)?;
    if request.method() != method {
        return Err(ApiError::method_not_allowed(allow).into());
    }
    match route {
        Route::Chat => {
            let _busy = Busy::new(server);
            generate(server, Generation::chat(&read(request).await?)?).await
        }
        Route::Completion => {
            let _busy = Busy::new(server);
            generate(server, Generation::completion(&read(request).await?)?).await
        }
        Route::Embeddings => {
            let _busy = Busy::new(server);
            pool::embed(server, Pooling::read(&read(request).await?)?).await
        }
        Route::Classify => {
            let _busy = Busy::new(server);
            pool::classify(server, Pooling::read(&read(request).await?)?).await
        }
        Route::Tokenize => Ok(tokenize(server, &read(request).await?)?),
        Route::Models => Ok(list_models(server)),
        Route::Health => Ok(empty()),
        Route::Version => Ok(json_value(&value!({ "version": VLLM_VERSION }))),
        Route::Load => Ok(json_value(&value!({ "server_load": server.in_flight() }))),
        Route::Metrics => Ok(metrics(server)),
    }
}

fn list_models(server: &Server) -> Response<SimBody> {
    let data: Vec<_> = server
        .models
        .iter()
        .map(|model| {
            value!({
                "id": model.name(),
                "object": "model",
                "created": server.created,
                "owned_by": "vllm",
                "root": model.name(),
                "parent": null,
                "max_model_len": model.config.max_model_len,
                "permission": [{
                    "id": "modelperm-0000000000000000",
                    "object": "model_permission",
                    "created": server.created,
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

fn tokenize(server: &Server, body: &[u8]) -> Result<Response<SimBody>, ApiError> {
    let Tokenize { model, messages, framed } = Tokenize::read(body)?;
    let model = server.model(model.as_deref())?;
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

fn metrics(server: &Server) -> Response<SimBody> {
    let scrapes: Vec<Scrape<'_>> = server
        .models
        .iter()
        .map(|model| {
            let (load, generated) = (model.load(), model.generated());
            Scrape { model: model.name(), metrics: &model.metrics, load, generated }
        })
        .collect();
    reply("text/plain; version=1.0.0; charset=utf-8", SimBody::whole(exposition(&scrapes)))
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
