//! The key of a model shows nowhere, whichever API it is sent to, wherever the server puts it and however it is written there.

use crate::support::{hosted, pair, question};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use harness::canned_server::{CannedAnswer, CannedServer};
use models::{
    ChatModel, Hosted, HttpClient, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder, Secret, TeiClassifier,
    VllmClassifier,
};

/// With characters that JSON, addresses and base64 write in more than one way.
const KEY: &str = "hf/AbC+dEf/0123456789xyz==";

/// The key as it may stand between the quotation marks of a JSON text, in one way of each kind; `key_search` has them all.
fn written() -> [String; 5] {
    [
        KEY.to_owned(),
        // As PHP writes it, and once more by whoever quotes that.
        KEY.replace('/', r"\\\/"),
        KEY.bytes().map(|byte| format!(r"\u{byte:04x}")).collect(),
        KEY.replace('/', "%252F"),
        URL_SAFE.encode(format!("Bearer {KEY}.")),
    ]
}

/// Asserts that a text, which a server wrote with the key in it, shows that there was one, and nothing of it.
fn assert_scrubbed(shown: &str, written: &str) {
    assert!(shown.contains("[key]"), "{written}: {shown}");
    let plain: String = shown.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    for piece in
        ["abcdef", "0123456789", "9876543210", &hex(KEY)[..16], &STANDARD.encode(KEY)[4..16].to_lowercase()]
    {
        assert!(!plain.contains(piece), "{written}: {shown}");
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn key() -> Secret {
    Secret::new(KEY)
}

fn config(server: &CannedServer) -> OpenAiConfig {
    OpenAiConfig { key: Some(key()), ..OpenAiConfig::new(&server.url, "m") }
}

fn openai(server: &CannedServer) -> Box<dyn ChatModel> {
    Box::new(OpenAiCompatible::new(config(server)).unwrap())
}

fn anthropic(server: &CannedServer) -> Box<dyn ChatModel> {
    Box::new(Hosted::anthropic(hosted(&server.url, "m"), key(), &HttpClient::new()).unwrap())
}

fn gemini(server: &CannedServer) -> Box<dyn ChatModel> {
    Box::new(Hosted::gemini(hosted(&server.url, "m"), key(), &HttpClient::new()).unwrap())
}

type Connector = fn(&CannedServer) -> Box<dyn ChatModel>;

/// What is shown of a call that this is the answer to: of a refusal, all that the error says; of an answer, all of the record.
async fn shown(connector: Connector, answer: CannedAnswer) -> String {
    let server = CannedServer::start(vec![answer]).await;
    let model = connector(&server);
    match model.complete(question("?")).await {
        Ok(reply) => format!("{reply:?} {:?}", model.identity().provenance(Some(&reply))),
        Err(error) => {
            format!("{error} {error:?} {:?}", error.to_failed_call(jiff::Timestamp::UNIX_EPOCH))
        }
    }
}

#[tokio::test]
async fn a_refusal_shows_no_key() {
    let bodies = [
        (openai as Connector, r#"{"error":{"message":"Invalid API key: KEY!","code":401}}"#),
        (openai, r#"{"error":"Invalid API key: KEY!"}"#),
        (openai, r#"{"detail":"Invalid API key: KEY!"}"#),
        (openai, r#"{"detail":[{"msg":"Invalid API key","input":"KEY"}]}"#),
        (openai, r#"{"object":"error","message":"Invalid API key: KEY!"}"#),
        (openai, r#"{"why":"Invalid API key: KEY!"}"#),
        (openai, "<p>Invalid API key: KEY!</p>"),
        (
            anthropic,
            r#"{"type":"error","error":{"type":"authentication_error","message":"Invalid API key: KEY!"}}"#,
        ),
        (anthropic, r#"{"why":"Invalid API key: KEY!"}"#),
        (gemini, r#"{"error":{"code":400,"message":"Invalid API key: KEY!","status":"INVALID_ARGUMENT"}}"#),
        (gemini, "Invalid API key: KEY!"),
    ];
    for written in written() {
        for (connector, body) in bodies {
            for status in [400, 401, 429, 503] {
                let refusal = CannedAnswer::json(status, &body.replace("KEY", &written));
                assert_scrubbed(&shown(connector, refusal).await, &written);
            }
        }
        let event = r#"{"error":{"message":"Invalid API key: KEY!","code":401}}"#.replace("KEY", &written);
        assert_scrubbed(&shown(openai, CannedAnswer::events(&[&event])).await, &written);
        let within = CannedAnswer::json(200, &event);
        assert_scrubbed(&shown(openai, within).await, &written);
    }
}

/// Where a message is shortened, no half of the key may stay.
#[tokio::test]
async fn a_message_that_is_shortened_shows_no_half_of_the_key() {
    for connector in [openai as Connector, anthropic, gemini] {
        for length in 450..500 {
            let message = format!("{}{KEY}", "x".repeat(length));
            let body = format!(r#"{{"error":{{"type":"api_error","message":"{message}"}}}}"#);
            let shown = shown(connector, CannedAnswer::json(500, &body)).await;
            assert!(!shown.contains("hf/A"), "{shown}");
        }
    }
}

#[tokio::test]
async fn an_answer_shows_no_key() {
    let bodies = [
        (
            openai as Connector,
            r#"{"model":"m","choices":[{"message":{"content":"it is KEY"},"finish_reason":"stop"}]}"#,
        ),
        (
            openai,
            r#"{"choices":[{"message":{"content":[{"type":"text","text":"KEY"}]},"finish_reason":"stop"}]}"#,
        ),
        (openai, r#"{"choices":[{"message":{"content":null,"refusal":"KEY"},"finish_reason":"stop"}]}"#),
        (openai, r#"{"choices":[{"message":{"content":"a","reasoning":"KEY"},"finish_reason":"stop"}]}"#),
        (openai, r#"{"choices":[{"message":{"content":"<think>KEY</think>a"},"finish_reason":"stop"}]}"#),
        (
            openai,
            r#"{"system_fingerprint":"KEY","choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#,
        ),
        (openai, r#"{"choices":[{"message":{"content":"a"},"finish_reason":"KEY"}]}"#),
        (openai, r#"{"choices":"KEY"}"#),
        (openai, r#"{"model":"KEY","choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#),
        (
            anthropic,
            r#"{"model":"m","content":[{"type":"text","text":"it is KEY"}],"stop_reason":"end_turn"}"#,
        ),
        (anthropic, r#"{"content":[{"type":"thinking","thinking":"KEY"}],"stop_reason":"end_turn"}"#),
        (anthropic, r#"{"content":[],"stop_reason":"KEY"}"#),
        (anthropic, r#"{"content":[],"model":"KEY"}"#),
        (anthropic, r#"{"content":"KEY"}"#),
        (gemini, r#"{"candidates":[{"content":{"parts":[{"text":"it is KEY"}]},"finishReason":"STOP"}]}"#),
        (gemini, r#"{"candidates":[{"content":{"parts":[{"text":"KEY","thought":true}]}}]}"#),
        (gemini, r#"{"candidates":[{"finishReason":"KEY"}]}"#),
        (gemini, r#"{"candidates":[{"finishReason":"STOP"}],"modelVersion":"KEY"}"#),
        (gemini, r#"{"candidates":"KEY"}"#),
    ];
    for written in written() {
        for (connector, body) in bodies {
            let answer = CannedAnswer::json(200, &body.replace("KEY", &written));
            assert_scrubbed(&shown(connector, answer).await, &written);
        }
    }
}

/// The pieces of a stream are each too short to be the key.
#[tokio::test]
async fn a_streamed_answer_shows_no_key() {
    let piece = |name: &str, text: &str| format!(r#"{{"choices":[{{"delta":{{"{name}":"{text}"}}}}]}}"#);
    for name in ["content", "reasoning", "reasoning_content", "refusal"] {
        let mut events: Vec<String> = KEY.split_inclusive('/').map(|text| piece(name, text)).collect();
        events.push("[DONE]".to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert_scrubbed(&shown(openai, CannedAnswer::events(&events)).await, name);
    }
}

#[tokio::test]
async fn what_lists_vectors_and_classes_say_shows_no_key() {
    for written in written() {
        let server = async |answers: Vec<&str>| {
            let answers = answers.iter().map(|body| CannedAnswer::json(200, &body.replace("KEY", &written)));
            CannedServer::start(answers.collect()).await
        };

        let listing = server(vec![r#"{"data":[{"id":"KEY","root":"KEY"}]}"#, r#"{"data":"KEY"}"#]).await;
        let model = OpenAiCompatible::new(config(&listing)).unwrap();
        for _ in 0..2 {
            assert_scrubbed(&format!("{:?}", model.probe().await), &written);
        }

        let vectors = server(vec![
            r#"{"model":"KEY","data":[{"index":0,"embedding":[1.0]}]}"#,
            // Whether it lists that name for the same model.
            r#"{"data":[]}"#,
            r#"{"data":"KEY"}"#,
        ])
        .await;
        let model = OpenAiEmbedder::new(config(&vectors), &HttpClient::new()).unwrap();
        for _ in 0..2 {
            assert_scrubbed(&format!("{:?}", model.embed("a", &question("?")).await), &written);
        }

        let tokens = r#"{"tokens":[0,2],"max_model_len":512}"#;
        let classes = server(vec![
            tokens,
            tokens,
            tokens,
            r#"{"data":[{"index":0,"label":"KEY","probs":[1.0]}]}"#,
            tokens,
            tokens,
            r#"{"data":[{"index":0,"label":"not KEY","probs":[1.0]}]}"#,
        ])
        .await;
        let model = VllmClassifier::new(config(&classes), &HttpClient::new()).unwrap();
        for _ in 0..2 {
            assert_scrubbed(&format!("{:?}", model.classify(&pair("a", "b")).await), &written);
        }

        let predicted = server(vec![r#"[[{"score":1.0,"label":"KEY"}]]"#]).await;
        let mut config = config(&predicted);
        config.spec.request.labels = vec!["a".to_owned()];
        let model = TeiClassifier::new(&config, &HttpClient::new()).unwrap();
        assert_scrubbed(&format!("{:?}", model.classify(&pair("a", "b")).await), &written);
    }
}

#[tokio::test]
async fn a_redirect_shows_no_key() {
    for connector in [openai as Connector, anthropic, gemini] {
        for place in
            [format!("http://127.0.0.1:1/{KEY}"), format!("http://127.0.0.1:1/{}", KEY.replace('/', "%2F"))]
        {
            let answer = CannedAnswer::json(302, "").header("location", &place);
            assert_scrubbed(&shown(connector, answer).await, &place);
        }
    }
}

#[tokio::test]
async fn what_is_configured_shows_no_key() {
    let server = CannedServer::start(vec![]).await;
    let model = OpenAiCompatible::new(config(&server)).unwrap();
    let other = Hosted::gemini(hosted(&server.url, "m"), key(), &HttpClient::new()).unwrap();
    let vectors = OpenAiEmbedder::new(config(&server), &HttpClient::new()).unwrap();
    let shown = format!("{model:?} {:?} {other:?} {vectors:?} {:?}", model.identity(), config(&server));
    assert!(!shown.contains("AbC"), "{shown}");
}
