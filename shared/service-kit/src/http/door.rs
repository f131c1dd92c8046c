//! The door of a server: seats for connections, and the connections that sit on them.
//!
//! One address gets a share of the seats. Who finds none free gets one of a few spare seats, for a moment: long enough for
//! a probe, so that whoever fills the others does not silence `/healthz`. Whoever takes nothing of what is sent to him loses
//! his seat.

use std::collections::HashMap;
use std::future::Future as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

/// Connections at once beyond the others, each of which ends after [`SPARE_TIME`].
const SPARE_CONNECTIONS: SeatLimits = SeatLimits { all: 64, per_address: 16 };

/// How long a connection on a spare seat lasts: twice as long as Kubernetes waits for a probe by default.
const SPARE_TIME: Duration = Duration::from_secs(2);

/// Maximum time that a socket may accept no data before its connection is closed.
const STALLED_WRITE: Duration = Duration::from_secs(30);

/// Interval of checks of a connection.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Pause after a failed accept, for example because no file descriptor is left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct SeatLimits {
    pub all: usize,
    /// From one address.
    pub per_address: usize,
}

/// How many connections a door lets in, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct DoorLimits {
    pub seats: SeatLimits,
    pub spare: SeatLimits,
    /// How long a connection on a spare seat lasts.
    pub spare_time: Duration,
    /// How long a socket may accept no data.
    pub stalled_write: Duration,
}

impl DoorLimits {
    /// So many connections, with the usual spare seats.
    pub const fn of(seats: SeatLimits) -> Self {
        Self { seats, spare: SPARE_CONNECTIONS, spare_time: SPARE_TIME, stalled_write: STALLED_WRITE }
    }
}

/// A listener with seats.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    limits: DoorLimits,
    seats: Arc<Seats>,
    spare: Arc<Seats>,
}

impl Door {
    pub fn new(listener: TcpListener, limits: DoorLimits) -> Self {
        Self { listener, limits, seats: Seats::new(limits.seats), spare: Seats::new(limits.spare) }
    }

    /// The next connection that finds a seat. One that is waited for no longer is not lost.
    pub async fn accept(&self) -> (TcpStream, SocketAddr, Seat) {
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            let seat = |taken, end| Seat { taken, peer, end, stalled_write: self.limits.stalled_write };
            let spare = || {
                let taken = self.spare.take(peer.ip())?;
                Some(seat(taken, Some(Box::pin(sleep(self.limits.spare_time)))))
            };
            match self.seats.take(peer.ip()).map(|taken| seat(taken, None)).or_else(spare) {
                Some(seat) => return (stream, peer, seat),
                None => tracing::warn!(%peer, "connection refused: the limit is reached"),
            }
        }
    }
}

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
#[derive(Debug)]
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

/// The seat of a connection.
#[derive(Debug)]
pub struct Seat {
    #[expect(dead_code, reason = "the seat is taken as long as it lives")]
    taken: TakenSeat,
    peer: SocketAddr,
    /// Runs if it is a spare one.
    end: Option<Pin<Box<Sleep>>>,
    stalled_write: Duration,
}

impl Seat {
    /// Sets a connection on it, which is closed when `is_over` says so; it is asked every second.
    pub fn hold<S>(self, stream: S, is_over: impl FnMut() -> bool + Send + 'static) -> Seated<S> {
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Seated { stream, seat: self, looks, is_over: Box::new(is_over), stalled: None }
    }
}

/// A connection on its seat.
pub struct Seated<S> {
    stream: S,
    seat: Seat,
    looks: Interval,
    is_over: Box<dyn FnMut() -> bool + Send>,
    /// Expires if nothing could be written for too long.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Seated<S> {
    /// Whether its time on a spare seat is over.
    fn has_to_leave(&mut self, context: &mut Context<'_>) -> bool {
        self.seat.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready())
    }

    /// Whether the connection must be closed now. Wakes the task when it should ask again.
    fn has_to_end(&mut self, context: &mut Context<'_>) -> bool {
        if self.has_to_leave(context) {
            return true;
        }
        while self.looks.poll_tick(context).is_ready() {
            if (self.is_over)() {
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
        if !self.has_to_leave(context) {
            let most = self.seat.stalled_write;
            let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(most)));
            ready!(stalled.as_mut().poll(context));
        }
        tracing::info!(peer = %self.seat.peer, "connection closed: the peer reads nothing");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Seated<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Seated<S> {
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
