//! Separates `<think>` blocks from answers.
//!
//! If the server has no reasoning parser, reasoning models write their thoughts into the answer:
//! `<think>…</think>answer`. Some chat templates put the opening tag into the prompt, so that only the closing one
//! appears; a model that runs out of tokens never closes it. Reasoning is stored and never scored.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Splits a model's output into the text to score and its reasoning.
///
/// - A block is removed, with the white space after it. The first closing tag ends it, because thoughts may mention
///   the opening tag. The next rule removes truly nested blocks completely.
/// - A closing tag without an opening one ends a block that began with the text (the template opened it).
/// - An opening tag without a closing one begins a block that ends with the text (the tokens ran out).
///
/// `field` is the reasoning that the server sent separately; it comes first. Reasoning of only white space counts as
/// none.
pub fn split(text: String, field: Option<String>) -> (String, Option<String>) {
    if !text.contains("think>") {
        return (text, field.filter(|reasoning| !reasoning.trim().is_empty()));
    }
    let mut answer = String::new();
    let mut thoughts: Vec<String> = field.into_iter().collect();
    let mut block = String::new();
    let mut inside = false;
    let mut rest = text.as_str();
    while let Some((at, tag)) = next_tag(rest) {
        let before = &rest[..at];
        rest = &rest[at + tag.len()..];
        if inside { &mut block } else { &mut answer }.push_str(before);
        if tag == OPEN {
            inside = true;
            continue;
        }
        if !inside {
            // The template opened it: everything so far is reasoning.
            block = std::mem::take(&mut answer);
        }
        inside = false;
        thoughts.push(std::mem::take(&mut block));
        rest = rest.trim_start();
    }
    if inside {
        block.push_str(rest);
        thoughts.push(block);
    } else {
        answer.push_str(rest);
    }
    thoughts.retain(|thought| !thought.trim().is_empty());
    (answer, if thoughts.is_empty() { None } else { Some(thoughts.join("\n")) })
}

/// The first tag of either kind, with its position.
fn next_tag(text: &str) -> Option<(usize, &'static str)> {
    let open = text.find(OPEN);
    let close = text.find(CLOSE);
    match (open, close) {
        (Some(open), Some(close)) if close < open => Some((close, CLOSE)),
        (Some(open), _) => Some((open, OPEN)),
        (None, close) => close.map(|at| (at, CLOSE)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str) -> (String, Option<String>) {
        split(text.to_owned(), None)
    }

    #[test]
    fn blocks_are_taken_out_of_the_answer() {
        for (text, answer, reasoning) in [
            ("plain", "plain", None),
            ("I think> so", "I think> so", None),
            ("<think>a</think>\n\nb", "b", Some("a")),
            ("<think>\n\n</think>\n\nb", "b", None),
            ("x <think>a</think> y <think>b</think>z", "x y z", Some("a\nb")),
            // The template opened the block.
            ("a</think>\nb", "b", Some("a")),
            // The tokens ran out.
            ("<think>a <b", "", Some("a <b")),
            ("b<think>a", "b", Some("a")),
            // Nested, in earnest and in passing.
            ("<think>a<think>b</think>c</think>d", "d", Some("ab\nc")),
            ("<think>a<think>b</think>c", "c", Some("ab")),
            // One closing tag too many: what stood before it counts as thought.
            ("<think>a</think>b</think>c", "c", Some("a\nb")),
            ("<think></think>", "", None),
        ] {
            let (got_answer, got_reasoning) = parts(text);
            assert_eq!((got_answer.as_str(), got_reasoning.as_deref()), (answer, reasoning), "{text:?}");
        }
    }

    #[test]
    fn the_servers_own_field_comes_first() {
        assert_eq!(
            split("<think>b</think>c".into(), Some("a".into())),
            ("c".to_owned(), Some("a\nb".to_owned()))
        );
        assert_eq!(split("c".into(), Some("a".into())), ("c".to_owned(), Some("a".to_owned())));
        assert_eq!(split("c".into(), Some(" ".into())), ("c".to_owned(), None));
    }

    proptest! {
        #[test]
        fn no_tag_is_ever_left_and_plain_text_never_changes(
            pieces in proptest::collection::vec(
                prop_oneof![Just("<think>".to_owned()), Just("</think>".to_owned()), "[a-z é\n]{0,6}"], 0..12)
        ) {
            let text = pieces.concat();
            let (answer, _) = parts(&text);
            prop_assert!(!answer.contains(OPEN) && !answer.contains(CLOSE));
            if !text.contains("think>") {
                prop_assert_eq!(answer, text);
            }
        }
    }
}
