//! Python's `difflib.unified_diff`.

use std::ops::Range;

use super::difflib::{EditKind, grouped_edits};

/// Number of equal lines shown around a difference.
const CONTEXT_LINES: usize = 3;

/// Unified diff of two lists of lines with three lines of context, file names `optimal` and `answer`, its lines
/// joined with a newline. Empty for equal lists.
///
/// In the published infos the lines have no line breaks, while header and hunk lines do, so each of those is followed by
/// an empty line.
pub fn unified_diff(optimal: &[&str], answer: &[&str]) -> String {
    let mut diff: Vec<String> = Vec::new();
    for group in grouped_edits(optimal, answer, CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if diff.is_empty() {
            diff.extend(["--- optimal\n".to_owned(), "+++ answer\n".to_owned()]);
        }
        let removed = range(first.a_start..last.a_end);
        let added = range(first.b_start..last.b_end);
        diff.push(format!("@@ -{removed} +{added} @@\n"));
        for edit in group {
            let (before, after) = (&optimal[edit.a_start..edit.a_end], &answer[edit.b_start..edit.b_end]);
            if edit.kind == EditKind::Equal {
                diff.extend(before.iter().map(|line| format!(" {line}")));
            } else {
                diff.extend(before.iter().map(|line| format!("-{line}")));
                diff.extend(after.iter().map(|line| format!("+{line}")));
            }
        }
    }
    diff.join("\n")
}

/// A range of lines in the notation of hunk headers: first line, counted from 1, and number of lines, which is left out if
/// it is 1; an empty range gives the line before it.
fn range(lines: Range<usize>) -> String {
    match lines.len() {
        1 => (lines.start + 1).to_string(),
        0 => format!("{},0", lines.start),
        len => format!("{},{len}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_are_followed_by_empty_lines() {
        assert_eq!(
            unified_diff(&["x"], &["one", "x"]),
            "--- optimal\n\n+++ answer\n\n@@ -1 +1,2 @@\n\n+one\n x"
        );
        assert_eq!(unified_diff(&["x"], &[]), "--- optimal\n\n+++ answer\n\n@@ -1 +0,0 @@\n\n-x");
    }

    #[test]
    fn distant_changes_stand_in_hunks_of_their_own() {
        let optimal: Vec<String> = (1..=20).map(|number| format!("line {number}")).collect();
        let optimal: Vec<&str> = optimal.iter().map(String::as_str).collect();
        let mut answer = optimal.clone();
        answer[1] = "changed";
        answer.remove(16);
        assert_eq!(
            unified_diff(&optimal, &answer),
            "--- optimal\n\n+++ answer\n\n\
             @@ -1,5 +1,5 @@\n\n line 1\n-line 2\n+changed\n line 3\n line 4\n line 5\n\
             @@ -14,7 +14,6 @@\n\n line 14\n line 15\n line 16\n-line 17\n line 18\n line 19\n line 20"
        );
    }

    proptest! {
        #[test]
        fn a_diff_says_what_to_take_out_and_what_to_put_in(
            optimal in prop::collection::vec("[abcd]", 0..40),
            answer in prop::collection::vec("[abcd]", 0..40),
        ) {
            let optimal: Vec<&str> = optimal.iter().map(String::as_str).collect();
            let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
            let diff = unified_diff(&optimal, &answer);
            prop_assert_eq!(diff.is_empty(), optimal == answer);
            let count = |sign: char| diff.lines().filter(|line| line.starts_with(sign)).count() as i64;
            // The two file names start with the same signs.
            prop_assert_eq!(count('+') - count('-'), answer.len() as i64 - optimal.len() as i64);
        }
    }
}
