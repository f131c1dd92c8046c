//! Which addresses a worker may contact, and with which of its keys.
//!
//! Keys belong to workers. A configuration may name a key and an address; [`Reach::permits`] decides by the worker's
//! own settings whether the two go together. Coordinators match models with workers by the same function, so that a
//! worker is never granted a model that it would refuse.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::model::ModelSpec;
use crate::provider::Connector;

/// Maximum number of keys, and of addresses, of a worker.
pub const REACH_MAX: usize = 64;

/// What a worker may contact besides the servers that it was started with. Contains no secrets, because it is sent to
/// coordinators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Reach {
    /// Its keys, in the order of its file.
    pub keys: Vec<KeyReach>,
    /// Addresses in configurations that it may contact.
    pub places: Vec<Place>,
}

/// A key without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KeyReach {
    /// Its name in configurations.
    pub name: String,
    /// The connector that it belongs to.
    pub connector: Connector,
    /// The addresses that it may be sent to. Empty: only the provider's own.
    #[serde(default)]
    pub places: Vec<Place>,
}

/// An address pattern: `http[s]://HOST[:PORT][/PATH]` for every address that begins with it, or `HOST[:PORT]` for
/// every address on a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Place(String);

/// Why a worker may not ask a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It refers to a file or variable of the worker's machine.
    #[error(
        "`{0}` refers to the worker's machine, which is not allowed in a fleet: name a key of the workers instead, \
         `key = \"NAME\"` (see `kgfleet worker --keys`)"
    )]
    Points(&'static str),
    /// The worker does not have the key.
    #[error("the key `{0}` is not among this worker's keys")]
    NoKey(String),
    /// The key is not for this address.
    #[error("the key `{key}` may not be sent to {place}")]
    NotFor { key: String, place: String },
    /// The address is not allowed.
    #[error("this worker may not contact the address {0} of the configuration (see --allow-endpoint)")]
    Place(String),
    /// The address is never contacted.
    #[error("{0} is a link-local or cloud metadata address, which is never contacted")]
    Never(String),
}

impl Place {
    /// Parses a pattern.
    ///
    /// # Errors
    /// It has no host, or has a user or a query.
    pub fn parse(text: &str) -> Result<Self, String> {
        let place = Self(text.trim().trim_end_matches('/').to_owned());
        let wrong = |why: &str| format!("`{text}` is not an address: {why}");
        if place.0.ends_with(':') {
            return Err(wrong("it names no host"));
        }
        let url =
            place.url().ok_or_else(|| wrong("expected http://HOST:PORT/PATH, https://… or HOST[:PORT]"))?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(wrong("a user, a password or a query is not allowed"));
        }
        if !place.has_scheme() && url.path() != "/" {
            return Err(wrong("a path needs http:// or https:// before the host"));
        }
        if never_asked(&url) {
            return Err(Denied::Never(text.to_owned()).to_string());
        }
        Ok(place)
    }

    fn has_scheme(&self) -> bool {
        self.0.contains("://")
    }

    fn url(&self) -> Option<Url> {
        let text = if self.has_scheme() { self.0.clone() } else { format!("http://{}", self.0) };
        Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    }

    /// Whether an address matches.
    pub fn holds(&self, address: &Url) -> bool {
        let Some(own) = self.url() else { return false };
        if own.host() != address.host() {
            return false;
        }
        if !self.has_scheme() {
            // Without a port, every port matches.
            let named = self.0.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            return !named || named_port(&self.0) == address.port_or_known_default();
        }
        let path = own.path().trim_end_matches('/');
        let below =
            address.path().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        own.scheme() == address.scheme()
            && own.port_or_known_default() == address.port_or_known_default()
            && below
    }
}

