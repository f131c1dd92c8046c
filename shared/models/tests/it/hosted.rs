//! The connectors of Anthropic and Gemini against servers with their answers.

use crate::support::{hosted, question, request};
use domain::{FailureCause, FinishReason, Message, ModelSpec, RetryAdvice, Role, Usage};
use harness::canned_server::{CannedAnswer, CannedServer};
use models::{ChatModel, ChatRequest, Hosted, HttpClient, Secret};
use serde_json::json;

const KEY: &str = "sk-0123456789-very-secret";

fn anthropic(server: &CannedServer) -> Box<dyn ChatModel> {
    let spec = hosted(&server.url, "claude-x");
    Box::new(Hosted::anthropic(spec, Secret::new(KEY), &HttpClient::new()).unwrap())
}

fn gemini(server: &CannedServer) -> Box<dyn ChatModel> {
    let spec = hosted(&server.url, "gemini-x");
    Box::new(Hosted::gemini(spec, Secret::new(KEY), &HttpClient::new()).unwrap())
}

type Connector = fn(&CannedServer) -> Box<dyn ChatModel>;

/// Both connectors, by the same rules.
const CONNECTORS: [Connector; 2] = [anthropic, gemini];

/// A conversation of two rounds with every sampling field that both know.
fn conversation() -> ChatRequest {
    let system = Message { role: Role::System, content: "be brief".into() };
    let mut asked = request(vec![system, Message::user("a"), Message::assistant("b"), Message::user("c")]);
    asked.sampling.temperature = Some(0.5);
    asked.sampling.top_p = Some(0.9);
    asked.sampling.top_k = Some(5);
    asked.sampling.max_tokens = Some(100);
    asked.sampling.stop = vec!["END".into()];
    asked.sampling.reasoning_effort = Some("low".into());
    asked
}

#[tokio::test]
async fn anthropic_asks_and_reads() {
    let body = json!({"id": "msg", "type": "message", "role": "assistant", "model": "claude-x-1",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "y"}, {"type": "text", "text": "es"}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5, "output_tokens": 6}});
    let server = CannedServer::start(vec![CannedAnswer::json(200, &body.to_string())]).await;
    let reply = anthropic(&server).complete(conversation()).await.unwrap();
    assert_eq!(reply.answer.text, "yes");
    assert_eq!(reply.answer.reasoning.as_deref(), Some("hm"));
    assert_eq!(reply.answer.finish_reason, Some(FinishReason::Stop));
    let usage = Usage {
        prompt_tokens: Some(12),
        completion_tokens: Some(6),
        cached_tokens: Some(4),
        reasoning_tokens: None,
    };
    assert_eq!(reply.answer.usage, usage);
    assert_eq!(reply.reported_model.as_deref(), Some("claude-x-1"));

    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/messages");
    assert_eq!(
        (asked.header("x-api-key"), asked.header("anthropic-version")),
        (Some(KEY), Some("2023-06-01"))
    );
    let kept = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(
        asked.body,
        json!({"model": "claude-x", "max_tokens": 100, "system": kept("be brief"), "temperature": 0.5, "top_p": 0.9, "top_k": 5,
            "messages": [{"role": "user", "content": kept("a")}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
            "stop_sequences": ["END"], "output_config": {"effort": "low"}}),
        "what follow-ups begin with is marked for the prompt cache"
    );
}

#[tokio::test]
async fn an_empty_text_is_marked_for_no_cache() {
    let body = json!({"content": [], "stop_reason": "end_turn"});
    let server = CannedServer::start(vec![CannedAnswer::json(200, &body.to_string())]).await;
    anthropic(&server).complete(question("")).await.unwrap();
    assert_eq!(server.asked()[0].body["messages"], json!([{"role": "user", "content": ""}]));
}

