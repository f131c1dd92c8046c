//! Text without meaning: random letters, and prose of any length.

use crate::identity::Draw;

/// Words of random letters, exactly `tokens` tokens of four bytes.
pub(super) fn letters(draw: &mut Draw, tokens: u32) -> String {
    let mut text = String::with_capacity(tokens as usize * 4);
    for _ in 0..tokens {
        let mut bits = draw.next_u64();
        for _ in 0..3 {
            text.push(char::from(b'a' + (bits % 26) as u8));
            bits /= 26;
        }
        // Now and then a line end, so that line-based extraction has something to do.
        text.push(if bits.is_multiple_of(12) { '\n' } else { ' ' });
    }
    text
}

/// Sentences without meaning, and without any code fence, list or IRI in them.
pub(super) fn prose(draw: &mut Draw, sentences: usize) -> String {
    const SUBJECTS: [&str; 6] =
        ["The graph", "This statement", "Such a query", "The first triple", "Every node", "The question"];
    const VERBS: [&str; 6] =
        ["may be read as", "seems close to", "reminds one of", "does not exclude", "depends on", "hints at"];
    const OBJECTS: [&str; 6] = [
        "several views",
        "what came before",
        "its own context",
        "a wider picture",
        "some other form",
        "the reader",
    ];
    let mut text = String::from("Let me think about this step by step.");
    for _ in 0..sentences {
        let pick = [&SUBJECTS, &VERBS, &OBJECTS].map(|words| words[draw.below(words.len())]);
        text.push(' ');
        text.push_str(&pick.join(" "));
        text.push('.');
    }
    text
}
