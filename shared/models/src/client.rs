//! Makes every HTTP client of this program: for model servers and their metrics, knowledge graphs, collectors of
//! notifications, Kubernetes.
//!
//! No client follows redirects, and none connects to an address that is [never
//! contacted](domain::reach::never_asked_at): otherwise a server could send this machine, with its keys, to any other
//! address.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::cut_text::ShortMessage;
use domain::reach::{is_loopback_host, never_asked};
use domain::text::with_causes;
use reqwest::header::LOCATION;
use reqwest::{Certificate, Client, Response, Url, redirect};

use crate::error::SetupError;
use crate::resolve::GuardedResolver;

/// Connect timeout, in seconds. Long enough for two retransmissions of a lost SYN packet.
const CONNECT_SECONDS_MAX: u64 = 10;

/// Maximum number of idle connections per server: as many as one process has calls in flight.
const IDLE_CONNECTIONS_MAX: usize = 4096;

/// Idle timeout of connections, in seconds. Just below the 5 s after which vLLM's HTTP server (uvicorn) closes idle
/// connections, so that a request never uses a connection that is being closed.
const IDLE_SECONDS_MAX: u64 = 4;

/// Installs ring as the crypto library of this process, unless another one is installed. Idempotent.
pub fn install_crypto() {
    rustls::crypto::ring::default_provider().install_default().ok();
}

/// The settings in which clients differ.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// Maximum time of a request, from its start to the last byte of its answer. `None`: the caller limits the time.
    pub request_max: Option<Duration>,
    /// Whether the environment's proxies are ignored for every address, not only for loopback.
    pub is_direct: bool,
    /// The only trusted certificate authorities; `None` for those of the machine.
    pub authorities: Option<Vec<Certificate>>,
}

/// The HTTP clients of one purpose: connectors that share one share its connections. Cloning is cheap.
///
/// A client belongs to the async runtime that first used it, as its connections do.
#[derive(Clone, Debug, Default)]
pub struct HttpClient {
    options: ClientOptions,
    made: Arc<Mutex<[Option<Client>; 4]>>,
}

impl HttpClient {
    /// Clients for models: connectors limit the time of calls themselves.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clients with these options.
    pub fn with(options: ClientOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The client for this address. Loopback never goes through a proxy; other addresses follow the
    /// environment's proxy settings, unless the options say otherwise. Certificate authorities are loaded for https only,
    /// so that plain HTTP works on machines that have none.
    ///
    /// # Errors
    /// The client cannot be built, or the address is one that is [never contacted](never_asked).
    pub fn for_url(&self, url: &Url) -> Result<Client, SetupError> {
        if never_asked(url) {
            return Err(SetupError::Endpoint {
                endpoint: url.to_string(),
                reason: "it is a link-local or cloud metadata address, which is never contacted".to_owned(),
            });
        }
        let (loopback, tls) = (url.host_str().is_some_and(is_loopback_host), url.scheme() == "https");
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut made[usize::from(loopback) * 2 + usize::from(tls)];
        if let Some(client) = slot {
            return Ok(client.clone());
        }
        Ok(slot.insert(self.make(loopback, tls)?).clone())
    }

    fn make(&self, loopback: bool, tls: bool) -> Result<Client, SetupError> {
        install_crypto();
        let ClientOptions { request_max, is_direct, authorities } = &self.options;
        let mut builder = Client::builder()
            .dns_resolver(Arc::new(GuardedResolver))
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS_MAX))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .pool_idle_timeout(Duration::from_secs(IDLE_SECONDS_MAX))
            // Who redirects is not who was configured, and following could leak the key.
            .redirect(redirect::Policy::none());
        if let Some(longest) = request_max {
            builder = builder.timeout(*longest);
        }
        if loopback || *is_direct {
            builder = builder.no_proxy();
        }
        if !tls {
            builder = builder.tls_certs_only([]);
        } else if let Some(authorities) = authorities {
            builder = builder.tls_certs_only(authorities.clone());
        }
        builder.build().map_err(|error| SetupError::Client(with_causes(&error)))
    }
}

/// Where an answer redirects to, without the parts of that address that may be secret: user, password, query, fragment.
pub fn redirect_place(answer: &Response) -> Option<Url> {
    if !answer.status().is_redirection() {
        return None;
    }
    let location = answer.headers().get(LOCATION)?.to_str().ok()?;
    let mut place = answer.url().join(location).ok()?;
    place.set_query(None);
    place.set_fragment(None);
    // An address that can have neither has neither.
    let _ = place.set_username("");
    let _ = place.set_password(None);
    Some(place)
}

/// The message about a redirect: its target, and what to do. One line of bounded length.
pub fn redirect_words(place: &Url) -> String {
    ShortMessage::from(&*all_words(place)).0
}

/// As [`redirect_words`], at any length. For texts from which keys will be removed: a shortened key would not be found.
pub(crate) fn all_words(place: &Url) -> String {
    format!(
        "a redirect, which is not followed; if it is right, configure the address that it leads to: {place}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_never_asked() {
        for url in ["http://169.254.169.254/latest", "http://[fe80::1]:80/", "http://2852039166/"] {
            let error = HttpClient::new().for_url(&Url::parse(url).unwrap()).unwrap_err().to_string();
            assert!(error.contains("never contacted"), "{error}");
        }
    }

    #[test]
    fn the_words_of_a_redirect_are_bounded() {
        let place = Url::parse(&format!("http://h/{}", "x".repeat(10_000))).unwrap();
        let words = redirect_words(&place);
        assert!(
            words.contains("http://h/xxx") && words.len() <= domain::cut_text::MESSAGE_BYTES_MAX,
            "{words}"
        );
    }
}
