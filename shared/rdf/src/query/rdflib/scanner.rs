//! The terminals of rdflib's grammar, read from text as pyparsing reads them.
//!
//! There is no token list: what `<` or `?` begins depends on the context, so the rules ask for what they expect. Every
//! function skips white space and comments and reads; if it does not match, the position stays as it was.

use crate::query::tokens::{iri_length, is_name_start, is_variable_character};

/// The reading position in a text.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    at: usize,
    /// The furthest position at which something was expected and not found.
    furthest: usize,
}

/// White space between terminals: pyparsing's, which is narrower than Unicode's.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn is_name_character(c: char) -> bool {
    is_variable_character(c) || c == '-'
}

fn is_keyword_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, furthest: 0 }
    }

    /// The position, for [`Scanner::back_to`].
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Goes back to a position, to try an alternative.
    pub(super) fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    /// Where reading got stuck, in bytes.
    pub(super) fn stuck_at(&self) -> usize {
        self.furthest
    }

    /// The text from here on.
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest().trim_start_matches(is_blank);
            let rest = match rest.strip_prefix('#') {
                Some(comment) => &comment[comment.find('\n').unwrap_or(comment.len())..],
                None => rest,
            };
            let at = self.text.len() - rest.len();
            if at == self.at {
                self.furthest = self.furthest.max(at);
                return;
            }
            self.at = at;
        }
    }

    /// Skips blanks and reads; without a result the position stays as it was.
    fn terminal<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let place = self.at;
        self.skip_blanks();
        let found = read(self);
        if found.is_none() {
            self.at = place;
        }
        found
    }

    /// Reads the next `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> Option<&'a str> {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        (length > 0).then(|| self.take(length))
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&mut self) -> bool {
        self.skip_blanks();
        self.at == self.text.len()
    }

    /// A bracket or operator.
    pub(super) fn symbol(&mut self, symbol: &str) -> bool {
        self.terminal(|s| s.glued(symbol).then_some(())).is_some()
    }

    /// A bracket or operator without blanks before it.
    pub(super) fn glued(&mut self, symbol: &str) -> bool {
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    /// A keyword in any case, not as part of a longer word.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        self.terminal(|s| {
            let rest = s.rest();
            let found = rest.get(..word.len())?.eq_ignore_ascii_case(word)
                && !rest[word.len()..].starts_with(is_keyword_character)
                && !s.text[..s.at].ends_with(is_keyword_character);
            found.then(|| s.at += word.len())
        })
        .is_some()
    }

    /// Several keywords in a row.
    pub(super) fn keywords(&mut self, words: [&str; 2]) -> bool {
        let place = self.at;
        let found = words.iter().all(|word| self.keyword(word));
        if !found {
            self.at = place;
        }
        found
    }

    /// The next run of letters, digits and `_`, without reading over it: function names look like this.
    pub(super) fn peek_word(&mut self) -> &'a str {
        let place = self.at;
        self.skip_blanks();
        let word = self.take_while(is_keyword_character).unwrap_or_default();
        self.at = place;
        word
    }

    /// `?name` or `$name`, without its sign.
    pub(super) fn variable(&mut self) -> Option<&'a str> {
        self.terminal(|s| {
            if !s.glued("?") && !s.glued("$") {
                return None;
            }
            s.take_while(is_variable_character)
        })
    }

    /// `<...>`, without its brackets. Its characters are not checked.
    pub(super) fn iri_reference(&mut self) -> Option<&'a str> {
        self.terminal(Scanner::glued_iri_reference)
    }

    pub(super) fn glued_iri_reference(&mut self) -> Option<&'a str> {
        let length = iri_length(self.rest())?;
        Some(&self.take(length)[1..length - 1])
    }

    /// `prefix:` or `:`, without the colon.
    pub(super) fn prefix(&mut self) -> Option<&'a str> {
        self.terminal(Self::glued_prefix)
    }

    fn glued_prefix(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let length = if rest.starts_with(is_name_start) {
            rest.find(|c| !is_name_character(c) && c != '.').unwrap_or(rest.len())
        } else {
            0
        };
        let name = &rest[..length];
        let found = rest[length..].starts_with(':') && !name.ends_with('.');
        found.then(|| &self.take(length + 1)[..length])
    }

    /// `prefix:local`, where `local` may be empty.
    pub(super) fn prefixed_name(&mut self) -> Option<(&'a str, &'a str)> {
        self.terminal(Self::glued_prefixed_name)
    }

    pub(super) fn glued_prefixed_name(&mut self) -> Option<(&'a str, &'a str)> {
        let prefix = self.glued_prefix()?;
        let length = local_length(self.rest());
        Some((prefix, self.take(length)))
    }

    /// `_:label`, without `_:`.
    pub(super) fn blank_label(&mut self) -> Option<&'a str> {
        self.terminal(|s| {
            let label = s.rest().strip_prefix("_:")?;
            if !label.starts_with(|c: char| is_name_start(c) || c == '_' || c.is_ascii_digit()) {
                return None;
            }
            let length = label.find(|c| !is_name_character(c) && c != '.').unwrap_or(label.len());
            let length = label[..length].trim_end_matches('.').len();
            Some(&s.take(length + 2)[2..])
        })
    }

    /// `@tag`, without blanks before it and without the `@`.
    pub(super) fn glued_language(&mut self) -> Option<&'a str> {
        let tag = self.rest().strip_prefix('@')?;
        let mut length = tag.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tag.len());
        if length == 0 {
            return None;
        }
        while let Some(part) = tag[length..].strip_prefix('-') {
            match part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len()) {
                0 => break,
                more => length += more + 1,
            }
        }
        Some(&self.take(length + 1)[1..])
    }

    /// An unsigned number: its text and its XML Schema type, which follows from its form.
    pub(super) fn number(&mut self) -> Option<(&'a str, &'static str)> {
        self.terminal(Self::glued_number)
    }

    pub(super) fn glued_number(&mut self) -> Option<(&'a str, &'static str)> {
        let rest = self.rest();
        let digits =
            |from: usize| rest[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - from);
        let whole = digits(0);
        let fraction = if rest[whole..].starts_with('.') { digits(whole + 1) } else { 0 };
        let point = usize::from(rest[whole..].starts_with('.'));
        let exponent = |from: usize| {
            let mark = rest[from..].starts_with(['e', 'E']);
            let sign = usize::from(mark && rest[from + 1..].starts_with(['+', '-']));
            let length = if mark { digits(from + 1 + sign) } else { 0 };
            (length > 0).then_some(from + 1 + sign + length)
        };
        let with_fraction =
            (point > 0 && whole + fraction > 0).then(|| exponent(whole + 1 + fraction)).flatten();
        let double = with_fraction.or_else(|| if whole > 0 { exponent(whole) } else { None });
        if let Some(length) = double {
            return Some((self.take(length), "double"));
        }
        if point > 0 && fraction > 0 {
            return Some((self.take(whole + 1 + fraction), "decimal"));
        }
        (whole > 0).then(|| (self.take(whole), "integer"))
    }

    /// A quoted string with its escapes resolved.
    pub(super) fn string(&mut self) -> Option<String> {
        self.terminal(|s| {
            let rest = s.rest();
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let long = if quote == '"' { "\"\"\"" } else { "'''" };
            let (length, fence) = match quoted_length(rest, quote, long) {
                Some(length) => (length, 3),
                None => (quoted_length(rest, quote, &long[..1])?, 1),
            };
            let inside = &s.take(length)[fence..length - fence];
            Some(unescaped(inside))
        })
    }
}

