//! The constraints of SHACL Core, as a shape has them.

use std::collections::BTreeSet;

use crate::Term;
use regex::Regex;

/// A constraint under the name of its parameter, without the prefix.
pub(crate) type NamedConstraint = (&'static str, Constraint);

/// A constraint. Other shapes are named by their place among all shapes.
#[derive(Clone, Debug)]
pub(crate) enum Constraint {
    Class(String),
    Datatype(String),
    NodeKind(NodeKinds),
    MinCount(u64),
    MaxCount(u64),
    Bound { least: bool, inclusive: bool, value: Term },
    MinLength(u64),
    MaxLength(u64),
    Pattern(Regex),
    LanguageIn(Vec<String>),
    UniqueLang,
    Equals(String),
    Disjoint(String),
    LessThan { predicate: String, or_equal: bool },
    Not(usize),
    And(Vec<usize>),
    Or(Vec<usize>),
    Xone(Vec<usize>),
    Node(usize),
    Property(usize),
    Qualified { shape: usize, least: Option<u64>, most: Option<u64>, disjoint: Vec<usize> },
    Closed(BTreeSet<String>),
    HasValue(Term),
    In(Vec<Term>),
}

impl Constraint {
    /// The shapes on which it depends.
    pub(crate) fn shapes(&self) -> Vec<usize> {
        match self {
            Self::Not(shape) | Self::Node(shape) | Self::Property(shape) => vec![*shape],
            Self::And(shapes) | Self::Or(shapes) | Self::Xone(shapes) => shapes.clone(),
            Self::Qualified { shape, disjoint, .. } => disjoint.iter().copied().chain([*shape]).collect(),
            _ => Vec::new(),
        }
    }
}

/// The kinds of nodes that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeKinds {
    blank: bool,
    iri: bool,
    literal: bool,
}

impl NodeKinds {
    /// The kinds of one of SHACL's six names.
    pub(crate) fn named(local: &str) -> Option<Self> {
        let kinds = |blank, iri, literal| Some(Self { blank, iri, literal });
        match local {
            "BlankNode" => kinds(true, false, false),
            "IRI" => kinds(false, true, false),
            "Literal" => kinds(false, false, true),
            "BlankNodeOrIRI" => kinds(true, true, false),
            "BlankNodeOrLiteral" => kinds(true, false, true),
            "IRIOrLiteral" => kinds(false, true, true),
            _ => None,
        }
    }

    pub(crate) fn has(self, term: &Term) -> bool {
        match term {
            Term::BlankNode(_) => self.blank,
            Term::NamedNode(_) => self.iri,
            Term::Literal(_) => self.literal,
        }
    }
}
