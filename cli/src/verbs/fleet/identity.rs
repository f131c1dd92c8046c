//! A new identity, as files that coordinators read have it, and its token. Random values come from the kernel.

use anyhow::Context;
use domain::caller::CallerRole;
use domain::text::hex;
use jiff::Timestamp;
use proto::server::hash_of_token;
use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes in a token and in a password.
const RANDOM_BYTES: usize = 32;

/// Prefix of tokens, so that leaked ones can be recognised.
const PREFIX: &str = "kgfleet_";

/// Who may call, and what.
#[derive(Default)]
pub struct NewIdentity<'a> {
    pub name: &'a str,
    pub roles: &'a [CallerRole],
    /// Pattern of the names of workers that it may use.
    pub workers: Option<&'a str>,
    pub open_dialogues: Option<u64>,
    pub expires: Option<Timestamp>,
}

impl NewIdentity<'_> {
    /// Its entry, which has only the hash of its token.
    pub fn entry(&self, token: &str) -> String {
        let roles: Vec<String> = self.roles.iter().map(|role| quoted(role.as_str())).collect();
        let mut entry =
            format!("[[identity]]\nname = {}\nroles = [{}]\n", quoted(self.name), roles.join(", "));
        if let Some(workers) = self.workers {
            entry.push_str(&format!("workers = {}\n", quoted(workers)));
        }
        if let Some(open) = self.open_dialogues {
            entry.push_str(&format!("open_dialogues = {open}\n"));
        }
        if let Some(expires) = self.expires {
            entry.push_str(&format!("expires = \"{}\"\n", seconds_of(expires)));
        }
        entry.push_str(&format!("sha256 = \"{}\"\n", hash_of_token(token)));
        entry
    }
}

/// The entry that takes the rights of an identity.
pub fn revocation(name: &str, at: Timestamp) -> String {
    format!("[[revoked]]\nname = {}\nat = \"{}\"\n", quoted(name), seconds_of(at))
}

/// A time as files of identities have it.
pub fn seconds_of(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A new token.
pub fn token() -> anyhow::Result<String> {
    Ok(format!("{PREFIX}{}", random()?))
}

/// A text that nobody can guess.
pub fn random() -> anyhow::Result<String> {
    let mut bytes = [0_u8; RANDOM_BYTES];
    let got = getrandom(&mut bytes, GetRandomFlags::empty()).context("the system gives no random numbers")?;
    // The kernel returns this few bytes at once, or fails.
    anyhow::ensure!(got == RANDOM_BYTES, "the system gave too few random numbers");
    Ok(hex(bytes))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
