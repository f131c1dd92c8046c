//! Bounds the memory for received messages of one connection: a message reserves its size before it is read, and waits
//! if there is no room.
//!
//! The guard wraps the body of every call in a [`Budgeted`]. All calls of a connection share
//! [`DECODE_BYTES`](crate::limits::DECODE_BYTES). A message that waits longer than [`ROOM_PATIENCE`] fails its call
//! with `RESOURCE_EXHAUSTED`. A gRPC message has its length in its first five bytes. Unread data stays in the HTTP/2
//! window, and then at the peer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::PollSemaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

use super::line::DECODE_UNIT;
use crate::limits::{MESSAGE_BYTES, ROOM_PATIENCE};

/// Bytes before each message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Finds the lengths of messages in a byte stream, in whatever pieces it arrives.
#[derive(Debug, Default)]
struct Lengths {
    head: [u8; HEAD],
    have: usize,
    left: u64,
}

impl Lengths {
    /// The lengths of the messages that begin in this piece; `None` if there are none.
    fn begun(&mut self, mut piece: &[u8]) -> Option<u64> {
        let mut begun = None;
        while !piece.is_empty() {
            if self.left > 0 {
                let passed = self.left.min(piece.len() as u64);
                piece = &piece[passed as usize..];
                self.left -= passed;
                continue;
            }
            self.head[self.have] = piece[0];
            self.have += 1;
            piece = &piece[1..];
            if self.have == HEAD {
                let [_, length @ ..] = self.head;
                self.left = u64::from(u32::from_be_bytes(length));
                self.have = 0;
                *begun.get_or_insert(0) += self.left;
            }
        }
        begun
    }
}

/// A request body within its memory budget.
pub(super) struct Budgeted {
    body: Body,
    lengths: Lengths,
    room: PollSemaphore,
    held: Option<OwnedSemaphorePermit>,
    waiting: Option<(u32, Frame<Bytes>, Pin<Box<Sleep>>)>,
}

impl Budgeted {
    pub(super) fn new(body: Body, room: Arc<Semaphore>) -> Self {
        Self { body, lengths: Lengths::default(), room: PollSemaphore::new(room), held: None, waiting: None }
    }
}

impl http_body::Body for Budgeted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.waiting.is_none() {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            let Some(bytes) = frame.data_ref().and_then(|data| this.lengths.begun(data)) else {
                return Poll::Ready(Some(Ok(frame)));
            };
            // A too long message is refused before it is received.
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(MESSAGE_BYTES);
            // Earlier messages are received completely; their processing is bounded elsewhere.
            this.held = None;
            this.waiting = Some((bytes.div_ceil(DECODE_UNIT) as u32, frame, Box::pin(sleep(ROOM_PATIENCE))));
        }
        let Some((units, _, patience)) = &mut this.waiting else { return Poll::Pending };
        match this.room.poll_acquire_many(context, *units) {
            Poll::Ready(permit) => this.held = permit,
            Poll::Pending => {
                ready!(patience.as_mut().poll(context));
                this.waiting = None;
                let message = "too many messages of this connection are being received at once";
                return Poll::Ready(Some(Err(Status::resource_exhausted(message))));
            }
        }
        Poll::Ready(this.waiting.take().map(|(_, frame, _)| Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lengths_are_found_however_the_bytes_come(
            lengths in prop::collection::vec(0..300_u32, 0..8), cuts in prop::collection::vec(1..40_usize, 1..200)
        ) {
            let mut bytes = Vec::new();
            for length in &lengths {
                bytes.push(0);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.resize(bytes.len() + *length as usize, 0xff);
            }
            let (mut found, mut total, mut at) = (Lengths::default(), 0, 0);
            for cut in cuts.iter().cycle() {
                let end = (at + cut).min(bytes.len());
                total += found.begun(&bytes[at..end]).unwrap_or_default();
                at = end;
                if at == bytes.len() {
                    break;
                }
            }
            prop_assert_eq!(total, lengths.iter().copied().map(u64::from).sum::<u64>());
        }
    }
}
