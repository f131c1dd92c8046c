//! The significant words of a text.

/// Function words. Negations are not among them.
const GRAMMAR: &[&str] = &[
    "about", "also", "and", "are", "been", "but", "for", "from", "had", "has", "have", "her", "his", "into",
    "its", "she", "that", "the", "their", "they", "this", "was", "were", "which", "who", "with",
];

const NEGATIONS: &[&str] = &["never", "not", "neither", "nor", "none", "without"];

/// Shortest word that counts, in characters; numbers count at any length.
const WORD_CHARS_MIN: usize = 3;

/// The words that carry meaning, in lower case, each where it first stands. Negations are left out.
pub(super) fn content(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in all(text) {
        let counts = word.chars().count() >= WORD_CHARS_MIN || word.chars().any(char::is_numeric);
        if counts && !GRAMMAR.contains(&&*word) && !NEGATIONS.contains(&&*word) && !found.contains(&word) {
            found.push(word);
            if found.len() == WORDS_MAX {
                break;
            }
        }
    }
    found
}

/// Most words of a text that count: a prompt may hold megabytes, and each word is compared with those before it.
const WORDS_MAX: usize = 2_000;

/// Whether a text has a negation.
pub(super) fn is_negated(text: &str) -> bool {
    all(text).any(|word| NEGATIONS.contains(&&*word))
}

fn all(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_grammar_do_not_count() {
        let text = "Marie Curie, who was born in 1867, was Marie.";
        assert_eq!(content(text), ["marie", "curie", "born", "1867"]);
        assert!(!is_negated(text));
        assert!(is_negated("She was not born."));
        assert_eq!(content("It is as it is, not."), Vec::<String>::new());
    }
}
