//! The token-set ratio of two texts: how alike the sets of their words are. It is `token_set_ratio` of RapidFuzz after
//! `default_process`, which RapidFuzz applied by itself up to version 2 and since version 3 only if it is asked to.

use std::collections::{BTreeSet, HashMap};

/// Characters of a normalised text that are compared; the rest is ignored. An overview has some 1 500. The limit keeps
/// the comparison within milliseconds for any answer.
pub const CHARACTERS_MAX: usize = 20_000;

/// From 0 (no word in common, nothing alike) to 1 (the words of one text are a subset of the other's).
pub fn token_set_ratio(first: &str, second: &str) -> f64 {
    let (first, second) = (normalise(first), normalise(second));
    let first: BTreeSet<&str> = first.split_whitespace().collect();
    let second: BTreeSet<&str> = second.split_whitespace().collect();
    if first.is_empty() || second.is_empty() {
        return 0.0;
    }
    let both = joined(first.intersection(&second));
    let only_first = joined(first.difference(&second));
    let only_second = joined(second.difference(&first));
    if !both.is_empty() && (only_first.is_empty() || only_second.is_empty()) {
        return 1.0;
    }
    let shared = both.len() as f64;
    // The blank between the shared words and the others.
    let blank = if both.is_empty() { 0.0 } else { 1.0 };
    let with_first = shared + blank + only_first.len() as f64;
    let with_second = shared + blank + only_second.len() as f64;
    // What both texts begin with costs nothing, so the distance of the rests is that of the whole.
    let distance = indel_distance(&only_first, &only_second) as f64;
    let whole = 1.0 - distance / (with_first + with_second);
    if both.is_empty() {
        return whole;
    }
    let to_first = 1.0 - (blank + only_first.len() as f64) / (shared + with_first);
    let to_second = 1.0 - (blank + only_second.len() as f64) / (shared + with_second);
    whole.max(to_first).max(to_second)
}

/// Lower case, with a blank in place of each character that is neither letter nor digit.
fn normalise(text: &str) -> String {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.map(|c| if c.is_alphanumeric() { c } else { ' ' }).take(CHARACTERS_MAX).collect()
}

fn joined<'a>(words: impl Iterator<Item = &'a &'a str>) -> Vec<char> {
    let mut text = Vec::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.extend(word.chars());
    }
    text
}

/// Number of insertions and deletions that turn one text into the other.
fn indel_distance(a: &[char], b: &[char]) -> usize {
    a.len() + b.len() - 2 * longest_common_subsequence(a, b)
}

/// Its length, by 64 characters at a time (Hyyrö, *Bit-Parallel LCS-length Computation Revisited*, 2004): bit `i` of the
/// vector is 0 where the row of the usual table grows at `a[i]`. The plain table would take seconds for the longest texts.
fn longest_common_subsequence(a: &[char], b: &[char]) -> usize {
    let blocks = a.len().div_ceil(64);
    let mut places: HashMap<char, Vec<u64>> = HashMap::new();
    for (place, character) in a.iter().enumerate() {
        places.entry(*character).or_insert_with(|| vec![0; blocks])[place / 64] |= 1 << (place % 64);
    }
    let mut row = vec![u64::MAX; blocks];
    for character in b {
        let Some(matches) = places.get(character) else { continue };
        let mut carry = false;
        for (bits, matches) in row.iter_mut().zip(matches) {
            let hit = *bits & matches;
            let (sum, over) = bits.overflowing_add(hit);
            let (sum, over_carry) = sum.overflowing_add(u64::from(carry));
            carry = over || over_carry;
            *bits = sum | (*bits & !hit);
        }
    }
    // Bits beyond the text stay 1: nothing matches there, and a carry into them finds them set.
    let beyond = blocks * 64 - a.len();
    let ones: usize = row.iter().map(|bits| bits.count_ones() as usize).sum();
    let ones_within = ones - last_ones(&row, beyond);
    a.len() - ones_within
}

/// How many of the last `count` bits, fewer than 64, are 1.
fn last_ones(row: &[u64], count: usize) -> usize {
    match row.last() {
        Some(last) if count > 0 => (last >> (64 - count)).count_ones() as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook table.
    fn by_table(a: &[char], b: &[char]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn bits_and_table_agree(a in "[abc ]{0,200}", b in "[abc ]{0,200}") {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            prop_assert_eq!(longest_common_subsequence(&a, &b), by_table(&a, &b));
        }

        #[test]
        fn it_is_symmetric_and_within_its_range(a in "\\PC{0,80}", b in "\\PC{0,80}") {
            let ratio = token_set_ratio(&a, &b);
            prop_assert!((0.0..=1.0).contains(&ratio));
            prop_assert_eq!(ratio, token_set_ratio(&b, &a));
        }
    }

    #[test]
    fn ten_megabytes_are_cut() {
        let long: String = (0..2_000_000).map(|number| format!("w{number} ")).collect();
        assert!(token_set_ratio(&long, "w1 w2") > 0.99);
    }
}
