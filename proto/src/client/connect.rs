//! Connects a client to its coordinators.

use std::sync::Arc;
use std::time::Duration;

use domain::reach::is_loopback_host;
use domain::{ErrorCode, ServiceError};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use super::choice::Choice;
use super::credentials::authorization;
use crate::limits::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT};

/// Reads the configuration of a client again, from the files that it came from. Blocks.
pub type Reread = Arc<dyn Fn() -> Result<ClientConfig, String> + Send + Sync>;

/// Addresses and connection options of one or more coordinators of the same queue.
#[derive(Clone)]
pub struct ClientConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT`; at least one. A host may be a name of several machines.
    pub addresses: Vec<String>,
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
            identity: None,
            token: None,
            insecure: false,
            reread: None,
        }
    }
}

/// Hides private key and token.
impl std::fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfig")
            .field("addresses", &self.addresses)
            .field("connect_timeout", &self.connect_timeout)
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .field("token", &self.token.is_some())
            .field("insecure", &self.insecure)
            .field("reread", &self.reread.is_some())
            .finish()
    }
}

/// A choice among the coordinators, which connects at its first use.
pub(super) fn choice(config: &ClientConfig) -> Result<Choice, ServiceError> {
    if config.addresses.is_empty() {
        return Err(invalid("no address of a coordinator is given".to_owned()));
    }
    let (endpoints, authorization) = (endpoints(config)?, authorization(config)?);
    if tokio::runtime::Handle::try_current().is_err() {
        let addresses = config.addresses.join(", ");
        return Err(invalid(format!("a client of {addresses} can be made inside a Tokio runtime only")));
    }
    Ok(Choice::among(config.clone(), endpoints, authorization))
}

/// The coordinators of a configuration.
pub(super) fn endpoints(config: &ClientConfig) -> Result<Vec<Endpoint>, ServiceError> {
    config.addresses.iter().map(|address| endpoint(config, address)).collect()
}

fn invalid(what: String) -> ServiceError {
    ServiceError::new(ErrorCode::Invalid, what)
}

fn endpoint(config: &ClientConfig, address: &str) -> Result<Endpoint, ServiceError> {
    let mut endpoint = Endpoint::from_shared(address.to_owned())
        .map_err(|e| invalid(format!("`{address}` is not an address of a coordinator: {e}")))?
        .connect_timeout(config.connect_timeout)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    match endpoint.uri().scheme_str() {
        Some("http") if config.ca.is_some() || config.identity.is_some() => {
            return Err(invalid(format!("certificates are given, but `{address}` is not an https address")));
        }
        Some("http")
            if config.token.is_some()
                && !config.insecure
                && !endpoint.uri().host().is_some_and(is_loopback_host) =>
        {
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
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: &ClientConfig) -> String {
        let error = choice(config).unwrap_err();
        assert_eq!(error.code, ErrorCode::Invalid);
        error.message
    }

    #[tokio::test]
    async fn configurations_that_cannot_work_are_refused_with_a_reason() {
        assert!(refusal(&ClientConfig::new("not an address")).contains("`not an address` is not an address"));
        assert!(refusal(&ClientConfig::new("coordinator:7700")).contains("neither http"));
        let token = |address: &str| ClientConfig { token: Some("t".into()), ..ClientConfig::new(address) };
        assert!(refusal(&token("http://coordinator:1")).contains("without TLS"));
        assert!(choice(&token("http://127.0.0.1:1")).is_ok() && choice(&token("http://[::1]:1")).is_ok());
        assert!(choice(&ClientConfig { insecure: true, ..token("http://coordinator:1") }).is_ok());
        let ca = Some(b"no PEM".to_vec());
        let mixed = ClientConfig { ca: ca.clone(), ..ClientConfig::new("http://a:1") };
        assert!(refusal(&mixed).contains("not an https address"));
        assert!(choice(&ClientConfig::new("http://a:1")).is_ok());
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
