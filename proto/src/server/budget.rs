//! Bounds the memory for received messages: a message reserves its size before it is read, and waits if there is no room.
//!
//! The guard receives the message of every call as a whole before it passes it on. All calls of a connection share
//! [`DECODE_BYTES`], all connections [`RECEIVED_BYTES`]. A message that waits longer than [`ROOM_PATIENCE`], that is longer than
//! its call allows, or that does not arrive within [`MESSAGE_TIME`] fails its call. A gRPC message has its length in its first
//! five bytes. Unread data stays in the HTTP/2 window, and then at the peer. Long batches of records keep their room until they are
//! stored, so that records that wait for the disk are bounded, too.
//!
//! [`DECODE_BYTES`]: crate::limits::DECODE_BYTES

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use domain::{ErrorCode, ServiceError};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::problem::Problem;
use crate::limits::{MESSAGE_TIME, NAMING_BYTES, RECEIVED_BYTES, RECEIVED_SMALL_BYTES, ROOM_PATIENCE};

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

/// Bytes before a message of gRPC: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Room for a message, of its connection and of the server.
pub(super) type Room = (Option<OwnedSemaphorePermit>, OwnedSemaphorePermit);

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
        mut body: Body,
        limit: usize,
        connection: Option<Arc<Semaphore>>,
    ) -> Result<Bytes, Problem> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let expected = match body.size_hint().exact() {
            Some(bytes) if bytes > limit as u64 => return Err(too_long(limit)),
            Some(bytes) => bytes as usize,
            None => limit,
        };
        let _room = self.reserved(expected, connection).await?;
        let mut bytes = Vec::new();
        self.read(&mut body, &mut bytes, limit + 1).await?;
        if bytes.len() > limit { Err(too_long(limit)) } else { Ok(bytes.into()) }
    }

    /// Receives the message of a call of gRPC, of at most so many bytes, in the same way: its length stands before it. A body
    /// that ends too early is passed on as it is. The room of a message of more than [`NAMING_BYTES`] comes with it, for whoever
    /// keeps it longer.
    ///
    /// # Errors
    /// As for [`whole`](Self::whole).
    pub(super) async fn message(
        &self,
        mut body: Body,
        limit: usize,
        connection: Option<Arc<Semaphore>>,
    ) -> Result<(Body, Option<Room>), Problem> {
        let (mut bytes, mut room) = (Vec::new(), None);
        self.read(&mut body, &mut bytes, HEAD).await?;
        if let Some([_, length @ ..]) = bytes.first_chunk::<HEAD>() {
            let length = u32::from_be_bytes(*length) as usize;
            if length > limit {
                return Err(too_long(limit));
            }
            let reserved = self.reserved(length, connection).await?;
            // As much as is reserved and no more: what comes in small pieces takes no more room than in one.
            bytes.reserve_exact((HEAD + length).saturating_sub(bytes.len()));
            self.read(&mut body, &mut bytes, HEAD + length + 1).await?;
            if bytes.len() > HEAD + length {
                let message = "the call sends more than one message";
                return Err(problem(StatusCode::BAD_REQUEST, ErrorCode::Invalid, message));
            }
            room = Some(reserved).filter(|_| length > NAMING_BYTES);
        }
        Ok((Body::from(bytes), room))
    }

    /// Room for so many bytes, once there is.
    async fn reserved(&self, bytes: usize, connection: Option<Arc<Semaphore>>) -> Result<Room, Problem> {
        let units = bytes.div_ceil(DECODE_UNIT) as u32;
        let server = if bytes <= NAMING_BYTES { &self.small } else { &self.large };
        let room = async {
            // The connection's first: who waits for others of its own takes nothing from anybody.
            let own = match connection {
                Some(connection) => Some(connection.acquire_many_owned(units).await?),
                None => None,
            };
            Ok::<_, AcquireError>((own, Arc::clone(server).acquire_many_owned(units).await?))
        };
        // The semaphores are never closed.
        timeout(self.patience, room).await.ok().and_then(Result::ok).ok_or_else(|| {
            let message = "too much is being received at once; try again later";
            problem(StatusCode::TOO_MANY_REQUESTS, ErrorCode::Full, message)
        })
    }

    /// Reads on until there are so many bytes, or until the end of a body.
    async fn read(&self, body: &mut Body, bytes: &mut Vec<u8>, until: usize) -> Result<(), Problem> {
        let reading = async {
            while bytes.len() < until {
                let Some(frame) = body.frame().await else { break };
                let frame = frame.map_err(|error| {
                    let message = format!("the request broke off: {error}");
                    problem(StatusCode::BAD_REQUEST, ErrorCode::Invalid, message)
                })?;
                bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            }
            Ok(())
        };
        timeout(self.arrival, reading).await.unwrap_or_else(|_| {
            let message = format!("the request did not arrive within {:?}", self.arrival);
            Err(problem(StatusCode::REQUEST_TIMEOUT, ErrorCode::Unavailable, message))
        })
    }
}

