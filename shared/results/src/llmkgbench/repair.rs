//! Repairs the text of a record that is not valid JSON text: invalid UTF-8, escapes of half a surrogate pair.
//!
//! Python writes both if a model's answer contains them. The record can still be scored, so invalid parts are replaced by
//! U+FFFD, the replacement character, and the record says so: its scores may differ from the recorded ones for this reason
//! alone.

use std::borrow::Cow;

/// What was replaced to read a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRepair {
    InvalidUtf8,
    /// `\ud83d` without its second half, or the second half alone.
    LoneSurrogates,
}

impl std::fmt::Display for FileRepair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InvalidUtf8 => "invalid UTF-8 was replaced by U+FFFD",
            Self::LoneSurrogates => "halves of surrogate pairs were replaced by U+FFFD",
        })
    }
}

/// The text with invalid UTF-8 replaced; borrowed if it is valid.
pub fn decode(bytes: &[u8]) -> (Cow<'_, str>, Option<FileRepair>) {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => (Cow::Borrowed(text), None),
        Cow::Owned(text) => (Cow::Owned(text), Some(FileRepair::InvalidUtf8)),
    }
}

/// The JSON text with lone surrogate escapes replaced by `\ufffd`, or `None` if it has none.
pub fn replace_lone_surrogates(json: &str) -> Option<String> {
    let mut fixed = String::with_capacity(json.len());
    let mut rest = json;
    let mut replaced = false;
    while let Some(at) = rest.find('\\') {
        fixed.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match code_unit(rest) {
            Some(unit) if is_high(unit) && rest.get(6..).and_then(code_unit).is_some_and(is_low) => 12,
            Some(unit) if is_high(unit) || is_low(unit) => {
                fixed.push_str("\\ufffd");
                replaced = true;
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            // A simple escape: the backslash and the next character, whatever its length in bytes.
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        fixed.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    fixed.push_str(rest);
    replaced.then_some(fixed)
}

/// The value of a `\uXXXX` escape at the start of the text.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // `from_str_radix` would accept a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_halves_are_replaced() {
        assert_eq!(replace_lone_surrogates(r#""\ud83d\ude00 \\ud83d é \n""#), None);
        assert_eq!(replace_lone_surrogates(r#""\ud83dx""#).unwrap(), r#""\ufffdx""#);
        assert_eq!(replace_lone_surrogates(r#""\ude00\ud83d""#).unwrap(), r#""\ufffd\ufffd""#);
        assert_eq!(replace_lone_surrogates(r#""\ud83d\ud83d\ude00""#).unwrap(), r#""\ufffd\ud83d\ude00""#);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_told() {
        let (text, repair) = decode(b"a\xFFb");
        assert_eq!((text.as_ref(), repair), ("a\u{FFFD}b", Some(FileRepair::InvalidUtf8)));
        assert_eq!(decode("ok é".as_bytes()).1, None);
    }

    proptest! {
        #[test]
        fn any_string_of_code_units_becomes_readable(units in prop::collection::vec(any::<u16>(), 0..8), tail in ".*") {
            let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("{escapes:?}{tail}").replace("\\\\u", "\\u");
            // Texts that are not JSON at all must not panic either.
            let _ = replace_lone_surrogates(&tail);
            let _ = replace_lone_surrogates(&json);
            let json = format!("\"{escapes}\"");
            let json = replace_lone_surrogates(&json).unwrap_or(json);
            let text: String = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
        }
    }
}
