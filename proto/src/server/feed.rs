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

/// A stream of messages to a client.
pub(super) type Messages<W> = Pin<Box<dyn Stream<Item = Result<W, Status>> + Send>>;

/// The sending half of a feed. Its end is marked explicitly: a feed that stops without the mark was cut off, and the
/// reader gets an error instead of an end.
pub(super) type Sender<W> = mpsc::Sender<Said<W>>;

/// One message of a feed.
pub(super) enum Said<W> {
    /// An item, or the error that ends the feed.
    Item(Result<W, Status>),
    /// The end of the feed.
    End,
}

/// Forwards a coordinator's items until they end, or nobody listens any more.
pub(super) async fn pump<T, W: From<T>>(mut feed: Feed<'_, T>, caller: &Caller, sender: &Sender<W>) {
    loop {
        let item = tokio::select! {
            item = feed.next() => item,
            () = rights_end(caller) => Some(Err(revoked(caller))),
            () = sender.closed() => return,
        };
        let said = match item {
            Some(Ok(item)) => Said::Item(Ok(W::from(item))),
            Some(Err(error)) => Said::Item(Err(to_status(error))),
            None => Said::End,
        };
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
pub(super) fn messages<W: Send + 'static>(
    receiver: mpsc::Receiver<Said<W>>,
) -> impl Stream<Item = Result<W, Status>> + Send {
    stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Said::Item(Ok(item))) => Some((Ok(item), Some(receiver))),
            Some(Said::Item(Err(status))) => Some((Err(status), None)),
            Some(Said::End) => None,
            None => {
                let error = ServiceError::new(ErrorCode::Internal, "the coordinator's stream broke off");
                Some((Err(to_status(error)), None))
            }
        }
    })
}

/// Ends a stream with an error when the server aborts calls in progress.
pub(super) fn until_cut<W: Send + 'static>(
    items: impl Stream<Item = Result<W, Status>> + Send + 'static,
    closing: Closing,
) -> impl Stream<Item = Result<W, Status>> + Send {
    ended_by(items, async move { closing.cut().await })
}

/// Ends a stream with an error when the server accepts nothing new, for streams that would not end by themselves.
pub(super) fn until_draining<W: Send + 'static>(
    items: impl Stream<Item = Result<W, Status>> + Send + 'static,
    closing: Closing,
) -> impl Stream<Item = Result<W, Status>> + Send {
    ended_by(items, async move { closing.draining().await })
}

fn ended_by<W: Send + 'static>(
    items: impl Stream<Item = Result<W, Status>> + Send + 'static,
    end: impl Future<Output = ()> + Send + 'static,
) -> impl Stream<Item = Result<W, Status>> + Send {
    stream::unfold(Some((Box::pin(items), Box::pin(end))), |state| async {
        let (mut items, mut end) = state?;
        tokio::select! {
            // Items first: those available are still sent.
            biased;
            item = items.next() => item.map(|item| (item, Some((items, end)))),
            () = &mut end => Some((Err(to_status(leaving())), None)),
        }
    })
}
