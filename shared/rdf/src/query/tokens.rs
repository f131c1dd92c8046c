//! A tokenizer for SPARQL that also works on text that a parser refuses.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `<...>` with an IRI inside.
    Iri,
    /// `prefix:local`, `prefix:` or `:local`.
    Prefixed,
    /// `_:label`.
    Blank,
    /// `?name` or `$name`.
    Variable,
    /// A quoted string, without language tag or datatype.
    Text,
    /// A number without sign.
    Number,
    /// `@en` and the like.
    Language,
    /// A keyword, a function name or anything else made of letters.
    Word,
    /// An operator or bracket.
    Punctuation,
    /// A character that starts no token.
    Stray,
}

/// A piece of query text. White space and comments lie between tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// Its position in the text, in bytes.
    pub range: Range<usize>,
}

/// The tokens of a query with the text they refer to.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    /// The query text.
    pub source: &'a str,
    /// Its tokens, in order.
    pub list: Vec<Token>,
}

impl<'a> Tokens<'a> {
    /// Splits a text into tokens. Any text can be split; see [`TokenKind::Stray`].
    pub fn of(source: &'a str) -> Self {
        let mut list = Vec::with_capacity(source.len() / 4);
        let mut at = 0;
        while let Some(first) = source[at..].chars().next() {
            let rest = &source[at..];
            if first.is_whitespace() || first == '\u{feff}' {
                at += first.len_utf8();
            } else if first == '#' {
                at += rest.find(['\n', '\r']).unwrap_or(rest.len());
            } else {
                let (kind, length) = next_token(rest, first);
                list.push(Token { kind, range: at..at + length });
                at += length;
            }
        }
        Self { source, list }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the text has no token.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The text of the token at an index; empty beyond the end.
    pub fn text(&self, index: usize) -> &'a str {
        self.list.get(index).map_or("", |token| &self.source[token.range.clone()])
    }

    /// The kind of the token at an index.
    pub fn kind(&self, index: usize) -> Option<TokenKind> {
        self.list.get(index).map(|token| token.kind)
    }

    /// Whether the token at an index is this keyword, in any case.
    pub fn is_word(&self, index: usize, word: &str) -> bool {
        self.kind(index) == Some(TokenKind::Word) && self.text(index).eq_ignore_ascii_case(word)
    }

    /// Whether the token at an index is this bracket or operator.
    pub fn is_punctuation(&self, index: usize, text: &str) -> bool {
        self.kind(index) == Some(TokenKind::Punctuation) && self.text(index) == text
    }

    /// For every token, the index of the matching bracket if it is a bracket that has one.
    pub fn partners(&self) -> Vec<Option<usize>> {
        let mut partners = vec![None; self.len()];
        let mut open: Vec<(usize, &str)> = Vec::new();
        for index in 0..self.len() {
            if self.kind(index) != Some(TokenKind::Punctuation) {
                continue;
            }
            let closer = match self.text(index) {
                "(" => ")",
                "[" => "]",
                "{" => "}",
                closer @ (")" | "]" | "}") => {
                    if open.last().is_some_and(|(_, expected)| *expected == closer)
                        && let Some((opener, _)) = open.pop()
                    {
                        partners[opener] = Some(index);
                        partners[index] = Some(opener);
                    }
                    continue;
                }
                _ => continue,
            };
            open.push((index, closer));
        }
        partners
    }
}

/// Kind and length in bytes of the token at the start of `rest`, whose first character is `first`.
fn next_token(rest: &str, first: char) -> (TokenKind, usize) {
    match first {
        '<' => iri_length(rest).map_or_else(|| punctuation(rest), |length| (TokenKind::Iri, length)),
        '"' | '\'' => {
            text_length(rest, first).map_or((TokenKind::Stray, 1), |length| (TokenKind::Text, length))
        }
        '?' | '$' => match name_length(&rest[1..], is_variable_character) {
            0 => (TokenKind::Punctuation, 1),
            length => (TokenKind::Variable, 1 + length),
        },
        '_' if rest.starts_with("_:") => match local_length(&rest[2..]) {
            0 => (TokenKind::Stray, 1),
            length => (TokenKind::Blank, 2 + length),
        },
        '@' => match name_length(&rest[1..], |c| c.is_ascii_alphanumeric() || c == '-') {
            0 => (TokenKind::Stray, 1),
            length => (TokenKind::Language, 1 + length),
        },
        ':' => (TokenKind::Prefixed, 1 + local_length(&rest[1..])),
        '0'..='9' => (TokenKind::Number, number_length(rest)),
        '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            (TokenKind::Number, number_length(rest))
        }
        c if is_name_start(c) || c == '_' => word_or_prefixed(rest),
        _ => punctuation(rest),
    }
}

