//! Servers that redirect: no connector follows, and the error names the target.

use crate::support::{hosted, pair, question};
use domain::RetryAdvice;
use harness::canned_server::{CannedAnswer, CannedServer};
use models::{
    CallError, ChatModel, Hosted, HttpClient, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder, Secret,
    VllmClassifier,
};

const KEY: &str = "hunter2-hunter2";

/// A server that redirects everything to another one, below a path with the key that it was sent.
async fn redirecting(elsewhere: &CannedServer, status: u16) -> CannedServer {
    let place = format!("{}/latest/meta-data/{KEY}?sesame={KEY}", elsewhere.url);
    let answers = (0..3).map(|_| CannedAnswer::json(status, "<html>").header("location", &place));
    CannedServer::start(answers.collect()).await
}

/// Fails unless the error says what to do about this redirect, once and for all.
#[track_caller]
fn told(error: CallError, status: u16, elsewhere: &CannedServer) {
    let words = error.in_words();
    assert!(words.contains(&format!("{}/latest/meta-data", elsewhere.url)), "{words}");
    assert!(words.contains("is not followed") && words.contains(&format!("HTTP {status}")), "{words}");
    assert!(!words.contains("hunter2") && !words.contains("sesame"), "{words}");
    assert_eq!(error.retry, RetryAdvice::No);
}

#[tokio::test]
async fn nobody_follows_a_redirect_and_every_error_names_its_place() {
    let elsewhere = CannedServer::echo().await;
    for status in [301, 302, 307, 308] {
        let server = || redirecting(&elsewhere, status);
        let config = async || {
            let url = server().await.url;
            OpenAiConfig { key: Some(Secret::new(KEY)), ..OpenAiConfig::new(url, "m") }
        };
        for stream in [true, false] {
            let mut config = config().await;
            config.spec.stream = Some(stream);
            let chat = OpenAiCompatible::new(config).unwrap();
            told(chat.complete(question("?")).await.unwrap_err(), status, &elsewhere);
            told(chat.probe().await.unwrap_err(), status, &elsewhere);
        }
        let embedder = OpenAiEmbedder::new(config().await, &HttpClient::new()).unwrap();
        told(embedder.embed("a", &question("?")).await.unwrap_err(), status, &elsewhere);
        let classifier = VllmClassifier::new(config().await, &HttpClient::new()).unwrap();
        told(classifier.complete(pair("a", "b")).await.unwrap_err(), status, &elsewhere);
        for connect in [Hosted::anthropic, Hosted::gemini] {
            let spec = hosted(&server().await.url, "m");
            let model = connect(spec, Secret::new(KEY), &HttpClient::new()).unwrap();
            told(model.complete(question("?")).await.unwrap_err(), status, &elsewhere);
        }
    }
    assert_eq!(elsewhere.asked().len(), 0);
}
