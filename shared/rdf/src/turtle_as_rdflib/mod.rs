//! Turtle that rdflib reads and the standard refuses, and the other way round.
//!
//! The document is split into tokens and, where it has the structure of rdflib's Turtle, written again as the standard has it.
//! What cannot be read this way is left to the parser.

mod writer;

use std::collections::HashMap;

use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};

use crate::syntax_error::SyntaxError;
use writer::Writer;

/// The predicate of triples that stand for nothing.
pub(crate) const NOTHING: &str = "urn:kgfleet:nothing";

/// The datatype, up to its tag, of texts whose language has capitals, which the parser would not keep.
const TAG: &str = "urn:kgfleet:language:";

/// The beginning of names that stand for what the standard has no place for.
const NAMED: &str = "urn:kgfleet:term:";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// An IRI in angle brackets, a literal, a number or a name, as the standard has it.
    Term(String),
    /// A bracket, a stop or another sign.
    Sign(char),
    /// `@prefix`, `@base` and the like, with what follows up to their stop.
    Directive(String),
}

/// A document as the standard has it.
pub(crate) struct Rewritten {
    pub(crate) text: String,
    /// Whether the document itself means something else by the standard.
    pub(crate) differs: bool,
    /// Whether it could be written again. Its IRIs are then those of rdflib, which no parser needs to check.
    pub(crate) is_written: bool,
}

/// Characters that no IRI has, so that rdflib cannot write it.
pub(crate) const FOREIGN: [char; 10] = ['<', '>', '"', ' ', '{', '}', '|', '\\', '^', '`'];

/// Refuses names that rdflib cannot write.
pub(crate) fn check_names(triples: &[Triple]) -> Result<(), SyntaxError> {
    let is_foreign = |name: &NamedNode| name.as_str().contains(FOREIGN);
    let has_foreign = |triple: &Triple| {
        matches!(&triple.subject, NamedOrBlankNode::NamedNode(name) if is_foreign(name))
            || is_foreign(&triple.predicate)
            || matches!(&triple.object, Term::NamedNode(name) if is_foreign(name))
    };
    match triples.iter().any(has_foreign) {
        true => Err(SyntaxError::new("a name has characters that no IRI has")),
        false => Ok(()),
    }
}

pub(crate) fn rewritten(text: &str) -> Result<Rewritten, SyntaxError> {
    if text.starts_with('\u{feff}') {
        return Err(SyntaxError::new("the document begins with a byte order mark"));
    }
    let tokens = Tokens::of(text)?;
    let written = tokens.as_ref().and_then(|(tokens, _)| Writer::of(tokens).document());
    let is_written = written.is_some();
    let differs = is_written && tokens.is_some_and(|(_, differs)| differs);
    Ok(Rewritten { text: written.unwrap_or_else(|| text.to_owned()), differs, is_written })
}

/// Gives a text the language that stands in its datatype, and a subject or predicate the name that it has no place for.
pub(crate) fn restore(triple: &mut Triple) {
    if let NamedOrBlankNode::NamedNode(subject) = &mut triple.subject {
        restore_name(subject);
    }
    restore_name(&mut triple.predicate);
    if let Term::Literal(literal) = &mut triple.object
        && let Some(tag) = literal.datatype().as_str().strip_prefix(TAG)
    {
        *literal = Literal::new_language_tagged_literal_unchecked(literal.value(), tag);
    }
}

/// The length of the number with which a text begins: of a double, a decimal or an integer.
fn number_length(text: &str) -> Option<usize> {
    let digits_from = |at: usize| {
        let digits = text.bytes().skip(at).take_while(u8::is_ascii_digit).count();
        (digits > 0).then_some(at + digits)
    };
    let sign = usize::from(text.starts_with(['+', '-']));
    let whole = digits_from(sign);
    let point = whole.unwrap_or(sign);
    let has_point = text[point..].starts_with('.');
    let part = if has_point { digits_from(point + 1) } else { None };
    let mantissa = part.or_else(|| whole.map(|end| end + usize::from(has_point)))?;
    if text[mantissa..].starts_with(['e', 'E']) {
        let signed = usize::from(text[mantissa + 1..].starts_with(['+', '-']));
        if let Some(end) = digits_from(mantissa + 1 + signed) {
            return Some(end);
        }
    }
    part.or(whole)
}

fn restore_name(name: &mut NamedNode) {
    if let Some(digits) = name.as_str().strip_prefix(NAMED) {
        let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
            *name = NamedNode::new_unchecked(text);
        }
    }
}

/// The tokens of a document.
struct Tokens<'a> {
    rest: &'a str,
    namespaces: HashMap<String, String>,
    list: Vec<Token>,
    /// Whether a token has a language that the parser would not keep, or a comment more than one line for it.
    differs: bool,
}

/// Writes a character that ends no text.
fn escape(c: char, written: &mut String) {
    match c {
        '"' | '\'' | '\\' => written.extend(['\\', c]),
        '\n' => written.push_str("\\n"),
        '\r' => written.push_str("\\r"),
        c => written.push(c),
    }
}

