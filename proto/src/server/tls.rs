//! The server's TLS configuration, which may change while it serves.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::text::with_causes;
use jiff::Timestamp;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};

use super::ServeError;

/// The server's certificates, all in PEM.
#[derive(Clone)]
pub struct ServerTls {
    /// Certificate with its chain.
    pub certificate: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
}

impl ServerTls {
    /// When the first one of its certificates ends.
    ///
    /// # Errors
    /// A certificate cannot be read, or has no end.
    pub fn valid_until(&self) -> Result<Timestamp, ServeError> {
        // Certificates are judged as of a time. One that has ended by then is refused for that first, with its end.
        let later =
            UnixTime::since_unix_epoch(Duration::from_secs(Timestamp::MAX.as_second().unsigned_abs()));
        let mut first = Timestamp::MAX;
        for certificate in certificates(&self.certificate)? {
            let judged = ParsedCertificate::try_from(&certificate).and_then(|certificate| {
                let nobody = RootCertStore::empty();
                verify_server_cert_signed_by_trust_anchor(&certificate, &nobody, &[], later, &[])
            });
            let end = match judged {
                Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
                    i64::try_from(not_after.as_secs()).ok().and_then(|end| Timestamp::from_second(end).ok())
                }
                Err(error) => return Err(ServeError::Tls(with_causes(&error))),
                Ok(()) => None,
            };
            let end = end.ok_or_else(|| ServeError::Tls("a certificate has no end".to_owned()))?;
            first = first.min(end);
        }
        Ok(first)
    }
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
