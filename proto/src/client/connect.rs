//! How a client reaches its coordinator.

use std::time::Duration;

use domain::{ErrorCode, ServiceError};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::limits::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT};

/// Where a coordinator is and how it is reached.
#[derive(Clone)]
pub struct ClientConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub address: String,
    /// How long a connection may take to be made. Default: 5 s.
    pub connect_timeout: Duration,
    /// Certificates of the authorities that sign the coordinator's, PEM. Required for `https`, refused for `http`.
    pub ca: Option<Vec<u8>>,
    /// Certificate and private key that the coordinator is shown, PEM. For `https` only.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether records are sent gzipped. Default: no. It pays on slow lines only: a record is compressed for the log
    /// anyway, and a fast line is faster than gzip.
    pub compress_records: bool,
}

impl ClientConfig {
    /// A coordinator at this address, with the defaults for everything else.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            connect_timeout: Duration::from_secs(5),
            ca: None,
            identity: None,
            compress_records: false,
        }
    }
}

/// Without the private key.
impl std::fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfig")
            .field("address", &self.address)
            .field("connect_timeout", &self.connect_timeout)
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .field("compress_records", &self.compress_records)
            .finish()
    }
}

/// A channel that connects when it is first used.
pub(super) fn channel(config: &ClientConfig) -> Result<Channel, ServiceError> {
    let invalid = |what: String| ServiceError::new(ErrorCode::Invalid, what);
    let address = &config.address;
    let mut endpoint = Endpoint::from_shared(address.clone())
        .map_err(|e| invalid(format!("`{address}` is no address of a coordinator: {e}")))?
        .connect_timeout(config.connect_timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    match (endpoint.uri().scheme_str(), &config.ca) {
        (Some("http"), None) if config.identity.is_none() => {}
        (Some("http"), _) => {
            return Err(invalid(format!("certificates are given, but `{address}` is not an https address")));
        }
        (Some("https"), Some(ca)) => {
            let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
            if let Some((certificate, key)) = &config.identity {
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            endpoint = endpoint
                .tls_config(tls)
                .map_err(|e| invalid(format!("the certificates for `{address}` cannot be used: {e}")))?;
        }
        (Some("https"), None) => {
            return Err(invalid(format!(
                "`{address}` needs the certificate of the authority that signs its own (--ca FILE)"
            )));
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
        assert!(refusal(&ClientConfig::new("not an address")).contains("`not an address` is no address"));
        assert!(refusal(&ClientConfig::new("coordinator:7700")).contains("neither http"));
        assert!(refusal(&ClientConfig::new("https://a:1")).contains("needs the certificate"));
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
        let text = format!("{:?}", ClientConfig { identity, ..ClientConfig::new("https://a:1") });
        assert!(text.contains("identity: true"), "{text}");
    }
}
