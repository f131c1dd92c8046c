//! Models that are asked in batches, against a stand-in for their providers.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod support;

use std::path::Path;
use std::time::Duration;

use domain::{FailureCause, RetryAdvice, RunId};
use harness::batch_provider::{BatchProvider, ProvidedBatch, ProvidedStage};
use models::batch::{AbandonedBatch, BatchFate};
use models::{
    BatchRules, Batched, Batches, CallError, ChatModel, ChatReply, ChatRequest, HostedConfig, HttpClient,
    OpenAiConfig, Secret,
};
use serde_json::json;
use support::question;
use tokio::task::JoinHandle;

const KEY: &str = "sk-0123456789-very-secret";

/// So short that no test waits for long. None depends on which questions share a batch but those that ask at once.
const AT_ONCE: BatchRules = BatchRules {
    quiet: Duration::from_millis(100),
    gather_max: Duration::from_secs(2),
    look_first: Duration::from_millis(5),
    look_max: Duration::from_millis(20),
    ending_max: Duration::from_millis(50),
};

/// The providers, by the same rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    OpenAi,
    Anthropic,
}

const PROVIDERS: [At; 2] = [At::OpenAi, At::Anthropic];

/// The batches of a process that remembers them here.
fn process(folder: &Path) -> Batches {
    Batches::in_folder(folder.to_owned()).by(AT_ONCE)
}

fn model(at: At, batches: &Batches, provider: &BatchProvider) -> Batched {
    let (http, key) = (HttpClient::new(), Secret::new(KEY));
    match at {
        At::OpenAi => {
            let config = OpenAiConfig::new(&provider.url, "tiny");
            batches.openai(OpenAiConfig { key: Some(key), ..config }, &http).unwrap()
        }
        At::Anthropic => {
            let endpoint = Some(provider.url.clone());
            batches.anthropic(HostedConfig { endpoint, model: "tiny".to_owned(), key }, &http).unwrap()
        }
    }
}

fn run() -> RunId {
    RunId::new("run")
}

/// A call under way.
type Call = JoinHandle<Result<ChatReply, CallError>>;

fn call(model: &Batched, run: &RunId, asked: ChatRequest) -> Call {
    let model = model.of_run(run);
    tokio::spawn(async move { model.complete(asked).await })
}

fn ask(model: &Batched, text: &str) -> Call {
    call(model, &run(), question(text))
}

async fn answer(call: Call) -> String {
    call.await.unwrap().unwrap().answer.text
}

async fn error(call: Call) -> CallError {
    call.await.unwrap().unwrap_err()
}

