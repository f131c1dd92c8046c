//! A server whose list of models is a row of [`LISTS`](crate::quirks::LISTS), and whose chat says what the test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::quirks::ListQuirk;

/// What a chat answers: a status and a body, of the number of the question, from 1, and of the model that is asked for.
pub type ChatAnswers = fn(usize, &str) -> (u16, Value);

/// A running server. It stops when dropped.
pub struct ListingServer {
    url: String,
    asked: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl ListingServer {
    /// Starts it on a free port.
    pub fn start(list: &'static ListQuirk, answers: ChatAnswers) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        let respond = async move |request: Request<Body>| {
            let (head, body) = request.into_parts();
            let answer = |status: u16, kind: &str, body: String| {
                Response::builder()
                    .status(status)
                    .header("content-type", kind)
                    .body(Body::from(body))
                    .unwrap()
            };
            if head.method == Method::GET {
                return match head.uri.path().ends_with("/models") {
                    true => answer(list.status, list.kind, list.body.to_owned()),
                    false => answer(404, "text/plain", String::new()),
                };
            }
            let body = to_bytes(body, 1 << 20).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let (status, body) = answers(number, body["model"].as_str().unwrap_or_default());
            answer(status, "application/json", body.to_string())
        };
        let url = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/v1", listener.local_addr().unwrap());
            tokio::spawn(async move { axum::serve(listener, Router::new().fallback(respond)).await });
            url
        });
        Self { url, asked, _runtime: runtime }
    }

    /// Base URL for `--endpoint`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Questions so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An answer of this text by a model of this name.
pub fn answered(model: &str, text: &str) -> (u16, Value) {
    let message = json!({"role": "assistant", "content": text});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    (
        200,
        json!({"id": "c", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}),
    )
}

/// A refusal with this status.
pub fn refused(status: u16, message: &str) -> (u16, Value) {
    (status, json!({"error": {"message": message}}))
}