fn problem(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Problem {
    Problem::with(status, &ServiceError::new(code, message))
}

fn too_long(limit: usize) -> Problem {
    let message = format!("the request has more than {limit} bytes");
    problem(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Invalid, message)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use http_body::Frame;
    use tokio::sync::mpsc;
    use tonic::Status;

    use super::*;
    use crate::limits::{DECODE_BYTES, MESSAGE_BYTES};

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

    /// A call of gRPC on a connection of its own.
    struct Upload {
        pieces: mpsc::UnboundedSender<Bytes>,
        received: BoxFuture<'static, Result<(Body, Option<Room>), Problem>>,
    }

    impl Upload {
        fn new(limit: usize, server: &Received) -> Self {
            let (pieces, receiver) = mpsc::unbounded_channel();
            let connection = Arc::new(Semaphore::new(DECODE_BYTES / DECODE_UNIT));
            let (server, body) = (server.clone(), Body::new(Pieces(receiver)));
            let received = async move { server.message(body, limit, Some(connection)).await };
            Self { pieces, received: received.boxed() }
        }

        /// Sends the head of a message of this length, and this many of its bytes.
        fn send(&self, length: usize, sent: usize) {
            let head = [&[0][..], &(length as u32).to_be_bytes(), &vec![0; sent]].concat();
            self.pieces.send(head.into()).unwrap();
        }

        /// Waits for what may come yet; the status of the answer.
        async fn fails(self) -> u16 {
            self.received.await.unwrap_err().status
        }
    }

    /// A server that waits for nobody: only what must fail in the end waits for this.
    fn hasty() -> Received {
        Received::with(Duration::from_millis(1), Duration::from_millis(1))
    }

    #[tokio::test]
    async fn all_connections_share_the_room_for_messages_being_received() {
        let server = hasty();
        let begin = || {
            let upload = Upload::new(MESSAGE_BYTES, &server);
            upload.send(MESSAGE_BYTES, 1);
            upload
        };
        let mut greedy: Vec<Upload> = Vec::new();
        for _ in 0..(RECEIVED_BYTES - RECEIVED_SMALL_BYTES) / MESSAGE_BYTES {
            let mut upload = begin();
            assert!((&mut upload.received).now_or_never().is_none(), "it waits for the rest");
            greedy.push(upload);
        }
        assert_eq!(begin().fails().await, 429);
        let Upload { pieces, received } = {
            let small = Upload::new(NAMING_BYTES, &server);
            small.send(NAMING_BYTES, NAMING_BYTES);
            small
        };
        drop(pieces);
        received.await.map(drop).expect("a short message does not wait for long ones");
        greedy.pop();
        assert_eq!(begin().fails().await, 408, "the room of a call that ended is free");
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
    async fn a_message_that_is_begun_and_one_that_never_begins_have_their_time() {
        let server = hasty();
        let free = server.large.available_permits();
        for begun in [true, false] {
            let upload = Upload::new(1 << 20, &server);
            if begun {
                upload.send(1 << 20, (1 << 20) - 1);
            }
            assert_eq!(upload.fails().await, 408);
            assert_eq!(server.large.available_permits(), free);
        }
    }

    #[tokio::test]
    async fn a_message_is_passed_on_whole_and_without_its_end_as_it_came() {
        for sent in [&b"\0\0\0\0\x03abc"[..], b"\0\0\0\0\x03a", b"\0\0", b""] {
            let Upload { pieces, received } = Upload::new(3, &Received::default());
            sent.iter().for_each(|byte| pieces.send(vec![*byte].into()).unwrap());
            drop(pieces);
            let (body, _) = received.await.unwrap();
            assert_eq!(body.collect().await.unwrap().to_bytes(), sent);
        }
    }

    #[tokio::test]
    async fn a_long_message_comes_with_its_room_and_a_short_one_without() {
        let server = Received::default();
        let free = server.large.available_permits();
        for (length, taken) in [(NAMING_BYTES, 0), (NAMING_BYTES + 1, NAMING_BYTES / DECODE_UNIT + 1)] {
            let Upload { pieces, received } = {
                let upload = Upload::new(MESSAGE_BYTES, &server);
                upload.send(length, length);
                upload
            };
            drop(pieces);
            let (_, room) = received.await.unwrap();
            assert_eq!(free - server.large.available_permits(), taken, "{length}");
            drop(room);
            assert_eq!(server.large.available_permits(), free);
        }
    }

    #[tokio::test]
    async fn a_message_that_its_call_does_not_allow_is_refused_before_it_is_received() {
        let upload = Upload::new(NAMING_BYTES, &hasty());
        upload.send(NAMING_BYTES + 1, 0);
        let refused = upload.received.await.unwrap_err();
        assert!(refused.status == 413 && refused.detail.contains("more than 65536 bytes"), "{refused:?}");
        let two = Upload::new(3, &hasty());
        two.pieces.send(Bytes::from_static(b"\0\0\0\0\x01a\0\0\0\0\x01b")).unwrap();
        assert_eq!(two.fails().await, 400, "a call has one message");
    }
}
