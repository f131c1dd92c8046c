//! What long-lived processes share: their listening addresses and traces.

use std::net::SocketAddr;

use anyhow::Context;
use models::{ClientOptions, HttpClient};
use service_kit::traces::{self, SampleShare, Service, Tracing};
use tokio::net::TcpListener;

use crate::kit::exit_code::{Exit, usage};

/// Traces.
#[derive(Debug, clap::Args)]
pub struct Traces {
    /// Send traces of dialogues to this collector, over OTLP's HTTP protocol, such as http://127.0.0.1:4318. They carry
    /// names, numbers and ids, never texts. Default: none.
    #[arg(long = "otlp", value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    endpoint: Option<String>,
    /// Share of dialogues that are traced, from 0 to 1. Coordinators and workers with the same share trace the same
    /// dialogues.
    #[arg(
        long = "trace-sample",
        value_name = "SHARE",
        env = "KGFLEET_TRACE_SAMPLE",
        default_value_t = 1.0,
        requires = "endpoint"
    )]
    sample: f64,
}

impl Traces {
    /// Starts to trace, if an endpoint is given. Call it within a runtime.
    pub fn start(&self, name: &str, instance: &str) -> anyhow::Result<Option<Tracing>> {
        let Some(endpoint) = &self.endpoint else { return Ok(None) };
        let service = Service { name, version: env!("CARGO_PKG_VERSION"), instance };
        let sample = SampleShare::of(self.sample).map_err(|error| usage!("--trace-sample: {error}"))?;
        let url = traces::address(endpoint).map_err(Exit::usage)?;
        let options = ClientOptions { request_max: Some(traces::SEND_MAX), ..ClientOptions::default() };
        let client = HttpClient::with(options).for_url(&url).map_err(Exit::usage)?;
        Ok(Some(traces::start(url, client, sample, service)))
    }
}

/// Listens at an address; returns the bound address.
pub async fn bind(address: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}
