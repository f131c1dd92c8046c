//! What differs between the lines of two texts.

use crate::text::difflib::{EditKind, grouped_edits};

/// Maximum number of lines of a text that is compared.
const COMPARED_LINES_MAX: usize = 2_000;

/// Maximum number of lines of a difference that are shown.
const SHOWN_LINES_MAX: usize = 60;

/// Equal lines that are shown before and after what differs.
const CONTEXT_LINES: usize = 2;

/// Stands for equal lines that are not shown.
const GAP: &str = "...";

/// The text that a line of a difference is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSide {
    /// Both have it; or it stands for lines that both have.
    Both,
    Expected,
    Extracted,
}

/// What differs, with some lines around it.
#[derive(Debug, PartialEq, Eq)]
pub struct LineDifference<'a> {
    /// Each line with the text that it is from.
    pub lines: Vec<(LineSide, &'a str)>,
    /// How many lines more there are.
    pub left_out: usize,
}

impl<'a> LineDifference<'a> {
    /// The difference of two texts; `None` if they are the same, or too long to compare.
    pub fn of(expected: &'a str, extracted: &'a str) -> Option<Self> {
        let (expected, extracted): (Vec<_>, Vec<_>) =
            (expected.lines().collect(), extracted.lines().collect());
        if expected.len().max(extracted.len()) > COMPARED_LINES_MAX {
            return None;
        }
        let mut lines = Vec::new();
        for group in grouped_edits(&expected, &extracted, CONTEXT_LINES) {
            lines.extend((!lines.is_empty()).then_some((LineSide::Both, GAP)));
            for edit in group {
                let before = &expected[edit.a_start..edit.a_end];
                let after = &extracted[edit.b_start..edit.b_end];
                if edit.kind == EditKind::Equal {
                    lines.extend(before.iter().map(|line| (LineSide::Both, *line)));
                } else {
                    lines.extend(before.iter().map(|line| (LineSide::Expected, *line)));
                    lines.extend(after.iter().map(|line| (LineSide::Extracted, *line)));
                }
            }
        }
        let left_out = lines.len().saturating_sub(SHOWN_LINES_MAX);
        lines.truncate(SHOWN_LINES_MAX);
        (!lines.is_empty()).then_some(Self { lines, left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::LineSide::{Both, Expected, Extracted};
    use super::*;

    #[test]
    fn changed_lines_stand_between_equal_ones() {
        let expected = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let difference = LineDifference::of(expected, "a\nb\nX\nd\ne\nf\ng\nh\n").unwrap();
        let lines = [
            (Both, "a"),
            (Both, "b"),
            (Expected, "c"),
            (Extracted, "X"),
            (Both, "d"),
            (Both, "e"),
            (Both, GAP),
            (Both, "g"),
            (Both, "h"),
            (Expected, "i"),
        ];
        assert_eq!(difference, LineDifference { lines: lines.to_vec(), left_out: 0 });
    }

    #[test]
    fn the_same_lines_have_no_difference_and_long_texts_none_that_is_shown_whole() {
        assert_eq!(LineDifference::of("a\nb\n", "a\nb"), None);
        let number = |from: usize| (from..from + 50).map(|number| format!("{number}\n")).collect::<String>();
        let (expected, extracted) = (number(0), number(100));
        let difference = LineDifference::of(&expected, &extracted).unwrap();
        assert_eq!((difference.lines.len(), difference.left_out), (SHOWN_LINES_MAX, 40));
        let long = "x\n".repeat(COMPARED_LINES_MAX + 1);
        assert_eq!(LineDifference::of(&long, "x"), None);
    }
}
