//! The server's TLS configuration, which may change while it serves.

use std::sync::{Arc, PoisonError, RwLock};

use domain::text::with_causes;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::ServeError;

/// The server's certificates, all in PEM.
#[derive(Clone)]
pub struct ServerTls {
    /// Certificate with its chain.
    pub certificate: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
}

/// The TLS configuration of new connections. Clones share it, including changes by [`replace`](Self::replace).
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl Tls {
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(tls: &ServerTls) -> Result<Self, ServeError> {
        Ok(Self(Arc::new(RwLock::new(config(tls)?))))
    }

    /// Replaces the certificates for new connections.
    ///
    /// # Errors
    /// They are invalid; then nothing changes.
    pub fn replace(&self, tls: &ServerTls) -> Result<(), ServeError> {
        let config = config(tls)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn config(tls: &ServerTls) -> Result<Arc<ServerConfig>, ServeError> {
    let wrong = |error: &dyn std::error::Error| ServeError::Tls(with_causes(error));
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?;
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| wrong(&error))?;
    let mut config = builder
        .with_no_client_auth()
        .with_single_cert(certificates(&tls.certificate)?, key)
        .map_err(|error| wrong(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| ServeError::Tls(with_causes(&error)))?;
    if found.is_empty() {
        return Err(ServeError::Tls("a file of certificates holds none".to_owned()));
    }
    Ok(found)
}
