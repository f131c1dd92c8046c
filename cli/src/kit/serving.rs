//! What long-lived processes share: their listening addresses.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpListener;

/// Listens at an address; returns the bound address.
pub async fn bind(address: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}