/// Length of a string between two fences. The short form ends within its line and is not followed by a quote.
fn quoted_length(rest: &str, quote: char, fence: &str) -> Option<usize> {
    let inside = rest.strip_prefix(fence)?;
    let is_short = fence.len() == 1;
    let mut characters = inside.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                let (_, escaped) = characters.next()?;
                if !matches!(escaped, 'n' | 't' | 'b' | 'r' | 'f' | '\\') && escaped != quote {
                    return None;
                }
            }
            '\n' | '\r' if is_short => return None,
            c if c == quote && inside[at..].starts_with(fence) => {
                let end = at + fence.len();
                if is_short {
                    return (!inside[end..].starts_with(quote)).then_some(end + fence.len());
                }
                // The last three of a row of quotes are the closing fence.
                let more = inside[end..].chars().take_while(|c| *c == quote).count().min(2);
                return Some(end + more + fence.len());
            }
            _ => {}
        }
    }
    None
}

fn unescaped(inside: &str) -> String {
    let mut text = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        text.push(match c {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(c) => c,
                None => '\\',
            },
            c => c,
        });
    }
    text
}

/// Length of the local part of a prefixed name; a final dot ends the triple instead.
fn local_length(rest: &str) -> usize {
    let mut end = 0;
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        let length = match c {
            '\\' if rest[at + 1..].starts_with(|c: char| "_~.-!$&\"'()*+,;=/?#@%".contains(c)) => 2,
            '%' if rest
                .as_bytes()
                .get(at + 1..at + 3)
                .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
            {
                3
            }
            '.' if at > 0 => continue,
            '-' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}' if at == 0 => break,
            ':' => 1,
            c if is_name_character(c) => c.len_utf8(),
            _ => break,
        };
        end = at + length;
        while characters.offset() < end && characters.next().is_some() {}
    }
    end
}

/// Halves of characters in UTF-16, which Python has as characters of their own.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;

/// Replaces `\uXXXX` and `\UXXXXXXXX` wherever they stand, as rdflib does before it parses; `None` where one of them
/// names no character.
pub(in super::super) fn without_unicode_escapes(
    text: &str,
    takes_surrogates: bool,
) -> Option<std::borrow::Cow<'_, str>> {
    let is_escape = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'u' | b'U');
    if !text.as_bytes().windows(2).any(is_escape) {
        return Some(text.into());
    }
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        expanded.push_str(before);
        let digits =
            escape.get(2..).unwrap_or_default().bytes().take(8).take_while(u8::is_ascii_hexdigit).count();
        let length = if digits == 8 { 8 } else { 4 };
        if digits < 4 || !matches!(escape.as_bytes()[1], b'u' | b'U') {
            expanded.push('\\');
            rest = &escape[1..];
            continue;
        }
        let number = u32::from_str_radix(&escape[2..2 + length], 16).ok()?;
        rest = &escape[2 + length..];
        match char::from_u32(number) {
            Some(c) => expanded.push(c),
            None if !takes_surrogates || !SURROGATES.contains(&number) => return None,
            None => {
                // The halves of a character side by side are that character; one alone is no text outside of Python.
                let second = rest.strip_prefix("\\u").and_then(|rest| rest.get(..4));
                let second = second.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let halves =
                    [Some(number), second].map(|half| half.and_then(|half| u16::try_from(half).ok()));
                let pair = halves.into_iter().collect::<Option<Vec<u16>>>().unwrap_or_default();
                match String::from_utf16(&pair) {
                    Ok(whole) if !whole.is_empty() => {
                        expanded.push_str(&whole);
                        rest = &rest[6..];
                    }
                    _ => expanded.push(char::REPLACEMENT_CHARACTER),
                }
            }
        }
    }
    expanded.push_str(rest);
    Some(expanded.into())
}
