//! The path of one request for vectors or classes: check it, apply faults, wait as the latency law says, reply.

use std::sync::Arc;

use domain::Message;
use hyper::Response;
use serde_json::{Value, json as value};

use super::body::SimBody;
use super::generate::{GARBAGE, finished, meet_fault, reported_name, too_long};
use super::model::SimModel;
use super::reply::{half_of_json, json};
use super::state::{Server, SimRefusal};
use crate::answers::{Purpose, SimAsk};
use crate::faults::FaultKind;
use crate::metrics::{EndReason, unix_time};
use crate::pooling::tokens;
use crate::tokenizer;
use crate::wire::error::ApiError;
use crate::wire::pooling::{Pooling, PoolingInputs};
use crate::wire::reply::SimUsage;

/// Answers a request to `/v1/embeddings`.
pub(super) async fn embed(server: &Server, pooling: Pooling) -> Result<Response<SimBody>, SimRefusal> {
    let model = model(server, pooling.model.as_deref())?;
    let Purpose::Embed(embedder) = &model.purpose else { return Err(ApiError::not_found().into()) };
    let PoolingInputs::Texts(texts) = pooling.inputs else {
        let problem = "The simulator's embedders take texts, not token ids.";
        return Err(ApiError::bad_request(problem).into());
    };
    let sizes: Vec<u32> = texts.iter().map(|text| tokenizer::tokens_in(text.len())).collect();
    if sizes.iter().any(|size| *size > model.config.max_model_len) {
        return Err(too_long(model.config.max_model_len, 0).into());
    }
    let vector = |(index, text): (usize, &String)| {
        // As Python writes numbers of single precision: in double.
        let embedding: Vec<f64> = embedder.vector(text).into_iter().map(f64::from).collect();
        value!({ "index": index, "object": "embedding", "embedding": embedding })
    };
    let vectors = texts.iter().enumerate().map(vector).collect();
    pool(server, &model, "embd", &texts, &sizes, vectors).await
}

/// Answers a request to `/classify`.
pub(super) async fn classify(server: &Server, pooling: Pooling) -> Result<Response<SimBody>, SimRefusal> {
    let model = model(server, pooling.model.as_deref())?;
    let Purpose::Classify(classifier) = &model.purpose else { return Err(ApiError::not_found().into()) };
    let lists = match pooling.inputs {
        PoolingInputs::Texts(texts) => texts.iter().map(|text| tokens::framed(text)).collect(),
        PoolingInputs::Tokens(lists) => lists,
    };
    let sizes: Vec<u32> = lists.iter().map(|list| u32::try_from(list.len()).unwrap_or(u32::MAX)).collect();
    if let Some(size) = sizes.iter().find(|size| **size > model.config.max_model_len) {
        return Err(too_many_tokens(model.config.max_model_len, *size).into());
    }
    let texts = lists.iter().map(|list| tokens::decode(list).map(|texts| texts.join("\n")));
    let texts: Vec<String> = texts.collect::<Result<_, u32>>().map_err(unknown_token)?;
    let class = |(index, list): (usize, &Vec<u32>)| {
        let said = classifier.classify(list)?;
        let count = said.probs.len();
        Ok(value!({ "index": index, "label": said.label, "probs": said.probs, "num_classes": count }))
    };
    let classes: Vec<Value> =
        lists.iter().enumerate().map(class).collect::<Result<_, u32>>().map_err(unknown_token)?;
    pool(server, &model, "classify", &texts, &sizes, classes).await
}

fn model(server: &Server, name: Option<&str>) -> Result<Arc<SimModel>, ApiError> {
    let found = server.model(name).cloned();
    found.map_err(|_| ApiError::unknown_pooling_model(name.unwrap_or_default()))
}

/// What both have in common.
async fn pool(
    server: &Server,
    model: &Arc<SimModel>,
    kind: &str,
    texts: &[String],
    sizes: &[u32],
    data: Vec<Value>,
) -> Result<Response<SimBody>, SimRefusal> {
    let messages: Vec<Message> = texts.iter().map(Message::user).collect();
    let ask = SimAsk::new(model.name(), &messages, 0);
    let fault = meet_fault(server, server.arrived(), model, &ask).await?;
    if fault == Some(&FaultKind::Garbage) {
        return Ok(json(GARBAGE));
    }
    // All are in the queue before the first is waited for.
    let runs: Vec<_> = sizes.iter().map(|size| model.read(*size)).collect();
    for (run, size) in runs.into_iter().zip(sizes) {
        let times = finished(run.as_ref()).await;
        model.metrics.served(*size, 0, EndReason::Stop, times);
    }
    let prompt_tokens = sizes.iter().fold(0_u32, |sum, size| sum.saturating_add(*size));
    let usage = SimUsage { prompt_tokens, completion_tokens: 0, cached_tokens: None };
    let reply = value!({
        "id": format!("{kind}-{:016x}", ask.identity.request),
        "object": "list",
        "created": unix_time(),
        "model": reported_name(fault, model),
        "data": data,
        "usage": usage.whole(),
    });
    let body = reply.to_string();
    Ok(match fault {
        Some(FaultKind::CutStream { .. }) => half_of_json(body),
        _ => json(body),
    })
}

fn unknown_token(token: u32) -> ApiError {
    ApiError::bad_request(&format!("Token id {token} is out of vocabulary"))
}

/// vLLM's words for token ids beyond the context, which it counts exactly unless there is just one too many.
fn too_many_tokens(limit: u32, size: u32) -> ApiError {
    if size == limit.saturating_add(1) {
        return too_long(limit, 0);
    }
    let problem = format!(
        "This model's maximum context length is {limit} tokens. However, your prompt contains {size} input tokens, \
         which exceeds this limit even without any output tokens. Please reduce the length of the input prompt."
    );
    ApiError::parameter("input_tokens", &size.to_string(), &problem)
}
