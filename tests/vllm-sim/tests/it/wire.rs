//! The interface is vLLM's: paths, statuses, headers, fields, wording. The expected lists were read off a vLLM 0.32.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Sim, ask, ask_stream, echo_model, events, fixed, keys};
use serde_json::{Value, json};
use vllm_sim::SimConfig;

#[tokio::test]
async fn chat_replies_have_vllms_fields() {
    let sim = Sim::echo().await;
    let response = sim.chat(&ask("Hello there")).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["server"], "uvicorn");
    assert!(response.headers().contains_key("date"));
    let reply: Value = response.json().await.unwrap();
    let top = [
        "id",
        "object",
        "created",
        "model",
        "choices",
        "service_tier",
        "system_fingerprint",
        "usage",
        "prompt_logprobs",
        "prompt_token_ids",
        "prompt_text",
        "kv_transfer_params",
        "ec_transfer_params",
        "metrics",
    ];
    assert_eq!(keys(&reply), top);
    let choice = &reply["choices"][0];
    let fields =
        ["index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids", "routed_experts"];
    assert_eq!(keys(choice), fields);
    let fields = ["role", "content", "refusal", "annotations", "audio", "function_call", "reasoning"];
    assert_eq!(keys(&choice["message"]), fields);
    let fields = [
        "prompt_tokens",
        "total_tokens",
        "completion_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
    ];
    assert_eq!(keys(&reply["usage"]), fields);
    assert_eq!(reply["object"], "chat.completion");
    assert_eq!(choice["message"]["content"], "Hello there");
    assert_eq!(choice["finish_reason"], "stop");
    // 9 + 11 + 1 bytes of prompt and 14 of the invitation make 9 tokens; 11 bytes of answer make 3.
    assert_eq!(reply["usage"]["prompt_tokens"], 9);
    assert_eq!(reply["usage"]["completion_tokens"], 3);
    assert_eq!(reply["usage"]["total_tokens"], 12);
}

#[tokio::test]
async fn streams_have_vllms_events() {
    let sim = Sim::echo().await;
    let response = sim.chat(&ask_stream("Hello there")).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.headers()["transfer-encoding"], "chunked");
    let text = response.text().await.unwrap();
    let mut events = events(&text);
    assert_eq!(events.pop(), Some("[DONE]"));
    let events: Vec<Value> = events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let [first, one, two, last, usage] = &events[..] else { panic!("{events:#?}") };
    let common = ["id", "object", "created", "model", "choices"];
    assert_eq!(keys(first), [&common[..], &["prompt_token_ids", "prompt_text"]].concat());
    assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert_eq!(keys(&first["choices"][0]), ["index", "delta", "logprobs", "finish_reason"]);
    for middle in [one, two] {
        assert_eq!(keys(middle), common);
        assert_eq!(keys(&middle["choices"][0]), ["index", "delta", "logprobs", "finish_reason", "token_ids"]);
        assert_eq!(middle["choices"][0]["finish_reason"], Value::Null);
    }
    let fields = ["index", "delta", "logprobs", "finish_reason", "stop_reason", "token_ids"];
    assert_eq!(keys(&last["choices"][0]), fields);
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(keys(usage), [&common[..], &["usage", "system_fingerprint"]].concat());
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"], json!({ "prompt_tokens": 9, "total_tokens": 12, "completion_tokens": 3 }));
    let said: String =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(said, "Hello there");
    assert!(
        events.iter().all(|event| event["id"] == first["id"] && event["object"] == "chat.completion.chunk")
    );
}

