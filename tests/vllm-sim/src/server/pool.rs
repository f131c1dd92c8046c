//! The path of one request for vectors or classes: check it, apply faults, wait as the latency law says, reply.

use std::sync::Arc;

use domain::Message;
use hyper::Response;

use super::body::{BrokenOff, SimBody};
use super::generate::{GARBAGE, strike, too_long};
use super::model::{SimModel, SimRun};
use super::reply::json;
use super::state::{Server, SimRefusal};
use crate::answers::{Purpose, SimAsk};
use crate::faults::FaultKind;
use crate::latency::EngineFinished;
use crate::metrics::unix_time;
use crate::pooling::{Classifier, Embedder, tokens};
use crate::tokenizer;
use crate::wire::error::ApiError;
use crate::wire::pooling::{Pooling, PoolingInputs, PoolingReply, SimClass, Vector};
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
    pool(server, &model, "embd", &texts, &sizes, |null| vectors(embedder, &texts, null)).await
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
    let classes = classes(classifier, &lists).map_err(unknown_token)?;
    pool(server, &model, "classify", &texts, &sizes, |null| {
        classes.into_iter().map(|class| SimClass { label: class.label.filter(|_| !null), ..class }).collect()
    })
    .await
}

fn model(server: &Server, name: Option<&str>) -> Result<Arc<SimModel>, ApiError> {
    let found = server.model(name).cloned();
    found.map_err(|_| ApiError::unknown_pooling_model(name.unwrap_or_default()))
}

/// What both have in common. `answer` is told whether a fault wants a null in it.
async fn pool<T: serde::Serialize>(
    server: &Server,
    model: &Arc<SimModel>,
    kind: &str,
    texts: &[String],
    sizes: &[u32],
    answer: impl FnOnce(bool) -> Vec<T>,
) -> Result<Response<SimBody>, SimRefusal> {
    let arrival = server.arrived();
    let messages: Vec<Message> = texts.iter().map(Message::user).collect();
    let ask = SimAsk::new(model.name(), &messages, 0);
    let fault = server.faults.decide(arrival, &ask);
    if let Some(fault) = fault {
        server.struck();
        strike(fault, false, model).await?;
    }
    if fault == Some(&FaultKind::Garbage) {
        return Ok(json(SimBody::whole(GARBAGE)));
    }
    // All are in the queue before the first is waited for; one that is refused takes the others with it.
    let runs = sizes.iter().map(|size| model.read(*size)).collect::<Result<Vec<_>, _>>()?;
    for (run, size) in runs.into_iter().zip(sizes) {
        let times = match run {
            SimRun::Instant => EngineFinished::default(),
            SimRun::Paced(mut ticket) => ticket.finished().await.ok_or(BrokenOff)?,
        };
        model.has_read(*size, times);
    }
    let total = sizes.iter().fold(0_u32, |sum, size| sum.saturating_add(*size));
    let reply = PoolingReply {
        id: &format!("{kind}-{:016x}", ask.identity.request),
        object: "list",
        created: unix_time(),
        model: match fault {
            Some(FaultKind::WrongModel { name }) => name,
            _ => model.name(),
        },
        data: answer(fault == Some(&FaultKind::NullContent)),
        usage: SimUsage::new(total, 0, None),
    };
    Ok(json(match fault {
        Some(FaultKind::CutStream { .. }) => SimBody::truncated(reply.to_bytes()),
        _ => SimBody::whole(reply.to_bytes()),
    }))
}

fn vectors(embedder: &Embedder, texts: &[String], null: bool) -> Vec<Vector> {
    let vector = |(index, text): (usize, &String)| {
        let mut embedding: Vec<Option<f64>> =
            embedder.vector(text).into_iter().map(|number| Some(number.into())).collect();
        if let Some(first) = embedding.first_mut().filter(|_| null) {
            *first = None;
        }
        Vector { index, object: "embedding", embedding }
    };
    texts.iter().enumerate().map(vector).collect()
}

fn classes(classifier: &Classifier, lists: &[Vec<u32>]) -> Result<Vec<SimClass>, u32> {
    let class = |(index, list): (usize, &Vec<u32>)| {
        let said = classifier.classify(list)?;
        Ok(SimClass { index, label: Some(said.label), num_classes: said.probs.len(), probs: said.probs })
    };
    lists.iter().enumerate().map(class).collect()
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
