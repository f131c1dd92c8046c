//! The OpenAI-compatible connector against servers that behave and misbehave in every known way.

use std::time::Duration;

use crate::support::{question, request};
use domain::{FailureCause, FinishReason, Message, RetryAdvice, Role, TimeLimits};
use harness::canned_server::{CannedAnswer, CannedServer, StreamEnd, sse};
use models::chat::{ANSWER_BYTES_MAX, ANSWER_TOO_LARGE};
use models::{CallError, ChatModel, ChatReply, OpenAiCompatible, OpenAiConfig, Secret};
use serde_json::{Value, json};

const KEY: &str = "sk-0123456789-very-secret";

async fn model(server: &CannedServer, change: impl FnOnce(&mut OpenAiConfig)) -> OpenAiCompatible {
    let mut config = OpenAiConfig::new(&server.url, "tiny");
    config.key = Some(Secret::new(KEY));
    change(&mut config);
    OpenAiCompatible::new(config).unwrap()
}

/// Asks a streaming connector whose server gives this one answer.
async fn ask(canned: CannedAnswer) -> Result<ChatReply, CallError> {
    let server = CannedServer::start(vec![canned]).await;
    model(&server, |_| ()).await.complete(question("hello")).await
}

#[tokio::test]
async fn a_server_that_refuses_without_a_word_is_named_with_its_status() {
    let error = ask(CannedAnswer::json(422, " ")).await.unwrap_err().in_words();
    assert!(error.starts_with("HTTP 422 from http://127.0.0.1:"), "{error}");
    assert!(error.ends_with("/v1/chat/completions, without a message"), "{error}");
}

fn delta(content: &str) -> String {
    json!({"model": "tiny", "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": null}]})
        .to_string()
}

fn last(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": reason}]}).to_string()
}

fn whole(content: &Value, reason: &str) -> CannedAnswer {
    let body = json!({"model": "tiny", "system_fingerprint": "fp", "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": reason}]});
    CannedAnswer::json(200, &body.to_string())
}

const USAGE: &str = r#"{"model":"tiny","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3},"system_fingerprint":"fp"}"#;

#[tokio::test]
async fn a_stream_is_read_to_its_end() {
    let server = CannedServer::start(vec![
        CannedAnswer::events(&[
            &delta(""),
            &delta("Grüße, "),
            &delta("Welt"),
            &last("stop"),
            USAGE,
            "[DONE]",
        ]),
        CannedAnswer::events(&[&delta("again"), &last("length"), "[DONE]"]),
    ])
    .await;
    let model = model(&server, |_| ()).await;
    let reply = model.complete(question("hello")).await.unwrap();
    assert_eq!(reply.answer.text, "Grüße, Welt");
    assert_eq!(reply.answer.finish_reason, Some(FinishReason::Stop));
    assert_eq!(reply.answer.usage.prompt_tokens, Some(9));
    assert_eq!(reply.reported_model.as_deref(), Some("tiny"));
    assert_eq!(reply.system_fingerprint.as_deref(), Some("fp"));
    let again = model.complete(question("hello")).await.unwrap();
    assert_eq!(
        (again.answer.text.as_str(), again.answer.finish_reason),
        ("again", Some(FinishReason::Length))
    );

    let asked = &server.asked()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        asked.body,
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "stream": true,
            "stream_options": {"include_usage": true}, "max_tokens": 4096, "seed": 42})
    );
    assert_eq!(model.identity().endpoint.as_deref(), Some(format!("{}/v1", server.url).as_str()));
}

