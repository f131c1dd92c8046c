//! Visitors of the page: who they are and how they connect.

use std::net::IpAddr;
use std::sync::Arc;

use coordinator::audit::Deed;
use domain::caller::{Caller, CallerRole};
use url::Url;

use crate::session::SessionId;

/// Finds the caller of a token.
type Whose = dyn Fn(&str) -> Option<Caller> + Send + Sync;

/// How visitors log in.
#[derive(Clone)]
pub enum Login {
    /// No identities are configured.
    Anyone,
    /// With a token; the function returns its caller, if there is one.
    Tokens(Arc<Whose>),
}

/// The `https` address under which other machines reach the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// As in the header `Host`.
    pub(crate) host: String,
    pub(crate) origin: String,
}

/// An address that the page cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUrl(String);

impl std::fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is not https://HOST or https://HOST:PORT", self.0)
    }
}

impl std::error::Error for InvalidUrl {}

impl std::str::FromStr for PublicUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let invalid = || InvalidUrl(text.to_owned());
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
    /// What somebody tries or does on this page, for the audit log. The proxy is named, too: what it says of its client, a
    /// stranger may say as well who reaches the port without it.
    pub(crate) fn deed(&self, who: &str, act: &str, about: &str) -> Deed {
        let mut from = self.client.map(|client| client.to_string()).unwrap_or_default();
        if let Some(proxy) = self.proxy {
            from += &format!(" via {proxy}");
        }
        Deed { who: who.to_owned(), from, act: act.to_owned(), about: about.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
