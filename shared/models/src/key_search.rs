//! Finds a key in a text of a server, in whatever way it is written there.
//!
//! Whoever quotes a key may quote it in another case or backwards, as hexadecimal digits or base64, with its characters escaped
//! for JSON or an address, and broken into lines. A text is therefore read twice, each time without what no key has: as it stands,
//! and with escapes as the characters that they mean. Both times one automaton looks for all forms of the key, so that the time
//! grows with the length of the text alone, and nothing of the text is copied unless the key is in it.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shortest key that is searched for, in bytes. A shorter one is a placeholder such as `EMPTY`, and would be found in unrelated
/// texts.
pub(crate) const SEARCHED_KEY_BYTES_MIN: usize = 8;

/// The text that replaces a key.
const SCRUBBED: &str = "[key]";

/// The search for one key: an automaton of all its forms.
pub(crate) struct KeySearch(NFA);

impl KeySearch {
    /// The search for this key; `None` if it is shorter than [`SEARCHED_KEY_BYTES_MIN`].
    pub(crate) fn new(key: &str) -> Option<Self> {
        if key.len() < SEARCHED_KEY_BYTES_MIN {
            return None;
        }
        // A key file is too short for the automaton's limits to matter.
        NFA::builder().ascii_case_insensitive(true).build(forms_of(key)).ok().map(Self)
    }

    /// The text with `[key]` in place of the key.
    pub(crate) fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // First as it stands: escapes could read a character before the key and the first ones of the key as one.
        let text = replace(text, &self.find(text.as_bytes(), as_it_stands));
        let found = self.find(text.as_bytes(), unescaped);
        if found.is_empty() { text } else { Cow::Owned(replace(&text, &found).into_owned()) }
    }

    /// The parts of a text that are the key as somebody reads it, in order.
    fn find(&self, text: &[u8], read: Reader) -> Vec<Range<usize>> {
        let Self(forms) = self;
        let mut found = Vec::new();
        let Ok(start) = forms.start_state(Anchored::No) else { return found };
        // What is found next begins at `begin` or later: there the automaton was where it starts.
        let (mut state, mut begin, mut at) = (start, 0, 0);
        while let Some((byte, end)) = next(text, at, read) {
            at = end;
            state = forms.next_state(Anchored::No, state, byte);
            if state == start {
                begin = end;
            } else if forms.is_match(state) {
                let lengths = (0..forms.match_len(state))
                    .map(|index| forms.pattern_len(forms.match_pattern(state, index)));
                found.extend(lengths.max().and_then(|length| last(&text[..end], begin, read, length)));
                (state, begin) = (start, end);
            }
        }
        found
    }
}

/// Reads the first byte, or the first escape, of what is left of a text: what it means, and how many bytes it has there.
type Reader = fn(&[u8]) -> (u8, usize);

/// The next byte that a key may have, and where it ends. Blanks, control characters and everything beyond ASCII are passed over: no
/// key that a header can carry has them.
fn next(text: &[u8], mut at: usize, read: Reader) -> Option<(u8, usize)> {
    while at < text.len() {
        let (byte, length) = read(&text[at..]);
        at += length;
        if byte.is_ascii_graphic() {
            return Some((byte, at));
        }
    }
    None
}

/// Where the last so many bytes are that are read between `begin` and the end of the text.
fn last(text: &[u8], begin: usize, read: Reader, count: usize) -> Option<Range<usize>> {
    let mut begins = Vec::new();
    let mut at = begin;
    while at < text.len() {
        let (byte, length) = read(&text[at..]);
        if byte.is_ascii_graphic() {
            begins.push(at);
        }
        at += length;
    }
    Some(*begins.iter().nth_back(count - 1)?..text.len())
}

fn as_it_stands(rest: &[u8]) -> (u8, usize) {
    (rest[0], 1)
}

fn unescaped(rest: &[u8]) -> (u8, usize) {
    match rest[0] {
        b'\\' => after_backslashes(rest),
        b'%' => after_percent(rest),
        byte => (byte, 1),
    }
}

/// The key itself, backwards, in hexadecimal digits, and as it appears in the base64 (RFC 4648, sections 4 and 5) of a longer text,
/// at each of three possible offsets; each also as it reads if what looks like an escape in it is one.
fn forms_of(key: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![
        key.as_bytes().to_vec(),
        key.bytes().rev().collect(),
        key.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
    ];
    for before in 0..3 {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(key.bytes()).collect();
        // Of the characters at both ends, some bits are of what stands before and after.
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.push(encoded.as_bytes()[first..end].to_vec());
        }
    }
    let meant: Vec<_> = forms.iter().map(|form| meant(form)).collect();
    forms.extend(meant);
    forms.retain(|form| form.len() >= SEARCHED_KEY_BYTES_MIN);
    forms.sort();
    forms.dedup();
    forms
}

fn meant(form: &[u8]) -> Vec<u8> {
    let mut at = 0;
    let byte = || {
        let (byte, end) = next(form, at, unescaped)?;
        at = end;
        Some(byte)
    };
    std::iter::from_fn(byte).collect()
}

