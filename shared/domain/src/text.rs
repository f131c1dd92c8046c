//! Texts that several crates need: labels, hexadecimal digits, names in a sentence, errors with their causes, and texts of
//! others on one line.

use std::error::Error;
use std::fmt::{Display, Write as _};

/// Longest label of a model or task, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// Why a text cannot be the label of a model or task, which stands in tables, on terminals and in keys of the queue; `None` if it
/// can.
pub fn label_problem(label: &str) -> Option<String> {
    match label.len() {
        0 => Some("is empty".to_owned()),
        1..=LABEL_BYTES_MAX if label.chars().any(steers) => {
            Some(format!("`{}` has a control character or a direction mark", label.escape_debug()))
        }
        1..=LABEL_BYTES_MAX => None,
        bytes => Some(format!("has {bytes} bytes; it may have {LABEL_BYTES_MAX}")),
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of such digits, of either case; `None` if it is another text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
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

/// Whether a character could steer a terminal or mislead a reader: control characters, direction marks, and what some
/// readers take for the end of a line.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

/// The text of somebody else as one line of at most `bytes_max` bytes, in which nothing [steers].
pub fn one_line(text: &str, bytes_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(bytes_max));
    for c in text.trim_matches(|c: char| c.is_whitespace() || steers(c)).chars() {
        if line.len() + c.len_utf8() > bytes_max.saturating_sub('…'.len_utf8()) {
            line.push('…');
            break;
        }
        line.push(if steers(c) { ' ' } else { c });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_become_one_line_of_bounded_length() {
        assert_eq!(one_line(" a\nb\u{1b}[31m\u{202e}c\u{2028}d\u{85} ", 500), "a b [31m c d");
        let long = one_line(&"é".repeat(10_000), 500);
        assert!(long.len() <= 500 && long.ends_with("é…"), "{long}");
        assert_eq!(one_line("abc", 6), "abc");
    }

    #[test]
    fn a_label_steers_nobody_and_has_an_end() {
        for label in ["m", "Zoë's 模型 :-)", &"x".repeat(LABEL_BYTES_MAX)] {
            assert_eq!(label_problem(label), None, "{label}");
        }
        let long = "x".repeat(LABEL_BYTES_MAX + 1);
        for label in ["", "m\u{1b}[2J", "a\nb", "a\u{202e}b", "\u{200f}", "\u{85}", &long] {
            let problem = label_problem(label).unwrap();
            assert!(!problem.chars().any(steers), "{problem}");
        }
    }

    #[test]
    fn hexadecimal_digits_are_read_in_pairs_and_nothing_else_is() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex("aBFf"), Some(vec![0xab, 0xff]));
        for wrong in ["a", "+f", "0x", " 00", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }

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
