//! The body of a reply: in one piece, in several pieces, or broken on purpose.

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

/// The server breaks the connection off. hyper then closes it without ending the body.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the simulated server breaks the connection off")]
pub(super) struct BrokenOff;

/// The body of a reply.
pub(super) type SimBody = UnsyncBoxBody<Bytes, BrokenOff>;

/// A body in one piece.
pub(super) fn whole(bytes: impl Into<Bytes>) -> SimBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body in pieces, as they come.
pub(super) fn pieces(stream: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static) -> SimBody {
    StreamBody::new(stream.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// A body that breaks off after half of these bytes.
pub(super) fn truncated(bytes: &Bytes) -> SimBody {
    let half = bytes.slice(..bytes.len() / 2);
    pieces(stream::once(async { Ok(half) }).chain(stream::once(break_off())))
}

/// Breaks the connection off, but only after what was written has reached the socket: hyper drops its buffer when a
/// body fails, and flushes it when a body has to be waited for.
pub(super) async fn break_off<T>() -> Result<T, BrokenOff> {
    tokio::task::yield_now().await;
    Err(BrokenOff)
}