#[tokio::test]
async fn the_first_token_of_a_stream_is_told_and_none_of_an_answer_in_one_piece() {
    let streamed = CannedAnswer::events(&[&delta(""), &delta("yes"), &last("stop"), "[DONE]"]);
    let server = CannedServer::start(vec![streamed, whole(&json!("yes"), "stop")]).await;
    let model = model(&server, |_| ()).await;
    let asked = question("hello");
    for is_stream in [true, false] {
        let reply = model.complete(asked.clone()).await.unwrap();
        assert_eq!(reply.first_token.is_some(), is_stream);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_read() {
    let server = CannedServer::start(vec![whole(&json!("<think>hm</think>\nyes"), "stop")]).await;
    let model = model(&server, |config| {
        config.spec.stream = Some(false);
        config.spec.send_seed = Some(false);
        config
            .spec
            .request
            .extra_body
            .insert("chat_template_kwargs".into(), json!({"enable_thinking": false}));
    })
    .await;
    let mut asked = question("hello");
    asked.sampling.temperature = Some(0.5);
    asked.sampling.stop = vec!["END".into()];
    asked.sampling.max_tokens = Some(10);
    let reply = model.complete(asked).await.unwrap();
    assert_eq!(reply.answer.text, "yes");
    assert_eq!(reply.answer.reasoning.as_deref(), Some("hm"));
    assert_eq!(
        server.asked()[0].body,
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "stream": false,
            "temperature": 0.5, "max_tokens": 10, "stop": ["END"], "chat_template_kwargs": {"enable_thinking": false}})
    );
}

#[tokio::test]
async fn half_answers_are_never_answers() {
    for (canned, part) in [
        (CannedAnswer::stream(vec![sse(&delta("half"))], StreamEnd::Cut), "broke off"),
        (CannedAnswer::stream(vec![sse(&delta("half"))], StreamEnd::Proper), "without a finish reason"),
        (
            CannedAnswer::stream(
                vec![sse(&delta("half")), b"data: {\"choices\"".to_vec()],
                StreamEnd::Proper,
            ),
            "without a finish",
        ),
        (CannedAnswer::stream(vec![], StreamEnd::Proper), "without a finish reason"),
        (CannedAnswer::events(&[&delta("half"), &last("abort"), "[DONE]"]), "abort"),
        (whole(&json!("half"), "abort"), "abort"),
    ] {
        let error = ask(canned).await.unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::Aborted, RetryAdvice::Transient), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn an_answer_whose_finish_reason_came_is_complete_without_done() {
    for end in [StreamEnd::Proper, StreamEnd::Cut] {
        let stream = CannedAnswer::stream(vec![sse(&delta("yes")), sse(&last("stop"))], end);
        assert_eq!(ask(stream).await.unwrap().answer.text, "yes");
    }
}

#[tokio::test]
async fn invalid_utf8_is_a_fault_of_transport() {
    let mut bytes = sse(&delta("xx"));
    let at = bytes.windows(2).position(|pair| pair == b"xx").unwrap();
    bytes[at] = 0xff;
    let error =
        ask(CannedAnswer::stream(vec![bytes, sse(&last("stop"))], StreamEnd::Proper)).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::Transient));
}

#[tokio::test]
async fn stalls_are_noticed_wherever_they_happen() {
    let comment = b": still here\n\n".to_vec();
    let limits = |limits| serde_json::from_value::<TimeLimits>(limits).unwrap();
    let short = limits(json!({"first_token": "50ms", "between_tokens": "50ms"}));
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
    for (chunks, limit) in [
        (vec![], "first_token"),
        (vec![comment.clone()], "first_token"),
        // That a model is to answer is not yet an answer: behind it may be a queue.
        (vec![sse(role), sse(role)], "first_token"),
        (vec![sse(&delta("a"))], "between_tokens"),
        (vec![sse(&delta("a")), comment], "between_tokens"),
    ] {
        let server = CannedServer::start(vec![CannedAnswer::stream(chunks, StreamEnd::Silence)]).await;
        let error = model(&server, |config| config.spec.time_limits = short)
            .await
            .complete(question("?"))
            .await
            .unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::Timeout, RetryAdvice::Transient), "{error}");
        assert!(error.message.contains(&format!("50ms (`time_limits.{limit}` of model m)")), "{error}");
    }
    // After the finish reason nothing more is needed.
    let chunks = vec![sse(&delta("a")), sse(&last("stop"))];
    let server = CannedServer::start(vec![CannedAnswer::stream(chunks, StreamEnd::Silence)]).await;
    let limits = limits(json!({"between_tokens": "50ms"}));
    let reply = model(&server, |config| config.spec.time_limits = limits)
        .await
        .complete(question("?"))
        .await
        .unwrap();
    assert_eq!(reply.answer.text, "a");
}