/// Stops calls, as a worker does, and waits until they are gone.
async fn stop(calls: Vec<Call>) {
    for call in calls {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
}

#[tokio::test]
async fn questions_become_a_batch_and_each_gets_its_answer() {
    for at in PROVIDERS {
        let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
        let model = model(at, &batches, &provider);
        let calls: Vec<Call> = ["one", "two", "refuse me"].iter().map(|text| ask(&model, text)).collect();
        let made = provider.made(1).await.remove(0);
        let mut asked = made.asked();
        asked.sort();
        assert_eq!(asked, ["one", "refuse me", "two"], "{at:?}");
        assert!(made.questions.iter().all(|(id, _)| id.len() == 40));
        provider.end(0, ProvidedStage::Ended);
        let [one, two, refused] = <[Call; 3]>::try_from(calls).unwrap();
        assert_eq!((answer(one).await, answer(two).await), ("one".to_owned(), "two".to_owned()));
        let error = error(refused).await;
        assert_eq!((error.cause, error.status), (FailureCause::BadRequest, Some(400)), "{at:?}");
        assert_eq!(error.retry, RetryAdvice::No);
    }
}

#[tokio::test]
async fn each_provider_is_asked_by_its_own_routes_and_with_its_own_bodies() {
    let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
    let call = ask(&model(At::OpenAi, &batches, &provider), "hello");
    let made = provider.made(1).await.remove(0);
    assert_eq!(
        made.questions[0].1,
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "stream": false,
            "max_completion_tokens": 4096, "seed": 42})
    );
    assert!(made.metadata["kgfleet_batch"].is_string());
    provider.end(0, ProvidedStage::Ended);
    answer(call).await;
    let mut calls = provider.calls();
    calls.dedup();
    let expected = [
        "POST files",
        "POST batches",
        "GET batches/batch_1",
        "GET files/output-batch_1/content",
        "GET files/error-batch_1/content",
    ];
    assert_eq!(calls, expected);

    let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
    let call = ask(&model(At::Anthropic, &batches, &provider), "hello");
    let made = provider.made(1).await.remove(0);
    let text = json!([{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(
        made.questions[0].1,
        json!({"model": "tiny", "max_tokens": 4096, "messages": [{"role": "user", "content": text}]})
    );
    provider.end(0, ProvidedStage::Ended);
    answer(call).await;
    let mut calls = provider.calls();
    calls.dedup();
    let expected =
        ["POST messages/batches", "GET messages/batches/batch_1", "GET messages/batches/batch_1/results"];
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn what_expired_or_was_cancelled_there_may_be_asked_again() {
    for (at, stage, cause) in [
        (At::OpenAi, ProvidedStage::Expired, FailureCause::Timeout),
        (At::OpenAi, ProvidedStage::Cancelled, FailureCause::Aborted),
        (At::Anthropic, ProvidedStage::Expired, FailureCause::Timeout),
        (At::Anthropic, ProvidedStage::Cancelled, FailureCause::Aborted),
    ] {
        let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
        let model = model(at, &batches, &provider);
        let calls = [ask(&model, "one"), ask(&model, "two")];
        let made = provider.made(1).await.remove(0);
        let answered = made.asked()[0].clone();
        provider.end(0, stage);
        let (mut texts, mut errors) = (Vec::new(), Vec::new());
        for call in calls {
            match call.await.unwrap() {
                Ok(reply) => texts.push(reply.answer.text),
                Err(error) => errors.push((error.cause, error.retry)),
            }
        }
        assert_eq!(texts, [answered], "{at:?}");
        assert_eq!(errors, [(cause, RetryAdvice::Transient)], "{at:?}");
        let left = made.asked()[1].clone();
        let again = ask(&model, &left);
        assert_eq!(provider.made(2).await[1].asked(), std::slice::from_ref(&left));
        provider.end(1, ProvidedStage::Ended);
        assert_eq!(answer(again).await, left);
    }
}

#[tokio::test]
async fn a_process_that_was_killed_is_followed_by_one_that_asks_nothing_twice() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let killed = process(folder.path());
        let killed_model = model(at, &killed, &provider);
        let calls: Vec<Call> = ["one", "two"].iter().map(|text| ask(&killed_model, text)).collect();
        provider.made(1).await;
        // The answer of the provider is on disk before anybody can look at the batch.
        provider.until("a look", |_| looks(&provider) > 0).await;
        stop(calls).await;
        drop((killed, killed_model));

        let next = process(folder.path());
        let model = model(at, &next, &provider);
        let calls: Vec<Call> = ["two", "three", "one"].iter().map(|text| ask(&model, text)).collect();
        let made = provider.made(2).await;
        assert_eq!(made[1].asked(), ["three"], "{at:?}: the others are in the first batch");
        provider.end(0, ProvidedStage::Ended);
        provider.end(1, ProvidedStage::Ended);
        let mut texts = Vec::new();
        for call in calls {
            texts.push(answer(call).await);
        }
        assert_eq!(texts, ["two", "three", "one"]);
        assert_eq!(provider.batches().len(), 2);
        // So is one that begins after all answers were there.
        drop((next, model));
        let last = process(folder.path());
        let model = self::model(at, &last, &provider);
        assert_eq!(answer(ask(&model, "one")).await, "one");
        assert_eq!(provider.batches().len(), 2);
    }
}

/// How often batches were looked at.
fn looks(provider: &BatchProvider) -> usize {
    provider.calls().iter().filter(|call| call.starts_with("GET")).count()
}

#[tokio::test]
async fn a_batch_whose_creation_was_cut_off_is_found_by_its_name_where_it_has_one() {
    for (at, batches_made) in [(At::OpenAi, 1), (At::Anthropic, 2)] {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        provider.lose_an_answer();
        let model = model(at, &process(folder.path()), &provider);
        let unheard = error(ask(&model, "one")).await;
        assert_eq!((unheard.cause, unheard.retry), (FailureCause::Server, RetryAdvice::Transient));

        let model = self::model(at, &process(folder.path()), &provider);
        let call = ask(&model, "one");
        let made = provider.made(batches_made).await;
        assert_eq!(made.len(), batches_made, "{at:?}");
        provider.end(batches_made - 1, ProvidedStage::Ended);
        assert_eq!(answer(call).await, "one");
        assert_eq!(provider.batches().len(), batches_made);
    }
}

#[tokio::test]
async fn a_refused_batch_fails_its_questions_as_a_refused_call_would() {
    for at in PROVIDERS {
        let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
        let model = model(at, &batches, &provider);
        for (status, cause, retries) in
            [(401, FailureCause::Unauthorized, false), (429, FailureCause::RateLimited, true)]
        {
            provider.refuse(status);
            let error = error(ask(&model, "one")).await;
            assert_eq!((error.cause, error.status), (cause, Some(status)), "{at:?}");
            assert_eq!(error.retry != RetryAdvice::No, retries);
        }
        assert!(provider.batches().is_empty());
        assert_eq!(provider.stored(), [""; 0], "nor is the file of questions kept");
    }
}

#[tokio::test]
async fn a_batch_that_its_provider_does_not_know_any_more_is_asked_again() {
    let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
    let model = model(At::OpenAi, &batches, &provider);
    let call = ask(&model, "one");
    provider.made(1).await;
    provider.forget();
    provider.until("another batch", |batches| batches.len() == 1).await;
    provider.end(0, ProvidedStage::Ended);
    assert_eq!(answer(call).await, "one");
}

#[tokio::test]
async fn a_run_that_is_over_cancels_its_batches_and_no_others() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let batches = process(folder.path());
        let model = model(at, &batches, &provider);
        let other = RunId::new("other");
        let (mine, others) = (ask(&model, "one"), call(&model, &other, question("one")));
        provider.made(2).await;
        provider.until("a look", |_| looks(&provider) > 0).await;
        // A worker holds its models longer than their dialogues.
        let held = model.of_run(&run());
        stop(vec![mine]).await;
        batches.over(&run());
        let is_cancelled = |stage| stage == ProvidedStage::Cancelled;
        let ended = |batches: &[ProvidedBatch]| batches.iter().any(|batch| is_cancelled(batch.stage));
        let made = provider.until("a cancellation", ended).await;
        assert_eq!(made.iter().filter(|batch| is_cancelled(batch.stage)).count(), 1, "{at:?}");
        provider.until("a deletion", |_| provider.stored().len() == 1).await;
        batches.close().await;
        drop(held);
        let left = made.iter().position(|batch| !is_cancelled(batch.stage)).unwrap();
        provider.end(left, ProvidedStage::Ended);
        assert_eq!(answer(others).await, "one");
        // Of the two, one is remembered.
        assert_eq!(documents(folder.path()), 1);
    }
}

