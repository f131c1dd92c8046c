//! The key of the record logs of protected runs.
//!
//! Published exercises are kept encrypted so that they do not end up in training sets. The key is wrapped with the
//! password published with kgfleet: kgfleet opens it automatically, and a crawler does not.

use packs::published_password;
use results::log::LogCipher;
use results::run_key::RunKeyError;
use results::{RunManifest, run_key};

/// Why a record log cannot be opened or protected.
#[derive(Debug, thiserror::Error)]
pub enum ProtectionError {
    /// The key in the manifest is damaged or wrapped with another password.
    #[error("run {run}: {source}")]
    Key {
        run: domain::RunId,
        /// What is wrong.
        source: Box<RunKeyError>,
    },
    /// The key cannot be wrapped.
    #[error(transparent)]
    Wrap(Box<RunKeyError>),
    /// The texts would be written in plaintext.
    #[error(
        "run {0} is protected and its manifest holds no key to encrypt its records with; remove it with \
         `kgfleet rm {0}` and start it anew"
    )]
    NoKey(domain::RunId),
}

/// A new key for the record log of a new run, for its manifest; `None` if nothing is protected.
///
/// # Errors
/// The key cannot be wrapped.
pub fn new_log_key(protected: bool) -> Result<Option<String>, ProtectionError> {
    if !protected {
        return Ok(None);
    }
    run_key::wrap(&LogCipher::generate(), &published_password())
        .map(Some)
        .map_err(|error| ProtectionError::Wrap(Box::new(error)))
}

/// The cipher for reading the record log of a run; `None` if it is not encrypted.
///
/// # Errors
/// The key in the manifest is damaged or wrapped with another password.
pub fn cipher(run: &RunManifest) -> Result<Option<LogCipher>, ProtectionError> {
    let Some(wrapped) = &run.log_key else { return Ok(None) };
    let unwrapped = run_key::unwrap(wrapped, &published_password());
    unwrapped
        .map(Some)
        .map_err(|error| ProtectionError::Key { run: run.run.clone(), source: Box::new(error) })
}

/// The cipher for writing the record log of a run.
///
/// # Errors
/// As for [`cipher`]; or the run is protected and has no key, so its texts would be written in plaintext.
pub fn writing_cipher(run: &RunManifest) -> Result<Option<LogCipher>, ProtectionError> {
    let cipher = cipher(run)?;
    if run.protected && cipher.is_none() {
        return Err(ProtectionError::NoKey(run.run.clone()));
    }
    Ok(cipher)
}
