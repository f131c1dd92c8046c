//! Servers that redirect: no connector follows, and the error names the target.

use std::time::Duration;

use crate::support::question;
use domain::{DialogueKey, PairLayout, RetryAdvice, TimeLimits};
use harness::canned_server::{CannedAnswer, CannedServer};
use models::{
    CallError, ChatModel, ClassifyModel, ClassifyRequest, EmbedModel, EmbedRequest, Hosted, HostedConfig,
    HttpClient, OpenAiCompatible, OpenAiConfig, OpenAiEmbedder, Secret, VllmClassifier,
};

const KEY: &str = "hunter2-hunter2";

/// A server that redirects everything to another one, below a path with the key that it was sent.
async fn redirecting(elsewhere: &CannedServer, status: u16) -> CannedServer {
    let place = format!("{}/latest/meta-data/{KEY}?sesame={KEY}", elsewhere.url);
    let answers = (0..3).map(|_| CannedAnswer::json(status, "<html>").header("location", &place));
    CannedServer::start(answers.collect()).await
}

fn key() -> DialogueKey {
    DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 }
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
        let chat = async |stream| {
            let mut config = OpenAiConfig::new(server().await.url, "m");
            (config.stream, config.key) = (stream, Some(Secret::new(KEY)));
            OpenAiCompatible::new(config).unwrap()
        };
        for stream in [true, false] {
            let error = chat(stream).await.complete(question("?")).await.unwrap_err();
            told(error, status, &elsewhere);
        }
        told(chat(true).await.probe().await.unwrap_err(), status, &elsewhere);
        told(chat(true).await.health().await.unwrap_err(), status, &elsewhere);

        let mut config = OpenAiConfig::new(server().await.url, "m");
        config.key = Some(Secret::new(KEY));
        let embedder = OpenAiEmbedder::new(config, None, &HttpClient::new()).unwrap();
        let (text, deadline) = ("a".to_owned(), Duration::from_secs(60));
        let asked = EmbedRequest { text, deadline, key: key() };
        told(embedder.embed(asked).await.unwrap_err(), status, &elsewhere);

        let mut config = OpenAiConfig::new(server().await.url, "m");
        config.key = Some(Secret::new(KEY));
        let classifier = VllmClassifier::new(config, PairLayout::default(), &[], &HttpClient::new()).unwrap();
        let (premise, hypothesis) = ("a".to_owned(), "b".to_owned());
        let asked = ClassifyRequest { premise, hypothesis, deadline, key: key() };
        told(classifier.classify(asked).await.unwrap_err(), status, &elsewhere);

        for connect in [Hosted::anthropic, Hosted::gemini] {
            let (endpoint, key) = (Some(server().await.url), Secret::new(KEY));
            let (send_seed, time_limits) = (true, TimeLimits::default());
            let config = HostedConfig { endpoint, model: "m".to_owned(), key, send_seed, time_limits };
            let model = connect(config, &HttpClient::new()).unwrap();
            told(model.complete(question("?")).await.unwrap_err(), status, &elsewhere);
        }
    }
    assert_eq!(elsewhere.asked().len(), 0);
}