#[tokio::test]
async fn gemini_asks_and_reads() {
    let body = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "hm", "thought": true}, {"text": "y"}, {"text": "es"}]},
            "finishReason": "MAX_TOKENS", "index": 0}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 7, "totalTokenCount": 12},
        "modelVersion": "gemini-x-001"});
    let server = CannedServer::start(vec![CannedAnswer::json(200, &body.to_string())]).await;
    let reply = gemini(&server).complete(conversation()).await.unwrap();
    assert_eq!(reply.answer.text, "yes");
    assert_eq!(reply.answer.reasoning.as_deref(), Some("hm"));
    assert_eq!(reply.answer.finish_reason, Some(FinishReason::Length));
    let usage = Usage {
        prompt_tokens: Some(3),
        completion_tokens: Some(9),
        cached_tokens: None,
        reasoning_tokens: Some(7),
    };
    assert_eq!(reply.answer.usage, usage);
    assert_eq!(reply.reported_model.as_deref(), Some("gemini-x-001"));

    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1beta/models/gemini-x:generateContent");
    assert_eq!(asked.header("x-goog-api-key"), Some(KEY));
    let part = |text: &str| json!([{"text": text}]);
    assert_eq!(
        asked.body,
        json!({"contents": [{"role": "user", "parts": part("a")}, {"role": "model", "parts": part("b")}, {"role": "user", "parts": part("c")}],
            "systemInstruction": {"parts": part("be brief")},
            "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5, "topP": 0.9, "topK": 5, "stopSequences": ["END"],
                "seed": 42, "thinkingConfig": {"thinkingLevel": "low"}}})
    );
}

#[tokio::test]
async fn a_model_without_seed_is_sent_none() {
    let body = json!({"candidates": [{}]}).to_string();
    let server = CannedServer::start(vec![CannedAnswer::json(200, &body)]).await;
    let spec = ModelSpec { send_seed: Some(false), ..hosted(&server.url, "gemini-x") };
    let model = Hosted::gemini(spec, Secret::new(KEY), &HttpClient::new()).unwrap();
    model.complete(question("?")).await.unwrap();
    assert_eq!(server.asked()[0].body["generationConfig"].get("seed"), None);
}

#[tokio::test]
async fn what_a_filter_withholds_is_an_empty_answer() {
    let blocked = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "Output blocked by content filtering policy"}});
    for (connector, status, body) in [
        (CONNECTORS[0], 200, json!({"content": [], "stop_reason": "refusal"})),
        (CONNECTORS[0], 400, blocked),
        (
            CONNECTORS[1],
            200,
            json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}),
        ),
        (CONNECTORS[1], 200, json!({"candidates": [{"finishReason": "SAFETY"}]})),
    ] {
        let server = CannedServer::start(vec![CannedAnswer::json(status, &body.to_string())]).await;
        let reply = connector(&server).complete(question("?")).await.unwrap();
        assert_eq!(reply.answer.text, "");
        assert_eq!(reply.answer.finish_reason, Some(FinishReason::ContentFilter), "{body}");
    }
}

#[tokio::test]
async fn counts_of_tokens_that_cannot_be_are_as_none() {
    for (connector, body) in [
        (
            CONNECTORS[0],
            json!({"content": [], "usage": {"input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX,
                "output_tokens": u64::MAX}}),
        ),
        (
            CONNECTORS[1],
            json!({"candidates": [{}], "usageMetadata": {"promptTokenCount": u64::MAX,
                "candidatesTokenCount": u64::MAX, "thoughtsTokenCount": u64::MAX}}),
        ),
    ] {
        let server = CannedServer::start(vec![CannedAnswer::json(200, &body.to_string())]).await;
        let reply = connector(&server).complete(question("?")).await.unwrap();
        assert_eq!(reply.answer.usage, Usage::default(), "{body}");
    }
}

#[tokio::test]
async fn refusals_keep_the_servers_delay() {
    for connector in CONNECTORS {
        let error = format!(r#"{{"error":{{"type":"overloaded_error","message":"{KEY} must wait"}}}}"#);
        let server =
            CannedServer::start(vec![CannedAnswer::json(503, &error).header("retry-after", "4")]).await;
        let model = connector(&server);
        let error = model.complete(question("?")).await.unwrap_err();
        let after = Some(std::time::Duration::from_secs(4));
        assert_eq!(
            (error.cause, error.retry),
            (FailureCause::Overloaded, RetryAdvice::RateLimited { after })
        );
        assert_eq!(error.message, "[key] must wait");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_a_fault_of_the_server() {
    for connector in CONNECTORS {
        let server =
            CannedServer::start(vec![CannedAnswer::json(200, "{}"), CannedAnswer::json(200, "<html>")]).await;
        let model = connector(&server);
        for _ in 0..2 {
            let error = model.complete(question("?")).await.unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::Transient), "{error}");
        }
    }
}

#[tokio::test]
async fn sampling_that_a_provider_does_not_have_is_refused_before_sending() {
    for connector in CONNECTORS {
        let server = CannedServer::start(vec![]).await;
        let mut asked = question("?");
        asked.sampling.min_p = Some(0.1);
        let error = connector(&server).complete(asked).await.unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No));
        assert!(error.message.contains("min_p"), "{error}");
        assert!(server.asked().is_empty());
    }
}
