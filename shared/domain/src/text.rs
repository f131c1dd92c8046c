//! Texts that several crates need: hexadecimal digits, names in a sentence, and errors with their causes.

use std::error::Error;
use std::fmt::{Display, Write as _};

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The first of some names, at most this many, and how many more there are.
pub fn listed(names: impl ExactSizeIterator<Item = impl Display>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown: Vec<String> = names.take(most).map(|name| name.to_string()).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// An error with its causes, outermost first, separated by colons. A cause that the text contains already is left out,
/// because some errors print their source themselves.
pub fn with_causes(error: &dyn Error) -> String {
    followed_by_causes(error.to_string(), error)
}

/// `text`, then the causes of `error`, as in [`with_causes`].
pub fn followed_by_causes(mut text: String, error: &dyn Error) -> String {
    for cause in std::iter::successors(error.source(), |&error| error.source()).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_most_are_counted() {
        let names = ["a", "b", "c"];
        assert_eq!(listed(names.iter(), 3), "a, b, c");
        assert_eq!(listed(names.iter(), 2), "a, b and 1 more");
        assert_eq!(listed(names[..0].iter(), 2), "");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Caused {
        text: &'static str,
        #[source]
        by: Option<Box<Caused>>,
    }

    #[test]
    fn causes_are_told_once_and_in_order() {
        let inner = Caused { text: "connection refused", by: None };
        let middle = Caused { text: "cannot connect: connection refused", by: Some(Box::new(inner)) };
        let outer = Caused { text: "no answer", by: Some(Box::new(middle)) };
        assert_eq!(with_causes(&outer), "no answer: cannot connect: connection refused");
    }

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(hex([0, 10, 255]), "000aff");
    }
}
