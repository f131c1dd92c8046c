//! Streams of answers.

use std::pin::Pin;

use domain::caller::Caller;
use domain::control::Feed;
use domain::{ErrorCode, ServiceError};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;
use tonic::Status;

use super::closing::{Closing, leaving};
use crate::limits::REVOKED_WITHIN;
use crate::status::to_status;

/// A stream of messages to a client of gRPC.
pub(super) type Messages<W> = Pin<Box<dyn Stream<Item = Result<W, Status>> + Send>>;

/// The sending half of a feed. Its end is marked explicitly: a feed that stops without the mark was cut off, and the
/// reader gets an error instead of an end.
pub(super) type Sender<T> = mpsc::Sender<Said<T>>;

/// One message of a feed.
pub(super) enum Said<T> {
    /// An item, or the error that ends the feed.
    Item(Result<T, ServiceError>),
    /// The end of the feed.
    End,
}

/// Forwards a coordinator's items until they end, or nobody listens any more.
pub(super) async fn pump<T>(mut feed: Feed<'_, T>, caller: &Caller, sender: &Sender<T>) {
    loop {
        let item = tokio::select! {
            item = feed.next() => item,
            () = rights_end(caller) => Some(Err(revoked(caller))),
            () = sender.closed() => return,
        };
        let said = item.map_or(Said::End, Said::Item);
        let last = !matches!(said, Said::Item(Ok(_)));
        if sender.send(said).await.is_err() || last {
            return;
        }
    }
}

/// Waits until a caller's rights are revoked.
async fn rights_end(caller: &Caller) {
    while !caller.is_revoked() {
        tokio::time::sleep(REVOKED_WITHIN).await;
    }
}

/// The error for a caller whose rights were revoked.
pub(super) fn revoked(caller: &Caller) -> ServiceError {
    ServiceError::new(ErrorCode::Denied, format!("the rights of `{}` were revoked", caller.name()))
}

/// The receiving half of a feed.
pub(super) fn items<T: Send + 'static>(
    receiver: mpsc::Receiver<Said<T>>,
) -> impl Stream<Item = Result<T, ServiceError>> + Send {
    stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Said::Item(Ok(item))) => Some((Ok(item), Some(receiver))),
            Some(Said::Item(Err(error))) => Some((Err(error), None)),
            Some(Said::End) => None,
            None => {
                let error = ServiceError::new(ErrorCode::Internal, "the coordinator's stream broke off");
                Some((Err(error), None))
            }
        }
    })
}

/// Ends a stream of gRPC with an error when the server aborts calls in progress.
pub(super) fn until_cut<W: Send + 'static>(
    items: impl Stream<Item = Result<W, Status>> + Send + 'static,
    closing: Closing,
) -> impl Stream<Item = Result<W, Status>> + Send {
    ended_by(items, async move { closing.cut().await }, || to_status(leaving()))
}

/// Ends a stream with an error when this is over.
pub(super) fn ended_by<T: Send + 'static, E: Send + 'static>(
    items: impl Stream<Item = Result<T, E>> + Send + 'static,
    end: impl Future<Output = ()> + Send + 'static,
    last: fn() -> E,
) -> impl Stream<Item = Result<T, E>> + Send {
    stream::unfold(Some((Box::pin(items), Box::pin(end))), move |state| async move {
        let (mut items, mut end) = state?;
        tokio::select! {
            // Items first: those available are still sent.
            biased;
            item = items.next() => item.map(|item| (item, Some((items, end)))),
            () = &mut end => Some((Err(last()), None)),
        }
    })
}
