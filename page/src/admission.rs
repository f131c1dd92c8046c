//! Admission: who is served, how they connect, and how a browser must treat what it gets.
//!
//! A page that other machines can reach needs identities and TLS: that of the port, or that of a proxy under the address given
//! to the coordinator (`--page-url`). Without identities, only this machine is served, and only under a loopback name: any
//! other name that resolves to this machine (DNS rebinding) is refused. A request that a proxy passed on under any other name
//! seems to come from this machine and does not: it is refused if a header of the proxy shows this. Under that address the audit
//! log names whom the proxy says that it asks for, and the proxy itself. What is refused here is logged in the same way.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::caller::{Caller, CallerRole};
use proto::server::Peer;
use service_kit::telemetry;
use url::Url;

use crate::render::frame::login_page;
use crate::session::SessionId;
use crate::site::{InvalidUrl, Site};

/// Name of the cookie. The prefix makes browsers take it over TLS and for this host only.
pub(crate) fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-kgfleet-session" } else { "kgfleet-session" }
}

/// Headers of every answer, which tell the browser what it may do with it.
const HEADERS: [(HeaderName, &str); 9] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: forms would say that they come from nowhere.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    (header::CACHE_CONTROL, "no-store"),
];

/// The clients of the proxies on the way, the last one as the nearest proxy saw it.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Headers by which proxies name the original client (RFC 7239, and its predecessors; `Via`: RFC 9110, section 7.6.3).
const FORWARDED: [HeaderName; 6] = [
    header::FORWARDED,
    header::VIA,
    FORWARDED_FOR,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];

/// Paths that need no login.
fn is_open(path: &str) -> bool {
    path == "/login" || path.starts_with("/assets/")
}

/// Passes an allowed request on, and answers any other one itself.
pub(crate) async fn guard(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&site, &request) {
        Ok((connection, visitor)) => {
            request.extensions_mut().insert(connection);
            if let Some(visitor) = visitor {
                request.extensions_mut().insert(visitor);
            }
            next.run(request).await
        }
        Err(refused) => *refused,
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Why a form is refused.
const FOREIGN_FORM: &str = "this form comes from another site";

type Admitted = (VisitorConnection, Option<Visitor>);

fn admit(site: &Site, request: &Request) -> Result<Admitted, Box<Response>> {
    let refused = |reason: &str| Box::new((StatusCode::FORBIDDEN, format!("{reason}\n")).into_response());
    let peer = request.extensions().get::<Peer>();
    let connection = connection(site, peer, request.headers()).map_err(|reason| {
        let client = peer.map(|peer| peer.address.ip().to_canonical());
        let unserved = VisitorConnection { secure: false, origin: String::new(), client, proxy: None };
        telemetry::refused("", &unserved.from(), reason);
        refused(reason)
    })?;
    let visitor = visitor(site, request.headers(), &connection);
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_safe && !comes_from_here(request.headers(), &connection) {
        let who = visitor.as_ref().map(|visitor| visitor.caller.name()).unwrap_or_default();
        telemetry::refused(who, &connection.from(), FOREIGN_FORM);
        return Err(refused(FOREIGN_FORM));
    }
    if visitor.is_none() && !is_open(request.uri().path()) {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let next = if is_safe { path } else { "/" };
        return Err(Box::new((StatusCode::UNAUTHORIZED, login_page(next, None)).into_response()));
    }
    if let (Some(peer), Some(_)) = (peer, &visitor) {
        peer.let_in();
    }
    Ok((connection, visitor))
}

/// How an allowed request came here; an error with the reason otherwise.
fn connection(
    site: &Site,
    peer: Option<&Peer>,
    headers: &HeaderMap,
) -> Result<VisitorConnection, &'static str> {
    let has_tls = peer.is_some_and(|peer| peer.has_tls);
    let peer = peer.map(|peer| peer.address.ip().to_canonical());
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let logs_in = !site.identities.is_anyone();
    if let Some(public) = site.public.as_ref().filter(|_| logs_in)
        && host.eq_ignore_ascii_case(&public.host)
    {
        let (client, proxy) = match said_client(headers) {
            Some(client) => (Some(client), peer),
            None => (peer, None),
        };
        return Ok(VisitorConnection { secure: true, origin: public.origin.clone(), client, proxy });
    }
    if FORWARDED.iter().any(|name| headers.contains_key(name)) {
        return Err(
            "this request came through a proxy; the page is served through one under the address of --page-url \
                    only, which needs --tokens",
        );
    }
    let scheme = if has_tls { "https" } else { "http" };
    let served = || VisitorConnection {
        secure: has_tls,
        origin: format!("{scheme}://{host}"),
        client: peer,
        proxy: None,
    };
    if has_tls && logs_in {
        return Ok(served());
    }
    match (peer.is_some_and(|peer| peer.is_loopback()), is_loopback_name(host)) {
        (true, true) => Ok(served()),
        (true, false) => Err("the page is not served under this name: use localhost, or --page-url"),
        (false, _) => Err(
            "the page is served to this machine only; other machines need --tokens with TLS or --page-url, or a \
                           tunnel to this port",
        ),
    }
}

