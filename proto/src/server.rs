//! A coordinator on a socket.

mod closing;
mod control;
mod feed;
mod records;
mod work;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::ServiceError;
use domain::control::Control;
use domain::exchange::WorkExchange;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::codec::CompressionEncoding;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Response, Status};
use tonic_health::ServingStatus;

use self::closing::{Closing, Phase};
use self::control::ControlHandlers;
use self::work::WorkHandlers;
use crate::limits::{
    CALLS_PER_CONNECTION, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, MESSAGE_BYTES, SHUTDOWN_GRACE,
};
use crate::status::to_status;
use crate::version;
use crate::wire::control_service_server::{ControlServiceServer, SERVICE_NAME as CONTROL_SERVICE};
use crate::wire::work_service_server::{SERVICE_NAME as WORK_SERVICE, WorkServiceServer};

/// What a server serves.
#[derive(Clone)]
pub struct Services {
    /// For workers.
    pub exchange: Arc<dyn WorkExchange>,
    /// For people and their tools.
    pub control: Arc<dyn Control>,
}

/// The server's side of TLS, all in PEM.
#[derive(Clone)]
pub struct ServerTls {
    /// Certificate with its chain.
    pub certificate: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// Certificates of the authorities that sign clients'. With them, a client without a certificate is turned away.
    pub client_ca: Option<Vec<u8>>,
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
    #[error("the server cannot go on: {0}")]
    Transport(String),
}

/// Serves a coordinator on a bound socket, with gRPC health and reflection beside it, until `shutdown` is ready.
///
/// Then health says `NOT_SERVING`, nothing new is accepted, record streams take no more batches, watchers are told
/// to come back, and calls in hand go on for at most [`SHUTDOWN_GRACE`]; what still runs then is answered with
/// [`Unavailable`](domain::ErrorCode::Unavailable). A long poll counts as in hand: who serves one ends it by itself.
///
/// A call whose caller went away is dropped where it waits, except batches of records, which are stored to the end.
///
/// # Errors
/// The certificates cannot be used, or the listener failed.
pub async fn serve(
    listener: TcpListener,
    services: Services,
    tls: Option<ServerTls>,
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
    let work = WorkServiceServer::new(WorkHandlers { exchange: services.exchange, closing: closing.clone() })
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let control = ControlServiceServer::new(ControlHandlers { control: services.control, closing })
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);

    let mut server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .max_concurrent_streams(CALLS_PER_CONNECTION);
    if let Some(tls) = tls {
        server = server.tls_config(tls_config(tls)).map_err(|e| ServeError::Tls(with_sources(&e)))?;
    }
    let router = server
        .add_service(health_service)
        .add_service(reflection)
        .add_service(InterceptedService::new(work, version::check_request))
        .add_service(InterceptedService::new(control, version::check_request));

    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = pin!(router.serve_with_incoming_shutdown(incoming, async move {
        // An error means that `serve` was dropped, which is a stop too.
        let _ = stopped.await;
    }));
    tokio::select! {
        result = &mut serving => {
            return result.map_err(|e| ServeError::Transport(with_sources(&e)));
        }
        () = shutdown => {}
    }
    for name in ["", WORK_SERVICE, CONTROL_SERVICE] {
        health.set_service_status(name, ServingStatus::NotServing).await;
    }
    phase.send_replace(Phase::Draining);
    let _ = stop.send(());
    if tokio::time::timeout(SHUTDOWN_GRACE, &mut serving).await.is_ok() {
        return Ok(());
    }
    phase.send_replace(Phase::Cut);
    // Long enough for the last words. A connection whose peer reads nothing ends with the process.
    let _ = tokio::time::timeout(LAST_WORDS, &mut serving).await;
    Ok(())
}

/// How long connections may take to end after their calls were cut.
const LAST_WORDS: Duration = Duration::from_secs(1);

fn tls_config(tls: ServerTls) -> ServerTlsConfig {
    let config = ServerTlsConfig::new().identity(Identity::from_pem(tls.certificate, tls.key));
    match tls.client_ca {
        Some(ca) => config.client_ca_root(Certificate::from_pem(ca)),
        None => config,
    }
}

/// Transport errors say little by themselves; their sources say what happened.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Waits for the result of a call, or for the end of the server's patience, and answers.
async fn answer<T, W: From<T>>(
    closing: &Closing,
    call: impl Future<Output = Result<T, ServiceError>>,
) -> Result<Response<W>, Status> {
    tokio::select! {
        result = call => match result {
            Ok(value) => Ok(version::answer(W::from(value))),
            Err(error) => Err(to_status(error)),
        },
        () = closing.cut() => Err(to_status(closing::leaving())),
    }
}
