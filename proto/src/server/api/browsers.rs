//! What keeps pages of other sites from using the API in a visitor's name.
//!
//! A caller with a token is known by it, and no page has that. Without identities, everybody on this machine is anyone: then a
//! page in a browser here must not be able to call, neither across sites nor under a name that its owner lets stand for this
//! machine (DNS rebinding).

use axum::http::{HeaderMap, HeaderName, header};
use domain::reach::is_loopback_host;
use domain::{ErrorCode, ServiceError};

use crate::server::Identities;
use crate::server::guard::Refusal;
use crate::server::incoming::Peer;

/// Why a request is refused that may come from a page of another site.
pub(super) fn refusal(identities: &Identities, peer: Option<&Peer>, headers: &HeaderMap) -> Option<Refusal> {
    if !identities.is_anyone() {
        return None;
    }
    let reason = reason(peer.is_some_and(|peer| peer.address.ip().to_canonical().is_loopback()), headers)?;
    Some(Refusal { error: ServiceError::new(ErrorCode::Denied, reason), who: None })
}

fn reason(is_near: bool, headers: &HeaderMap) -> Option<&'static str> {
    let says = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let of_page = says(HeaderName::from_static("sec-fetch-site")).is_some_and(|site| site != "none")
        || says(header::ORIGIN).is_some();
    if of_page {
        return Some("this request comes from a page in a browser; the API without --tokens is for programs");
    }
    let host = says(header::HOST).map(without_port);
    if is_near && host.is_some_and(|host| !is_loopback_host(host)) {
        return Some(
            "without --tokens, this machine calls its coordinator as localhost or 127.0.0.1 only: other names may be those of a \
             page in a browser",
        );
    }
    None
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn pages_of_other_sites_are_refused_and_programs_are_not() {
        for host in ["localhost:7700", "127.0.0.1:7700", "[::1]:7700", "localhost"] {
            assert_eq!(reason(true, &headers(&[("host", host)])), None, "{host}");
        }
        assert!(reason(true, &headers(&[("host", "evil.example:7700")])).is_some());
        assert_eq!(reason(false, &headers(&[("host", "coordinator:7700")])), None);
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-origin"),
        ] {
            assert!(reason(true, &headers(&[("host", "localhost:7700"), (name, value)])).is_some(), "{name}");
        }
    }
}
