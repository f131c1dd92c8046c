//! Embedders and classifiers as a real vLLM answered for them: the files in `testdata/vllm-0.32` are what it sent for two
//! tiny models of random weights (`tests/load/tiny-judges.py`), line ends apart.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{pair, question};
use domain::{FailureCause, RetryAdvice};
use harness::canned_server::{CannedAnswer, CannedServer};
use models::{
    CallError, ChatModel, Classification, EmbedReply, HttpClient, KnownVectors, OpenAiConfig, OpenAiEmbedder,
    Secret, Similarity, TeiClassifier, VllmClassifier,
};
use serde_json::{Value, json};

/// What the server sent.
macro_rules! captured {
    ($name:literal) => {
        CannedAnswer::captured(include_str!(concat!("../../testdata/vllm-0.32/", $name, ".http")))
    };
}

/// What the server sent about two inputs, for the first of them.
macro_rules! first_of {
    ($name:literal) => {{
        let text = include_str!(concat!("../../testdata/vllm-0.32/", $name, ".http"));
        let (_, body) = text.split_once("\n\n").unwrap();
        let mut body: Value = serde_json::from_str(body).unwrap();
        body["data"].as_array_mut().unwrap().truncate(1);
        CannedAnswer::json(200, &body.to_string())
    }};
}

fn embedder_of(config: OpenAiConfig) -> OpenAiEmbedder {
    OpenAiEmbedder::new(config, &HttpClient::new()).unwrap()
}

fn embedder(server: &CannedServer) -> OpenAiEmbedder {
    let mut config = OpenAiConfig::new(&server.url, "tiny-embedder");
    config.key = Some(Secret::new("hunter2"));
    embedder_of(config)
}

fn classifier_of(config: OpenAiConfig) -> VllmClassifier {
    VllmClassifier::new(config, &HttpClient::new()).unwrap()
}

fn classifier(server: &CannedServer) -> VllmClassifier {
    classifier_of(OpenAiConfig::new(&server.url, "tiny-nli"))
}

async fn embed(answer: CannedAnswer) -> Result<EmbedReply, CallError> {
    let server = CannedServer::start(vec![answer]).await;
    embedder(&server).embed("Marie Curie was born in Warsaw.", &question("?")).await
}

/// Classifies a pair; both texts have the tokens of the capture.
async fn classify(answer: CannedAnswer) -> Result<Classification, CallError> {
    let script = vec![captured!("tokenize_nothing"), captured!("tokenize"), captured!("tokenize"), answer];
    classifier(&CannedServer::start(script).await).classify(&pair("Marie Curie", "a")).await
}

#[tokio::test]
async fn vectors_come_as_vllm_sends_them() {
    let server = CannedServer::start(vec![first_of!("embeddings")]).await;
    let embedder = embedder(&server);
    let reply = embedder.embed("Marie Curie was born in Warsaw.", &question("?")).await.unwrap();
    let first = reply.embedding.numbers();
    assert_eq!((first.len(), first[0], first[1]), (64, -0.052_567_992, -0.073_777_5));
    assert_eq!((reply.usage.prompt_tokens, reply.usage.completion_tokens), (Some(16), None));
    assert_eq!(reply.reported_model.as_deref(), Some("tiny-embedder"));
    assert_eq!(embedder.identity().connector, "openai-compatible");

    let asked = &server.asked()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/embeddings"));
    assert_eq!(asked.header("authorization"), Some("Bearer hunter2"));
    let input = ["Marie Curie was born in Warsaw."];
    assert_eq!(asked.body, json!({"model": "tiny-embedder", "input": input, "encoding_format": "float"}));
}

