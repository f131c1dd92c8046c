//! The path of one request for text: check it, apply faults, find the answer, wait as the latency law says, reply.

use std::time::Duration;

use domain::Role;
use hyper::Response;

use super::answer::ServedAnswer;
use super::body::{BrokenOff, SimBody};
use super::model::{SimModel, SimRun};
use super::reply::{json, reply};
use super::state::{Server, SimRefusal};
use super::stream::{Ending, Streamer};
use crate::answers::{Purpose, SimAsk};
use crate::config::{ChatTemplate, ModelConfig};
use crate::faults::FaultKind;
use crate::latency::EngineFinished;
use crate::metrics::unix_time;
use crate::tokenizer;
use crate::wire::chunk::ChunkHead;
use crate::wire::error::ApiError;
use crate::wire::reply::{SimText, SimUsage};
use crate::wire::request::Generation;

/// Answers a request to one of the two completion paths.
pub(super) async fn generate(
    server: &Server,
    generation: Generation,
) -> Result<Response<SimBody>, SimRefusal> {
    let arrival = server.arrived();
    let model = server.model(generation.model.as_deref())?.clone();
    // A vLLM that serves another kind of model has no such path.
    let Purpose::Chat(answers) = &model.purpose else { return Err(ApiError::not_found().into()) };
    let Room { prompt_tokens, output_tokens } = check(&generation, &model.config)?;
    let ask = SimAsk::new(model.name(), &generation.messages, generation.seed);
    let fault = server.faults.decide(arrival, &ask);
    if let Some(fault) = fault {
        server.struck();
        strike(fault, generation.stream, &model).await?;
    }
    if fault == Some(&FaultKind::Garbage) {
        return Ok(json(SimBody::whole(GARBAGE)));
    }

    let mut answer = ServedAnswer::cut(answers.answer(&ask), &generation.stop, output_tokens);
    match fault {
        Some(FaultKind::Abort) => answer = answer.aborted(),
        Some(FaultKind::NullContent) => answer = answer.without_content(),
        _ => {}
    }
    let run = model.run(&generation, prompt_tokens, &answer)?;
    let head = ChunkHead {
        chat: generation.chat,
        // A function of the request, like everything else: equal runs give equal records.
        id: format!("{}-{:016x}", if generation.chat { "chatcmpl" } else { "cmpl" }, ask.identity.request),
        created: unix_time(),
        model: match fault {
            Some(FaultKind::WrongModel { name }) => name.clone(),
            _ => model.name().to_owned(),
        },
    };
    if generation.stream {
        let ending = match fault {
            Some(&FaultKind::Stall { after_tokens }) => Ending::Stall { after_tokens },
            Some(&FaultKind::CutStream { after_tokens }) => Ending::Cut { after_tokens },
            Some(FaultKind::NoDone) => Ending::WithoutDone,
            _ => Ending::Complete,
        };
        let streamer = Streamer::new(model, generation, prompt_tokens, answer, run, head, ending);
        return Ok(reply("text/event-stream; charset=utf-8", SimBody::pieces(streamer.into_stream())));
    }
    let times = match run {
        SimRun::Instant => EngineFinished::default(),
        SimRun::Paced(mut ticket) => ticket.finished().await.ok_or(BrokenOff)?,
    };
    model.served(prompt_tokens, &answer, times);
    let body = whole(&head, &answer, model.usage(prompt_tokens, &answer, times));
    Ok(json(match fault {
        Some(FaultKind::CutStream { .. }) => SimBody::truncated(body),
        _ => SimBody::whole(body),
    }))
}

/// Bytes that no client can read: a broken JSON string with bytes that are not UTF-8.
pub(super) const GARBAGE: &[u8] = b"{\"id\":\"\xff\xfe\x00\x9f garbage \xc3(\xa0\xa1";

/// The faults that strike before there is an answer.
pub(super) async fn strike(fault: &FaultKind, streams: bool, model: &SimModel) -> Result<(), SimRefusal> {
    match fault {
        FaultKind::Status { code, retry_after_s } => {
            Err(ApiError::injected(*code, *retry_after_s, model.name()).into())
        }
        FaultKind::Reset => Err(BrokenOff.into()),
        FaultKind::Hang => model.hang().await,
        FaultKind::Stall { .. } if !streams => model.hang().await,
        FaultKind::Slow { delay_ms } => {
            tokio::time::sleep(Duration::from_millis(u64::from(*delay_ms))).await;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn whole(head: &ChunkHead, answer: &ServedAnswer, usage: SimUsage) -> Vec<u8> {
    let text = SimText {
        id: &head.id,
        created: head.created,
        model: &head.model,
        content: answer.content(),
        reasoning: answer.reasoning.as_deref(),
        finish_reason: &answer.finish,
        stop_reason: answer.stop_reason.as_deref(),
        usage,
    };
    if head.chat { text.chat() } else { text.completion() }
}

/// How a request fits into the context.
struct Room {
    prompt_tokens: u32,
    /// Most tokens of the answer.
    output_tokens: u32,
}

/// vLLM's checks, with its wording.
fn check(generation: &Generation, config: &ModelConfig) -> Result<Room, ApiError> {
    let limit = config.max_model_len;
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
    if generation.chat {
        check_roles(generation, config.chat_template)?;
    }
    let bytes = if generation.chat {
        tokenizer::rendered_len(&generation.messages)
    } else {
        generation.messages.iter().map(|message| message.content.len()).sum()
    };
    let prompt_tokens = tokenizer::tokens_in(bytes);
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

/// The refusals of chat templates, as they raise them.
fn check_roles(generation: &Generation, template: ChatTemplate) -> Result<(), ApiError> {
    let roles = || generation.messages.iter().map(|message| message.role);
    if template == ChatTemplate::Any {
        return Ok(());
    }
    if template == ChatTemplate::NoSystem && roles().any(|role| role == Role::System) {
        return Err(ApiError::bad_request("System role not supported"));
    }
    let turns =
        roles().enumerate().filter(|&(at, role)| !(at == 0 && role == Role::System)).map(|(_, role)| role);
    let expected = [Role::User, Role::Assistant].into_iter().cycle();
    if turns.zip(expected).any(|(role, expected)| role != expected) {
        let problem = "Conversation roles must alternate user/assistant/user/assistant/...";
        return Err(ApiError::bad_request(problem));
    }
    Ok(())
}
