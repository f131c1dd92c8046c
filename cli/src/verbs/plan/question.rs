//! Asks a model one short question, and says what was asked, what came, and what to do if nothing did.

use std::sync::Arc;
use std::time::Duration;

use coordinator::configuration::ModelSpec;
use domain::{Ask, DialogueKey, FailureCause, FinishReason, Message};
use models::{CallError, ChatReply, ChatRequest, Progress};
use tokio::time::Instant;
use worker::Connect;

use super::checks::PlanFindings;
use crate::engine::preflight::Level;
use crate::kit::output::explain;

const QUESTION: &str = "What is the capital of France? Answer with one word.";

/// Lines of an answer that are shown, and characters of them.
const LINES_MAX: usize = 3;
const CHARS_MAX: usize = 200;

/// Asks a model the question.
pub(super) async fn ask(spec: &ModelSpec, connect: &dyn Connect, findings: &mut PlanFindings) {
    let about = |what: &str| format!("{what} {}", spec.label);
    let connected = match connect.connect(Ask::Chat, spec, None) {
        Ok(connected) => connected,
        Err(error) => return findings.add(Level::Problem, about("model"), explain(&error.into())),
    };
    let endpoint = connected.model.identity().endpoint.clone().unwrap_or_default();
    let limit = match spec.sampling.max_tokens {
        Some(tokens) => format!("at most {tokens} tokens"),
        None => "as many tokens as its context leaves".to_owned(),
    };
    let how = if spec.streams() { "as a stream" } else { "as a whole" };
    let asked = format!(
        "{endpoint}/chat/completions, `{}`, {how}, {limit}, a seed; sampling: {}: {QUESTION}",
        spec.requested(),
        spec.sampling
    );
    findings.add(Level::Ok, about("asked"), asked);
    let request = ChatRequest {
        messages: Arc::from([Message::user(QUESTION)]),
        sampling: spec.sampling.clone(),
        seed: Some(1),
        deadline: spec.time_limits.call(),
        key: DialogueKey { model: spec.label.clone(), task: "check".into(), iteration: 0 },
        round: 0,
        progress: Progress::default(),
    };
    let began = Instant::now();
    match connected.model.complete(request).await {
        Ok(reply) => {
            let (level, message) = answered(&reply, began.elapsed());
            findings.add(level, about("answer of"), message);
            if !reply.adapted.is_empty() {
                let message =
                    format!("the server refuses the request as it was: {}", reply.adapted.join(", "));
                findings.add(Level::Warning, about("left out for"), message);
            }
        }
        Err(error) => findings.add(Level::Problem, about("answer of"), refused(&error)),
    }
}

/// What came.
fn answered(reply: &ChatReply, took: Duration) -> (Level, String) {
    let answer = &reply.answer;
    let lines: Vec<&str> = answer.text.lines().take(LINES_MAX).collect();
    let shown: String = lines.join(" / ").chars().take(CHARS_MAX).collect();
    let tokens = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    let mut message = format!("`{shown}` after {:.2} s", took.as_secs_f64());
    if let Some(first) = reply.first_token {
        message += &format!(", the first token after {:.2} s", first.as_secs_f64());
    }
    message += &format!(
        "; tokens: {} of the prompt, {} of the answer",
        tokens(answer.usage.prompt_tokens),
        tokens(answer.usage.completion_tokens)
    );
    if let Some(reasoning) = &answer.reasoning {
        message += &format!("; {} characters of reasoning before it", reasoning.chars().count());
    }
    if let Some(model) = &reply.reported_model {
        message += &format!("; answered by `{model}`");
    }
    let is_cut = answer.finish_reason == Some(FinishReason::Length);
    let trouble = match (answer.text.trim().is_empty(), is_cut) {
        (true, true) => "; the answer is empty, because the token limit ended it: raise --max-tokens",
        (true, false) => "; the answer is empty",
        (false, true) => "; the token limit ended it: raise --max-tokens",
        (false, false) => return (Level::Ok, message),
    };
    (Level::Warning, message + trouble)
}

/// Why nothing came, and what to do.
fn refused(error: &CallError) -> String {
    use FailureCause::{
        BadRequest, Connection, ModelNotFound, Overloaded, QuotaExhausted, RateLimited, Server, Timeout,
        Unauthorized,
    };
    let advice = match error.cause {
        Connection => "start the server, or correct --endpoint",
        Unauthorized => "name the variable that holds the key with --key-env, or correct the key",
        ModelNotFound => "give --model as the server names it",
        Overloaded => "the server is full, or loads the model: ask again later",
        RateLimited => "ask again later; `calls_per_minute` in a configuration keeps within a rate",
        QuotaExhausted => "the account allows no more calls: raise its limit, or wait until it is renewed",
        Timeout => "the server takes calls and does not answer: its log says why, or it loads the model",
        BadRequest => "is --endpoint the address of a chat API, such as http://127.0.0.1:8000/v1?",
        Server => "the server's log says why",
        // The message says it.
        _ => return error.to_string(),
    };
    format!("{error}. What to do: {advice}")
}

#[cfg(test)]
mod tests {
    use domain::RetryAdvice;

    use super::*;

    #[test]
    fn an_answer_is_shown_by_its_first_lines_and_what_is_odd_about_it() {
        let mut reply = ChatReply::text("a\nb\nc\nd");
        let (level, message) = answered(&reply, Duration::from_millis(1500));
        assert_eq!(
            (level, message.as_str()),
            (Level::Ok, "`a / b / c` after 1.50 s; tokens: ? of the prompt, ? of the answer")
        );
        (reply.answer.text, reply.answer.finish_reason) = (String::new(), Some(FinishReason::Length));
        let (level, message) = answered(&reply, Duration::ZERO);
        assert!(level == Level::Warning && message.contains("raise --max-tokens"), "{message}");
    }

    #[test]
    fn a_refusal_comes_with_what_to_do() {
        let error = CallError::new(FailureCause::Unauthorized, RetryAdvice::No, "no key").with_status(401);
        let said = refused(&error);
        assert!(
            said.starts_with("unauthorized: HTTP 401: no key. What to do: ") && said.contains("--key-env")
        );
    }
}
