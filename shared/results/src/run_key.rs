//! The key of a run's record log, wrapped so that it can be stored in the run's manifest.
//!
//! Wrapped means encrypted with [`LogCipher`]'s algorithm under the SHA-256 of a password, as hexadecimal text. Runs on protected
//! exercises use the password that is published with kgfleet: this keeps texts from crawlers and training sets, not from people, and
//! every reader of the run can open it without being asked.

use domain::text::{hex, unhex};
use sha2::{Digest, Sha256};

use crate::log::LogCipher;
use crate::log::cipher::KEY_BYTES;
use crate::password::Password;

/// What the hash and the encryption are bound to, so that neither serves for anything else.
const PURPOSE: &[u8] = b"kgfleet: the key of a record log";

/// Why a key cannot be wrapped or unwrapped.
#[derive(Debug, thiserror::Error)]
pub enum RunKeyError {
    /// The key cannot be wrapped.
    #[error("the key of the record log cannot be encrypted")]
    Wrap,
    /// The key was wrapped with another password, or the text is damaged.
    #[error("the key of the record log does not open with this password, or is damaged")]
    Unwrap,
}

/// Encrypts the cipher's key with a password.
pub fn wrap(cipher: &LogCipher, password: &Password) -> Result<String, RunKeyError> {
    wrapping(password).encrypt(cipher.key(), PURPOSE).map(hex).ok_or(RunKeyError::Wrap)
}

/// The cipher whose key was [wrapped](wrap) with this password.
pub fn unwrap(wrapped: &str, password: &Password) -> Result<LogCipher, RunKeyError> {
    let key = unhex(wrapped.trim()).and_then(|sealed| wrapping(password).decrypt(&sealed, PURPOSE));
    let key: Option<[u8; KEY_BYTES]> = key.and_then(|key| key.try_into().ok());
    key.map(LogCipher::from_key).ok_or(RunKeyError::Unwrap)
}

fn wrapping(password: &Password) -> LogCipher {
    LogCipher::from_key(Sha256::new().chain_update(PURPOSE).chain_update(password.as_str()).finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_unwrapped_by_the_password_it_was_wrapped_with_only() {
        let (ours, theirs) = (Password::new("ours"), Password::new("theirs"));
        let cipher = LogCipher::generate();
        let wrapped = wrap(&cipher, &ours).unwrap();
        assert_eq!(unwrap(&wrapped, &ours).unwrap().key(), cipher.key());
        let damaged = wrapped.replacen(|c: char| c != '0', "0", 1);
        for (text, password) in
            [(wrapped.as_str(), &theirs), (&damaged, &ours), ("nonsense", &ours), ("", &ours), ("abc", &ours)]
        {
            assert!(matches!(unwrap(text, password), Err(RunKeyError::Unwrap)), "{text}");
        }
        let short = hex(wrapping(&ours).encrypt(b"short", PURPOSE).unwrap());
        assert!(matches!(unwrap(&short, &ours), Err(RunKeyError::Unwrap)));
    }
}