#[tokio::test]
async fn the_deadline_ends_a_hanging_call() {
    for stream in [true, false] {
        let server = CannedServer::start(vec![CannedAnswer::stream(vec![], StreamEnd::Silence)]).await;
        let mut asked = question("?");
        asked.deadline = Duration::from_millis(50);
        let error = model(&server, |config| config.spec.stream = Some(stream))
            .await
            .complete(asked)
            .await
            .unwrap_err();
        assert_eq!(error.cause, FailureCause::Timeout);
    }
}

#[tokio::test]
async fn a_huge_answer_is_cut_and_still_an_answer() {
    let piece = delta(&"x".repeat(1 << 20));
    let many = (ANSWER_BYTES_MAX >> 20) + 2;
    let server = CannedServer::start(vec![
        CannedAnswer::stream(vec![sse(&piece); many], StreamEnd::Silence),
        whole(&json!("x".repeat(ANSWER_BYTES_MAX + 1)), "stop"),
    ])
    .await;
    let model = model(&server, |_| ()).await;
    for _ in 0..2 {
        let reply = model.complete(question("?")).await.unwrap();
        assert_eq!(reply.answer.text.len(), ANSWER_BYTES_MAX);
        assert_eq!(reply.answer.finish_reason, Some(FinishReason::Other(ANSWER_TOO_LARGE.into())));
    }
}

