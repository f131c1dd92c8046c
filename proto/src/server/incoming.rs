//! Incoming connections: seats, handshake, supervision.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use service_kit::http::door::{Door, DoorLimits, Seat, SeatLimits, Seated};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::line::ClientConnection;
use super::tls::Tls;
use crate::limits::{CONNECTIONS, CONNECTIONS_PER_ADDRESS, HANDSHAKE};

/// Connections after the handshake that are not yet served.
const GREETED: usize = 16;

type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A supervised connection, and who is at its other end.
pub(super) type Connection = (Seated<Stream>, Peer);

/// Accepts connections until the receiver is dropped.
pub(super) fn connections(listener: TcpListener, tls: Option<Tls>) -> mpsc::Receiver<Connection> {
    let (sender, receiver) = mpsc::channel(GREETED);
    tokio::spawn(accept(listener, tls, sender));
    receiver
}

async fn accept(listener: TcpListener, tls: Option<Tls>, taken: mpsc::Sender<Connection>) {
    let seats = SeatLimits { all: CONNECTIONS, per_address: CONNECTIONS_PER_ADDRESS };
    let door = Door::new(listener, DoorLimits::of(seats));
    // Handshakes in progress end with this task.
    let mut greeting = JoinSet::new();
    loop {
        let (stream, peer, seat) = tokio::select! {
            accepted = door.accept() => accepted,
            () = taken.closed() => return,
            Some(_) = greeting.join_next() => continue,
        };
        let (tls, taken) = (tls.clone(), taken.clone());
        greeting.spawn(async move {
            match tokio::time::timeout(HANDSHAKE, greet(stream, tls)).await {
                Ok(Ok(stream)) => {
                    // A stopping server takes none.
                    let _ = taken.send(supervised(stream, peer, seat)).await;
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

fn supervised(stream: Stream, address: SocketAddr, seat: Seat) -> Connection {
    let peer = Peer { has_tls: matches!(stream, Either::Right(_)), ..Peer::new(address) };
    let line = Arc::clone(&peer.line);
    let is_over = move || {
        let reason = line.close_reason(Instant::now());
        if let Some(reason) = reason {
            tracing::info!(peer = %address, ?reason, "connection closed");
        }
        reason.is_some()
    };
    (seat.hold(stream, is_over), peer)
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
