//! The HTTP server of every long-lived process, for Kubernetes and Prometheus.
//!
//! | path | answers | asks |
//! |---|---|---|
//! | `/healthz` | 200 as long as the process lives | whether to restart it. It depends on nothing else: restarting a process does not help if it waits for another one |
//! | `/readyz` | 200, or 503 with the reason | whether to send work to it |
//! | `/metrics` | Prometheus's text format | what it did |
//!
//! A coordinator serves them beside its calls. Connections are bounded in number by a [`door`], and idle ones are closed.

pub mod door;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use self::door::{Door, DoorLimits, SeatLimits};
use crate::aside;
use crate::metrics::Metrics;

/// Connections at once, and from one address: a proxy with all its visitors, or a browser for each of many people.
const CONNECTIONS: SeatLimits = SeatLimits { all: 512, per_address: 128 };

/// Time from the end of an answer, or from the beginning of a connection, to the end of the next request's head. As long as
/// the usual interval between two scrapes, which share a connection.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// How long requests in progress may take when the server stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// What the probes report.
#[derive(Clone)]
pub struct Probes {
    /// Whether the process is ready; if not, why. It must return at once, from state that others keep up to date.
    pub ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// The metrics of the process.
    pub metrics: Metrics,
}

/// The probes as routes, for a process that serves more than these: nobody needs to be known for them.
pub fn health(ready: Arc<dyn Fn() -> Result<(), String> + Send + Sync>) -> Router {
    let readiness = move || async move {
        match ready() {
            Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
            Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }
    };
    Router::new().route("/healthz", get(|| async { "alive\n" })).route("/readyz", get(readiness))
}

/// The metrics as a route.
pub fn metrics(metrics: Metrics) -> Router {
    exposition(Arc::new(move || metrics.render()))
}

/// Metrics that are written once for all who wait for them, aside from the async threads: whoever asks for them without end
/// takes one thread, and no probe waits for it.
fn exposition(render: Arc<dyn Fn() -> String + Send + Sync>) -> Router {
    let latest = Arc::new(Mutex::new((None, Bytes::new())));
    let answer = move || {
        let (render, latest) = (Arc::clone(&render), Arc::clone(&latest));
        async move {
            let asked = Instant::now();
            let mut latest = latest.lock().await;
            if latest.0.is_none_or(|begun| begun < asked) {
                let begun = Instant::now();
                let Ok(text) = aside::run(move || render()).await else {
                    return StatusCode::INTERNAL_SERVER_ERROR.into_response();
                };
                *latest = (Some(begun), text.into());
            }
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, latest.1.clone()).into_response()
        }
    };
    Router::new().route("/metrics", get(answer))
}

/// Serves the probes until `shutdown` completes, and keeps the metrics small meanwhile. Requests in progress then
/// have [`SHUTDOWN_GRACE`].
pub async fn serve(listener: TcpListener, probes: Probes, shutdown: impl Future<Output = ()>) {
    let kept_up = probes.metrics.clone();
    let service = health(probes.ready).merge(metrics(probes.metrics));
    let door = Door::new(listener, DoorLimits::of(CONNECTIONS));
    let ending = async {
        tokio::select! {
            () = kept_up.keep_up() => {}
            () = shutdown => {}
        }
    };
    serve_at(door, service, REQUEST_TIME_MAX, ending).await;
}

async fn serve_at(door: Door, service: Router, request_time_max: Duration, ending: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(request_time_max);
    let (graceful, mut served, mut ending) = (GracefulShutdown::new(), JoinSet::new(), pin!(ending));
    loop {
        let (stream, peer, seat) = tokio::select! {
            () = &mut ending => break,
            Some(_) = served.join_next() => continue,
            accepted = door.accept() => accepted,
        };
        let connection = TokioIo::new(seat.hold(stream, || false));
        let serving = http.serve_connection(connection, TowerToHyperService::new(service.clone()));
        let serving = graceful.watch(serving);
        served.spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!(%peer, %error, "a connection ended early");
            }
        });
    }
    drop(door);
    // What takes longer ends with this call.
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, graceful.shutdown()).await;
}

#[cfg(test)]
mod tests;
