use serde::Deserialize;

use super::*;

/// What a server says, and what it means: shapes, full and strict servers, poor accounts, models, requests and contexts; then all
/// errors that Anthropic documents, and those known of Google.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The provider, if only one says so.
    #[serde(rename = "of")]
    _of: Option<String>,
    status: u16,
    /// The delay that the server asks for.
    after_s: Option<u64>,
    body: String,
    cause: FailureCause,
    /// As `Debug` prints it, and so the remedy.
    retry: String,
    remedy: Option<String>,
    message: Option<String>,
}

#[test]
fn every_known_refusal_is_understood() {
    for line in include_str!("refusals.jsonl").lines() {
        let row: Row = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let rejected = classify(row.status, row.after_s.map(Duration::from_secs), &row.body, None);
        let (error, remedy) = (&rejected.error, format!("{:?}", rejected.remedy));
        assert_eq!((error.cause, format!("{:?}", error.retry)), (row.cause, row.retry), "{line}");
        assert_eq!(row.remedy.as_ref().unwrap_or(&remedy), &remedy, "{line}");
        assert_eq!(row.message.as_ref().unwrap_or(&error.message), &error.message, "{line}");
        assert_eq!(error.status, Some(row.status));
        assert!(!error.in_words().is_empty());
    }
    assert_eq!(classify(502, None, "<html>", None).error.cause, FailureCause::Server);
}

#[test]
fn the_message_is_the_servers_own() {
    assert_eq!(classify(401, None, r#"{"error":"Unauthorized"}"#, None).error.message, "Unauthorized");
    assert_eq!(
        classify(405, None, r#"{"detail":"Method Not Allowed"}"#, None).error.message,
        "Method Not Allowed"
    );
    assert_eq!(classify(400, None, r#"{"error":{"message":"why"}}"#, None).error.message, "why");
    assert_eq!(classify(500, None, "", None).error.in_words(), "HTTP 500, without a message");
}

#[test]
fn the_servers_delay_is_kept() {
    let after = Some(Duration::from_secs(7));
    for status in [429, 503] {
        assert_eq!(classify(status, after, "{}", None).error.retry, RetryAdvice::RateLimited { after });
    }
}

#[test]
fn an_error_within_a_stream_carries_its_own_status() {
    let busy = classify_within_success(r#"{"error":{"message":"busy","code":503}}"#, None);
    assert_eq!((busy.error.cause, busy.error.status), (FailureCause::Overloaded, Some(503)));
    assert_eq!(classify_within_success(r#"{"error":{"message":"x"}}"#, None).error.status, Some(500));
}