/// The machine that a proxy says it asks for: the last that it names, which is the one that it has added. Those before are
/// what its client sent.
fn said_client(headers: &HeaderMap) -> Option<IpAddr> {
    let line = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
    let last = line.rsplit(',').next()?.trim();
    let with_port = || last.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bare = last.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(last);
    bare.parse().ok().or_else(with_port).map(|client: IpAddr| client.to_canonical())
}

/// Whether a host name, with or without port, always means the machine that uses it.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name.to_ascii_lowercase().as_str(), "localhost" | "127.0.0.1" | "[::1]")
}

/// Whether a form was sent from this page, according to the browser. Older browsers send none of these headers; the
/// token in the form protects them.
fn comes_from_here(headers: &HeaderMap, connection: &VisitorConnection) -> bool {
    let says = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    let site = says(HeaderName::from_static("sec-fetch-site"));
    let origin = says(header::ORIGIN);
    site.is_none_or(|site| site == b"same-origin")
        && origin.is_none_or(|origin| origin.eq_ignore_ascii_case(connection.origin.as_bytes()))
}

fn visitor(site: &Site, headers: &HeaderMap, connection: &VisitorConnection) -> Option<Visitor> {
    let located = |caller: Caller| connection.client.map(|client| caller.at(client)).unwrap_or(caller);
    if site.identities.is_anyone() {
        let caller = located(Caller::anyone());
        return Some(Visitor { caller, form_token: site.form_token.clone(), session: None });
    }
    let name = cookie(headers, cookie_name(connection.secure))?;
    let (id, caller, form_token) = site.sessions().of(name, site.now())?;
    Some(Visitor { caller: located(caller), form_token, session: Some(id) })
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let sent = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    sent.flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// The `https` address under which other machines reach the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// As in the header `Host`.
    pub(crate) host: String,
    pub(crate) origin: String,
}

impl std::str::FromStr for PublicUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = || InvalidUrl { text: text.to_owned(), wanted: "https://HOST or https://HOST:PORT" };
        let url = Url::parse(text).map_err(|_| invalid())?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| url.scheme() == "https" && plain && url.username().is_empty());
        let host = host.ok_or_else(invalid)?;
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { origin: format!("https://{host}"), host })
    }
}

/// An admitted visitor.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub caller: Caller,
    /// The token that its forms must carry.
    pub form_token: String,
    /// `None` if nobody has to log in.
    pub session: Option<SessionId>,
}

impl Visitor {
    /// Whether it may change anything.
    pub(crate) fn steers(&self) -> bool {
        self.caller.has(CallerRole::Operator)
    }

    /// The audience that the visitor belongs to.
    pub(crate) fn audience(&self) -> Audience {
        if self.steers() { Audience::Operators } else { Audience::Readers }
    }
}

/// Whom a page is rendered for. Only operators see buttons, and messages of servers about protected exercises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Audience {
    Operators,
    Readers,
}

impl Audience {
    pub(crate) const ALL: [Self; 2] = [Self::Operators, Self::Readers];
}

/// How the visitor came here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VisitorConnection {
    /// Whether it came over TLS; its cookie must not be sent otherwise.
    pub secure: bool,
    /// The header `Origin` that forms of this page have.
    pub origin: String,
    /// The machine that asks; behind a proxy, the one that this says it asks for.
    pub client: Option<IpAddr>,
    /// The proxy, where it says whom it asks for.
    pub proxy: Option<IpAddr>,
}

impl VisitorConnection {
    /// The machine that somebody comes from, for logs. The proxy is named, too: what it says of its client, a stranger may say
    /// as well who reaches the port without it.
    pub(crate) fn from(&self) -> String {
        let mut from = self.client.map(|client| client.to_string()).unwrap_or_default();
        if let Some(proxy) = self.proxy {
            from += &format!(" via {proxy}");
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_names() {
        for own in ["localhost", "LOCALHOST:7701", "127.0.0.1:7701", "[::1]:7701", "[::1]"] {
            assert!(is_loopback_name(own), "{own}");
        }
        for foreign in [
            "",
            "evil.example",
            "localhost.evil.example:7701",
            "127.0.0.1.nip.io",
            "127.0.0.2",
            "10.0.0.1:7701",
        ] {
            assert!(!is_loopback_name(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_form_of_another_site_is_known_by_its_origin() {
        let origin = "http://localhost:7701".to_owned();
        let connection = VisitorConnection { secure: false, origin, client: None, proxy: None };
        let from = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            comes_from_here(&headers, &connection)
        };
        assert!(from("origin", "http://localhost:7701") && from("sec-fetch-site", "same-origin"));
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:7702"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "none"),
        ] {
            assert!(!from(name, value), "{name}: {value}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; kgfleet-session=x; b=2"));
        assert_eq!(cookie(&headers, "kgfleet-session"), Some("x"));
        assert_eq!(cookie(&headers, "session"), None);
    }

    #[test]
    fn a_public_address_is_https_and_no_more_than_a_host() {
        let url: PublicUrl = "https://fleet.example.org:8443/".parse().unwrap();
        assert_eq!(
            (url.host.as_str(), url.origin.as_str()),
            ("fleet.example.org:8443", "https://fleet.example.org:8443")
        );
        assert_eq!("https://fleet.example.org".parse::<PublicUrl>().unwrap().host, "fleet.example.org");
        for wrong in
            ["http://fleet.example.org", "fleet.example.org", "https://a/b", "https://u@a", "https://a?x"]
        {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }
}
