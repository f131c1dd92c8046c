//! Cuts an answer into parts that a classifier can read at once.

use std::ops::Range;

/// Parts of an answer that a classifier is asked about, at most. What comes after them is left to the next filter, which reads
/// the whole answer.
pub(super) const WINDOWS_MAX: usize = 32;

/// The parts of a text, each of whole sentences and `chars` characters at most. Each begins about half a part after the one
/// before, so that what two neighbouring sentences say together stands in one of them. A sentence that is longer is cut. With
/// 0 characters, and for a text that is no longer, the text is its only part.
pub(super) fn windows(text: &str, chars: usize) -> Vec<&str> {
    if chars == 0 || text.chars().count() <= chars {
        return vec![text];
    }
    ranges(text, chars).into_iter().map(|range| text[range].trim()).collect()
}

fn ranges(text: &str, chars: usize) -> Vec<Range<usize>> {
    let pieces = pieces(text, chars);
    let mut ranges = Vec::new();
    let mut first = 0;
    while ranges.len() < WINDOWS_MAX {
        let (mut end, mut length) = (first, 0);
        while end < pieces.len() && length + pieces[end].chars <= chars {
            length += pieces[end].chars;
            end += 1;
        }
        ranges.push(pieces[first].start..pieces[end - 1].end);
        if end == pieces.len() {
            break;
        }
        let mut passed = 0;
        while passed * 2 < length {
            passed += pieces[first].chars;
            first += 1;
        }
        // The next piece must have room, or nothing new would be read.
        while pieces[first..=end].iter().map(|piece| piece.chars).sum::<usize>() > chars {
            first += 1;
        }
    }
    ranges
}

/// A sentence with the white space after it, or a part of one that is too long. No piece is empty, and none has more than
/// `chars_max` characters.
struct Piece {
    start: usize,
    end: usize,
    chars: usize,
}

fn pieces(text: &str, chars_max: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut start, mut chars) = (0, 0);
    let (mut stopped, mut ended) = (false, false);
    for (place, c) in text.char_indices() {
        let white = c.is_whitespace();
        if (ended && !white) || chars == chars_max {
            pieces.push(Piece { start, end: place, chars });
            (start, chars, ended) = (place, 0, false);
        }
        chars += 1;
        // A point within a number is not followed by white space.
        ended = (white && (ended || stopped || c == '\n')) || matches!(c, '。' | '！' | '？');
        stopped = matches!(c, '.' | '!' | '?');
    }
    pieces.push(Piece { start, end: text.len(), chars });
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_text_is_its_only_part() {
        assert_eq!(windows("One. Two.", 100), ["One. Two."]);
        assert_eq!(windows("One. Two.", 0), ["One. Two."]);
        assert_eq!(windows("", 5), [""]);
    }

    #[test]
    fn parts_overlap_and_are_made_of_whole_sentences() {
        let text = "Aa aa. Bb bb. Cc cc. Dd dd.";
        assert_eq!(windows(text, 14), ["Aa aa. Bb bb.", "Bb bb. Cc cc.", "Cc cc. Dd dd."]);
        assert_eq!(windows("It is 1.5 m. Long", 13), ["It is 1.5 m.", "Long"]);
        assert_eq!(windows("一二三。四五六。七", 4), ["一二三。", "四五六。", "七"]);
        assert_eq!(windows(&"x. ".repeat(1_000), 10).len(), WINDOWS_MAX);
    }

    proptest! {
        #[test]
        fn nothing_is_left_out_and_no_part_is_too_long(text in "[a-c .!\nü]{0,200}", chars in 8_usize..60) {
            let found = ranges(&text, chars);
            prop_assert!(found.len() <= WINDOWS_MAX);
            let mut end = 0;
            for (number, range) in found.iter().enumerate() {
                prop_assert!(range.start <= end && (number == 0 || range.end > end), "{:?}", found);
                prop_assert!(text[range.clone()].chars().count() <= chars);
                end = range.end;
            }
            prop_assert!(end == text.len() || found.len() == WINDOWS_MAX);
        }
    }
}
