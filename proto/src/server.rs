//! Serves a coordinator on a socket.

mod access;
mod budget;
mod closing;
mod control;
mod feed;
mod guard;
mod identity;
mod incoming;
mod line;
mod records;
mod tls;
mod work;

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::ServiceError;
use domain::caller::Caller;
use domain::control::Control;
use domain::exchange::WorkExchange;
use domain::text::with_causes;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Response, Status};
use tonic_health::ServingStatus;

use self::budget::Received;
use self::closing::{Closing, ServerPhase};
use self::control::ControlHandlers;
use self::guard::Guard;
pub(crate) use self::identity::{AUTHORIZATION, BEARER};
pub use self::identity::{
    IDENTITIES_MAX, IDENTITY_NAME_BYTES_MAX, Identities, IdentitiesError, IdentityChange, ListedIdentity,
    hash_of_token,
};
pub use self::tls::{ServerTls, Tls};
use self::work::WorkHandlers;
use crate::limits::{
    CALLS_PER_CONNECTION, HEADER_BYTES, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, MESSAGE_BYTES,
    SHUTDOWN_GRACE, WINDOW_BYTES,
};
use crate::status::to_status;
use crate::version;
use crate::wire::control_service_server::{ControlServiceServer, SERVICE_NAME as CONTROL_SERVICE};
use crate::wire::work_service_server::{SERVICE_NAME as WORK_SERVICE, WorkServiceServer};

/// A coordinator, as each caller may use it.
pub trait Serve: Send + Sync + 'static {
    /// The interface for this worker.
    fn exchange(&self, caller: &Caller) -> Arc<dyn WorkExchange>;

    /// The interface for this person or tool.
    fn control(&self, caller: &Caller) -> Arc<dyn Control>;

    /// Hears of a call that is let in. Must not wait.
    fn heard(&self, _caller: &Caller) {}

    /// Hears of a call that is refused. Must not wait.
    fn refused(&self, _refusal: &RefusedCall<'_>) {}
}

/// A call that was refused at the door.
#[derive(Clone, Copy, Debug)]
pub struct RefusedCall<'a> {
    /// The identity that lacks the role; none if the caller is unknown.
    pub who: Option<&'a str>,
    /// The caller's machine.
    pub from: Option<IpAddr>,
    /// The last part of the call's path, such as `GetRun`.
    pub call: &'a str,
    pub why: &'a str,
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
    /// The reflection service does not accept the protocol's own description: a bug.
    #[error("the protocol's description is broken: {0}")]
    Description(String),
    /// The listener failed.
    #[error("the server failed: {0}")]
    Transport(String),
}

/// Serves a coordinator on a bound socket, with gRPC health and reflection beside it, until `shutdown` completes.
///
/// Then health reports `NOT_SERVING`, nothing new is accepted, record streams take no more batches, watchers are told
/// to reconnect, and calls in progress may take up to [`SHUTDOWN_GRACE`]; after that, the remaining ones are answered
/// with [`Unavailable`](domain::ErrorCode::Unavailable). A long poll counts as a call in progress: its server must
/// end it.
///
/// A call whose caller went away is dropped at its next await, except batches of records, which are stored
/// completely.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    services: impl Serve,
    security: Security,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let (phase, closing) = closing::channel();
    let (health, health_service) = tonic_health::server::health_reporter();
    for name in ["", WORK_SERVICE, CONTROL_SERVICE] {
        health.set_service_status(name, ServingStatus::Serving).await;
    }
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(crate::wire::DESCRIPTORS)
        .build_v1()
        .map_err(|e| ServeError::Description(e.to_string()))?;
    let services: Arc<dyn Serve> = Arc::new(services);
    let at_door = Arc::clone(&services);
    let handlers = WorkHandlers { services: Arc::clone(&services), closing: closing.clone() };
    let work = WorkServiceServer::new(handlers)
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let control = ControlServiceServer::new(ControlHandlers { services, closing })
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);

    let identities = security.identities;
    let received = Received::default();
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .max_concurrent_streams(CALLS_PER_CONNECTION)
        .http2_max_header_list_size(HEADER_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .layer(tower::layer::layer_fn(move |inner| {
            Guard::new(inner, Arc::clone(&at_door), identities.clone(), received.clone())
        }));
    let router = server
        .add_service(health_service)
        .add_service(reflection)
        .add_service(InterceptedService::new(work, version::check_request))
        .add_service(InterceptedService::new(control, version::check_request));

    let incoming = incoming::connections(listener, security.tls);
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = pin!(router.serve_with_incoming_shutdown(incoming, async move {
        // An error means that `serve` was dropped, which also stops it.
        let _ = stopped.await;
    }));
    tokio::select! {
        result = &mut serving => {
            return result.map_err(|e| ServeError::Transport(with_causes(&e)));
        }
        () = shutdown => {}
    }
    for name in ["", WORK_SERVICE, CONTROL_SERVICE] {
        health.set_service_status(name, ServingStatus::NotServing).await;
    }
    phase.send_replace(ServerPhase::Draining);
    let _ = stop.send(());
    if tokio::time::timeout(SHUTDOWN_GRACE, &mut serving).await.is_ok() {
        return Ok(());
    }
    phase.send_replace(ServerPhase::Cut);
    // Long enough for the last answers. A connection whose client reads nothing ends with the process.
    let _ = tokio::time::timeout(LAST_WORDS, &mut serving).await;
    Ok(())
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
