//! Serves a coordinator on a socket: gRPC for workers, the API for people and tools, and the routes that a process has beside
//! them, such as a page and probes.

mod access;
mod api;
mod budget;
mod closing;
mod feed;
mod guard;
mod identity;
mod incoming;
mod line;
mod records;
mod tls;
mod work;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::http::header::HOST;
use axum::middleware::{from_fn, from_fn_with_state};
use domain::ServiceError;
use domain::caller::Caller;
use domain::control::Control;
use domain::exchange::WorkExchange;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::service::interceptor::InterceptedService;
use tonic::{Response, Status};
use tower::ServiceExt as _;

use self::api::Api;
pub use self::api::openapi;
use self::budget::Received;
use self::closing::{Closing, ServerPhase};
use self::guard::{Door, count, guard_grpc, receive};
pub(crate) use self::identity::{AUTHORIZATION, BEARER};
pub use self::identity::{
    IDENTITIES_MAX, IDENTITY_NAME_BYTES_MAX, Identities, IdentitiesError, IdentityChange, ListedIdentity,
    hash_of_token,
};
pub use self::incoming::Peer;
pub use self::tls::{ServerTls, Tls};
use self::work::WorkHandlers;
use crate::limits::{
    CALLS_PER_CONNECTION, HEADER_BYTES, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, MESSAGE_BYTES, NAMING_BYTES,
    REQUEST_HEAD, SHUTDOWN_GRACE, WINDOW_BYTES,
};
use crate::status::to_status;
use crate::version;
use crate::wire::work_service_server::{SERVICE_NAME as WORK_SERVICE, WorkServiceServer};

/// A coordinator, as each caller may use it.
pub trait Serve: Send + Sync + 'static {
    /// The interface for this worker.
    fn exchange(&self, caller: &Caller) -> Arc<dyn WorkExchange>;

    /// The interface for this person or tool.
    fn control(&self, caller: &Caller) -> Arc<dyn Control>;
}

/// A coordinator that is the same for every caller.
#[derive(Clone)]
pub struct Services {
    /// For workers.
    pub exchange: Arc<dyn WorkExchange>,
    /// For people and their tools.
    pub control: Arc<dyn Control>,
}

impl Serve for Services {
    fn exchange(&self, _: &Caller) -> Arc<dyn WorkExchange> {
        Arc::clone(&self.exchange)
    }

    fn control(&self, _: &Caller) -> Arc<dyn Control> {
        Arc::clone(&self.control)
    }
}

/// Authentication and encryption.
#[derive(Clone)]
pub struct Security {
    /// The known identities.
    pub identities: Identities,
    /// TLS; none for plain connections.
    pub tls: Option<Tls>,
}

impl Security {
    /// No authentication, plain connections: for one machine.
    pub fn none() -> Self {
        Self { identities: Identities::anyone(), tls: None }
    }

    /// TLS with these certificates, for these identities.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn tls(tls: &ServerTls, identities: Identities) -> Result<Self, ServeError> {
        let tls = Tls::new(tls)?;
        Ok(Self { identities, tls: Some(tls) })
    }
}

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The certificates cannot be used.
    #[error("the server's certificates cannot be used: {0}")]
    Tls(String),
}

/// What a process serves on the same port beside the calls.
#[derive(Clone, Debug, Default)]
pub struct BesideCalls {
    /// For everybody: probes, and what lets its visitors in by itself.
    pub open: Router,
    /// For callers who may read: metrics.
    pub for_readers: Router,
}

/// Serves a coordinator on a bound socket until `shutdown` completes.
///
/// Then nothing new is accepted, watchers are told to ask again, and calls in progress may
/// take up to [`SHUTDOWN_GRACE`]; after that, the remaining ones are answered with
/// [`Unavailable`](domain::ErrorCode::Unavailable). A long poll counts as a call in progress: its server must end it.
///
/// A call whose caller went away is dropped at its next await, except batches of records, which are stored
/// completely.
pub async fn serve(
    listener: TcpListener,
    services: impl Serve,
    security: Security,
    beside: BesideCalls,
    shutdown: impl Future<Output = ()>,
) {
    let (phase, closing) = closing::channel();
    let door =
        Door { services: Arc::new(services), identities: security.identities, received: Received::default() };
    let app = routes(Arc::new(door), &closing, beside);
    let builder = http();
    let mut connections = incoming::connections(listener, security.tls);
    let (graceful, mut served, mut shutdown) = (GracefulShutdown::new(), JoinSet::new(), pin!(shutdown));
    loop {
        let connection = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = served.join_next() => continue,
            connection = connections.recv() => connection,
        };
        let Some((connection, peer)) = connection else { break };
        let app = app.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            app.clone().oneshot(received(request, peer.clone()))
        });
        let serving = builder.serve_connection(TokioIo::new(connection), service).into_owned();
        let serving = graceful.watch(serving);
        served.spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!(error, "a connection ended early");
            }
        });
    }
    drop(connections);
    phase.send_replace(ServerPhase::Draining);
    let mut ending = pin!(graceful.shutdown());
    if tokio::time::timeout(SHUTDOWN_GRACE, &mut ending).await.is_ok() {
        return;
    }
    phase.send_replace(ServerPhase::Cut);
    // Long enough for the last answers. A connection whose client reads nothing ends with the process.
    let _ = tokio::time::timeout(LAST_WORDS, ending).await;
}

/// How connections speak HTTP.
fn http() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .max_concurrent_streams(CALLS_PER_CONNECTION)
        .max_header_list_size(HEADER_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    builder
}

/// A request as handlers see it: with its peer, and with the header `Host` also where HTTP/2 has an authority instead.
fn received(request: Request<Incoming>, peer: Peer) -> Request<Body> {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(peer);
    if !request.headers().contains_key(HOST)
        && let Some(host) = request.uri().authority().and_then(|host| host.as_str().parse().ok())
    {
        request.headers_mut().insert(HOST, host);
    }
    request
}

/// Everything that is served, behind what guards it.
fn routes(door: Arc<Door>, closing: &Closing, beside: BesideCalls) -> Router {
    let handlers = WorkHandlers { services: Arc::clone(&door.services), closing: closing.clone() };
    let work = WorkServiceServer::new(handlers)
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let work = InterceptedService::new(work, version::check_request)
        .map_request(|request: Request<Body>| request.map(tonic::body::Body::new));
    let grpc = Router::new()
        .route_service(&format!("/{WORK_SERVICE}/{{*call}}"), work)
        .layer(from_fn_with_state(Arc::clone(&door), guard_grpc));
    let small = || from_fn_with_state((Arc::clone(&door), NAMING_BYTES), receive);
    let readers = from_fn_with_state(Arc::clone(&door), guard::guard_readers);
    grpc.merge(Api::new(Arc::clone(&door), closing.clone()).router())
        .merge(beside.for_readers.layer(small()).layer(readers))
        .merge(beside.open.layer(small()))
        .layer(from_fn(count))
}

/// How long connections may take to close after their calls were aborted.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a call is answered with.
type Answer<W> = Result<Response<W>, Status>;

/// Waits for the result of a call, or for its timeout, and answers.
async fn answer<T, W: From<T>>(
    closing: &Closing,
    call: impl Future<Output = Result<T, ServiceError>>,
) -> Answer<W> {
    tokio::select! {
        result = call => match result {
            Ok(value) => Ok(version::answer(W::from(value))),
            Err(error) => Err(to_status(error)),
        },
        () = closing.cut() => Err(to_status(closing::leaving())),
    }
}
