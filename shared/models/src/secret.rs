//! Keys that never appear in output.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::HeaderValue;

use crate::error::SetupError;
use crate::key_search::KeySearch;

/// Maximum size of a key file, in bytes. Real keys have a few hundred at most.
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// How long a command may take to print a key, in seconds: clouds are asked over the network.
const COMMAND_SECONDS_MAX: u64 = 30;

/// How often it is looked whether the command has ended.
const COMMAND_LOOK_EVERY: Duration = Duration::from_millis(10);

/// A key. It prints as `[key]`; only [`Secret::expose`] returns the text.
#[derive(Clone)]
pub struct Secret(Arc<Known>);

/// A key, with a search for it in texts.
struct Known {
    text: Box<str>,
    /// `None` if the key is too short for one.
    search: Option<KeySearch>,
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Secret {}

/// Shortest key that is searched for in answers, in bytes. A shorter one, which a server of one's own may have, could be a word of
/// the answer, and the answer is what is scored.
const ANSWER_KEY_BYTES_MIN: usize = 12;

impl Secret {
    /// Trims white space, which files and shells add and HTTP headers refuse.
    pub fn new(text: impl AsRef<str>) -> Self {
        let text: Box<str> = text.as_ref().trim().into();
        let search = KeySearch::new(&text);
        Self(Arc::new(Known { text, search }))
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
        let text =
            service_kit::named_files::read_text(path, KEY_FILE_BYTES_MAX).map_err(|error| failed(&error))?;
        let secret = Self::new(text);
        if secret.expose().is_empty() { Err(failed(&"the file is empty")) } else { Ok(secret) }
    }

    /// Runs a command that prints the key, such as one of a cloud. Blocks, for [`COMMAND_SECONDS_MAX`] at most.
    ///
    /// # Errors
    /// It cannot be run, fails, takes too long, or prints nothing or too much.
    pub fn from_command(words: &[String]) -> Result<Self, SetupError> {
        let failed = |why: &dyn fmt::Display| {
            SetupError::KeyMissing(format!("command `{}` {why}", words.first().map_or("", String::as_str)))
        };
        let [program, arguments @ ..] = words else { return Err(failed(&"is empty")) };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&format!("cannot be run: {error}")))?;
        let output = child.stdout.take();
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            let read = output.map(|output| output.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text));
            read.transpose().map(|_| text)
        });
        let until = Instant::now() + Duration::from_secs(COMMAND_SECONDS_MAX);
        let status = loop {
            match child.try_wait().map_err(|error| failed(&error))? {
                Some(status) => break status,
                None if Instant::now() < until => std::thread::sleep(COMMAND_LOOK_EVERY),
                None => {
                    // It may have ended by now.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed(&format!("takes longer than {COMMAND_SECONDS_MAX} s")));
                }
            }
        };
        if !status.success() {
            return Err(failed(&format!("ends with {status}")));
        }
        let text = reading.join().map_err(|_| failed(&"cannot be read"))?;
        let secret = Self::new(text.map_err(|error| failed(&error))?);
        if secret.expose().is_empty() { Err(failed(&"prints nothing")) } else { Ok(secret) }
    }

    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Replaces every occurrence of the key in `text`, in whatever way it is written there. One of fewer than 8 bytes is not
    /// searched for.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.search.as_ref().map_or(Cow::Borrowed(text), |search| search.scrub(text))
    }

    /// The same for the text of an answer, in which no word may be taken for a key.
    pub(crate) fn scrub_answer<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.text.len() < ANSWER_KEY_BYTES_MIN { Cow::Borrowed(text) } else { self.scrub(text) }
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
    fn a_short_key_is_no_word_of_an_answer() {
        let scrub = |key: &str| {
            let (key, text) = (Secret::new(key), format!("say {key}"));
            (key.scrub(&text).into_owned(), key.scrub_answer(&text).into_owned())
        };
        assert_eq!(scrub("EMPTY"), ("say EMPTY".to_owned(), "say EMPTY".to_owned()));
        assert_eq!(scrub("anything"), ("say [key]".to_owned(), "say anything".to_owned()));
        assert_eq!(scrub("token-abc123"), ("say [key]".to_owned(), "say [key]".to_owned()));
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
    fn a_command_prints_a_key() {
        let run = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Secret::from_command(&words).map(|key| key.expose().to_owned()).map_err(|error| error.to_string())
        };
        assert_eq!(run(&["printf", " abc\n"]).unwrap(), "abc");
        for (words, problem) in [
            (&["false"][..], "ends with"),
            (&["true"], "prints nothing"),
            (&["/no/such/command"], "cannot be run"),
            (&[], "is empty"),
        ] {
            let error = run(words).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_key_with_a_line_break_inside_is_refused() {
        assert!(matches!(Secret::new("a\nb").header(""), Err(SetupError::KeyCharacters)));
    }
}
