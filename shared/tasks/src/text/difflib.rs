//! Python's `difflib.SequenceMatcher(None, a, b)`, autojunk on: the similarity of two texts and the edits between
//! two lists of lines.
//!
//! The rule: find the longest run that both sequences share, then do the same to the left and to the right of it. Of
//! equally long runs, the one that starts first in `a`, then in `b`, is chosen. If `b` has 200 items or more, an item that
//! makes up more than 1 % (plus one) of it is *popular*: runs are searched without popular items, and the longest is then
//! extended over all equal items at its ends. The result therefore depends on the order of the arguments.
//!
//! Finding the longest common run takes time proportional to the number of pairs of equal unpopular items, and the search
//! is repeated in smaller and smaller ranges. Hostile answers would take days, so [`STEPS_MAX`] bounds the work.

mod search;

use search::{MatchingRun, matching_runs};

/// Maximum number of steps (pairs of equal items, and items visited) of one comparison: one to four seconds of work.
/// Texts of models need less than a hundredth. At the limit, the runs found so far are the result: the similarity is then
/// a lower bound of the true one, and the same on every machine.
pub const STEPS_MAX: u64 = 1 << 28;

/// Twice the number of matched characters divided by the number of all characters, 0 to 1; 1 for two empty texts. The
/// order of the arguments matters.
pub fn ratio(a: &str, b: &str) -> f64 {
    if a == b {
        // For equal texts, the longest run of unpopular characters is first found at equal positions and then extended
        // over everything, so they match as a whole.
        return 1.0;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let matched: usize = matching_runs(&a, &b, STEPS_MAX).iter().map(|run| run.len).sum();
    2.0 * matched as f64 / (a.len() + b.len()) as f64
}

/// What an [`Edit`] does to its range of the first list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// Both ranges are equal.
    Equal,
    /// The range of `b` replaces that of `a`.
    Replace,
    /// The range of `a` is deleted; that of `b` is empty.
    Delete,
    /// The range of `b` is inserted; that of `a` is empty.
    Insert,
}

/// One edit on the way from `a` to `b`, an *opcode* in Python. Positions count from 0, ends are exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    pub kind: EditKind,
    pub a_start: usize,
    pub a_end: usize,
    pub b_start: usize,
    pub b_end: usize,
}

/// The edits that turn `a` into `b`, first to last; together they cover both lists (`get_opcodes()`).
pub fn edits(a: &[&str], b: &[&str]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut a_start, mut b_start) = (0, 0);
    let end = MatchingRun { a: a.len(), b: b.len(), len: 0 };
    for run in joined(matching_runs(a, b, STEPS_MAX)).into_iter().chain([end]) {
        let kind = match (a_start < run.a, b_start < run.b) {
            (true, true) => Some(EditKind::Replace),
            (true, false) => Some(EditKind::Delete),
            (false, true) => Some(EditKind::Insert),
            (false, false) => None,
        };
        edits.extend(kind.map(|kind| Edit { kind, a_start, a_end: run.a, b_start, b_end: run.b }));
        (a_start, b_start) = (run.a + run.len, run.b + run.len);
        if run.len > 0 {
            let kind = EditKind::Equal;
            edits.push(Edit { kind, a_start: run.a, a_end: a_start, b_start: run.b, b_end: b_start });
        }
    }
    edits
}

