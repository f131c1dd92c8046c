//! A listener that accepts a bounded number of connections, and closes idle ones and those whose requests do not end.
//!
//! One address gets a share of the seats. Who finds none free gets one of a few spare seats, for a moment: long enough for
//! a probe, so that whoever fills the others does not silence `/healthz`.

use std::collections::HashMap;
use std::future::Future as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep};

/// Connections at once.
const CONNECTIONS_MAX: usize = 512;

/// Connections at once from one address: a proxy with all its visitors, or a browser for each of many people.
const CONNECTIONS_PER_ADDRESS_MAX: usize = 128;

/// Connections at once beyond these, each of which ends after [`SPARE_TIME_MAX`].
const SPARE_CONNECTIONS_MAX: usize = 64;

/// The same from one address.
const SPARE_CONNECTIONS_PER_ADDRESS_MAX: usize = 16;

/// How long a connection on a spare seat lasts: twice as long as Kubernetes waits for a probe by default.
const SPARE_TIME_MAX: Duration = Duration::from_secs(2);

/// A connection on which no byte moves in either direction for this time is closed. It is longer than the usual
/// interval between two scrapes, which share a connection.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// Time from the first byte of a request to the first byte of its answer. No page takes that long.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
struct SeatLimits {
    all: usize,
    per_address: usize,
}

/// How long a connection may take.
#[derive(Clone, Copy, Debug)]
struct TimeLimits {
    idle: Duration,
    request: Duration,
    spare: Duration,
}