fn named_port(text: &str) -> Option<u16> {
    text.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

impl KeyReach {
    fn is_for(&self, spec: &ModelSpec) -> bool {
        self.connector == spec.connector
    }

    fn goes_to(&self, address: &Url) -> bool {
        if self.places.is_empty() {
            return own_place(self.connector).is_some_and(|own| own.holds(address));
        }
        self.places.iter().any(|place| place.holds(address))
    }
}

fn own_place(connector: Connector) -> Option<Place> {
    connector.own_endpoint().map(|own| Place(own.to_owned()))
}

impl Reach {
    /// Whether a model may be asked, and with which key. `found` is the address of one of the worker's own servers;
    /// without it, the model's address is that of its configuration or provider.
    ///
    /// # Errors
    /// The reason why not.
    pub fn permits(&self, spec: &ModelSpec, found: Option<&str>) -> Result<Option<&KeyReach>, Denied> {
        points_nowhere(spec)?;
        let own = spec.connector.own_endpoint();
        let Some(text) = found.or(spec.endpoint.as_deref()).or(own) else { return Ok(None) };
        let address = Url::parse(text).map_err(|_| Denied::Place(text.to_owned()))?;
        let key = self.key(spec, &address, text)?;
        if found.is_some() {
            return Ok(key);
        }
        if never_asked(&address) {
            return Err(Denied::Never(text.to_owned()));
        }
        let provider = own_place(spec.connector).is_some_and(|own| own.holds(&address));
        let of_key = key.is_some_and(|key| !key.places.is_empty());
        if provider || of_key || self.places.iter().any(|place| place.holds(&address)) {
            Ok(key)
        } else {
            Err(Denied::Place(text.to_owned()))
        }
    }

    /// The key for an address: the one that the configuration names, otherwise the first that is allowed there.
    fn key(&self, spec: &ModelSpec, address: &Url, text: &str) -> Result<Option<&KeyReach>, Denied> {
        let mut keys = self.keys.iter().filter(|key| key.is_for(spec));
        match &spec.key {
            Some(name) => {
                let key = keys.find(|key| key.name == *name).ok_or_else(|| Denied::NoKey(name.clone()))?;
                let not_for = || Denied::NotFor { key: name.clone(), place: text.to_owned() };
                key.goes_to(address).then_some(Some(key)).ok_or_else(not_for)
            }
            None => match keys.find(|key| key.goes_to(address)) {
                Some(key) => Ok(Some(key)),
                // A provider requires a key; other servers may not.
                None if spec.connector.own_endpoint().is_some() => match spec.endpoint.as_deref() {
                    Some(_) => Err(Denied::Place(text.to_owned())),
                    None => Err(Denied::NoKey(format!("of {}", spec.label))),
                },
                None => Ok(None),
            },
        }
    }

    /// Whether the worker has the key that a model names, if any.
    pub fn has_key_of(&self, spec: &ModelSpec) -> bool {
        let has = |name: &String| self.keys.iter().any(|key| key.is_for(spec) && key.name == *name);
        spec.key.as_ref().is_none_or(has)
    }
}

/// Checks that a configuration does not refer to files or environment variables of workers.
///
/// # Errors
/// The field that does.
pub fn points_nowhere(spec: &ModelSpec) -> Result<(), Denied> {
    match (&spec.key_env, &spec.key_file, spec.key_command.is_empty()) {
        (Some(_), _, _) => Err(Denied::Points("key_env")),
        (_, Some(_), _) => Err(Denied::Points("key_file")),
        (None, None, false) => Err(Denied::Points("key_command")),
        (None, None, true) => Ok(()),
    }
}

/// Whether a host is this machine: `localhost`, or an address of the loopback interface, with or without the brackets of
/// URLs.
pub fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Whether an address literally contains an IP that is [never contacted](never_asked_at).
pub fn never_asked(address: &Url) -> bool {
    match address.host() {
        Some(Host::Ipv4(ip)) => never_asked_at(ip.into()),
        Some(Host::Ipv6(ip)) => never_asked_at(ip.into()),
        Some(Host::Domain(_)) | None => false,
    }
}

/// Addresses where clouds serve a machine's credentials, besides the link-local ones.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(168, 63, 129, 16),   // Azure
    Ipv4Addr::new(100, 100, 100, 200), // Alibaba
    Ipv4Addr::new(192, 0, 0, 192),     // Oracle
];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254); // Amazon

