//! Identities of callers by their bearer tokens, from a file.
//!
//! ```toml
//! [[identity]]
//! name = "alice"
//! roles = ["operator"]
//! sha256 = "…"                  # of the token, which stands nowhere; `kgfleet fleet token new` makes both
//! open_dialogues = 500000       # how many dialogues its benchmarks may have without a record; default: any number
//!
//! [[identity]]
//! name = "pool"
//! roles = ["worker"]
//! workers = "gpu-*"             # the worker names that it may act under; default: all
//! sha256 = "…"
//! expires = "2027-01-01T00:00:00Z"
//!
//! [[revoked]]                   # `kgfleet fleet token revoke` appends this; the name is not used again
//! name = "alice"
//! at = "2026-11-24T12:00:00Z"
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use domain::caller::{Caller, CallerRole};
use domain::glob::Glob;
use domain::text::{hex, unhex};
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Identities of one file.
pub const IDENTITIES_MAX: usize = 10_000;

/// Longest name of an identity in bytes. It stands in histories, records and audit files.
pub const IDENTITY_NAME_BYTES_MAX: usize = 200;

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
    callers: Vec<(Entry, Caller)>,
    /// When the rights of a name were revoked.
    revoked: BTreeMap<String, Timestamp>,
}

/// What became of an identity when the file was read again, or as time went by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityChange {
    /// Its name.
    pub name: String,
    /// `added`, `changed`, `removed`, `revoked` or `expired`.
    pub what: &'static str,
}

/// An identity as its file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedIdentity {
    pub name: String,
    pub roles: Vec<CallerRole>,
    /// Pattern of its worker names.
    pub workers: Option<String>,
    pub expires: Option<Timestamp>,
    pub revoked: Option<Timestamp>,
    /// Dialogues that its benchmarks may have without a record.
    pub open_dialogues: Option<u64>,
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
    #[serde(default)]
    revoked: Vec<RevokedName>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokedName {
    name: String,
    at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    roles: Vec<CallerRole>,
    sha256: String,
    workers: Option<String>,
    expires: Option<Timestamp>,
    open_dialogues: Option<u64>,
}

impl Entry {
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The hash of a token as in identity files, hexadecimal.
pub fn hash_of_token(token: &str) -> String {
    hex(digest(token))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn read_digest(text: &str) -> Option<[u8; 32]> {
    unhex(text)?.try_into().ok()
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

    /// Replaces the identities by those of a file, and says what has changed. Identities that are missing, changed or revoked
    /// lose their rights at once, including in calls in progress.
    ///
    /// # Errors
    /// The file is invalid; then nothing changes.
    pub fn replace(&self, text: &str) -> Result<Vec<IdentityChange>, IdentitiesError> {
        let mut table = Table::parse(text)?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changes = match &*known {
            Known::Table(old) => table.keep(old),
            Known::Anyone(_) => Vec::new(),
        };
        *known = Known::Table(table);
        Ok(changes)
    }

    /// Ends the calls in progress of identities whose time is over, and says which these are. New calls of them are refused
    /// without this.
    pub fn expire(&self, now: Timestamp) -> Vec<IdentityChange> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Known::Table(table) = &*known else { return Vec::new() };
        let over = table.callers.iter().filter(|(entry, caller)| entry.is_over(now) && !caller.is_revoked());
        over.map(|(entry, caller)| {
            caller.revoke();
            IdentityChange { name: entry.name.clone(), what: "expired" }
        })
        .collect()
    }

    /// The identities of a file, in its order.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn list(text: &str) -> Result<Vec<ListedIdentity>, IdentitiesError> {
        let table = Table::parse(text)?;
        let listed = |entry: Entry| ListedIdentity {
            revoked: table.revoked.get(&entry.name).copied(),
            name: entry.name,
            roles: entry.roles,
            workers: entry.workers,
            expires: entry.expires,
            open_dialogues: entry.open_dialogues,
        };
        Ok(table.callers.iter().map(|(entry, _)| listed(entry.clone())).collect())
    }

