//! Lines, white space, word characters and digits as Python defines them, which differs from Rust.
//!
//! The published scores were computed with CPython. Where its `str` methods and its `re` module differ from
//! Rust's `char` methods and the `regex` crate, the definitions here apply; regular expressions that reproduce a
//! published rule use [`WORD`] and [`SPACE`] instead of `\w` and `\s`.
//!
//! All definitions agree with CPython 3.11 on every code point that Unicode 14 (the version behind it) assigns.
//! Letters and numbers of later Unicode versions count as word characters here and not in CPython.

use std::sync::LazyLock;

use regex::Regex;

/// `\w` of Python's `re` as a class for the `regex` crate: `str.isalnum()` or `_`. Unlike Rust's `\w` it has
/// no combining marks and no connectors but `_`, and it has numbers that are not digits, such as `½`.
pub const WORD: &str = r"[\p{L}\p{N}_]";

/// `\s` of Python's `re` as a class for the `regex` crate: Rust's `\s` and the information separators.
pub const SPACE: &str = r"[\s\x1C-\x1F]";

/// `\w` of Python's `re` for one character.
pub fn is_word(character: char) -> bool {
    static WORD_CHARACTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(WORD).ok());
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    // Rust's test also accepts a few marks, so it only serves to exclude characters quickly.
    character.is_alphanumeric()
        && WORD_CHARACTER.as_ref().is_some_and(|pattern| pattern.is_match(character.encode_utf8(&mut [0; 4])))
}

/// `str.isspace()` for one character, which is also `\s` and what `str.strip()` removes.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&character)
}

/// `str.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.isdigit()`: not empty, and every character is a decimal digit of some script or a special digit, such as `²` or
/// `①`.
pub fn is_digits(text: &str) -> bool {
    static DECIMALS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{Nd}").ok());
    let is_digit = |character: char| {
        character.is_ascii_digit()
            || (character.is_numeric()
                && (SPECIAL_DIGITS.iter().any(|(first, last)| (*first..=*last).contains(&character))
                    || DECIMALS
                        .as_ref()
                        .is_some_and(|pattern| pattern.is_match(character.encode_utf8(&mut [0; 4])))))
    };
    !text.is_empty() && text.chars().all(is_digit)
}

/// Digits that are not decimal: `Numeric_Type=Digit` of the Unicode character database, first and last of each run.
const SPECIAL_DIGITS: &[(char, char)] = &[
    ('\u{B2}', '\u{B3}'),
    ('\u{B9}', '\u{B9}'),
    ('\u{1369}', '\u{1371}'),
    ('\u{19DA}', '\u{19DA}'),
    ('\u{2070}', '\u{2070}'),
    ('\u{2074}', '\u{2079}'),
    ('\u{2080}', '\u{2089}'),
    ('\u{2460}', '\u{2468}'),
    ('\u{2474}', '\u{247C}'),
    ('\u{2488}', '\u{2490}'),
    ('\u{24EA}', '\u{24EA}'),
    ('\u{24F5}', '\u{24FD}'),
    ('\u{24FF}', '\u{24FF}'),
    ('\u{2776}', '\u{277E}'),
    ('\u{2780}', '\u{2788}'),
    ('\u{278A}', '\u{2792}'),
    ('\u{10A40}', '\u{10A43}'),
    ('\u{10E60}', '\u{10E68}'),
    ('\u{11052}', '\u{1105A}'),
    ('\u{1F100}', '\u{1F10A}'),
];

/// `str.splitlines()`: no empty line after a final line break, none for an empty text.
pub fn splitlines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(end) = rest.find(is_line_break) else {
            lines.push(rest);
            break;
        };
        lines.push(&rest[..end]);
        rest = &rest[end..];
        let mut after = rest.chars();
        if after.next() == Some('\r') && after.as_str().starts_with('\n') {
            after.next();
        }
        rest = after.as_str();
    }
    lines
}

/// Whether `str.splitlines()` breaks a line here.
fn is_line_break(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{0B}' | '\u{0C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_break_at_all_of_pythons_breaks() {
        assert_eq!(splitlines(""), Vec::<&str>::new());
        assert_eq!(splitlines("a"), ["a"]);
        assert_eq!(splitlines("a\n"), ["a"]);
        assert_eq!(splitlines("\n\na"), ["", "", "a"]);
        assert_eq!(splitlines("a\r\nb\rc\n\rd"), ["a", "b", "c", "", "d"]);
        assert_eq!(
            splitlines("0\u{0B}1\u{0C}2\u{1C}3\u{1D}4\u{1E}5\u{85}6\u{2028}7\u{2029}8\u{1F}9"),
            ["0", "1", "2", "3", "4", "5", "6", "7", "8\u{1F}9"],
            "the unit separator is white space but breaks no line"
        );
    }

    #[test]
    fn word_characters_are_those_of_python() {
        for word in ['a', 'Z', '0', '_', 'é', '中', '²', '½', 'Ⅷ', '०'] {
            assert!(is_word(word), "{word:?} is a word character");
        }
        for other in ['-', '\u{301}', '\u{93E}', '‿', ' ', 'ⓐ', '🅰'] {
            assert!(!is_word(other), "{other:?} is no word character");
        }
    }

    #[test]
    fn white_space_includes_the_information_separators() {
        assert_eq!(strip("\u{1C}\u{1D} \u{85}\u{A0}a b\u{3000}\u{1E}\u{1F}\n"), "a b");
        assert_eq!(
            strip("\u{200B}a\u{FEFF}"),
            "\u{200B}a\u{FEFF}",
            "zero-width characters are no white space"
        );
    }

    #[test]
    fn digits_are_decimal_or_in_special_notation() {
        for digits in ["0", "42", "٤٢", "²", "①"] {
            assert!(is_digits(digits), "{digits:?}");
        }
        for other in ["", "-1", "1.0", "4 2", "½", "Ⅷ", "十"] {
            assert!(!is_digits(other), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn lines_lose_nothing_but_their_breaks(text in "[ab\n\r\u{0B}\u{0C}\u{1C}-\u{1F}\u{85}\u{2028}é]{0,40}") {
            let kept: String = text.chars().filter(|c| !is_line_break(*c)).collect();
            prop_assert_eq!(splitlines(&text).concat(), kept);
        }

        #[test]
        fn the_classes_for_patterns_agree_with_the_functions(character in any::<char>()) {
            let word = Regex::new(&format!("^{WORD}$")).unwrap();
            let space = Regex::new(&format!("^{SPACE}$")).unwrap();
            prop_assert_eq!(word.is_match(&character.to_string()), is_word(character));
            prop_assert_eq!(space.is_match(&character.to_string()), is_space(character));
        }
    }
}
