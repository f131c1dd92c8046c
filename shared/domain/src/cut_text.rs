//! Texts of others that are cut where they are read, so that no reader can forget to.

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use crate::text::one_line;

/// Maximum size of a text about what happened, in bytes: enough for every known message of a server, too short for a web
/// page.
pub const MESSAGE_BYTES_MAX: usize = 500;

/// Maximum size of a name or a version, in bytes: configurations may have names of 1000 characters.
pub const NAME_BYTES_MAX: usize = 4_000;

/// The text of somebody else as it is read from a record: one line of at most so many bytes.
pub struct CutText<const BYTES_MAX: usize>(pub String);

/// What happened, in words.
pub type ShortMessage = CutText<MESSAGE_BYTES_MAX>;

/// A name or a version.
pub type ShortName = CutText<NAME_BYTES_MAX>;

impl<const BYTES_MAX: usize> From<&str> for CutText<BYTES_MAX> {
    fn from(text: &str) -> Self {
        Self(one_line(text, BYTES_MAX))
    }
}

impl<'de, const BYTES_MAX: usize> Deserialize<'de> for CutText<BYTES_MAX> {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        /// Takes the text from the reader's own buffer: one of 60 MB is never copied.
        struct Borrowing<const BYTES_MAX: usize>;

        impl<const BYTES_MAX: usize> Visitor<'_> for Borrowing<BYTES_MAX> {
            type Value = CutText<BYTES_MAX>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(text.into())
            }
        }
        text.deserialize_str(Borrowing::<BYTES_MAX>)
    }
}

/// For a field that is a [`ShortMessage`].
///
/// # Errors
/// It is no text.
pub fn message<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    ShortMessage::deserialize(text).map(|CutText(text)| text)
}

/// For a field that may be a [`ShortName`].
///
/// # Errors
/// It is neither a text nor null.
pub fn optional_name<'de, D: Deserializer<'de>>(text: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<ShortName>::deserialize(text)?.map(|CutText(text)| text))
}