    /// Whether there is no authentication.
    pub fn is_anyone(&self) -> bool {
        matches!(*self.0.read().unwrap_or_else(PoisonError::into_inner), Known::Anyone(_))
    }

    /// The identity with this token.
    ///
    /// # Errors
    /// Why nobody is let in with it.
    pub fn who(&self, token: Option<&str>) -> Result<Caller, String> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Known::Anyone(caller) => Ok(caller.clone()),
            Known::Table(table) => table.who(token, Timestamp::now()),
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
            if entry.name.len() > IDENTITY_NAME_BYTES_MAX || entry.name.chars().any(char::is_control) {
                return Err(IdentitiesError::Entry {
                    name: entry.name.chars().take(20).flat_map(char::escape_default).collect(),
                    problem: format!(
                        "a name has at most {IDENTITY_NAME_BYTES_MAX} bytes, and no control characters"
                    ),
                });
            }
            if !seen.insert(entry.name.clone()) {
                // Histories and records say who by name.
                return wrong("another identity has the same name");
            }
            if entry.roles.is_empty() {
                return wrong("it has no role; expected reader, operator, worker or conductor");
            }
            if entry.workers.is_some() && !entry.roles.contains(&CallerRole::Worker) {
                return wrong("`workers` is for the role worker only");
            }
            if entry.open_dialogues.is_some() && !entry.roles.contains(&CallerRole::Operator) {
                return wrong("`open_dialogues` is for the role operator only");
            }
            let workers = entry.workers.as_deref().map(Glob::new);
            let caller = Caller::bounded(&*entry.name, &*entry.roles, workers, entry.open_dialogues);
            let Some(hash) = read_digest(&entry.sha256) else {
                return wrong("`sha256` is not 64 hexadecimal digits");
            };
            if table.tokens.insert(hash, caller.clone()).is_some() {
                return wrong("another identity has the same token");
            }
            table.callers.push((entry, caller));
        }
        for RevokedName { name, at } in file.revoked {
            if !seen.contains(&name) {
                return Err(IdentitiesError::Entry {
                    name,
                    problem: "it is revoked and not listed".to_owned(),
                });
            }
            table.revoked.insert(name, at);
        }
        table.revoke();
        Ok(table)
    }

    /// Takes the rights of those whose names are revoked.
    fn revoke(&self) {
        let revoked = self.callers.iter().filter(|(entry, _)| self.revoked.contains_key(&entry.name));
        revoked.for_each(|(_, caller)| caller.revoke());
    }

    /// Who has this token.
    fn who(&self, token: Option<&str>, now: Timestamp) -> Result<Caller, String> {
        let token = token.ok_or("the caller has no token (--token-file)")?;
        let caller = self.tokens.get(&digest(token)).ok_or("the token is unknown")?;
        let entry =
            self.callers.iter().find(|(_, known)| known.name() == caller.name()).map(|(entry, _)| entry);
        if entry.is_some_and(|entry| entry.is_over(now)) {
            return Err(format!("the rights of `{}` have expired", caller.name()));
        }
        if caller.is_revoked() {
            return Err(format!("the rights of `{}` were revoked", caller.name()));
        }
        Ok(caller.clone())
    }

    /// Unchanged identities keep their rights; the others are revoked. Returns what has changed.
    fn keep(&mut self, old: &Self) -> Vec<IdentityChange> {
        let change = |name: &str, what| IdentityChange { name: name.to_owned(), what };
        let mut changes = Vec::new();
        for (entry, before) in &old.callers {
            match self.callers.iter_mut().find(|(new, _)| new.name == entry.name) {
                None => {
                    before.revoke();
                    changes.push(change(&entry.name, "removed"));
                }
                Some((new, caller)) if new == entry => {
                    let is_revoked = self.revoked.contains_key(&entry.name);
                    if is_revoked && !old.revoked.contains_key(&entry.name) {
                        changes.push(change(&entry.name, "revoked"));
                    }
                    // Rights that ended do not come back to calls and sessions that had them.
                    if is_revoked || !before.is_revoked() {
                        *caller = before.clone();
                    }
                }
                Some(_) => {
                    before.revoke();
                    changes.push(change(&entry.name, "changed"));
                }
            }
        }
        let is_new = |name: &str| !old.callers.iter().any(|(entry, _)| entry.name == name);
        let added = self.callers.iter().filter(|(entry, _)| is_new(&entry.name));
        changes.extend(added.map(|(entry, _)| change(&entry.name, "added")));
        self.revoke();
        for (entry, caller) in &self.callers {
            if let Some(hash) = read_digest(&entry.sha256) {
                self.tokens.insert(hash, caller.clone());
            }
        }
        changes
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
        let alice = identities.who(Some("a")).unwrap();
        assert_eq!(
            (alice.name(), alice.has(CallerRole::Operator), alice.has(CallerRole::Worker)),
            ("alice", true, false)
        );
        let bob = identities.who(Some("b")).unwrap();
        assert!(bob.may_be(&"gpu-1".into()) && !bob.may_be(&"cpu-1".into()));
        for nobody in [Some(""), Some("A"), Some("a "), None] {
            assert!(identities.who(nobody).is_err(), "{nobody:?}");
        }
        assert!(identities.replace("identity = 7").is_err());
        assert!(identities.who(Some("a")).is_ok(), "a file that cannot be read changes nothing");
        identities.replace(&file("a", "")).unwrap();
        assert!(bob.is_revoked() && !alice.is_revoked());
        assert!(identities.who(Some("b")).is_err());
        identities.replace(&file("new", "")).unwrap();
        assert!(alice.is_revoked(), "another token is another proof");
        assert!(!identities.who(Some("new")).unwrap().is_revoked());
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
            ("name = 'a'\nroles = ['reader']", "sha256"),
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
    #[test]
    fn rights_end_with_their_time_and_when_they_are_revoked() {
        let expiring = |expires: &str| file("a", &format!("expires = '{expires}'\n"));
        let identities = Identities::parse(&expiring("2999-01-01T00:00:00Z")).unwrap();
        let alice = identities.who(Some("a")).unwrap();
        let change = |what| vec![IdentityChange { name: "alice".to_owned(), what }];
        assert_eq!(identities.expire("2998-12-31T00:00:00Z".parse().unwrap()), []);
        assert_eq!(identities.expire("2999-01-01T00:00:00Z".parse().unwrap()), change("expired"));
        assert!(alice.is_revoked(), "calls in progress end");
        // Another day is another proof; one that is over is none.
        assert_eq!(identities.replace(&expiring("1999-01-01T00:00:00Z")).unwrap(), change("changed"));
        assert!(identities.who(Some("a")).unwrap_err().contains("`alice` have expired"));

        assert_eq!(identities.replace(&file("a", "")).unwrap(), change("changed"));
        let alice = identities.who(Some("a")).unwrap();
        let revoked = file("a", "[[revoked]]\nname = 'alice'\nat = '2026-11-24T12:00:00Z'\n");
        assert_eq!(identities.replace(&revoked).unwrap(), change("revoked"));
        assert!(alice.is_revoked() && identities.who(Some("a")).unwrap_err().contains("were revoked"));
        assert!(Identities::parse(&revoked).unwrap().who(Some("a")).is_err(), "also after a restart");
        let listed = Identities::list(&revoked).unwrap();
        assert_eq!(listed[0].revoked, Some("2026-11-24T12:00:00Z".parse().unwrap()));
        // Whoever takes that back gives the rights to new calls, not to those that had ended.
        identities.replace(&file("a", "")).unwrap();
        assert!(alice.is_revoked() && identities.who(Some("a")).is_ok());
        assert!(Identities::parse(&revoked.replace("'alice'\nat", "'bob'\nat")).is_err());
        assert!(Identities::parse(&file("a", "").replace("alice", &"a".repeat(70_000))).is_err());
    }
}