#[tokio::test]
async fn errors_have_vllms_three_shapes_and_wording() {
    let mut model = echo_model();
    model.max_model_len = 1024;
    let mut config = SimConfig::new(vec![model]);
    config.api_key = Some("secret".into());
    let mut sim = Sim::start(config).await;
    let unauthorized = sim.chat(&ask("x")).await;
    assert_eq!(unauthorized.status(), 401);
    assert_eq!(unauthorized.json::<Value>().await.unwrap(), json!({ "error": "Unauthorized" }));
    assert_eq!(sim.get("/health").await.status(), 200);
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("authorization", "Bearer secret".parse().unwrap());
    sim.client = reqwest::Client::builder().no_proxy().default_headers(headers).build().unwrap();

    let missing = sim.get("/v1/nothing").await;
    assert_eq!(missing.status(), 404);
    assert_eq!(missing.json::<Value>().await.unwrap(), json!({ "detail": "Not Found" }));
    let wrong_method = sim.get("/v1/chat/completions").await;
    assert_eq!(
        (wrong_method.status().as_u16(), &wrong_method.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    assert_eq!(wrong_method.json::<Value>().await.unwrap(), json!({ "detail": "Method Not Allowed" }));

    let with = |field: &str, value: Value| {
        let mut body = ask("x");
        body[field] = value;
        body
    };
    let long = "x".repeat(4096);
    let cases = [
        (
            with("model", json!("nope")),
            404,
            "NotFoundError",
            json!("model"),
            "The model `nope` does not exist. Valid aliases: m.",
        ),
        (
            with("max_tokens", json!(99999)),
            400,
            "BadRequestError",
            json!("max_tokens"),
            "max_tokens=99999 cannot be greater than max_model_len=1024. Please request fewer output tokens. (parameter=max_tokens, value=99999)",
        ),
        (
            with("temperature", json!(-1)),
            400,
            "BadRequestError",
            json!("temperature"),
            "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
        ),
        (
            ask(&long),
            400,
            "BadRequestError",
            json!("input_tokens"),
            "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1025)",
        ),
        (
            with("max_tokens", json!(1020)),
            400,
            "BadRequestError",
            json!("input_tokens"),
            "This model's maximum context length is 1024 tokens. However, you requested 1020 output tokens and your prompt contains at least 5 input tokens, for a total of at least 1025 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=5)",
        ),
        (
            with("n", json!(2)),
            400,
            "BadRequestError",
            json!("n"),
            "The simulator gives one choice: n must be 1. (parameter=n, value=2)",
        ),
    ];
    for (body, status, kind, param, message) in cases {
        let response = sim.chat(&body).await;
        assert_eq!(response.status(), status);
        let error: Value = response.json().await.unwrap();
        assert_eq!(keys(&error["error"]), ["message", "type", "param", "code"]);
        let expected = json!({ "message": message, "type": kind, "param": param, "code": status });
        assert_eq!(error["error"], expected);
    }
    for (body, param) in [("{\"model\":}", "body.9"), ("{\"model\":\"m\"}", "body.messages")] {
        let response = sim.client.post(sim.url("/v1/chat/completions")).body(body).send().await.unwrap();
        assert_eq!(response.status(), 400);
        let error: Value = response.json().await.unwrap();
        assert_eq!(
            (&error["error"]["type"], &error["error"]["param"]),
            (&json!("Bad Request"), &json!(param))
        );
    }
    assert_eq!(sim.handle.stats().answered, 0);
}

#[tokio::test]
async fn stop_strings_end_answers_as_at_vllm() {
    let sim = Sim::echo().await;
    let mut body = ask("yes. STOP no");
    body["stop"] = json!(["STOP"]);
    let reply: Value = sim.chat(&body).await.json().await.unwrap();
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"]["content"], "yes. ");
    assert_eq!((&choice["finish_reason"], &choice["stop_reason"]), (&json!("stop"), &json!("STOP")));
    assert_eq!(reply["usage"]["completion_tokens"], 2);
    body["stream"] = json!(true);
    let text = sim.chat(&body).await.text().await.unwrap();
    assert!(text.contains(r#""stop_reason":"STOP""#), "{text}");
}

#[tokio::test]
async fn the_small_endpoints_answer() {
    let mut second = echo_model();
    second.name = "second".into();
    let sim = Sim::start(SimConfig::new(vec![echo_model(), second])).await;
    assert_eq!(sim.get("/health").await.text().await.unwrap(), "");
    assert_eq!(sim.get("/version").await.json::<Value>().await.unwrap(), json!({ "version": "0.32.0" }));
    let models: Value = sim.get("/v1/models").await.json().await.unwrap();
    assert_eq!(models["object"], "list");
    let fields = ["id", "object", "created", "owned_by", "root", "parent", "max_model_len", "permission"];
    assert_eq!(keys(&models["data"][0]), fields);
    assert_eq!(
        (&models["data"][1]["id"], &models["data"][1]["max_model_len"]),
        (&json!("second"), &json!(32768))
    );
    let body = json!({ "model": "m", "prompt": "abcdabcdxy" });
    let tokens: Value = sim.post("/tokenize", &body).await.json().await.unwrap();
    assert_eq!(keys(&tokens), ["count", "max_model_len", "tokens", "token_strs"]);
    assert_eq!((&tokens["count"], &tokens["tokens"][0]), (&json!(3), &tokens["tokens"][1]));
    // Tokenising a conversation counts as its usage does.
    let count: Value = sim.post("/tokenize", &ask("Hello there")).await.json().await.unwrap();
    assert_eq!(count["count"], 9);
}

#[tokio::test]
async fn metrics_have_vllms_names_and_are_valid_prometheus_text() {
    let mut paced = echo_model();
    paced.name = "with \"quotes\"".into();
    paced.profile = fixed(0.0);
    let sim = Sim::start(SimConfig::new(vec![echo_model(), paced])).await;
    sim.chat(&ask("Hello there")).await;
    let response = sim.get("/metrics").await;
    assert_eq!(response.headers()["content-type"], "text/plain; version=1.0.0; charset=utf-8");
    let text = response.text().await.unwrap();
    let families = families(&text);

    let gauges = "num_requests_running num_requests_waiting kv_cache_usage_perc";
    let counters = "prefix_cache_queries prefix_cache_hits prompt_tokens generation_tokens request_success";
    let mut expected = BTreeSet::new();
    expected.extend(gauges.split(' ').map(|name| (format!("vllm:{name}"), "gauge")));
    expected.extend(counters.split(' ').map(|name| (format!("vllm:{name}_total"), "counter")));
    let got: BTreeSet<_> = families.iter().map(|(name, kind)| (name.clone(), kind.as_str())).collect();
    assert_eq!(got, expected);

    let plain = r#"{engine="0",model_name="m"}"#;
    for (series, value) in [
        (format!("vllm:prompt_tokens_total{plain}"), "9.0"),
        (format!("vllm:generation_tokens_total{plain}"), "3.0"),
        (r#"vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"}"#.into(), "1.0"),
        (r#"vllm:num_requests_running{engine="0",model_name="with \"quotes\""}"#.into(), "0.0"),
    ] {
        let line = format!("\n{series} {value}\n");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

/// Reads the Prometheus text format strictly and returns the families and their types.
fn families(text: &str) -> BTreeMap<String, String> {
    let (mut families, mut current, mut seen) = (BTreeMap::new(), String::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            current = rest.split(' ').next().unwrap().to_owned();
            assert!(rest.len() > current.len() + 1, "no help: {line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "HELP and TYPE belong together");
            assert!(families.insert(current.clone(), kind.to_owned()).is_none(), "{name} comes twice");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap() >= 0.0);
            let name = series.split('{').next().unwrap();
            let suffix =
                name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{name} is not of {current}"));
            assert!(suffix.is_empty(), "{line}");
            assert!(seen.insert(series.to_owned()), "{series} comes twice");
        }
    }
    families
}
