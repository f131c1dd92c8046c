//! Which kind of follow-up a recorded prompt is, told by its opening words.

use domain::PromptKind;

/// Characters of a prompt that are looked at: the request stands there, and parser messages and queries, which
/// may hold any word, come later.
const OPENING_CHARS_MAX: usize = 110;

/// Words that only one kind uses, looked for in this order.
const MARKS: &[(&str, PromptKind)] = &[
    ("empty result", PromptKind::EmptyResult),
    ("formatting was", PromptKind::Formatting),
    ("not the expected", PromptKind::Content),
    ("syntax error", PromptKind::Syntax),
    ("code block", PromptKind::Structure),
];

/// The kind, or nothing for a text that is none of the known follow-ups.
pub(super) fn recognise(prompt: &str) -> Option<PromptKind> {
    let opening: String = prompt.chars().take(OPENING_CHARS_MAX).collect::<String>().to_lowercase();
    MARKS.iter().find(|(mark, _)| opening.contains(mark)).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_decides_and_a_message_further_on_does_not() {
        assert_eq!(
            recognise("There is a syntax error in it: found 'empty result'"),
            Some(PromptKind::EmptyResult)
        );
        let late = format!("The formatting was altered. {} syntax error", "x".repeat(100));
        assert_eq!(recognise(&late), Some(PromptKind::Formatting));
        assert_eq!(recognise("What a lovely day"), None);
    }
}
