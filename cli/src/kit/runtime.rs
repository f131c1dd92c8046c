//! Runs async calls to completion, and serves probes of long-lived processes.

use std::net::SocketAddr;

use anyhow::Context;
use service_kit::http::{self, Probes};
use tokio::net::TcpListener;

/// Runs calls to a coordinator to completion.
pub fn block_on<T>(calls: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(calls)
}

/// Listens at an address; returns the bound address.
pub async fn bind(address: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// Serves probes and metrics at an address, if there is one, until then; returns where.
pub async fn serve_probes(
    address: Option<&str>,
    probes: Probes,
    until: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<Option<SocketAddr>> {
    let Some(address) = address else { return Ok(None) };
    let (listener, bound) = bind(address).await?;
    eprintln!("health and metrics on http://{bound}");
    tokio::spawn(http::serve(listener, probes, until));
    Ok(Some(bound))
}