fn word_or_prefixed(rest: &str) -> (TokenKind, usize) {
    let prefix = name_length(rest, |c| is_variable_character(c) || matches!(c, '-' | '.'));
    let prefix = rest[..prefix].trim_end_matches('.').len();
    if rest[prefix..].starts_with(':') {
        return (TokenKind::Prefixed, prefix + 1 + local_length(&rest[prefix + 1..]));
    }
    // Without a colon it is a keyword, which has neither hyphen nor dot.
    (TokenKind::Word, name_length(rest, is_variable_character).max(1))
}

fn punctuation(rest: &str) -> (TokenKind, usize) {
    for operator in ["^^", "||", "&&", "!=", "<=", ">="] {
        if rest.starts_with(operator) {
            return (TokenKind::Punctuation, operator.len());
        }
    }
    let first = rest.chars().next().unwrap_or(' ');
    let kind =
        if "(){}[].,;=<>!+-*/|^?&".contains(first) { TokenKind::Punctuation } else { TokenKind::Stray };
    (kind, first.len_utf8())
}

/// Length of `<...>` as SPARQL's IRIREF allows it.
pub(super) fn iri_length(rest: &str) -> Option<usize> {
    let end = rest
        .strip_prefix('<')?
        .find(|c: char| matches!(c, '<' | '>' | '"' | '{' | '}' | '|' | '^' | '`' | '\\') || c <= ' ')?;
    rest[1 + end..].starts_with('>').then_some(end + 2)
}

/// Length of a quoted string with its quotes, if it is closed; between single quotes it ends within its line.
fn text_length(rest: &str, quote: char) -> Option<usize> {
    let long = if quote == '"' { "\"\"\"" } else { "'''" };
    let fence = if rest.starts_with(long) { long } else { &long[..1] };
    let inner = &rest[fence.len()..];
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if inner[at..].starts_with(fence) {
            return Some(at + 2 * fence.len());
        } else if fence.len() == 1 && matches!(c, '\n' | '\r') {
            return None;
        }
    }
    None
}

fn name_length(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|c| !belongs(c)).unwrap_or(rest.len())
}

/// SPARQL's `PN_CHARS_BASE`.
pub(super) fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
        | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

/// What a variable's name is made of: `PN_CHARS` without the hyphen.
pub(super) fn is_variable_character(c: char) -> bool {
    is_name_start(c)
        || c.is_ascii_digit()
        || matches!(c, '_' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// Length of the local part of a prefixed name, with its escapes; a final dot ends the triple instead.
fn local_length(rest: &str) -> usize {
    let mut end = 0;
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some((_, escaped)) if "_~.-!$&'()*+,;=/?#@%".contains(escaped) => end = at + 2,
                _ => break,
            },
            '.' => {}
            c if is_variable_character(c) || matches!(c, '-' | ':' | '%') => end = at + c.len_utf8(),
            _ => break,
        }
    }
    end
}

fn number_length(rest: &str) -> usize {
    let digits = |from: usize| name_length(&rest[from..], |c| c.is_ascii_digit());
    let mut length = digits(0);
    if rest[length..].starts_with('.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(source: &str) -> Vec<&str> {
        let tokens = Tokens::of(source);
        (0..tokens.len()).map(|index| tokens.text(index)).collect()
    }

    #[test]
    fn a_query_falls_into_its_parts() {
        assert_eq!(
            texts("SELECT ?x{?x a:b.c <http://e/#f>;:3630 'it''s'@en-GB,\"\"\"a\"b\"\"\"^^x:t. # end\n}"),
            [
                "SELECT",
                "?x",
                "{",
                "?x",
                "a:b.c",
                "<http://e/#f>",
                ";",
                ":3630",
                "'it'",
                "'s'",
                "@en-GB",
                ",",
                "\"\"\"a\"b\"\"\"",
                "^^",
                "x:t",
                ".",
                "}"
            ]
        );
    }

    #[test]
    fn less_than_is_no_iri() {
        assert_eq!(texts("?a<5 && ?b>=2.5e3."), ["?a", "<", "5", "&&", "?b", ">=", "2.5e3", "."]);
    }

    #[test]
    fn open_strings_are_stray_quotes() {
        let tokens = Tokens::of("\"open\n?x");
        assert_eq!(tokens.kind(0), Some(TokenKind::Stray));
        assert_eq!(tokens.text(2), "?x");
    }

    #[test]
    fn brackets_know_their_partners() {
        let tokens = Tokens::of("{ ( ] ) }");
        assert_eq!(tokens.partners(), [Some(4), Some(3), None, Some(1), Some(0)]);
    }

    proptest! {
        #[test]
        fn tokens_cover_any_text_in_order(text in "\\PC{0,60}|[<>\"'#?:_.@\\\\{}a1 \n]{0,60}") {
            let tokens = Tokens::of(&text);
            let mut end = 0;
            for token in &tokens.list {
                prop_assert!(token.range.start >= end && token.range.end > token.range.start);
                end = token.range.end;
            }
        }
    }
}
