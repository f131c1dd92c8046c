//! Keys that never appear in output.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use reqwest::header::HeaderValue;

use crate::error::SetupError;

/// Maximum size of a key file, in bytes. Real keys have a few hundred at most.
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// A key. It prints as `[key]`; only [`Secret::expose`] returns the text.
#[derive(Clone)]
pub struct Secret(Arc<Known>);

/// A key, with a search for it in texts.
struct Known {
    text: Box<str>,
    /// `None` if the key is empty.
    forms: Option<AhoCorasick>,
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Secret {}

/// The text that replaces a key.
const SCRUBBED: &str = "[key]";

/// Shortest key of which encoded forms are searched for, in bytes. Those of a shorter key would be found in unrelated
/// texts.
const FORMS_KEY_BYTES_MIN: usize = 8;

/// The search for a key; `None` if it is empty.
fn finder(key: &str) -> Option<AhoCorasick> {
    let forms = match key.len() {
        0 => return None,
        1..FORMS_KEY_BYTES_MIN => vec![key.to_owned()],
        _ => forms_of(key),
    };
    let case_counts = key.len() < FORMS_KEY_BYTES_MIN;
    // A key is too short for the search's limits to matter; without a finder, nothing could be said at all.
    let found = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .ascii_case_insensitive(!case_counts)
        .build(forms);
    found.ok()
}

/// The key itself, backwards, percent-encoded (RFC 3986, section 2.1), and as it appears in the base64 (RFC 4648,
/// sections 4 and 5) of a longer text, at each of three possible offsets.
fn forms_of(key: &str) -> Vec<String> {
    let mut forms = vec![key.to_owned(), key.chars().rev().collect()];
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    forms.push(
        key.bytes()
            .map(
                |byte| {
                    if is_unreserved(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
                },
            )
            .collect(),
    );
    for before in 0..3 {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(key.bytes()).collect();
        // Of the characters at both ends, some bits are of what stands before and after.
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.push(encoded[first..end].to_owned());
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

impl Secret {
    /// Trims white space, which files and shells add and HTTP headers refuse.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text: Box<str> = text.as_ref().trim().into();
        let forms = finder(&text);
        Self(Arc::new(Known { text, forms }))
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
        if secret.expose().is_empty() { Err(missing("is empty")) } else { Ok(secret) }
    }

    /// Reads a file, such as a mounted Kubernetes secret. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, is too large for a key, or is empty.
    pub fn from_file(path: &Path) -> Result<Self, SetupError> {
        let failed = |why: &dyn fmt::Display| SetupError::KeyMissing(format!("{}: {why}", path.display()));
        let text = named_files::read_text(path, KEY_FILE_BYTES_MAX).map_err(|error| failed(&error))?;
        let secret = Self::new(text);
        if secret.expose().is_empty() { Err(failed(&"the file is empty")) } else { Ok(secret) }
    }

    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Replaces every occurrence of the key in `text`, also in the forms in which a server, or somebody behind it, may quote
    /// it: in another case, backwards, percent-encoded, in base64.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(forms) = self.0.forms.as_ref().filter(|forms| forms.is_match(text)) else {
            return Cow::Borrowed(text);
        };
        let mut scrubbed = String::with_capacity(text.len());
        forms.replace_all_with(text, &mut scrubbed, |_, _, scrubbed| {
            scrubbed.push_str(SCRUBBED);
            true
        });
        Cow::Owned(scrubbed)
    }

    /// A header value `prefix` + key, marked so that HTTP libraries do not print it.
    ///
    /// # Errors
    /// The key has characters that no header can carry.
    pub(crate) fn header(&self, prefix: &str) -> Result<HeaderValue, SetupError> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.expose()))
            .map_err(|_| SetupError::KeyCharacters)?;
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
    fn a_key_is_found_in_every_form_in_which_a_server_quotes_it() {
        let secret = Secret::new("sk-Very+Secret/42");
        for quoted in [
            "sk-very+secret/42".to_owned(),
            "SK-VERY+SECRET/42".to_owned(),
            "24/terceS+yreV-ks".to_owned(),
            "sk-Very%2BSecret%2F42".to_owned(),
            "sk-Very%2bSecret%2f42".to_owned(),
        ] {
            assert_eq!(secret.scrub(&format!("no: {quoted}!")), "no: [key]!", "{quoted}");
        }
        for before in ["", "u", "u:", "u: ", "Bearer "] {
            for after in ["", "\n", ", you"] {
                let text = format!("{before}{}{after}", secret.expose());
                for quoted in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    assert!(secret.scrub(&quoted).contains("[key]"), "{text}: {quoted}");
                }
            }
        }
        let short = Secret::new("abc");
        assert_eq!(short.scrub("cba ABC abc"), "cba ABC [key]", "other forms of so short a key are anything");
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
