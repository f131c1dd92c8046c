//! Bounds the memory for received messages: a message reserves its size before it is read, and waits if there is no room.
//!
//! The guard wraps the body of every call in a [`Budgeted`]. All calls of a connection share [`DECODE_BYTES`], all
//! connections [`RECEIVED_BYTES`]. A message that waits longer than [`ROOM_PATIENCE`] fails its call with
//! `RESOURCE_EXHAUSTED`; one that is longer than its call allows, or does not arrive within [`MESSAGE_TIME`], fails its
//! call too. A gRPC message has its length in its first five bytes. Unread data stays in the HTTP/2 window, and then at
//! the peer.
//!
//! [`DECODE_BYTES`]: crate::limits::DECODE_BYTES

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use domain::{ErrorCode, ServiceError};
use http_body::Body as _;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep, timeout};
use tonic::Status;
use tonic::codegen::BoxFuture;

use super::access::Sends;
use crate::api::problem::Problem;
use crate::limits::{
    MESSAGE_BYTES, MESSAGE_TIME, NAMING_BYTES, RECEIVED_BYTES, RECEIVED_SMALL_BYTES, ROOM_PATIENCE,
};
use crate::status::to_status;

/// Unit of the memory budgets, in bytes.
pub(super) const DECODE_UNIT: usize = 1024;

/// The memory budget of a server for messages of all its connections.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// For messages of at most [`NAMING_BYTES`].
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// How long a message may wait for room.
    patience: Duration,
    /// How long a message may take to arrive.
    arrival: Duration,
}

impl Default for Received {
    fn default() -> Self {
        Self::with(ROOM_PATIENCE, MESSAGE_TIME)
    }
}

impl Received {
    fn with(patience: Duration, arrival: Duration) -> Self {
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes / DECODE_UNIT));
        let large = room(RECEIVED_BYTES - RECEIVED_SMALL_BYTES);
        Self { small: room(RECEIVED_SMALL_BYTES), large, patience, arrival }
    }

    /// Receives a whole body of at most so many bytes, if there is room for it, also on its connection.
    ///
    /// # Errors
    /// It is longer, or broken off; no room is free in time; or it does not arrive in time.
    pub(super) async fn whole(
        &self,
        body: Body,
        limit: usize,
        connection: Option<Arc<Semaphore>>,
    ) -> Result<Bytes, Problem> {
        let problem =
            |status, code, message: String| Problem::with(status, &ServiceError::new(code, message));
        let too_long = || {
            let message = format!("the request has more than {limit} bytes");
            problem(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Invalid, message)
        };
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let expected = match body.size_hint().exact() {
            Some(bytes) if bytes > limit as u64 => return Err(too_long()),
            Some(bytes) => bytes as usize,
            None => limit,
        };
        let units = expected.div_ceil(DECODE_UNIT) as u32;
        let server = Arc::clone(self.room_for(expected));
        let room = async {
            // The connection's first: who waits for others of its own takes nothing from anybody.
            let own = match connection {
                Some(connection) => Some(connection.acquire_many_owned(units).await?),
                None => None,
            };
            Ok::<_, tokio::sync::AcquireError>((own, server.acquire_many_owned(units).await?))
        };
        let Ok(_room) = timeout(self.patience, room).await else {
            let message = "too much is being received at once; try again later".to_owned();
            return Err(problem(StatusCode::TOO_MANY_REQUESTS, ErrorCode::Full, message));
        };
        match timeout(self.arrival, Limited::new(body, limit).collect()).await {
            Ok(Ok(whole)) => Ok(whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
            Ok(Err(error)) => {
                let message = format!("the request broke off: {error}");
                Err(problem(StatusCode::BAD_REQUEST, ErrorCode::Invalid, message))
            }
            Err(_) => {
                let message = format!("the request did not arrive within {:?}", self.arrival);
                Err(problem(StatusCode::REQUEST_TIMEOUT, ErrorCode::Unavailable, message))
            }
        }
    }

    fn room_for(&self, bytes: usize) -> &Arc<Semaphore> {
        if bytes <= NAMING_BYTES { &self.small } else { &self.large }
    }
}

/// Bytes before each message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Messages that begin in the same piece.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    /// Their lengths, added.
    bytes: u64,
    longest: u64,
}

/// Finds the lengths of messages in a byte stream, in whatever pieces it arrives.
#[derive(Debug, Default)]
struct Lengths {
    head: [u8; HEAD],
    have: usize,
    left: u64,
}

impl Lengths {
    /// The messages that begin in this piece; `None` if there are none.
    fn begun(&mut self, mut piece: &[u8]) -> Option<Begun> {
        let mut begun: Option<Begun> = None;
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
                let begun = begun.get_or_insert_default();
                begun.bytes += self.left;
                begun.longest = begun.longest.max(self.left);
            }
        }
        begun
    }

    /// Whether every message that began is there completely.
    fn are_complete(&self) -> bool {
        self.have == 0 && self.left == 0
    }
}