#[tokio::test]
async fn classes_come_as_vllm_sends_them() {
    let script = vec![
        captured!("tokenize_nothing"),
        captured!("tokenize_separator"),
        captured!("tokenize_separator"),
        first_of!("classify"),
        captured!("tokenize_separator"),
        captured!("tokenize_separator"),
        first_of!("classify"),
    ];
    let server = CannedServer::start(script).await;
    let classifier = classifier(&server);
    let found = classifier.classify(&pair("Marie</s>Curie<s>", "other")).await.unwrap();
    assert_eq!((&*found.label, found.probability), ("ENTAILMENT", 0.777_206_540_107_727));
    let labels: Vec<_> = found.classes.iter().map(|class| class.label.as_deref()).collect();
    assert_eq!(labels, [None, None, Some("ENTAILMENT")]);
    assert_eq!(found.usage.prompt_tokens, Some(16));
    // The tokenizer is learnt once.
    classifier.classify(&pair("again", "again")).await.unwrap();

    let asked = server.asked();
    let paths: Vec<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
    let (tokenize, classify) = ("/tokenize", "/classify");
    assert_eq!(paths, [tokenize, tokenize, tokenize, classify, tokenize, tokenize, classify]);
    assert_eq!(asked[0].body, json!({"model": "tiny-nli", "prompt": "", "add_special_tokens": true}));
    assert_eq!(asked[1].body["add_special_tokens"], false);
    // The separators that the text spells, 2 and 0, are not among them.
    let joined = [0, 266, 263, 265, 285, 2, 2, 266, 263, 265, 285, 2];
    let question = json!({"model": "tiny-nli", "input": [joined], "add_special_tokens": false});
    assert_eq!(asked[3].body, question);
}

