//! The key of a run's record log, wrapped so that it can be stored in the run's manifest.
//!
//! Wrapped means encrypted with `age` for an X25519 identity, as text. Runs on protected exercises use the identity
//! that is published with kgfleet: this keeps texts from crawlers and training sets, not from people, and every
//! reader of the run can open it without a password.

use age::x25519;

use crate::log::LogCipher;

/// Why a key cannot be wrapped or unwrapped.
#[derive(Debug, thiserror::Error)]
pub enum RunKeyError {
    /// The identity cannot be used.
    #[error("no X25519 identity: a line `AGE-SECRET-KEY-1…` was expected")]
    Identity,
    /// The key cannot be wrapped.
    #[error("the key of the record log cannot be encrypted: {0}")]
    Wrap(#[from] age::EncryptError),
    /// The key was wrapped for another identity, or the text is damaged.
    #[error("the key of the record log does not open with this identity: {0}")]
    Unwrap(#[from] age::DecryptError),
    /// The unwrapped data is not a key.
    #[error("the key of the record log has the wrong length")]
    Length,
}

/// Encrypts the cipher's key for an identity, given as the text of an identity file as `age-keygen` writes it.
pub fn wrap(cipher: &LogCipher, identity_file: &str) -> Result<String, RunKeyError> {
    Ok(age::encrypt_and_armor(&identity(identity_file)?.to_public(), cipher.key())?)
}

/// The cipher whose key was [wrapped](wrap) for this identity.
pub fn unwrap(wrapped: &str, identity_file: &str) -> Result<LogCipher, RunKeyError> {
    let key = age::decrypt(&identity(identity_file)?, wrapped.as_bytes())?;
    Ok(LogCipher::from_key(key.try_into().map_err(|_| RunKeyError::Length)?))
}

/// The first identity of an identity file, whose other lines are blank or comments.
fn identity(file: &str) -> Result<x25519::Identity, RunKeyError> {
    let line = file.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    line.and_then(|line| line.parse().ok()).ok_or(RunKeyError::Identity)
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;

    fn identity_file() -> String {
        let identity = x25519::Identity::generate();
        format!("# a comment\n\n{}\n", identity.to_string().expose_secret())
    }

    #[test]
    fn a_key_is_unwrapped_by_the_identity_it_was_wrapped_for_only() {
        let (ours, theirs) = (identity_file(), identity_file());
        let cipher = LogCipher::generate();
        let wrapped = wrap(&cipher, &ours).unwrap();
        assert!(wrapped.starts_with("-----BEGIN AGE ENCRYPTED FILE-----"));
        assert_eq!(unwrap(&wrapped, &ours).unwrap().key(), cipher.key());
        assert!(matches!(unwrap(&wrapped, &theirs), Err(RunKeyError::Unwrap(_))));
        assert!(matches!(unwrap("nonsense", &ours), Err(RunKeyError::Unwrap(_))));
        assert!(matches!(wrap(&cipher, "# nobody\n"), Err(RunKeyError::Identity)));
        let short = age::encrypt_and_armor(&identity(&ours).unwrap().to_public(), b"short").unwrap();
        assert!(matches!(unwrap(&short, &ours), Err(RunKeyError::Length)));
    }
}
