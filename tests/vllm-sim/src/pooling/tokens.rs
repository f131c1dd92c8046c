//! A classifier's tokens: one per character, so that its questions, which come as token ids, can be read back.
//!
//! They frame a text as RoBERTa's tokenizer does, `<s> A </s> </s> B </s>`, and share its trap: a text that spells one
//! of these gets that very token.

/// The token `<s>`, which opens every text.
pub const OPENING: u32 = 0;
/// The token `</s>`, which ends one and parts two.
pub const SEPARATOR: u32 = 2;
/// The token of the character with number 0; the tokens from 4 on are characters.
const FIRST: u32 = 4;

/// The tokens of a text without its frame.
pub fn encode(text: &str) -> Vec<u32> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let special =
            [("</s>", SEPARATOR), ("<s>", OPENING)].into_iter().find(|(word, _)| rest.starts_with(word));
        let (token, length) =
            special.map_or((FIRST + u32::from(c), c.len_utf8()), |(word, token)| (token, word.len()));
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

/// The same with its frame.
pub fn framed(text: &str) -> Vec<u32> {
    [&[OPENING][..], &encode(text), &[SEPARATOR]].concat()
}

/// The texts between separators, the empty ones left out.
///
/// # Errors
/// The first invalid token.
pub fn decode(tokens: &[u32]) -> Result<Vec<String>, u32> {
    let mut texts = vec![String::new()];
    for &token in tokens {
        match token {
            SEPARATOR => texts.push(String::new()),
            // Padding and unknown, which this tokenizer never makes, and the opening have no text.
            0..FIRST => {}
            _ => {
                let c = char::from_u32(token - FIRST).ok_or(token)?;
                if let Some(text) = texts.last_mut() {
                    text.push(c);
                }
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_spells_a_separator_gets_one() {
        assert_eq!(encode("a</s><s>"), [FIRST + 97, SEPARATOR, OPENING]);
        assert_eq!(framed(""), [OPENING, SEPARATOR]);
        assert_eq!(decode(&[OPENING, u32::MAX]), Err(u32::MAX));
    }

    proptest! {
        #[test]
        fn pairs_are_read_back(a in "[^<]{1,20}", b in "[^<]{1,20}") {
            let joined = [framed(&a), vec![SEPARATOR], encode(&b), vec![SEPARATOR]].concat();
            prop_assert_eq!(decode(&joined), Ok(vec![a, b]));
        }
    }
}
