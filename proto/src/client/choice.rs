//! Chooses among several coordinators, and moves on when the chosen one fails.
//!
//! A coordinator may have several addresses, and a host name may belong to several machines. A client uses one of them
//! until a call fails because nobody answers, or because the coordinator cannot serve; the next call goes to the next
//! one. Nothing is retried here, because only callers know what may be repeated.

use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response, Uri};
use tonic::transport::{Channel, Endpoint, Error};
use tower::Service;

/// Addresses of one name that are tried for one connection.
const ADDRESSES_MAX: usize = 3;

/// How long one address is tried. A machine that has vanished answers nothing at all.
const ADDRESS_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Channels to several coordinators, of which one is in use. Clones share the choice.
#[derive(Clone, Debug)]
pub(super) struct Choice(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: Vec<Place>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    /// Rises with every move, so that calls that fail together move only once.
    moves: usize,
    channel: Channel,
}

/// One address that was given.
#[derive(Debug)]
struct Place {
    endpoint: Endpoint,
    /// Connections that were tried; the next one begins at another address of the name.
    tries: Arc<AtomicUsize>,
}

impl Place {
    /// A channel that connects when it is first used.
    fn channel(&self) -> Channel {
        let tries = Arc::clone(&self.tries);
        self.endpoint.connect_with_connector_lazy(tower::service_fn(move |uri: Uri| {
            let first = tries.fetch_add(1, Ordering::Relaxed);
            async move { connect(&uri, first).await.map(TokioIo::new) }
        }))
    }

    /// Whether it always leads to the same machine.
    fn is_fixed(&self) -> bool {
        host(self.endpoint.uri()).is_some_and(|host| host.parse::<IpAddr>().is_ok())
    }
}

impl Choice {
    /// A choice among these; at least one. Clients begin with different ones, so that they spread.
    pub(super) fn among(endpoints: Vec<Endpoint>) -> Self {
        let random = RandomState::new().hash_one(endpoints.len()) as usize;
        let place =
            |endpoint| Place { endpoint, tries: Arc::new(AtomicUsize::new(random % (ADDRESSES_MAX + 1))) };
        let places: Vec<Place> = endpoints.into_iter().map(place).collect();
        let moves = random % places.len();
        let channel = places[moves].channel();
        Self(Arc::new(Shared { places, current: Mutex::new(Current { moves, channel }) }))
    }
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the coordinator of a failed call, unless another call did so already.
    fn move_on(&self, failed: usize) {
        if let [only] = self.places.as_slice()
            && only.is_fixed()
        {
            // The channel connects again by itself.
            return;
        }
        let mut current = self.current();
        if current.moves == failed {
            current.moves = current.moves.wrapping_add(1);
            current.channel = self.places[current.moves % self.places.len()].channel();
        }
    }
}

impl Service<Request<Body>> for Choice {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // The channel is chosen at the call, and waits for its readiness there.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        let (moves, mut channel) = {
            let current = shared.current();
            (current.moves, current.channel.clone())
        };
        Box::pin(async move {
            let outcome = async {
                std::future::poll_fn(|context| channel.poll_ready(context)).await?;
                channel.call(request).await
            };
            let outcome = outcome.await;
            if outcome.as_ref().map_or(true, |response| cannot_serve(response.headers())) {
                shared.move_on(moves);
            }
            outcome
        })
    }
}

/// Whether a coordinator refuses a call because it cannot serve at all.
fn cannot_serve(headers: &HeaderMap) -> bool {
    headers.get("grpc-status").is_some_and(|status| Code::from_bytes(status.as_bytes()) == Code::Unavailable)
}

/// The host of an address, without the brackets of IPv6.
fn host(uri: &Uri) -> Option<&str> {
    Some(uri.host()?.trim_start_matches('[').trim_end_matches(']'))
}

/// A connection to one of the machines that a name stands for.
async fn connect(uri: &Uri, first: usize) -> io::Result<TcpStream> {
    let host =
        host(uri).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an address without host"))?;
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    let mut found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
    // Resolvers shuffle; sorted, the next try begins at another machine for certain.
    found.sort_unstable();
    found.dedup();
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in in_turn(&found, first) {
        match tokio::time::timeout(ADDRESS_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, format!("{address} does not answer")),
        }
    }
    Err(last)
}

/// The addresses to try, beginning with this one.
fn in_turn(found: &[SocketAddr], first: usize) -> impl Iterator<Item = SocketAddr> {
    let start = first.checked_rem(found.len()).unwrap_or(0);
    found.iter().cycle().skip(start).take(found.len().min(ADDRESSES_MAX)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: u8) -> Vec<SocketAddr> {
        (1..=count).map(|last| SocketAddr::from(([127, 0, 0, last], 1))).collect()
    }

    #[test]
    fn every_connection_begins_at_another_machine_and_tries_few() {
        let last = |count, first| -> Vec<String> {
            in_turn(&addresses(count), first).map(|address| address.ip().to_string()).collect()
        };
        assert_eq!(last(2, 0), ["127.0.0.1", "127.0.0.2"]);
        assert_eq!(last(2, 1), ["127.0.0.2", "127.0.0.1"]);
        assert_eq!(last(5, 4), ["127.0.0.5", "127.0.0.1", "127.0.0.2"]);
        assert_eq!(last(0, 7), [""; 0]);
    }

    #[tokio::test]
    async fn calls_that_fail_together_move_once_and_a_fixed_place_is_not_left() {
        let endpoint = |address: &'static str| Endpoint::from_static(address);
        let two = Choice::among(vec![endpoint("http://127.0.0.1:1"), endpoint("http://127.0.0.1:2")]);
        let before = two.0.current().moves;
        two.0.move_on(before);
        two.0.move_on(before);
        assert_eq!(two.0.current().moves, before + 1);
        let named = Choice::among(vec![endpoint("http://coordinators:1")]);
        named.0.move_on(0);
        assert_eq!(named.0.current().moves, 1, "a name may stand for several machines");
        let fixed = Choice::among(vec![endpoint("http://[::1]:1")]);
        fixed.0.move_on(0);
        assert_eq!(fixed.0.current().moves, 0);
    }
}
