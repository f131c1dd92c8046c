//! The body of a reply: in one piece, in several pieces, or broken on purpose.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use hyper::body::{Body, Frame, SizeHint};

/// The server breaks the connection off. hyper then closes it without ending the body.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the simulated server breaks the connection off")]
pub(super) struct BrokenOff;

/// The body of a reply.
pub(super) enum SimBody {
    Whole(Option<Bytes>),
    Pieces {
        stream: BoxStream<'static, Result<Bytes, BrokenOff>>,
        /// The length that the header announces; without it the body is chunked.
        announced: Option<u64>,
    },
}

impl SimBody {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub(super) fn pieces(
        stream: impl futures::Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static,
    ) -> Self {
        Self::Pieces { stream: stream.boxed(), announced: None }
    }

    /// A body that announces all of its bytes and ends after half of them.
    pub(super) fn truncated(bytes: impl Into<Bytes>) -> Self {
        let bytes: Bytes = bytes.into();
        let half = bytes.slice(..bytes.len() / 2);
        let stream = stream::once(async { Ok(half) }).chain(stream::once(break_off()));
        Self::Pieces { stream: stream.boxed(), announced: Some(bytes.len() as u64) }
    }
}

/// Breaks the connection off, but only after what was written has reached the socket: hyper drops its buffer when a
/// body fails, and flushes it when a body has to be waited for.
pub(super) async fn break_off<T>() -> Result<T, BrokenOff> {
    tokio::task::yield_now().await;
    Err(BrokenOff)
}

impl Body for SimBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces { stream, .. } => {
                stream.poll_next_unpin(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces { announced: Some(length), .. } => SizeHint::with_exact(*length),
            Self::Pieces { announced: None, .. } => SizeHint::default(),
        }
    }
}
