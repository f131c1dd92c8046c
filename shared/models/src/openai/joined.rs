//! Puts a text together from pieces that may end in the middle of a character.

use std::str::{Utf8Error, from_utf8};

use crate::chat::cut_text;

/// A text of pieces. Some proxies and servers cut streams within a character: between the two halves that JSON's escapes have of one
/// beyond U+FFFF, or between its bytes. Parts that follow each other are joined, others become U+FFFD.
#[derive(Debug, Default, Hash)]
pub(super) struct Joined {
    text: String,
    /// The first half of a character whose second one may come with the next piece.
    half: Option<u16>,
    /// The first bytes of a character whose other ones may come with the next piece.
    begun: Vec<u8>,
}

impl Joined {
    /// Adds a piece: UTF-8, with halves of characters in the same way.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), Utf8Error> {
        let mut piece = self.complete(piece);
        loop {
            let error = match from_utf8(piece) {
                Ok(text) => {
                    self.add(text);
                    return Ok(());
                }
                Err(error) => error,
            };
            let (text, rest) = piece.split_at(error.valid_up_to());
            self.add(from_utf8(text)?);
            if error.error_len().is_none() {
                self.give_up_half();
                self.begun = rest.to_vec();
                return Ok(());
            }
            let (unit, after) = half_of_character(rest).ok_or(error)?;
            self.add_half(unit);
            piece = after;
        }
    }

    /// Takes the bytes that complete a character from the front of a piece, and returns what is left of it.
    fn complete<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let others = piece.iter().take_while(|byte| matches!(byte, 0x80..=0xbf)).count();
        if piece.is_empty() || (self.begun.is_empty() && others == 0) {
            return piece;
        }
        let mut begun = std::mem::take(&mut self.begun);
        let missing = match begun.first() {
            Some(0xf0..) => 4,
            Some(0xe0..) => 3,
            Some(_) => 2,
            None => others,
        };
        let (bytes, rest) = piece.split_at(others.min(missing - begun.len().min(missing)));
        begun.extend_from_slice(bytes);
        match from_utf8(&begun) {
            Ok(text) => self.add(text),
            Err(error) if error.error_len().is_none() && rest.is_empty() => self.begun = begun,
            // The other bytes were lost, or the first ones were.
            Err(_) => {
                self.give_up_half();
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        rest
    }

    /// Cuts it to so many bytes at most, and returns whether anything was cut.
    pub(super) fn cut(&mut self, bytes_max: usize) -> bool {
        cut_text(&mut self.text, bytes_max)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.half.is_none() && self.begun.is_empty()
    }

    pub(super) fn into_text(mut self) -> String {
        self.give_up_half();
        if !self.begun.is_empty() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.text
    }

    fn add(&mut self, text: &str) {
        if !text.is_empty() {
            self.give_up_half();
            self.text.push_str(text);
        }
    }

    fn add_half(&mut self, unit: u16) {
        if let Some(first) = self.half.take() {
            if let Some(Ok(whole)) = char::decode_utf16([first, unit]).next() {
                self.text.push(whole);
                return;
            }
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        // Whether a second one can follow shows when it comes.
        self.half = Some(unit);
    }

    fn give_up_half(&mut self) {
        if self.half.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Reads half of a character, written as UTF-8 would write a character of its number.
fn half_of_character(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, after @ ..] = bytes else { return None };
    let unit = 0xd000 | (u16::from(second & 0x3f) << 6) | u16::from(third & 0x3f);
    Some((unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[u8] = b"\xed\xa0\xbd";
    const SECOND: &[u8] = b"\xed\xb8\x80";

    fn joined(pieces: &[&[u8]]) -> String {
        let mut joined = Joined::default();
        for piece in pieces {
            joined.push(piece).unwrap();
        }
        joined.into_text()
    }

    #[test]
    fn halves_that_belong_together_are_joined_and_others_replaced() {
        let emoji = "\u{1f600}";
        assert_eq!(joined(&[b"a", FIRST, SECOND, "é".as_bytes()]), format!("a{emoji}é"));
        assert_eq!(joined(&[&[FIRST, SECOND].concat()]), emoji);
        assert_eq!(joined(&[FIRST, b"", SECOND]), emoji, "an empty piece is nothing");
        assert_eq!(joined(&[FIRST, b"a", SECOND]), "\u{fffd}a\u{fffd}");
        assert_eq!(joined(&[FIRST, FIRST, SECOND]), format!("\u{fffd}{emoji}"));
        assert_eq!(joined(&[SECOND, FIRST]), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn bytes_that_belong_together_are_joined_and_others_replaced() {
        let emoji = "\u{1f600}";
        for cut in 1..4 {
            let (first, second) = emoji.as_bytes().split_at(cut);
            assert_eq!(joined(&[&[b"a", first].concat(), &[second, b"b"].concat()]), format!("a{emoji}b"));
            assert_eq!(joined(&[first, b"", second]), emoji);
            assert_eq!(joined(&[first]), "\u{fffd}");
            assert_eq!(joined(&[first, b"a"]), "\u{fffd}a");
            assert_eq!(joined(&[b"a", second, b"b"]), "a\u{fffd}b");
            assert_eq!(joined(&[first, FIRST, SECOND]), format!("\u{fffd}{emoji}"));
        }
        let bytes: Vec<&[u8]> = emoji.as_bytes().chunks(1).collect();
        assert_eq!(joined(&bytes), emoji);
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in [&b"\xff"[..], b"a\xc3b", b"\xed\xa0", b"a\x80"] {
            assert!(Joined::default().push(wrong).is_err());
        }
    }
}
