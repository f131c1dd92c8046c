//! Keys that never appear in output.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use reqwest::header::HeaderValue;

use crate::error::SetupError;

/// Maximum size of a key file, in bytes. Real keys have a few hundred at most.
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// A key. It prints as `[key]`; only [`Secret::expose`] returns the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Trims white space, which files and shells add and HTTP headers refuse.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref().trim()))
    }

    /// Reads the environment variable `name`.
    ///
    /// # Errors
    /// It is not set, not Unicode, or empty.
    pub fn from_env(name: &str) -> Result<Self, SetupError> {
        let missing = |why: &str| SetupError::KeyMissing(format!("environment variable {name} {why}"));
        let secret = Self::new(std::env::var(name).map_err(|error| {
            missing(match error {
                std::env::VarError::NotPresent => "is not set",
                std::env::VarError::NotUnicode(_) => "is not Unicode",
            })
        })?);
        if secret.0.is_empty() { Err(missing("is empty")) } else { Ok(secret) }
    }

    /// Reads a file, such as a mounted Kubernetes secret. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, is too large for a key, or is empty.
    pub fn from_file(path: &Path) -> Result<Self, SetupError> {
        let failed = |why: &dyn fmt::Display| SetupError::KeyMissing(format!("{}: {why}", path.display()));
        let text = named_files::read_text(path, KEY_FILE_BYTES_MAX).map_err(|error| failed(&error))?;
        let secret = Self::new(text);
        if secret.0.is_empty() { Err(failed(&"the file is empty")) } else { Ok(secret) }
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the key in `text`: servers like to quote the key they refuse.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() || !text.contains(&*self.0) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(text.replace(&*self.0, "[key]"))
    }

    /// A header value `prefix` + key, marked so that HTTP libraries do not print it.
    ///
    /// # Errors
    /// The key has characters that no header can carry.
    pub(crate) fn header(&self, prefix: &str) -> Result<HeaderValue, SetupError> {
        let mut value =
            HeaderValue::from_str(&format!("{prefix}{}", self.0)).map_err(|_| SetupError::KeyCharacters)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// Scrubs the key, if there is one.
pub(crate) fn scrub_with<'a>(secret: Option<&Secret>, text: &'a str) -> Cow<'a, str> {
    secret.map_or(Cow::Borrowed(text), |secret| secret.scrub(text))
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_key_never_prints_itself() {
        let secret = Secret::new("sk-very-secret\n");
        assert_eq!(secret.expose(), "sk-very-secret");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[key] [key] Some([key])");
        let header = secret.header("Bearer ").unwrap();
        assert!(!format!("{header:?}").contains("very-secret"));
        assert_eq!(secret.scrub("bad key sk-very-secret, sk-very-secret!"), "bad key [key], [key]!");
        assert_eq!(Secret::new("").scrub("unchanged"), "unchanged");
    }

    #[test]
    fn keys_come_from_files_and_the_environment() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "  abc  ").unwrap();
        assert_eq!(Secret::from_file(file.path()).unwrap().expose(), "abc");
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(Secret::from_file(empty.path()).unwrap_err().to_string().contains("empty"));
        assert!(Secret::from_file(Path::new("/no/such/file")).is_err());
        let message = Secret::from_env("KGFLEET_NO_SUCH_KEY").unwrap_err().to_string();
        assert!(message.contains("KGFLEET_NO_SUCH_KEY is not set"), "{message}");
        assert!(Secret::from_env("PATH").is_ok());
    }

    #[test]
    fn a_key_with_a_line_break_inside_is_refused() {
        assert!(matches!(Secret::new("a\nb").header(""), Err(SetupError::KeyCharacters)));
    }
}
