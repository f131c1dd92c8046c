//! Routes: which path does what. A handful of fixed paths needs no router.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response};
use serde_json::json as value;

use super::body::{BrokenOff, SimBody, whole};
use super::generate::generate;
use super::pool;
use super::reply::{empty, error_reply, json, reply};
use super::state::{Server, SimRefusal};
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

/// The paths that know one method each.
const POSTS: [&str; 4] = ["/v1/chat/completions", "/v1/embeddings", "/classify", "/tokenize"];
const GETS: [&str; 4] = ["/v1/models", "/health", "/version", "/metrics"];

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
    let path = request.uri().path().to_owned();
    // vLLM guards the model API only: probes and scrapers need no key.
    if path.starts_with("/v1") && !server.authorized(&request) {
        return Err(ApiError::unauthorized().into());
    }
    let allowed = match &*path {
        path if POSTS.contains(&path) => "POST",
        path if GETS.contains(&path) => "GET",
        _ => return Err(ApiError::not_found().into()),
    };
    if request.method().as_str() != allowed {
        return Err(ApiError::method_not_allowed(allowed).into());
    }
    match &*path {
        "/v1/chat/completions" => generate(server, Generation::read(&read(request).await?)?).await,
        "/v1/embeddings" => pool::embed(server, Pooling::read(&read(request).await?)?).await,
        "/classify" => pool::classify(server, Pooling::read(&read(request).await?)?).await,
        "/tokenize" => Ok(tokenize(server, &read(request).await?)?),
        "/v1/models" => Ok(list_models(server)),
        "/version" => Ok(json(value!({ "version": VLLM_VERSION }).to_string())),
        "/metrics" => Ok(metrics(server)),
        _ => Ok(empty()),
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
                "permission": [],
            })
        })
        .collect();
    json(value!({ "object": "list", "data": data }).to_string())
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
    Ok(json(reply.to_string()))
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
    reply("text/plain; version=1.0.0; charset=utf-8", whole(exposition(&scrapes)))
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
