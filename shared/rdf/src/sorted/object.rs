//! Objects as bytes.

use oxrdf::{BlankNode, Literal, NamedNode, Term};

/// The datatype of plain strings.
const STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// An object as it stands in the file; see [the format](super).
#[derive(Debug, Clone, Copy)]
pub struct StoredObject<'a>(pub(super) &'a [u8]);

impl<'a> StoredObject<'a> {
    /// The IRI, if it is one.
    pub fn iri(self) -> Option<&'a str> {
        self.0.strip_prefix(b"I").and_then(|iri| std::str::from_utf8(iri).ok())
    }

    /// The object as a term; `None` if the bytes are no object. What a parser once took for a term is not checked again.
    pub fn term(self) -> Option<Term> {
        let (kind, rest) = self.0.split_first()?;
        let rest = std::str::from_utf8(rest).ok()?;
        Some(match kind {
            b'I' => NamedNode::new_unchecked(rest).into(),
            b'B' => BlankNode::new_unchecked(rest).into(),
            b'S' => Literal::new_simple_literal(rest).into(),
            b'G' => {
                let (language, value) = rest.split_once('\0')?;
                Literal::new_language_tagged_literal_unchecked(value, language).into()
            }
            b'D' => {
                let (datatype, value) = rest.split_once('\0')?;
                Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype)).into()
            }
            _ => return None,
        })
    }
}

/// Appends the bytes of a term.
pub(super) fn write(term: &Term, out: &mut Vec<u8>) {
    match term {
        Term::NamedNode(node) => parts(b'I', &[node.as_str()], out),
        Term::BlankNode(node) => parts(b'B', &[node.as_str()], out),
        Term::Literal(literal) => match literal.language() {
            Some(language) => parts(b'G', &[language, literal.value()], out),
            None if literal.datatype().as_str() == STRING => parts(b'S', &[literal.value()], out),
            None => parts(b'D', &[literal.datatype().as_str(), literal.value()], out),
        },
    }
}

fn parts(kind: u8, parts: &[&str], out: &mut Vec<u8>) {
    out.push(kind);
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            out.push(0);
        }
        out.extend_from_slice(part.as_bytes());
    }
}