/// Whether rdflib takes a text for a language tag.
pub(crate) fn is_language(tag: &str) -> bool {
    tag.split('-').enumerate().all(|(at, part)| {
        let is_part = |c: char| c.is_ascii_alphabetic() || at > 0 && c.is_ascii_digit();
        !part.is_empty() && part.chars().all(is_part)
    })
}

fn is_name(c: char) -> bool {
    !c.is_ascii_control() && !" !\"#$&'()*,+/;<=>?@[\\]^`{|}~".contains(c)
}

impl<'a> Tokens<'a> {
    /// `None` where the text has something else.
    fn of(text: &'a str) -> Result<Option<(Vec<Token>, bool)>, SyntaxError> {
        let mut tokens = Self { rest: text, namespaces: HashMap::new(), list: Vec::new(), differs: false };
        loop {
            tokens.skip()?;
            let Some(c) = tokens.rest.chars().next() else { return Ok(Some((tokens.list, tokens.differs))) };
            let token = match c {
                '<' => tokens.iri().map(Token::Term),
                '"' | '\'' => tokens.text(c)?.map(Token::Term),
                '@' => tokens.directive()?,
                _ if tokens.has_directive() => tokens.directive()?,
                '(' | ')' | '[' | ']' | ';' | ',' | '!' | '^' => {
                    tokens.rest = &tokens.rest[1..];
                    Some(Token::Sign(c))
                }
                '.' if !tokens.rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    tokens.rest = &tokens.rest[1..];
                    Some(Token::Sign(c))
                }
                '+' | '.' => tokens.number(),
                '-' | '0'..='9' => tokens.number(),
                c if is_name(c) => tokens.name()?,
                _ => None,
            };
            match token {
                Some(token) => tokens.list.push(token),
                None => return Ok(None),
            }
        }
    }

    /// Passes over blanks and comments. A carriage return alone ends no line.
    fn skip(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n']);
            if let Some(after) = self.rest.strip_prefix("\r\n") {
                self.rest = after;
            } else if self.rest.starts_with('\r') && self.rest.len() > 1 {
                return Err(SyntaxError::new("a carriage return alone ends no line"));
            } else if let Some(after) = self.rest.strip_prefix('\r') {
                self.rest = after;
            } else if self.rest.starts_with('#') {
                let comment = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
                self.differs |= comment.trim_end_matches('\r').contains('\r');
            } else {
                return Ok(());
            }
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn iri(&mut self) -> Option<String> {
        let end = self.rest.find('>')?;
        (!self.rest[..end].contains('\n')).then(|| self.take(end + 1).to_owned())
    }

    fn number(&mut self) -> Option<Token> {
        let length = number_length(self.rest)?;
        Some(Token::Term(self.take(length).to_owned()))
    }

    /// A string with its language or datatype.
    fn text(&mut self, quote: char) -> Result<Option<String>, SyntaxError> {
        let fence: String = std::iter::repeat_n(quote, 3).collect();
        let is_long = self.rest.starts_with(&fence);
        let fence = if is_long { fence } else { quote.to_string() };
        let mut written = fence.clone();
        let mut rest = &self.rest[fence.len()..];
        loop {
            let Some(c) = rest.chars().next() else { return Ok(None) };
            if rest.starts_with(&fence) {
                rest = &rest[fence.len()..];
                break;
            }
            let after = &rest[c.len_utf8()..];
            if c != '\\' {
                if c == '\n' && !is_long {
                    return Ok(None);
                }
                written.push(c);
                rest = after;
                continue;
            }
            let Some(escaped) = after.chars().next() else { return Ok(None) };
            match escaped {
                'a' => written.push_str("\\u0007"),
                'v' => written.push_str("\\u000B"),
                'u' | 'U' => {
                    // So many characters are taken, whatever they are.
                    let digits = if escaped == 'u' { 4 } else { 8 };
                    let Some((end, last)) = after.char_indices().nth(digits) else { return Ok(None) };
                    let taken = &after[1..end + last.len_utf8()];
                    if taken.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                        written.extend(['\\', escaped]);
                        written.push_str(taken);
                    } else {
                        written.extend(["\\\\", &after[..1]]);
                        taken.chars().for_each(|c| escape(c, &mut written));
                    }
                    rest = &after[1 + taken.len()..];
                    continue;
                }
                other => written.extend(['\\', other]),
            }
            rest = &after[escaped.len_utf8()..];
        }
        // Of more than three quotes, the last three are the end.
        while is_long && rest.starts_with(quote) {
            written.extend(['\\', quote]);
            rest = &rest[1..];
        }
        written.push_str(&fence);
        self.rest = rest;
        let next = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let is_apart = next.len() < rest.len();
        let is_tag =
            next.strip_prefix('@').is_some_and(|tag| !tag.starts_with("prefix") && !tag.starts_with("base"));
        if is_apart && (is_tag || next.starts_with("^^")) {
            return Err(SyntaxError::new("a string and its language or datatype have nothing between them"));
        }
        if let Some(tag) = rest.strip_prefix('@') {
            let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len());
            let tag = &self.take(1 + end)[1..];
            if !is_language(tag) {
                return Err(SyntaxError::new(format!("`{tag}` is no language tag")));
            }
            if tag.len() < 4 && tag.bytes().all(|byte| byte.is_ascii_lowercase()) {
                written.push('@');
                written.push_str(tag);
            } else {
                self.differs = true;
                written.push_str(&format!("^^<{TAG}{tag}>"));
            }
            if self.rest.starts_with("^^") {
                return Ok(None);
            }
        } else if rest.starts_with("^^") {
            self.take(2);
            self.skip()?;
            let datatype = match self.rest.chars().next() {
                Some('<') => self.iri(),
                _ => match self.name()? {
                    Some(Token::Term(name)) => Some(name),
                    _ => None,
                },
            };
            let Some(datatype) = datatype else { return Ok(None) };
            written.push_str("^^");
            written.push_str(&datatype);
        }
        Ok(Some(written))
    }

    /// Whether a statement begins with PREFIX or BASE.
    fn has_directive(&self) -> bool {
        let begins = matches!(self.list.last(), None | Some(Token::Sign('.') | Token::Directive(_)));
        begins
            && ["prefix", "base"].iter().any(|word| {
                let (found, after) = self.rest.split_at_checked(word.len()).unwrap_or_default();
                found.eq_ignore_ascii_case(word) && after.starts_with(|c: char| c.is_whitespace() || c == '<')
            })
    }

    /// `@prefix`, `PREFIX` or the same of bases, and the namespace that it declares.
    fn directive(&mut self) -> Result<Option<Token>, SyntaxError> {
        let has_mark = self.rest.starts_with('@');
        let start = usize::from(has_mark);
        let word_end = self.rest[start..]
            .find(|c: char| !c.is_ascii_alphabetic())
            .map_or(self.rest.len(), |end| end + start);
        let mut word = self.take(word_end)[start..].to_owned();
        if !has_mark {
            word.make_ascii_lowercase();
        }
        self.skip()?;
        let mut written = format!("@{word}");
        let mut prefix = None;
        if word == "prefix" {
            // What follows the first colon means nothing.
            let end = self.rest.find(|c: char| !is_name(c)).unwrap_or(self.rest.len());
            let word = &self.rest[..end];
            // A stop at the end is no part of it.
            let word = self.take(word.strip_suffix('.').unwrap_or(word).len());
            let Some((name, _)) = word.split_once(':') else { return Ok(None) };
            self.skip()?;
            written.push_str(&format!(" {name}:"));
            prefix = Some(name.to_owned());
        } else if word != "base" {
            return Ok(None);
        }
        if !self.rest.starts_with('<') {
            return Ok(None);
        }
        let Some(iri) = self.iri() else { return Ok(None) };
        if has_mark {
            self.skip()?;
            if !self.rest.starts_with('.') {
                return Ok(None);
            }
            self.take(1);
        }
        if let Some(prefix) = prefix {
            self.namespaces.insert(prefix.clone(), iri[1..iri.len() - 1].to_owned());
            if prefix == "_" {
                return Ok(Some(Token::Directive(String::new())));
            }
        }
        Ok(Some(Token::Directive(format!("{written} {iri} ."))))
    }

    /// A keyword, a blank node or a name with a prefix.
    fn name(&mut self) -> Result<Option<Token>, SyntaxError> {
        let mut end = 0;
        let mut characters = self.rest.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            if c == '\\' {
                match characters.next() {
                    Some((next, escaped)) if "(_~-!$&')*+,;=/?#@%".contains(escaped) => {
                        end = next + escaped.len_utf8();
                    }
                    Some((_, escaped)) => {
                        return Err(SyntaxError::new(format!("`{escaped}` in a name is not escaped")));
                    }
                    None => return Ok(None),
                }
            } else if is_name(c) {
                end = at + c.len_utf8();
            } else {
                break;
            }
        }
        let word = &self.rest[..end];
        let word = word.trim_end_matches('.');
        let Some((prefix, local)) = word.split_once(':') else {
            // Words are `a`, `true` and `false`; others are not Turtle.
            let is_known = matches!(word, "a" | "true" | "false");
            return Ok(is_known.then(|| Token::Term(self.take(word.len()).to_owned())));
        };
        let length = word.len();
        let written = if prefix == "_" && !self.namespaces.contains_key("_") {
            if local.contains(':') {
                return Ok(None);
            }
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !local.chars().all(plain) {
                return Ok(None);
            }
            // The letter allows any character, and none, behind it.
            format!("_:x{local}")
        } else {
            let is_odd = |c: char| !c.is_ascii() && !c.is_alphanumeric();
            match self.namespaces.get(prefix) {
                Some(namespace)
                    if prefix == "_" || local.starts_with(['-', '.']) || local.contains(is_odd) =>
                {
                    format!("<{namespace}{local}>")
                }
                _ => word.to_owned(),
            }
        };
        self.take(length);
        Ok(Some(Token::Term(written)))
    }
}
