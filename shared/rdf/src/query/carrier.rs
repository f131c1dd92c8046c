//! Carriers: literals of the graph under a datatype that the engine does not know, and so hands on as they are.

use std::cell::RefCell;

use oxrdf::{Literal, NamedNode, Term, vocab::xsd};
use spareval::ExpressionTerm;

/// Before the datatype of a carrier.
const CARRIED: &str = "urn:kgfleet:form:";

thread_local! {
    /// The term that the engine read last, if it is one whose form the engine changes.
    pub(super) static READ: RefCell<Option<Term>> = const { RefCell::new(None) };
}

/// Remembers the term that the engine reads as a value; `None` if the value has only one form.
pub(super) fn reads(term: Option<&Term>) {
    READ.with_borrow_mut(|read| {
        if read.is_some() || term.is_some() {
            *read = term.cloned();
        }
    });
}

/// A text that says that it is one, as in `"x"^^xsd:string`: a carrier of its own, as rdflib holds it for another term than
/// `"x"`.
pub(super) fn stated_text(text: &str) -> Literal {
    Literal::new_typed_literal(text, NamedNode::new_unchecked(format!("{CARRIED}{}", xsd::STRING.as_str())))
}

fn is_carried(literal: &Literal) -> bool {
    literal.datatype().as_str().starts_with(CARRIED)
}

/// The term that an expression hands on in a carrier.
pub(super) fn handed_on(term: Term) -> Term {
    match &term {
        Term::Literal(literal)
            if literal.datatype().as_str().strip_prefix(CARRIED) == Some(xsd::STRING.as_str()) =>
        {
            term
        }
        _ => uncarried(term),
    }
}

/// Whether the engine writes a literal in another form than this.
pub(super) fn changes(term: &Term) -> bool {
    let Term::Literal(literal) = term else { return false };
    if is_carried(literal) {
        return true;
    }
    literal.language().is_none()
        && literal.datatype() != xsd::STRING
        && Term::from(ExpressionTerm::from(term.clone())) != *term
}

/// The carrier of a literal whose form the engine changes; any other term as it is.
pub(super) fn carried(term: Term) -> Term {
    match &term {
        Term::Literal(literal) if !is_carried(literal) && changes(&term) => carrier(literal).into(),
        _ => term,
    }
}

fn carrier(literal: &Literal) -> Literal {
    let datatype = NamedNode::new_unchecked(format!("{CARRIED}{}", literal.datatype().as_str()));
    Literal::new_typed_literal(literal.value(), datatype)
}

/// The term that a carrier carries; any other term as it is.
pub(super) fn uncarried(term: Term) -> Term {
    match &term {
        Term::Literal(literal) => match literal.datatype().as_str().strip_prefix(CARRIED) {
            Some(datatype) => {
                Literal::new_typed_literal(literal.value(), NamedNode::new_unchecked(datatype)).into()
            }
            None => term,
        },
        _ => term,
    }
}

/// Whether a computed term is a carrier.
pub(super) fn is_carrier(term: &ExpressionTerm) -> bool {
    matches!(term, ExpressionTerm::OtherTypedLiteral { datatype, .. } if datatype.as_str().starts_with(CARRIED))
}