/// Batches that are remembered here.
fn documents(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn a_run_that_is_over_leaves_nothing_at_its_provider_and_one_that_is_stopped_everything() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let first = process(folder.path());
        let call = ask(&model(at, &first, &provider), "one");
        provider.made(1).await;
        provider.end(0, ProvidedStage::Ended);
        assert_eq!(answer(call).await, "one");
        first.close().await;
        let stored = provider.stored();
        let (files, calls): (&[&str], &[&str]) = match at {
            At::OpenAi => (
                &["error-batch_1", "file-1", "output-batch_1"],
                &[
                    "GET batches/batch_1",
                    "DELETE files/output-batch_1",
                    "DELETE files/error-batch_1",
                    "DELETE files/file-1",
                ],
            ),
            At::Anthropic => {
                (&["batch_1"], &["GET messages/batches/batch_1", "DELETE messages/batches/batch_1"])
            }
        };
        assert_eq!(stored, files, "a stop deletes nothing");
        drop(first);

        let next = process(folder.path());
        let model = model(at, &next, &provider);
        let held = model.of_run(&run());
        assert_eq!(answer(ask(&model, "one")).await, "one", "the answer is still there");
        assert_eq!((provider.stored(), documents(folder.path())), (stored, 1));
        let before = provider.calls().len();
        next.over(&run());
        // What is over is cleared away, although nobody holds the model any more.
        drop(held);
        provider.until("the deletions", |_| provider.stored().is_empty()).await;
        next.close().await;
        assert_eq!(&provider.calls()[before..], calls);
        assert_eq!(documents(folder.path()), 0);
    }
}