/// Seats for connections.
#[derive(Debug)]
struct Seats {
    limits: SeatLimits,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl Seats {
    fn new(limits: SeatLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    fn take(self: &Arc<Self>, ip: IpAddr) -> Option<TakenSeat> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        // As many entries as connections at most.
        if taken.values().sum::<usize>() >= self.limits.all {
            return None;
        }
        let here = taken.entry(ip).or_default();
        if *here >= self.limits.per_address {
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

pub(super) struct Bounded {
    listener: TcpListener,
    seats: Arc<Seats>,
    spare: Arc<Seats>,
    times: TimeLimits,
}

impl Bounded {
    pub(super) fn new(listener: TcpListener) -> Self {
        let seats = SeatLimits { all: CONNECTIONS_MAX, per_address: CONNECTIONS_PER_ADDRESS_MAX };
        let spare = SeatLimits { all: SPARE_CONNECTIONS_MAX, per_address: SPARE_CONNECTIONS_PER_ADDRESS_MAX };
        let times = TimeLimits { idle: IDLE_MAX, request: REQUEST_TIME_MAX, spare: SPARE_TIME_MAX };
        Self::with(listener, seats, spare, times)
    }

    fn with(listener: TcpListener, seats: SeatLimits, spare: SeatLimits, times: TimeLimits) -> Self {
        Self { listener, seats: Seats::new(seats), spare: Seats::new(spare), times }
    }
}

impl Listener for Bounded {
    type Io = Watched;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Watched, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            let ip = address.ip();
            let (seat, end) = match self.seats.take(ip) {
                Some(seat) => (seat, None),
                None => match self.spare.take(ip) {
                    Some(seat) => (seat, Some(Box::pin(sleep(self.times.spare)))),
                    None => {
                        tracing::debug!(peer = %address, "connection refused: the limit is reached");
                        continue;
                    }
                },
            };
            let (times, rest) = (self.times, Box::pin(sleep(self.times.idle)));
            return (Watched { stream, times, rest, request: None, end, _seat: seat }, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails when nothing moves, and when a request does not end.
pub(super) struct Watched {
    stream: TcpStream,
    times: TimeLimits,
    rest: Pin<Box<Sleep>>,
    /// Runs from the first byte of a request until its answer begins.
    request: Option<Pin<Box<Sleep>>>,
    /// Runs if the connection has a spare seat.
    end: Option<Pin<Box<Sleep>>>,
    _seat: TakenSeat,
}

impl Watched {
    /// Whether the request or the connection has taken too long.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let mut late = |time: &mut Option<Pin<Box<Sleep>>>| {
            time.as_mut().is_some_and(|time| time.as_mut().poll(context).is_ready())
        };
        late(&mut self.request) || late(&mut self.end)
    }

    /// Returns the outcome if there is one, or an error if the connection has been idle for too long.
    fn moved<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.is_late(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if outcome.is_ready() {
            self.rest.as_mut().reset(Instant::now() + self.times.idle);
            return outcome;
        }
        ready!(self.rest.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn written(
        &mut self,
        outcome: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if outcome.is_ready() {
            self.request = None;
        }
        self.moved(outcome, context)
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        if outcome.is_ready() && self.request.is_none() {
            self.request = Some(Box::pin(sleep(self.times.request)));
        }
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
        self.written(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.written(outcome, context)
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

    use tokio::net::TcpSocket;

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    const SHORT_TIMES: TimeLimits = TimeLimits { idle: SHORT, request: SHORT, spare: SHORT };
    const NONE: SeatLimits = SeatLimits { all: 0, per_address: 0 };

    /// A server that ends when its test does.
    async fn served(seats: SeatLimits, spare: SeatLimits, times: TimeLimits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // More than the buffers of two sockets hold.
        let large = || async { Body::from(vec![b'x'; 64 << 20]) };
        let router = Router::new().route("/", get(|| async { "hello" })).route("/large", get(large));
        let listener = Bounded::with(listener, seats, spare, times);
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    /// The answer to a request on this connection.
    async fn answer(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        if stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.is_ok() {
            // A refused connection ends or is reset.
            let _ = stream.read_to_string(&mut answer).await;
        }
        answer
    }

    async fn from_elsewhere(address: SocketAddr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        socket.connect(address).await.unwrap()
    }

    #[tokio::test]
    async fn a_request_that_never_ends_does_not_keep_its_connection_by_dripping() {
        let long = Duration::from_secs(3600);
        let seats = SeatLimits { all: 1, per_address: 1 };
        let times = TimeLimits { idle: long, request: SHORT, spare: long };
        let address = served(seats, NONE, times).await;
        let (mut hear, mut tell) = TcpStream::connect(address).await.unwrap().into_split();
        tokio::spawn(async move {
            while tell.write_all(b"G").await.is_ok() {
                sleep(SHORT / 20).await;
            }
        });
        let mut rest = Vec::new();
        let _ = hear.read_to_end(&mut rest).await;
        let next = TcpStream::connect(address).await.unwrap();
        assert!(answer(next).await.ends_with("hello"), "its seat is free");
    }

    #[tokio::test]
    async fn who_takes_all_seats_silences_neither_probes_nor_other_addresses() {
        let long = Duration::from_secs(3600);
        let seats = SeatLimits { all: 4, per_address: 2 };
        let spare = SeatLimits { all: 2, per_address: 1 };
        let times = TimeLimits { idle: long, request: long, spare: SHORT };
        let address = served(seats, spare, times).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        let mut third = TcpStream::connect(address).await.unwrap();
        let mut rest = Vec::new();
        let _ = third.read_to_end(&mut rest).await;
        // Its spare seat was let go.
        while !answer(TcpStream::connect(address).await.unwrap()).await.ends_with("hello") {}
        for _ in 0..2 {
            while !answer(from_elsewhere(address).await).await.ends_with("hello") {}
            held.push(from_elsewhere(address).await);
        }
        // All seats are taken, and a spare one is free from time to time.
        while !answer(from_elsewhere(address).await).await.ends_with("hello") {}
    }

    #[tokio::test]
    async fn who_says_nothing_and_who_takes_nothing_is_let_go() {
        let seats = SeatLimits { all: 1, per_address: 1 };
        let address = served(seats, NONE, SHORT_TIMES).await;
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut rest = Vec::new();
        silent.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "the connection was closed");

        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        // There is room for one: others are served once the slow one, which reads nothing, is gone.
        while !answer(TcpStream::connect(address).await.unwrap()).await.ends_with("hello") {}
        // What was on its way is still there; the rest never comes.
        let mut got = Vec::new();
        let _ = slow.read_to_end(&mut got).await;
        assert!(got.len() < 64 << 20, "{}", got.len());
    }
}
