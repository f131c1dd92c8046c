//! Every fault does what it says, over a real socket, while the server stays healthy.

use crate::support::{Sim, ask, ask_stream, events};
use serde_json::{Value, json};
use vllm_sim::FaultKind;

const RUNNING: &str = r#"vllm:num_requests_running{engine="0",model_name="m"}"#;
const ABORTED: &str = r#"vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"}"#;

#[tokio::test]
async fn statuses_come_with_the_right_body() {
    for (code, field, kind) in [
        (400, "type", "BadRequestError"),
        (404, "type", "NotFoundError"),
        (429, "code", "rate_limit_exceeded"),
        (500, "type", "InternalServerError"),
        (503, "type", "Service Unavailable"),
    ] {
        let sim = Sim::failing(FaultKind::Status { code, retry_after_s: Some(7) }).await;
        let response = sim.chat(&ask("x")).await;
        assert_eq!(response.status(), code);
        assert_eq!(response.headers()["retry-after"], "7");
        assert_eq!(response.json::<Value>().await.unwrap()["error"][field], kind);
        assert_eq!(sim.get("/health").await.status(), 200);
    }
    let sim = Sim::failing(FaultKind::Status { code: 401, retry_after_s: None }).await;
    let response = sim.chat(&ask("x")).await;
    assert!(!response.headers().contains_key("retry-after"));
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "error": "Unauthorized" }));
    assert_eq!(sim.handle.stats().faults, 1);
}

#[tokio::test]
async fn a_hanging_request_counts_as_running_until_its_client_leaves() {
    for body in [ask("x"), ask_stream("x")] {
        let sim = Sim::failing(FaultKind::Hang).await;
        let (client, url) = (sim.client.clone(), sim.url("/v1/chat/completions"));
        let request = tokio::spawn(async move { client.post(url).json(&body).send().await });
        sim.until_metric(RUNNING, 1.0).await;
        assert_eq!(sim.get("/health").await.status(), 200);
        assert!(!request.is_finished());
        request.abort();
        sim.until_metric(RUNNING, 0.0).await;
        assert_eq!(sim.metric(ABORTED).await, 1.0);
    }
}

#[tokio::test]
async fn a_cut_stream_breaks_after_its_tokens() {
    for after_tokens in [0, 2] {
        let sim = Sim::failing(FaultKind::CutStream { after_tokens }).await;
        let mut heard = Vec::new();
        let error = match sim.try_post("/v1/chat/completions", &ask_stream("abcdefghijkl")).await {
            Ok(mut response) => loop {
                match response.chunk().await {
                    Ok(Some(chunk)) => heard.extend_from_slice(&chunk),
                    Ok(None) => panic!("a clean end"),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        assert!(!error.is_timeout());
        let tokens =
            if heard.is_empty() { 0 } else { events(std::str::from_utf8(&heard).unwrap()).len() - 1 };
        assert_eq!(tokens as u32, after_tokens);
        // The next connection is as good as ever.
        assert_eq!(sim.get("/health").await.status(), 200);
    }
}

#[tokio::test]
async fn without_streaming_a_cut_truncates_the_body() {
    let sim = Sim::failing(FaultKind::CutStream { after_tokens: 2 }).await;
    let mut response = sim.chat(&ask("abcdefghijkl")).await;
    let announced = response.content_length().unwrap() as usize;
    let mut heard = 0;
    while let Ok(chunk) = response.chunk().await {
        heard += chunk.expect("the body must not end cleanly").len();
    }
    assert_eq!(heard, announced / 2);
}

#[tokio::test]
async fn a_reset_gives_no_reply() {
    let sim = Sim::failing(FaultKind::Reset).await;
    assert!(sim.try_post("/v1/chat/completions", &ask("x")).await.is_err());
    assert_eq!(sim.handle.stats().requests, 1);
}

#[tokio::test]
async fn another_model_reports_itself() {
    let sim = Sim::failing(FaultKind::WrongModel { name: "other".into() }).await;
    let reply: Value = sim.chat(&ask("x")).await.json().await.unwrap();
    assert_eq!((&reply["model"], &reply["choices"][0]["message"]["content"]), (&json!("other"), &json!("x")));
    assert!(sim.chat(&ask_stream("x")).await.text().await.unwrap().contains(r#""model":"other""#));
}

#[tokio::test]
async fn garbage_is_neither_json_nor_text() {
    let sim = Sim::failing(FaultKind::Garbage).await;
    let response = sim.chat(&ask("x")).await;
    assert_eq!(response.status(), 200);
    let bytes = response.bytes().await.unwrap();
    assert!(std::str::from_utf8(&bytes).is_err() && serde_json::from_slice::<Value>(&bytes).is_err());
}

#[tokio::test]
async fn an_aborted_answer_is_half_of_it() {
    let sim = Sim::failing(FaultKind::Abort).await;
    let reply: Value = sim.chat(&ask("abcdefghijklmnop")).await.json().await.unwrap();
    let choice = &reply["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("abort"), &json!("abcdefgh"))
    );
    assert_eq!(sim.metric(ABORTED).await, 1.0);
}
