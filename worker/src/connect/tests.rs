use harness::canned_server::{CannedAnswer, CannedServer};
use models::ChatRequest;

use super::*;

fn spec(json: serde_json::Value) -> ModelSpec {
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_found_server_comes_before_the_address_of_the_description() {
    let spec =
        spec(serde_json::json!({"label": "m", "connector": "openai-compatible", "endpoint": "http://b/v1"}));
    let found = FoundServer { endpoint: "http://a:1/v1".to_owned(), key: None, context_tokens: Some(4096) };
    let connectors = Connectors::default();
    let at = |server| {
        let connected = connectors.connect(Ask::Chat, &spec, server).unwrap();
        let context = connected.listing.unwrap().context_tokens();
        (connected.model.identity().endpoint.clone().unwrap(), context)
    };
    assert_eq!(at(Some(&found)), ("http://a:1/v1".to_owned(), Some(4096)));
    assert_eq!(at(None), ("http://b/v1".to_owned(), None));
}

#[test]
fn what_is_missing_is_named() {
    let error = |json| {
        Connectors::default().connect(Ask::Chat, &spec(json), None).map(|_| ()).unwrap_err().to_string()
    };
    let no_endpoint = error(serde_json::json!({"label": "m", "connector": "openai-compatible"}));
    assert!(no_endpoint.contains("model `m`: it has no `endpoint`"), "{no_endpoint}");
    let no_key =
        error(serde_json::json!({"label": "c", "connector": "anthropic", "key_env": "KGFLEET_TEST_NOT_SET"}));
    assert!(no_key.contains("`c`") && no_key.contains("KGFLEET_TEST_NOT_SET"), "{no_key}");
    let replay = error(serde_json::json!({"label": "r", "connector": "replay"}));
    assert!(replay.contains("`replay`"), "{replay}");
    let claude = spec(serde_json::json!({"label": "c", "connector": "anthropic", "key_env": "HOME"}));
    let refused = Connectors::default().connect(Ask::Embed, &claude, None).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("`anthropic` cannot be asked to embed"), "{refused}");
}

#[test]
fn budgets_are_named_by_where_the_key_is() {
    let name = |json| key_name(&spec(json));
    assert_eq!(
        name(serde_json::json!({"label": "c", "connector": "anthropic"})),
        "anthropic/ANTHROPIC_API_KEY"
    );
    assert_eq!(
        name(serde_json::json!({"label": "c", "connector": "gemini", "key_file": "/run/key"})),
        "gemini//run/key"
    );
}

pub(crate) fn request(prompt: &str) -> ChatRequest {
    ChatRequest {
        messages: Arc::from([domain::Message::user(prompt)]),
        sampling: domain::Sampling::default(),
        seed: Some(7),
        deadline: std::time::Duration::from_secs(10),
        key: domain::DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
        round: 0,
        progress: models::Progress::default(),
    }
}

#[tokio::test]
async fn a_server_is_told_in_requests_what_the_configuration_says() {
    let nothing = || CannedAnswer::json(400, r#"{"error": {"message": "no"}}"#);
    let asked = async |ask, request_settings| {
        let server = CannedServer::start(vec![nothing()]).await;
        let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
            "endpoint": format!("{}/v1", server.url), "request": request_settings}));
        let connected = Connectors::default().connect(ask, &spec, None).unwrap();
        let refused = connected.model.complete(request(r#"["a", "b"]"#)).await;
        assert_eq!(refused.unwrap_err().status, Some(400));
        server.asked()[0].body.clone()
    };
    let embedded =
        asked(Ask::Embed, serde_json::json!({"dimensions": 256, "extra_body": {"normalize": true}})).await;
    assert_eq!((&embedded["dimensions"], &embedded["normalize"]), (&256.into(), &true.into()));
    let kwargs = serde_json::json!({"enable_thinking": false});
    let chatted = asked(Ask::Chat, serde_json::json!({"extra_body": {"chat_template_kwargs": kwargs}})).await;
    assert_eq!(chatted["chat_template_kwargs"], kwargs);
}