#[tokio::test]
async fn refusals_mean_what_they_mean_for_chat() {
    use FailureCause::{
        BadRequest, ContextExceeded, ModelNotFound, Overloaded, QuotaExhausted, RateLimited, Unauthorized,
    };
    const BUSY: RetryAdvice = RetryAdvice::RateLimited { after: Some(Duration::from_secs(7)) };
    let of_embedder = |answer: CannedAnswer, expected: (FailureCause, RetryAdvice)| async move {
        let error = embed(answer).await.unwrap_err();
        assert_eq!((error.cause, error.retry), expected, "{error}");
    };
    of_embedder(captured!("embeddings_too_long"), (ContextExceeded, RetryAdvice::No)).await;
    of_embedder(captured!("embeddings_dimensions"), (BadRequest, RetryAdvice::No)).await;
    of_embedder(captured!("embeddings_elsewhere"), (BadRequest, RetryAdvice::No)).await;
    of_embedder(captured!("embeddings_no_key"), (Unauthorized, RetryAdvice::No)).await;
    of_embedder(captured!("unknown_model"), (ModelNotFound, RetryAdvice::No)).await;
    let limited =
        r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#;
    of_embedder(CannedAnswer::json(429, limited).header("retry-after", "7"), (RateLimited, BUSY)).await;
    of_embedder(CannedAnswer::json(503, "{}").header("retry-after", "7"), (Overloaded, BUSY)).await;
    let quota = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    of_embedder(CannedAnswer::json(429, quota), (QuotaExhausted, RetryAdvice::No)).await;

    let of_classifier = |answer: CannedAnswer, expected: (FailureCause, RetryAdvice)| async move {
        let error = classify(answer).await.unwrap_err();
        assert_eq!((error.cause, error.retry), expected, "{error}");
    };
    of_classifier(captured!("classify_too_long"), (ContextExceeded, RetryAdvice::No)).await;
    of_classifier(captured!("classify_unknown_token"), (BadRequest, RetryAdvice::No)).await;
    of_classifier(captured!("unknown_model"), (ModelNotFound, RetryAdvice::No)).await;
    of_classifier(CannedAnswer::json(503, "{}").header("retry-after", "7"), (Overloaded, BUSY)).await;

    let server = CannedServer::start(vec![CannedAnswer::json(404, r#"{"detail":"Not Found"}"#)]).await;
    let error = classifier(&server).classify(&pair("a", "b")).await.unwrap_err();
    assert_eq!((error.cause, error.message.as_str()), (BadRequest, "/tokenize: Not Found"));
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_sent() {
    let server = CannedServer::start(vec![captured!("tokenize_nothing")]).await;
    let long = "x".repeat(models::embed::TEXT_BYTES_MAX + 1);
    let error = embedder(&server).embed(&long, &question("?")).await.unwrap_err();
    assert_eq!(error.cause, FailureCause::ContextExceeded);
    let error = classifier(&server).classify(&pair("a", &long)).await.unwrap_err();
    assert_eq!(error.cause, FailureCause::ContextExceeded);
    assert!(server.asked().is_empty());

    // 300 + 300 tokens do not fit into the 514 that the server told.
    let long = json!({"count": 300, "max_model_len": 514, "tokens": vec![9; 300]}).to_string();
    let script =
        vec![captured!("tokenize_nothing"), CannedAnswer::json(200, &long), CannedAnswer::json(200, &long)];
    let server = CannedServer::start(script).await;
    let error = classifier(&server).classify(&pair("a", "b")).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::ContextExceeded, RetryAdvice::No));
    assert_eq!(error.message, "the pair has 604 tokens, the model's context 514");

    // A chat model's tokenizer ends a text with nothing.
    let server = CannedServer::start(vec![CannedAnswer::json(200, r#"{"count":1,"tokens":[1]}"#)]).await;
    let error = classifier(&server).classify(&pair("a", "b")).await.unwrap_err();
    assert!(error.message.contains("`tiny-nli` puts no separator"), "{error}");
}

#[tokio::test]
async fn vectors_of_another_length_than_before_are_refused() {
    let short = r#"{"data":[{"index":0,"embedding":[1.0]}]}"#;
    let server = CannedServer::start(vec![first_of!("embeddings"), CannedAnswer::json(200, short)]).await;
    let embedder = embedder(&server);
    embedder.embed("a", &question("?")).await.unwrap();
    let error = embedder.embed("a", &question("?")).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::Server, RetryAdvice::No));
    assert!(error.message.contains("1 numbers, not 64"), "{error}");

    let server = CannedServer::start(vec![first_of!("embeddings")]).await;
    let mut config = OpenAiConfig::new(&server.url, "tiny-embedder");
    config.spec.request.dimensions = Some(32);
    let embedder = embedder_of(config);
    assert!(embedder.embed("a", &question("?")).await.unwrap_err().message.contains("64 numbers, not 32"));
    assert_eq!(server.asked()[0].body["dimensions"], 32);
}

/// See `docs/real-vllm.md`.
#[tokio::test]
#[ignore = "needs vLLM servers at KGFLEET_EMBEDDER and KGFLEET_CLASSIFIER with the models of tests/load/tiny-judges.py"]
async fn a_real_vllm_answers() {
    if let Ok(endpoint) = std::env::var("KGFLEET_EMBEDDER") {
        let mut config = OpenAiConfig::new(endpoint, "tiny-embedder");
        config.key = std::env::var("KGFLEET_EMBEDDER_KEY").ok().map(Secret::new);
        let embedder = embedder_of(config);
        let (one, two) = (
            embedder.embed("a", &question("?")).await.unwrap(),
            embedder.embed("a", &question("?")).await.unwrap(),
        );
        assert!(one.embedding.cosine(&two.embedding).unwrap() > 0.9999);
        let error = embedder.embed(&"word ".repeat(3000), &question("?")).await.unwrap_err();
        assert_eq!(error.cause, FailureCause::ContextExceeded, "{error}");
    }
    if let Ok(endpoint) = std::env::var("KGFLEET_CLASSIFIER") {
        let classifier = classifier_of(OpenAiConfig::new(endpoint, "tiny-nli"));
        for (premise, hypothesis) in
            [("Marie Curie</s>", "She was born."), ("", "x"), ("Marie Curie</s>", "x")]
        {
            assert_eq!(classifier.classify(&pair(premise, hypothesis)).await.unwrap().classes.len(), 3);
        }
        let error = classifier.classify(&pair(&"word ".repeat(600), "x")).await.unwrap_err();
        assert_eq!(error.cause, FailureCause::ContextExceeded, "{error}");
    }
}

/// What a server lists that serves these models, each under its name and from a folder of that name.
fn listed(models: &[&str]) -> CannedAnswer {
    let data: Vec<_> = models.iter().map(|model| json!({"id": model, "root": format!("/{model}")})).collect();
    CannedAnswer::json(200, &json!({"data": data}).to_string())
}

#[tokio::test]
async fn embedders_and_classifiers_are_reached_and_known_as_the_configuration_says() {
    let at = |server: &CannedServer, model: &str| {
        let mut config = OpenAiConfig::new(&server.url, model);
        config.spec.headers = [("x-team".to_owned(), "kg".to_owned())].into();
        config.spec.query = [("api-version".to_owned(), "1".to_owned())].into();
        config.spec.answers_as = vec!["tiny-*".to_owned()];
        config
    };
    let server = CannedServer::start(vec![first_of!("embeddings")]).await;
    let embedder = embedder_of(at(&server, "nomic"));
    embedder.embed("Marie Curie was born in Warsaw.", &question("?")).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!((asked.path.as_str(), asked.header("x-team")), ("/v1/embeddings", Some("kg")));
    assert_eq!(asked.query.as_deref(), Some("api-version=1"));

    let script = vec![
        captured!("tokenize_nothing"),
        captured!("tokenize_separator"),
        captured!("tokenize_separator"),
        first_of!("classify"),
    ];
    let server = CannedServer::start(script).await;
    let classifier = classifier_of(at(&server, "deberta"));
    classifier.classify(&pair("a", "b")).await.unwrap();
    for asked in server.asked() {
        let sent = (asked.query.as_deref(), asked.header("x-team"));
        assert_eq!(sent, (Some("api-version=1"), Some("kg")), "{}", asked.path);
    }
}

#[tokio::test]
async fn the_answer_of_another_embedder_or_classifier_is_a_fault_of_the_server() {
    let server =
        CannedServer::start(vec![first_of!("embeddings"), listed(&["tiny-embedder", "nomic"])]).await;
    let embedder = embedder_of(OpenAiConfig::new(&server.url, "nomic"));
    let error = embedder.embed("Marie Curie was born in Warsaw.", &question("?")).await.unwrap_err();
    assert_eq!((error.cause, error.retry), (FailureCause::WrongModel, RetryAdvice::No));
    assert!(error.message.starts_with("asked for model nomic, answered by tiny-embedder;"), "{error}");
    assert!(error.message.contains(r#"`answers_as = ["tiny-embedder"]`"#), "{error}");
    assert_eq!(error.bought.unwrap().usage.prompt_tokens, Some(16), "it was paid for");

    let script = vec![
        captured!("tokenize_nothing"),
        captured!("tokenize_separator"),
        captured!("tokenize_separator"),
        first_of!("classify"),
        listed(&["tiny-nli", "deberta"]),
    ];
    let server = CannedServer::start(script).await;
    let classifier = classifier_of(OpenAiConfig::new(&server.url, "deberta"));
    let error = classifier.classify(&pair("a", "b")).await.unwrap_err();
    assert_eq!(error.cause, FailureCause::WrongModel, "{error}");
}

/// Asks a stand-in for text-embeddings-inference about a pair.
async fn predict(
    labels: &[&str],
    status: u16,
    answer: &str,
) -> (Result<Classification, CallError>, CannedServer) {
    let server = CannedServer::start(vec![CannedAnswer::json(status, answer)]).await;
    let mut config = OpenAiConfig::new(&server.url, "nli");
    config.spec.request.labels = labels.iter().map(|label| (*label).to_owned()).collect();
    let classifier = TeiClassifier::new(&config, &HttpClient::new()).unwrap();
    (classifier.classify(&pair("a", "b")).await, server)
}

const PREDICTED: &str = r#"[
    [{"score": 0.7, "label": "entailment"}, {"score": 0.2, "label": "neutral"}, {"score": 0.1, "label": "contradiction"}]
]"#;

#[tokio::test]
async fn another_server_is_sent_pairs_and_its_classes_are_put_in_one_order() {
    let (found, server) = predict(&[], 200, PREDICTED).await;
    let asked = server.asked().remove(0);
    assert_eq!(asked.body, json!({"inputs": [["a", "b"]], "truncate": false, "raw_scores": false}));
    let found = found.unwrap();
    assert_eq!((&*found.label, found.probability), ("entailment", 0.7));
    let classes: Vec<_> = found.classes.iter().map(|class| class.label.as_deref().unwrap()).collect();
    assert_eq!(classes, ["contradiction", "entailment", "neutral"]);
}

#[tokio::test]
async fn what_another_server_says_wrongly_is_an_error() {
    let labels = ["contradiction", "entailment", "neutral"];
    assert!(predict(&labels, 200, PREDICTED).await.0.is_ok());
    let another = predict(&["no", "yes"], 200, PREDICTED).await.0.unwrap_err();
    assert_eq!((another.cause, another.retry), (FailureCause::Server, RetryAdvice::No));
    for wrong in [
        "[]",
        "[[]]",
        r#"[[{"score": 1.0, "label": "a"}], [{"score": 1.0, "label": "a"}]]"#,
        r#"[[{"score": 0.9, "label": "a"}, {"score": 0.9, "label": "b"}]]"#,
        r#"[[{"score": 0.5, "label": "a"}, {"score": 0.5, "label": "a"}]]"#,
        r#"{"error": "inference failed", "error_type": "Backend"}"#,
    ] {
        assert!(predict(&[], 200, wrong).await.0.is_err(), "{wrong}");
    }
    let long =
        r#"{"error": "`inputs` must have less than 512 tokens. Given: 700", "error_type": "Validation"}"#;
    let long = predict(&[], 413, long).await.0.unwrap_err();
    assert_eq!((long.cause, long.retry), (FailureCause::ContextExceeded, RetryAdvice::No));
    let busy = predict(&[], 429, r#"{"error": "Model is overloaded", "error_type": "Overloaded"}"#)
        .await
        .0
        .unwrap_err();
    assert_ne!(busy.retry, RetryAdvice::No);
}

/// A server with vectors of two numbers, one for each of these texts.
async fn vectors(first_numbers: &[u32]) -> CannedServer {
    let embedded =
        |number: &u32| json!({"model": "tiny-embedder", "data": [{"index": 0, "embedding": [number, 1]}]});
    let answers = first_numbers.iter().map(|number| CannedAnswer::json(200, &embedded(number).to_string()));
    CannedServer::start(answers.collect()).await
}

fn similarity(server: &CannedServer, known: &Arc<KnownVectors>) -> Similarity {
    Similarity { model: embedder(server), known: Arc::clone(known) }
}

#[tokio::test]
async fn a_pair_is_answered_with_what_the_verdict_needs() {
    let server = vectors(&[1, 3]).await;
    let reply = similarity(&server, &Arc::default()).complete(pair("a", "bbb")).await.unwrap();
    let said: Value = serde_json::from_str(&reply.answer.text).unwrap();
    assert!((said["cosine"].as_f64().unwrap() - 4.0 / 20_f64.sqrt()).abs() < 1e-9, "{said}");
    assert_eq!(reply.reported_model.as_deref(), Some("tiny-embedder"));
    let classified = classify(first_of!("classify")).await.unwrap();
    let said: Value = serde_json::from_str(&models::ChatReply::from(classified).answer.text).unwrap();
    assert_eq!(
        (said["label"].as_str(), said["probability"].as_f64()),
        (Some("ENTAILMENT"), Some(0.777_206_540_107_727))
    );
    assert_eq!((said["classes"].as_array().unwrap().len(), &said["classes"][0]["label"]), (3, &Value::Null));
}

#[tokio::test]
async fn no_text_is_embedded_twice() {
    let server = vectors(&[1, 2, 3]).await;
    let known = Arc::default();
    for (left, right) in [("description", "one"), ("description", "two"), ("two", "two")] {
        // A connector for each run: they share what is known.
        similarity(&server, &known).complete(pair(left, right)).await.unwrap();
    }
    let sent: Vec<Value> = server.asked().iter().map(|asked| asked.body["input"][0].clone()).collect();
    assert_eq!(sent, ["description", "one", "two"]);
}

#[tokio::test]
async fn a_prompt_that_is_no_pair_is_refused_before_anything_is_sent() {
    let server = vectors(&[]).await;
    for prompt in ["", "two texts", r#"["one"]"#, r#"["a", "b", "c"]"#] {
        let error = similarity(&server, &Arc::default()).complete(question(prompt)).await.unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No), "{prompt}");
        assert!(error.message.contains("two texts"), "{error}");
    }
}