/// The edits in groups separated by more than twice `context` equal items, with the equal ranges at the ends of a group cut
/// to `context` items (`get_grouped_opcodes(n)`). Empty if nothing differs.
pub fn grouped_edits(a: &[&str], b: &[&str], context: usize) -> Vec<Vec<Edit>> {
    let mut edits = edits(a, b);
    if edits.iter().all(|edit| edit.kind == EditKind::Equal) {
        return Vec::new();
    }
    if let Some(first) = edits.first_mut().filter(|edit| edit.kind == EditKind::Equal) {
        first.keep_last(context);
    }
    if let Some(last) = edits.last_mut().filter(|edit| edit.kind == EditKind::Equal) {
        last.keep_first(context);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for edit in edits {
        if edit.kind == EditKind::Equal && edit.a_end - edit.a_start > 2 * context {
            let (mut before, mut after) = (edit, edit);
            before.keep_first(context);
            after.keep_last(context);
            group.push(before);
            groups.push(std::mem::take(&mut group));
            group.push(after);
        } else {
            group.push(edit);
        }
    }
    if group.iter().any(|edit| edit.kind != EditKind::Equal) {
        groups.push(group);
    }
    groups
}

impl Edit {
    /// Shortens an equal range to its first `items`.
    fn keep_first(&mut self, items: usize) {
        self.a_end = self.a_end.min(self.a_start + items);
        self.b_end = self.b_end.min(self.b_start + items);
    }

    /// Shortens an equal range to its last `items`.
    fn keep_last(&mut self, items: usize) {
        self.a_start = self.a_start.max(self.a_end.saturating_sub(items));
        self.b_start = self.b_start.max(self.b_end.saturating_sub(items));
    }
}

/// Merges runs that are adjacent in both sequences.
fn joined(runs: Vec<MatchingRun>) -> Vec<MatchingRun> {
    let mut joined: Vec<MatchingRun> = Vec::with_capacity(runs.len());
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.a + last.len == run.a && last.b + last.len == run.b => last.len += run.len,
            _ => joined.push(run),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of CPython's difflib.
    #[test]
    fn ratios_are_those_of_python() {
        let ten = "abcdefghij".repeat(30);
        // Every third character is popular, the others come in an order that both texts share in parts only.
        let mixed = |step: u32, len: u32| -> String {
            let character = |i: u32| char::from_u32(0x4E00 + (i * i * step) % 151).unwrap();
            (0..len).map(|i| if i % 3 == 0 { 'a' } else { character(i) }).collect()
        };
        let (one, other) = (mixed(1, 300), mixed(4, 420));
        let shuffled = format!("{}{}aaaa{}", &other[28..301], &one[98..], &one[..98]);
        for (a, b, expected) in [
            ("", "", 1.0),
            ("a", "", 0.0),
            ("abcd", "bcde", 0.75),
            ("qabxcd", "abycdf", 0.6666666666666666),
            ("private volatile", "private Thread currentThread", 0.5),
            ("tide", "diet", 0.25),
            ("diet", "tide", 0.5),
            ("größer", "grösser", 0.7692307692307693),
            (&ten, &ten, 1.0),
            (&ten[1..], &ten, 0.0),
            (&one, &other, 0.09166666666666666),
            (&other, &one, 0.08611111111111111),
            (&one, &shuffled, 0.11650485436893204),
            (&shuffled, &one, 0.7378640776699029),
        ] {
            assert_eq!(ratio(a, b), expected, "{a:?} against {b:?}");
        }
    }

    #[test]
    fn edits_are_those_of_python() {
        use EditKind::{Delete, Equal, Insert, Replace};
        let a: Vec<&str> = "q a b x c d".split(' ').collect();
        let b: Vec<&str> = "a b y c d f".split(' ').collect();
        let expected = [
            (Delete, 0, 1, 0, 0),
            (Equal, 1, 3, 0, 2),
            (Replace, 3, 4, 2, 3),
            (Equal, 4, 6, 3, 5),
            (Insert, 6, 6, 5, 6),
        ];
        let found: Vec<_> =
            edits(&a, &b).iter().map(|e| (e.kind, e.a_start, e.a_end, e.b_start, e.b_end)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hostile_pair_ends_with_a_lower_bound() {
        let a: Vec<char> = "ab".repeat(90).chars().collect();
        let b: Vec<char> = "ba".repeat(90).chars().collect();
        let matched = |steps| matching_runs(&a, &b, steps).iter().map(|run| run.len).sum::<usize>();
        assert_eq!(matched(u64::MAX), 179);
        assert_eq!(matched(10_000), 0, "the first search alone takes more");
    }

    /// The rule, written down as plainly as can be: for small alphabets without popular items.
    fn plain_runs(a: &[char], b: &[char], at: (usize, usize), runs: &mut Vec<MatchingRun>) {
        let mut best = MatchingRun { a: 0, b: 0, len: 0 };
        for i in 0..a.len() {
            for j in 0..b.len() {
                let len = a[i..].iter().zip(&b[j..]).take_while(|(x, y)| x == y).count();
                if len > best.len {
                    best = MatchingRun { a: i, b: j, len };
                }
            }
        }
        if best.len > 0 {
            plain_runs(&a[..best.a], &b[..best.b], at, runs);
            runs.push(MatchingRun { a: at.0 + best.a, b: at.1 + best.b, len: best.len });
            let (a_end, b_end) = (best.a + best.len, best.b + best.len);
            plain_runs(&a[a_end..], &b[b_end..], (at.0 + a_end, at.1 + b_end), runs);
        }
    }

    proptest! {
        #[test]
        fn short_texts_match_by_the_plain_rule(a in "[abc]{0,30}", b in "[abc]{0,30}") {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let mut expected = Vec::new();
            plain_runs(&a, &b, (0, 0), &mut expected);
            prop_assert_eq!(matching_runs(&a, &b, STEPS_MAX), expected);
        }

        #[test]
        fn a_ratio_is_a_share_and_equal_texts_match_as_a_whole(a in "[a-h é]{0,400}", b in "[a-h é]{0,400}") {
            let found = ratio(&a, &b);
            prop_assert!((0.0..=1.0).contains(&found));
            let items: Vec<char> = a.chars().collect();
            let matched: usize = matching_runs(&items, &items, STEPS_MAX).iter().map(|run| run.len).sum();
            prop_assert_eq!(matched, items.len(), "the shortcut for equal texts is what the search would say");
        }

        #[test]
        fn edits_lead_from_the_first_list_to_the_second(
            a in prop::collection::vec("[abcd]", 0..260),
            b in prop::collection::vec("[abcd]", 0..260),
        ) {
            let a: Vec<&str> = a.iter().map(String::as_str).collect();
            let b: Vec<&str> = b.iter().map(String::as_str).collect();
            let mut made: Vec<&str> = Vec::new();
            let mut at = 0;
            for edit in edits(&a, &b) {
                prop_assert_eq!(edit.a_start, at);
                at = edit.a_end;
                match edit.kind {
                    EditKind::Equal => made.extend(&a[edit.a_start..edit.a_end]),
                    _ => made.extend(&b[edit.b_start..edit.b_end]),
                }
            }
            prop_assert_eq!(at, a.len());
            prop_assert_eq!(made, b);
        }
    }
}
