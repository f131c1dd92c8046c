//! Identities of callers: bearer tokens and client certificates, from a file.
//!
//! ```toml
//! [[identity]]
//! name = "alice"
//! roles = ["operator"]
//! sha256 = "…"                  # of the token, which stands nowhere; `kgfleet token new` makes both
//!
//! [[identity]]
//! name = "pool"
//! roles = ["worker"]
//! workers = "gpu-*"             # the worker names that it may act under; default: all
//! san = "pool.example.org"      # a DNS name or URI of its client certificate
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use domain::caller::{Caller, CallerRole};
use domain::glob::Glob;
use domain::text::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Identities of one file.
pub const IDENTITIES_MAX: usize = 10_000;

/// The header that carries a token: `Bearer TOKEN`.
pub(crate) const AUTHORIZATION: &str = "authorization";

/// What stands before the token.
pub(crate) const BEARER: &str = "Bearer ";

/// The known identities. Clones share them, including changes by [`replace`](Self::replace).
#[derive(Clone, Debug)]
pub struct Identities(Arc<RwLock<Known>>);

#[derive(Debug)]
enum Known {
    /// No authentication: every caller may do everything.
    Anyone(Caller),
    Table(Table),
}

#[derive(Debug, Default)]
struct Table {
    /// By the hash of the token. The time of a lookup reveals nothing about the token, because it depends on the hash
    /// only.
    tokens: HashMap<[u8; 32], Caller>,
    names: HashMap<String, Caller>,
    callers: Vec<(Entry, Caller)>,
}

/// An identity file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum IdentitiesError {
    /// Not TOML of the expected shape.
    #[error("{0}")]
    Syntax(String),
    /// An identity is invalid.
    #[error("identity `{name}`: {problem}")]
    Entry { name: String, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    identity: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    roles: Vec<CallerRole>,
    sha256: Option<String>,
    san: Option<String>,
    workers: Option<String>,
}

/// The hash of a token as in identity files, hexadecimal.
pub fn hash_of_token(token: &str) -> String {
    hex(digest(token))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn read_digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl Identities {
    /// No authentication: for one machine, or behind a proxy that authenticates.
    pub fn anyone() -> Self {
        Self(Arc::new(RwLock::new(Known::Anyone(Caller::anyone()))))
    }

    /// The identities of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, IdentitiesError> {
        Ok(Self(Arc::new(RwLock::new(Known::Table(Table::parse(text)?)))))
    }

    /// Replaces the identities by those of a file. Identities that are missing or changed lose their rights at once,
    /// including in calls in progress.
    ///
    /// # Errors
    /// The file is invalid; then nothing changes.
    pub fn replace(&self, text: &str) -> Result<(), IdentitiesError> {
        let mut table = Table::parse(text)?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Known::Table(old) = &*known {
            table.keep(old);
        }
        *known = Known::Table(table);
        Ok(())
    }

    /// Whether there is no authentication.
    pub fn is_anyone(&self) -> bool {
        matches!(*self.0.read().unwrap_or_else(PoisonError::into_inner), Known::Anyone(_))
    }

    /// The identity with this token; `None` if unknown.
    pub fn of_token(&self, token: &str) -> Option<Caller> {
        self.who(Some(token), &[])
    }

    /// The identity with this token or, without a token, with one of these certificates. `None` if unknown.
    pub(super) fn who(
        &self,
        token: Option<&str>,
        certificates: &[CertificateDer<'static>],
    ) -> Option<Caller> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Known::Anyone(caller) => Some(caller.clone()),
            Known::Table(table) => match token {
                // A wrong token is refused, whatever else the caller has.
                Some(token) => table.tokens.get(&digest(token)).cloned(),
                None => table.of_certificate(certificates.first()?),
            },
        }
    }
}

impl Table {
    fn parse(text: &str) -> Result<Self, IdentitiesError> {
        let file: File =
            toml::from_str(text).map_err(|error| IdentitiesError::Syntax(error.message().to_owned()))?;
        if file.identity.len() > IDENTITIES_MAX {
            let message =
                format!("{} identities are too many; the limit is {IDENTITIES_MAX}", file.identity.len());
            return Err(IdentitiesError::Syntax(message));
        }
        let mut table = Self::default();
        let mut seen = HashSet::new();
        for entry in file.identity {
            let wrong = |problem: &str| {
                Err(IdentitiesError::Entry { name: entry.name.clone(), problem: problem.to_owned() })
            };
            if entry.name.is_empty() || entry.name == Caller::ANYONE {
                return wrong("an identity needs a unique name");
            }
            if !seen.insert(entry.name.clone()) {
                // Histories and records say who by name.
                return wrong("another identity has the same name");
            }
            if entry.roles.is_empty() {
                return wrong("it has no role; expected reader, operator or worker");
            }
            if entry.workers.is_some() && !entry.roles.contains(&CallerRole::Worker) {
                return wrong("`workers` is for the role worker only");
            }
            if entry.sha256.is_none() && entry.san.is_none() {
                return wrong("expected `sha256` of its token or `san` of its certificate");
            }
            let caller = Caller::new(&*entry.name, &*entry.roles, entry.workers.as_deref().map(Glob::new));
            if let Some(hash) = &entry.sha256 {
                let Some(hash) = read_digest(hash) else {
                    return wrong("`sha256` is not 64 hexadecimal digits");
                };
                if table.tokens.insert(hash, caller.clone()).is_some() {
                    return wrong("another identity has the same token");
                }
            }
            if let Some(san) = &entry.san
                && table.names.insert(san.clone(), caller.clone()).is_some()
            {
                return wrong("another identity has the same `san`");
            }
            table.callers.push((entry, caller));
        }
        Ok(table)
    }

