//! The word that a reply begins with, of several that were offered.

/// The index of the word with which the first line of a reply that is not blank begins: in any case, optionally in quotes or
/// marks of emphasis. The rest is not read, because searching for a word anywhere would read "not CORRECT" as CORRECT.
pub(crate) fn of(reply: &str, words: &[String]) -> Option<usize> {
    let line = reply.lines().map(|line| line.trim_matches(is_mark)).find(|line| !line.is_empty())?;
    let line = line.to_lowercase();
    let begins = |word: &str| {
        let rest = line.strip_prefix(&word.to_lowercase())?;
        (!rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')).then_some(word.len())
    };
    // The longest match: one word may be the beginning of another.
    let found = words.iter().enumerate().filter_map(|(number, word)| Some((begins(word)?, number)));
    found.max().map(|(_, number)| number)
}

/// Characters allowed around the word: white space, quotes, emphasis, brackets.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric()
}
