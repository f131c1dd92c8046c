//! N-Triples as rdflib reads them: a line at a time, with blanks between the terms, and with escapes that mean nothing left
//! as they are.

use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};

use crate::syntax_error::SyntaxError;
use crate::turtle_as_rdflib::FOREIGN;

/// The triples of a document in its order.
pub(crate) fn parse(text: &str) -> Result<Vec<Triple>, SyntaxError> {
    let mut triples = Vec::new();
    // A line ends in any of the three ways; an empty one between the two characters of one end changes nothing.
    for (number, line) in text.split(['\n', '\r']).enumerate() {
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let triple = triple(&mut { line }).ok_or_else(|| {
            let line_ends = text.split(['\n', '\r']).take(number).map(str::len).sum::<usize>() + number;
            SyntaxError {
                message: format!("Invalid line: {line}"),
                line: Some(text[..line_ends].matches('\n').count()),
                ..SyntaxError::default()
            }
        })?;
        triples.push(triple);
    }
    Ok(triples)
}

fn triple(rest: &mut &str) -> Option<Triple> {
    let subject: NamedOrBlankNode = match iri(rest) {
        Some(iri) => iri?.into(),
        None => blank(rest)?.into(),
    };
    blanks(rest)?;
    let predicate = iri(rest)??;
    blanks(rest)?;
    let object: Term = match iri(rest) {
        Some(iri) => iri?.into(),
        None => match blank(rest) {
            Some(node) => node.into(),
            None => literal(rest)?.into(),
        },
    };
    let tail = rest.trim_start_matches([' ', '\t']).strip_prefix('.')?.trim_start_matches([' ', '\t']);
    (tail.is_empty() || tail.starts_with('#')).then(|| Triple::new(subject, predicate, object))
}

fn blanks(rest: &mut &str) -> Option<()> {
    let after = rest.trim_start_matches([' ', '\t']);
    let found = after.len() < rest.len();
    *rest = after;
    found.then_some(())
}

/// An IRI; the inner `None` is one that cannot be written.
fn iri(rest: &mut &str) -> Option<Option<NamedNode>> {
    let inside = rest.strip_prefix('<')?;
    let colon = inside.find(':').filter(|colon| *colon > 0)?;
    let end = colon + inside[colon..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>'))?;
    *rest = inside[end..].strip_prefix('>')?;
    let name = unescaped(&inside[..end]);
    Some(name.filter(|name| !name.contains(FOREIGN)).map(NamedNode::new_unchecked))
}

fn blank(rest: &mut &str) -> Option<BlankNode> {
    let label = rest.strip_prefix("_:")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let end = label.find(|c: char| !is_part(c) && !matches!(c, '-' | '.')).unwrap_or(label.len());
    let name = label[..end].trim_end_matches('.');
    name.starts_with(is_part).then(|| {
        *rest = &label[name.len()..];
        // A colon is no part of a label elsewhere.
        BlankNode::new_unchecked(name.replace(':', "-colon-"))
    })
}

fn literal(rest: &mut &str) -> Option<Literal> {
    let inside = rest.strip_prefix('"')?;
    let mut escaped = false;
    let end = inside.find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let text = unescaped(&inside[..end])?;
    *rest = &inside[end + 1..];
    if let Some(tag) = rest.strip_prefix('@') {
        let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(tag.len());
        let tag = &tag[..end];
        let first = tag.split('-').next().unwrap_or_default();
        let is_tag = first.bytes().all(|byte| byte.is_ascii_alphabetic())
            && tag.split('-').all(|part| !part.is_empty());
        *rest = &rest[1 + end..];
        return is_tag.then(|| Literal::new_language_tagged_literal_unchecked(text, tag));
    }
    if let Some(after) = rest.strip_prefix("^^") {
        *rest = after;
        return Some(Literal::new_typed_literal(text, iri(rest)??));
    }
    Some(Literal::new_simple_literal(text))
}

/// A text whose escapes are replaced; those that mean nothing stay. `None` if one of them is half a character.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let code = |digits: usize| {
            let digits =
                after.get(1..=digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            u32::from_str_radix(digits, 16).ok()
        };
        let number = match after.chars().next() {
            Some('u') => code(4).map(|number| (number, 5)),
            Some('U') => code(8).map(|number| (number, 9)),
            _ => None,
        };
        let simple = after
            .chars()
            .next()
            .and_then(|c| "tbnrf\"'\\".find(c).and_then(|at| "\t\u{8}\n\r\u{c}\"'\\".chars().nth(at)));
        match (number, simple) {
            (Some((number, length)), _) => {
                plain.push(char::from_u32(number)?);
                rest = &after[length..];
            }
            (None, Some(c)) => {
                plain.push(c);
                rest = &after[1..];
            }
            (None, None) => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    Some(plain)
}
