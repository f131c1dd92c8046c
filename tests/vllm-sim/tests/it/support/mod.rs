//! A simulator on a free port and a client for it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;

use serde_json::{Value, json};
use vllm_sim::answers::AnswerConfig;
use vllm_sim::{
    AnswerKey, FaultKind, FaultPlan, FaultRule, FaultWhen, KnownCase, ModelConfig, Profile, SimConfig,
    SimHandle, Simulator,
};

/// A running simulator and a client.
pub(crate) struct Sim {
    pub(crate) handle: SimHandle,
    pub(crate) client: reqwest::Client,
}

/// Knows every exercise that begins with "solve".
pub(crate) struct Key;

impl AnswerKey for Key {
    fn solve(&self, first_prompt: &str) -> Option<KnownCase> {
        let rest = first_prompt.strip_prefix("solve ")?;
        Some(KnownCase {
            right: format!("right {rest}"),
            wrong: format!("wrong {rest}"),
            malformed: format!("malformed {rest}"),
        })
    }
}

impl Sim {
    pub(crate) async fn start(config: SimConfig) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let handle = Simulator::new(config).unwrap().answer_key(Arc::new(Key)).serve(listener).unwrap();
        // A client needs a crypto provider even when it only ever speaks plain HTTP; a second installation fails and is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { handle, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// One echoing model "m".
    pub(crate) async fn echo() -> Self {
        Self::start(SimConfig::new(vec![echo_model()])).await
    }

    /// The same with one fault for every request.
    pub(crate) async fn failing(fault: FaultKind) -> Self {
        let mut config = SimConfig::new(vec![echo_model()]);
        config.faults = FaultPlan { seed: 0, rules: vec![FaultRule::new(FaultWhen::Always, fault)] };
        Self::start(config).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.handle.addr())
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(self.url(path)).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.try_post(path, body).await.unwrap()
    }

    pub(crate) async fn try_post(&self, path: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
        self.client.post(self.url(path)).json(body).send().await
    }

    pub(crate) async fn chat(&self, body: &Value) -> reqwest::Response {
        self.post("/v1/chat/completions", body).await
    }

    /// The value of a series on `/metrics`, by its name and labels as written.
    pub(crate) async fn metric(&self, series: &str) -> f64 {
        let text = self.get("/metrics").await.text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    }

    /// Waits until a series has a value. The server changes it by an event of its own, so this ends.
    pub(crate) async fn until_metric(&self, series: &str, value: f64) {
        while self.metric(series).await != value {
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn echo_model() -> ModelConfig {
    ModelConfig { answers: AnswerConfig::Echo {}, ..ModelConfig::new("m") }
}

pub(crate) fn fixed(round_ms: f64) -> Profile {
    Profile::Fixed { round_ms }
}

/// A chat request of one prompt for "m".
pub(crate) fn ask(prompt: &str) -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": prompt }] })
}

/// The same, streamed with usage.
pub(crate) fn ask_stream(prompt: &str) -> Value {
    let mut body = ask(prompt);
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    body
}

/// The keys of an object in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

/// The payloads of a stream of server-sent events; panics at anything else in it.
pub(crate) fn events(text: &str) -> Vec<&str> {
    let body = text.strip_suffix("\n\n").expect("a stream ends with an empty line");
    body.split("\n\n")
        .map(|event| event.strip_prefix("data: ").expect("an event begins with data:"))
        .collect()
}
