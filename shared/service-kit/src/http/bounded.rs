//! A listener that accepts a bounded number of connections and closes idle ones.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 512;

/// A connection on which no byte moves in either direction for this time is closed. It is longer than the usual
/// interval between two scrapes, which share a connection.
pub const IDLE_MAX: Duration = Duration::from_secs(120);

pub(super) struct Bounded {
    listener: TcpListener,
    room: Arc<Semaphore>,
    idle: Duration,
}

impl Bounded {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self::with(listener, CONNECTIONS_MAX, IDLE_MAX)
    }

    fn with(listener: TcpListener, connections: usize, idle: Duration) -> Self {
        Self { listener, room: Arc::new(Semaphore::new(connections)), idle }
    }
}

impl Listener for Bounded {
    type Io = Watched;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Watched, SocketAddr) {
        // Never closed, so there always is a permit in the end.
        let room = Arc::clone(&self.room).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let idle = self.idle;
        (Watched { stream, idle, rest: Box::pin(tokio::time::sleep(idle)), _room: room }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when nothing moves.
pub(super) struct Watched {
    stream: TcpStream,
    idle: Duration,
    rest: Pin<Box<Sleep>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Watched {
    pub(super) fn set_nodelay(&self) -> io::Result<()> {
        self.stream.set_nodelay(true)
    }

    /// Returns the outcome if there is one, or an error if the connection has been idle for too long.
    fn moved<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.rest.as_mut().reset(Instant::now() + self.idle);
            return outcome;
        }
        ready!(self.rest.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.moved(outcome, context)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.moved(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.moved(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has nothing to flush; this is no sign of life.
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    async fn served(connections: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // More than the buffers of two sockets hold.
        let large = || async { Body::from(vec![b'x'; 64 << 20]) };
        let router = Router::new().route("/", get(|| async { "hello" })).route("/large", get(large));
        let listener = Bounded::with(listener, connections, SHORT);
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    #[tokio::test]
    async fn who_says_nothing_and_who_takes_nothing_is_let_go() {
        let address = served(1).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut rest = Vec::new();
        silent.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "the connection was closed");

        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        // There is room for one: who comes next is served once the slow one, which reads nothing, is gone.
        let mut next = TcpStream::connect(address).await.unwrap();
        next.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        next.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("hello"), "{answer}");
        // What was on its way is still there; the rest never comes.
        let mut got = Vec::new();
        let _ = slow.read_to_end(&mut got).await;
        assert!(got.len() < 64 << 20, "{}", got.len());
    }
}
