//! Answers that go on: views as server-sent events, records as JSON lines.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse as _, Response};
use domain::caller::Caller;
use domain::{RunId, ServiceError};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;

use super::Api;
use crate::api::problem::Problem;
use crate::api::{ExportLine, JSON_LINES};
use crate::server::closing::leaving;
use crate::server::feed::{ended_by, items, pump};

/// A benchmark again and again, until it ends: events `view`, then `end`, or `error` with a problem. A call that fails at once is
/// answered like any other.
pub(super) async fn views(api: &Api, caller: Caller, run: RunId) -> Response {
    let control = api.control(&caller);
    // One view is buffered: a slow watcher sees fewer of them, not older ones.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move { pump(control.watch(&run), &caller, &sender).await });
    let closing = api.closing.clone();
    let views = ended_by(items(receiver), async move { closing.draining().await }, leaving);
    let views = match begun(views).await {
        Ok(views) => views,
        Err(refused) => return refused,
    };
    let views = views.map(|view| view.map(Some)).chain(stream::iter([Ok(None)]));
    let events = until_error(views).map(|view| match view {
        Ok(Some(view)) => event("view", serde_json::to_vec(&view)),
        Ok(None) => event("end", Ok(b"{}".to_vec())),
        Err(error) => event("error", serde_json::to_vec(&Problem::from(&error))),
    });
    // Proxies that collect answers are asked not to.
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
}

fn event(name: &str, json: serde_json::Result<Vec<u8>>) -> Bytes {
    let mut event = format!("event: {name}\ndata: ").into_bytes();
    event.extend(json.unwrap_or_default());
    event.extend(b"\n\n");
    event.into()
}

/// The export of a benchmark, a line for each item. A call that fails at once is answered like any other.
pub(super) async fn records(api: &Api, caller: Caller, run: RunId) -> Response {
    let turn = match api.result(api.exports.take(&caller)).await {
        Ok(turn) => turn,
        Err(refused) => return Problem::from(&refused).into_response(),
    };
    let control = api.control(&caller);
    // A record may be long, and the coordinator reads ahead already.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move { pump(control.records(&run), &caller, &sender).await });
    let closing = api.closing.clone();
    let lines = ended_by(items(receiver), async move { closing.cut().await }, leaving);
    let lines = match begun(lines).await {
        Ok(lines) => lines,
        Err(refused) => return refused,
    };
    let lines = until_error(lines).map(move |item| {
        // The turn ends with the answer.
        let _ = &turn;
        ExportLine::write(&item).map(Bytes::from)
    });
    ([(header::CONTENT_TYPE, JSON_LINES)], Body::from_stream(lines)).into_response()
}

/// A stream whose first item is there, and is no error.
async fn begun<T>(
    items: impl Stream<Item = Result<T, ServiceError>> + Send + 'static,
) -> Result<impl Stream<Item = Result<T, ServiceError>>, Response> {
    let mut items = Box::pin(items.peekable());
    match items.as_mut().peek().await {
        Some(Err(error)) => Err(Problem::from(error).into_response()),
        _ => Ok(items),
    }
}

/// A stream that ends with its first error.
fn until_error<T, E>(items: impl Stream<Item = Result<T, E>>) -> impl Stream<Item = Result<T, E>> {
    items.scan(false, |is_over, item| {
        let item = (!*is_over).then_some(item);
        *is_over |= matches!(item, Some(Err(_)));
        futures::future::ready(item)
    })
}
