//! The path of one request for text: check it, apply faults, find the answer, wait as the latency law says, reply.

use std::sync::atomic::Ordering::Relaxed;

use hyper::Response;

use super::answer::ServedAnswer;
use super::body::{BrokenOff, SimBody, pieces};
use super::model::SimModel;
use super::reply::{half_of_json, json, reply};
use super::state::{Server, SimRefusal};
use super::stream::Streamer;
use crate::answers::{Purpose, SimAsk};
use crate::faults::FaultKind;
use crate::latency::EngineFinished;
use crate::metrics::unix_time;
use crate::pace::Ticket;
use crate::tokenizer;
use crate::wire::error::ApiError;
use crate::wire::reply::ReplyHead;
use crate::wire::request::Generation;

/// Answers a request to `/v1/chat/completions`.
pub(super) async fn generate(
    server: &Server,
    generation: Generation,
) -> Result<Response<SimBody>, SimRefusal> {
    let arrival = server.arrived();
    let model = server.model(generation.model.as_deref())?.clone();
    // A vLLM that serves another kind of model has no such path.
    let Purpose::Chat(answers) = &model.purpose else { return Err(ApiError::not_found().into()) };
    let Room { prompt_tokens, output_tokens } = check(&generation, model.config.max_model_len)?;
    let ask = SimAsk::new(model.name(), &generation.messages, generation.seed);
    let fault = meet_fault(server, arrival, &model, &ask).await?;
    if fault == Some(&FaultKind::Garbage) {
        return Ok(json(GARBAGE));
    }

    let mut answer = ServedAnswer::cut(answers(&ask), &generation.stop, output_tokens);
    if fault == Some(&FaultKind::Abort) {
        answer = answer.aborted();
    }
    let run = model.run(&generation, prompt_tokens, &answer);
    let head = ReplyHead {
        // A function of the request, like everything else: equal runs give equal records.
        id: format!("chatcmpl-{:016x}", ask.identity.request),
        created: unix_time(),
        model: reported_name(fault, &model).to_owned(),
    };
    let cut_after = match fault {
        Some(FaultKind::CutStream { after_tokens }) => Some(*after_tokens),
        _ => None,
    };
    if generation.stream {
        let include_usage = generation.include_usage;
        let streamer = Streamer::new(model, prompt_tokens, include_usage, answer, run, head, cut_after);
        return Ok(reply("text/event-stream; charset=utf-8", pieces(streamer.into_stream())));
    }
    let times = finished(run.as_ref()).await;
    let usage = model.served(prompt_tokens, &answer, times);
    let body = head.whole(&answer.text, answer.end(), usage);
    Ok(if cut_after.is_some() { half_of_json(body) } else { json(body) })
}

/// Bytes that no client can read: a broken JSON string with bytes that are not UTF-8.
pub(super) const GARBAGE: &[u8] = b"{\"id\":\"\xff\xfe\x00\x9f garbage \xc3(\xa0\xa1";

/// The fault that the request of this number meets, if any. Those that strike before there is an answer strike here.
pub(super) async fn meet_fault<'s>(
    server: &'s Server,
    arrival: u64,
    model: &SimModel,
    ask: &SimAsk<'_>,
) -> Result<Option<&'s FaultKind>, SimRefusal> {
    let Some(fault) = server.faults.decide(arrival, ask) else { return Ok(None) };
    server.faults_met.fetch_add(1, Relaxed);
    match fault {
        FaultKind::Status { code, retry_after_s } => {
            Err(ApiError::injected(*code, *retry_after_s, model.name()).into())
        }
        FaultKind::Reset => Err(BrokenOff.into()),
        FaultKind::Hang => model.hang().await,
        _ => Ok(Some(fault)),
    }
}

/// The name under which a reply comes.
pub(super) fn reported_name<'a>(fault: Option<&'a FaultKind>, model: &'a SimModel) -> &'a str {
    match fault {
        Some(FaultKind::WrongModel { name }) => name,
        _ => model.name(),
    }
}

/// Waits for the end of a run.
pub(super) async fn finished(run: Option<&Ticket>) -> EngineFinished {
    match run {
        None => EngineFinished::default(),
        Some(ticket) => ticket.finished().await,
    }
}

/// How a request fits into the context.
struct Room {
    prompt_tokens: u32,
    /// Most tokens of the answer.
    output_tokens: u32,
}

/// vLLM's checks, with its wording.
fn check(generation: &Generation, limit: u32) -> Result<Room, ApiError> {
    if let Some(temperature) = generation.temperature.filter(|&temperature| temperature < 0.0) {
        let problem = format!("temperature must be non-negative, got {temperature:?}.");
        return Err(ApiError::parameter("temperature", &format!("{temperature:?}"), &problem));
    }
    if generation.n != 1 {
        return Err(ApiError::parameter(
            "n",
            &generation.n.to_string(),
            "The simulator gives one choice: n must be 1.",
        ));
    }
    let at_least_one = |tokens: i64| {
        let problem = format!("max_tokens must be at least 1, got {tokens}.");
        ApiError::parameter("max_tokens", &tokens.to_string(), &problem)
    };
    let asked = match generation.max_tokens {
        None => None,
        Some(tokens) if tokens < 1 => return Err(at_least_one(tokens)),
        Some(tokens) => match u32::try_from(tokens) {
            Ok(tokens) if tokens <= limit => Some(tokens),
            _ => {
                let problem = format!(
                    "max_tokens={tokens} cannot be greater than max_model_len={limit}. Please request fewer output \
                     tokens."
                );
                return Err(ApiError::parameter("max_tokens", &tokens.to_string(), &problem));
            }
        },
    };
    let prompt_tokens = tokenizer::tokens_in(tokenizer::rendered_len(&generation.messages));
    let room = limit.saturating_sub(prompt_tokens);
    match asked {
        Some(asked) if asked <= room => Ok(Room { prompt_tokens, output_tokens: asked }),
        None if room > 0 => Ok(Room { prompt_tokens, output_tokens: room }),
        None if prompt_tokens == limit => Err(at_least_one(0)),
        _ => Err(too_long(limit, asked.unwrap_or(0))),
    }
}

/// vLLM stops counting a prompt's tokens at the first one too many, so this is the number that it names.
pub(super) fn too_long(limit: u32, asked: u32) -> ApiError {
    let counted = limit - asked + 1;
    let problem = if asked == 0 {
        format!(
            "This model's maximum context length is {limit} tokens. However, your prompt contains at least {counted} \
             input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the \
             input prompt."
        )
    } else {
        format!(
            "This model's maximum context length is {limit} tokens. However, you requested {asked} output tokens and \
             your prompt contains at least {counted} input tokens, for a total of at least {} tokens. Please reduce \
             the length of the input prompt or the number of requested output tokens.",
            limit + 1
        )
    };
    ApiError::parameter("input_tokens", &counted.to_string(), &problem)
}
