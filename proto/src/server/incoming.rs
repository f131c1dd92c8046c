//! Incoming connections: counting, handshake, supervision, closing.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use super::line::{ClientConnection, LOOK_EVERY};
use super::tls::Tls;
use crate::limits::{CONNECTIONS, CONNECTIONS_PER_ADDRESS, HANDSHAKE, STALLED_WRITE};

/// Connections after the handshake that are not yet served.
const GREETED: usize = 16;

/// Pause after a failed accept, for example because no file descriptor is left.
const ACCEPT_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Accepts connections until the stream is dropped.
pub(super) fn connections(listener: TcpListener, tls: Option<Tls>) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(GREETED);
    tokio::spawn(accept(listener, tls, sender));
    ReceiverStream::new(receiver)
}

async fn accept(listener: TcpListener, tls: Option<Tls>, taken: mpsc::Sender<io::Result<Connection>>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let addresses = Addresses::default();
    // Handshakes in progress end with this task.
    let mut greeting = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = taken.closed() => return,
            Some(_) = greeting.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let Some(seat) = Seat::take(&room, &addresses, peer) else {
            tracing::warn!(%peer, "connection refused: the limit is reached");
            continue;
        };
        let (tls, taken) = (tls.clone(), taken.clone());
        greeting.spawn(async move {
            match tokio::time::timeout(HANDSHAKE, greet(stream, tls)).await {
                Ok(Ok(stream)) => {
                    // A stopping server takes none.
                    let _ = taken.send(Ok(Connection::new(stream, peer, seat))).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, %error, "no handshake"),
                Err(_) => tracing::debug!(%peer, "no handshake in time"),
            }
        });
    }
}

async fn greet(stream: TcpStream, tls: Option<Tls>) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    Ok(match tls {
        None => Either::Left(stream),
        Some(tls) => Either::Right(Box::new(tls.acceptor().accept(stream).await?)),
    })
}

/// Connections by address.
type Addresses = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A place within the connection limits.
struct Seat {
    addresses: Addresses,
    ip: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Seat {
    fn take(room: &Arc<Semaphore>, addresses: &Addresses, peer: SocketAddr) -> Option<Self> {
        let permit = Arc::clone(room).try_acquire_owned().ok()?;
        let ip = peer.ip();
        let mut counts = addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(ip).or_default();
        if *count >= CONNECTIONS_PER_ADDRESS {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Self { addresses: Arc::clone(addresses), ip, _permit: permit })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.ip);
            }
        }
    }
}

type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A supervised connection.
pub(super) struct Connection {
    stream: Stream,
    peer: SocketAddr,
    line: Arc<ClientConnection>,
    look: Interval,
    /// Expires if nothing could be written for too long.
    stalled: Option<Pin<Box<Sleep>>>,
    _seat: Seat,
}

/// The data of a connection that calls use.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) line: Arc<ClientConnection>,
}

impl Connection {
    fn new(stream: Stream, peer: SocketAddr, seat: Seat) -> Self {
        let now = Instant::now();
        let mut look = tokio::time::interval_at(now + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Self { stream, peer, line: ClientConnection::new(now), look, stalled: None, _seat: seat }
    }

    /// Whether the connection must be closed now. Wakes the task when it should ask again.
    fn has_to_end(&mut self, context: &mut Context<'_>) -> bool {
        while self.look.poll_tick(context).is_ready() {
            if let Some(reason) = self.line.close_reason(Instant::now()) {
                tracing::info!(peer = %self.peer, ?reason, "connection closed");
                return true;
            }
        }
        false
    }

    /// Passes on the result of a write, unless nothing could be written for too long.
    fn written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED_WRITE)));
        ready!(stalled.as_mut().poll(context));
        tracing::info!(peer = %self.peer, "connection closed: the peer reads nothing");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        Peer { address: self.peer, line: Arc::clone(&self.line) }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_to_end(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(context, closed)
    }
}
