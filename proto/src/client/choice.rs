//! Chooses among several coordinators, and moves on when the chosen one fails.
//!
//! A coordinator may have several addresses, and a host name may belong to several machines. A client uses one of them
//! until a call fails because nobody answers, or because the coordinator cannot serve; the next call goes to the next
//! one. Nothing is retried here, because only callers know what may be repeated.
//!
//! A call whose caller is unknown, or whose connection fails where certificates may be why, reads the credentials again. If
//! they have been replaced, the caller is told to try again.

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

use domain::ServiceError;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Response, Uri};
use tonic::transport::{Channel, Endpoint, Error};
use tower::Service;

use super::connect::{ClientConfig, endpoints, invalid};
use super::credentials::{Credentials, authorization, is_unknown, try_again};
use crate::server::AUTHORIZATION;

/// Addresses of one name that are tried for one connection.
const ADDRESSES_MAX: usize = 3;

/// How long one address is tried. A machine that has vanished answers nothing at all.
const ADDRESS_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Channels to several coordinators, of which one is in use. Clones share the choice.
#[derive(Clone, Debug)]
pub(super) struct Choice(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    places: Vec<Place>,
    credentials: Credentials,
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
    /// A choice among the coordinators of a configuration, which connects at its first use.
    pub(super) fn of(config: &ClientConfig) -> Result<Self, ServiceError> {
        if config.addresses.is_empty() {
            return Err(invalid("no address of a coordinator is given".to_owned()));
        }
        let (endpoints, authorization) = (endpoints(config)?, authorization(config)?);
        if tokio::runtime::Handle::try_current().is_err() {
            let addresses = config.addresses.join(", ");
            return Err(invalid(format!("a client of {addresses} can be made inside a Tokio runtime only")));
        }
        Ok(Self::among(config.clone(), endpoints, authorization))
    }

    /// A choice among these; at least one. Clients begin with different ones, so that they spread.
    fn among(config: ClientConfig, endpoints: Vec<Endpoint>, authorization: Option<HeaderValue>) -> Self {
        let random = RandomState::new().hash_one(endpoints.len()) as usize;
        let places = places(endpoints, random);
        let moves = random % places.len();
        let channel = places[moves].channel();
        let credentials = Credentials::new(config, authorization);
        Self(Arc::new(Shared { current: Mutex::new(Current { places, credentials, moves, channel }) }))
    }
}

/// Places at these endpoints, whose first connections begin at this address of a name.
fn places(endpoints: Vec<Endpoint>, first: usize) -> Vec<Place> {
    let place = |endpoint| Place { endpoint, tries: Arc::new(AtomicUsize::new(first % (ADDRESSES_MAX + 1))) };
    endpoints.into_iter().map(place).collect()
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the coordinator of a failed call, unless another call did so already.
    fn move_on(&self, failed: usize) {
        let mut current = self.current();
        if let [only] = current.places.as_slice()
            && only.is_fixed()
        {
            // The channel connects again by itself.
            return;
        }
        if current.moves == failed {
            current.moves = current.moves.wrapping_add(1);
            current.channel = current.places[current.moves % current.places.len()].channel();
        }
    }

    /// Reads the credentials again that a call has used; returns whether they are others now.
    async fn renew(&self, used: u64) -> bool {
        let reread = {
            let mut current = self.current();
            if current.credentials.number != used {
                return true;
            }
            if !current.credentials.may_read(tokio::time::Instant::now()) {
                return false;
            }
            current.credentials.config.reread.clone()
        };
        let Some(reread) = reread else { return false };
        let Ok(read) = tokio::task::spawn_blocking(move || reread()).await else { return false };
        let mut current = self.current();
        if current.credentials.number != used {
            return true;
        }
        let renewed = read.and_then(|read| {
            let differing = current.credentials.differing(read).map_err(|error| error.message)?;
            let reach = |credentials: Credentials| Ok((endpoints(&credentials.config)?, credentials));
            differing.map(reach).transpose().map_err(|error: ServiceError| error.message)
        });
        match renewed {
            Ok(None) => false,
            Ok(Some((endpoints, credentials))) => {
                tracing::info!("the credentials for the coordinator have been replaced and read again");
                current.places = places(endpoints, current.moves);
                current.channel = current.places[current.moves % current.places.len()].channel();
                current.credentials = credentials;
                true
            }
            Err(error) => {
                tracing::warn!(error, "the credentials for the coordinator cannot be read again");
                false
            }
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

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        let (moves, mut channel, used, has_certificates) = {
            let current = shared.current();
            if let Some(authorization) = &current.credentials.authorization {
                request.headers_mut().insert(AUTHORIZATION, authorization.clone());
            }
            let config = &current.credentials.config;
            let has_certificates = config.ca.is_some();
            (current.moves, current.channel.clone(), current.credentials.number, has_certificates)
        };
        Box::pin(async move {
            let outcome = async {
                std::future::poll_fn(|context| channel.poll_ready(context)).await?;
                channel.call(request).await
            };
            let outcome = outcome.await;
            if outcome.as_ref().map_or(has_certificates, is_unknown) && shared.renew(used).await {
                return Ok(try_again());
            }
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
    use domain::ErrorCode;

    use super::*;

    fn refusal(config: &ClientConfig) -> String {
        let error = Choice::of(config).unwrap_err();
        assert_eq!(error.code, ErrorCode::Invalid);
        error.message
    }

    #[tokio::test]
    async fn configurations_that_cannot_work_are_refused_with_a_reason() {
        assert!(refusal(&ClientConfig::new("not an address")).contains("`not an address` is not an address"));
        assert!(refusal(&ClientConfig::new("coordinator:7700")).contains("neither http"));
        let token = |address: &str| ClientConfig { token: Some("t".into()), ..ClientConfig::new(address) };
        assert!(refusal(&token("http://coordinator:1")).contains("without TLS"));
        let is_taken = |config: &ClientConfig| Choice::of(config).is_ok();
        assert!(is_taken(&token("http://127.0.0.1:1")) && is_taken(&token("http://[::1]:1")));
        assert!(is_taken(&ClientConfig { insecure: true, ..token("http://coordinator:1") }));
        let ca = Some(b"no PEM".to_vec());
        let mixed = ClientConfig { ca: ca.clone(), ..ClientConfig::new("http://a:1") };
        assert!(refusal(&mixed).contains("not an https address"));
        assert!(is_taken(&ClientConfig::new("http://a:1")));
    }

    #[test]
    fn without_a_runtime_there_is_an_error_and_no_panic() {
        assert!(refusal(&ClientConfig::new("http://a:1")).contains("Tokio runtime"));
    }

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
        let among = |addresses: &[&'static str]| {
            let endpoints = addresses.iter().map(|address| Endpoint::from_static(address)).collect();
            Choice::among(ClientConfig::of(Vec::new()), endpoints, None)
        };
        let two = among(&["http://127.0.0.1:1", "http://127.0.0.1:2"]);
        let before = two.0.current().moves;
        two.0.move_on(before);
        two.0.move_on(before);
        assert_eq!(two.0.current().moves, before + 1);
        let named = among(&["http://coordinators:1"]);
        named.0.move_on(0);
        assert_eq!(named.0.current().moves, 1, "a name may stand for several machines");
        let fixed = among(&["http://[::1]:1"]);
        fixed.0.move_on(0);
        assert_eq!(fixed.0.current().moves, 0);
    }
}