#[tokio::test]
async fn a_classifier_is_asked_as_its_pairs_are_laid_out_and_with_its_labels() {
    let tokens = |ids: &str| CannedAnswer::json(200, &format!(r#"{{"tokens": {ids}}}"#));
    let classified = r#"{"model": "m", "data": [{"index": 0, "label": null, "probs": [0.9, 0.1]}]}"#;
    let served = || CannedAnswer::json(200, classified);
    let server =
        CannedServer::start(vec![tokens("[101, 102]"), tokens("[7]"), tokens("[7]"), served()]).await;
    let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
        "endpoint": format!("{}/v1", server.url),
        "request": {"pair_layout": "single-separator", "labels": ["entailment", "neutral"]}}));
    let connected = Connectors::default().connect(Ask::Classify, &spec, None).unwrap();
    let reply = connected.model.complete(request(r#"["a", "b"]"#)).await.unwrap();
    let input = server.asked()[3].body["input"].clone();
    assert_eq!(input, serde_json::json!([[101, 7, 102, 7, 102]]));
    assert!(reply.answer.text.contains(r#""label":"entailment""#), "{}", reply.answer.text);
}

#[tokio::test]
async fn a_classifier_behind_another_server_is_asked_about_the_pair_as_it_is() {
    let said = r#"[[{"score": 0.9, "label": "entailment"}, {"score": 0.1, "label": "neutral"}]]"#;
    let server = CannedServer::start(vec![CannedAnswer::json(200, said)]).await;
    let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
        "endpoint": server.url, "request": {"classify_api": "text-embeddings-inference"}}));
    let connected = Connectors::default().connect(Ask::Classify, &spec, None).unwrap();
    let reply = connected.model.complete(request(r#"["a", "b"]"#)).await.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!((asked.path.as_str(), &asked.body["inputs"]), ("/predict", &serde_json::json!([["a", "b"]])));
    assert!(reply.answer.text.contains(r#""label":"entailment""#), "{}", reply.answer.text);
}

#[tokio::test]
async fn a_key_that_was_replaced_is_read_again_whatever_its_model_is_asked() {
    let embedded = r#"{"data": [{"index": 0, "embedding": [1.0]}]}"#;
    let classified = r#"[[{"score": 0.9, "label": "yes"}, {"score": 0.1, "label": "no"}]]"#;
    for (ask, answer) in [(Ask::Embed, embedded), (Ask::Classify, classified)] {
        let refused = CannedAnswer::json(401, r#"{"error": "expired"}"#);
        let server = CannedServer::start(vec![refused, CannedAnswer::json(200, answer)]).await;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "first-key-of-two").unwrap();
        let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
            "endpoint": format!("{}/v1", server.url), "key_file": file.path(),
            "headers": {"x-team": "kg"}, "request": {"classify_api": "text-embeddings-inference"}}));
        let connected = Connectors::default().connect(ask, &spec, None).unwrap();
        std::fs::write(file.path(), "second-key-of-two").unwrap();
        connected.model.complete(request(r#"["a", "a"]"#)).await.unwrap();
        let sent: Vec<_> = server
            .asked()
            .iter()
            .map(|asked| ["authorization", "x-team"].map(|name| asked.header(name).unwrap_or("").to_owned()))
            .collect();
        assert_eq!(sent, [["Bearer first-key-of-two", "kg"], ["Bearer second-key-of-two", "kg"]], "{ask}");
    }
}

#[tokio::test]
async fn what_is_learnt_of_a_server_holds_for_later_runs_and_other_keys() {
    let refused = CannedAnswer::json(400, r#"{"error":{"message":"Unknown parameter: 'seed'."}}"#);
    let yes =
        || CannedAnswer::json(200, r#"{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}"#);
    let server = CannedServer::start(vec![refused, yes(), yes()]).await;
    let spec = spec(serde_json::json!({"label": "m", "connector": "openai-compatible",
        "endpoint": format!("{}/v1", server.url)}));
    let connectors = Connectors::default();
    for _ in 0..2 {
        let model = connectors.connect(Ask::Chat, &spec, None).unwrap().model;
        assert_eq!(model.complete(request("?")).await.unwrap().adapted, ["without seed"]);
    }
    assert_eq!(server.asked().len(), 3);
}
