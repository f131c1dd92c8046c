//! Runs on protected exercises: the key of their record log, and in which form their texts may leave it.
//!
//! Published exercises are kept encrypted so that they do not end up in training sets. The key is wrapped for the
//! identity that is published with kgfleet: every reader of a run opens it unasked, and a crawler does not.

use anyhow::{Context, bail};
use packs::Identity;
use results::log::LogCipher;
use results::{RunManifest, run_key};

use crate::exit_code::Exit;

/// In which form texts of a protected run may be written. Of other runs everything is written as it is.
#[derive(Clone, Debug, Default)]
pub struct Disclosure {
    /// In the clear, because a person asked for it.
    pub plaintext: bool,
    /// In archives encrypted with this password.
    pub password: Option<String>,
}

/// The form of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// Texts in the clear.
    Clear,
    /// Texts in an archive encrypted with this password.
    Encrypted(&'a str),
    /// No texts.
    Redacted,
}

impl Disclosure {
    /// The form for a run.
    pub fn form(&self, run: &RunManifest) -> Form<'_> {
        match &self.password {
            _ if self.plaintext || !run.protected => Form::Clear,
            Some(password) if !password.is_empty() => Form::Encrypted(password),
            _ => Form::Redacted,
        }
    }
}

/// A fresh key for the record log of a new run, for its manifest. None where nothing is protected.
pub fn new_log_key(protected: bool) -> anyhow::Result<Option<String>> {
    if !protected {
        return Ok(None);
    }
    Ok(Some(run_key::wrap(&LogCipher::generate(), &Identity::published()?.to_file_text())?))
}

/// What reads the record log of a run. None where it is not encrypted.
///
/// # Errors
/// The key in the manifest is damaged or wrapped for another identity.
pub fn cipher(run: &RunManifest) -> anyhow::Result<Option<LogCipher>> {
    let Some(wrapped) = &run.log_key else { return Ok(None) };
    let identity = Identity::published()?.to_file_text();
    let cipher = run_key::unwrap(wrapped, &identity).with_context(|| format!("run {}", run.run))?;
    Ok(Some(cipher))
}

/// What the record log of a run is written with.
///
/// # Errors
/// As for [`cipher`]; or the run is protected and has no key: its texts would be written in the clear.
pub fn writing_cipher(run: &RunManifest) -> anyhow::Result<Option<LogCipher>> {
    let cipher = cipher(run)?;
    if run.protected && cipher.is_none() {
        bail!(Exit::usage(anyhow::anyhow!(
            "run {0} is protected and its manifest holds no key to encrypt its records with; remove it with \
             `kgfleet rm {0}` and start it anew",
            run.run
        )));
    }
    Ok(cipher)
}
