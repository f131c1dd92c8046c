//! Numbers that JSON does not have: `NaN` and `Infinity`, which Python writes, and numbers beyond all that a computer counts
//! with. They stand beside answers, such as in probabilities of tokens, and an answer is not thrown away for them.

/// Words of Python and JavaScript for numbers that are none.
const WORDS: [&[u8]; 6] = [b"NaN", b"-NaN", b"Infinity", b"-Infinity", b"nan", b"inf"];

/// The JSON with `null` in the place of such numbers; `None` if it has none.
pub(super) fn without_odd_numbers(json: &[u8]) -> Option<Vec<u8>> {
    let (mut mended, mut is_mended) = (Vec::with_capacity(json.len()), false);
    let mut rest = json;
    while let Some(first) = rest.first() {
        let length = match first {
            b'"' => text_length(rest),
            b'-' | b'+' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => word_length(rest),
            _ => 1,
        };
        let (part, after) = rest.split_at(length);
        let is_odd = WORDS.contains(&part) || is_too_large(part);
        mended.extend_from_slice(if is_odd { b"null" } else { part });
        is_mended |= is_odd;
        rest = after;
    }
    is_mended.then_some(mended)
}

/// Bytes of the text that begins here, with its quotes.
fn text_length(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

/// Bytes of the number or the word that begins here.
fn word_length(json: &[u8]) -> usize {
    let is_end = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
    json.iter().position(is_end).unwrap_or(json.len())
}

fn is_too_large(word: &[u8]) -> bool {
    let is_number = word.iter().any(u8::is_ascii_digit);
    let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok());
    is_number && number.is_some_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_number_of_json_is_replaced() {
        for (json, expected) in [
            (r#"{"a":NaN,"b":[-Infinity, 1e999,-1e999]}"#, Some(r#"{"a":null,"b":[null, null,null]}"#)),
            (r#"{"a":"NaN \" Infinity","b":NaN}"#, Some(r#"{"a":"NaN \" Infinity","b":null}"#)),
            (r#"{"a":[1.5e300,-0,true,null],"b":"1e999"}"#, None),
            (r#"{"a":"never ends \"#, None),
            ("", None),
        ] {
            let mended = without_odd_numbers(json.as_bytes()).map(|json| String::from_utf8(json).unwrap());
            assert_eq!(mended.as_deref(), expected, "{json}");
        }
    }
}