    /// Unchanged identities keep their rights; the others are revoked.
    fn keep(&mut self, old: &Self) {
        for (entry, before) in &old.callers {
            match self.callers.iter_mut().find(|(new, _)| new == entry) {
                None => before.revoke(),
                Some((_, caller)) => *caller = before.clone(),
            }
        }
        for (entry, caller) in &self.callers {
            if let Some(hash) = entry.sha256.as_deref().and_then(read_digest) {
                self.tokens.insert(hash, caller.clone());
            }
            if let Some(san) = &entry.san {
                self.names.insert(san.clone(), caller.clone());
            }
        }
    }

    /// The identity with a certificate, whose chain was verified by the TLS handshake.
    fn of_certificate(&self, certificate: &CertificateDer<'static>) -> Option<Caller> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        let mut names = certificate.valid_dns_names().chain(certificate.valid_uri_names());
        names.find_map(|name| self.names.get(name)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(token: &str, more: &str) -> String {
        format!(
            "[[identity]]\nname = 'alice'\nroles = ['operator']\nsha256 = '{}'\n{more}",
            hash_of_token(token)
        )
    }

    #[test]
    fn a_token_says_who_it_is_until_the_file_says_otherwise() {
        let bob = format!(
            "[[identity]]\nname = 'bob'\nroles = ['worker']\nworkers = 'gpu-*'\nsha256 = '{}'\n",
            hash_of_token("b")
        );
        let identities = Identities::parse(&file("a", &bob)).unwrap();
        let alice = identities.who(Some("a"), &[]).unwrap();
        assert_eq!(
            (alice.name(), alice.has(CallerRole::Operator), alice.has(CallerRole::Worker)),
            ("alice", true, false)
        );
        let bob = identities.who(Some("b"), &[]).unwrap();
        assert!(bob.may_be(&"gpu-1".into()) && !bob.may_be(&"cpu-1".into()));
        for nobody in [Some(""), Some("A"), Some("a "), None] {
            assert!(identities.who(nobody, &[]).is_none(), "{nobody:?}");
        }
        assert!(identities.replace("identity = 7").is_err());
        assert!(identities.who(Some("a"), &[]).is_some(), "a file that cannot be read changes nothing");
        identities.replace(&file("a", "")).unwrap();
        assert!(bob.is_revoked() && !alice.is_revoked());
        assert!(identities.who(Some("b"), &[]).is_none());
        identities.replace(&file("new", "")).unwrap();
        assert!(alice.is_revoked(), "another token is another proof");
        assert!(!identities.who(Some("new"), &[]).unwrap().is_revoked());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        let hash = hash_of_token("a");
        for (text, culprit) in [
            ("name = 'a'\nroles = []\nsha256 = 'HASH'", "no role"),
            ("name = 'a'\nroles = ['king']\nsha256 = 'HASH'", "king"),
            ("name = ''\nroles = ['reader']\nsha256 = 'HASH'", "unique name"),
            ("name = 'anyone'\nroles = ['reader']\nsha256 = 'HASH'", "unique name"),
            ("name = 'a'\nroles = ['reader']\nsha256 = 'secret'", "64 hexadecimal"),
            ("name = 'a'\nroles = ['reader']", "expected `sha256`"),
            ("name = 'a'\nroles = ['reader']\nworkers = 'x'\nsha256 = 'HASH'", "role worker"),
            ("name = 'a'\nroles = ['reader']\ntoken = 'x'", "token"),
        ] {
            let text = format!("[[identity]]\n{}\n", text.replace("HASH", &hash));
            let error = Identities::parse(&text).unwrap_err().to_string();
            assert!(error.contains(culprit), "{text}: {error}");
        }
        let twice = file("a", &file("a", "").replace("alice", "bob"));
        assert!(Identities::parse(&twice).unwrap_err().to_string().contains("same token"));
        let namesakes = file("a", &file("b", ""));
        let error = Identities::parse(&namesakes).unwrap_err().to_string();
        assert!(error.contains("`alice`: another identity has the same name"), "{error}");
    }
}
