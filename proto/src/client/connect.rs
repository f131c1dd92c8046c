//! Connects a client to its coordinator.

use std::net::IpAddr;
use std::time::Duration;

use domain::{ErrorCode, ServiceError};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::limits::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT};

/// Address and connection options of a coordinator.
#[derive(Clone)]
pub struct ClientConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub address: String,
    /// Connect timeout. Default: 5 s.
    pub connect_timeout: Duration,
    /// Certificates of the authorities that sign the coordinator's, PEM. Default: those that this machine trusts.
    pub ca: Option<Vec<u8>>,
    /// Client certificate and private key, PEM. For `https` only.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The caller's token. Without TLS it is sent to this machine only, unless [`insecure`](Self::insecure).
    pub token: Option<String>,
    /// Whether a token may be sent over a network without TLS, because something else encrypts the connection.
    pub insecure: bool,
}

impl ClientConfig {
    /// The defaults for a coordinator at this address.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            connect_timeout: Duration::from_secs(5),
            ca: None,
            identity: None,
            token: None,
            insecure: false,
        }
    }
}

/// Hides private key and token.
impl std::fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfig")
            .field("address", &self.address)
            .field("connect_timeout", &self.connect_timeout)
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .field("token", &self.token.is_some())
            .field("insecure", &self.insecure)
            .finish()
    }
}

/// A channel that connects at its first use.
pub(super) fn channel(config: &ClientConfig) -> Result<Channel, ServiceError> {
    let invalid = |what: String| ServiceError::new(ErrorCode::Invalid, what);
    let address = &config.address;
    let mut endpoint = Endpoint::from_shared(address.clone())
        .map_err(|e| invalid(format!("`{address}` is not an address of a coordinator: {e}")))?
        .connect_timeout(config.connect_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    match endpoint.uri().scheme_str() {
        Some("http") if config.ca.is_some() || config.identity.is_some() => {
            return Err(invalid(format!("certificates are given, but `{address}` is not an https address")));
        }
        Some("http") if config.token.is_some() && !config.insecure && !is_here(endpoint.uri().host()) => {
            return Err(invalid(format!(
                "a token would be sent to `{address}` without TLS: use https, or --insecure-token if something else \
                 encrypts the way"
            )));
        }
        Some("http") => {}
        Some("https") => {
            let mut tls = match &config.ca {
                Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            if let Some((certificate, key)) = &config.identity {
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            endpoint = endpoint
                .tls_config(tls)
                .map_err(|e| invalid(format!("the certificates for `{address}` cannot be used: {e}")))?;
        }
        _ => {
            return Err(invalid(format!("`{address}` is neither http://HOST:PORT nor https://HOST:PORT")));
        }
    }
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(invalid(format!("a client of {address} can be made inside a Tokio runtime only")));
    }
    Ok(endpoint.connect_lazy())
}

/// Whether a host is this machine.
fn is_here(host: Option<&str>) -> bool {
    host.is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: &ClientConfig) -> String {
        let error = channel(config).unwrap_err();
        assert_eq!(error.code, ErrorCode::Invalid);
        error.message
    }

    #[tokio::test]
    async fn configurations_that_cannot_work_are_refused_with_a_reason() {
        assert!(refusal(&ClientConfig::new("not an address")).contains("`not an address` is not an address"));
        assert!(refusal(&ClientConfig::new("coordinator:7700")).contains("neither http"));
        let token = |address: &str| ClientConfig { token: Some("t".into()), ..ClientConfig::new(address) };
        assert!(refusal(&token("http://coordinator:1")).contains("without TLS"));
        assert!(channel(&token("http://127.0.0.1:1")).is_ok() && channel(&token("http://[::1]:1")).is_ok());
        assert!(channel(&ClientConfig { insecure: true, ..token("http://coordinator:1") }).is_ok());
        let ca = Some(b"no PEM".to_vec());
        let mixed = ClientConfig { ca: ca.clone(), ..ClientConfig::new("http://a:1") };
        assert!(refusal(&mixed).contains("not an https address"));
        assert!(channel(&ClientConfig::new("http://a:1")).is_ok());
    }

    #[test]
    fn without_a_runtime_there_is_an_error_and_no_panic() {
        assert!(refusal(&ClientConfig::new("http://a:1")).contains("Tokio runtime"));
    }

    #[test]
    fn the_key_is_not_printed() {
        let identity = Some((b"c".to_vec(), b"secret".to_vec()));
        let token = Some("secret".to_owned());
        let text = format!("{:?}", ClientConfig { identity, token, ..ClientConfig::new("https://a:1") });
        assert!(text.contains("identity: true") && !text.contains("secret"), "{text}");
    }
}