#[tokio::test]
async fn what_a_process_before_asked_is_cleared_away_by_one_that_asked_nothing() {
    let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
    let batches = killed(At::OpenAi, &provider, folder.path()).await;
    provider.cancel_slowly();
    let held = model(At::OpenAi, &batches, &provider).of_run(&run());
    batches.over(&run());
    let is_cancelling = |batches: &[ProvidedBatch]| batches[0].stage == ProvidedStage::Cancelling;
    provider.until("a cancellation", is_cancelling).await;
    assert_eq!(provider.stored(), ["file-1"], "nothing is deleted before the batch has ended");
    provider.end(0, ProvidedStage::Cancelled);
    provider.until("the deletions", |_| provider.stored().is_empty()).await;
    batches.close().await;
    drop(held);
    assert_eq!(documents(folder.path()), 0);
}

#[tokio::test]
async fn a_deletion_that_is_refused_is_left_to_whoever_abandons_the_run() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let batches = killed(at, &provider, folder.path()).await;
        let model = model(at, &batches, &provider);
        provider.end(0, ProvidedStage::Ended);
        provider.keep(Some(403));
        let held = model.of_run(&run());
        assert_eq!(answer(ask(&model, "one")).await, "one");
        let stored = provider.stored();
        batches.over(&run());
        let deletions = || provider.calls().iter().filter(|call| call.starts_with("DELETE")).count();
        provider.until("deletions", |_| deletions() >= stored.len()).await;
        batches.close().await;
        drop(held);
        assert_eq!((provider.stored(), documents(folder.path())), (stored, 1), "{at:?}");
        provider.keep(None);
        assert_eq!(fates(&batches.abandon(&run(), &[model]).await), [&BatchFate::Cleared]);
        assert_eq!((provider.stored().len(), documents(folder.path())), (0, 0));
    }
}

/// A process that was killed while a batch with one question was under way, and the batches of the next one.
async fn killed(at: At, provider: &BatchProvider, folder: &Path) -> Batches {
    let killed = process(folder);
    let call = ask(&model(at, &killed, provider), "one");
    provider.made(1).await;
    provider.until("a look", |_| looks(provider) > 0).await;
    stop(vec![call]).await;
    // Its last look is through, so that the test can count calls.
    killed.close().await;
    process(folder)
}

fn fates(abandoned: &[AbandonedBatch]) -> Vec<&BatchFate> {
    abandoned.iter().map(|batch| &batch.fate).collect()
}

#[tokio::test]
async fn a_run_that_nobody_works_at_is_abandoned_with_its_batches() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let batches = killed(at, &provider, folder.path()).await;
        let model = model(at, &batches, &provider);
        assert_eq!(batches.noted().await.into_iter().collect::<Vec<_>>(), [run()]);
        assert!(batches.abandon(&RunId::new("other"), std::slice::from_ref(&model)).await.is_empty());
        let before = provider.calls();

        // Nothing is known of how its provider is asked.
        let abandoned = batches.abandon(&run(), &[]).await;
        assert_eq!(fates(&abandoned), [&BatchFate::NoModel]);
        assert_eq!(abandoned[0].id.as_deref(), Some("batch_1"));
        assert_eq!((abandoned[0].model.as_str(), abandoned[0].endpoint.is_some()), ("tiny", true));
        assert_eq!(provider.calls(), before);
        // Its provider refuses.
        provider.keep(Some(403));
        let abandoned = batches.abandon(&run(), std::slice::from_ref(&model)).await;
        let [AbandonedBatch { fate: BatchFate::GoesOn(why), .. }] = &abandoned[..] else {
            panic!("{abandoned:?}")
        };
        assert!(why.contains("403") && !why.contains(KEY), "{why}");
        assert_eq!((provider.batches()[0].stage, documents(folder.path())), (ProvidedStage::UnderWay, 1));

        provider.keep(None);
        let abandoned = batches.abandon(&run(), &[model]).await;
        assert_eq!(fates(&abandoned), [&BatchFate::Cleared], "{at:?}");
        assert_eq!(provider.batches()[0].stage, ProvidedStage::Cancelled);
        assert_eq!((provider.stored().len(), documents(folder.path())), (0, 0));
        assert!(batches.noted().await.is_empty());
    }
}