/// Room for messages, of the connection and of the server.
type Room = [OwnedSemaphorePermit; 2];

/// A piece that waits for the room of the messages that begin in it.
struct Waiting {
    frame: Frame<Bytes>,
    room: BoxFuture<Room, tokio::sync::AcquireError>,
    patience: Pin<Box<Sleep>>,
}

/// A request body within its memory budget.
pub(super) struct Budgeted {
    body: Body,
    sends: Sends,
    lengths: Lengths,
    connection: Arc<Semaphore>,
    server: Received,
    held: Option<Room>,
    waiting: Option<Waiting>,
    /// Expires if the rest of a message does not come in time.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Budgeted {
    pub(super) fn new(body: Body, sends: Sends, connection: Arc<Semaphore>, server: &Received) -> Self {
        // The only message of a call is expected from the beginning; a stream may be silent between messages.
        let deadline = matches!(sends, Sends::One(_)).then(|| Box::pin(sleep(server.arrival)));
        let (lengths, server) = (Lengths::default(), server.clone());
        Self { body, sends, lengths, connection, server, held: None, waiting: None, deadline }
    }

    /// Passes on a piece. Whoever gets the last one of a message decodes it at once.
    fn pass(&mut self, frame: Frame<Bytes>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.lengths.are_complete() {
            self.held = None;
            self.deadline = None;
        } else if self.deadline.is_none() {
            self.deadline = Some(Box::pin(sleep(self.server.arrival)));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    /// Waits for room for what begins in a piece.
    fn wait(&mut self, frame: Frame<Bytes>, begun: Begun) -> Result<(), Status> {
        let limit = self.sends.message_bytes();
        if begun.longest > limit as u64 {
            let message =
                format!("the call sends a message of {} bytes; the limit is {limit}", begun.longest);
            return Err(to_status(ServiceError::new(ErrorCode::Invalid, message)));
        }
        // Several messages in one piece are there already, but for the last.
        let bytes = usize::try_from(begun.bytes).unwrap_or(usize::MAX).min(MESSAGE_BYTES);
        let units = bytes.div_ceil(DECODE_UNIT) as u32;
        // Earlier messages are received completely; their processing is bounded elsewhere.
        self.held = None;
        self.deadline = None;
        let (connection, server) = (Arc::clone(&self.connection), Arc::clone(self.server.room_for(bytes)));
        let room = Box::pin(async move {
            // The connection's first: who waits for others of its own takes nothing from anybody.
            let connection = connection.acquire_many_owned(units).await?;
            Ok([connection, server.acquire_many_owned(units).await?])
        });
        let patience = Box::pin(sleep(self.server.patience));
        self.waiting = Some(Waiting { frame, room, patience });
        Ok(())
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
            let frame = match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(end) => {
                    return Poll::Ready(
                        end.map(|end| end.map_err(|error| Status::from_error(error.into_inner()))),
                    );
                }
                Poll::Pending => {
                    let Some(deadline) = &mut this.deadline else { return Poll::Pending };
                    ready!(deadline.as_mut().poll(context));
                    this.held = None;
                    let message = format!("a message did not arrive within {:?}", this.server.arrival);
                    return Poll::Ready(Some(Err(Status::deadline_exceeded(message))));
                }
            };
            let Some(begun) = frame.data_ref().and_then(|data| this.lengths.begun(data)) else {
                return this.pass(frame);
            };
            if let Err(status) = this.wait(frame, begun) {
                return Poll::Ready(Some(Err(status)));
            }
        }
        let Some(waiting) = &mut this.waiting else { return Poll::Pending };
        match waiting.room.as_mut().poll(context) {
            Poll::Ready(room) => this.held = room.ok(),
            Poll::Pending => {
                ready!(waiting.patience.as_mut().poll(context));
                this.waiting = None;
                let message = "too many messages are being received at once; try again later";
                return Poll::Ready(Some(Err(Status::resource_exhausted(message))));
            }
        }
        match this.waiting.take() {
            Some(waiting) => this.pass(waiting.frame),
            None => Poll::Pending,
        }
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

    use std::future::poll_fn;

    use http_body::Body as _;
    use tokio::sync::mpsc;
    use tonic::Code;

    use super::*;
    use crate::limits::DECODE_BYTES;

    /// A body of the pieces that a test sends, which does not end as long as the test holds the sender.
    struct Pieces(mpsc::UnboundedReceiver<Bytes>);

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
        }
    }

    /// A call on a connection of its own.
    struct Upload {
        pieces: mpsc::UnboundedSender<Bytes>,
        body: Budgeted,
    }

    impl Upload {
        fn new(sends: Sends, server: &Received) -> Self {
            let (pieces, receiver) = mpsc::unbounded_channel();
            let connection = Arc::new(Semaphore::new(DECODE_BYTES / DECODE_UNIT));
            Self { pieces, body: Budgeted::new(Body::new(Pieces(receiver)), sends, connection, server) }
        }

        /// Sends the head of a message of this length, and this many of its bytes.
        fn send(&self, length: usize, sent: usize) {
            let head = [&[0][..], &(length as u32).to_be_bytes(), &vec![0; sent]].concat();
            self.pieces.send(head.into()).unwrap();
        }

        /// The next piece, or how the call fails.
        async fn next(&mut self) -> Result<(), Status> {
            poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await.unwrap().map(drop)
        }
    }

    /// A server that waits for nobody: only what must fail in the end waits for this.
    fn hasty() -> Received {
        Received::with(Duration::from_millis(1), Duration::from_millis(1))
    }

    #[tokio::test]
    async fn all_connections_share_the_room_for_messages_being_received() {
        let server = hasty();
        let mut greedy: Vec<Upload> = Vec::new();
        for _ in 0..(RECEIVED_BYTES - RECEIVED_SMALL_BYTES) / MESSAGE_BYTES {
            let mut upload = Upload::new(Sends::One(MESSAGE_BYTES), &server);
            upload.send(MESSAGE_BYTES, 1);
            upload.next().await.unwrap();
            greedy.push(upload);
        }
        let mut late = Upload::new(Sends::One(MESSAGE_BYTES), &server);
        late.send(MESSAGE_BYTES, 1);
        assert_eq!(late.next().await.unwrap_err().code(), Code::ResourceExhausted);
        let mut small = Upload::new(Sends::One(NAMING_BYTES), &server);
        small.send(NAMING_BYTES, NAMING_BYTES);
        small.next().await.expect("a short message does not wait for long ones");
        greedy.pop();
        let mut next = Upload::new(Sends::One(MESSAGE_BYTES), &server);
        next.send(MESSAGE_BYTES, 1);
        next.next().await.expect("the room of a call that ended is free");
    }

    #[tokio::test]
    async fn a_whole_body_has_its_length_its_time_and_its_room() {
        let server = hasty();
        let free = server.small.available_permits();
        let status = async |body: Body| server.whole(body, 10, None).await.map_err(|problem| problem.status);
        assert_eq!(status(Body::from("ten bytes!")).await.unwrap(), "ten bytes!");
        assert_eq!(status(Body::from("eleven byte")).await, Err(413));
        let (pieces, receiver) = mpsc::unbounded_channel();
        pieces.send(Bytes::from_static(b"eleven bytes")).unwrap();
        assert_eq!(
            status(Body::new(Pieces(receiver))).await,
            Err(413),
            "also where its length is not told before"
        );
        let (pieces, receiver) = mpsc::unbounded_channel();
        pieces.send(Bytes::from_static(b"half")).unwrap();
        assert_eq!(status(Body::new(Pieces(receiver))).await, Err(408));
        assert_eq!(server.small.available_permits(), free);
        let connection = Arc::new(Semaphore::new(0));
        let crowded = server.whole(Body::from("x"), 10, Some(connection)).await;
        assert_eq!(crowded.unwrap_err().status, 429);
    }

    #[tokio::test]
    async fn a_stream_between_messages_takes_no_room() {
        let server = hasty();
        let free = server.large.available_permits();
        let mut stream = Upload::new(Sends::Many(MESSAGE_BYTES), &server);
        stream.send(1 << 20, 1 << 19);
        stream.next().await.unwrap();
        assert!(server.large.available_permits() < free);
        stream.pieces.send(vec![0; 1 << 19].into()).unwrap();
        stream.next().await.unwrap();
        assert_eq!(server.large.available_permits(), free);
        assert!(stream.body.deadline.is_none(), "a stream may be silent between messages");
    }

    #[tokio::test]
    async fn a_message_that_is_begun_and_one_that_never_begins_have_their_time() {
        let server = hasty();
        let free = server.large.available_permits();
        for (sends, begun) in
            [(Sends::One(1 << 20), true), (Sends::One(1 << 20), false), (Sends::Many(1 << 20), true)]
        {
            let mut upload = Upload::new(sends, &server);
            if begun {
                upload.send(1 << 20, (1 << 20) - 1);
                upload.next().await.unwrap();
            }
            let ended = upload.next().await.unwrap_err();
            assert_eq!(ended.code(), Code::DeadlineExceeded, "{sends:?}");
            assert_eq!(server.large.available_permits(), free);
        }
    }

    #[tokio::test]
    async fn a_message_that_its_call_does_not_allow_is_refused_before_it_is_received() {
        let server = hasty();
        let mut upload = Upload::new(Sends::One(NAMING_BYTES), &server);
        upload.send(NAMING_BYTES + 1, 0);
        let refused = upload.next().await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("65537 bytes; the limit is 65536"), "{}", refused.message());
    }

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
                total += found.begun(&bytes[at..end]).unwrap_or_default().bytes;
                at = end;
                if at == bytes.len() {
                    break;
                }
            }
            prop_assert_eq!(total, lengths.iter().copied().map(u64::from).sum::<u64>());
        }
    }
}
