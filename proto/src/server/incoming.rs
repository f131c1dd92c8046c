//! Incoming connections: seats, handshake, supervision, closing.
//!
//! One address gets a share of the seats. Who finds none free gets one of a few spare seats, for a moment: long enough for a
//! probe, so that whoever fills the others does not silence `/healthz`.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::line::{ClientConnection, LOOK_EVERY};
use super::tls::Tls;
use crate::limits::{
    CONNECTIONS, CONNECTIONS_PER_ADDRESS, HANDSHAKE, SPARE_CONNECTION, SPARE_CONNECTIONS,
    SPARE_CONNECTIONS_PER_ADDRESS, STALLED_WRITE,
};

/// Connections after the handshake that are not yet served.
const GREETED: usize = 16;

/// Pause after a failed accept, for example because no file descriptor is left.
const ACCEPT_AGAIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Accepts connections until the receiver is dropped.
pub(super) fn connections(listener: TcpListener, tls: Option<Tls>) -> mpsc::Receiver<Connection> {
    let (sender, receiver) = mpsc::channel(GREETED);
    tokio::spawn(accept(listener, tls, sender));
    receiver
}

async fn accept(listener: TcpListener, tls: Option<Tls>, taken: mpsc::Sender<Connection>) {
    let seats = Seats::new(CONNECTIONS, CONNECTIONS_PER_ADDRESS);
    let spare = Seats::new(SPARE_CONNECTIONS, SPARE_CONNECTIONS_PER_ADDRESS);
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
        let ip = peer.ip();
        let on_spare = || spare.take(ip).map(|seat| (seat, Some(Box::pin(sleep(SPARE_CONNECTION)))));
        let Some((seat, end)) = seats.take(ip).map(|seat| (seat, None)).or_else(on_spare) else {
            tracing::warn!(%peer, "connection refused: the limit is reached");
            continue;
        };
        let (tls, taken) = (tls.clone(), taken.clone());
        greeting.spawn(async move {
            match tokio::time::timeout(HANDSHAKE, greet(stream, tls)).await {
                Ok(Ok(stream)) => {
                    // A stopping server takes none.
                    let _ = taken.send(Connection::new(stream, peer, seat, end)).await;
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

/// Seats for connections.
#[derive(Debug)]
struct Seats {
    all: usize,
    per_address: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl Seats {
    fn new(all: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { all, per_address, taken: Mutex::default() })
    }

    fn take(self: &Arc<Self>, ip: IpAddr) -> Option<TakenSeat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        // As many entries as connections at most.
        if taken.values().sum::<usize>() >= self.all {
            return None;
        }
        let here = taken.entry(ip).or_default();
        if *here >= self.per_address {
            return None;
        }
        *here += 1;
        drop(taken);
        Some(TakenSeat { seats: Arc::clone(self), ip })
    }
}

/// A seat until it is dropped.
struct TakenSeat {
    seats: Arc<Seats>,
    ip: IpAddr,
}

impl Drop for TakenSeat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = taken.get_mut(&self.ip) {
            *here -= 1;
            if *here == 0 {
                taken.remove(&self.ip);
            }
        }
    }
}

type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A supervised connection.
pub(super) struct Connection {
    stream: Stream,
    peer: Peer,
    look: Interval,
    /// Expires if nothing could be written for too long.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Runs if the connection has a spare seat.
    end: Option<Pin<Box<Sleep>>>,
    _seat: TakenSeat,
}

/// The other end of a connection, as requests carry it in their extensions.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub has_tls: bool,
    pub(super) line: Arc<ClientConnection>,
}

impl Peer {
    /// The other end of a plain connection that begins now.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, has_tls: false, line: ClientConnection::new(Instant::now()) }
    }

    /// Takes note that somebody on this connection was let in: it is not closed soon as that of a stranger.
    pub fn let_in(&self) {
        self.line.let_in();
    }
}

impl Connection {
    fn new(stream: Stream, address: SocketAddr, seat: TakenSeat, end: Option<Pin<Box<Sleep>>>) -> Self {
        let mut look = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let has_tls = matches!(stream, Either::Right(_));
        let peer = Peer { has_tls, ..Peer::new(address) };
        Self { stream, peer, look, stalled: None, end, _seat: seat }
    }

    pub(super) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether the connection must be closed now. Wakes the task when it should ask again.
    fn has_to_end(&mut self, context: &mut Context<'_>) -> bool {
        if self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready()) {
            return true;
        }
        while self.look.poll_tick(context).is_ready() {
            if let Some(reason) = self.peer.line.close_reason(Instant::now()) {
                tracing::info!(peer = %self.peer.address, ?reason, "connection closed");
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
        tracing::info!(peer = %self.peer.address, "connection closed: the peer reads nothing");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
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