/// Whether this is a link-local address (169.254.0.0/16, fe80::/10) or a cloud metadata address. Services there trust
/// every caller on the machine.
pub fn never_asked_at(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local() || METADATA_V4.contains(&ip),
        IpAddr::V6(ip) => {
            let bits = ip.to_bits();
            // IPv4 in IPv6: mapped (::ffff:0:0/96), compatible (::/96), through a translator (64:ff9b::/96).
            let embedded = matches!(bits >> 32, 0 | 0xffff | 0x0064_ff9b_0000_0000_0000_0000);
            ip.is_unicast_link_local()
                || ip == METADATA_V6
                || (embedded && never_asked_at(Ipv4Addr::from_bits(bits as u32).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_recognised() {
        for host in ["127.0.0.1", "127.8.8.8", "[::1]", "::1", "localhost"] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in ["10.0.0.1", "localhost.example.org", "api.openai.com", ""] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }

    fn spec(json: serde_json::Value) -> ModelSpec {
        serde_json::from_value(json).unwrap()
    }

    fn reach() -> Reach {
        let place = |text: &str| Place::parse(text).unwrap();
        let key = |name: &str, connector, places: &[&str]| KeyReach {
            name: name.to_owned(),
            connector,
            places: places.iter().map(|text| place(text)).collect(),
        };
        Reach {
            keys: vec![
                key("claude", Connector::Anthropic, &[]),
                key("house", Connector::OpenaiCompatible, &["https://llm.example.org/v1"]),
            ],
            places: vec![place("http://127.0.0.1:8000/v1"), place("pool.example.org")],
        }
    }

    #[test]
    fn a_key_goes_where_it_may_and_nowhere_else() {
        let reach = reach();
        let asked = |json| reach.permits(&spec(json), None).map(|key| key.map(|key| key.name.clone()));
        let anthropic = |endpoint: Option<&str>, key: Option<&str>| {
            asked(
                serde_json::json!({"label": "m", "connector": "anthropic", "endpoint": endpoint, "key": key}),
            )
        };
        let claude = Ok(Some("claude".to_owned()));
        assert_eq!(anthropic(None, None), claude);
        assert_eq!(anthropic(Some("https://api.anthropic.com"), Some("claude")), claude);
        for stranger in [
            "http://127.0.0.1:9999",
            "http://127.0.0.1:8000/v1",
            "http://api.anthropic.com",
            "https://api.anthropic.com.example.org",
            "https://api.anthropic.com:8443",
        ] {
            assert!(matches!(anthropic(Some(stranger), None), Err(Denied::Place(_))), "{stranger}");
            let named = anthropic(Some(stranger), Some("claude"));
            assert!(matches!(named, Err(Denied::NotFor { .. })), "{stranger}: {named:?}");
        }
        assert!(matches!(anthropic(None, Some("other")), Err(Denied::NoKey(_))));
        let openai = |endpoint: &str| {
            asked(serde_json::json!({"label": "m", "connector": "openai-compatible", "endpoint": endpoint}))
        };
        assert_eq!(openai("https://llm.example.org/v1"), Ok(Some("house".to_owned())));
        assert_eq!(openai("http://127.0.0.1:8000/v1"), Ok(None), "allowed, without any key");
        assert_eq!(openai("https://pool.example.org:444/x"), Ok(None));
        assert!(openai("http://llm.example.org/v1").is_err(), "not in the clear");
        assert!(openai("http://127.0.0.1:8000/v12").is_err());
        assert!(asked(serde_json::json!({"label": "m", "connector": "gemini"})).is_err(), "no key");
    }

    #[test]
    fn nobody_points_into_a_workers_machine() {
        for (field, value) in [
            ("key_env", serde_json::json!("HOME")),
            ("key_file", serde_json::json!("/etc/hostname")),
            ("key_command", serde_json::json!(["id"])),
        ] {
            let mut json = serde_json::json!({"label": "m", "connector": "anthropic"});
            json[field] = value;
            let denied = reach().permits(&spec(json), Some("http://127.0.0.1:1")).unwrap_err();
            assert_eq!(denied, Denied::Points(field));
        }
    }

    #[test]
    fn metadata_is_never_asked_however_it_is_written() {
        let mut open = reach();
        open.places = vec![Place("http://169.254.169.254".to_owned())];
        for address in [
            "http://169.254.169.254/latest",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://168.63.129.16/",
        ] {
            assert!(never_asked(&Url::parse(address).unwrap()), "{address}");
            let model = spec(
                serde_json::json!({"label": "m", "connector": "openai-compatible", "endpoint": address}),
            );
            assert!(matches!(open.permits(&model, None), Err(Denied::Never(_))), "{address}");
        }
        assert!(!never_asked(&Url::parse("http://10.0.0.1/").unwrap()));
        assert!(Place::parse("169.254.169.254").is_err());
    }

    #[test]
    fn places_are_read_or_refused() {
        for wrong in ["", "ftp://h", "http://u:p@h", "h/path", "http://h/?q=1", "http://"] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
        let host = Place::parse("h:81").unwrap();
        let at = |text: &str| host.holds(&Url::parse(text).unwrap());
        assert!(at("http://h:81/x") && at("https://h:81") && !at("http://h/x") && !at("http://g:81"));
    }
}