#[tokio::test]
async fn a_batch_that_ends_late_or_is_gone_is_abandoned_too() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let batches = killed(at, &provider, folder.path()).await;
        provider.cancel_slowly();
        let abandoned = batches.abandon(&run(), &[model(at, &batches, &provider)]).await;
        assert_eq!(fates(&abandoned), [&BatchFate::Left("it has not ended yet".to_owned())], "{at:?}");
        assert_eq!((provider.stored().len(), documents(folder.path())), (1, 0));

        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        let batches = killed(at, &provider, folder.path()).await;
        provider.forget();
        let abandoned = batches.abandon(&run(), &[model(at, &batches, &provider)]).await;
        assert_eq!(fates(&abandoned), [&BatchFate::Gone], "{at:?}");
        assert_eq!(documents(folder.path()), 0);
    }
}

#[tokio::test]
async fn a_batch_whose_creation_was_cut_off_is_abandoned_where_it_is_found() {
    for at in PROVIDERS {
        let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
        provider.lose_an_answer();
        let batches = process(folder.path());
        let model = model(at, &batches, &provider);
        error(ask(&model, "one")).await;
        let abandoned = batches.abandon(&run(), &[model]).await;
        match (at, &abandoned[..]) {
            (At::OpenAi, [AbandonedBatch { id: Some(id), fate: BatchFate::Cleared, .. }]) => {
                assert_eq!((id.as_str(), documents(folder.path())), ("batch_1", 0));
            }
            (At::Anthropic, [AbandonedBatch { id: None, fate: BatchFate::GoesOn(why), .. }]) => {
                assert!(why.contains("no names"), "{why}");
                assert_eq!(documents(folder.path()), 1);
            }
            _ => panic!("{at:?}: {abandoned:?}"),
        }
    }
}

#[tokio::test]
async fn who_only_stops_waiting_cancels_nothing() {
    let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
    let batches = process(folder.path());
    let model = model(At::OpenAi, &batches, &provider);
    let waits = ask(&model, "one");
    provider.made(1).await;
    stop(vec![waits]).await;
    batches.close().await;
    assert_eq!(provider.batches()[0].stage, ProvidedStage::UnderWay);
    let again = ask(&model, "one");
    provider.end(0, ProvidedStage::Ended);
    assert_eq!(answer(again).await, "one");
    assert_eq!(provider.batches().len(), 1);
}

#[tokio::test]
async fn a_call_waits_no_longer_than_its_deadline() {
    let (provider, batches) = (BatchProvider::start().await, Batches::default().by(AT_ONCE));
    let model = model(At::Anthropic, &batches, &provider);
    let asked = ChatRequest { deadline: Duration::from_millis(20), ..question("one") };
    let late = error(call(&model, &run(), asked)).await;
    assert_eq!((late.cause, late.retry), (FailureCause::Timeout, RetryAdvice::Transient));
}

#[tokio::test]
async fn the_key_is_in_no_file_and_no_message() {
    let (provider, folder) = (BatchProvider::start().await, tempfile::tempdir().unwrap());
    let batches = process(folder.path());
    let call = ask(&model(At::OpenAi, &batches, &provider), "a secret question");
    provider.made(1).await;
    provider.end(0, ProvidedStage::Ended);
    answer(call).await;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(KEY) && !text.contains("question") && text.contains("batch_1"), "{text}");
    }
}
