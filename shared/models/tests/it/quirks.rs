//! Every server of the table of quirks is asked, and what it says is understood.

use std::time::Duration;

use crate::support::request;
use domain::{FinishReason, Message};
use harness::canned_server::CannedServer;
use harness::quirks::{self, Quirk, QuirkEnd, TEXT};
use models::{ChatRequest, OpenAiCompatible, OpenAiConfig, RetryPolicy, complete_with_retry};

/// A seed of more than 32 bits.
const SEED: u64 = 5_368_709_120;

/// Asks the server of a row; what is wrong, in words.
async fn wrong_of(quirk: &Quirk) -> Option<String> {
    let server = CannedServer::start((quirk.answers)()).await;
    let model = OpenAiCompatible::new(OpenAiConfig::new(&server.url, quirk.model)).unwrap();
    let policy = RetryPolicy {
        delay_first: Duration::from_millis(1),
        delay_max: Duration::from_millis(1),
        retry_after_max: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let asked = request(vec![Message::system("Be brief."), Message::user("What is the capital of France?")]);
    let asked = ChatRequest { seed: Some(SEED), ..asked };
    let (reply, _) = complete_with_retry(&model, asked, &policy, || jiff::Timestamp::UNIX_EPOCH).await;
    let end = match &reply {
        Ok(reply) if reply.answer.finish_reason == Some(FinishReason::ContentFilter) => QuirkEnd::Filtered,
        Ok(reply) if reply.answer.text == TEXT => QuirkEnd::Answered,
        Ok(reply) => return Some(format!("answered {:?}", reply.answer.text)),
        Err(error) => QuirkEnd::Failed(error.cause),
    };
    let asked = server.asked();
    let calls = asked.iter().filter(|asked| asked.path.ends_with("/chat/completions")).count();
    let wants = asked.last().is_some_and(|last| (quirk.wants)(&last.body));
    let is_noted = reply.as_ref().map_or(quirk.noted.is_empty(), |reply| reply.adapted == quirk.noted);
    let is_right = (end, calls, server.left(), wants && is_noted) == (quirk.end, quirk.calls, 0, true);
    (!is_right).then(|| {
        format!(
            "{end:?} after {calls} calls, {reply:?}, last request {:?}",
            asked.last().map(|last| &last.body)
        )
    })
}

#[tokio::test]
async fn every_quirk_is_understood() {
    let mut wrong = Vec::new();
    for quirk in quirks::all() {
        wrong.extend(wrong_of(quirk).await.map(|what| format!("{}: {what}", quirk.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
