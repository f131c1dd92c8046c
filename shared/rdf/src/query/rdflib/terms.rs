//! Terms: IRIs, literals, blank nodes and variables.

use super::Reader;
use crate::literal::rdflib_lexical;
use crate::query::carrier::stated_text;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Variable};
use spargebra::term::{GroundTerm, TermPattern};

pub(super) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

impl Reader<'_> {
    pub(super) fn variable(&mut self) -> Option<Variable> {
        let variable = Variable::new_unchecked(self.scanner.variable()?);
        self.mentioned.push(variable.clone());
        Some(variable)
    }

    /// `<iri>` or `prefix:local`.
    pub(super) fn iri(&mut self) -> Option<NamedNode> {
        if let Some(reference) = self.scanner.iri_reference() {
            return Some(NamedNode::new_unchecked(self.absolute(reference)));
        }
        let (prefix, local) = self.scanner.prefixed_name()?;
        Some(self.expand(prefix, local))
    }

    /// [`Reader::iri`] without blanks before it.
    fn glued_iri(&mut self) -> Option<NamedNode> {
        if let Some(reference) = self.scanner.glued_iri_reference() {
            return Some(NamedNode::new_unchecked(self.absolute(reference)));
        }
        let (prefix, local) = self.scanner.glued_prefixed_name()?;
        Some(self.expand(prefix, local))
    }

    fn expand(&mut self, prefix: &str, local: &str) -> NamedNode {
        // A namespace has one prefix: a declaration replaces the one in the table.
        let of_table = || {
            self.table.get(prefix).filter(|namespace| !self.declared.values().any(|taken| taken == namespace))
        };
        let namespace = self.declared.get(prefix).map(String::as_str).or_else(of_table);
        if namespace.is_none() && self.unknown_prefix.is_none() {
            self.unknown_prefix = Some(prefix.to_owned());
        }
        // rdflib keeps the backslashes of an escaped name in the IRI, so the IRI occurs nowhere.
        NamedNode::new_unchecked(format!("{}{local}", namespace.unwrap_or_default()))
    }

    /// The absolute IRI of a reference; without a BASE, a relative one is unchanged.
    pub(super) fn absolute(&self, reference: &str) -> String {
        let base = self.base.as_deref().filter(|_| !reference.contains(':'));
        base.and_then(|base| resolve(base, reference)).unwrap_or_else(|| reference.to_owned())
    }

    /// A string, number or boolean.
    pub(super) fn literal(&mut self) -> Option<Literal> {
        if let Some(text) = self.scanner.string() {
            if let Some(tag) = self.scanner.glued_language() {
                return Some(Literal::new_language_tagged_literal_unchecked(text, tag.to_ascii_lowercase()));
            }
            let typed = self.attempt(|r| {
                if !r.scanner.glued("^^") {
                    return None;
                }
                r.glued_iri()
            });
            return Some(match typed {
                Some(datatype) if datatype == xsd::STRING => stated_text(&text),
                Some(datatype) => Literal::new_typed_literal(text, datatype),
                None => Literal::new_simple_literal(text),
            });
        }
        if let Some((text, local)) = self.scanner.number() {
            return Some(number(text.to_owned(), local));
        }
        let signed = self.attempt(|r| {
            let sign = if r.scanner.symbol("+") { "+" } else { r.symbol("-").map(|()| "-")? };
            let (text, local) = r.scanner.glued_number()?;
            if sign == "-" && local == "decimal" {
                // rdflib raises before it has read the query.
                r.negative_decimal.get_or_insert(r.scanner.place());
            }
            Some(number(format!("{sign}{text}"), local))
        });
        signed.or_else(|| self.boolean())
    }

    fn boolean(&mut self) -> Option<Literal> {
        let value = self.scanner.keyword("true");
        (value || self.scanner.keyword("false")).then(|| Literal::from(value))
    }

    /// A variable or a term, except a collection or a node with properties.
    pub(super) fn variable_or_term(&mut self) -> Option<TermPattern> {
        if let Some(variable) = self.variable() {
            return Some(variable.into());
        }
        if let Some(iri) = self.iri() {
            return Some(iri.into());
        }
        if let Some(literal) = self.literal() {
            return Some(literal.into());
        }
        if let Some(label) = self.scanner.blank_label() {
            return Some(BlankNode::new_unchecked(label).into());
        }
        if self.brackets("[", "]").is_some() {
            return Some(self.fresh_node());
        }
        self.brackets("(", ")").map(|()| NamedNode::new_unchecked(format!("{RDF}nil")).into())
    }

    /// Empty brackets.
    pub(super) fn brackets(&mut self, open: &str, close: &str) -> Option<()> {
        self.attempt(|r| r.between(open, close, |_| Some(())))
    }

    /// A new blank node.
    pub(super) fn fresh_node(&mut self) -> TermPattern {
        self.fresh().into()
    }

    /// A value of VALUES; the inner `None` is UNDEF.
    pub(super) fn data_value(&mut self) -> Option<Option<GroundTerm>> {
        if let Some(iri) = self.iri() {
            return Some(Some(iri.into()));
        }
        if let Some(literal) = self.literal() {
            return Some(Some(literal.into()));
        }
        self.keyword("UNDEF").map(|()| None)
    }
}

fn number(text: String, local: &str) -> Literal {
    let datatype = NamedNode::new_unchecked(format!("{XSD}{local}"));
    Literal::new_typed_literal(rdflib_lexical(&text, datatype.as_str()), datatype)
}

/// Resolves a relative reference, with a parser that can.
pub(super) fn resolve(base: &str, reference: &str) -> Option<String> {
    let parser = spargebra::SparqlParser::new().with_base_iri(base).ok()?;
    let query = parser.parse_query(&format!("SELECT * {{ VALUES ?x {{ <{reference}> }} }}")).ok()?;
    let spargebra::Query::Select { pattern: spargebra::algebra::GraphPattern::Project { inner, .. }, .. } =
        query
    else {
        return None;
    };
    match *inner {
        spargebra::algebra::GraphPattern::Values { bindings, .. } => {
            match bindings.into_iter().flatten().flatten().next()? {
                GroundTerm::NamedNode(node) => Some(node.into_string()),
                GroundTerm::Literal(_) => None,
            }
        }
        _ => None,
    }
}