#[tokio::test]
async fn an_unreachable_endpoint_is_a_broken_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let model = OpenAiCompatible::new(OpenAiConfig::new(format!("http://{address}/v1"), "tiny")).unwrap();
    let error = model.complete(question("?")).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::Connection, RetryAdvice::Unreachable));
    assert!(error.message.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_count_of_tokens_that_cannot_be_is_as_none() {
    let body = json!({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": u64::MAX, "completion_tokens": 3}});
    let usage = ask(CannedAnswer::json(200, &body.to_string())).await.unwrap().answer.usage;
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (None, Some(3)));
}

#[tokio::test]
async fn roles_are_folded_when_the_model_wants_it() {
    let refusal = r#"{"error":{"message":"Only user and assistant roles are supported!","code":400}}"#;
    let server = CannedServer::start(vec![
        CannedAnswer::json(400, refusal),
        whole(&json!("one"), "stop"),
        whole(&json!("two"), "stop"),
    ])
    .await;
    let model = model(&server, |_| ()).await;
    let messages = vec![Message { role: Role::System, content: "be brief".into() }, Message::user("hello")];
    assert_eq!(model.complete(request(messages.clone())).await.unwrap().answer.text, "one");
    // Learnt: the second call is right at once.
    assert_eq!(model.complete(request(messages)).await.unwrap().answer.text, "two");
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    for folded in &asked[1..] {
        assert_eq!(folded.body["messages"], json!([{"role": "user", "content": "be brief\n\nhello"}]));
    }
}

#[tokio::test]
async fn a_refusal_that_folding_cannot_mend_is_final() {
    let refusal = r#"{"error":{"message":"Conversation roles must alternate user/assistant","code":400}}"#;
    let server = CannedServer::start(vec![CannedAnswer::json(400, refusal)]).await;
    let error = model(&server, |_| ()).await.complete(question("?")).await.unwrap_err();
    assert_eq!(error.cause, FailureCause::BadRequest);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn the_server_counts_where_the_context_may_be_short() {
    let server = CannedServer::start(vec![
        CannedAnswer::json(
            200,
            r#"{"object":"list","data":[{"id":"other"},{"id":"tiny","root":"/m","max_model_len":5000}]}"#,
        ),
        whole(&json!("fits surely"), "stop"),
        CannedAnswer::json(200, r#"{"count":1500,"max_model_len":5000,"tokens":[1,2]}"#),
        whole(&json!("cut"), "stop"),
        CannedAnswer::json(200, r#"{"count":5000,"max_model_len":5000,"tokens":[]}"#),
    ])
    .await;
    let model = model(&server, |_| ()).await;
    let served = model.probe().await.unwrap();
    assert_eq!((served[1].id.as_str(), served[1].max_model_len), ("tiny", Some(5000)));
    let reply = model.complete(question("short")).await.unwrap();
    assert_eq!(model.identity().provenance(Some(&reply)).max_tokens, Some(4851));
    model.complete(question(&"long ".repeat(1000))).await.unwrap();
    let error = model.complete(question(&"long ".repeat(2000))).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::ContextExceeded, RetryAdvice::No));
    let asked = server.asked();
    let paths: Vec<_> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/v1/models", "/v1/chat/completions", "/tokenize", "/v1/chat/completions", "/tokenize"]
    );
    assert_eq!(asked[1].body["max_tokens"], 4851, "what a byte for each token leaves of the context");
    assert_eq!(asked[3].body["max_tokens"], 3500);
}

#[tokio::test]
async fn a_probe_reports_what_the_server_says() {
    let server = CannedServer::start(vec![
        CannedAnswer::json(401, r#"{"error":"Unauthorized"}"#),
        CannedAnswer::json(200, "<html>"),
    ])
    .await;
    let model = model(&server, |_| ()).await;
    assert_eq!(model.probe().await.unwrap_err().cause, FailureCause::Unauthorized);
    assert_eq!(model.probe().await.unwrap_err().cause, FailureCause::Server);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = CannedServer::echo().await;
    let model = model(&server, |_| ()).await;
    for _ in 0..3 {
        model.complete(question("?")).await.unwrap();
    }
    let connections: std::collections::BTreeSet<_> = server.asked().iter().map(|asked| asked.from).collect();
    assert_eq!(connections.len(), 1);
}

fn named(model: &Value) -> CannedAnswer {
    let choices = json!([{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]);
    CannedAnswer::json(200, &json!({"model": model, "choices": choices}).to_string())
}

#[tokio::test]
async fn an_answer_of_another_model_is_a_fault_of_the_server() {
    let listed =
        CannedAnswer::json(200, r#"{"data":[{"id":"tiny","root":"/tiny"},{"id":"large","root":"/large"}]}"#);
    let server = CannedServer::start(vec![named(&json!("large")), listed]).await;
    let error = model(&server, |_| ()).await.complete(question("hello")).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::WrongModel, RetryAdvice::No));
    assert!(error.message.contains("asked for model tiny, answered by large"), "{error}");
    assert!(error.message.contains(r#"`answers_as = ["large"]`"#), "{error}");
}

#[tokio::test]
async fn a_model_that_has_answered_right_is_asked_again_where_another_answers() {
    let server = CannedServer::start(vec![
        named(&json!("tiny")),
        named(&json!("large")),
        CannedAnswer::json(404, "{}"),
    ])
    .await;
    let model = model(&server, |_| ()).await;
    model.complete(question("hello")).await.unwrap();
    let error = model.complete(question("hello")).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::WrongModel, RetryAdvice::Transient));
    assert!(!error.message.contains("answers_as"), "{error}");
}

#[tokio::test]
async fn a_second_name_of_the_same_model_is_learnt_from_the_server() {
    let listed =
        CannedAnswer::json(200, r#"{"data":[{"id":"first","root":"/tiny"},{"id":"tiny","root":"/tiny"}]}"#);
    let first = || named(&json!("first"));
    let server = CannedServer::start(vec![first(), listed, first(), named(&Value::Null)]).await;
    let model = model(&server, |_| ()).await;
    for _ in 0..3 {
        assert_eq!(model.complete(question("hello")).await.unwrap().answer.text, "yes");
    }
    assert_eq!(server.asked().len(), 4, "the list is asked for once");
}
