//! The HTTP server of every long-lived process, for Kubernetes and Prometheus.
//!
//! | path | answers | asks |
//! |---|---|---|
//! | `/healthz` | 200 as long as the process lives | whether to restart it. It depends on nothing else: restarting a process does not help if it waits for another one |
//! | `/readyz` | 200, or 503 with the reason | whether to send work to it |
//! | `/metrics` | Prometheus's text format | what it did |
//!
//! A coordinator serves them beside its calls. Connections are bounded in number, and idle ones are closed.

mod bounded;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::metrics::Metrics;

use bounded::Bounded;

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
    let exposition = move || async move {
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.render())
    };
    Router::new().route("/metrics", get(exposition))
}

/// Serves the probes until `shutdown` completes, and keeps the metrics small meanwhile. Requests in progress then
/// have [`SHUTDOWN_GRACE`].
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    probes: Probes,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let kept_up = probes.metrics.clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let service = health(probes.ready).merge(metrics(probes.metrics));
    let serving = axum::serve(Bounded::new(listener), service).with_graceful_shutdown(async move {
        // An error means that `serve` was dropped, which also stops it.
        let _ = stopped.await;
    });
    let mut serving = pin!(serving.into_future());
    tokio::select! {
        result = &mut serving => return result,
        () = kept_up.keep_up() => {}
        () = shutdown => {}
    }
    let _ = stop.send(());
    tokio::time::timeout(SHUTDOWN_GRACE, serving).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Status and body of a page.
    async fn get(address: SocketAddr, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    #[tokio::test]
    async fn probes_tell_life_readiness_and_metrics_until_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Err("the queue cannot be reached".to_owned())));
        let ready = Arc::clone(&state);
        let probes = Probes {
            ready: Arc::new(move || ready.lock().unwrap().clone()),
            metrics: Metrics::install().unwrap(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(serve(listener, probes, async { stopped.await.unwrap() }));

        assert_eq!(get(address, "/healthz").await, (200, "alive\n".to_owned()));
        assert_eq!(get(address, "/readyz").await, (503, "the queue cannot be reached\n".to_owned()));
        *state.lock().unwrap() = Ok(());
        assert_eq!(get(address, "/readyz").await, (200, "ready\n".to_owned()));
        metrics::gauge!("kgfleet_test_probed").set(1.0);
        let (status, text) = get(address, "/metrics").await;
        assert!(status == 200 && text.contains("\nkgfleet_test_probed 1\n"), "{text}");
        assert_eq!(get(address, "/else").await.0, 404);

        stop.send(()).unwrap();
        server.await.unwrap().unwrap();
    }
}
