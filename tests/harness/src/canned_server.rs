//! A server on loopback that gives the answers set by a test, to the byte and in order: what no honest server would send. One
//! that answers like vLLM is in [`sim_server`](crate::sim_server).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// One answer of the server.
pub struct CannedAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
}

impl CannedAnswer {
    /// A JSON answer.
    pub fn json(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: Body::from(body.to_owned()),
        }
    }

    /// Bytes of this type.
    pub fn typed(kind: &str, body: &[u8]) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            body: Body::from(body.to_owned()),
        }
    }

    /// An answer as it was captured from a server: status line, headers, empty line, body.
    pub fn captured(text: &str) -> Self {
        let (head, body) = text.split_once("\n\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self::json(status, body.trim_end())
    }

    /// A stream that sends these chunks and ends as `end` says.
    pub fn stream(chunks: Vec<Vec<u8>>, end: StreamEnd) -> Self {
        let chunks = stream::iter(chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))));
        let body = match end {
            StreamEnd::Proper => Body::from_stream(chunks),
            StreamEnd::Cut => {
                let cut = stream::once(async {
                    // The server flushes what it has whenever the body lets it wait; then comes the cut.
                    tokio::task::yield_now().await;
                    Err(std::io::Error::other("cut"))
                });
                Body::from_stream(chunks.chain(cut))
            }
            StreamEnd::Silence => Body::from_stream(chunks.chain(stream::pending())),
        };
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream; charset=utf-8".to_owned())],
            body,
        }
    }

    /// A stream of events, one chunk each, ended properly.
    pub fn events(events: &[&str]) -> Self {
        Self::stream(events.iter().map(|event| sse(event)).collect(), StreamEnd::Proper)
    }

    /// The same answer with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same answer with this status.
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

/// How a stream ends.
#[derive(Clone, Copy)]
pub enum StreamEnd {
    /// As HTTP wants it.
    Proper,
    /// The connection is cut.
    Cut,
    /// Never: nothing more comes.
    Silence,
}

/// One event as bytes.
pub fn sse(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// What the server was asked.
#[derive(Clone, Debug)]
pub struct CannedRequest {
    pub method: String,
    pub path: String,
    /// What the address has after its `?`.
    pub query: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// The client's side of the connection.
    pub from: SocketAddr,
}

impl CannedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Default)]
struct CannedState {
    script: Arc<Mutex<VecDeque<CannedAnswer>>>,
    /// Once the script is over, answer with the question itself.
    echo: bool,
    asked: Arc<Mutex<Vec<CannedRequest>>>,
}

/// A server that gives its answers in order, whatever it is asked. It lives as long as the test's runtime.
pub struct CannedServer {
    pub url: String,
    shared: CannedState,
}

impl CannedServer {
    /// Starts it on a free port.
    pub async fn start(script: Vec<CannedAnswer>) -> Self {
        Self::serve(CannedState { script: Arc::new(Mutex::new(script.into())), ..CannedState::default() })
            .await
    }

    /// Starts one that answers every chat with its last message, in one event.
    pub async fn echo() -> Self {
        Self::serve(CannedState { echo: true, ..CannedState::default() }).await
    }

    async fn serve(shared: CannedState) -> Self {
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { url, shared }
    }

    /// How many of its answers nobody has asked for.
    pub fn left(&self) -> usize {
        self.shared.script.lock().unwrap().len()
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<CannedRequest> {
        self.shared.asked.lock().unwrap().clone()
    }
}

async fn answer(
    State(shared): State<CannedState>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let canned = match shared.script.lock().unwrap().pop_front() {
        Some(canned) => canned,
        None if shared.echo => echo(&body),
        None => CannedAnswer::json(500, r#"{"error":{"message":"the script is over"}}"#),
    };
    shared.asked.lock().unwrap().push(CannedRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers: head.headers.iter().map(header).collect(),
        body,
        from,
    });
    let mut response = Response::builder().status(canned.status);
    for (name, value) in canned.headers {
        response = response.header(name, value);
    }
    response.body(canned.body).unwrap()
}

fn echo(body: &Value) -> CannedAnswer {
    let said = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let event = json!({"choices": [{"delta": {"content": said}, "finish_reason": "stop"}]}).to_string();
    CannedAnswer::events(&[&event, "[DONE]"])
}