/// Reads a backslash, or several, as in a text that was escaped more than once, with what belongs to them.
fn after_backslashes(rest: &[u8]) -> (u8, usize) {
    let count = rest.iter().take_while(|byte| **byte == b'\\').count();
    let (byte, length) = match &rest[count..] {
        [b'u', b'0', b'0', high, low, ..] if let Some(byte) = of_digits(*high, *low) => (byte, 5),
        [b'x', high, low, ..] if let Some(byte) = of_digits(*high, *low) => (byte, 3),
        [b'n' | b'r' | b't', ..] => (b' ', 1),
        [byte, ..] => (*byte, 1),
        [] => (b' ', 0),
    };
    (byte, count + length)
}

/// The same for a percent sign; `%25` is one that was escaped again.
fn after_percent(rest: &[u8]) -> (u8, usize) {
    let mut at = 1;
    while let [high, low, after @ ..] = &rest[at..]
        && let Some(byte) = of_digits(*high, *low)
    {
        if !(byte == b'%' && matches!(after, [high, low, ..] if of_digits(*high, *low).is_some())) {
            return (byte, at + 2);
        }
        at += 2;
    }
    (b'%', 1)
}

/// The byte that two hexadecimal digits are.
fn of_digits(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

fn replace<'a>(text: &'a str, found: &[Range<usize>]) -> Cow<'a, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut scrubbed = String::with_capacity(text.len());
    let mut end = 0;
    for place in found {
        scrubbed.push_str(&text[end..place.start]);
        scrubbed.push_str(SCRUBBED);
        end = place.end;
    }
    scrubbed.push_str(&text[end..]);
    Cow::Owned(scrubbed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "sk-Very+Secret/42";

    fn scrubbed(key: &str, text: &str) -> String {
        KeySearch::new(key).unwrap().scrub(text).into_owned()
    }

    fn each(key: &str, written: impl Fn(u8) -> String) -> String {
        key.bytes().map(written).collect()
    }

    #[test]
    fn a_key_is_found_however_it_is_written() {
        for written in [
            KEY.to_owned(),
            KEY.to_lowercase(),
            KEY.to_uppercase(),
            KEY.chars().rev().collect(),
            KEY.replace('/', r"\/"),
            KEY.replace('/', r"\\\/"),
            each(KEY, |byte| format!(r"\u{byte:04x}")),
            each(KEY, |byte| format!(r"\u{byte:04X}")),
            each(KEY, |byte| format!(r"\\u{byte:04x}")),
            each(KEY, |byte| format!(r"\x{byte:02x}")),
            KEY.replace('+', "%2B").replace('/', "%2f"),
            KEY.replace('+', "%252B").replace('/', "%25252f"),
            each(KEY, |byte| format!("%{byte:02X}")),
            each(KEY, |byte| format!("{byte:02x}")),
            each(KEY, |byte| format!("{byte:02X} ")).trim_end().to_owned(),
            each(KEY, |byte| format!("{} ", char::from(byte))).trim_end().to_owned(),
            KEY.replace("Secret", "\r\n\tSecret"),
            KEY.replace("Secret", r"\n  Secret"),
            KEY.replace("Secret", "\u{200b}\u{a0}Sec\u{ad}ret"),
        ] {
            assert_eq!(scrubbed(KEY, &format!("no: {written}!")), "no: [key]!", "{written}");
            let twice = format!("100 {written}\n{written}é");
            let shown = scrubbed(KEY, &twice);
            assert_eq!(shown.matches("[key]").count(), 2, "{twice}: {shown}");
        }
        for before in ["", "u", "u:", "u: ", "Bearer "] {
            for after in ["", "\n", ", you"] {
                let text = format!("{before}{KEY}{after}");
                for encoded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    for written in [encoded.clone(), encoded.replace('/', r"\/"), encoded.replace('+', "%2b")]
                    {
                        assert!(scrubbed(KEY, &written).contains("[key]"), "{text}: {written}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_key_that_looks_escaped_is_found_too() {
        for key in [r"ab%41\u0042cd%", r"\\\n\n\n73ab73", "73ab73ab73", "u0073ab73", r"abcdefgh%2"] {
            for text in [key.to_owned(), format!("%{key}"), format!(r"\{key}5"), format!(r"\u00{key}")] {
                assert!(scrubbed(key, &text).contains("[key]"), "{key} in {text}");
            }
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        assert!(KeySearch::new("EMPTY").is_none() && KeySearch::new("").is_none());
        let search = KeySearch::new(KEY).unwrap();
        for text in ["", r"\", "%", "%2", r"C:\new\x4\u00", "100 % sk-very", "\u{feff}é", &KEY[1..]] {
            assert!(matches!(search.scrub(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_found_in_any_text(
            key in "[!-~]{8,40}", before in r"(?s)[\\%u0-9a-f é\n]{0,9}", after in r"(?s).{0,9}",
        ) {
            let text = format!("{before}{key}{after}");
            prop_assert!(!scrubbed(&key, &text).contains(&key));
        }

        #[test]
        fn any_text_can_be_read(text in r"(?s)[\\%u02x5é\n ]{0,60}") {
            let _ = KeySearch::new("00000000").unwrap().scrub(&text);
        }
    }
}
