//! Who looks at the page, and how they came here.

use std::sync::Arc;

use domain::caller::{Caller, CallerRole};
use url::Url;

use crate::session::SessionId;

/// Whose a token is.
type Whose = dyn Fn(&str) -> Option<Caller> + Send + Sync;

/// Who may look.
#[derive(Clone)]
pub enum Login {
    /// No identities are configured.
    Anyone,
    /// Whoever has a token. The function says whose it is.
    Tokens(Arc<Whose>),
}

/// The `https` address under which other machines reach the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// As in the header `Host`.
    pub(crate) host: String,
    pub(crate) origin: String,
}

/// An address cannot be that of the page.
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

/// Somebody who may look, as admission established it.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub caller: Caller,
    /// What its forms must carry.
    pub form_token: String,
    /// None where nobody logs in.
    pub session: Option<SessionId>,
}

impl Visitor {
    /// Whether it may change anything.
    pub(crate) fn steers(&self) -> bool {
        self.caller.has(CallerRole::Operator)
    }

    /// For whom pages are that it sees.
    pub(crate) fn audience(&self) -> Audience {
        if self.steers() { Audience::Operators } else { Audience::Readers }
    }
}

/// For whom it is shown: what servers said of protected exercises, and buttons, are for operators.
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
    /// Whether it came over TLS: its cookie must not travel otherwise.
    pub secure: bool,
    /// What the header `Origin` of its forms says.
    pub origin: String,
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
