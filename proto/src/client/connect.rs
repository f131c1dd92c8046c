//! What a client is told of its coordinators, and where that leads.

use std::sync::Arc;
use std::time::Duration;

use domain::reach::is_loopback_host;
use domain::{ErrorCode, ServiceError};
use tonic::codegen::http::Uri;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::limits::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT};

/// Reads the configuration of a client again, from the files that it came from. Blocks.
pub type Reread = Arc<dyn Fn() -> Result<ClientConfig, String> + Send + Sync>;

/// Addresses and connection options of one or more coordinators of the same queue. Not to be printed: it has a token.
#[derive(Clone)]
pub struct ClientConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT`; at least one.
    pub addresses: Vec<String>,
    /// Connect timeout. Default: 5 s.
    pub connect_timeout: Duration,
    /// Certificates of the authorities that sign the coordinator's, PEM. Default: those that this machine trusts.
    pub ca: Option<Vec<u8>>,
    /// The caller's token. Without TLS it is sent to this machine only, unless [`insecure`](Self::insecure).
    pub token: Option<String>,
    /// Whether a token may be sent over a network without TLS, because something else encrypts the connection.
    pub insecure: bool,
    /// How to read credentials again when they are refused, because they may have been replaced. Addresses stay.
    pub reread: Option<Reread>,
}

impl ClientConfig {
    /// The defaults for a coordinator at this address.
    pub fn new(address: impl Into<String>) -> Self {
        Self::of(vec![address.into()])
    }

    /// The defaults for coordinators at these addresses.
    pub fn of(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            connect_timeout: Duration::from_secs(5),
            ca: None,
            token: None,
            insecure: false,
            reread: None,
        }
    }
}

/// The coordinators of a configuration.
pub(super) fn endpoints(config: &ClientConfig) -> Result<Vec<Endpoint>, ServiceError> {
    config.addresses.iter().map(|address| endpoint(config, address)).collect()
}

pub(super) fn invalid(what: String) -> ServiceError {
    ServiceError::new(ErrorCode::Invalid, what)
}

/// Sees that a coordinator may be called at this address with the credentials of a configuration.
pub(super) fn checked(config: &ClientConfig, address: &str) -> Result<Uri, ServiceError> {
    let uri: Uri = address
        .parse()
        .map_err(|e| invalid(format!("`{address}` is not an address of a coordinator: {e}")))?;
    match uri.scheme_str() {
        Some("http") if config.ca.is_some() => {
            Err(invalid(format!("certificates are given, but `{address}` is not an https address")))
        }
        Some("http")
            if config.token.is_some() && !config.insecure && !uri.host().is_some_and(is_loopback_host) =>
        {
            Err(invalid(format!(
                "a token would be sent to `{address}` without TLS: use https, or --insecure-token if something else \
                 encrypts the way"
            )))
        }
        Some("http" | "https") => Ok(uri),
        _ => Err(invalid(format!("`{address}` is neither http://HOST:PORT nor https://HOST:PORT"))),
    }
}

fn endpoint(config: &ClientConfig, address: &str) -> Result<Endpoint, ServiceError> {
    let endpoint = Endpoint::from(checked(config, address)?)
        .connect_timeout(config.connect_timeout)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    if endpoint.uri().scheme_str() != Some("https") {
        return Ok(endpoint);
    }
    let tls = match &config.ca {
        Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    endpoint
        .tls_config(tls)
        .map_err(|e| invalid(format!("the certificates for `{address}` cannot be used: {e}")))
}
